"""Operations that combine elements along dimensions: reductions, products, normalization, ranking."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tripy_cpu.dtypes import Array
from tripy_cpu.errors import RefusedError
from tripy_cpu.kernels.elementwise import truncated_quotient
from tripy_cpu.kernels.table import Dims, check_conformable, kernel


def _mean(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    if x.dtype.kind != "i":
        return np.asarray(np.mean(x, axis=axis, keepdims=keepdims))
    count = math.prod(x.shape[dim] for dim in axis)
    return truncated_quotient(np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype), np.asarray(count, x.dtype))


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
        check_conformable(a[..., :1, :1], b[..., :1, :1])
    return np.asarray(np.matmul(a, b))


@kernel(wide=True)
def softmax(input: Array, axis: int) -> Array:
    """`exp(x) / sum(exp(x))` along `axis`; where powers get too great or small, the greatest is subtracted first.

    Powers of elements up to 60 can be added a billion times in single precision. Where the greatest element is not
    negative, no power vanishes that does not vanish beside the greatest one as well.
    """
    if input.ndim < 2:
        raise RefusedError(f"softmax takes at least 2 dimensions, but got {input.ndim}")
    greatest = np.max(input, axis=axis, keepdims=True, initial=-np.inf)
    is_moderate = np.all((greatest >= 0) & (greatest <= 60))
    powers: Array = np.exp(input if is_moderate else input - greatest)
    powers /= np.sum(powers, axis=axis, keepdims=True)
    return powers


@kernel(wide=True, results=2)
def top_k(input: Array, k: int, axis: int, topk_operation: str) -> tuple[Array, Array]:
    """The `k` greatest (kMAX) or least (kMIN) elements along `axis`, in order, and their indices.

    Of equal elements the first comes first.
    """
    size = input.shape[axis]
    if input.ndim < 2:
        raise RefusedError(f"top-k takes at least 2 dimensions, but got {input.ndim}")
    if not 0 < k <= min(size, _MAX_K):
        raise RefusedError(f"top-k takes 1 to {min(size, _MAX_K)} elements of dimension {axis}, but k is {k}")
    if topk_operation == "kMIN":
        order = np.argsort(input, axis=axis, kind="stable")
    else:
        order = np.flip(size - 1 - np.argsort(np.flip(input, axis), axis=axis, kind="stable"), axis)
    first = np.take(order, np.arange(k), axis)
    return np.take_along_axis(input, first, axis), first.astype(np.int32)


#: TensorRT's limit.
_MAX_K = 3840


@kernel(wide=True)
def normalization(input: Array, scale: Array, bias: Array, axis: Dims, eps: float, num_groups: int = 1) -> Array:
    """`(x - mean) / sqrt(variance + eps) * scale + bias`, with mean and (biased) variance over `axis`.

    With groups, dimension 1 is split into that many, and each group is normalized over its channels too.
    """
    for name, factor in (("scale", scale), ("bias", bias)):
        _check_factor(name, factor, input)
    x = input
    axes = tuple(axis)
    if num_groups > 1:
        channels = input.shape[1]
        if channels % num_groups:
            raise RefusedError(f"normalization cannot split {channels} channels into {num_groups} groups")
        x = input.reshape(input.shape[0], num_groups, channels // num_groups, *input.shape[2:])
        axes = (2, *(dim + 1 for dim in axes if dim > 1))
    centered = x - np.mean(x, axis=axes, keepdims=True)
    variance = np.mean(np.square(centered), axis=axes, keepdims=True)
    centered /= np.sqrt(variance + np.float32(eps))
    result: Array = centered.reshape(input.shape)
    result *= scale
    result += bias
    return result


def _check_factor(name: str, factor: Array, input: Array) -> None:
    if factor.ndim != input.ndim:
        raise RefusedError(f"The normalization {name} has {factor.ndim} dimensions, but the input has {input.ndim}")
    for dim, (have, want) in enumerate(zip(factor.shape, input.shape, strict=True)):
        if have not in (1, want):
            raise RefusedError(
                f"The normalization {name} is not broadcast-compatible with the input at dimension {dim}: "
                f"{have} does not fit {want}"
            )
