"""The modules that nvtripy imports, made of the parts of this package."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tripy_cpu import compiler, cupy, dialect, ir, plugins, runtime

#: The version of TensorRT whose behavior the kernels follow.
TENSORRT_VERSION = plugins.Version("10.11.0.33+tripy.cpu")


class DataType(enum.Enum):
    """TensorRT's data types, by which plugins describe their operands."""

    FLOAT = 0
    HALF = 1
    INT8 = 2
    INT32 = 3
    BOOL = 4
    UINT8 = 5
    FP8 = 6
    BF16 = 7
    INT64 = 8
    INT4 = 9


_DATA_TYPE_NAMES = {
    "float32": DataType.FLOAT,
    "float16": DataType.HALF,
    "bfloat16": DataType.BF16,
    "fp8": DataType.FP8,
    "int4": DataType.INT4,
    "int8": DataType.INT8,
    "int32": DataType.INT32,
    "int64": DataType.INT64,
    "bool": DataType.BOOL,
}


def _module(name: str, contents: Mapping[str, Any], is_package: bool = False) -> ModuleType:
    module = ModuleType(name, "Made by tripy_cpu.")
    module.__spec__ = ModuleSpec(name, None, is_package=is_package)
    if is_package:
        module.__path__ = []
    vars(module).update(contents)
    return module


def build() -> dict[str, ModuleType]:
    """Return the stand-ins by name."""
    compiler_name = "mlir_tensorrt.compiler"
    dialects_name = f"{compiler_name}.dialects"
    modules = [
        _module("tensorrt", {"__version__": TENSORRT_VERSION, "DataType": DataType, **_DATA_TYPE_NAMES}, True),
        _module("tensorrt.plugin", {"op": plugins.Namespace(), "__getattr__": plugins.missing_attribute}),
        _module("mlir_tensorrt", {}, True),
        _module(compiler_name, {}, True),
        _module(f"{compiler_name}.ir", vars_of(ir)),
        _module(f"{compiler_name}.api", vars_of(compiler)),
        _module(dialects_name, {}, True),
        _module(f"{dialects_name}.func", {"FuncOp": ir.FuncOp, "ReturnOp": ir.record_return}),
        _module(f"{dialects_name}.affine", {"AffineMap": dialect.AffineMap}),
        _module(f"{dialects_name}._ods_common", {"get_op_result_or_value": dialect.get_op_result_or_value}),
        dialect.tensorrt_dialect(f"{dialects_name}.tensorrt"),
        _module("mlir_tensorrt.runtime", {}, True),
        _module("mlir_tensorrt.runtime.api", vars_of(runtime)),
    ]
    return {module.__name__: module for module in modules}


def vars_of(module: ModuleType) -> dict[str, Any]:
    """Return the public names of a module."""
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


def build_cupy() -> dict[str, ModuleType]:
    """Return the look-alike of cupy by name."""
    return {"cupy": cupy.build()}
