"""Stands in for what nvtripy's examples and tests use of `cupy`, so that they run unchanged where it is missing.

Every name of NumPy is there; what makes an array makes one that has `get`.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class ndarray(np.ndarray[Any, np.dtype[Any]]):  # noqa: N801 - cupy's name
    """An array "on the device"."""

    def get(self) -> Any:
        """Return the array as NumPy's."""
        return self.view(np.ndarray)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Return a result as an array, also where NumPy would return a number."""
        return np.asarray(array).view(ndarray)


class _Random:
    """The functions of `numpy.random`."""

    def __getattr__(self, name: str) -> Any:
        return _on_device(getattr(np.random, name))


_CREATORS = (
    "arange array asarray ascontiguousarray concatenate copy diag empty empty_like eye full full_like identity "
    "linspace ones ones_like stack tri tril triu where zeros zeros_like"
)


def _on_device(function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return np.asarray(function(*args, **kwargs)).view(ndarray)

    return call


def from_dlpack(source: Any) -> Any:
    """Return an array over the memory of `source`."""
    return np.from_dlpack(source).view(ndarray)


def lookup(name: str) -> Any:
    """Return what `cupy` has under a name.

    Raises:
        AttributeError: It has nothing.
    """
    if name.startswith("_"):
        raise AttributeError(f"module 'cupy' has no attribute {name!r}")
    match name:
        case "ndarray":
            return ndarray
        case "from_dlpack":
            return from_dlpack
        case "asnumpy":
            return np.asarray
        case "random":
            return _Random()
        case _:
            try:
                value = getattr(np, name)
            except AttributeError:
                message = f"tripy_cpu's look-alike of cupy has no {name!r}: it has what NumPy has"
                raise AttributeError(message) from None
            return _on_device(value) if name in _CREATORS.split() else value
