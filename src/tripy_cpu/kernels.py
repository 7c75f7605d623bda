"""The operations: each kernel's parameters are the operation's operands and attributes, its body is its definition.

Operands are arrays; attributes are plain data. The order and the names of the parameters are those of the `tensorrt`
dialect, so the recorder binds calls against these signatures. `@kernel(wide=True)` marks those that compute float16
and bfloat16 in float32 and round once.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tripy_cpu.dtypes import FLOAT8_MAX, HALVES, NUMPY_DTYPES, Array, saturate
from tripy_cpu.errors import RefusedError
from tripy_cpu.program import TensorType

Dims = Sequence[int]


@dataclass(frozen=True)
class Kernel:
    """An operation.

    Attributes:
        name: The name of the operation.
        function: Its definition.
        signature: The operation's parameters.
        wide: Whether float16 and bfloat16 are computed in float32.
        results: How many results it has.
    """

    name: str
    function: Callable[..., Any]
    signature: inspect.Signature
    wide: bool
    results: int

    def run(self, arguments: Mapping[str, Any]) -> tuple[Array, ...]:
        """Return the results for these operands and attributes.

        Raises:
            RefusedError: The operands do not fit each other.
        """
        half = None
        if self.wide:
            half = next((value.dtype for value in _arrays(arguments) if value.dtype in HALVES), None)
            if half is not None:
                arguments = {name: _widen(value) for name, value in arguments.items()}
        outcome = self.function(**arguments)
        results = outcome if self.results > 1 else (outcome,)
        if half is not None:
            results = tuple(value.astype(half) if value.dtype == np.float32 else value for value in results)
        return tuple(np.asarray(value) for value in results)


KERNELS: dict[str, Kernel] = {}


def kernel(*, wide: bool = False, results: int = 1) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the decorated function into the table of kernels under its own name."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__.rstrip("_")
        KERNELS[name] = Kernel(name, function, inspect.signature(function), wide, results)
        return function

    return enter


def _arrays(arguments: Mapping[str, Any]) -> list[Array]:
    return [value for value in arguments.values() if isinstance(value, np.ndarray)]


def _widen(value: Any) -> Any:
    return value.astype(np.float32) if isinstance(value, np.ndarray) and value.dtype in HALVES else value


def _broadcast_shape(*arrays: Array) -> tuple[int, ...]:
    """Return the common shape of arrays of one rank, where a size of 1 fits any other."""
    shapes = [array.shape for array in arrays]
    sizes = [{size for size in dims if size != 1} for dims in zip(*shapes, strict=False)]
    if len({len(shape) for shape in shapes}) != 1 or any(len(size) > 1 for size in sizes):
        raise RefusedError(
            f"broadcast dimensions must be conformable, but the shapes are {' and '.join(str(s) for s in shapes)}"
        )
    return tuple(size.pop() if size else 1 for size in sizes)


# --- element by element -----------------------------------------------------------------------------------------------


def _divide(x: Array, y: Array) -> Array:
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
    "kDIV": _divide,
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
    _broadcast_shape(input1, input2)
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


_erf = np.frompyfunc(math.erf, 1, 1)


def _gelu(x: Array) -> Array:
    """`x * (1 + erf(x / sqrt(2))) / 2`."""
    wide = x.astype(np.float64)
    erf = np.asarray(_erf(wide / math.sqrt(2)), np.float64)
    return (0.5 * wide * (1 + erf)).astype(x.dtype)


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "kTANH": np.tanh,
    "kRELU": lambda x: np.maximum(x, x.dtype.type(0)),
    "kSIGMOID": _sigmoid,
    "kGELU_ERF": _gelu,
}


@kernel(wide=True)
def activation(input: Array, activation_type: str) -> Array:
    """`activation(input)`."""
    return _ACTIVATIONS[activation_type](input)


@kernel()
def select(condition: Array, then_input: Array, else_input: Array) -> Array:
    """`then_input` where `condition` holds, else `else_input`."""
    _broadcast_shape(condition, then_input, else_input)
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


# --- shapes and data movement -----------------------------------------------------------------------------------------


@kernel()
def constant(value: Array) -> Array:
    """The value itself."""
    return value


@kernel()
def shape(input: Array) -> Array:
    """The sizes of the dimensions."""
    return np.array(input.shape, np.int32)


@kernel()
def broadcast(result: TensorType, input: Array, shape: Array, broadcast_dims: Dims) -> Array:
    """Repeats dimensions of size 1: dimension `i` of the input is dimension `broadcast_dims[i]` of the result.

    A size of -1 keeps the input's.
    """
    aligned = [1] * len(shape)
    for size, dim in zip(input.shape, broadcast_dims, strict=True):
        aligned[dim] = size
    target = [have if want == -1 else want for have, want in zip(aligned, shape.tolist(), strict=True)]
    if any(have not in (1, want) for have, want in zip(aligned, target, strict=True)):
        raise RefusedError(
            f"broadcast dimensions must be conformable, but the input's shape is {tuple(input.shape)} "
            f"and the result's {tuple(target)}"
        )
    return np.broadcast_to(input.reshape(aligned), target)


@kernel()
def reshape(result: TensorType, input: Array, shape: Array) -> Array:
    """The same elements in another shape, in which one -1 stands for whatever is left."""
    target: list[int] = shape.tolist()
    if target.count(-1) > 1 or any(size < -1 for size in target):
        raise RefusedError(f"reshape takes sizes and at most one -1, but got {tuple(target)}")
    known = math.prod(size for size in target if size != -1)
    rest = input.size // known if known else 0
    final = [rest if size == -1 else size for size in target]
    if math.prod(final) != input.size:
        raise RefusedError(
            f"reshape changes volume to multiple of original non-zero volume: "
            f"{tuple(input.shape)} ({input.size} elements) cannot become {tuple(target)}"
        )
    return input.reshape(final)


@kernel()
def collapse_rank(result: TensorType, input: Array) -> Array:
    """Without as many dimensions of size 1 as the result has fewer."""
    kept, excess = [], input.ndim - result.rank
    for size in input.shape:
        if size == 1 and excess > 0:
            excess -= 1
        else:
            kept.append(size)
    if excess:
        raise RefusedError(f"cannot collapse the shape {tuple(input.shape)} to rank {result.rank}")
    return input.reshape(kept)


@kernel()
def expand_rank(result: TensorType, input: Array) -> Array:
    """With as many leading dimensions of size 1 as the result has more."""
    return input.reshape((1,) * (result.rank - input.ndim) + input.shape)


@kernel()
def transpose(input: Array, permutation: Dims) -> Array:
    """Dimension `i` of the result is dimension `permutation[i]` of the input."""
    return np.transpose(input, permutation)


@kernel()
def concatenation(inputs: Sequence[Array], axis: int) -> Array:
    """The inputs one after the other along `axis`."""
    if len({array.shape[:axis] + array.shape[axis + 1 :] for array in inputs}) != 1:
        raise RefusedError(
            f"all concat input tensors must have the same dimensions except along axis {axis}, "
            f"but the shapes are {', '.join(str(array.shape) for array in inputs)}"
        )
    return np.concatenate(inputs, axis)


@kernel()
def gather(data: Array, indices: Array, axis: int, num_broadcast_dims: int = 0) -> Array:
    """`data` at the `indices` along `axis`, whose place their dimensions take."""
    size = data.shape[axis]
    if indices.size and not (int(indices.min()) >= 0 and int(indices.max()) < size):
        raise RefusedError(f"gather index out of bounds: indices along dimension {axis} must be in [0, {size})")
    return np.take(data, indices, axis)


def _reflect(index: Array, size: int) -> Array:
    """Mirror out-of-range indices at the first and the last element, which are not repeated."""
    period = max(2 * (size - 1), 1)
    folded = np.mod(index, period)
    return np.asarray(np.minimum(folded, period - folded))


@kernel()
def slice_(
    input: Array,
    start: Array | None = None,
    size: Array | None = None,
    stride: Array | None = None,
    fill: Array | None = None,
    *,
    static_start: Dims | None = None,
    static_size: Dims | None = None,
    static_stride: Dims | None = None,
    mode: str = "kDEFAULT",
) -> Array:
    """Along each dimension the `size` elements from `start` in steps of `stride`.

    What lies outside the input is refused (kDEFAULT), `fill` or zero (kFILL), mirrored (kREFLECT), the nearest
    element (kCLAMP), or taken from the other end (kWRAP).
    """
    starts, sizes, strides = (
        [int(value) for value in (given if static is None else static)]  # type: ignore[union-attr]
        for given, static in ((start, static_start), (size, static_size), (stride, static_stride))
    )
    result = input
    outside = np.zeros((1,) * input.ndim, np.bool_)
    for axis, extent in enumerate(input.shape):
        index = starts[axis] + strides[axis] * np.arange(max(sizes[axis], 0))
        beyond = (index < 0) | (index >= extent)
        if beyond.any():
            if mode == "kDEFAULT":
                raise RefusedError(
                    f"out of bounds access: slice of dimension {axis} with start {starts[axis]}, size {sizes[axis]} "
                    f"and stride {strides[axis]} exceeds its size, {extent}"
                )
            if extent == 0 and mode != "kFILL":
                raise RefusedError(f"slice cannot extend dimension {axis}, which is empty")
            outside = outside | beyond.reshape([-1 if dim == axis else 1 for dim in range(input.ndim)])
        index = _INDEX_MODES.get(mode, _clamp)(index, extent)
        result = (
            np.take(result, index, axis)
            if extent
            else np.zeros((*result.shape[:axis], len(index), *result.shape[axis + 1 :]), input.dtype)
        )
    if mode == "kFILL" and outside.any():
        value = input.dtype.type(0) if fill is None else fill
        return np.where(outside, value, result).astype(input.dtype)
    return result


def _clamp(index: Array, size: int) -> Array:
    return np.clip(index, 0, max(size - 1, 0))


_INDEX_MODES: dict[str, Callable[[Array, int], Array]] = {
    "kREFLECT": _reflect,
    "kWRAP": lambda index, size: np.mod(index, max(size, 1)),
}


@kernel()
def linspace(result: TensorType, shape: Array, start: Array, step: Array) -> Array:
    """`start + sum over dimensions d of step[d] * index along d`."""
    sizes = shape.tolist()
    steps = step.reshape(-1)
    dtype = NUMPY_DTYPES[result.dtype]
    total = np.full(sizes, start.reshape(()), dtype)
    for axis, size in enumerate(sizes):
        ramp = (np.arange(size) * steps[axis]).astype(dtype)
        total = total + ramp.reshape([-1 if dim == axis else 1 for dim in range(len(sizes))])
    return total


# --- reductions and products ------------------------------------------------------------------------------------------


def _mean(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    if x.dtype.kind != "i":
        return np.asarray(np.mean(x, axis=axis, keepdims=keepdims))
    count = math.prod(x.shape[dim] for dim in axis)
    return _divide(np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype), np.asarray(count, x.dtype))


_REDUCTIONS: dict[str, Callable[[Array, tuple[int, ...], bool], Array]] = {
    "kSUM": lambda x, axis, keepdims: np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype),
    "kPROD": lambda x, axis, keepdims: np.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype),
    "kMAX": lambda x, axis, keepdims: np.max(x, axis=axis, keepdims=keepdims),
    "kMIN": lambda x, axis, keepdims: np.min(x, axis=axis, keepdims=keepdims),
    "kAVG": _mean,
}


@kernel(wide=True)
def reduce(input: Array, reduce_axes: Dims, reduce_operation: str, keep_dimensions: bool = False) -> Array:
    """Combines the elements along `reduce_axes`; sums of integers keep their type."""
    if reduce_operation in ("kMAX", "kMIN") and 0 in [input.shape[axis] for axis in reduce_axes]:
        raise RefusedError(f"reduction over an empty dimension of the shape {tuple(input.shape)}")
    return _REDUCTIONS[reduce_operation](input, tuple(reduce_axes), keep_dimensions)


@kernel(wide=True)
def matrix_multiply(input0: Array, input1: Array, op0: str, op1: str) -> Array:
    """`input0 @ input1`, each a stack of matrices (kNONE), of transposed ones (kTRANSPOSE), or a vector (kVECTOR)."""
    a = np.swapaxes(input0, -1, -2) if op0 == "kTRANSPOSE" else input0
    b = np.swapaxes(input1, -1, -2) if op1 == "kTRANSPOSE" else input1
    inner = "last" if op1 == "kVECTOR" else "second to last"
    size = b.shape[-1] if op1 == "kVECTOR" else b.shape[-2]
    if a.shape[-1] != size:
        raise RefusedError(
            f"last dimension of input0 = {a.shape[-1]} and {inner} dimension of input1 = {size} but must match"
        )
    if a.ndim > 1 and b.ndim > 1:
        _broadcast_shape(a[..., :1, :1], b[..., :1, :1])
    return np.asarray(np.matmul(a, b))


# --- types narrower than a byte's worth of meaning --------------------------------------------------------------------


def _spread_scale(scale: Array, input: Array, axis: int | None) -> Array:
    """Return the scale in a shape that multiplies `input`: one number, one a channel, or one a block of rows."""
    if scale.ndim == 0:
        return scale
    if scale.ndim == 1:
        if axis is None or scale.size != input.shape[axis]:
            raise RefusedError(f"quantization scale of {scale.size} does not fit dimension {axis} of {input.shape}")
        return scale.reshape([-1 if dim == axis else 1 for dim in range(input.ndim)])
    for dim, (size, blocks) in enumerate(zip(input.shape, scale.shape, strict=True)):
        if blocks == 0 or size % blocks:
            raise RefusedError(f"quantization blocks of {scale.shape} do not divide the shape {input.shape}")
        scale = np.repeat(scale, size // blocks, dim)
    return scale


@kernel()
def quantize(result: TensorType, input: Array, scale: Array, axis: int | None = None) -> Array:
    """`input / scale` rounded to the nearest value of the result's type (ties to even), saturating."""
    if not (scale > 0).all():
        raise RefusedError("scale coefficients must all be positive")
    spread = _spread_scale(scale.astype(np.float32), input, axis)
    scaled = input.astype(np.float32) / spread
    dtype = NUMPY_DTYPES[result.dtype]
    if result.dtype == "f8e4m3fn":
        return np.clip(scaled, -FLOAT8_MAX, FLOAT8_MAX).astype(dtype)
    low, high = {"i4": (-8, 7), "i8": (-128, 127)}[result.dtype]
    return saturate(np.rint(scaled), np.dtype(np.int8), low, high).astype(dtype)


@kernel()
def dequantize(result: TensorType, input: Array, scale: Array, axis: int | None = None) -> Array:
    """`input * scale`."""
    spread = _spread_scale(scale.astype(np.float32), input, axis)
    return (input.astype(np.float32) * spread).astype(NUMPY_DTYPES[result.dtype])
