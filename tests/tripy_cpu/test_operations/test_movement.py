"""Operations that only move data, against NumPy's indexing and its functions of the same names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import nvtripy as tp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensors import FLOATS, INTEGERS, NVTRIPY_DTYPES, assert_agrees, few, random, seeds, shapes, tensor, wide

MOVABLE = st.sampled_from([*FLOATS, *INTEGERS, "i1"])
#: What slices in steps, and slices that reach beyond the end, take.
SLICEABLE = st.sampled_from(["f32", "f16", "i32", "i64", "i1"])


@st.composite
def indices(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int | slice, ...]]:
    """A shape, and what stands between the brackets for it or for its first dimensions."""
    shape = draw(shapes(low=1))
    step = st.none() | st.sampled_from([1, 2, 3, -1, -2])

    def inside(size: int) -> st.SearchStrategy[Any]:
        # Before the first element nvtripy starts at it whichever way it goes, other than Python.
        bound = st.none() | st.integers(-size, size + 2)
        return st.integers(-size, size - 1) | st.builds(slice, bound, bound, step)

    return shape, tuple(draw(inside(size)) for size in shape[: draw(st.integers(1, len(shape)))])


@given(indices(), SLICEABLE, seeds)
@few
def test_brackets(case: Any, dtype: str, seed: int) -> None:
    shape, index = case
    x = random(seed, shape, dtype)
    assert_agrees(tensor(x)[index], wide(x[index]), dtype)


@given(indices(), MOVABLE, seeds)
@few
def test_brackets_without_steps(case: Any, dtype: str, seed: int) -> None:
    shape, index = case
    plain = tuple(slice(part.start, part.stop) if isinstance(part, slice) else part for part in index)
    x = random(seed, shape, dtype)
    assert_agrees(tensor(x)[plain], wide(x[plain]), dtype)


@st.composite
def volumes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A shape with possibly empty dimensions, and another one for as many elements in which -1 may stand for one."""
    shape = draw(shapes(smallest=0))
    target = list(draw(st.permutations(shape)))
    if target and draw(st.booleans()):
        target[-1:] = [target[-1], 1]
    if math.prod(shape) and target and draw(st.booleans()):
        target[draw(st.integers(0, len(target) - 1))] = -1
    return shape, tuple(target)


@given(volumes(), st.sampled_from([*FLOATS, *INTEGERS]), seeds)
@few
def test_reshape(case: Any, dtype: str, seed: int) -> None:
    shape, target = case
    x = random(seed, shape, dtype)
    assert_agrees(tp.reshape(tensor(x), target), wide(x.reshape(target)), dtype)


@given(shapes(low=2), MOVABLE, seeds)
@few
def test_dimensions_in_another_order(shape: tuple[int, ...], dtype: str, seed: int) -> None:
    x, order = random(seed, shape, dtype), np.random.default_rng(seed).permutation(len(shape)).tolist()
    assert_agrees(tp.permute(tensor(x), order), wide(x.transpose(order)), dtype)
    assert_agrees(tp.transpose(tensor(x), order[0], -1), wide(x.swapaxes(order[0], -1)), dtype)


