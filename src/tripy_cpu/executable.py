"""Stands in for `mlir_tensorrt.runtime.api.Executable`.

Apart from `runtime`, so that importing nvtripy does not import NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass

from tripy_cpu.program import Program


@dataclass(frozen=True)
class Signature:
    """What nvtripy asks of a function's signature."""

    results: int

    def get_num_results(self) -> int:
        """Return how many results the function has."""
        return self.results


class Executable:
    """A compiled program.

    Args:
        source: The program, or the bytes that `serialize` returned.
    """

    def __init__(self, source: Program | bytes) -> None:
        self.program = source if isinstance(source, Program) else _loaded(source)

    def get_signature(self, name: str) -> Signature:
        """Return the signature of the program's only function."""
        return Signature(len(self.program.outputs))

    def serialize(self) -> bytes:
        """Return the program as bytes."""
        from tripy_cpu.serialization import serialize

        return serialize(self.program)

    def get_data_segments(self) -> list[tuple[str, bytes]]:
        """Return the program as the one "engine" that the executable holds."""
        return [("tripy_cpu_program", self.serialize())]


def _loaded(data: bytes) -> Program:
    from tripy_cpu.serialization import deserialize

    return deserialize(data)
