"""Stands in for `mlir_tensorrt.runtime.api`: devices, streams, memory, and sessions that run an executable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tripy_cpu import turnstile
from tripy_cpu.dtypes import NUMPY_DTYPES, ScalarTypeCode, name_of
from tripy_cpu.errors import MTRTException
from tripy_cpu.interpreter import run
from tripy_cpu.memory import MemRefValue, PointerType, as_array, import_capsule, memref
from tripy_cpu.program import Bounds, Input, Program, deserialize, serialize

__all__ = [
    "Device",
    "Executable",
    "MTRTException",
    "MemRefValue",
    "PointerType",
    "RuntimeClient",
    "RuntimeSession",
    "RuntimeSessionOptions",
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
    ) -> MemRefValue:
        """Return memory of `shape`, filled from `array` (anything that NumPy reads) or with zeros."""
        kind = NUMPY_DTYPES[dtype.value]
        data = np.zeros(shape, kind) if array is None else np.array(array, kind).reshape(shape)
        return memref(data, PointerType.host if device is None else PointerType.device)

    def create_memref_view_from_dlpack(self, capsule: Any, assert_canonical_strides: bool = True) -> MemRefValue:
        """Return the memory of a DLPack capsule, not copied, see `memory.import_capsule`."""
        return memref(import_capsule(capsule), PointerType.host)

    def copy_to_host(self, device_memref: MemRefValue) -> MemRefValue:
        """Return a copy on the host."""
        return memref(as_array(device_memref).copy(), PointerType.host)

    def copy_to_device(
        self, host_memref: MemRefValue, device: Device | None = None, stream: Stream | None = None
    ) -> MemRefValue:
        """Return a copy on the device."""
        return memref(as_array(host_memref).copy(), PointerType.device)


@dataclass(frozen=True)
class Signature:
    """What nvtripy asks of a function's signature."""

    results: int

    def get_num_results(self) -> int:
        """Return how many results the function has."""
        return self.results


class Executable:
    """A compiled program.

    Args:
        source: The program, or the bytes that `serialize` returned.
    """

    def __init__(self, source: Program | bytes) -> None:
        self.program = source if isinstance(source, Program) else deserialize(source)

    def get_signature(self, name: str) -> Signature:
        """Return the signature of the program's only function."""
        return Signature(len(self.program.outputs))

    def serialize(self) -> bytes:
        """Return the program as bytes."""
        return serialize(self.program)

    def get_data_segments(self) -> list[tuple[str, bytes]]:
        """Return the program as the one "engine" that the executable holds."""
        return [("tripy_cpu_program", self.serialize())]


@dataclass(frozen=True)
class RuntimeSessionOptions:
    """How a session is to run."""

    num_devices: int = 1
    device_id: int = 0


class RuntimeSession:
    """Runs an executable."""

    def __init__(self, options: RuntimeSessionOptions, executable: Executable) -> None:
        self.program = executable.program

    def execute_function(
        self,
        name: str,
        in_args: Sequence[MemRefValue],
        stream: Stream | None = None,
        client: RuntimeClient | None = None,
    ) -> list[MemRefValue]:
        """Return the function's results as new memory on the device.

        Raises:
            MTRTException: An input does not have the declared type, rank or bounds, or an operation refuses it.
        """
        inputs = [as_array(value) for value in in_args]
        check_inputs(self.program.inputs, inputs)
        try:
            outputs = run(self.program, inputs)
        finally:
            turnstile.leave()
        return [memref(np.array(value, order="C", copy=True), PointerType.device) for value in outputs]


def check_inputs(declared: Sequence[Input], inputs: Sequence[np.ndarray[Any, Any]]) -> None:
    """Refuse inputs of another type, rank, shape or value than was declared, in the texts that nvtripy looks for."""
    for index, (item, array) in enumerate(zip(declared, inputs, strict=True)):
        if name_of(array) != item.type.dtype:
            raise MTRTException(
                f"InvalidArgument: input {index}: function expects a memref type with element type {item.type.dtype}, "
                f"but received {name_of(array)}"
            )
        bounds = item.shape or Bounds(item.type.shape, item.type.shape, item.type.shape)
        if array.ndim != item.type.rank or not _is_within(array.shape, bounds):
            raise MTRTException(
                f"InternalError: failed to set input shape: input {index} has shape {tuple(array.shape)}, "
                f"which is not within {list(bounds.low)} to {list(bounds.high)}"
            )
        if item.values is not None and not _is_within((int(array),), item.values):
            raise MTRTException(
                f"InvalidArgument: input {index} has value {int(array)}, "
                f"which is not within {item.values.low[0]} to {item.values.high[0]}"
            )
    _check_names(declared, inputs)


def _is_within(values: Sequence[int], bounds: Bounds) -> bool:
    return all(low <= value <= high for low, value, high in zip(bounds.low, values, bounds.high, strict=True))


def _check_names(declared: Sequence[Input], inputs: Sequence[np.ndarray[Any, Any]]) -> None:
    sizes: dict[str, int] = {}
    for item, array in zip(declared, inputs, strict=True):
        for dim, name in (item.names or {}).items():
            if sizes.setdefault(name, array.shape[dim]) != array.shape[dim]:
                raise MTRTException(
                    f"InternalError: failed to set input shape: dimensions named '{name}' must be equal, "
                    f"but got {sizes[name]} and {array.shape[dim]}"
                )
