"""Runs a program, instruction by instruction, and checks what comes out against what was declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tripy_cpu.dtypes import Array, name_of
from tripy_cpu.errors import RefusedError, pipeline_error
from tripy_cpu.kernels import KERNELS
from tripy_cpu.program import DYNAMIC, Instruction, Program, Ref, TensorType
from tripy_cpu.rules import check_types

Resolve = Callable[[Any], Any]


def execute(instruction: Instruction, values: Mapping[int, Array]) -> tuple[Array, ...]:
    """Return the results of one instruction.

    Raises:
        MTRTException: The operands do not fit the operation or the result is not what was declared; it carries the
            instruction's location.
    """
    kernel = KERNELS[instruction.op]
    arguments = {name: _resolve(argument, values) for name, argument in instruction.arguments.items()}
    try:
        check_types(instruction.op, arguments)
        results = kernel.run(arguments)
        for declared, result in zip(instruction.types, results, strict=True):
            if declared is not None:
                _check_declared(declared, result)
    except RefusedError as refusal:
        raise pipeline_error(f"'tensorrt.{instruction.op}' op {refusal}", instruction.location) from None
    return results


def run(program: Program, inputs: Sequence[Array]) -> list[Array]:
    """Return the outputs of `program`.

    Raises:
        MTRTException: An instruction was refused.
    """
    values: dict[int, Array] = dict(enumerate(inputs))
    with np.errstate(all="ignore"):
        for instruction in program.instructions:
            values.update(zip(instruction.results, execute(instruction, values), strict=True))
    return [values[index] for index in program.outputs]


def _resolve(argument: Any, values: Mapping[int, Array]) -> Any:
    if isinstance(argument, Ref):
        return values[argument.index]
    if isinstance(argument, tuple) and argument and isinstance(argument[0], Ref):
        return tuple(values[item.index] for item in argument)
    return argument


def _check_declared(declared: TensorType, result: Array) -> None:
    if name_of(result) != declared.dtype:
        raise RefusedError(f"returns element type {name_of(result)}, but {declared.dtype} was declared")
    if len(declared.shape) != result.ndim or any(
        want not in (DYNAMIC, have) for want, have in zip(declared.shape, result.shape, strict=True)
    ):
        raise RefusedError(f"returns shape {tuple(result.shape)}, but {declared} was declared")
