"""What property-based tests of operations share: tensors of any type and shape, and how near results must be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import nvtripy as tp
from hypothesis import settings
from hypothesis import strategies as st

from tripy_cpu.dtypes import NUMPY_DTYPES, Array
from tripy_cpu.memory import as_array, memref
from tripy_cpu.memref import PointerType

FLOATS = ("f32", "f16", "bf16")
INTEGERS = ("i8", "i32", "i64")
#: The relative rounding error of one operation, and some room for several.
EPSILON = {"f32": 2e-6, "f16": 2e-3, "bf16": 1.6e-2}
NVTRIPY_DTYPES = {
    "f32": tp.float32,
    "f16": tp.float16,
    "bf16": tp.bfloat16,
    "f8e4m3fn": tp.float8,
    "i1": tp.bool,
    "i4": tp.int4,
    "i8": tp.int8,
    "i32": tp.int32,
    "i64": tp.int64,
}

#: Evaluations take milliseconds, so a few examples of each; the same ones in every run, since a failure must come back.
few = settings(max_examples=30, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def shapes(low: int = 0, high: int = 4, smallest: int = 1, greatest: int = 5) -> st.SearchStrategy[tuple[int, ...]]:
    """Return shapes of `low` to `high` dimensions."""
    return st.lists(st.integers(smallest, greatest), min_size=low, max_size=high).map(tuple)


def random(seed: int, shape: Sequence[int], dtype: str, low: float = -4, high: float = 4) -> Array:
    """Return random numbers between `low` and `high` of that type; `low` and `high` are among the integers."""
    rng = np.random.default_rng(seed)
    if dtype == "i1":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype in INTEGERS:
        return rng.integers(int(low), int(high) + 1, shape).astype(NUMPY_DTYPES[dtype])
    return rng.uniform(low, high, shape).astype(NUMPY_DTYPES[dtype])


def tensor(array: Array) -> Any:
    """Return a copy of the array as an nvtripy tensor, of any type."""
    return tp.Tensor(memref(np.array(array), PointerType.host))


def array(result: Any) -> Array:
    """Return what a tensor evaluates to."""
    result.eval()
    return as_array(result.trace_tensor.producer.data)


def wide(values: Array) -> Array:
    """Return values as references compute with them."""
    return values.astype(np.float64)


def assert_agrees(result: Any, expected: Any, dtype: str, *, slack: float = 1, scale: Any = None) -> None:
    """Compare a tensor with the exact result.

    Args:
        result: The tensor.
        expected: The exact result.
        dtype: The type that the tensor must have.
        slack: How many times the type's own error is allowed.
        scale: What the error is relative to, where terms cancel each other; by default the exact result.
    """
    actual = array(result)
    expected = np.asarray(expected)
    assert actual.dtype == NUMPY_DTYPES[dtype]
    assert actual.shape == expected.shape
    if dtype not in EPSILON:
        np.testing.assert_array_equal(actual, expected.astype(actual.dtype))
        return
    limit = EPSILON[dtype] * slack * np.maximum(np.abs(expected if scale is None else scale), 1e-2)
    distance = np.abs(wide(actual) - expected)
    assert np.all(distance <= limit), (actual, expected, distance / limit)
