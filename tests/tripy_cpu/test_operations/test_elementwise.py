"""Operations on each element by itself, against Python's own arithmetic on numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import nvtripy as tp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensors import EPSILON, FLOATS, INTEGERS, NVTRIPY_DTYPES, array, assert_agrees, few, random, seeds, shapes, tensor

from tripy_cpu.dtypes import NUMPY_DTYPES


def each(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """Apply a function of Python numbers to the elements of arrays that are broadcast together."""
    shape = np.broadcast_shapes(*(item.shape for item in arrays))
    result = np.empty(shape, object)
    for position in np.ndindex(*shape):
        numbers = []
        for item in arrays:
            own = position[len(shape) - item.ndim :]
            place = tuple(0 if size == 1 else index for index, size in zip(own, item.shape, strict=True))
            numbers.append(item[place].astype(np.float64).item() if item.dtype.kind not in "bi" else item[place].item())
        result[position] = function(*numbers)
    return result.astype(np.float64)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[float], float], float]] = {
    "exp": (tp.exp, math.exp, -4),
    "log": (tp.log, math.log, 0.1),
    "sqrt": (tp.sqrt, math.sqrt, 0),
    "rsqrt": (tp.rsqrt, lambda x: 1 / math.sqrt(x), 0.1),
    "sin": (tp.sin, math.sin, -4),
    "cos": (tp.cos, math.cos, -4),
    "tanh": (tp.tanh, math.tanh, -4),
    "abs": (abs, abs, -4),
    "neg": (operator.neg, operator.neg, -4),
    "relu": (tp.relu, lambda x: max(x, 0.0), -4),
    "sigmoid": (tp.sigmoid, sigmoid, -4),
    "gelu": (tp.gelu, lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2, -4),
    "silu": (tp.silu, lambda x: x * sigmoid(x), -4),
}


@pytest.mark.parametrize("name", UNARY)
@given(shapes(), st.sampled_from(FLOATS), seeds)
@few
def test_functions_of_one_tensor(name: str, shape: tuple[int, ...], dtype: str, seed: int) -> None:
    function, reference, low = UNARY[name]
    x = random(seed, shape, dtype, low)
    expected = each(reference, x)
    # Far below zero the activations are differences of numbers as great as their argument.
    scale = np.maximum(np.abs(expected), np.abs(x)) if name in ("gelu", "silu") else None
    assert_agrees(function(tensor(x)), expected, dtype, slack=2, scale=scale)


@pytest.mark.parametrize("function", [abs, operator.neg])
@given(shapes(), st.sampled_from(INTEGERS), seeds)
@few
def test_integers_stay_integers(function: Any, shape: tuple[int, ...], dtype: str, seed: int) -> None:
    x = random(seed, shape, dtype, -100, 100)
    assert_agrees(function(tensor(x)), each(function, x), dtype)


@st.composite
def operands(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast together, of one rank or of two."""
    common = draw(shapes())
    sides = []
    for _ in range(2):
        own = common[draw(st.integers(0, len(common))) :]
        sides.append(tuple(size if draw(st.booleans()) else 1 for size in own))
    return sides[0], sides[1]


BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "add": (operator.add, operator.add),
    "sub": (operator.sub, operator.sub),
    "mul": (operator.mul, operator.mul),
    "maximum": (tp.maximum, max),
    "minimum": (tp.minimum, min),
    "floor_div": (operator.floordiv, operator.floordiv),
    "mod": (operator.mod, operator.mod),
}


@pytest.mark.parametrize("name", BINARY)
@given(operands(), st.sampled_from(FLOATS + INTEGERS), seeds)
@few
def test_functions_of_two_tensors(name: str, sides: Any, dtype: str, seed: int) -> None:
    function, reference = BINARY[name]
    # Whole numbers, so that floor and remainder do not hang on the rounding of a quotient.
    x, y = (np.round(random(seed + side, shape, dtype, -9, 9)) for side, shape in enumerate(sides))
    y = np.where(y == 0, np.ones_like(y), y) if name in ("floor_div", "mod") else y
    assert_agrees(function(tensor(x), tensor(y)), each(reference, x, y), dtype)


@given(operands(), st.sampled_from(FLOATS + INTEGERS), seeds)
@few
def test_division_truncates_integers_only(sides: Any, dtype: str, seed: int) -> None:
    x, y = (random(seed + side, shape, dtype, -9, 9) for side, shape in enumerate(sides))
    y = np.where(np.abs(y) < 0.5, np.ones_like(y), y)

    def quotient(a: Any, b: Any) -> Any:
        return math.trunc(Fraction(a, b)) if dtype in INTEGERS else a / b

    assert_agrees(tensor(x) / tensor(y), each(quotient, x, y), dtype)