@given(shapes(low=1), MOVABLE, seeds)
@few
def test_dimensions_of_size_1_come_and_go(shape: tuple[int, ...], dtype: str, seed: int) -> None:
    x = random(seed, shape, dtype)
    place = seed % (len(shape) + 1)
    more = np.expand_dims(x, place)
    assert_agrees(tp.unsqueeze(tensor(x), place), wide(more), dtype)
    assert_agrees(tp.squeeze(tensor(more), place), wide(x), dtype)
    first, last = sorted((seed % len(shape), seed // 7 % len(shape)))
    flat = x.reshape(*shape[:first], -1, *shape[last + 1 :])
    assert_agrees(tp.flatten(tensor(x), first, last), wide(flat), dtype)


@given(shapes(low=1), MOVABLE, seeds)
@few
def test_expand(shape: tuple[int, ...], dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    own = tuple(size if rng.integers(2) else 1 for size in shape)
    x = random(seed, own[rng.integers(len(own)) :], "f32" if dtype == "i8" else dtype)
    sizes = [
        -1 if have == size and rng.integers(2) else size for have, size in zip(x.shape, shape[-x.ndim :], strict=True)
    ]
    assert_agrees(tp.expand(tensor(x), (*shape[: -x.ndim], *sizes)), wide(np.broadcast_to(x, shape)),
                  "f32" if dtype == "i8" else dtype)  # fmt: skip


@given(shapes(low=1), MOVABLE, seeds)
@few
def test_joining_and_parting(shape: tuple[int, ...], dtype: str, seed: int) -> None:
    axis = seed % len(shape)
    parts = [random(seed + number, (*shape[:axis], number, *shape[axis + 1 :]), dtype) for number in (2, 1, 3)]
    joined = np.concatenate(parts, axis)
    assert_agrees(tp.concatenate([tensor(part) for part in parts], axis - len(shape)), wide(joined), dtype)
    for result, part in zip(tp.split(tensor(joined), [2, 1, 3], axis), parts, strict=True):
        assert_agrees(result, wide(part), dtype)
    for result, part in zip(tp.split(tensor(joined), 3, axis), np.split(joined, 3, axis), strict=True):
        assert_agrees(result, wide(part), dtype)


@given(shapes(), MOVABLE, seeds)
@few
def test_stack(shape: tuple[int, ...], dtype: str, seed: int) -> None:
    parts = [random(seed + number, shape, dtype) for number in range(3)]
    axis = seed % (len(shape) + 1)
    assert_agrees(tp.stack([tensor(part) for part in parts], axis), wide(np.stack(parts, axis)), dtype)


@given(shapes(low=1), shapes(high=3), MOVABLE, st.sampled_from([np.int32, np.int64]), seeds)
@few
def test_gather(shape: tuple[int, ...], count: tuple[int, ...], dtype: str, kind: Any, seed: int) -> None:
    axis = seed % len(shape)
    x = random(seed, shape, dtype)
    index = np.random.default_rng(seed).integers(0, shape[axis], count).astype(kind)
    expected = np.empty((*shape[:axis], *count, *shape[axis + 1 :]))
    for position in np.ndindex(*expected.shape):
        source = index[position[axis : axis + len(count)]]
        expected[position] = x[(*position[:axis], source, *position[axis + len(count) :])]
    assert_agrees(tp.gather(tensor(x), axis, tensor(index)), expected, dtype)


@given(shapes(low=1), st.sampled_from(["f32", "f16", "i32", "i64"]), seeds)
@few
def test_repetition_and_mirroring(shape: tuple[int, ...], dtype: str, seed: int) -> None:
    x = random(seed, shape, dtype)
    axis, times = seed % len(shape), seed % 4
    assert_agrees(tp.repeat(tensor(x), times, axis), wide(np.repeat(x, times, axis)), dtype)
    assert_agrees(tp.flip(tensor(x), axis), wide(np.flip(x, axis)), dtype)
    assert_agrees(tp.flip(tensor(x)), wide(np.flip(x)), dtype)


@given(shapes(low=1), st.sampled_from(["f32", "f16", "i32", "i64", "i1"]), seeds)
@few
def test_padding(shape: tuple[int, ...], dtype: str, seed: int) -> None:
    x = random(seed, shape, dtype)
    rng = np.random.default_rng(seed)
    widths = [(int(low), int(high)) for low, high in rng.integers(0, 4, (len(shape), 2))]
    padded = np.pad(x, widths, constant_values=1)
    assert_agrees(tp.pad(tensor(x), widths, value=1), wide(padded), dtype)
    inner = [(low % size, high % size) for size, (low, high) in zip(shape, widths, strict=True)]
    assert_agrees(tp.pad(tensor(x), inner, mode="reflect"), wide(np.pad(x, inner, mode="reflect")), dtype)


@pytest.mark.parametrize(("function", "reference"), [(tp.tril, np.tril), (tp.triu, np.triu)])
@given(shapes(low=2), st.integers(-5, 5), st.sampled_from(["f32", "f16", "bf16", "i32", "i64"]), seeds)
@few
def test_triangles(function: Any, reference: Any, shape: Any, diagonal: int, dtype: str, seed: int) -> None:
    x = random(seed, shape, dtype)
    assert_agrees(function(tensor(x), diagonal), reference(wide(x), diagonal), dtype)


@given(shapes(low=1), st.sampled_from(["f32", "f16", "bf16", "i32", "i64", "i8", "i1"]), seeds)
@few
def test_tensors_from_nothing(shape: tuple[int, ...], dtype: str, seed: int) -> None:
    kind = NVTRIPY_DTYPES[dtype]
    assert_agrees(tp.ones(shape, dtype=kind), np.ones(shape), dtype)
    assert_agrees(tp.zeros(shape, dtype=kind), np.zeros(shape), dtype)
    assert_agrees(tp.full(shape, seed % 2, dtype=kind), np.full(shape, seed % 2), dtype)
    if dtype != "i8":
        axis = seed % len(shape)
        steps = np.arange(shape[axis]).reshape([-1 if dim == axis else 1 for dim in range(len(shape))])
        expected = np.broadcast_to(steps, shape)
        assert_agrees(tp.iota(shape, axis, kind), expected != 0 if dtype == "i1" else expected, dtype)


@given(st.integers(-20, 20), st.integers(-20, 20), st.sampled_from([1, 2, 3, -1, -2]), st.sampled_from(["f32", "i32"]))
@few
def test_ranges(start: int, stop: int, step: int, dtype: str) -> None:
    expected = np.arange(start, stop, step)
    if len(expected):
        assert_agrees(tp.arange(start, stop, step, dtype=NVTRIPY_DTYPES[dtype]), expected, dtype)


@given(shapes(), MOVABLE)
@few
def test_shapes_are_numbers(shape: tuple[int, ...], dtype: str) -> None:
    x = tensor(random(0, shape, dtype))
    assert x.rank == len(shape)
    assert tuple(int(size) for size in x.shape) == shape
    assert tuple(int(size) for size in (tp.unsqueeze(x, 0)).shape) == (1, *shape)
