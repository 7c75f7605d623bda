"""Operations on shapes, and those that only move data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tripy_cpu.dtypes import NUMPY_DTYPES, Array
from tripy_cpu.errors import RefusedError
from tripy_cpu.kernels.table import Dims, along, kernel
from tripy_cpu.program import TensorType


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
    first, *others = (array.shape for array in inputs)
    for number, shape in enumerate(others, 1):
        for dim, (have, want) in enumerate(zip(shape, first, strict=True)):
            if dim != axis and have != want:
                raise RefusedError(
                    "all concat input tensors must have the same dimensions except on the concatenation axis "
                    f"({axis}), but dimensions mismatched at index {dim}. "
                    f"Input 0 shape: {list(first)}, Input {number} shape: {list(shape)}"
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
            outside = outside | along(beyond, axis, input.ndim)
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
        total = total + along(ramp, axis, len(sizes))
    return total
