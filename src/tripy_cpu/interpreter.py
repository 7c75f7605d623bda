"""Runs a program, instruction by instruction, and checks what comes out against what was declared.

Element types never depend on data, so they are checked when a program first runs to its end and not again: for small
programs that takes longer than the work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tripy_cpu.dtypes import Array, name_of
from tripy_cpu.errors import RefusedError, pipeline_error
from tripy_cpu.kernels import KERNELS, Kernel
from tripy_cpu.kernels.table import half_of
from tripy_cpu.program import DYNAMIC, Instruction, Program, Ref, TensorType
from tripy_cpu.rules import check_types


@dataclass(frozen=True)
class Step:
    """An instruction, taken apart.

    Attributes:
        instruction: The instruction.
        kernel: What it runs.
        attributes: The arguments that are the same in every run.
        operands: Which value each other argument is, or which several.
        has_fixed_size: Whether a size is declared for a result, which data may decide otherwise in any run.
    """

    instruction: Instruction
    kernel: Kernel
    attributes: Mapping[str, Any]
    operands: tuple[tuple[str, int | tuple[int, ...]], ...]
    has_fixed_size: bool

    @staticmethod
    def of(instruction: Instruction) -> Step:
        """Return the step that runs an instruction."""
        attributes: dict[str, Any] = {}
        operands: list[tuple[str, int | tuple[int, ...]]] = []
        for name, argument in instruction.arguments.items():
            if isinstance(argument, Ref):
                operands.append((name, argument.index))
            elif isinstance(argument, tuple) and argument and isinstance(argument[0], Ref):
                operands.append((name, tuple(item.index for item in argument)))
            else:
                attributes[name] = argument
        has_fixed_size = any(set(declared.shape) - {DYNAMIC} for declared in instruction.types if declared is not None)
        return Step(instruction, KERNELS[instruction.op], attributes, tuple(operands), has_fixed_size)

    def run(self, values: Mapping[int, Array]) -> tuple[Array, ...]:
        """Return the results, with every check.

        Raises:
            MTRTException: The operands do not fit the operation or the result is not what was declared; it carries the
                instruction's location.
        """
        arguments = self.arguments(values)
        try:
            check_types(self.instruction.op, arguments)
            results = self.kernel.run(arguments, half_of(arguments) if self.kernel.wide else None)
            self.check_declared(results)
            for result in results:
                _check_rank(result)
        except RefusedError as refusal:
            raise self.refused(refusal) from None
        return results

    def arguments(self, values: Mapping[int, Array]) -> dict[str, Any]:
        """Return what the kernel is called with."""
        arguments = dict(self.attributes)
        for name, index in self.operands:
            arguments[name] = values[index] if isinstance(index, int) else tuple(values[item] for item in index)
        return arguments

    def check_declared(self, results: Sequence[Array]) -> None:
        """Compare results with what was declared.

        Raises:
            RefusedError: The type or the shape of one is another.
        """
        for declared, result in zip(self.instruction.types, results, strict=True):
            if declared is not None:
                _check_declared(declared, result)

    def refused(self, refusal: RefusedError) -> Exception:
        """Return the error that nvtripy maps to the user's line."""
        return pipeline_error(f"'tensorrt.{self.instruction.op}' op {refusal}", self.instruction.location)


class Runner:
    """Runs one program any number of times."""

    def __init__(self, program: Program) -> None:
        self.program = program
        steps = [Step.of(instruction) for instruction in program.instructions]
        self._steps = [step for step in steps if step.kernel.name != "constant"]
        self._constants: dict[int, Array] = {
            step.instruction.results[0]: step.attributes["value"] for step in steps if step.kernel.name == "constant"
        }
        self._halves: list[np.dtype[Any] | None] | None = None

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the program's outputs. They may share memory with inputs, constants and each other.

        Raises:
            MTRTException: An instruction was refused.
        """
        values = {**self._constants, **dict(enumerate(inputs))}
        with np.errstate(all="ignore"):
            if self._halves is None:
                self._run_first(values)
            else:
                self._run_again(values, self._halves)
        return [values[index] for index in self.program.outputs]

    def kept(self, inputs: Sequence[Array]) -> set[int]:
        """Return the identities of the arrays that are there before and after a run: inputs and constants."""
        return {*map(id, inputs), *map(id, self._constants.values())}

    def _run_first(self, values: dict[int, Array]) -> None:
        for step in self._steps:
            values.update(zip(step.instruction.results, step.run(values), strict=True))
        self._halves = [half_of(step.arguments(values)) if step.kernel.wide else None for step in self._steps]

    def _run_again(self, values: dict[int, Array], halves: Sequence[np.dtype[Any] | None]) -> None:
        step: Step
        try:
            for step, half in zip(self._steps, halves, strict=True):
                results = step.kernel.run(step.arguments(values), half)
                if step.has_fixed_size:
                    step.check_declared(results)
                values.update(zip(step.instruction.results, results, strict=True))
        except RefusedError as refusal:
            raise step.refused(refusal) from None


#: TensorRT's limit, see `nvinfer1::Dims::MAX_DIMS`.
_MAX_RANK = 8


def _check_rank(result: Array) -> None:
    if result.ndim > _MAX_RANK:
        raise RefusedError(f"returns {result.ndim} dimensions, but TensorRT has at most {_MAX_RANK}")


def _check_declared(declared: TensorType, result: Array) -> None:
    if name_of(result) != declared.dtype:
        raise RefusedError(f"returns element type {name_of(result)}, but {declared.dtype} was declared")
    if len(declared.shape) != result.ndim or any(
        want not in (DYNAMIC, have) for want, have in zip(declared.shape, result.shape, strict=True)
    ):
        raise RefusedError(f"returns shape {tuple(result.shape)}, but {declared} was declared")
