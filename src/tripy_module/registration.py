"""Add the import of a class to a package's `__init__.py`, or take it out again: from bytes to bytes.

Taking out is defined by adding: of the texts that differ by our import, it is the one that `add` turns into this.
That is why adding never depends on anything but the text, and why removal gives back the bytes of before.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tripy_module.errors import UserError
from tripy_module.python_source import Edit, Source

_CREATED = b'"""Neural-network modules for nvtripy."""\n'
_KEPT_FIRST = re.compile(rb"#!|[ \t\f]*#.*?coding[:=]")
_READS_NAMESPACE = {"__all__", "dir", "globals", "locals", "vars"}


class RegistrationError(UserError):
    """An `__init__.py` that cannot be patched safely; the message says why, with the line."""


@dataclass(frozen=True)
class _Registration:
    """A class, the module that defines it, and the package that is to import it."""

    package: str
    module: str
    name: str

    @property
    def path(self) -> str:
        return f"{self.package}.{self.module}"

    def statement(self, *, relative: bool) -> bytes:
        origin = f".{self.module}" if relative else self.path
        return f"from {origin} import {self.name}".encode("ascii")

    def sibling(self, node: ast.stmt) -> str:
        """The full name of the module that an import of this package's own takes from, or ""."""
        if not isinstance(node, ast.ImportFrom) or not node.module:
            return ""
        if node.level == 1:
            return f"{self.package}.{node.module}"
        return node.module if node.level == 0 and node.module.startswith(f"{self.package}.") else ""

    def imported_by(self, node: ast.stmt) -> bool:
        return (
            isinstance(node, ast.ImportFrom) and self.sibling(node) == self.path and any(map(self.is_alias, node.names))
        )

    def is_alias(self, alias: ast.alias) -> bool:
        return alias.name == self.name and alias.asname in (None, self.name)


def add(source: bytes | None, package: str, module: str, name: str) -> bytes:
    """Import a class, and list it in `__all__` where there is one.

    Args:
        source: The content of the `__init__.py`, None if there is none yet.
        package: The package's full name.
        module: The module in it.
        name: The class in that.

    Returns:
        The new content; the same where all of that is there already.

    Raises:
        RegistrationError: The file does not parse, gives the name to something else, or cannot be patched safely.
    """
    what = _Registration(package, module, name)
    before = _parse(_CREATED if source is None else source)
    _check_unbound(before.tree, what)
    result = before.edited([*_import_edits(before, what), *_export_edits(before, what)])
    _check_same(before, result, what)
    return result


def remove(source: bytes, package: str, module: str, name: str) -> bytes | None:
    """Take out what `add` has put in.

    Returns:
        The content without the class, the same where it is not registered, None for a file that `add` had created.

    Raises:
        RegistrationError: The file does not parse, uses the class, or cannot be patched safely.
    """
    what = _Registration(package, module, name)
    parsed = _parse(source)
    if not any(what.imported_by(node) for node in parsed.tree.body):
        return source
    _check_unused(parsed.tree, what)
    listed = list(_export_removals(parsed, what))
    if listed:
        parsed = _undone(parsed, what, listed, _export_edits)
    content = _undone(parsed, what, _import_removals(parsed, what), _import_edits).edited([])
    return None if content == _CREATED else content


def _undone(
    source: Source,
    what: _Registration,
    removals: Iterable[tuple[Edit, ...]],
    additions: Callable[[Source, _Registration], list[Edit]],
) -> Source:
    """The text that the additions turn into this one; where there is none, the first that lacks our class only."""
    found = None
    for edits in removals:
        content = source.edited(edits)
        try:
            _check_same(source, content, what)
            left = _parse(content)
            found = found or left
            if left.edited(additions(left, what)) == source.edited([]):
                return left
        except RegistrationError:
            continue
    if found is None:
        raise RegistrationError(f"{what.name} cannot be taken out safely; take it out by hand")
    return found


def is_registered(source: bytes, package: str, module: str, name: str) -> bool:
    """Whether the class is imported at the top level.

    Raises:
        RegistrationError: The file does not parse.
    """
    return line_of(source, package, module, name) is not None


def line_of(source: bytes, package: str, module: str, name: str) -> int | None:
    """The line of the import, counted from 1, or None.

    Raises:
        RegistrationError: The file does not parse.
    """
    what = _Registration(package, module, name)
    return next((node.lineno for node in _parse(source).tree.body if what.imported_by(node)), None)


def _parse(content: bytes) -> Source:
    try:
        return Source.parse(content)
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        raise RegistrationError(f"{line}{error.msg}; mend the file first") from error


