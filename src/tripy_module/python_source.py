"""A Python file as text that can be cut by the positions of its syntax tree, and put back together byte for byte."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class Located(Protocol):
    """What has a place in the source: statements, expressions, and the names of an import."""

    lineno: int
    col_offset: int


@dataclass(frozen=True)
class Edit:
    """A piece of text that takes the place of another; an insertion where both ends are the same."""

    start: int
    end: int
    text: bytes


@dataclass(frozen=True)
class Source:
    """A parsed file.

    Attributes:
        utf8: Its text in UTF-8, which is what the tree's columns count, whatever the file's encoding is.
        lines: The text's lines with their ends, as Python counts them.
        encoding: How the file is encoded.
        tree: Its syntax tree.
    """

    utf8: bytes
    lines: tuple[bytes, ...]
    encoding: str
    tree: ast.Module

    @classmethod
    def parse(cls, content: bytes) -> Source:
        """Decode a file as Python does, and parse it.

        Raises:
            SyntaxError: It is no Python of this version, or cannot be decoded.
        """
        try:
            encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
            text = content.decode(encoding)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the file's own invalid escapes are not ours to report
                tree = ast.parse(text)
        except (ValueError, LookupError, RecursionError, MemoryError) as error:
            raise SyntaxError(str(error)) from error
        if text.encode(encoding) != content:
            raise SyntaxError(f"its encoding {encoding} does not give back the same bytes")
        utf8 = text.encode("utf-8")
        return cls(utf8, tuple(_LINE.findall(utf8)), encoding, tree)

    def edited(self, edits: Iterable[Edit]) -> bytes:
        """The file with some pieces replaced, in its own encoding."""
        text = self.utf8
        for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return text.decode("utf-8").encode(self.encoding)

    def line_start(self, number: int) -> int:
        """Where a line begins, counted from 1; the one after the last begins at the end."""
        return sum(map(len, self.lines[: number - 1]))

    def start(self, node: Located) -> int:
        """Where a node begins."""
        return self.line_start(node.lineno) + node.col_offset

    def end(self, node: ast.stmt | ast.expr | ast.alias) -> int:
        """Where a node ends."""
        assert node.end_lineno is not None, "parsed nodes have an end"  # noqa: S101
        assert node.end_col_offset is not None, "parsed nodes have an end"  # noqa: S101
        return self.line_start(node.end_lineno) + node.end_col_offset

    def newline(self, number: int) -> bytes:
        """How a line ends, or its nearest neighbour above or below that has an end."""
        for line in (*reversed(self.lines[:number]), *self.lines[number:]):
            ending = line[len(line.rstrip(b"\r\n")) :]
            if ending:
                return ending
        return b"\n"
