"""nvtripy promises which types each operation takes: those work here; the others fail even when it does not check."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import nvtripy as tp
import pytest
from nvtripy.common.datatype import DATA_TYPES
from nvtripy.frontend.wrappers import OPERATOR_CONSTRAINTS, OperatorConstraints

pytestmark = pytest.mark.slow

# What the operations need besides tensors and data types, by name of the operation.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "avgpool": {"kernel_dims": (2, 2)},
    "convolution": {
        "stride": (1, 1),
        "padding": ((0, 0), (0, 0)),
        "groups": 1,
        "dilation": (1, 1),
    },
    "copy": {"device": tp.device("gpu")},
    "concatenate": {"dim": 0},
    "cumsum": {"dim": 0},
    "dequantize": {"dim": None},
    "expand": {"sizes": (2, 2)},
    "flip": {"dim": 0},
    "full": {"shape": (2, 2)},
    "gather": {"dim": 0},
    "instancenorm": {"num_channels": 2, "eps": 1e-5},
    "iota": {"shape": (2, 2)},
    "layernorm": {"normalized_shape": (2,), "eps": 1e-5},
    "masked_fill": {"value": 1},
    "maxpool": {"kernel_dims": (2, 2)},
    "ones": {"shape": (2, 2)},
    "pad": {"pad": [(1, 1), (0, 1)]},
    "permute": {"perm": (1, 0)},
    "quantize": {"dim": None},
    "repeat": {"repeats": 2, "dim": 0},
    "reshape": {"shape": (4,)},
    "resize": {"output_shape": (1, 1, 4, 4), "scales": (1, 1, 2, 2), "mode": "nearest"},
    "softmax": {"dim": 0},
    "split": {"num_split_or_sizes": 2},
    "squeeze": {"dims": 0},
    "topk": {"k": 1, "dim": 0},
    "transpose": {"dim0": 0, "dim1": 1},
    "unsqueeze": {"dim": 0},
    "zeros": {"shape": (2, 2)},
    "arange": {"start": 0, "stop": 5, "step": 1},
    "__getitem__": {"index": 0},
    "argmax": {"dim": 0},
    "argmin": {"dim": 0},
}
ARGUMENTS["deconvolution"] = ARGUMENTS["convolution"]

# Shapes of the tensors that are not (2, 2).
SHAPES: dict[tuple[str, str], tuple[int, ...]] = {
    **{(name, "input"): (1, 1, 4, 4) for name in ("convolution", "deconvolution", "avgpool", "maxpool", "resize")},
    **{(name, "weight"): (1, 1, 2, 2) for name in ("convolution", "deconvolution")},
    **{(name, "bias"): (1,) for name in ("convolution", "deconvolution")},
    ("instancenorm", "input"): (1, 2, 3, 3),
    **{(name, part): (2,) for name in ("instancenorm", "layernorm") for part in ("weight", "bias")},
    ("squeeze", "input"): (1, 2),
    ("quantize", "scale"): (),
    ("dequantize", "scale"): (),
    ("full", "value"): (),
    ("full_like", "value"): (),
    ("outer", "vec1"): (2,),
    ("outer", "vec2"): (2,),
}

#: nvtripy promises these, but the constraints of an operation that it calls on the way refuse them.
BROKEN_PROMISES = {
    ("full", "int4"),
    ("stack", "int4"),
    ("tril", "bool"),
    ("triu", "bool"),
    ("masked_fill", "int4"),
    ("relu", "int4"),
    ("split", "int4"),
    ("__getitem__", "int4"),
    ("__rfloordiv__", "int4"),
    *({("masked_fill", "bool")} if tp.__version__ == "0.1.5" else ()),
}


#: nvtripy excludes these, but what they are made of is promised to others (int8 of `full`, int4 of `reshape`).
UNPROMISED = {
    "__pow__": {"bool"},
    "__rpow__": {"bool"},
    "cast": {"int4", "int8", "float8"},
    "expand": {"int8"},
    "flip": {"int4", "int8"},
    "full": {"float8", "int8"},
    "full_like": {"float8", "int4", "int8"},
    "ones_like": {"int4"},
    "repeat": {"int8"},
    "squeeze": {"int4"},
    "transpose": {"int4"},
    "unsqueeze": {"int4"},
    "zeros_like": {"int4"},
}


def is_tensor(parameter: inspect.Parameter) -> bool:
    return parameter.annotation in ("nvtripy.Tensor", tp.types.TensorLike) or "nvtripy.Tensor" in str(
        parameter.annotation
    )


def is_dtype(parameter: inspect.Parameter) -> bool:
    return parameter.name == "dtype"


def make_tensor(name: str, parameter: str, dtype: Any) -> Any:
    data = np.ones(SHAPES.get((name, parameter), (2, 2)), np.float32)
    if (name, parameter) == ("gather", "index"):
        data = np.zeros(data.shape, np.float32)
    tensor = tp.cast(tp.Tensor(data), dtype)
    if parameter == "scale":  # nvtripy takes only constants here, so this one is cast beforehand
        return tp.copy(tensor.eval(), tp.device("cpu"))
    return tensor


def cases() -> list[Any]:
    found = []
    for index, constraints in enumerate(OPERATOR_CONSTRAINTS):
        name = constraints.func.__name__
        if constraints.input_requirements is None or name in ("allclose", "equal", "shape"):
            continue  # these return Python values
        found.append(pytest.param(constraints, id=f"{name}-{index}"))
    return found


def calls(constraints: OperatorConstraints) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return (types by parameter, arguments): every type for all, and for each while the others are float32."""
    signature = inspect.signature(constraints.func)
    name = constraints.func.__name__
    fixed = {key: value for key, value in ARGUMENTS.get(name, {}).items() if key in signature.parameters}
    typed = [p for p in signature.parameters.values() if p.name not in fixed and (is_tensor(p) or is_dtype(p))]
    names = [parameter.name for parameter in typed]
    alike = [dict.fromkeys(names, dtype) for dtype in DATA_TYPES.values()]
    single = [
        {name: (dtype if name == one else tp.float32) for name in names}
        for one, dtype in itertools.product(names, DATA_TYPES.values())
    ]
    combinations = [types for index, types in enumerate(alike + single) if types not in (alike + single)[:index]]
    result = []
    for types in combinations:
        arguments = dict(fixed)
        for parameter in typed:
            dtype = types[parameter.name]
            if is_dtype(parameter):
                arguments[parameter.name] = dtype
            elif parameter.name == "tensors":
                arguments[parameter.name] = [make_tensor(name, "tensors", dtype)] * 2
            else:
                arguments[parameter.name] = make_tensor(name, parameter.name, dtype)
        result.append((types, arguments))
    return result


