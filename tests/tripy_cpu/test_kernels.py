"""Kernels against references that are written another way: loops or plain NumPy in float64."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tripy_cpu.dtypes import NUMPY_DTYPES
from tripy_cpu.errors import RefusedError
from tripy_cpu.kernels import KERNELS
from tripy_cpu.kernels.table import half_of
from tripy_cpu.program import DYNAMIC, TensorType

RNG = np.random.default_rng(7)
FLOATS = ("f32", "f16", "bf16")
INTEGERS = ("i8", "i32", "i64")
TOLERANCE = {"f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}


def run(op: str, *args: Any, **kwargs: Any) -> Any:
    arguments = KERNELS[op].signature.bind(*args, **kwargs).arguments
    with np.errstate(all="ignore"):
        kernel = KERNELS[op]
        results = kernel.run(arguments, half_of(arguments) if kernel.wide else None)
    return results if len(results) > 1 else results[0]


def random(dtype: str, *shape: int, low: float = -3, high: float = 3) -> np.ndarray:
    return RNG.uniform(low, high, shape).astype(NUMPY_DTYPES[dtype])


def assert_close(actual: np.ndarray, expected: np.ndarray, dtype: str, slack: float = 1) -> None:
    assert actual.dtype == NUMPY_DTYPES[dtype]
    assert actual.shape == np.shape(expected)
    tolerance = TOLERANCE[dtype] * slack
    np.testing.assert_allclose(actual.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


def any_shape(dtype: str, rank: int = 1) -> TensorType:
    return TensorType((DYNAMIC,) * rank, dtype)


# --- element by element -----------------------------------------------------------------------------------------------

SCALAR_UNARY: dict[str, Callable[[float], float]] = {
    "kEXP": math.exp,
    "kLOG": math.log,
    "kSQRT": math.sqrt,
    "kRECIP": lambda x: 1 / x,
    "kABS": abs,
    "kNEG": lambda x: -x,
    "kSIN": math.sin,
    "kCOS": math.cos,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("operation", SCALAR_UNARY)
def test_unary_operations_equal_the_scalar_function(operation: str, dtype: str) -> None:
    x = random(dtype, 4, 5, low=0.25)
    expected = np.vectorize(SCALAR_UNARY[operation])(x.astype(np.float64))
    assert_close(run("unary", x, operation), expected, dtype)


def test_logical_not() -> None:
    assert run("unary", np.array([True, False]), "kNOT").tolist() == [False, True]


SCALAR_ACTIVATIONS: dict[str, Callable[[float], float]] = {
    "kTANH": math.tanh,
    "kRELU": lambda x: x if x > 0 else 0.0,
    "kSIGMOID": lambda x: 1 / (1 + math.exp(-x)),
    "kGELU_ERF": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("operation", SCALAR_ACTIVATIONS)
def test_activations_equal_the_scalar_function(operation: str, dtype: str) -> None:
    x = random(dtype, 4, 5)
    expected = np.vectorize(SCALAR_ACTIVATIONS[operation])(x.astype(np.float64))
    assert_close(run("activation", x, operation), expected, dtype)


def test_gelu_is_exact_to_single_precision_everywhere_and_for_any_size() -> None:
    x = np.linspace(-8, 8, 200_001).astype(np.float32)
    expected = [value * (1 + math.erf(value / math.sqrt(2))) / 2 for value in x.tolist()]
    np.testing.assert_allclose(run("activation", x, "kGELU_ERF"), expected, rtol=1e-6, atol=1e-6)
    odd = np.array([np.nan, np.inf, -100.0, 100.0], np.float32)
    np.testing.assert_allclose(run("activation", odd, "kGELU_ERF"), [np.nan, np.inf, 0, 100], rtol=1e-6, atol=1e-6)
    assert run("activation", np.zeros((0, 3), np.float32), "kGELU_ERF").shape == (0, 3)
    assert run("activation", np.float32(0).reshape(()), "kGELU_ERF").shape == ()


def test_sigmoid_of_extreme_values_is_finite() -> None:
    assert run("activation", np.array([-1e4, 1e4], np.float32), "kSIGMOID").tolist() == [0.0, 1.0]


SCALAR_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "kSUM": lambda x, y: x + y,
    "kSUB": lambda x, y: x - y,
    "kPROD": lambda x, y: x * y,
    "kMAX": max,
    "kMIN": min,
    "kFLOOR_DIV": lambda x, y: math.floor(x / y),
}


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("operation", SCALAR_BINARY)
def test_binary_operations_equal_the_scalar_function_with_broadcasting(operation: str, dtype: str) -> None:
    x = random(dtype, 3, 1, 4, low=-9, high=9)
    y = random(dtype, 1, 2, 4, low=1, high=4)
    actual = run("element_wise", x, y, operation)
    expected = np.empty((3, 2, 4))
    for i, j, k in np.ndindex(3, 2, 4):
        expected[i, j, k] = SCALAR_BINARY[operation](float(x[i, 0, k]), float(y[0, j, k]))
    if dtype in INTEGERS:
        assert actual.dtype == NUMPY_DTYPES[dtype]
        np.testing.assert_array_equal(actual, expected)
    else:
        assert_close(actual, expected, dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division_truncates_and_floor_division_floors(dtype: str) -> None:
    x = np.array([7, -7, 7, -7], NUMPY_DTYPES[dtype])
    y = np.array([2, 2, -2, -2], NUMPY_DTYPES[dtype])
    assert run("element_wise", x, y, "kDIV").tolist() == [3, -3, -3, 3]
    assert run("element_wise", x, y, "kFLOOR_DIV").tolist() == [3, -4, -4, 3]


def test_division_of_large_int64_is_exact() -> None:
    x = np.array([2**62 + 1], np.int64)
    assert run("element_wise", x, np.array([3], np.int64), "kDIV").tolist() == [(2**62 + 1) // 3]


@pytest.mark.parametrize("dtype", ["i8", "i64"])
def test_integer_powers_with_negative_exponents_truncate(dtype: str) -> None:
    x = np.array([2, 2, -1, -1, 1], NUMPY_DTYPES[dtype])
    y = np.array([5, -1, -3, -2, -7], NUMPY_DTYPES[dtype])
    assert run("element_wise", x, y, "kPOW").tolist() == [32, 0, -1, 1, 1]


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_powers(dtype: str) -> None:
    x, y = random(dtype, 6, low=0.5), random(dtype, 6)
    assert_close(run("element_wise", x, y, "kPOW"), x.astype(float) ** y.astype(float), dtype, slack=2)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_comparisons_return_bool(dtype: str) -> None:
    x, y = np.array([1, 2, 3], NUMPY_DTYPES[dtype]), np.array([2, 2, 2], NUMPY_DTYPES[dtype])
    for operation, expected in (("kLESS", [1, 0, 0]), ("kEQUAL", [0, 1, 0]), ("kGREATER", [0, 0, 1])):
        actual = run("element_wise", x, y, operation)
        assert actual.dtype == np.bool_
        assert actual.tolist() == expected


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_half_types_are_rounded_once(dtype: str) -> None:
    kind = NUMPY_DTYPES[dtype]
    ones = np.full((1, 4096), 1, kind)
    tail = run("reduce", np.concatenate([ones, np.full((1, 4096), 2**-11, kind)], 1), (1,), "kSUM")
    assert tail.tolist() == [np.float32(4096 + 2).astype(kind)]


def test_broadcasting_refuses_sizes_that_differ() -> None:
    with pytest.raises(RefusedError, match="broadcast dimensions must be conformable"):
        run("element_wise", np.ones((2, 3)), np.ones((4, 3)), "kSUM")


def test_broadcasting_refuses_ranks_that_differ() -> None:
    with pytest.raises(RefusedError, match="broadcast dimensions must be conformable"):
        run("element_wise", np.ones((2, 3)), np.ones(3), "kSUM")


def test_select_broadcasts_all_three() -> None:
    condition = np.array([[True], [False]])
    actual = run("select", condition, np.array([[1, 2, 3]]), np.array([[9]]))
    assert actual.tolist() == [[1, 2, 3], [9, 9, 9]]


# --- conversions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize(
    ("target", "low", "high"), [("i8", -128, 127), ("i32", -(2**31), 2**31 - 1), ("i64", -(2**63), 2**63 - 1)]
)
def test_casts_to_integers_truncate_and_saturate(source: str, target: str, low: int, high: int) -> None:
    values = [2.75, -2.75, 0.5, float("inf"), float("-inf"), float("nan")]
    actual = run("cast", any_shape(target), np.array(values, NUMPY_DTYPES[source]))
    assert actual.dtype == NUMPY_DTYPES[target]
    assert actual.tolist() == [2, -2, 0, high, low, 0]


def test_casts_between_integers_are_exact() -> None:
    large = np.array([2**31 - 1, -(2**31)], np.int32)
    assert run("cast", any_shape("i64"), large).tolist() == large.tolist()


@pytest.mark.parametrize("source", [*FLOATS, "i32", "i64"])
def test_casts_to_bool_test_for_zero(source: str) -> None:
    values = np.array([0, 1, -2], NUMPY_DTYPES[source])
    assert run("cast", any_shape("i1"), values).tolist() == [False, True, True]


@pytest.mark.parametrize("target", FLOATS)
def test_casts_between_floating_types_round_to_nearest_even(target: str) -> None:
    kind = NUMPY_DTYPES[target]
    halfway = np.float32(1) + np.float32(ml_dtypes.finfo(kind).eps) / np.float32(2)
    actual = run("cast", any_shape(target), np.array([halfway], np.float32))
    assert actual.astype(np.float32).tolist() == [1.0 if target != "f32" else float(halfway)]


@pytest.mark.parametrize(("dtype", "low", "high"), [("i8", -128, 127), ("i4", -8, 7)])
def test_quantize_rounds_half_to_even_and_saturates(dtype: str, low: int, high: int) -> None:
    x = np.array([0.25, 0.75, 1.25, -0.25, -0.75, 1e9, -1e9], np.float32)
    actual = run("quantize", any_shape(dtype), x, np.array(0.5, np.float32))
    assert actual.dtype == NUMPY_DTYPES[dtype]
    assert actual.astype(int).tolist() == [0, 2, 2, 0, -2, high, low]


def test_quantize_to_float8_saturates_at_448() -> None:
    x = np.array([1000.0, -1000.0, 448.0, 1.0625], np.float32)
    actual = run("quantize", any_shape("f8e4m3fn"), x, np.array(1, np.float32))
    assert actual.astype(np.float32).tolist() == [448.0, -448.0, 448.0, 1.0]


@pytest.mark.parametrize("dtype", FLOATS)
def test_quantize_and_dequantize_by_channel(dtype: str) -> None:
    scale = np.array([0.5, 2, 4], NUMPY_DTYPES[dtype])
    x = np.array([[1, 4, 8], [3, -6, 12]], NUMPY_DTYPES[dtype])
    quantized = run("quantize", any_shape("i8", 2), x, scale, 1)
    assert quantized.tolist() == [[2, 2, 2], [6, -3, 3]]
    restored = run("dequantize", any_shape(dtype, 2), quantized, scale, 1)
    assert restored.dtype == NUMPY_DTYPES[dtype]
    assert restored.tolist() == x.tolist()


def test_quantize_and_dequantize_by_block() -> None:
    scale = np.array([[1, 2], [4, 0.5]], np.float32)
    x = np.array([[1, 2], [3, 4], [8, 1], [12, 2]], np.float32)
    quantized = run("quantize", any_shape("i4", 2), x, scale)
    expected = [[round(x[i, j] / scale[i // 2, j]) for j in range(2)] for i in range(4)]
    assert quantized.astype(int).tolist() == expected
    assert run("dequantize", any_shape("f32", 2), quantized, scale).tolist() == x.tolist()


def test_quantization_refuses_scales_that_do_not_fit() -> None:
    x = np.ones((3, 2), np.float32)
    with pytest.raises(RefusedError, match="does not fit dimension"):
        run("quantize", any_shape("i8", 2), x, np.ones(3, np.float32), 1)
    with pytest.raises(RefusedError, match="do not divide"):
        run("quantize", any_shape("i4", 2), x, np.ones((2, 2), np.float32))
    with pytest.raises(RefusedError, match="must all be positive"):
        run("quantize", any_shape("i8", 2), x, np.array(0, np.float32))


# --- shapes and data movement -----------------------------------------------------------------------------------------


def sizes(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def test_broadcast_repeats_and_keeps_minus_one() -> None:
    x = np.arange(2).reshape(2, 1)
    actual = run("broadcast", any_shape("i64", 3), x, sizes(3, -1, 4), (1, 2))
    assert actual.shape == (3, 2, 4)
    assert all(actual[i, j, k] == j for i, j, k in np.ndindex(3, 2, 4))


def test_broadcast_refuses_to_change_other_sizes() -> None:
    with pytest.raises(RefusedError, match="broadcast dimensions must be conformable"):
        run("broadcast", any_shape("i64", 1), np.arange(2), sizes(3), (0,))


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        ((2, 6), (3, 4), (3, 4)),
        ((2, 6), (-1, 3), (4, 3)),
        ((), (1, 1), (1, 1)),
        ((0, 3), (-1, 3), (0, 3)),
        ((0, 3), (0, -1), (0, 0)),
        ((1,), (), ()),
    ],
)
def test_reshape(shape: tuple[int, ...], target: tuple[int, ...], expected: tuple[int, ...]) -> None:
    x = np.arange(math.prod(shape)).reshape(shape)
    actual = run("reshape", any_shape("i64", len(target)), x, sizes(*target))
    assert actual.shape == expected
    assert actual.ravel().tolist() == x.ravel().tolist()


@pytest.mark.parametrize("target", [(5,), (-1, 4), (-1, -1)])
def test_reshape_refuses_another_volume(target: tuple[int, ...]) -> None:
    with pytest.raises(RefusedError, match="reshape"):
        run("reshape", any_shape("i64", len(target)), np.arange(6), sizes(*target))


def test_collapse_and_expand_rank() -> None:
    x = np.arange(3).reshape(1, 3, 1)
    assert run("collapse_rank", any_shape("i64", 1), x).shape == (3,)
    assert run("expand_rank", any_shape("i64", 5), x).shape == (1, 1, 1, 3, 1)
    with pytest.raises(RefusedError, match="cannot collapse"):
        run("collapse_rank", any_shape("i64", 0), x)


def test_transpose_and_shape() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    actual = run("transpose", x, (2, 0, 1))
    assert all(actual[k, i, j] == x[i, j, k] for i, j, k in np.ndindex(2, 3, 4))
    assert run("shape", x).tolist() == [2, 3, 4]
    assert run("shape", x).dtype == np.int32


def test_concatenation_refuses_other_sizes() -> None:
    assert run("concatenation", (np.ones((2, 1)), np.zeros((2, 2))), 1).tolist() == [[1, 0, 0]] * 2
    message = (
        r"all concat input tensors must have the same dimensions except on the concatenation axis \(1\), "
        r"but dimensions mismatched at index 0. Input 0 shape: \[2, 1\], Input 1 shape: \[3, 2\]"
    )
    with pytest.raises(RefusedError, match=message):
        run("concatenation", (np.ones((2, 1)), np.zeros((3, 2))), 1)


def test_gather_replaces_the_axis_by_the_dimensions_of_the_indices() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    indices = np.array([[0, 2], [1, 1]])
    actual = run("gather", x, indices, 1)
    assert actual.shape == (2, 2, 2, 4)
    assert all(actual[i, a, b, k] == x[i, indices[a, b], k] for i, a, b, k in np.ndindex(2, 2, 2, 4))


@pytest.mark.parametrize("index", [-1, 3])
def test_gather_refuses_indices_out_of_bounds(index: int) -> None:
    with pytest.raises(RefusedError, match="gather index out of bounds"):
        run("gather", np.arange(3), np.array([index]), 0)


def reference_slice(x: np.ndarray, start: list[int], size: list[int], stride: list[int], mode: str, fill: Any) -> Any:
    result = np.empty(size, x.dtype)
    for position in np.ndindex(*size):
        source = [start[d] + stride[d] * position[d] for d in range(x.ndim)]
        for d, extent in enumerate(x.shape):
            if mode == "kREFLECT":
                while not 0 <= source[d] < extent:
                    source[d] = -source[d] if source[d] < 0 else 2 * (extent - 1) - source[d]
            elif mode == "kWRAP":
                source[d] %= extent
            elif mode == "kCLAMP":
                source[d] = min(max(source[d], 0), extent - 1)
        inside = all(0 <= index < extent for index, extent in zip(source, x.shape, strict=True))
        result[position] = x[tuple(source)] if inside else fill
    return result


@pytest.mark.parametrize("mode", ["kFILL", "kREFLECT", "kCLAMP", "kWRAP"])
@pytest.mark.parametrize(
    ("start", "size", "stride"),
    [([-2, -1], [8, 6], [1, 1]), ([3, 0], [3, 3], [-2, 2]), ([1, 1], [2, 2], [1, 1]), ([0, 0], [0, 2], [1, 1])],
)
def test_slices_beyond_the_input(mode: str, start: list[int], size: list[int], stride: list[int]) -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    fill = np.array(-7, np.float32)
    actual = run("slice", x, sizes(*start), sizes(*size), sizes(*stride), fill if mode == "kFILL" else None, mode=mode)
    assert actual.dtype == np.float32
    np.testing.assert_array_equal(actual, reference_slice(x, start, size, stride, mode, fill))


def test_slices_by_default_may_go_backwards_but_not_beyond() -> None:
    x = np.arange(5)
    assert run("slice", x, sizes(4), sizes(3), sizes(-2)).tolist() == [4, 2, 0]
    assert run("slice", x, static_start=[1], static_size=[2], static_stride=[2]).tolist() == [1, 3]
    for start, size in ((-1, 2), (3, 3)):
        with pytest.raises(RefusedError, match="out of bounds access"):
            run("slice", x, sizes(start), sizes(size), sizes(1))


def test_filling_an_empty_input() -> None:
    actual = run("slice", np.zeros((0, 2), np.int32), sizes(-1, 0), sizes(2, 2), sizes(1, 1), mode="kFILL")
    assert actual.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("dtype", ["f32", "i32", "i64"])
def test_linspace_rises_along_every_dimension(dtype: str) -> None:
    kind = NUMPY_DTYPES[dtype]
    actual = run("linspace", any_shape(dtype, 2), sizes(2, 3), np.array(5, kind), np.array([10, 2], kind))
    assert actual.dtype == kind
    assert actual.tolist() == [[5, 7, 9], [15, 17, 19]]


# --- combinations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*FLOATS, "i32", "i64"])
@pytest.mark.parametrize("operation", ["kSUM", "kPROD", "kMAX", "kMIN", "kAVG"])
def test_reductions_equal_a_loop(operation: str, dtype: str) -> None:
    x = random(dtype, 2, 3, 4)
    values = x.astype(np.float64)
    expected = np.empty((1, 3, 1))
    for j in range(3):
        elements = [float(values[i, j, k]) for i in range(2) for k in range(4)]
        mean = sum(elements) / 8
        expected[0, j, 0] = {
            "kSUM": sum(elements),
            "kPROD": math.prod(elements),
            "kMAX": max(elements),
            "kMIN": min(elements),
            "kAVG": mean if dtype in FLOATS else math.trunc(mean),
        }[operation]
    for keep, shape in ((True, (1, 3, 1)), (False, (3,))):
        actual = run("reduce", x, (0, 2), operation, keep_dimensions=keep)
        if dtype in FLOATS:
            assert_close(actual, expected.reshape(shape), dtype, slack=4)
        else:
            assert actual.dtype == NUMPY_DTYPES[dtype]
            assert actual.tolist() == expected.reshape(shape).tolist()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("left", "right", "ops"),
    [
        ((2, 3), (3, 4), ("kNONE", "kNONE")),
        ((3, 2), (3, 4), ("kTRANSPOSE", "kNONE")),
        ((5, 2, 3), (1, 3, 4), ("kNONE", "kNONE")),
        ((3,), (3,), ("kVECTOR", "kVECTOR")),
        ((3,), (3, 4), ("kVECTOR", "kNONE")),
        ((2, 3), (3,), ("kNONE", "kVECTOR")),
    ],
)
def test_matrix_products(dtype: str, left: tuple[int, ...], right: tuple[int, ...], ops: tuple[str, str]) -> None:
    a, b = random(dtype, *left), random(dtype, *right)
    wide_a = a.astype(np.float64).swapaxes(-1, -2) if ops[0] == "kTRANSPOSE" else a.astype(np.float64)
    assert_close(run("matrix_multiply", a, b, *ops), wide_a @ b.astype(np.float64), dtype, slack=3)


def test_matrix_products_refuse_sizes_that_differ() -> None:
    with pytest.raises(
        RefusedError, match="last dimension of input0 = 2 and last dimension of input1 = 3 but must match"
    ):
        run("matrix_multiply", np.ones(2), np.ones(3), "kVECTOR", "kVECTOR")
    with pytest.raises(RefusedError, match="last dimension of input0 = 2 and second to last dimension of input1 = 3"):
        run("matrix_multiply", np.ones((2, 2)), np.ones((3, 2)), "kNONE", "kNONE")
    with pytest.raises(RefusedError, match="conformable"):
        run("matrix_multiply", np.ones((2, 2, 2)), np.ones((3, 2, 2)), "kNONE", "kNONE")


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_equals_a_loop_and_does_not_overflow(dtype: str) -> None:
    x = random(dtype, 3, 4) + NUMPY_DTYPES[dtype].type(300)
    values = x.astype(np.float64)
    expected = np.empty((3, 4))
    for i, j in np.ndindex(3, 4):
        expected[i, j] = 1 / sum(math.exp(values[i, k] - values[i, j]) for k in range(4))
    assert_close(run("softmax", x, 1), expected, dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, "i32", "i64"])
@pytest.mark.parametrize(("operation", "reverse"), [("kMAX", True), ("kMIN", False)])
def test_top_k_is_ordered_and_stable(operation: str, reverse: bool, dtype: str) -> None:
    x = np.array([[3, 1, 3, 2], [0, 0, -1, 0]], NUMPY_DTYPES[dtype])
    values, indices = run("top_k", x, 3, 1, operation)
    for row in range(2):
        order = sorted(range(4), key=lambda i: (-float(x[row, i]) if reverse else float(x[row, i]), i))[:3]
        assert indices[row].tolist() == order
        assert values[row].tolist() == [x[row, i] for i in order]
    assert indices.dtype == np.int32
    assert values.dtype == x.dtype


def test_top_k_refuses_more_than_there_are() -> None:
    with pytest.raises(RefusedError, match="top-k takes 1 to 2"):
        run("top_k", np.ones((2, 2), np.float32), 3, 0, "kMAX")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("shape", "axis", "groups", "factor"),
    [((4, 6), (1,), 1, (1, 6)), ((2, 3, 5), (1, 2), 1, (1, 3, 5)), ((2, 6, 4), (2,), 6, (1, 6, 1)),
     ((2, 6, 4), (2,), 3, (1, 6, 1))],
)  # fmt: skip
def test_normalization_equals_a_loop(
    dtype: str, shape: tuple[int, ...], axis: tuple[int, ...], groups: int, factor: tuple[int, ...]
) -> None:
    x, scale, bias = random(dtype, *shape), random(dtype, *factor), random(dtype, *factor)
    values = x.astype(np.float64)
    expected = np.empty(shape)

    def group(position: tuple[int, ...]) -> tuple[Any, ...]:
        """What one element is normalized with: equal for all elements of its set."""
        kept = [position[d] for d in range(len(shape)) if d not in axis and not (d == 1 and groups > 1)]
        return (*kept, position[1] // (shape[1] // groups) if groups > 1 else None)

    sets: dict[tuple[Any, ...], list[float]] = {}
    for position in np.ndindex(*shape):
        sets.setdefault(group(position), []).append(float(values[position]))
    for position in np.ndindex(*shape):
        members = sets[group(position)]
        mean = sum(members) / len(members)
        variance = sum((member - mean) ** 2 for member in members) / len(members)
        expected[position] = (values[position] - mean) / math.sqrt(variance + 1e-5)
    expected = expected * scale.astype(np.float64) + bias.astype(np.float64)
    assert_close(run("normalization", x, scale, bias, axis=axis, eps=1e-5, num_groups=groups), expected, dtype, slack=8)


def test_normalization_refuses_a_scale_that_does_not_fit() -> None:
    x, ones = np.ones((2, 3), np.float32), np.ones((1, 3), np.float32)
    with pytest.raises(
        RefusedError, match="The normalization scale is not broadcast-compatible with the input at dimension 1"
    ):
        run("normalization", x, np.ones((1, 2), np.float32), ones, axis=(1,), eps=1e-5)


# --- images -----------------------------------------------------------------------------------------------------------

GEOMETRIES = [
    # spatial sizes, kernel sizes, stride, pre-padding, post-padding, dilation, groups
    ((7,), (3,), (2,), (1,), (0,), (1,), 1),
    ((6, 5), (2, 3), (1, 2), (1, 0), (2, 1), (2, 1), 2),
    ((4, 3, 5), (2, 2, 3), (2, 1, 1), (0, 1, 1), (1, 0, 1), (1, 1, 2), 1),
]


def reference_convolution(
    x: np.ndarray, w: np.ndarray, b: np.ndarray, stride: Any, pre: Any, post: Any, dilation: Any, groups: int
) -> np.ndarray:
    """Sum over every output position, output channel, input channel and kernel element."""
    space, kernel = x.shape[2:], w.shape[2:]
    out = [
        (space[d] + pre[d] + post[d] - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1 for d in range(len(space))
    ]
    per_in, per_out = x.shape[1] // groups, w.shape[0] // groups
    result = np.empty((x.shape[0], w.shape[0], *out))
    for n, o in np.ndindex(x.shape[0], w.shape[0]):
        for position in np.ndindex(*out):
            total = float(b[o])
            for c in range(per_in):
                for offset in np.ndindex(*kernel):
                    at = [position[d] * stride[d] + offset[d] * dilation[d] - pre[d] for d in range(len(space))]
                    if all(0 <= at[d] < space[d] for d in range(len(space))):
                        total += float(x[(n, (o // per_out) * per_in + c, *at)]) * float(w[(o, c, *offset)])
            result[(n, o, *position)] = total
    return result


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("space", "kernel", "stride", "pre", "post", "dilation", "groups"), GEOMETRIES)
def test_convolution_equals_a_loop(
    dtype: str, space: Any, kernel: Any, stride: Any, pre: Any, post: Any, dilation: Any, groups: int
) -> None:
    x, w, b = random(dtype, 2, 4, *space), random(dtype, 6, 4 // groups, *kernel), random(dtype, 6)
    actual = run(
        "convolution", x, stride, pre_padding=pre, post_padding=post, kernel=w, bias=b, num_groups=groups,
        dilation=dilation,
    )  # fmt: skip
    expected = reference_convolution(*(a.astype(np.float64) for a in (x, w, b)), stride, pre, post, dilation, groups)
    assert_close(actual, expected, dtype, slack=8)


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize(("space", "kernel", "stride", "pre", "post", "dilation", "groups"), GEOMETRIES)
def test_deconvolution_is_the_transpose_of_convolution(
    dtype: str, space: Any, kernel: Any, stride: Any, pre: Any, post: Any, dilation: Any, groups: int
) -> None:
    x, w, b = random(dtype, 2, 4, *space), random(dtype, 4, 6 // groups, *kernel), random(dtype, 6)
    actual = run(
        "deconvolution", x, stride, pre_padding=pre, post_padding=post, kernel_weights=w, bias_weights=b,
        num_groups=groups, dilation=dilation,
    )  # fmt: skip
    out = [(space[d] - 1) * stride[d] + dilation[d] * (kernel[d] - 1) + 1 - pre[d] - post[d] for d in range(len(space))]
    assert actual.shape == (2, 6, *out)
    # <deconvolution(x), y> = <x, convolution(y)> for every y, without the bias.
    y = RNG.uniform(-1, 1, actual.shape)
    linear = actual.astype(np.float64) - b.astype(np.float64).reshape(1, -1, *[1] * len(space))
    other = reference_convolution(y, w.astype(np.float64), np.zeros(4), stride, pre, post, dilation, groups)
    other = other[(slice(None), slice(None), *(slice(size) for size in space))]
    assert np.sum(linear * y) == pytest.approx(np.sum(x.astype(np.float64) * other), rel=1e-2, abs=1e-2)


def test_convolution_refuses_what_does_not_fit() -> None:
    x = np.ones((1, 3, 4), np.float32)
    with pytest.raises(RefusedError, match="3 channels, which does not fit"):
        run("convolution", x, (1,), (0,), (0,), np.ones((2, 2, 2), np.float32))
    with pytest.raises(RefusedError, match="does not fit the padded input"):
        run("convolution", x, (1,), (0,), (0,), np.ones((2, 3, 5), np.float32))
    with pytest.raises(RefusedError, match="the bias has shape"):
        run("convolution", x, (1,), (0,), (0,), np.ones((2, 3, 2), np.float32), np.ones(3, np.float32))


POOLINGS = [
    ((7,), (3,), (2,), (1,), (0,)),
    ((6, 5), (2, 3), (1, 2), (1, 0), (0, 2)),
    ((4, 3, 5), (2, 2, 3), (2, 1, 1), (0, 1, 1), (1, 0, 1)),
]


@pytest.mark.parametrize("kind", ["max", "mean", "mean of present"])
@pytest.mark.parametrize(
    ("dtype", "space", "window", "stride", "pre", "post"),
    [(dtype, *case) for dtype in FLOATS for case in POOLINGS] + [("i8", *POOLINGS[1])],
)
def test_pooling_equals_a_loop(
    dtype: str, kind: str, space: Any, window: Any, stride: Any, pre: Any, post: Any
) -> None:
    x = random(dtype, 2, 3, *space, low=-9, high=9)
    out = [(space[d] + pre[d] + post[d] - window[d]) // stride[d] + 1 for d in range(len(space))]
    expected = np.empty((2, 3, *out))
    for n, c in np.ndindex(2, 3):
        for position in np.ndindex(*out):
            ranges = [
                range(max(p * s - a, 0), min(p * s - a + k, e))
                for p, s, a, k, e in zip(position, stride, pre, window, space, strict=True)
            ]
            covered = [float(x[(n, c, *at)]) for at in itertools.product(*ranges)]
            expected[(n, c, *position)] = {
                "max": lambda covered=covered: max(covered),
                "mean": lambda covered=covered: sum(covered) / math.prod(window),
                "mean of present": lambda covered=covered: sum(covered) / len(covered),
            }[kind]()
    actual = run(
        "pooling", x, window, stride, pre, post, "kMAX" if kind == "max" else "kAVERAGE",
        average_count_excludes_padding=None if kind == "max" else kind == "mean of present",
    )  # fmt: skip
    if dtype == "i8":
        assert actual.dtype == np.int8
        np.testing.assert_allclose(actual, expected, atol=0.5)
    else:
        assert_close(actual, expected, dtype, slack=2)


def test_pooling_refuses_windows_that_could_lie_in_the_padding() -> None:
    with pytest.raises(RefusedError, match="padding must be less than the window"):
        run("pooling", np.ones((1, 1, 4), np.float32), (2,), (1,), (2,), (0,), "kMAX")


def reference_resize(x: np.ndarray, out: tuple[int, ...], scales: tuple[float, ...], mode: str, transform: str) -> Any:
    """Weigh every input element by the product of one-dimensional kernels around the output's center."""

    def weight(distance: float) -> float:
        distance = abs(distance)
        if mode == "linear":
            return max(0.0, 1 - distance)
        a = -0.75
        if distance <= 1:
            return (a + 2) * distance**3 - (a + 3) * distance**2 + 1
        return a * (distance**3 - 5 * distance**2 + 8 * distance - 4) if distance < 2 else 0.0

    def axis_weights(i: int, d: int) -> dict[int, float]:
        before, after = x.shape[d], out[d]
        center = {
            "kASYMMETRIC": i / scales[d],
            "kHALF_PIXEL": (i + 0.5) / scales[d] - 0.5,
            "kALIGN_CORNERS": i * (before - 1) / max(after - 1, 1),
        }[transform]
        if mode == "nearest":
            return {min(math.floor(center), before - 1): 1.0}
        found: dict[int, float] = {}
        for element in range(math.floor(center) - 3, math.floor(center) + 5):
            clamped = min(max(element, 0), before - 1)
            found[clamped] = found.get(clamped, 0.0) + weight(center - element)
        return found

    result = np.zeros(out)
    for position in np.ndindex(*out):
        per_axis = [axis_weights(i, d).items() for d, i in enumerate(position)]
        for chosen in itertools.product(*per_axis):
            result[position] += math.prod(w for _, w in chosen) * float(x[tuple(i for i, _ in chosen)])
    return result


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("scale", [2.0, 0.6, 1.7])
@pytest.mark.parametrize(
    ("op", "mode", "transform"),
    [
        ("resize_nearest", "nearest", "kASYMMETRIC"),
        ("resize_linear", "linear", "kHALF_PIXEL"),
        ("resize_linear", "linear", "kALIGN_CORNERS"),
        ("resize_cubic", "cubic", "kHALF_PIXEL"),
        ("resize_cubic", "cubic", "kALIGN_CORNERS"),
    ],
)
def test_resize_equals_a_loop(op: str, mode: str, transform: str, scale: float, dtype: str) -> None:
    x = random(dtype, 1, 2, 4, 5)
    scales = (1.0, 1.0, scale, scale)
    out = tuple(math.floor(size * factor) for size, factor in zip(x.shape, scales, strict=True))
    middle = {"resize_nearest": ("kFLOOR", "kFORMULA"), "resize_linear": ("kFORMULA",)}.get(op, ("kFORMULA", -0.75))
    actual = run(op, any_shape(dtype, 4), x, transform, *middle, scales=scales)
    assert_close(actual, reference_resize(x, out, scales, mode, transform), dtype, slack=4)
    target = np.array((1, 2, 8, 3), np.int32)
    by_shape = run(op, any_shape(dtype, 4), x, transform, *middle, output_shape=target)
    ratios = (1.0, 1.0, 2.0, 0.6)
    assert_close(by_shape, reference_resize(x, (1, 2, 8, 3), ratios, mode, transform), dtype, slack=4)


