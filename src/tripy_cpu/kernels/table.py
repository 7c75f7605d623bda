"""The table of kernels, and how one is called."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tripy_cpu.dtypes import HALVES, Array
from tripy_cpu.errors import RefusedError

Dims: TypeAlias = Sequence[int]


@dataclass(frozen=True)
class Kernel:
    """An operation.

    Attributes:
        name: The name of the operation.
        function: Its definition.
        signature: The operation's parameters.
        wide: Whether float16 and bfloat16 are computed in float32 and rounded once, as TensorRT accumulates them.
        results: How many results it has.
    """

    name: str
    function: Callable[..., Any]
    signature: inspect.Signature
    wide: bool
    results: int

    def run(self, arguments: Mapping[str, Any], half: np.dtype[Any] | None) -> tuple[Array, ...]:
        """Return the results for these operands and attributes.

        Args:
            arguments: The operands and attributes.
            half: The type to compute in float32 and round to, if there is one among the operands, see `half_of`.

        Raises:
            RefusedError: The operands do not fit each other.
        """
        if half is not None:
            arguments = {name: _widen(value) for name, value in arguments.items()}
        outcome = self.function(**arguments)
        results = tuple(map(np.asarray, outcome)) if self.results > 1 else (np.asarray(outcome),)
        if half is not None:
            return tuple(value.astype(half) if value.dtype == np.float32 else value for value in results)
        return results


KERNELS: dict[str, Kernel] = {}


def kernel(*, wide: bool = False, results: int = 1) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the decorated function into the table under its own name (without a trailing underscore)."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__.rstrip("_")
        KERNELS[name] = Kernel(name, function, inspect.signature(function), wide, results)
        return function

    return enter


def half_of(arguments: Mapping[str, Any]) -> np.dtype[Any] | None:
    """Return the type of the first operand in float16 or bfloat16, which TensorRT accumulates in float32."""
    for value in arguments.values():
        if isinstance(value, np.ndarray) and value.dtype in HALVES:
            return np.dtype(value.dtype)
    return None


def _widen(value: Any) -> Any:
    return value.astype(np.float32) if isinstance(value, np.ndarray) and value.dtype in HALVES else value


def along(values: Array, axis: int, rank: int) -> Array:
    """Return a list of values as an array of `rank` dimensions that varies along `axis` only."""
    return values.reshape([-1 if dim == axis else 1 for dim in range(rank)])


def check_conformable(*arrays: Array) -> None:
    """Refuse arrays that have not the same rank and, apart from sizes of 1, the same shape.

    Raises:
        RefusedError: They do not fit each other.
    """
    if len({array.shape for array in arrays}) == 1:
        return
    if len({array.ndim for array in arrays}) == 1:
        with contextlib.suppress(ValueError):
            np.broadcast(*arrays)
            return
    shapes = " and ".join(str(array.shape) for array in arrays)
    raise RefusedError(f"broadcast dimensions must be conformable, but the shapes are {shapes}")
