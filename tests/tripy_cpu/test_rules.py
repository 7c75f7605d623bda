"""Operands of the wrong types are refused by the kernels themselves, whatever nvtripy checked before."""

from __future__ import annotations

import numpy as np
import pytest

from tripy_cpu.dtypes import NUMPY_DTYPES
from tripy_cpu.errors import RefusedError
from tripy_cpu.kernels import KERNELS
from tripy_cpu.program import TensorType
from tripy_cpu.rules import RULES, check_types


def array(dtype: str, *shape: int) -> np.ndarray:
    return np.ones(shape, NUMPY_DTYPES[dtype])


def test_every_kernel_but_the_constant_has_a_rule() -> None:
    assert {name.partition(".")[0] for name in RULES} == set(KERNELS) - {"constant"}


def test_every_rule_speaks_of_parameters_that_the_kernel_has() -> None:
    for name, rule in RULES.items():
        parameters = KERNELS[name.partition(".")[0]].signature.parameters
        assert set(rule.accepts) <= set(parameters), name
        assert set(rule.same) <= set(parameters), name


@pytest.mark.parametrize(
    ("op", "arguments"),
    [
        ("unary", {"input": array("i32", 2), "unary_operation": "kSQRT"}),
        ("unary", {"input": array("f32", 2), "unary_operation": "kNOT"}),
        ("element_wise", {"input1": array("i1", 2), "input2": array("i1", 2), "elementwise_operation": "kSUM"}),
        ("element_wise", {"input1": array("i32", 2), "input2": array("i32", 2), "elementwise_operation": "kPOW"}),
        ("element_wise", {"input1": array("f32", 2), "input2": array("f32", 2), "elementwise_operation": "kOR"}),
        ("matrix_multiply", {"input0": array("i8", 2, 2), "input1": array("i8", 2, 2), "op0": "kNONE", "op1": "kNONE"}),
        ("softmax", {"input": array("i32", 2, 2), "axis": 0}),
        ("reduce", {"input": array("i1", 2), "reduce_axes": (0,), "reduce_operation": "kSUM"}),
        ("slice", {"input": array("bf16", 2), "mode": "kFILL"}),
        ("select", {"condition": array("i32", 2), "then_input": array("f32", 2), "else_input": array("f32", 2)}),
        ("cast", {"result": TensorType((2,), "i1"), "input": array("i8", 2)}),
        ("cast", {"result": TensorType((2,), "i4"), "input": array("f32", 2)}),
        ("quantize", {"result": TensorType((2,), "f32"), "input": array("f32", 2), "scale": array("f32")}),
        ("dequantize", {"result": TensorType((2,), "f16"), "input": array("i8", 2), "scale": array("f32")}),
        ("gather", {"data": array("f32", 2), "indices": array("f32", 2), "axis": 0}),
    ],
)
def test_types_that_tensorrt_refuses_are_refused(op: str, arguments: dict) -> None:
    with pytest.raises(RefusedError, match=r"element type|cannot be cast"):
        check_types(op, arguments)


@pytest.mark.parametrize(
    ("op", "arguments"),
    [
        ("element_wise", {"input1": array("f32", 2), "input2": array("f16", 2), "elementwise_operation": "kSUM"}),
        ("concatenation", {"inputs": (array("i32", 2), array("i64", 2)), "axis": 0}),
        ("convolution", {"input": array("f32", 1, 1, 2), "kernel": array("f32", 1, 1, 1), "bias": array("f16", 1)}),
        ("normalization", {"input": array("f16", 2, 2), "scale": array("f32", 1, 2), "bias": array("f32", 1, 2)}),
        ("quantize", {"result": TensorType((2,), "i8"), "input": array("f16", 2), "scale": array("f32")}),
    ],
)
def test_operands_that_must_agree_are_compared(op: str, arguments: dict) -> None:
    with pytest.raises(RefusedError, match="must have the same element type"):
        check_types(op, arguments)


def test_an_absent_optional_operand_is_not_compared() -> None:
    check_types("convolution", {"input": array("f16", 1, 1, 2), "kernel": array("f16", 1, 1, 1), "bias": None})
