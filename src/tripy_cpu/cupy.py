"""Stands in for what nvtripy's examples use of `cupy`, so that they run unchanged where it is missing."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np


class ndarray(np.ndarray[Any, np.dtype[Any]]):  # noqa: N801 - cupy's name
    """An array "on the device"."""

    def get(self) -> Any:
        """Return the array as NumPy's."""
        return self.view(np.ndarray)


def _on_device(function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return np.asarray(function(*args, **kwargs)).view(ndarray)

    return call


def from_dlpack(source: Any) -> Any:
    """Return an array over the memory of `source`."""
    return np.from_dlpack(source).view(ndarray)


def build() -> ModuleType:
    """Return the module: NumPy's names, with the functions that make arrays making those of the device."""
    module = ModuleType("cupy", "NumPy under the name of cupy, made by tripy_cpu.")
    names = ("arange", "array", "asarray", "ascontiguousarray", "copy", "empty", "full", "ones", "zeros")
    vars(module).update({name: getattr(np, name) for name in np.__all__ if hasattr(np, name)})
    vars(module).update({name: _on_device(getattr(np, name)) for name in names})
    vars(module).update({"ndarray": ndarray, "from_dlpack": from_dlpack, "asnumpy": np.asarray})
    return module
