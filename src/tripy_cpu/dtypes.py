"""The nine data types of nvtripy and their NumPy representation."""

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


#: int4 takes a byte an element here: nothing that nvtripy exports depends on its packing.
NUMPY_DTYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "f64": np.dtype(np.float64),
    "i1": np.dtype(np.bool_),
    "i4": np.dtype(ml_dtypes.int4),
    "i8": np.dtype(np.int8),
    "ui8": np.dtype(np.uint8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
}

NAMES: dict[np.dtype[Any], str] = {dtype: name for name, dtype in NUMPY_DTYPES.items()}

#: Kernels compute these in float32 and round once, as TensorRT accumulates them.
HALVES = frozenset({NUMPY_DTYPES["f16"], NUMPY_DTYPES["bf16"]})

#: The largest finite value of float8 e4m3fn; TensorRT saturates there.
FLOAT8_MAX = 448.0


def name_of(array: Array) -> str:
    """Return the element type of `array` as the runtime names it."""
    return NAMES[array.dtype]


def saturate(values: Array, dtype: np.dtype[Any], low: int, high: int) -> Array:
    """Convert whole floating-point `values` to integers, clipping to [`low`, `high`]; NaN becomes 0.

    The upper bound is put in afterwards since 2**63 - 1 has no floating-point representation.
    """
    wide = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    clipped = np.where(wide >= high, 0, np.maximum(wide, low)).astype(np.int64)
    return np.where(wide >= high, high, clipped).astype(dtype)
