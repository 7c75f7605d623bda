"""Quantization, against its definition in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import nvtripy as tp
from hypothesis import given
from hypothesis import strategies as st
from tensors import FLOATS, NVTRIPY_DTYPES, array, assert_agrees, few, random, seeds, shapes, tensor, wide

QUANTIZED = ["i8", "i4", "f8e4m3fn"]
LIMITS = {"i8": (-128, 127), "i4": (-8, 7)}
#: Every value of float8 e4m3fn that is not negative: 3 bits of mantissa, exponents from -6, subnormals below, 448 last.
FLOAT8 = [Fraction(m, 512) for m in range(8)] + [
    Fraction(8 + m, 8) * Fraction(2) ** e for e in range(-6, 9) for m in range(8) if (e, m) != (8, 7)
]
#: Powers of two, so that quotients are exact.
SCALES = [0.125, 0.25, 0.5, 1.0, 2.0]


def nearest(value: Fraction, dtype: str) -> Fraction:
    """Return the nearest number of the type, of two as near the even one."""
    if dtype in LIMITS:
        low, high = LIMITS[dtype]
        return Fraction(min(max(round(value), low), high))
    sign = -1 if value < 0 else 1
    best = min(range(len(FLOAT8)), key=lambda index: (abs(FLOAT8[index] - abs(value)), index % 2))
    return sign * FLOAT8[best]


def quantized(x: np.ndarray, scale: np.ndarray, dtype: str) -> np.ndarray:
    scales = np.broadcast_to(wide(scale), x.shape)
    return np.array(
        [
            float(nearest(Fraction(value) / Fraction(by), dtype))
            for value, by in zip(wide(x).flat, scales.flat, strict=True)
        ]
    ).reshape(x.shape)


def check(x: np.ndarray, scale: Any, spread: np.ndarray, dtype: str, kind: str, dim: int | None) -> None:
    result = tp.quantize(tensor(x), scale, NVTRIPY_DTYPES[kind], dim)
    expected = quantized(x, spread, kind)
    assert_agrees(result, expected, kind)
    restored = tp.dequantize(result, scale, NVTRIPY_DTYPES[dtype], dim)
    np.testing.assert_array_equal(wide(array(restored)), (expected * spread).astype(np.float32))


@given(shapes(low=1), st.sampled_from(SCALES), st.sampled_from(FLOATS), st.sampled_from(QUANTIZED), seeds)
@few
def test_one_scale(shape: tuple[int, ...], scale: float, dtype: str, kind: str, seed: int) -> None:
    x = random(seed, shape, dtype, -80, 80)
    check(x, tensor(np.array(scale, x.dtype)), np.array(scale), dtype, kind, None)


@given(shapes(low=2), st.sampled_from(FLOATS), st.sampled_from(["i8", "f8e4m3fn"]), seeds)
@few
def test_a_scale_for_each_channel(shape: tuple[int, ...], dtype: str, kind: str, seed: int) -> None:
    axis = seed % len(shape)
    x = random(seed, shape, dtype, -80, 80)
    scale = np.random.default_rng(seed).choice(SCALES, shape[axis])
    spread = scale.reshape([-1 if dim == axis else 1 for dim in range(len(shape))])
    check(x, tensor(scale.astype(x.dtype)), spread, dtype, kind, axis)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.sampled_from(FLOATS), seeds)
@few
def test_a_scale_for_each_block(blocks: int, height: int, columns: int, dtype: str, seed: int) -> None:
    x = random(seed, (blocks * height, columns), dtype, -10, 10)
    scale = np.random.default_rng(seed).choice(SCALES, (blocks, columns))
    check(x, tensor(scale.astype(x.dtype)), np.repeat(scale, height, 0), dtype, "i4", None)
