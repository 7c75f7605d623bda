"""How nvtripy knows memory: its type, where it is, and what its elements are.

Apart from `memory`, so that importing nvtripy does not import NumPy.
"""

from __future__ import annotations

import enum


class PointerType(enum.Enum):
    """Where memory is. Both kinds are the CPU's here: the difference is only kept because nvtripy asks for it."""

    host = 0
    device = 1


class ScalarTypeCode(enum.Enum):
    """Element types as the runtime names them; those nvtripy has no name for are here so that it can refuse them."""

    f8e4m3fn = "f8e4m3fn"
    bf16 = "bf16"
    f16 = "f16"
    f32 = "f32"
    f64 = "f64"
    i1 = "i1"
    i4 = "i4"
    i8 = "i8"
    ui8 = "ui8"
    i16 = "i16"
    i32 = "i32"
    i64 = "i64"

    def __str__(self) -> str:
        return self.value


class MemRefValue:
    """A block of memory; all are of the class `memory.Memory`.

    Attributes:
        address_space: Where it is.
    """

    address_space: PointerType
