"""Stands in for what nvtripy's examples use of `cupy`, so that they run unchanged where it is missing."""

from __future__ import annotations

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


def contents() -> dict[str, Any]:
    """Return the module's names: NumPy's, with the functions that make arrays making those of the device."""
    # Of the names that NumPy has already: its submodules load when they are asked for, which takes longer than NumPy.
    names = {name: value for name, value in vars(np).items() if not name.startswith("_")}
    creators = ("arange", "array", "asarray", "ascontiguousarray", "copy", "empty", "full", "ones", "zeros")
    on_device = {name: _on_device(getattr(np, name)) for name in creators}
    return {**names, **on_device, "ndarray": ndarray, "from_dlpack": from_dlpack, "asnumpy": np.asarray}
