"""nvtripy's own modules, evaluated, compiled for a range of shapes, saved and loaded, against float64 references."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import nvtripy as tp
import pytest
from references import Geometry, by_channel, convolution, normalized, product, quantized, transposed_convolution
from tensors import NVTRIPY_DTYPES, array, assert_agrees, random, tensor, wide

from tripy_cpu.dtypes import NUMPY_DTYPES
from tripy_cpu.program import Instruction, Program
from tripy_cpu.serialization import deserialize, serialize

Parameters = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """A module of nvtripy.

    Attributes:
        make: Makes it, from its data type.
        shape: The shape of its input.
        reference: What it computes, from its parameters and its input in double precision.
        indices: How many indices its input may hold, where that is integers.
    """

    make: Callable[[Any], Any]
    shape: tuple[int, ...]
    reference: Callable[[Parameters, np.ndarray], np.ndarray]
    indices: int = 0


def affine(p: Parameters, x: np.ndarray, groups: list[tuple[Any, ...]]) -> np.ndarray:
    return by_channel(normalized(x, groups, 1e-5), p["weight"], p["bias"])


def batch_norm(p: Parameters, x: np.ndarray) -> np.ndarray:
    deviation = np.sqrt(p["running_var"] + 1e-5)
    standard = by_channel(x, 1 / deviation, -p["running_mean"] / deviation)
    return by_channel(standard, p["weight"], p["bias"])


CONV = Geometry((5, 6), (2, 3), (1, 1), (1, 1), ((1, 0), (0, 1)))
CONV_1D = Geometry((9,), (3,), (2,), (1,), ((0, 0),))
TRANSPOSED = Geometry((5, 6), (2, 3), (2, 1), (1, 1), ((0, 0), (0, 0)))

CASES = {
    "Linear": Case(lambda t: tp.Linear(6, 4, dtype=t), (2, 6), lambda p, x: product(x, p["weight"].T) + p["bias"]),
    "Linear without bias": Case(
        lambda t: tp.Linear(6, 4, bias=False, dtype=t), (2, 6), lambda p, x: product(x, p["weight"].T)
    ),
    "LayerNorm": Case(
        lambda t: tp.LayerNorm((6,), dtype=t),
        (2, 6),
        lambda p, x: normalized(x, [(row,) for row in range(len(x))], 1e-5) * p["weight"] + p["bias"],
    ),
    "GroupNorm": Case(
        lambda t: tp.GroupNorm(2, 6, dtype=t),
        (2, 6, 5),
        lambda p, x: affine(p, x, [(item, slice(3 * g, 3 * g + 3)) for item in range(len(x)) for g in range(2)]),
    ),
    "InstanceNorm": Case(
        lambda t: tp.InstanceNorm(3, dtype=t),
        (2, 3, 4, 5),
        lambda p, x: affine(p, x, list(np.ndindex(len(x), 3))),
    ),
    "BatchNorm": Case(lambda t: tp.BatchNorm(3, dtype=t), (2, 3, 4, 5), batch_norm),
    "Conv": Case(
        lambda t: tp.Conv(3, 4, (2, 3), padding=((1, 0), (0, 1)), dtype=t),
        (2, 3, 5, 6),
        lambda p, x: convolution(x, p["weight"], p["bias"], CONV)[0],
    ),
    "Conv 1D": Case(
        lambda t: tp.Conv(4, 4, (3,), groups=2, stride=(2,), dtype=t),
        (2, 4, 9),
        lambda p, x: convolution(x, p["weight"], p["bias"], CONV_1D, 2)[0],
    ),
    "ConvTranspose": Case(
        lambda t: tp.ConvTranspose(3, 4, (2, 3), stride=(2, 1), dtype=t),
        (2, 3, 5, 6),
        lambda p, x: transposed_convolution(x, p["weight"], p["bias"], TRANSPOSED)[0],
    ),
    "Embedding": Case(
        lambda t: tp.Embedding(7, 4, dtype=t), (2, 3), lambda p, x: p["weight"][x.astype(int)], indices=7
    ),
    "Sequential": Case(
        lambda t: tp.Sequential(tp.Linear(6, 4, dtype=t), tp.relu, tp.Linear(4, 2, dtype=t)),
        (2, 6),
        lambda p, x: product(np.maximum(product(x, p["0.weight"].T) + p["0.bias"], 0), p["2.weight"].T) + p["2.bias"],
    ),
}


def filled(module: Any, dtype: str) -> dict[str, np.ndarray]:
    """Give the module random parameters, and return them in double precision."""
    values = {
        name: random(seed, tuple(map(int, parameter.shape)), dtype, 0.5 if name == "running_var" else -1, 1.5)
        for seed, (name, parameter) in enumerate(module.state_dict().items())
    }
    module.load_state_dict({name: tensor(value) for name, value in values.items()})
    return {name: wide(value) for name, value in values.items()}


def every_way(module: Any, x: Any, low: int, high: int, folder: Path) -> list[Any]:
    """Return what the module gives evaluated, compiled, and compiled, saved and loaded."""
    size, *others = map(int, x.shape)
    compiled = tp.compile(module, args=[tp.InputInfo(((low, size, high), *others), dtype=x.dtype)])
    compiled.save(str(folder / "executable.json"))
    loaded = tp.Executable.load(str(folder / "executable.json"))
    x = tp.copy(x, tp.device("gpu"))
    return [module(x).eval(), compiled(x), loaded(x)]


@pytest.mark.parametrize(
    ("name", "dtype"),  # TensorRT has no deconvolution in bfloat16
    [pair for pair in itertools.product(CASES, ["f32", "f16", "bf16"]) if pair != ("ConvTranspose", "bf16")],
)
def test_evaluated_compiled_and_loaded(name: str, dtype: str, tmp_path: Path) -> None:
    case = CASES[name]
    module = case.make(NVTRIPY_DTYPES[dtype])
    parameters = filled(module, dtype)
    x = random(99, case.shape, "i32", 0, case.indices - 1) if case.indices else random(99, case.shape, dtype, -2, 2)
    expected = case.reference(parameters, wide(x))

    results = every_way(module, tensor(x), 1, 4, tmp_path)

    for result in results:
        assert_agrees(result, expected, dtype, slack=4, scale=np.maximum(np.abs(expected), 8.0))
        np.testing.assert_array_equal(array(result), array(results[0]))


@pytest.mark.parametrize("name", CASES)
def test_a_compiled_module_takes_every_shape_within_its_bounds(name: str) -> None:
    case = CASES[name]
    module = case.make(tp.float32)
    parameters = filled(module, "f32")
    kind = tp.int32 if case.indices else tp.float32
    compiled = tp.compile(module, args=[tp.InputInfo(((1, 2, 4), *case.shape[1:]), dtype=kind)])
    for size in (1, 3, 4):
        shape = (size, *case.shape[1:])
        x = random(size, shape, "i32", 0, case.indices - 1) if case.indices else random(size, shape, "f32", -2, 2)
        result = compiled(tp.copy(tensor(x), tp.device("gpu")))
        assert_agrees(result, case.reference(parameters, wide(x)), "f32", slack=4, scale=8.0)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(
    ("kind", "dim"), [("i8", None), ("i8", 0), ("i8", 1), ("f8e4m3fn", None), ("f8e4m3fn", 0), ("i4", None)]
)
def test_quantized_linear(kind: str, dim: int | None, dtype: str, tmp_path: Path) -> None:
    linear = tp.Linear(4, 3, dtype=NVTRIPY_DTYPES[dtype], quant_dtype=NVTRIPY_DTYPES[kind], weight_quant_dim=dim)
    weight, bias = random(1, (3, 4), dtype), random(2, (3,), dtype)
    scale = np.array([0.5, 0.25, 1.0, 2.0][: {None: 1, 0: 3, 1: 4}[dim]]).astype(weight.dtype)
    linear.weight, linear.bias = tensor(weight), tensor(bias)
    linear.weight_scale = tensor(scale.reshape(()) if dim is None else scale)
    quantizes_input = kind != "i4" and dim != 1
    if quantizes_input:
        linear.input_scale = tensor(np.array(0.25, weight.dtype))
    x = random(3, (2, 4), dtype)

    spread = wide(scale if dim != 0 else scale[:, None])
    rounded_weight = quantized(weight, spread, kind) * spread
    rounded_x = quantized(x, np.array(0.25), kind) * 0.25 if quantizes_input else wide(x)
    expected = product(rounded_x, rounded_weight.T) + wide(bias)
    for result in every_way(linear, tensor(x), 1, 4, tmp_path):
        assert_agrees(result, expected, dtype, slack=4, scale=np.maximum(np.abs(expected), 8.0))


def test_an_executable_holds_its_constants_compactly(tmp_path: Path) -> None:
    weight = tp.Tensor(np.zeros((64, 64), np.float32))
    compiled = tp.compile(lambda x: x @ weight, args=[tp.InputInfo((1, 64), dtype=tp.float32)])
    engine = compiled.serialized_tensorrt_engine
    assert engine.startswith(b"TRIPYCPU")
    assert len(engine) < 64 * 64 * 4 + 2000


def test_a_large_weight_is_saved_and_loaded_without_growing(tmp_path: Path) -> None:
    weight = tp.Tensor(np.ones((4096, 4096), np.float32))  # 64 MiB
    compiled = tp.compile(lambda x: x @ weight, args=[tp.InputInfo((1, 4096), dtype=tp.float32)])
    assert len(compiled.serialized_tensorrt_engine) < 70_000_000

    compiled.save(str(tmp_path / "executable.json"))
    loaded = tp.Executable.load(str(tmp_path / "executable.json"))
    assert array(loaded(tp.ones((1, 4096)).eval())).tolist() == [[4096.0] * 4096]


def test_an_executable_of_something_else_is_refused() -> None:
    from mlir_tensorrt.runtime.api import Executable, MTRTException

    with pytest.raises(MTRTException, match="was not saved by tripy_cpu"):
        Executable(b"\x00" * 64)


def test_a_damaged_executable_is_refused() -> None:
    from mlir_tensorrt.runtime.api import Executable, MTRTException

    weight = tp.Tensor(np.ones((64, 64), np.float32))
    engine = tp.compile(lambda x: x @ weight, args=[tp.InputInfo((1, 64), tp.float32)]).serialized_tensorrt_engine
    for length in (20, 100, len(engine) // 2):
        with pytest.raises(MTRTException, match="is damaged"):
            Executable(engine[:length])


@pytest.mark.parametrize("dtype", NVTRIPY_DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3)])
def test_constants_of_any_type_and_shape_are_saved(shape: tuple[int, ...], dtype: str) -> None:
    value = np.zeros(shape, np.int8) if 0 in shape else np.arange(np.prod(shape, dtype=int)).reshape(shape)
    constant = Instruction("constant", {"value": value.astype(NUMPY_DTYPES[dtype])}, (0,), (None,), "")
    program = Program((), (constant, constant), (0,))
    for instruction in deserialize(serialize(program)).instructions:
        restored = instruction.arguments["value"]
        assert restored.dtype == NUMPY_DTYPES[dtype]
        assert restored.flags.aligned
        np.testing.assert_array_equal(restored.astype(float), value.astype(NUMPY_DTYPES[dtype]).astype(float))


def test_several_outputs_and_nested_inputs() -> None:
    def function(pair: dict[str, Any]) -> tuple[Any, Any]:
        values, indices = tp.topk(pair["a"] + pair["b"], k=2, dim=1)
        return values, indices

    info = tp.InputInfo(((1, 2, 3), 4), dtype=tp.float32)
    compiled = tp.compile(function, args=[{"a": info, "b": info}])
    a = tp.Tensor([[1.0, 5.0, 2.0, 4.0]]).eval()
    values, indices = compiled({"a": a, "b": a})
    assert values.tolist() == [[10.0, 8.0]]
    assert indices.tolist() == [[1, 3]]
