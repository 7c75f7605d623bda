"""What is recorded, compiled, saved and run: a list of instructions over numbered values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: How the compiler marks a dimension that is only known when the program runs.
DYNAMIC = -(2**63)


@dataclass(frozen=True)
class TensorType:
    """The declared type of a value.

    Attributes:
        shape: The size of each dimension, `DYNAMIC` where it is not known.
        dtype: The element type as the runtime names it.
    """

    shape: tuple[int, ...]
    dtype: str

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def is_dynamic_dim(self, dim: int) -> bool:
        """Return whether the size of dimension `dim` is not known."""
        return self.shape[dim] == DYNAMIC

    @property
    def is_static(self) -> bool:
        """Whether every dimension is known."""
        return DYNAMIC not in self.shape

    def __str__(self) -> str:
        return f"tensor<{''.join('?x' if dim == DYNAMIC else f'{dim}x' for dim in self.shape)}{self.dtype}>"


@dataclass(frozen=True)
class Ref:
    """An operand: the number of the value that it reads."""

    index: int


@dataclass(frozen=True)
class Instruction:
    """One operation.

    Attributes:
        op: The name of the kernel.
        arguments: What the kernel is called with: a `Ref` or a tuple of them for operands, plain data for attributes.
        results: The numbers of the values that it defines.
        types: The declared types of the results, `None` where none was declared.
        location: `inputs;;<out>;;outputs`, the names by which nvtripy finds the user's line.
    """

    op: str
    arguments: Mapping[str, Any]
    results: tuple[int, ...]
    types: tuple[TensorType | None, ...]
    location: str


@dataclass(frozen=True)
class Bounds:
    """The least, the expected and the greatest sizes of an input's dimensions, or its values if it is a number."""

    low: tuple[int, ...]
    opt: tuple[int, ...]
    high: tuple[int, ...]


@dataclass(frozen=True)
class Input:
    """A parameter of the program.

    Attributes:
        type: Its declared type.
        shape: The bounds of its shape; `None` if none were given.
        values: The bounds of its value, for the size of a dimension that is passed as a number.
        names: The names of its dimensions by index; dimensions with the same name must have the same size.
    """

    type: TensorType
    shape: Bounds | None = None
    values: Bounds | None = None
    names: Mapping[int, str] | None = None


@dataclass(frozen=True)
class Program:
    """A function: its inputs are the values 0, 1, ..., in order; each instruction defines further ones."""

    inputs: tuple[Input, ...]
    instructions: tuple[Instruction, ...]
    outputs: tuple[int, ...]

    def __str__(self) -> str:
        lines = [f"  %{index} = input {item.type}" for index, item in enumerate(self.inputs)]
        lines += [f"  {_instruction_text(instruction)}" for instruction in self.instructions]
        lines.append(f"  return {', '.join(f'%{index}' for index in self.outputs)}")
        return "main {\n" + "\n".join(lines) + "\n}"


def _instruction_text(instruction: Instruction) -> str:
    import numpy as np

    def show(argument: Any) -> str:
        if isinstance(argument, Ref):
            return f"%{argument.index}"
        if isinstance(argument, tuple) and argument and isinstance(argument[0], Ref):
            return f"[{', '.join(map(show, argument))}]"
        if isinstance(argument, np.ndarray):
            return np.array2string(argument, threshold=32, separator=", ").replace("\n", "")
        return str(argument)

    results = ", ".join(f"%{index}" for index in instruction.results)
    arguments = ", ".join(
        f"{name}={show(argument)}" for name, argument in instruction.arguments.items() if argument is not None
    )
    types = ", ".join("?" if declared is None else str(declared) for declared in instruction.types)
    return f'{results} = {instruction.op}({arguments}) : {types} loc("{instruction.location}")'
