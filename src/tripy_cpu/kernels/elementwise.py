"""Operations on each element by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tripy_cpu.dtypes import NUMPY_DTYPES, Array, saturate
from tripy_cpu.kernels.table import broadcast_shape, kernel
from tripy_cpu.program import TensorType


def truncated_quotient(x: Array, y: Array) -> Array:
    """Integers: the quotient truncated towards zero."""
    return (x - np.fmod(x, y)) // y if x.dtype.kind == "i" else x / y


def _power(x: Array, y: Array) -> Array:
    """Integers: the power truncated towards zero, since a negative exponent gives a fraction."""
    if x.dtype.kind != "i":
        return np.power(x, y)
    fraction = np.where(np.abs(x) == 1, np.power(x, np.abs(y) % 2), 0)
    return np.where(y < 0, fraction, np.power(x, np.maximum(y, 0)))


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
    broadcast_shape(input1, input2)
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


#: `erf(x) = x * P(x^2) / Q(x^2)` where |x| < _ERF_END, beyond which it is 1 in single precision: a least-squares fit,
#: reweighted until all its errors were alike (5e-8 before rounding). Lowest powers first.
_ERF_P = (
    1.128379108,
    0.2003613866,
    5.063071059e-2,
    3.719019986e-3,
    1.421672950e-4,
    -1.956572308e-6,
    1.986955626e-8,
)
_ERF_Q = (1.0, 0.5108972882, 0.1151784259, 1.438970282e-2, 9.599282795e-4)
_ERF_END = 3.925

#: How many elements fit into a core's cache with what is computed from them.
_CHUNK = 1 << 14


def _polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    result: Array = x * x.dtype.type(coefficients[-1])
    for coefficient in coefficients[-2:0:-1]:
        result += x.dtype.type(coefficient)
        result *= x
    result += x.dtype.type(coefficients[0])
    return result


def erf(x: Array) -> Array:
    """The error function of numbers in single precision, to within 5e-7."""
    clipped = np.clip(x, -_ERF_END, _ERF_END)
    square = clipped * clipped
    return np.asarray(clipped * _polynomial(square, _ERF_P) / _polynomial(square, _ERF_Q))


def _gelu(x: Array) -> Array:
    """`x * (1 + erf(x / sqrt(2))) / 2`, a chunk at a time."""
    result = np.empty(x.shape, x.dtype)
    source, target = x.reshape(-1), result.reshape(-1)
    for start in range(0, x.size, _CHUNK):
        # Further down the result is 0, which the rounding of `erf` times a great number is not.
        part = np.maximum(source[start : start + _CHUNK], x.dtype.type(-_ERF_END * math.sqrt(2)))
        out = erf(part * x.dtype.type(math.sqrt(0.5)))
        out += 1
        out *= part
        np.multiply(out, x.dtype.type(0.5), out=target[start : start + _CHUNK])
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
    broadcast_shape(condition, then_input, else_input)
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
