"""Operations that combine elements, against sums that are exact and loops in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import nvtripy as tp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import by_channel, normalized, product
from tensors import FLOATS, NVTRIPY_DTYPES, array, assert_agrees, few, random, seeds, shapes, tensor, wide


@st.composite
def reductions(draw: st.DrawFn) -> tuple[tuple[int, ...], Any, bool]:
    """A shape, the dimensions to reduce, and whether they are kept."""
    shape = draw(shapes(low=1))
    axes = st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True)
    dim = draw(st.none() | st.integers(-len(shape), len(shape) - 1) | axes)
    return shape, dim, draw(st.booleans())


def reduced(function: Callable[[list[float]], float], x: np.ndarray, dim: Any, keepdim: bool) -> np.ndarray:
    """Apply a function of a list to what lies along the dimensions."""
    axes = range(x.ndim) if dim is None else [axis % x.ndim for axis in ([dim] if isinstance(dim, int) else dim)]
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    lists: dict[tuple[int, ...], list[Any]] = {}
    for position in np.ndindex(*x.shape):
        lists.setdefault(tuple(position[axis] for axis in kept), []).append(x[position].item())
    result = np.empty([x.shape[axis] for axis in kept])
    for position, values in lists.items():
        result[position] = function(values)
    return result.reshape([x.shape[axis] if axis in kept else 1 for axis in range(x.ndim)]) if keepdim else result


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


REDUCTIONS: dict[str, tuple[Callable[..., Any], Callable[[list[float]], float]]] = {
    "sum": (tp.sum, math.fsum),
    "mean": (tp.mean, mean),
    "prod": (tp.prod, math.prod),
    "max": (tp.max, max),
    "min": (tp.min, min),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@given(reductions(), st.sampled_from(FLOATS), seeds)
@few
def test_reductions(name: str, case: Any, dtype: str, seed: int) -> None:
    function, reference = REDUCTIONS[name]
    shape, dim, keepdim = case
    x = random(seed, shape, dtype, 0.8, 1.2) if name == "prod" else random(seed, shape, dtype)
    expected = reduced(reference, wide(x), dim, keepdim)
    scale = reduced(reference, np.abs(wide(x)), dim, keepdim)
    assert_agrees(function(tensor(x), dim, keepdim), expected, dtype, scale=scale, slack=20 if name == "prod" else 4)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@given(reductions(), st.sampled_from(["i32", "i64"]), seeds)
@few
def test_reductions_of_integers_are_exact(name: str, case: Any, dtype: str, seed: int) -> None:
    function, reference = REDUCTIONS[name]
    shape, dim, keepdim = case
    x = random(seed, shape, dtype, -1, 1) if name == "prod" else random(seed, shape, dtype, -1000, 1000)
    assert_agrees(function(tensor(x), dim, keepdim), reduced(reference, x, dim, keepdim), dtype)


@pytest.mark.parametrize(("function", "reference"), [(tp.all, all), (tp.any, any)])
@given(reductions(), seeds)
@few
def test_quantifiers(function: Any, reference: Any, case: Any, seed: int) -> None:
    shape, dim, keepdim = case
    x = random(seed, shape, "i1")
    assert_agrees(function(tensor(x), dim, keepdim), reduced(reference, x, dim, keepdim), "i1")


@given(reductions(), st.sampled_from([0, 1]), st.sampled_from(FLOATS), seeds)
@few
def test_variance(case: Any, correction: int, dtype: str, seed: int) -> None:
    shape, dim, keepdim = case

    def variance(values: list[float]) -> float:
        center = mean(values)
        return math.fsum((value - center) ** 2 for value in values) / max(len(values) - correction, 0)

    x = random(seed, shape, dtype)
    if reduced(len, x, dim, False).flat[0] <= correction:
        return
    assert_agrees(tp.var(tensor(x), dim, keepdim, correction), reduced(variance, wide(x), dim, keepdim), dtype,
                  slack=8, scale=16.0)  # fmt: skip


@pytest.mark.parametrize(("function", "best"), [(tp.argmax, max), (tp.argmin, min)])
@given(shapes(low=1), st.booleans(), st.booleans(), st.sampled_from([*FLOATS, "i32", "i64"]), seeds)
@few
def test_the_first_best_element_is_found(
    function: Any, best: Any, shape: Any, everywhere: bool, keepdim: bool, dtype: str, seed: int
) -> None:
    x = np.round(random(seed, shape, dtype, -2, 2))  # with many ties
    dim = None if everywhere else seed % len(shape)
    expected = reduced(lambda values: values.index(best(values)), wide(x), dim, keepdim)
    assert_agrees(function(tensor(x), dim, keepdim), expected, "i32")


@given(shapes(low=1), st.sampled_from([*FLOATS, "i32", "i64"]), seeds)
@few
def test_the_greatest_elements_come_in_order(shape: tuple[int, ...], dtype: str, seed: int) -> None:
    x = random(seed, shape, dtype)
    axis = seed % len(shape)
    k = seed // 11 % shape[axis] + 1
    values, indices = tp.topk(tensor(x), k, axis)
    expected = -np.sort(-wide(x), axis)[tuple(slice(k) if dim == axis else slice(None) for dim in range(len(shape)))]
    assert_agrees(values, expected, dtype)
    np.testing.assert_array_equal(np.take_along_axis(wide(x), array(indices), axis), expected)


@given(shapes(low=1), st.sampled_from(FLOATS), seeds)
@few
def test_running_sums(shape: tuple[int, ...], dtype: str, seed: int) -> None:
    x = random(seed, shape, dtype)
    axis = seed % len(shape)
    scale = np.cumsum(np.abs(wide(x)), axis)
    assert_agrees(tp.cumsum(tensor(x), axis), np.cumsum(wide(x), axis), dtype, slack=4, scale=scale)


@given(shapes(low=1), st.sampled_from(FLOATS), st.floats(-200, 200), seeds)
@few
def test_softmax(shape: tuple[int, ...], dtype: str, shift: float, seed: int) -> None:
    x = random(seed, shape, dtype, shift - 4, shift + 4)
    axis = seed % len(shape)
    powers = np.exp(wide(x) - np.max(wide(x), axis, keepdims=True))
    assert_agrees(tp.softmax(tensor(x), axis), powers / powers.sum(axis, keepdims=True), dtype, slack=4)


@st.composite
def factors(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes of two factors: vectors, matrices, or stacks of them that broadcast together."""
    rows, inner, columns = (draw(st.integers(1, 5)) for _ in range(3))
    batch = draw(shapes(high=2))
    stacks = [
        tuple(size if draw(st.booleans()) else 1 for size in batch[draw(st.integers(0, len(batch))) :])
        for _ in range(2)
    ]
    stacked = (*stacks[0], rows, inner), (*stacks[1], inner, columns)
    # nvtripy takes a vector with a vector or with a matrix only.
    vectors = [((inner,), (inner,)), ((inner,), (inner, columns)), ((rows, inner), (inner,))]
    return draw(st.sampled_from([stacked, stacked, *vectors]))


