"""Stands in for the runtime's memory: arrays that say where they are, and their exchange through DLPack."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from tripy_cpu.dtypes import NAMES, NUMPY_DTYPES, Array
from tripy_cpu.errors import MTRTException
from tripy_cpu.memref import MemRefValue, PointerType, ScalarTypeCode


class Memory(np.ndarray[Any, np.dtype[Any]], MemRefValue):
    """A block of memory.

    It is an array so that `memoryview` reads it on every version of Python. The element type is told by `dtype` in the
    runtime's terms; use `as_array` for computing.
    """

    @property
    def dtype(self) -> ScalarTypeCode:  # type: ignore[override]
        """The element type."""
        return ScalarTypeCode(NAMES[as_array(self).dtype])

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __dlpack__(self, **_: Any) -> Any:
        """Return a capsule over this memory, which it keeps alive."""
        return export_capsule(as_array(self))

    def __dlpack_device__(self) -> Any:
        """Return the CPU: consumers read the memory from there."""
        return (_CPU, 0)


def memref(array: Array, space: PointerType) -> Memory:
    """Return `array` (not a copy) as memory in `space`."""
    value: Memory = array.view(Memory)
    value.address_space = space
    return value


def as_array(value: Memory) -> Array:
    """Return the memory as an ordinary array."""
    return value.view(np.ndarray)


# --- DLPack, see https://dmlc.github.io/dlpack/latest/c_api.html -----------------------------------------------------

_CPU = 1


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


#: (type code, bits) of DLPack. float8 goes out as a float of 8 bits, the way consumers expect it of TensorRT.
_DLPACK_TYPES = {
    "i1": (6, 8),
    "i4": (0, 4),
    "i8": (0, 8),
    "ui8": (1, 8),
    "i16": (0, 16),
    "i32": (0, 32),
    "i64": (0, 64),
    "f8e4m3fn": (2, 8),
    "f16": (2, 16),
    "bf16": (4, 16),
    "f32": (2, 32),
    "f64": (2, 64),
}
_DLPACK_NAMES = {code: name for name, code in _DLPACK_TYPES.items()}

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)


def _tensor_in(capsule: Any) -> _Tensor:
    try:
        return _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
    except ValueError:
        raise MTRTException("InvalidArgument: expected a DLPack capsule that has not been consumed") from None


def export_capsule(array: Array) -> Any:
    """Return a DLPack capsule over `array`.

    NumPy makes it, over unsigned integers of the same size since it knows neither bfloat16 nor float8; then the type is
    corrected. NumPy's capsule keeps the array alive until its consumer lets go.
    """
    code, bits = _DLPACK_TYPES[NAMES[array.dtype]]
    capsule = array.view(f"u{array.dtype.itemsize}").__dlpack__()
    kind = _tensor_in(capsule).dtype
    kind.code, kind.bits = code, bits
    return capsule


def import_capsule(capsule: Any) -> Array:
    """Return an array over the memory that a DLPack capsule describes; it keeps the capsule alive.

    Raises:
        MTRTException: The memory is not the CPU's, its element type is unknown, or its strides are not those of a
            contiguous array.
    """
    tensor = _tensor_in(capsule)
    if tensor.device_type != _CPU:
        raise MTRTException(f"InvalidArgument: tripy_cpu reads memory of the CPU only, not device {tensor.device_type}")
    name = _DLPACK_NAMES.get((tensor.dtype.code, tensor.dtype.bits))
    if name is None or tensor.dtype.lanes != 1:
        raise MTRTException(f"InvalidArgument: unsupported DLPack type {tensor.dtype.code}:{tensor.dtype.bits}")
    shape = tuple(tensor.shape[dim] for dim in range(tensor.ndim))
    if tensor.strides:
        _check_strides([tensor.strides[dim] for dim in range(tensor.ndim)], shape)
    dtype = NUMPY_DTYPES[name]
    count = math.prod(shape)
    if count == 0:
        return np.empty(shape, dtype)
    memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(tensor.data + tensor.byte_offset)
    memory.capsule = capsule
    return np.frombuffer(memory, dtype).reshape(shape)


def _check_strides(strides: list[int], shape: tuple[int, ...]) -> None:
    canonical = [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
    if 0 in shape:
        return
    if any(have != want for have, want, size in zip(strides, canonical, shape, strict=True) if size != 1):
        raise MTRTException(
            f"InvalidArgument: Given strides {strides} do not match canonical strides {canonical} "
            f"for shape {list(shape)}"
        )
