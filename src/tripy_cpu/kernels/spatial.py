"""Operations on images: dimension 0 is the batch, dimension 1 the channels, the others are space."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tripy_cpu.dtypes import Array
from tripy_cpu.errors import RefusedError
from tripy_cpu.kernels.table import Dims, along, kernel
from tripy_cpu.program import TensorType


def _pad(x: Array, pre: Dims, post: Dims, value: Any) -> Array:
    return np.pad(x, [(0, 0), (0, 0), *zip(pre, post, strict=True)], constant_values=value)


def _in_space(*index: Any) -> tuple[Any, ...]:
    """Return `index` for the spatial dimensions of every channel."""
    return (slice(None), slice(None), *index)


def _windows(x: Array, sizes: Dims, stride: Dims, dilation: Dims) -> Array:
    """Return a view of shape (batch, channels, *positions, *sizes): what the window covers at each position."""
    extents = [step * (size - 1) + 1 for size, step in zip(sizes, dilation, strict=True)]
    if any(extent > available for extent, available in zip(extents, x.shape[2:], strict=True)):
        raise RefusedError(
            f"a window of {tuple(extents)} does not fit the padded input of {x.shape[2:]} (spatial dimensions)"
        )
    space = tuple(range(2, x.ndim))
    view = np.lib.stride_tricks.sliding_window_view(x, extents, space)
    positions = [slice(None, None, step) for step in stride]
    inside = [slice(None, None, step) for step in dilation]
    return np.asarray(view[_in_space(*positions, *inside)])


def _check_channels(input: Array, expected: int, kernel_shape: tuple[int, ...], outputs: int, groups: int) -> None:
    if len(kernel_shape) != input.ndim:
        raise RefusedError(f"the kernel has {len(kernel_shape)} dimensions, but the input has {input.ndim}")
    if input.shape[1] != expected or outputs % groups:
        raise RefusedError(
            f"input has {input.shape[1]} channels, which does not fit a kernel of shape {kernel_shape} "
            f"in {groups} group(s)"
        )


def _check_bias(bias: Array | None, channels: int) -> None:
    if bias is not None and bias.shape != (channels,):
        raise RefusedError(f"the bias has shape {bias.shape}, but there are {channels} output channels")


@kernel(wide=True)
def convolution(
    input: Array,
    stride: Dims,
    pre_padding: Dims,
    post_padding: Dims,
    kernel: Array,
    bias: Array | None = None,
    num_groups: int = 1,
    dilation: Dims | None = None,
) -> Array:
    """The kernel, of shape (outputs, channels / groups, *sizes), laid over the zero-padded input at each stride."""
    sizes = kernel.shape[2:]
    outputs = kernel.shape[0]
    _check_channels(input, kernel.shape[1] * num_groups, kernel.shape, outputs, num_groups)
    _check_bias(bias, outputs)
    padded = _pad(input, pre_padding, post_padding, 0)
    windows = _windows(padded, sizes, stride, dilation or (1,) * len(sizes))
    positions = windows.shape[2 : input.ndim]
    # Channels and window before positions: the copy that this reshape makes runs along the image's rows.
    covered = np.moveaxis(windows, range(2, input.ndim), range(-len(positions), 0))
    columns = covered.reshape(len(input), num_groups, -1, math.prod(positions))
    weights = kernel.reshape(num_groups, outputs // num_groups, -1)
    result: Array = np.matmul(weights, columns).reshape(len(input), outputs, *positions)
    if bias is not None:
        result += along(bias, 1, result.ndim)
    return result


@kernel(wide=True)
def deconvolution(
    input: Array,
    stride: Dims,
    pre_padding: Dims,
    post_padding: Dims,
    kernel_weights: Array,
    bias_weights: Array | None = None,
    num_groups: int = 1,
    dilation: Dims | None = None,
) -> Array:
    """The transpose of a convolution: every input element adds its multiple of the kernel to the output.

    The kernel has shape (channels, outputs / groups, *sizes); the padding is cut off the result.
    """
    sizes = kernel_weights.shape[2:]
    steps = dilation or (1,) * len(sizes)
    outputs = kernel_weights.shape[1] * num_groups
    _check_channels(input, kernel_weights.shape[0], kernel_weights.shape, input.shape[1], num_groups)
    _check_bias(bias_weights, outputs)
    full = [
        (count - 1) * jump + step * (size - 1) + 1
        for count, jump, step, size in zip(input.shape[2:], stride, steps, sizes, strict=True)
    ]
    if any(size <= pre + post for size, pre, post in zip(full, pre_padding, post_padding, strict=True)):
        raise RefusedError(f"padding {tuple(pre_padding)} and {tuple(post_padding)} leaves nothing of {tuple(full)}")
    result = np.zeros((input.shape[0], outputs, *full), input.dtype)
    parts = np.split(input, num_groups, 1)
    weights = np.split(kernel_weights, num_groups, 0)
    for position in np.ndindex(*sizes):
        groups = [
            np.tensordot(part, weight[_in_space(*position)], ((1,), (0,)))
            for part, weight in zip(parts, weights, strict=True)
        ]
        touched = (
            slice(step * offset, step * offset + (count - 1) * jump + 1, jump)
            for step, offset, count, jump in zip(steps, position, input.shape[2:], stride, strict=True)
        )
        result[_in_space(*touched)] += np.moveaxis(np.concatenate(groups, -1), -1, 1)
    kept = (slice(pre, size - post) for pre, post, size in zip(pre_padding, post_padding, full, strict=True))
    result = result[_in_space(*kept)]
    return np.asarray(result if bias_weights is None else result + along(bias_weights, 1, result.ndim))


@kernel(wide=True)
def pooling(
    input: Array,
    window_size: Dims,
    stride: Dims,
    pre_padding: Dims,
    post_padding: Dims,
    pooling_type: str,
    blend_factor: float | None = None,
    average_count_excludes_padding: bool | None = None,
) -> Array:
    """The greatest element or the mean of each window. Padding never is the greatest; it counts as zero in means."""
    if any(size <= max(pre, post) for size, pre, post in zip(window_size, pre_padding, post_padding, strict=True)):
        raise RefusedError(
            f"pooling padding must be less than the window {tuple(window_size)}, "
            f"but is {tuple(pre_padding)} and {tuple(post_padding)}"
        )
    if input.dtype.kind == "i" and len(window_size) != 2:
        raise RefusedError(f"pooling of {input.dtype} takes windows of 2 dimensions, but got {tuple(window_size)}")
    ones = (1,) * len(window_size)
    space = tuple(range(input.ndim, input.ndim + len(window_size)))
    if pooling_type == "kMAX":
        least = np.iinfo(input.dtype).min if input.dtype.kind == "i" else -np.inf
        return np.asarray(
            np.max(_windows(_pad(input, pre_padding, post_padding, least), window_size, stride, ones), axis=space)
        )
    numbers = input.astype(np.float32)
    total = np.sum(_windows(_pad(numbers, pre_padding, post_padding, 0), window_size, stride, ones), axis=space)
    count: Any = math.prod(window_size)
    if average_count_excludes_padding:
        present = _pad(np.ones((1, 1, *input.shape[2:]), np.float32), pre_padding, post_padding, 0)
        count = np.sum(_windows(present, window_size, stride, ones), axis=space)
    mean = total / count
    return np.asarray(np.rint(mean) if input.dtype.kind == "i" else mean).astype(input.dtype)


# --- resizing ---------------------------------------------------------------------------------------------------------

#: Where the center of output element `i` lies in the input, from (i, scale, input size, output size).
_COORDINATES: dict[str, Callable[[Array, float, int, int], Array]] = {
    "kASYMMETRIC": lambda i, scale, before, after: i / scale,
    "kHALF_PIXEL": lambda i, scale, before, after: (i + 0.5) / scale - 0.5,
    "kALIGN_CORNERS": lambda i, scale, before, after: i * ((before - 1) / max(after - 1, 1)),
}

_ROUNDING: dict[str, Callable[[Array], Array]] = {
    "kFLOOR": np.floor,
    "kCEIL": np.ceil,
    "kHALF_UP": lambda x: np.floor(x + 0.5),
    "kHALF_DOWN": lambda x: np.ceil(x - 0.5),
}

Weights = Callable[[Array], list[tuple[Array, Array]]]


def _linear_weights(x: Array) -> list[tuple[Array, Array]]:
    """Return (offset from the floor, weight) of the two nearest elements."""
    distance = x - np.floor(x)
    return [(np.floor(x), 1 - distance), (np.floor(x) + 1, distance)]


def _cubic_weights(x: Array, a: float) -> list[tuple[Array, Array]]:
    """Return (element, weight) of the four nearest elements: Keys' cubic convolution with coefficient `a`."""

    def weight(distance: Array) -> Array:
        near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
        far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        return np.where(distance <= 1, near, far)

    left = np.floor(x)
    return [(left + offset, weight(np.abs(x - left - offset))) for offset in (-1, 0, 1, 2)]


