"""Stands in for `mlir_tensorrt.compiler.api`: turns a recorded module into an executable."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tripy_cpu import ir
from tripy_cpu.executable import Executable
from tripy_cpu.plugins import plugin_error

__all__ = [
    "CompilationTask",
    "CompilerClient",
    "Executable",
    "PluginFieldInfo",
    "PluginFieldType",
    "get_tensorrt_plugin_field_schema",
    "translate_mlir_to_executable",
]


class PluginFieldType(enum.Enum):
    """Types of a plugin's fields. nvtripy names them when imported."""

    FLOAT16 = 0
    FLOAT32 = 1
    FLOAT64 = 2
    INT8 = 3
    INT16 = 4
    INT32 = 5
    CHAR = 6
    DIMS = 7
    UNKNOWN = 8
    BF16 = 9
    INT64 = 10
    FP8 = 11
    INT4 = 12


@dataclass(frozen=True)
class PluginFieldInfo:
    """A field of a plugin."""

    type: PluginFieldType
    length: int


def get_tensorrt_plugin_field_schema(
    name: str, version: str, namespace: str, dso_path: str
) -> Mapping[str, PluginFieldInfo]:
    """Refuse a plugin.

    Raises:
        MTRTException: Always.
    """
    raise plugin_error(name)


class CompilationTask:
    """Compiles a module."""

    def run(self, operation: ir.ModuleOperation) -> None:
        """Compile it: afterwards the operation holds the finished program.

        Raises:
            MTRTException: An operation was refused; it carries the operation's location.
        """
        from tripy_cpu.optimizer import prepare  # brings NumPy, which importing nvtripy does not need

        operation.program = prepare(operation.body.functions[0].program())


class CompilerClient:
    """Makes compilation tasks."""

    def __init__(self, context: ir.Context) -> None:
        self.context = context

    def get_compilation_task(self, name: str, options: Sequence[str]) -> CompilationTask:
        """Return a task. The options tune TensorRT, so they do not matter here."""
        return CompilationTask()


def translate_mlir_to_executable(operation: Any) -> Executable:
    """Return the executable of a compiled module."""
    return Executable(operation.program)
