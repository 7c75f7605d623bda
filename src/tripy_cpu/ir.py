"""Stands in for `mlir_tensorrt.compiler.ir`: types, attributes, and what records a function while nvtripy builds it.

Attributes are plain Python data here: whatever a kernel can use as it is.
"""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tripy_cpu import turnstile
from tripy_cpu.program import DYNAMIC, Bounds, Input, Instruction, Program, Ref, TensorType

if TYPE_CHECKING:
    from tripy_cpu.dtypes import Array


class _Scopes(threading.local):
    """Where each thread inserts operations, and the location that they get."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.locations: list[Location] = []


_SCOPES = _Scopes()


class _Scope:
    """Something that nvtripy enters with `with`."""

    def __enter__(self) -> _Scope:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None


class Context(_Scope):
    """The compiler's context."""

    def enable_multithreading(self, enabled: bool) -> None:
        """Called by nvtripy whenever it is about to compile: evaluations queue up here, see `turnstile`."""
        turnstile.enter()


@dataclass(frozen=True)
class Location(_Scope):
    """The origin of the operations that are recorded within it.

    Attributes:
        text: Its name.
        metadata: What nvtripy tells about the operation.
    """

    text: str = ""
    metadata: str = ""

    @staticmethod
    def unknown() -> Location:
        """Return the location of operations without an origin."""
        return Location()

    @staticmethod
    def name(text: str) -> Location:
        """Return a named location; nvtripy names them `inputs;;<out>;;outputs`."""
        return Location(text)

    @staticmethod
    def fused(locations: Sequence[Location], metadata: str = "") -> Location:
        """Return the first of several locations with the metadata."""
        return Location(locations[0].text, metadata)

    def __str__(self) -> str:
        """Return the location as the compiler prints it, from which nvtripy reads the names back."""
        if not self.text:
            return "loc(unknown)"
        return f'loc(fused<"{self.metadata}">["{self.text}"])' if self.metadata else f'loc("{self.text}")'

    def __enter__(self) -> Location:
        _SCOPES.locations.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _SCOPES.locations.pop()


class InsertionPoint(_Scope):
    """Operations created within it go to the end of `block`."""

    def __init__(self, block: Block) -> None:
        self.block = block

    def __enter__(self) -> InsertionPoint:
        _SCOPES.blocks.append(self.block)
        return self

    def __exit__(self, *_: object) -> None:
        _SCOPES.blocks.pop()


# --- types ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Type:
    """An element type."""

    name: str

    def __str__(self) -> str:
        return self.name


class FloatType(Type):
    """A floating-point type."""


class IntegerType(Type):
    """An integer type."""

    @staticmethod
    def get_signless(width: int) -> Type:
        """Return the integer type of `width` bits."""
        return _INTEGERS[width]


_INTEGERS = {width: IntegerType(f"i{width}") for width in (1, 4, 8, 16, 32, 64)}


def _float_type(class_name: str, name: str) -> type[FloatType]:
    instance = FloatType(name)
    return type(class_name, (FloatType,), {"get": staticmethod(lambda: instance), "__doc__": f"The type {name}."})


F64Type = _float_type("F64Type", "f64")
F32Type = _float_type("F32Type", "f32")
F16Type = _float_type("F16Type", "f16")
BF16Type = _float_type("BF16Type", "bf16")
Float8E4M3FNType = _float_type("Float8E4M3FNType", "f8e4m3fn")


class ShapedType:
    """What types with a shape have in common."""

    @staticmethod
    def get_dynamic_size() -> int:
        """Return the mark of a dimension that is not known."""
        return DYNAMIC


class RankedTensorType(TensorType):
    """The type of a tensor whose rank is known."""

    @staticmethod
    def get(shape: Sequence[int], element_type: Type) -> RankedTensorType:
        """Return the type of tensors of this shape and element type."""
        return RankedTensorType(tuple(shape), element_type.name)


@dataclass(frozen=True)
class FunctionType:
    """The types of a function's inputs and results."""

    inputs: tuple[TensorType, ...]
    results: tuple[TensorType, ...]

    @staticmethod
    def get(inputs: Sequence[TensorType], results: Sequence[TensorType]) -> FunctionType:
        """Return the type of functions from `inputs` to `results`."""
        return FunctionType(tuple(inputs), tuple(results))


# --- attributes -------------------------------------------------------------------------------------------------------


class _PlainAttr:
    """An attribute that is its own value."""

    @staticmethod
    def get(value: Any) -> Any:
        """Return `value`."""
        return value


class TypeAttr(_PlainAttr):
    """A type."""


class StringAttr(_PlainAttr):
    """A string."""


class DictAttr(_PlainAttr):
    """A dictionary of attributes."""


class ArrayAttr(_PlainAttr):
    """A list of attributes."""


class BoolAttr(_PlainAttr):
    """True or false."""


class _NumberAttr:
    """A number of a given type."""

    @staticmethod
    def get(element_type: Type, value: Any) -> Any:
        """Return `value`."""
        return value


class IntegerAttr(_NumberAttr):
    """An integer of a given type."""


class FloatAttr(_NumberAttr):
    """A floating-point number of a given type."""


class DenseI64ArrayAttr:
    """A list of integers."""

    @staticmethod
    def get(values: Iterable[int]) -> tuple[int, ...]:
        """Return the values as a tuple."""
        return tuple(map(int, values))


class DenseF32ArrayAttr:
    """A list of numbers in single precision."""

    @staticmethod
    def get(values: Iterable[float]) -> tuple[float, ...]:
        """Return the values as a tuple, rounded to single precision."""
        import numpy as np

        return tuple(float(np.float32(value)) for value in values)