def _resize(
    input: Array,
    transformation: str,
    output_shape: Array | None,
    scales: Dims | None,
    weights: Weights,
    innermost: int | None = None,
) -> Array:
    """Interpolate along one dimension after the other; elements beyond the edge are the edge's.

    Given scales are used as they are, even where the ratio of the sizes is another. Only the `innermost` dimensions
    may change, if that is given.
    """
    if output_shape is not None:
        sizes = [int(size) for size in output_shape]
        factors = [after / before for after, before in zip(sizes, input.shape, strict=True)]
    else:
        factors = [float(scale) for scale in scales or ()]
        sizes = [math.floor(before * factor) for before, factor in zip(input.shape, factors, strict=True)]
    if min(sizes) < 1:
        raise RefusedError(f"resize to {tuple(sizes)}: every size must be positive")
    result = input.astype(np.float32)
    for axis, (before, after, factor) in enumerate(zip(input.shape, sizes, factors, strict=True)):
        if before == after and factor == 1:
            continue
        if innermost is not None and axis < input.ndim - innermost:
            raise RefusedError(f"this resize changes the last {innermost} dimensions only, but got dimension {axis}")
        center = _COORDINATES[transformation](np.arange(after, dtype=np.float64), factor, before, after)
        terms = [
            np.take(result, np.clip(element, 0, before - 1).astype(np.int64), axis)
            * along(weight.astype(np.float32), axis, input.ndim)
            for element, weight in weights(center)
        ]
        result = sum(terms[1:], terms[0])
    return (np.rint(result) if input.dtype.kind == "i" else result).astype(input.dtype)


