"""A Python file as text that can be cut by the positions of its syntax tree, and put back together byte for byte."""

from __future__ import annotations

import ast
import io
import itertools
import re
import tokenize
import warnings
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

_NEWLINE = re.compile(rb"\r\n|\r|\n")
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
        if b"\0" in content:
            line = _newlines(content[: content.index(b"\0")]) + 1
            raise SyntaxError("there is a null byte", (None, line, None, None))
        try:
            encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
            text = content.decode(encoding)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the file's own invalid escapes are not ours to report
                tree = ast.parse(text)
        except UnicodeDecodeError as error:
            line = _newlines(content[: error.start]) + 1
            problem = f"byte 0x{content[error.start]:02x} is not {error.encoding}"
            raise SyntaxError(problem, (None, line, None, None)) from error
        except (RecursionError, MemoryError) as error:
            raise SyntaxError("it is nested too deeply") from error
        except (ValueError, LookupError) as error:
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
        return self._starts[min(number - 1, len(self.lines))]

    def start(self, node: Located) -> int:
        """Where a node begins."""
        return self.line_start(node.lineno) + node.col_offset

    def end(self, node: ast.stmt | ast.expr | ast.alias) -> int:
        """Where a node ends."""
        assert node.end_lineno is not None, "parsed nodes have an end"  # noqa: S101
        assert node.end_col_offset is not None, "parsed nodes have an end"  # noqa: S101
        return self.line_start(node.end_lineno) + node.end_col_offset

    def text(self, node: ast.stmt | ast.expr | ast.alias) -> bytes:
        """A node as it is written."""
        return self.utf8[self.start(node) : self.end(node)]

    def newline_before(self, position: int) -> bytes:
        """How the nearest line above a position ends, or else the nearest below."""
        number = bisect_left(self._starts, position)
        for line in (*reversed(self.lines[:number]), *self.lines[number:]):
            ending = line[len(line.rstrip(b"\r\n")) :]
            if ending:
                return ending
        return b"\n"

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return tuple(itertools.accumulate(map(len, self.lines), initial=0))


def _newlines(content: bytes) -> int:
    return len(_NEWLINE.findall(content))