# Where the import goes


def _import_edits(source: Source, what: _Registration) -> list[Edit]:
    """The insertion of one line, unless it is there."""
    if any(what.imported_by(node) for node in source.tree.body):
        return []
    return [_import_edit(source, what)]


def _import_edit(source: Source, what: _Registration) -> Edit:
    body = source.tree.body
    run = _sibling_run(body, what)
    if run:
        relative = sum(node.level for node in run) * 2 > len(run)
        before = _predecessor(run, what) or _shares_line(source, run[0])
        position = _line_after(source, before) if before else source.line_start(run[0].lineno)
        return _insertion(source, position, what.statement(relative=relative), blank=False)
    head = list(itertools.takewhile(_is_head, body))
    if head:
        return _insertion(source, _line_after(source, head[-1]), what.statement(relative=False), blank=True)
    # No statement to stand below: a header of comments that a blank line sets off stays on top.
    lines = [*itertools.takewhile(lambda line: line.lstrip().startswith(b"#"), source.lines)]
    following = source.lines[len(lines) : len(lines) + 1]
    if lines and (not following or not following[0].strip()):
        return _insertion(source, sum(map(len, lines)), what.statement(relative=False), blank=True)
    return _insertion(source, source.line_start(_kept_lines(source) + 1), what.statement(relative=False), blank=False)


def _kept_lines(source: Source) -> int:
    """How many lines the interpreter and the encoding take: a declaration counts on the first two lines only."""
    top = list(itertools.takewhile(lambda line: line.strip()[:1] in (b"", b"#"), source.lines[:2]))
    return max((number for number, line in enumerate(top, 1) if _KEPT_FIRST.match(line)), default=0)


def _sibling_run(body: Sequence[ast.stmt], what: _Registration) -> list[ast.ImportFrom]:
    """The first statements in a row that import from this package's modules, unless something above needs the name."""
    for siblings, run in itertools.groupby(body, key=lambda node: bool(what.sibling(node))):
        if siblings:
            return [node for node in run if isinstance(node, ast.ImportFrom)]
        nodes = list(run)
        if any(_needs(node, what.name) for node in nodes if not _is_head(node)):
            return []
    return []


def _needs(node: ast.stmt, name: str) -> bool:
    """Whether a statement uses the name, or looks at whatever names there are."""
    names = {name, *_READS_NAMESPACE}
    return any(
        isinstance(part, ast.Name) and part.id in names and isinstance(part.ctx, ast.Load) for part in ast.walk(node)
    )


def _predecessor(run: Sequence[ast.ImportFrom], what: _Registration) -> ast.ImportFrom | None:
    """The import that ours comes below: sorted where the others are, else the last."""
    base = f"{what.package}.module"  # upstream's base class, which all others need, stands first
    keys = [what.sibling(node).lower() for node in run]
    rest = keys[1:] if keys[0] == base else keys
    if rest != sorted(rest):
        return run[-1]
    fixed = len(keys) - len(rest)
    position = fixed + sum(key < what.path.lower() for key in rest)
    return run[position - 1] if position else None


def _shares_line(source: Source, node: ast.ImportFrom) -> ast.ImportFrom | None:
    """The statement itself, if another stands before it on its line, which nothing can be put between."""
    return node if source.utf8[source.line_start(node.lineno) : source.start(node)].strip() else None


def _is_head(node: ast.stmt) -> bool:
    """Whether a statement belongs to what stands above all code: docstring and imports."""
    docstring = (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )
    return docstring or isinstance(node, (ast.Import, ast.ImportFrom))


def _line_after(source: Source, node: ast.stmt) -> int:
    """Where the line below a statement begins, and below all that shares its last line."""
    last = node.end_lineno or node.lineno
    for other in source.tree.body:
        if other.lineno <= last:
            last = max(last, other.end_lineno or other.lineno)
    return source.line_start(last + 1)


def _insertion(source: Source, position: int, statement: bytes, *, blank: bool) -> Edit:
    newline = source.newline_before(position)
    above = newline if blank else b""
    if position and source.utf8[position - 1 : position] not in (b"\n", b"\r"):  # the last line has no end
        return Edit(position, position, newline + above + statement)
    return Edit(position, position, above + statement + newline)


