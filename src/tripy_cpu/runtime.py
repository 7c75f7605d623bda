"""Stands in for `mlir_tensorrt.runtime.api`: devices, streams and memory.

Importing nvtripy must not import NumPy, and nvtripy's first threads race for its only client, so that is made at once:
what needs NumPy is imported by the methods that do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tripy_cpu.errors import MTRTException
from tripy_cpu.executable import Executable
from tripy_cpu.memref import MemRefValue, PointerType, ScalarTypeCode

if TYPE_CHECKING:
    from tripy_cpu.memory import Memory

__all__ = [
    "Device",
    "Executable",
    "MTRTException",
    "MemRefValue",
    "PointerType",
    "RuntimeClient",
    "ScalarTypeCode",
    "Stream",
]


@dataclass(frozen=True)
class Device:
    """The device: one, which is the CPU."""

    index: int = 0


class Stream:
    """A queue of work. Work is done at once here, so there is never anything to wait for."""

    @property
    def ptr(self) -> int:
        """A number that tells streams apart."""
        return id(self)

    def sync(self) -> None:
        """Wait for nothing."""


class RuntimeClient:
    """Allocates and copies memory."""

    def get_devices(self) -> list[Device]:
        """Return the only device."""
        return [Device()]

    def create_stream(self) -> Stream:
        """Return a new stream."""
        return Stream()

    def create_memref(
        self,
        array: Any = None,
        /,
        *,
        shape: Sequence[int],
        dtype: ScalarTypeCode,
        device: Device | None = None,
        stream: Stream | None = None,
    ) -> Memory:
        """Return memory of `shape`, filled from `array` (anything that NumPy reads) or with zeros."""
        import numpy as np

        from tripy_cpu.dtypes import NUMPY_DTYPES
        from tripy_cpu.memory import memref

        kind = NUMPY_DTYPES[dtype.value]
        data = np.zeros(shape, kind) if array is None else np.array(array, kind).reshape(shape)
        return memref(data, PointerType.host if device is None else PointerType.device)

    def create_memref_view_from_dlpack(self, capsule: Any, assert_canonical_strides: bool = True) -> Memory:
        """Return the memory of a DLPack capsule, not copied, see `memory.import_capsule`."""
        from tripy_cpu.memory import import_capsule, memref

        return memref(import_capsule(capsule), PointerType.host)

    def copy_to_host(self, device_memref: Memory) -> Memory:
        """Return a copy on the host."""
        from tripy_cpu.memory import as_array, memref

        return memref(as_array(device_memref).copy(), PointerType.host)

    def copy_to_device(self, host_memref: Memory, device: Device | None = None, stream: Stream | None = None) -> Memory:
        """Return a copy on the device."""
        from tripy_cpu.memory import as_array, memref

        return memref(as_array(host_memref).copy(), PointerType.device)
