"""Quantization, against its definition in exact fractions."""

from __future__ import annotations

from typing import Any

import numpy as np
import nvtripy as tp
from hypothesis import given
from hypothesis import strategies as st
from references import quantized
from tensors import FLOATS, NVTRIPY_DTYPES, array, assert_agrees, few, random, seeds, shapes, tensor, wide

QUANTIZED = ["i8", "i4", "f8e4m3fn"]
#: Powers of two, so that quotients are exact.
SCALES = [0.125, 0.25, 0.5, 1.0, 2.0]


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