@kernel(wide=True)
def resize_nearest(
    result: TensorType,
    input: Array,
    coordinate_transformation: str,
    rounding_mode: str,
    selector: str,
    output_shape: Array | None = None,
    scales: Dims | None = None,
) -> Array:
    """The nearest element, found by `rounding_mode`."""

    def nearest(x: Array) -> list[tuple[Array, Array]]:
        return [(_ROUNDING[rounding_mode](x), np.ones(x.shape))]

    return _resize(input, coordinate_transformation, output_shape, scales, nearest)


@kernel(wide=True)
def resize_linear(
    result: TensorType,
    input: Array,
    coordinate_transformation: str,
    selector: str,
    output_shape: Array | None = None,
    scales: Dims | None = None,
) -> Array:
    """Linear interpolation along the last three dimensions."""
    return _resize(input, coordinate_transformation, output_shape, scales, _linear_weights, innermost=3)


@kernel(wide=True)
def resize_cubic(
    result: TensorType,
    input: Array,
    coordinate_transformation: str,
    selector: str,
    cubic_coeff: float,
    output_shape: Array | None = None,
    scales: Dims | None = None,
) -> Array:
    """Cubic interpolation along the last two dimensions."""

    def cubic(x: Array) -> list[tuple[Array, Array]]:
        return _cubic_weights(x, cubic_coeff)

    return _resize(input, coordinate_transformation, output_shape, scales, cubic, innermost=2)
