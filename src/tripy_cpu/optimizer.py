"""What the compiler does with a program before it runs: nearly all mistakes show here, with their location."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tripy_cpu.dtypes import NUMPY_DTYPES, Array
from tripy_cpu.interpreter import Step
from tripy_cpu.program import Input, Instruction, Program, Ref

#: Operands that decide the shape of a result.
_SHAPE_OPERANDS = frozenset({"shape", "start", "size", "stride", "output_shape"})

#: How many bytes a constant may have more than what it is computed from.
_FOLDED_GROWTH = 1 << 12

#: An evaluation is about to run anyway, so it is only rehearsed up to this many elements.
_REHEARSAL_ELEMENTS = 1 << 20


def prepare(program: Program) -> Program:
    """Return what to run instead of `program`: what depends on no input is computed.

    A program with inputs is also rehearsed, with made-up ones of the expected shapes.

    Raises:
        MTRTException: An operation was refused; it carries the operation's location.
    """
    with np.errstate(all="ignore"):
        folded = _folded(program)
        if folded.inputs:
            _rehearse(folded)
    return folded


def _folded(program: Program) -> Program:
    """Return the program with constants for what depends on constants only.

    Where there are inputs, it is kept from growing: a tensor of ones is better made in every run than saved.
    """
    known: dict[int, Array] = {}
    rest: list[Instruction] = []
    for instruction in program.instructions:
        operands = list(_operands(instruction))
        if not all(index in known for index in operands):
            rest.append(instruction)
            continue
        results = Step.of(instruction).run(known)
        growth = sum(value.nbytes for value in results) - sum(known[index].nbytes for index in operands)
        if instruction.op == "constant" or not program.inputs or growth <= _FOLDED_GROWTH:
            known.update(zip(instruction.results, results, strict=True))
        else:
            rest.append(instruction)
    used = {*program.outputs, *(index for instruction in rest for index in _operands(instruction))}
    constants = (Instruction("constant", {"value": known[index]}, (index,), (None,), "") for index in used & {*known})
    return Program(program.inputs, (*constants, *rest), program.outputs)


def _made_up(item: Input) -> Array | None:
    """Return an input of the expected shape and value, or `None` if the shape is not known."""
    dtype = NUMPY_DTYPES[item.type.dtype]
    if item.values is not None:
        return np.asarray(item.values.opt[0], dtype)
    if item.shape is not None:
        return np.zeros(item.shape.opt, dtype)
    return np.zeros(item.type.shape, dtype) if item.type.is_static else None


def _rehearse(program: Program) -> None:
    inputs = [_made_up(item) for item in program.inputs]
    if any(value is None for value in inputs):
        return
    values = {index: value for index, value in enumerate(inputs) if value is not None}
    invented = {index for index, item in enumerate(program.inputs) if item.values is None}
    has_profile = any(item.shape or item.values for item in program.inputs)
    budget = _REHEARSAL_ELEMENTS
    for instruction in program.instructions:
        budget -= sum(values[index].size for index in _operands(instruction))
        if budget < 0 and not has_profile:
            return
        if _depends_on(instruction, invented):
            return
        results = Step.of(instruction).run(values)
        values.update(zip(instruction.results, results, strict=True))
        if instruction.op != "shape" and not invented.isdisjoint(_operands(instruction)):
            invented.update(instruction.results)


def _operands(instruction: Instruction) -> Iterator[int]:
    for argument in instruction.arguments.values():
        for item in argument if isinstance(argument, tuple) else (argument,):
            if isinstance(item, Ref):
                yield item.index


def _depends_on(instruction: Instruction, invented: set[int]) -> bool:
    """Return whether made-up data would decide the shape of the result, which says nothing about the real one."""
    return any(
        isinstance(argument, Ref) and argument.index in invented
        for name, argument in instruction.arguments.items()
        if name in _SHAPE_OPERANDS
    )
