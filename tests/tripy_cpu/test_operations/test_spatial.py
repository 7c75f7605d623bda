"""Convolution, pooling and resizing, against loops over every position in double precision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import nvtripy as tp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import Geometry, convolution, transposed_convolution
from tensors import FLOATS, NVTRIPY_DTYPES, assert_agrees, few, random, seeds, tensor, wide


@st.composite
def geometries(draw: st.DrawFn, ranks: Sequence[int], *, dilated: bool = True, pooling: bool = False) -> Geometry:
    rank = draw(st.sampled_from(ranks))

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(rank))

    window, stride, dilation = each(1, 3), each(1, 3), each(1, 2) if dilated else (1,) * rank
    extents = [(size - 1) * step + 1 for size, step in zip(window, dilation, strict=True)]
    space = tuple(extent + extra for extent, extra in zip(extents, each(0, 3), strict=True))
    limits = [size - 1 if pooling else 2 for size in window]
    padding = tuple((draw(st.integers(0, limit)), draw(st.integers(0, limit))) for limit in limits)
    return Geometry(space, window, stride, dilation, padding)


def module_of(kind: Any, inputs: int, outputs: int, place: Geometry, groups: int, bias: bool, dtype: str) -> Any:
    return kind(
        inputs,
        outputs,
        place.window,
        padding=place.padding,
        stride=place.stride,
        groups=groups,
        dilation=place.dilation,
        bias=bias,
        dtype=NVTRIPY_DTYPES[dtype],
    )


def check(
    kind: Any,
    reference: Any,
    channels: tuple[int, int],
    place: Geometry,
    groups: int,
    has_bias: bool,
    dtype: str,
    seed: int,
) -> None:
    """Compare a convolution of 2 to 3 channels a group, whose kernel begins with `channels`, with its reference."""
    inputs, outputs = 2 * groups, 3 * groups
    module = module_of(kind, inputs, outputs, place, groups, has_bias, dtype)
    x = random(seed, (2, inputs, *place.space), dtype)
    weight = random(seed + 1, (*channels, *place.window), dtype)
    bias = random(seed + 2, (outputs,), dtype) if has_bias else None
    module.weight = tensor(weight)
    if bias is not None:
        module.bias = tensor(bias)
    expected, scale = reference(x, weight, bias, place, groups)
    assert_agrees(module(tensor(x)), expected, dtype, slack=2, scale=scale)


@given(geometries([1, 2, 3]), st.sampled_from([1, 2]), st.booleans(), st.sampled_from(FLOATS), seeds)
@few
def test_convolution(place: Geometry, groups: int, has_bias: bool, dtype: str, seed: int) -> None:
    check(tp.Conv, convolution, (3 * groups, 2), place, groups, has_bias, dtype, seed)


@given(geometries([1, 2, 3]), st.sampled_from([1, 2]), st.booleans(), st.sampled_from(["f32", "f16"]), seeds)
@few
def test_transposed_convolution(place: Geometry, groups: int, has_bias: bool, dtype: str, seed: int) -> None:
    if any(size <= sum(pair) for size, pair in zip(place.spread(), place.padding, strict=True)):
        return  # nothing is left
    check(tp.ConvTranspose, transposed_convolution, (2 * groups, 3), place, groups, has_bias, dtype, seed)


@given(geometries([2, 3], dilated=False, pooling=True), st.sampled_from([*FLOATS, "i8"]), seeds)
@few
def test_greatest_of_a_window(place: Geometry, dtype: str, seed: int) -> None:
    if dtype == "i8" and len(place.space) == 3:
        return  # refused, see test_kernels
    x = random(seed, (2, 2, *place.space), dtype)
    expected = np.empty(place.positions((2, 2)))
    for item, channel, *position in np.ndindex(*expected.shape):
        there = [source for _, source, is_there in place.covered(position) if is_there]
        expected[(item, channel, *position)] = max(x[(item, channel, *source)] for source in there)
    result = tp.maxpool(tensor(x), place.window, place.stride, place.padding)
    assert_agrees(result, expected, dtype)


@given(geometries([2, 3], dilated=False, pooling=True), st.booleans(), st.sampled_from(FLOATS), seeds)
@few
def test_mean_of_a_window(place: Geometry, with_padding: bool, dtype: str, seed: int) -> None:
    x = random(seed, (2, 2, *place.space), dtype)
    expected = np.empty(place.positions((2, 2)))
    for item, channel, *position in np.ndindex(*expected.shape):
        there = [source for _, source, is_there in place.covered(position) if is_there]
        total = math.fsum(float(x[(item, channel, *source)]) for source in there)
        expected[(item, channel, *position)] = total / (math.prod(place.window) if with_padding else len(there))
    result = tp.avgpool(tensor(x), place.window, place.stride, place.padding, with_padding)
    assert_agrees(result, expected, dtype, slack=2, scale=4.0)


# --- resizing ---------------------------------------------------------------------------------------------------------


def kernel_of(mode: str, distance: float) -> float:
    """Return the weight of an element at that distance from where it is looked up."""
    d = abs(distance)
    if mode == "linear":
        return max(0.0, 1 - d)
    a = -0.75  # Keys' cubic convolution with torch's coefficient
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def matrix(mode: str, before: int, after: int, scale: float, align_corners: bool) -> np.ndarray:
    """Return what takes a row of `before` elements to one of `after`."""
    result = np.zeros((after, before))
    for i in range(after):
        if mode == "nearest":
            result[i, min(math.floor(i / scale), before - 1)] = 1
            continue
        center = i * (before - 1) / max(after - 1, 1) if align_corners else (i + 0.5) / scale - 0.5
        for j in range(math.floor(center) - 1, math.floor(center) + 3):
            result[i, min(max(j, 0), before - 1)] += kernel_of(mode, center - j)
    return result


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@given(
    st.lists(st.tuples(st.integers(1, 5), st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0])), min_size=2, max_size=2),
    st.booleans(),
    st.sampled_from(["f32", "f16"]),
    seeds,
)
@few
def test_resize(mode: str, align_corners: bool, sizes: Any, by_scale: bool, dtype: str, seed: int) -> None:
    if align_corners and mode == "nearest":
        with pytest.raises(tp.TripyException, match="align_corners can only be set"):
            tp.resize(tensor(random(0, (1, 1, 2, 2), "f32")), scales=[1, 1, 1, 1], mode=mode, align_corners=True)
        return
    space = [size for size, _ in sizes]
    target = [math.floor(size * scale) for size, scale in sizes]
    if 0 in target:
        return
    x = random(seed, (1, 2, *space), dtype)
    if by_scale:
        scales = [scale for _, scale in sizes]
        result = tp.resize(tensor(x), scales=[1, 1, *scales], mode=mode, align_corners=align_corners)
    else:
        scales = [after / before for after, before in zip(target, space, strict=True)]
        result = tp.resize(tensor(x), output_shape=(1, 2, *target), mode=mode, align_corners=align_corners)
    rows, columns = (
        matrix(mode, before, after, scale, align_corners)
        for before, after, scale in zip(space, target, scales, strict=True)
    )
    assert_agrees(result, rows @ wide(x) @ columns.T, dtype, slack=4, scale=8.0)
