"""A reference backend in NumPy that takes the place of `tensorrt` and `mlir_tensorrt` under an unmodified nvtripy.

Call `install` before nvtripy is imported, or use `pytest -p tripy_cpu.pytest_plugin`, or
`python -m tripy_cpu script.py`. Importing this package alone loads nothing else.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from types import ModuleType

__all__ = ["BackendPresentError", "install", "is_installed", "is_real_backend_present", "wanted"]

_REAL_PACKAGES = ("mlir_tensorrt", "tensorrt")
_MARK = "__tripy_cpu__"


class BackendPresentError(RuntimeError):
    """TensorRT is there, so its place is not taken."""


def is_installed() -> bool:
    """Return whether the stand-ins are in place."""
    return hasattr(sys.modules.get("mlir_tensorrt"), _MARK)


def is_real_backend_present() -> bool:
    """Return whether `tensorrt` and `mlir_tensorrt` themselves can be imported, which is found without importing them.

    A namespace package (a folder that happens to have the name, without an `__init__.py`) does not count.
    """
    if is_installed():
        return False
    return all(_is_importable(name) for name in _REAL_PACKAGES)


def _is_importable(name: str) -> bool:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.origin is not None


def wanted() -> bool:
    """Return whether a test run or a script should use the stand-ins.

    That is where there is no real backend, and everywhere if the environment variable `TRIPY_CPU` is `always`.
    """
    return os.environ.get("TRIPY_CPU", "") == "always" or not is_real_backend_present()


def install(force: bool = False) -> None:
    """Put the stand-ins for `tensorrt` and `mlir_tensorrt` into `sys.modules`. A second call does nothing.

    Args:
        force: Take their place even where the real packages can be imported.

    Raises:
        BackendPresentError: The real packages can be imported, and `force` is not set; or nvtripy is already loaded
            with them.
    """
    if is_installed():
        return
    if "nvtripy" in sys.modules:
        raise BackendPresentError("nvtripy is already imported with its own backend: call tripy_cpu.install() before.")
    if not force and is_real_backend_present():
        raise BackendPresentError(
            "tensorrt and mlir_tensorrt are installed, so tripy_cpu does not take their place: "
            "use them, or call tripy_cpu.install(force=True)."
        )
    from tripy_cpu import standins

    modules = standins.build()
    if "cupy" not in sys.modules and not _is_importable("cupy"):
        modules |= standins.build_cupy()
    for module in modules.values():
        setattr(module, _MARK, True)
    _link(modules)
    sys.modules.update(modules)


def _link(modules: Mapping[str, ModuleType]) -> None:
    """Make every submodule an attribute of its parent, as an import would."""
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        if parent in modules:
            setattr(modules[parent], child, module)
