"""Which element types each operation accepts, and which of its operands must have the same one.

The table follows what nvtripy's own constraints promise of TensorRT: what they exclude fails there, so it fails here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tripy_cpu.dtypes import Array, name_of
from tripy_cpu.errors import RefusedError

_FLOATS = frozenset({"f32", "f16", "bf16"})
_BOOL = frozenset({"i1"})
_INDICES = frozenset({"i32", "i64"})
_NUMBERS = _FLOATS | _INDICES | {"i8"}
_PLAIN = _NUMBERS | _BOOL
_MOVABLE = _PLAIN | {"i4"}
_QUANTIZED = frozenset({"i8", "i4", "f8e4m3fn"})
_ANY = _MOVABLE | _QUANTIZED


@dataclass(frozen=True)
class Rule:
    """What an operation accepts.

    Attributes:
        accepts: The element types by parameter; a parameter that is not here takes any.
        same: Parameters that must have one and the same element type, where they are given.
    """

    accepts: Mapping[str, frozenset[str]]
    same: tuple[str, ...] = ()


#: The parameter whose value selects a variant with a rule of its own.
_VARIANTS = {"element_wise": "elementwise_operation", "unary": "unary_operation", "slice": "mode"}


def _binary(*accepted: frozenset[str]) -> Rule:
    types = frozenset().union(*accepted)
    return Rule({"input1": types, "input2": types}, ("input1", "input2"))


def _unary(types: frozenset[str]) -> Rule:
    return Rule({"input": types})


def _weighted(weight: str, bias: str, types: frozenset[str]) -> Rule:
    return Rule({"input": types}, ("input", weight, bias))


def _resizing() -> Rule:
    return Rule({"input": frozenset({"f32", "f16", "i8"}), "output_shape": _INDICES})


def _slicing(types: frozenset[str]) -> Rule:
    return Rule({"input": types, "start": _INDICES, "size": _INDICES, "stride": _INDICES}, ("input", "fill"))


RULES: dict[str, Rule] = {
    "element_wise": _binary(_NUMBERS),
    "element_wise.kPOW": _binary(_FLOATS, frozenset({"i8", "i64"})),
    "element_wise.kAND": _binary(_BOOL),
    "element_wise.kOR": _binary(_BOOL),
    "element_wise.kXOR": _binary(_BOOL),
    "unary": _unary(_FLOATS),
    "unary.kABS": _unary(_NUMBERS),
    "unary.kNEG": _unary(_NUMBERS),
    "unary.kNOT": _unary(_BOOL),
    "activation": _unary(_FLOATS | {"i8"}),
    "select": Rule({"condition": _BOOL, "then_input": _NUMBERS}, ("then_input", "else_input")),
    "cast": _unary(_PLAIN),
    "shape": _unary(_ANY),
    "broadcast": Rule({"input": _PLAIN, "shape": _INDICES}),
    "reshape": Rule({"input": _MOVABLE, "shape": _INDICES}),
    "collapse_rank": _unary(_MOVABLE),
    "expand_rank": _unary(_MOVABLE),
    "transpose": _unary(_MOVABLE),
    "concatenation": Rule({"inputs": _ANY}, ("inputs",)),
    "gather": Rule({"data": _MOVABLE, "indices": _INDICES}),
    "slice": _slicing(_PLAIN - {"bf16", "i8"}),
    "slice.kDEFAULT": _slicing(_MOVABLE),
    "linspace": Rule({"shape": _INDICES, "start": _INDICES | {"f32"}}, ("start", "step")),
    "reduce": _unary(_FLOATS | _INDICES),
    "matrix_multiply": Rule({"input0": _FLOATS}, ("input0", "input1")),
    "softmax": _unary(_FLOATS),
    "top_k": _unary(_FLOATS | _INDICES),
    "normalization": _weighted("scale", "bias", _FLOATS),
    "convolution": _weighted("kernel", "bias", _FLOATS),
    "deconvolution": _weighted("kernel_weights", "bias_weights", frozenset({"f32", "f16"})),
    "pooling": _unary(_FLOATS | {"i8"}),
    "resize_nearest": _resizing(),
    "resize_linear": _resizing(),
    "resize_cubic": _resizing(),
    "quantize": Rule({"input": _FLOATS}, ("input", "scale")),
    "dequantize": Rule({"input": _QUANTIZED, "scale": _FLOATS}),
}

#: The element types that an operation with a declared result can have there.
_RESULTS: dict[str, frozenset[str]] = {
    "cast": _PLAIN,
    "linspace": _INDICES | {"f32"},
    "quantize": _QUANTIZED,
    "dequantize": _FLOATS,
}


def check_types(op: str, arguments: Mapping[str, Any]) -> None:
    """Refuse operands whose types TensorRT would refuse.

    Raises:
        RefusedError: An operand has a type that the operation does not take, or two that must agree do not.
    """
    rule = _rule_for(op, arguments)
    if rule is None:
        return
    for name, types in rule.accepts.items():
        for array in _arrays(arguments.get(name)):
            if name_of(array) not in types:
                raise RefusedError(f"'{name}' has element type {name_of(array)}, but takes {', '.join(sorted(types))}")
    found = [name_of(array) for name in rule.same for array in _arrays(arguments.get(name))]
    if len(set(found)) > 1:
        raise RefusedError(f"{', '.join(rule.same)} must have the same element type, but got {', '.join(found)}")
    if op in _RESULTS:
        _check_result(op, arguments)


def _rule_for(op: str, arguments: Mapping[str, Any]) -> Rule | None:
    variant = _VARIANTS.get(op)
    if variant is not None:
        rule = RULES.get(f"{op}.{arguments.get(variant, 'kDEFAULT')}")
        if rule is not None:
            return rule
    return RULES.get(op)


def _arrays(argument: Any) -> Sequence[Array]:
    if argument is None:
        return ()
    return argument if isinstance(argument, tuple) else (argument,)


def _check_result(op: str, arguments: Mapping[str, Any]) -> None:
    result = arguments["result"].dtype
    if result not in _RESULTS[op]:
        raise RefusedError(f"the result has element type {result}, but can have {', '.join(sorted(_RESULTS[op]))}")
    scale_or_step = arguments.get("scale") if op == "dequantize" else arguments.get("step")
    if scale_or_step is not None and name_of(scale_or_step) != result:
        raise RefusedError(f"the result has element type {result}, but its operand {name_of(scale_or_step)}")
    if op == "cast" and result == "i1" and name_of(arguments["input"]) == "i8":
        raise RefusedError("i8 cannot be cast to i1: dequantize it first")
