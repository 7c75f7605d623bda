"""Which element types each operation accepts, and which of its operands must have the same one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def check_types(op: str, arguments: Mapping[str, Any]) -> None:
    """Refuse operands whose types TensorRT would refuse."""
