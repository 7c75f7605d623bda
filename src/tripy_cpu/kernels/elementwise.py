"""Operations on each element by itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tripy_cpu.dtypes import NUMPY_DTYPES, Array, saturate
from tripy_cpu.kernels.table import check_conformable, kernel
from tripy_cpu.program import TensorType


def truncated_quotient(x: Array, y: Array) -> Array:
    """Integers: the quotient truncated towards zero."""
    return (x - np.fmod(x, y)) // y if x.dtype.kind == "i" else x / y


def _power(x: Array, y: Array) -> Array:
    """Integers: the power truncated towards zero, since a negative exponent gives a fraction."""
    if x.dtype.kind != "i":
        return np.power(x, y)
    fraction = np.where(np.abs(x) == 1, np.power(x, np.abs(y) % 2), 0)
    # NumPy 1 would take numbers without dimensions for int64.
    return np.where(y < 0, fraction, np.power(x, np.maximum(y, 0))).astype(x.dtype)


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "kSUM": np.add,
    "kSUB": np.subtract,
    "kPROD": np.multiply,
    "kDIV": truncated_quotient,
    "kFLOOR_DIV": np.floor_divide,
    "kPOW": _power,
    "kMAX": np.maximum,
    "kMIN": np.minimum,
    "kEQUAL": np.equal,
    "kLESS": np.less,
    "kGREATER": np.greater,
    "kAND": np.logical_and,
    "kOR": np.logical_or,
    "kXOR": np.logical_xor,
}


@kernel(wide=True)
def element_wise(input1: Array, input2: Array, elementwise_operation: str) -> Array:
    """`input1 (operation) input2`, where dimensions of size 1 are repeated."""
    check_conformable(input1, input2)
    return _BINARY[elementwise_operation](input1, input2)


_UNARY: dict[str, Callable[[Array], Array]] = {
    "kEXP": np.exp,
    "kLOG": np.log,
    "kSQRT": np.sqrt,
    "kRECIP": np.reciprocal,
    "kABS": np.abs,
    "kNEG": np.negative,
    "kSIN": np.sin,
    "kCOS": np.cos,
    "kNOT": np.logical_not,
}


@kernel(wide=True)
def unary(input: Array, unary_operation: str) -> Array:
    """`operation(input)`."""
    return _UNARY[unary_operation](input)


def _sigmoid(x: Array) -> Array:
    """`1 / (1 + exp(-x))`, written so that it does not overflow."""
    half = x.dtype.type(0.5)
    return np.asarray(half * np.tanh(half * x) + half)


#: `erf(x / sqrt(2)) = tanh(x * P(x^2))`: a least-squares fit of `atanh(erf(x / sqrt(2))) / x` up to 6, beyond which
#: both sides are 1 in single precision, weighted and reweighted until all errors of `gelu(x) / x` were alike (3e-8
#: before rounding). Lowest powers first.
_GELU_P = (
    0.7978849412158852,
    0.03633308517114986,
    -3.259539050199292e-05,
    -5.530608272155902e-05,
    3.964732397599134e-06,
    -1.3226289816496859e-07,
    1.75617007378301e-09,
)

#: How many elements fit into a core's cache with what is computed from them.
_CHUNK = 1 << 16


def _gelu(x: Array) -> Array:
    """`x * (1 + erf(x / sqrt(2))) / 2`, a chunk at a time."""
    result = np.empty(x.shape, x.dtype)
    source, target = x.reshape(-1), result.reshape(-1)
    first, *others, last = map(x.dtype.type, _GELU_P)
    for start in range(0, x.size, _CHUNK):
        part, out = source[start : start + _CHUNK], target[start : start + _CHUNK]
        square = part * part
        np.multiply(square, last, out=out)
        for coefficient in reversed(others):
            out += coefficient
            out *= square
        out += first
        out *= part
        np.tanh(out, out=out)
        half = np.multiply(part, x.dtype.type(0.5), out=square)
        out *= half
        out += half
    return result


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "kTANH": np.tanh,
    "kRELU": lambda x: np.maximum(x, x.dtype.type(0)),
    "kSIGMOID": _sigmoid,
    "kGELU_ERF": _gelu,
}


@kernel(wide=True)
def activation(input: Array, activation_type: str) -> Array:
    """`activation(input)`; int8 is rounded to the nearest integer."""
    function = _ACTIVATIONS[activation_type]
    if input.dtype.kind == "i":
        return saturate(np.rint(function(input.astype(np.float32))), input.dtype, -128, 127)
    return function(input)


@kernel()
def select(condition: Array, then_input: Array, else_input: Array) -> Array:
    """`then_input` where `condition` holds, else `else_input`."""
    check_conformable(condition, then_input, else_input)
    return np.where(condition, then_input, else_input)


@kernel()
def cast(result: TensorType, input: Array) -> Array:
    """The values in the result's type: towards zero and saturating from floating point to integers."""
    dtype = NUMPY_DTYPES[result.dtype]
    if result.dtype == "i1":
        return np.asarray(input != 0)
    if dtype.kind == "i" and input.dtype.kind not in "bi":
        limits = np.iinfo(dtype)
        return saturate(np.trunc(input.astype(np.float64)), dtype, int(limits.min), int(limits.max))
    return input.astype(dtype)
