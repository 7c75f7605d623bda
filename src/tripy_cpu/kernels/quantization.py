"""Conversions to and from int8, int4 and float8 with a scale."""

from __future__ import annotations

import numpy as np

from tripy_cpu.dtypes import FLOAT8_MAX, NUMPY_DTYPES, Array, saturate
from tripy_cpu.errors import RefusedError
from tripy_cpu.kernels.table import along, kernel
from tripy_cpu.program import TensorType


def _spread_scale(scale: Array, input: Array, axis: int | None) -> Array:
    """Return the scale in a shape that multiplies `input`: one number, one a channel, or one a block of rows."""
    if scale.ndim == 0:
        return scale
    if scale.ndim == 1:
        if axis is None or scale.size != input.shape[axis]:
            raise RefusedError(f"quantization scale of {scale.size} does not fit dimension {axis} of {input.shape}")
        return along(scale, axis, input.ndim)
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