def _import_removals(source: Source, what: _Registration) -> Iterator[tuple[Edit, ...]]:
    """What may have been added: the line, with a blank one above, with the end of the line before; or a part of it."""
    for node in source.tree.body:
        if not what.imported_by(node) or not isinstance(node, ast.ImportFrom):
            continue
        if len(node.names) > 1:
            index = next(i for i, alias in enumerate(node.names) if what.is_alias(alias))
            yield from _element_removals(source, node.names, index)
            continue
        start, end = source.line_start(node.lineno), _line_after(source, node)
        above = _start_of_line_above(source.utf8, start)
        yield (Edit(start, end, b""),)
        yield (Edit(above, end, b""),)
        if end == len(source.utf8):
            yield (Edit(_before_newline(source.utf8, start), end, b""),)
            yield (Edit(_before_newline(source.utf8, above), end, b""),)


def _start_of_line_above(text: bytes, start: int) -> int:
    end = _before_newline(text, start)
    return max(text.rfind(b"\n", 0, end), text.rfind(b"\r", 0, end)) + 1


def _before_newline(text: bytes, position: int) -> int:
    for ending in (b"\r\n", b"\n", b"\r"):
        if text.endswith(ending, 0, position):
            return position - len(ending)
    return position


# `__all__`


def _export_list(tree: ast.Module, name: str) -> ast.List | ast.Tuple | None:
    """The last literal of `__all__`, which is to list the name; None where nothing is to be done."""
    values = [value for node in tree.body for value in _export_values(node)]
    literals = [literal for value in values for literal in _literals(value)]
    if any(name in _strings(literal) for literal in literals):
        return None
    if literals:
        return literals[-1]
    for value in values:
        # A list that is computed from the names there are lists ours by itself.
        called = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}
        if not called & {"dir", "globals", "vars", "locals"}:
            raise RegistrationError(
                f"line {value.lineno}: __all__ is computed; write it as a list, or add {name} by hand"
            )
    return None


def _export_values(node: ast.stmt) -> Iterator[ast.expr]:
    """What a statement sets `__all__` to, or extends it by."""
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if node.value is not None and any(map(_is_export, targets)):
            yield node.value
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if isinstance(call.func, ast.Attribute) and call.func.attr == "extend" and _is_export(call.func.value):
            yield from call.args[:1]