@pytest.mark.parametrize(("rounding", "expected"), [("kFLOOR", 0), ("kCEIL", 1), ("kHALF_UP", 1), ("kHALF_DOWN", 0)])
def test_nearest_rounds_as_told(rounding: str, expected: int) -> None:
    x = np.array([[[0, 1]]], np.float32)
    actual = run("resize_nearest", any_shape("f32", 3), x, "kASYMMETRIC", rounding, "kFORMULA", scales=(1, 1, 2))
    assert actual[0, 0].tolist() == [0, expected, 1, 1]


@pytest.mark.parametrize(("op", "middle", "axis"), [("linear", ("kFORMULA",), 0), ("cubic", ("kFORMULA", -0.75), 1)])
def test_interpolation_is_refused_beyond_the_innermost_dimensions(op: str, middle: tuple[Any, ...], axis: int) -> None:
    x = np.ones((2, 2, 2, 2), np.float32)
    scales = [2.0 if dim == axis else 1.0 for dim in range(4)]
    with pytest.raises(RefusedError, match=f"but got dimension {axis}"):
        run(f"resize_{op}", any_shape("f32", 4), x, "kHALF_PIXEL", *middle, scales=scales)


def test_pooling_of_int8_takes_two_dimensions_only() -> None:
    with pytest.raises(RefusedError, match="windows of 2 dimensions"):
        run("pooling", np.ones((1, 1, 2, 2, 2), np.int8), (2, 2, 2), (1, 1, 1), (0, 0, 0), (0, 0, 0), "kMAX")