@given(factors(), st.sampled_from(FLOATS), seeds)
@few
def test_products(case: Any, dtype: str, seed: int) -> None:
    a, b = (random(seed + side, shape, dtype) for side, shape in enumerate(case))
    scale = product(np.abs(wide(a)), np.abs(wide(b)))
    assert_agrees(tensor(a) @ tensor(b), product(wide(a), wide(b)), dtype, slack=2, scale=scale)


@given(st.integers(1, 5), st.integers(1, 5), st.sampled_from(FLOATS), seeds)
@few
def test_outer_products(rows: int, columns: int, dtype: str, seed: int) -> None:
    a, b = random(seed, (rows,), dtype), random(seed + 1, (columns,), dtype)
    assert_agrees(tp.outer(tensor(a), tensor(b)), wide(a)[:, None] * wide(b), dtype)


def filled(module: Any, names: tuple[str, ...], shape: tuple[int, ...], dtype: str, seed: int) -> list[np.ndarray]:
    """Give the module parameters and return them."""
    values = [random(seed + number, shape, dtype) for number, _ in enumerate(names)]
    for name, value in zip(names, values, strict=True):
        setattr(module, name, tensor(value))
    return [wide(value) for value in values]


@given(shapes(low=2), st.sampled_from(FLOATS), st.floats(-50, 50), seeds)
@few
def test_layer_norm(shape: tuple[int, ...], dtype: str, shift: float, seed: int) -> None:
    x = random(seed, shape, dtype, shift - 4, shift + 4)
    own = shape[1 + seed % (len(shape) - 1) :]
    module = tp.LayerNorm(own, dtype=NVTRIPY_DTYPES[dtype], eps=0.1)
    weight, bias = filled(module, ("weight", "bias"), own, dtype, seed)
    groups = list(np.ndindex(*shape[: -len(own)]))
    expected = normalized(wide(x), groups, 0.1) * weight + bias
    assert_agrees(module(tensor(x)), expected, dtype, slack=8, scale=16.0 + abs(shift))