@given(operands(), st.sampled_from([*FLOATS, "i8", "i64"]), seeds)
@few
def test_powers(sides: Any, dtype: str, seed: int) -> None:
    is_float = dtype in FLOATS
    x = random(seed, sides[0], dtype, 0.1 if is_float else -3, 3)
    y = random(seed + 1, sides[1], dtype, -3 if is_float else 0, 3)
    assert_agrees(tensor(x) ** tensor(y), each(operator.pow, x, y), dtype, slack=2)


COMPARISONS = [operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt]


@pytest.mark.parametrize("function", COMPARISONS)
@given(operands(), st.sampled_from([*FLOATS, *INTEGERS, "i1"]), seeds)
@few
def test_comparisons(function: Any, sides: Any, dtype: str, seed: int) -> None:
    x, y = (np.round(random(seed + side, shape, dtype, -2, 2)) for side, shape in enumerate(sides))
    x, y = x.astype(NUMPY_DTYPES[dtype]), y.astype(NUMPY_DTYPES[dtype])
    assert_agrees(function(tensor(x), tensor(y)), each(function, x, y), "i1")


@given(operands(), seeds)
@few
def test_logic(sides: Any, seed: int) -> None:
    x, y = (random(seed + side, shape, "i1") for side, shape in enumerate(sides))
    assert_agrees(tensor(x) | tensor(y), each(operator.or_, x, y), "i1")
    assert_agrees(~tensor(x), each(operator.not_, x), "i1")


@given(operands(), st.sampled_from([*FLOATS, *INTEGERS]), seeds)
@few
def test_selection(sides: Any, dtype: str, seed: int) -> None:
    x, y = (random(seed + side, shape, dtype) for side, shape in enumerate(sides))
    condition = random(seed + 2, np.broadcast_shapes(*sides), "i1")
    expected = each(lambda c, a, b: a if c else b, condition, x, y)
    assert_agrees(tp.where(tensor(condition), tensor(x), tensor(y)), expected, dtype)
    assert_agrees(tp.masked_fill(tensor(x), tensor(random(seed, x.shape, "i1")), 7),
                  each(lambda c, a: 7 if c else a, random(seed, x.shape, "i1"), x), dtype)  # fmt: skip


LIMITS = {"i8": (-(2**7), 2**7 - 1), "i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1)}


def rounded(numbers: Iterable[Any], dtype: str) -> np.ndarray:
    """Return the numbers in the type, rounded in single precision first, as they are between types."""
    with np.errstate(over="ignore"):
        return np.array([np.float32(number) for number in numbers], np.float32).astype(NUMPY_DTYPES[dtype])


@given(
    st.lists(st.floats(width=32), min_size=1, max_size=8),
    st.sampled_from(FLOATS),
    st.sampled_from([*FLOATS, *INTEGERS, "i1"]),
)
@few
def test_casts_of_any_floating_point_number(numbers: list[float], source: str, target: str) -> None:
    x = rounded(numbers, source)
    actual = array(tp.cast(tensor(x), NVTRIPY_DTYPES[target]))
    assert actual.dtype == NUMPY_DTYPES[target]
    if target in FLOATS:
        np.testing.assert_equal(actual.astype(np.float64), rounded(x.tolist(), target).astype(np.float64))
        return
    for number, result in zip(x.astype(np.float64).tolist(), actual.tolist(), strict=True):
        if target == "i1":
            assert result == (number != 0)
        elif math.isnan(number):
            assert result == 0
        else:
            low, high = LIMITS[target]
            assert result == (high if number >= high else low if number <= low else math.trunc(number))


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200), min_size=1, max_size=8),
    st.sampled_from([*INTEGERS, "i1"]),
    st.sampled_from([*FLOATS, *INTEGERS, "i1"]),
)
@few
def test_casts_of_any_integer(numbers: list[int], source: str, target: str) -> None:
    if (source, target) == ("i8", "i1"):
        return  # refused, see test_rules
    numbers = [wrapped(number, source) for number in numbers]
    actual = array(tp.cast(tensor(np.array(numbers, NUMPY_DTYPES[source])), NVTRIPY_DTYPES[target]))
    assert actual.dtype == NUMPY_DTYPES[target]
    if target in FLOATS:
        np.testing.assert_allclose(
            actual.astype(np.float64), rounded(numbers, target).astype(np.float64), rtol=EPSILON[target]
        )
    else:
        assert actual.tolist() == [wrapped(number, target) for number in numbers]


def wrapped(number: int, dtype: str) -> int:
    """Return what is left of the number in as many bits; for bool, whether it is not 0."""
    if dtype == "i1":
        return number != 0
    low, high = LIMITS[dtype]
    return (number - low) % (high - low + 1) + low