def _is_export(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "__all__"


def _literals(value: ast.expr) -> Iterator[ast.List | ast.Tuple]:
    """The lists of plain strings that a value adds up from."""
    if isinstance(value, (ast.List, ast.Tuple)) and len(_strings(value)) == len(value.elts):
        yield value
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        yield from _literals(value.left)
        yield from _literals(value.right)


def _strings(literal: ast.List | ast.Tuple) -> list[str]:
    return [e.value for e in literal.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]


def _export_edits(source: Source, what: _Registration) -> list[Edit]:
    """List the name where there is a list of names."""
    literal = _export_list(source.tree, what.name)
    return [] if literal is None else _element_edits(source, literal, what.name)


def _element_edits(source: Source, literal: ast.List | ast.Tuple, name: str) -> list[Edit]:
    """List the name where sorting puts it, else last, in the style of the others."""
    elements, names = literal.elts, _strings(literal)
    if not elements:
        inside = source.start(literal) + 1
        comma = "," if isinstance(literal, ast.Tuple) else ""
        return [Edit(inside, inside, f'"{name}"{comma}'.encode("ascii"))]
    position = len(names)
    if names == sorted(names):
        position = sum(other < name for other in names)
    elif names == sorted(names, key=str.lower):
        position = sum(other.lower() < name.lower() for other in names)
    quote = source.utf8[source.end(elements[0]) - 1 : source.end(elements[0])]
    text = quote + name.encode("ascii") + quote
    if not _one_per_line(source, literal):
        if position < len(elements):
            start = source.start(elements[position])
            return [Edit(start, start, text + b", ")]
        return [Edit(source.end(elements[-1]), source.end(elements[-1]), b", " + text)]
    neighbour = elements[max(position - 1, 0)]
    line = source.lines[neighbour.lineno - 1]
    indent = line[: len(line) - len(line.lstrip())]
    place = source.line_start(neighbour.lineno + (1 if position else 0))
    newline = source.newline_before(place)
    end = source.end(elements[-1])
    if position < len(elements) or _has_comma(source, end):
        return [Edit(place, place, indent + text + b"," + newline)]
    return [Edit(end, end, b","), Edit(place, place, indent + text + newline)]


def _one_per_line(source: Source, literal: ast.List | ast.Tuple) -> bool:
    """Whether each element has a line of its own, below the bracket that opens and above the one that closes."""
    lines = [element.lineno for element in literal.elts]
    whole = all(element.lineno == element.end_lineno for element in literal.elts)
    return whole and lines == sorted({*lines, literal.lineno, literal.end_lineno or 0})[1:-1]


def _has_comma(source: Source, end: int) -> bool:
    return source.utf8[end:].lstrip()[:1] == b","


def _export_removals(source: Source, what: _Registration) -> Iterator[tuple[Edit, ...]]:
    for value in itertools.chain.from_iterable(map(_export_values, source.tree.body)):
        for literal in _literals(value):
            if what.name in _strings(literal):
                yield from _element_removals(source, literal.elts, _strings(literal).index(what.name))


def _element_removals(
    source: Source, elements: Sequence[ast.expr | ast.alias], index: int
) -> Iterator[tuple[Edit, ...]]:
    """The ways in which an element may have come into a list, the least harmful to hand-written ones first."""
    element = elements[index]
    start, end = source.start(element), source.end(element)
    line, below = source.line_start(element.lineno), source.line_start((element.end_lineno or element.lineno) + 1)
    previous = elements[index - 1] if index else None
    following = elements[index + 1] if index + 1 < len(elements) else None
    if not any(other.lineno == element.lineno for other in elements if other is not element):
        yield (Edit(line, below, b""),)
        if previous:
            comma = source.end(previous)
            yield (Edit(comma, comma + 1, b""), Edit(line, below, b""))
    if following and following.lineno == element.end_lineno:
        yield (Edit(start, source.start(following), b""),)
    if previous:
        yield (Edit(source.end(previous), end, b""),)
        yield (Edit(source.end(previous) + 1, end, b""),)  # `("A", "B")` without the last is `("A",)`
    if following:
        yield (Edit(start, source.start(following), b""),)
    yield (Edit(start, end, b""),)
    yield (Edit(start, end + 1, b""),)


# What must hold


def _check_unbound(tree: ast.Module, what: _Registration) -> None:
    """Refuse a name that the file gives to something else.

    Raises:
        RegistrationError: It does.
    """
    for node in _in_module_scope(tree):
        if what.name in _bound_names(node, what):
            line = getattr(node, "lineno", 1)
            raise RegistrationError(f"line {line}: {what.name} is something else already; choose another class_name")


def _in_module_scope(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes whose names are the module's, from the top."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, ast.comprehension):  # its targets are its own
            left += [*reversed(node.ifs), node.iter]
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            left += reversed(list(ast.iter_child_nodes(node)))


def _bound_names(node: ast.AST, what: _Registration) -> set[str | None]:
    """The names that a node by itself gives a meaning, or takes it from."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        ours = isinstance(node, ast.ImportFrom) and what.imported_by(node)
        return {(a.asname or a.name).partition(".")[0] for a in node.names if not (ours and what.is_alias(a))}
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Load) else {node.id}
    if isinstance(node, ast.MatchMapping):
        return {node.rest}
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
    return {node.name} if isinstance(node, named) else set()


def _check_unused(tree: ast.Module, what: _Registration) -> None:
    """Refuse to take out what the rest of the file needs.

    Raises:
        RegistrationError: It does.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == what.name:
            raise RegistrationError(f"line {node.lineno} uses {what.name}; take that out first")


def _check_same(before: Source, content: bytes, what: _Registration) -> None:
    """Make sure that a text differs from another in nothing but our import and our entry in `__all__`.

    Raises:
        RegistrationError: It does not.
    """
    with contextlib.suppress(SyntaxError):
        if _without(before, what) == _without(Source.parse(content), what):
            return
    raise RegistrationError(f"it cannot be patched safely; add the import of {what.name} by hand")


def _without(source: Source, what: _Registration) -> list[str | bytes]:
    """The statements, without the class."""
    left: list[str | bytes] = []
    for node in source.tree.body:
        if what.sibling(node) == what.path:
            left += _import_without(node, what)
        elif any(_export_values(node)):
            left.append(_list_without(source.text(node), what))
        else:
            left.append(source.text(node))
    return left


def _import_without(node: ast.stmt, what: _Registration) -> list[str]:
    """The names that an import of ours brings besides the class."""
    names = node.names if isinstance(node, ast.ImportFrom) else []
    return [ast.dump(alias) for alias in names if not what.is_alias(alias)]


def _list_without(statement: bytes, what: _Registration) -> str:
    """A statement about `__all__`; parsed anew, since the tree is not to be changed."""
    tree = ast.parse(statement)
    for literal in ast.walk(tree):
        if isinstance(literal, (ast.List, ast.Tuple)):
            literal.elts = [e for e in literal.elts if not (isinstance(e, ast.Constant) and e.value == what.name)]
    return ast.dump(tree)