class DenseElementsAttr:
    """The data of a constant."""

    @staticmethod
    def get(array: Array, type: Type, shape: Sequence[int]) -> Array:
        """Return a copy of `array`, whose memory the user may change later."""
        import numpy as np

        from tripy_cpu.dtypes import NUMPY_DTYPES

        return np.array(array, dtype=NUMPY_DTYPES[type.name], copy=True, subok=False).reshape(tuple(shape))


class Attribute:
    """Attributes that nvtripy writes as text."""

    @staticmethod
    def parse(text: str) -> Bounds | str:
        """Return the bounds that a `#tensorrt.shape_profile` holds, or the text itself.

        The form is `#tensorrt.shape_profile<min=[...], opt=[...], max=[...]>`.
        """
        lists = re.findall(r"(?:min|opt|max)=(\[[^\]]*\])", text)
        return Bounds(*(tuple(map(int, ast.literal_eval(values))) for values in lists)) if len(lists) == 3 else text


# --- recording --------------------------------------------------------------------------------------------------------


class Value:
    """The result of an operation, or an argument of the function.

    Attributes:
        index: Its number within the function.
        type: Its type. A result starts without one (rank 0): nvtripy declares it once the operation is recorded.
    """

    __slots__ = ("declared", "index", "type")

    def __init__(self, index: int, declared: TensorType | None = None) -> None:
        self.index = index
        self.declared = declared
        self.type: TensorType = declared or _UNTYPED

    def set_type(self, declared: TensorType) -> None:
        """Declare the type."""
        self.declared = self.type = declared


_UNTYPED = TensorType((), "?")
BlockArgument = Value


@dataclass
class Operation:
    """A recorded operation. Its results carry the declared types, which are set after it is recorded."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    results: tuple[Value, ...] = ()
    location: str = ""


class Block:
    """A list of operations, and of functions where it is the body of a module."""

    def __init__(self, arguments: Sequence[TensorType] = ()) -> None:
        self.arguments = [Value(index, declared) for index, declared in enumerate(arguments)]
        self.operations: list[Operation] = []
        self.functions: list[FuncOp] = []
        self.returned: list[Value] = []
        self._values = len(self.arguments)

    def append(self, name: str, arguments: Mapping[str, Any], count: int, location: str) -> tuple[Value, ...]:
        """Record an operation with `count` results and return them."""
        results = tuple(Value(self._values + number) for number in range(count))
        self._values += count
        self.operations.append(Operation(name, arguments, results, location))
        return results


class FuncOp:
    """A function."""

    def __init__(self, name: str, kind: FunctionType, ip: InsertionPoint) -> None:
        self.name = name
        self.attributes: dict[str, Any] = {"function_type": kind}
        self.arg_attrs: Sequence[Mapping[str, Any]] = ()
        self.block = Block(kind.inputs)
        ip.block.functions.append(self)

    def add_entry_block(self) -> Block:
        """Return the function's body, which has one argument an input."""
        return self.block

    def program(self) -> Program:
        """Return what was recorded as a program."""
        attributes = self.arg_attrs or [{}] * len(self.block.arguments)
        inputs = tuple(_input(value, attrs) for value, attrs in zip(self.block.arguments, attributes, strict=True))
        instructions = tuple(
            Instruction(
                operation.name,
                {name: _argument(value) for name, value in operation.arguments.items()},
                tuple(result.index for result in operation.results),
                tuple(result.declared for result in operation.results),
                operation.location,
            )
            for operation in self.block.operations
        )
        return Program(inputs, instructions, tuple(value.index for value in self.block.returned))


def _input(value: Value, attributes: Mapping[str, Any]) -> Input:
    names = attributes.get("tensorrt.dimension_names") or {}
    return Input(
        value.type,
        attributes.get("tensorrt.shape_profile"),
        attributes.get("tensorrt.value_bounds"),
        {int(index): name for index, name in names.items()},
    )


def _argument(value: Any) -> Any:
    if isinstance(value, Value):
        return Ref(value.index)
    if isinstance(value, list | tuple):
        return tuple(_argument(item) for item in value)
    return value


class ModuleOperation:
    """What the compiler takes: the operation that a module is."""

    def __init__(self) -> None:
        self.attributes: dict[str, Any] = {}
        self.body = Block()
        self.program: Program | None = None

    def get_asm(self, large_elements_limit: int | None = None) -> str:
        """Return the text of the module's function, for nvtripy's log."""
        return str(self)

    def __str__(self) -> str:
        return str(self.program or self.body.functions[0].program())


class Module:
    """A module with one function, `main`."""

    def __init__(self) -> None:
        self.operation = ModuleOperation()
        self.body = self.operation.body

    def __str__(self) -> str:
        return str(self.operation)

    @staticmethod
    def create() -> Module:
        """Return an empty module."""
        return Module()


def record(name: str, arguments: Mapping[str, Any], count: int) -> tuple[Value, ...]:
    """Record an operation at this thread's insertion point and location, and return its `count` results."""
    return _SCOPES.blocks[-1].append(name, arguments, count, _SCOPES.locations[-1].text)


def current_location() -> Location | None:
    """Return this thread's location while it records, else `None`."""
    return _SCOPES.locations[-1] if _SCOPES.locations else None


def record_return(values: Sequence[Value]) -> None:
    """Record what the function returns."""
    _SCOPES.blocks[-1].returned = list(values)
