"""A program as bytes: what an executable is saved as."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np

from tripy_cpu.dtypes import NUMPY_DTYPES, Array, name_of
from tripy_cpu.errors import MTRTException
from tripy_cpu.program import Bounds, Input, Instruction, Program, Ref, TensorType

_MAGIC = b"TRIPYCPU2\n"
_HEADER_LENGTH = struct.Struct("<Q")
_START = len(_MAGIC) + _HEADER_LENGTH.size

#: Constants start at multiples of this, so that they can be used where they lie.
_ALIGNMENT = 64


def serialize(program: Program) -> bytes:
    """Return `program` as bytes: a line that names the format, a JSON header, then the raw data of its constants."""
    blobs: list[bytes | memoryview] = []

    def encode(value: Any) -> Any:
        match value:
            case Ref():
                return {"ref": value.index}
            case TensorType():
                return {"shape": value.shape, "dtype": value.dtype}
            case Bounds():
                return {"low": value.low, "opt": value.opt, "high": value.high}
            case np.ndarray():
                blobs.extend((_raw(value), b"\0" * _padding(value.nbytes)))
                return {"array": name_of(value), "of": value.shape}
            case tuple() | list():
                return [encode(item) for item in value]
            case _:
                return value

    header = {
        "inputs": [
            [encode(item.type), encode(item.shape), encode(item.values), sorted((item.names or {}).items())]
            for item in program.inputs
        ],
        "instructions": [
            [
                item.op,
                {name: encode(value) for name, value in item.arguments.items()},
                item.results,
                encode(item.types),
                item.location,
            ]
            for item in program.instructions
        ],
        "outputs": program.outputs,
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * _padding(_START + len(text))
    return b"".join([_MAGIC, _HEADER_LENGTH.pack(len(text)), text, *blobs])


def _raw(array: Array) -> memoryview:
    """Return the array's bytes, in the order of its elements."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _padding(size: int) -> int:
    """Return how many bytes are missing to the next place where a constant can start."""
    return -size % _ALIGNMENT


def deserialize(data: bytes) -> Program:
    """Return the program that `serialize` wrote.

    Raises:
        MTRTException: The bytes are damaged or something else, such as a TensorRT executable.
    """
    if not data.startswith(_MAGIC) or len(data) < _START:
        raise MTRTException(
            "This executable was not saved by tripy_cpu (or by another version of it), so it cannot be loaded here: "
            "compile the function again."
        )
    try:
        return _program(data)
    except ValueError as error:
        raise MTRTException(f"This executable is damaged, so it cannot be loaded: {error}") from error


def _program(data: bytes) -> Program:
    (length,) = _HEADER_LENGTH.unpack_from(data, len(_MAGIC))
    position = _START + length
    header = json.loads(data[_START:position])

    def decode(value: Any) -> Any:
        nonlocal position
        match value:
            case {"ref": index}:
                return Ref(index)
            case {"shape": shape, "dtype": dtype}:
                return TensorType(tuple(shape), dtype)
            case {"low": low, "opt": opt, "high": high}:
                return Bounds(tuple(low), tuple(opt), tuple(high))
            case {"array": dtype, "of": shape}:
                array: Array = np.frombuffer(data, NUMPY_DTYPES[dtype], math.prod(shape), position).reshape(shape)
                position += array.nbytes + _padding(array.nbytes)
                return array
            case list():
                return tuple(decode(item) for item in value)
            case _:
                return value

    inputs = tuple(
        Input(decode(kind), decode(shape), decode(values), dict(map(tuple, names)))
        for kind, shape, values, names in header["inputs"]
    )
    instructions = tuple(
        Instruction(
            op, {name: decode(value) for name, value in arguments.items()}, tuple(results), decode(types), location
        )
        for op, arguments, results, types, location in header["instructions"]
    )
    return Program(inputs, instructions, tuple(header["outputs"]))
