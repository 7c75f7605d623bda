"""Stands in for `mlir_tensorrt.compiler.dialects`: functions that record operations, names of variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tripy_cpu import ir, plugins

if TYPE_CHECKING:
    from tripy_cpu.kernels import Kernel


def _recorder(kernel: Kernel) -> Callable[..., Any]:
    def record(*args: Any, **kwargs: Any) -> Any:
        arguments = kernel.signature.bind(*args, **kwargs).arguments
        results = ir.record(kernel.name, arguments, kernel.results)
        return results if kernel.results > 1 else results[0]

    return record


class _EnumAttr:
    """The name of a variant of an operation."""

    names: frozenset[str]

    @classmethod
    def get(cls, name: str) -> str:
        """Return `name`.

        Raises:
            ValueError: The operation has no such variant.
        """
        if name not in cls.names:
            raise ValueError(f"{name} is not one of {', '.join(sorted(cls.names))}")
        return name


def _enum_attr(name: str, names: str) -> type[_EnumAttr]:
    return type(name, (_EnumAttr,), {"names": frozenset(f"k{item}" for item in names.split())})


_ENUMS = {
    "ElementWiseOperationAttr": "SUM SUB PROD DIV FLOOR_DIV POW MAX MIN EQUAL LESS GREATER AND OR XOR",
    "UnaryOperationAttr": "EXP LOG SQRT RECIP ABS NEG SIN COS NOT",
    "ActivationTypeAttr": "TANH RELU SIGMOID GELU_ERF",
    "ReduceOperationAttr": "SUM PROD MAX MIN AVG",
    "TopKOperationAttr": "MAX MIN",
    "MatrixOperationAttr": "NONE TRANSPOSE VECTOR",
    "PoolingTypeAttr": "MAX AVERAGE",
    "SliceModeAttr": "DEFAULT FILL REFLECT CLAMP WRAP",
    "ResizeSelectorAttr": "FORMULA UPPER",
    "ResizeCoordinateTransformationAttr": "ASYMMETRIC HALF_PIXEL ALIGN_CORNERS",
    "ResizeRoundModeAttr": "FLOOR CEIL HALF_UP HALF_DOWN",
}


class AffineMap:
    """Stands in for `affine.AffineMap`."""

    @staticmethod
    def get_permutation(permutation: Sequence[int]) -> tuple[int, ...]:
        """Return the permutation as a tuple."""
        return tuple(permutation)


def get_op_result_or_value(value: ir.Value) -> ir.Value:
    """Return `value`: operations and their results are not told apart here."""
    return value


def tensorrt_dialect() -> dict[str, Any]:
    """Return the names in the `tensorrt` dialect: functions that record, and names of variants."""
    from tripy_cpu.kernels import KERNELS  # brings NumPy, which importing nvtripy does not need

    recorders = {kernel.name: _recorder(kernel) for kernel in KERNELS.values()}
    attributes = {attr: _enum_attr(attr, names) for attr, names in _ENUMS.items()}
    return {**recorders, **attributes, "opaque_plugin": plugins.opaque_plugin}
