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


_CREATOR_NAMES = (
    "arange array asarray ascontiguousarray concatenate copy diag empty empty_like eye full full_like identity "
    "linspace ones ones_like stack tri tril triu where zeros zeros_like"
)
_CREATORS = frozenset(_CREATOR_NAMES.split())


def _on_device(function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return np.asarray(function(*args, **kwargs)).view(ndarray)

    return call


def from_dlpack(source: Any) -> Any:
    """Return an array over the memory of `source`."""
    return np.from_dlpack(source).view(ndarray)


_OWN = {"ndarray": ndarray, "from_dlpack": from_dlpack, "asnumpy": np.asarray, "random": _Random()}


def lookup(name: str) -> Any:
    """Return what `cupy` has under a name.

    Raises:
        AttributeError: It has nothing.
    """
    if name in _OWN:
        return _OWN[name]
    if name.startswith("_") or not hasattr(np, name):
        raise AttributeError(f"tripy_cpu's look-alike of cupy has no {name!r}: it has what NumPy has")
    value = getattr(np, name)
    return _on_device(value) if name in _CREATORS else value
