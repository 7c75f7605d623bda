"""Plugins are compiled code for TensorRT: whatever would load or run one says so, naming it."""

from __future__ import annotations

import re
from typing import Any

from tripy_cpu import ir
from tripy_cpu.errors import MTRTException


def plugin_error(name: str) -> MTRTException:
    """Return the error for the plugin `name`, with the location of what is being recorded."""
    location = ir.current_location()
    return MTRTException(
        f"plugin '{name}' cannot run on tripy_cpu: plugins need TensorRT and a GPU. "
        "Run this on a machine that has them, or use operations of nvtripy instead.",
        location.text if location is not None else "",
    )


def opaque_plugin(results: object, name: str, *_: object) -> Any:
    """Refuse a plugin.

    Raises:
        MTRTException: Always.
    """
    raise plugin_error(name)


class Version(str):
    """The version of TensorRT.

    Before its first plugin nvtripy takes the version apart to load the library of that major version. That is the
    first moment at which the backend is asked, so this is where the plugin is refused; nvtripy describes it in the
    metadata of the current location.
    """

    def partition(self, separator: str) -> tuple[str, str, str]:
        """Split at the separator, except while a plugin is recorded.

        Raises:
            MTRTException: A plugin is being recorded.
        """
        location = ir.current_location()
        if location is not None:
            found = re.search(r"\bplugin\(.*?\bname=([^,)]*)", location.metadata)
            raise plugin_error(found[1] if found else "?")
        return super().partition(separator)


class Namespace:
    """Where `tensorrt.plugin` would keep plugins, by namespace and name."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Namespace:
        if self._prefix:
            raise plugin_error(f"{self._prefix}::{name}")
        return Namespace(name)


def missing_attribute(name: str) -> Any:
    """Refuse an attribute of `tensorrt.plugin`, by which plugins are written.

    Raises:
        AttributeError: Always, with the reason.
    """
    raise AttributeError(f"tensorrt.plugin.{name} is not there on tripy_cpu: plugins need TensorRT and a GPU")
