"""Stands in for `mlir_tensorrt.runtime.api.RuntimeSession`: runs an executable on memory."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from tripy_cpu import turnstile
from tripy_cpu.dtypes import Array, name_of
from tripy_cpu.errors import MTRTException
from tripy_cpu.executable import Executable
from tripy_cpu.interpreter import Runner
from tripy_cpu.memory import Memory, as_array, memref
from tripy_cpu.memref import PointerType
from tripy_cpu.program import Bounds, Input
from tripy_cpu.runtime import RuntimeClient, Stream


@dataclass(frozen=True)
class RuntimeSessionOptions:
    """How a session is to run."""

    num_devices: int = 1
    device_id: int = 0


class RuntimeSession:
    """Runs an executable."""

    def __init__(self, options: RuntimeSessionOptions, executable: Executable) -> None:
        self._runner = Runner(executable.program)

    def execute_function(
        self,
        name: str,
        in_args: Sequence[Memory],
        stream: Stream | None = None,
        client: RuntimeClient | None = None,
    ) -> list[Memory]:
        """Return the function's results as new memory on the device.

        Raises:
            MTRTException: An input does not have the declared type, rank or bounds, or an operation refuses it.
        """
        inputs = [as_array(value) for value in in_args]
        check_inputs(self._runner.program.inputs, inputs)
        try:
            outputs = self._runner.run(inputs)
        finally:
            turnstile.leave()
        return [memref(value, PointerType.device) for value in _own(outputs, self._runner.kept(inputs))]


def _own(outputs: Sequence[Array], kept: Set[int]) -> list[Array]:
    """Return the outputs in memory of their own: those that no kernel has just made are copied.

    Args:
        outputs: The outputs.
        kept: The identities of arrays that outlive the run.
    """
    taken = set(kept)
    result = []
    for value in outputs:
        flags = value.flags
        is_new = flags.owndata and flags.c_contiguous and id(value) not in taken
        taken.add(id(value))
        result.append(value if is_new else np.array(value, order="C", copy=True))
    return result


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