def public(constraints: OperatorConstraints) -> Callable[..., Any]:
    return getattr(sys.modules[constraints.func.__module__], constraints.func.__name__)


def evaluate(function: Callable[..., Any], arguments: dict[str, Any]) -> list[Any]:
    outcome = function(**arguments)
    outputs = list(outcome) if isinstance(outcome, list | tuple) else [outcome]
    return [output.eval() for output in outputs]


@pytest.fixture
def unchecked() -> Any:
    tp.config.enable_input_validation = False
    yield
    tp.config.enable_input_validation = True


@pytest.mark.parametrize("constraints", cases())
def test_promised_types_work_and_the_result_has_the_promised_type(constraints: OperatorConstraints) -> None:
    name = constraints.func.__name__
    for types, arguments in calls(constraints):
        defaults = [
            (p.name, p.default)
            for p in inspect.signature(constraints.func).parameters.values()
            if p.name not in arguments and p.default is not p.empty
        ]
        merged = [*arguments.items(), *defaults]
        if not constraints.input_requirements(merged) or any((name, str(t)) in BROKEN_PROMISES for t in types.values()):
            continue
        outputs = evaluate(public(constraints), arguments)
        if constraints.output_guarantees is not None:
            assert constraints.output_guarantees(merged, tuple(outputs)), (types, outputs)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("constraints", cases())
def test_other_types_fail_even_without_validation(constraints: OperatorConstraints) -> None:
    accepted = []
    for types, arguments in calls(constraints):
        excused = UNPROMISED.get(constraints.func.__name__, set())
        if constraints.input_requirements(list(arguments.items())) or excused & {str(t) for t in types.values()}:
            continue
        with contextlib.suppress(Exception):
            evaluate(public(constraints), arguments)
            accepted.append({key: str(value) for key, value in types.items()})
    assert accepted == [], "accepted here, refused by TensorRT"
