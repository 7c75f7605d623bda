"""The modules that nvtripy imports, made of the parts of this package.

Those that need NumPy are filled when something is first asked of them, so importing nvtripy does not import NumPy.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tripy_cpu import compiler, dialect, ir, plugins, runtime

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


def _lazy_module(name: str, load: Callable[[], Mapping[str, Any]], contents: Mapping[str, Any]) -> ModuleType:
    """Return a module that has `contents` at once and what `load` returns as soon as another name is asked for."""
    module = _module(name, contents)

    def missing(attribute: str) -> Any:
        if not attribute.startswith("__"):
            vars(module).update(load())
        try:
            return vars(module)[attribute]
        except KeyError:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}") from None

    module.__getattr__ = missing  # type: ignore[method-assign]  # see PEP 562
    return module


def _session() -> dict[str, Any]:
    from tripy_cpu import session

    return vars_of(session)


def _from_cupy(name: str) -> Any:
    from tripy_cpu import cupy

    return cupy.lookup(name)


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
        _lazy_module(f"{dialects_name}.tensorrt", dialect.tensorrt_dialect, {}),
        _module("mlir_tensorrt.runtime", {}, True),
        _lazy_module("mlir_tensorrt.runtime.api", _session, vars_of(runtime)),
    ]
    return {module.__name__: module for module in modules}


def vars_of(module: ModuleType) -> dict[str, Any]:
    """Return the public names of a module."""
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


def build_cupy() -> dict[str, ModuleType]:
    """Return the look-alike of cupy by name."""
    return {"cupy": _module("cupy", {"__getattr__": _from_cupy})}