@given(st.integers(1, 3), st.integers(1, 2), shapes(low=1, high=2), st.sampled_from(FLOATS), seeds)
@few
def test_group_norm(groups: int, each: int, space: tuple[int, ...], dtype: str, seed: int) -> None:
    x = random(seed, (2, groups * each, *space), dtype)
    module = tp.GroupNorm(groups, groups * each, dtype=NVTRIPY_DTYPES[dtype], eps=0.1)
    weight, bias = filled(module, ("weight", "bias"), (groups * each,), dtype, seed)
    parts = [(item, slice(g * each, (g + 1) * each)) for item in range(2) for g in range(groups)]
    expected = by_channel(normalized(wide(x), parts, 0.1), weight, bias)
    assert_agrees(module(tensor(x)), expected, dtype, slack=8, scale=16.0)


@given(st.integers(1, 3), shapes(low=1, high=3), st.sampled_from(FLOATS), seeds)
@few
def test_instance_norm(channels: int, space: tuple[int, ...], dtype: str, seed: int) -> None:
    x = random(seed, (2, channels, *space), dtype)
    module = tp.InstanceNorm(channels, dtype=NVTRIPY_DTYPES[dtype], eps=0.1)
    weight, bias = filled(module, ("weight", "bias"), (channels,), dtype, seed)
    expected = by_channel(normalized(wide(x), list(np.ndindex(2, channels)), 0.1), weight, bias)
    assert_agrees(module(tensor(x)), expected, dtype, slack=8, scale=16.0)


@given(st.integers(1, 3), shapes(low=2, high=2), st.sampled_from(FLOATS), seeds)
@few
def test_batch_norm(channels: int, space: tuple[int, ...], dtype: str, seed: int) -> None:
    x = random(seed, (2, channels, *space), dtype)
    module = tp.BatchNorm(channels, dtype=NVTRIPY_DTYPES[dtype], eps=0.1)
    weight, bias, center = filled(module, ("weight", "bias", "running_mean"), (channels,), dtype, seed)
    spread = random(seed, (channels,), dtype, 0.5, 2)
    module.running_var = tensor(spread)
    deviation = np.sqrt(wide(spread) + 0.1)
    standard = by_channel(wide(x), 1 / deviation, -center / deviation)
    expected = by_channel(standard, weight, bias)
    assert_agrees(module(tensor(x)), expected, dtype, slack=8, scale=64.0)


@given(st.integers(1, 9), st.integers(1, 4), shapes(high=3), st.sampled_from(FLOATS), seeds)
@few
def test_embedding(count: int, width: int, shape: tuple[int, ...], dtype: str, seed: int) -> None:
    module = tp.Embedding(count, width, dtype=NVTRIPY_DTYPES[dtype])
    (table,) = filled(module, ("weight",), (count, width), dtype, seed)
    x = random(seed, shape, "i32", 0, count - 1)
    assert_agrees(module(tensor(x)), table[x], dtype)


@given(st.integers(1, 6), st.integers(1, 6), shapes(low=1, high=2), st.sampled_from(FLOATS), st.booleans(), seeds)
@few
def test_linear(inputs: int, outputs: int, batch: Any, dtype: str, has_bias: bool, seed: int) -> None:
    module = tp.Linear(inputs, outputs, bias=has_bias, dtype=NVTRIPY_DTYPES[dtype])
    (weight,) = filled(module, ("weight",), (outputs, inputs), dtype, seed)
    bias = filled(module, ("bias",), (outputs,), dtype, seed)[0] if has_bias else np.zeros(outputs)
    x = random(seed, (*batch, inputs), dtype)
    expected = product(wide(x), weight.T) + bias
    scale = product(np.abs(wide(x)), np.abs(weight.T)) + np.abs(bias)
    assert_agrees(module(tensor(x)), expected, dtype, slack=3, scale=scale)
