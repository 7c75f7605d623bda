"""The signature language: `arguments` and `parameters`, checked on Python's syntax tree.

`arguments` is a Python parameter list, `parameters` a list of `name: shape`, each with an optional `if` condition and,
after the name, an optional `?` for an `OptionalParameter`. What is parsed here is data: nothing of it is ever run.
"""

from __future__ import annotations

import ast
import keyword
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tripy_module.errors import AnswerError

DTYPES = ("bfloat16", "bool", "float16", "float32", "float8", "int32", "int4", "int64", "int8")

# Annotations that nvtripy's function registry can check a call against.
_PLAIN_TYPES = {"bool", "float", "int", "str"}
_SUBSCRIPTED_TYPES = {"Callable", "Dict", "List", "Optional", "Sequence", "Tuple", "Union"}

# An attribute of one of these names would hide a part of `nvtripy.Module`, and a local variable of one of the others
# something that the emitted files use.
_MODULE_ATTRIBUTES = {"forward", "initialize_dummy_parameters", "load_state_dict", "named_children", "named_parameters"}
_MODULE_ATTRIBUTES |= {"state_dict"}
_NAMES_IN_USE = {"constant_fields", "dataclass", "datatype", "export", "nvtripy", "wrappers"}  # in the module
_NAMES_IN_USE |= {"layer", "new_layer", "np", "pytest", "request", "shapes", "tp", "x"}  # in its tests
_NAMES_IN_USE |= {"all", "exec", "getattr", "self", "setattr", "super"} | _PLAIN_TYPES

_STRING = re.compile(r"""[ !#-&(-\[\]-~]*""")
_LONGEST_TEXT = 2000
_LONGEST_ITEM = 72
_EXAMPLE_ARGUMENTS = "features: int, bias: bool = True"
_NOT_ADMITTED = "only names, numbers, strings, tuples, arithmetic, comparisons, attributes and indices are admitted"


@dataclass(frozen=True)
class Argument:
    """An argument of `__init__`; texts are as they will be emitted.

    Attributes:
        default: The default value, or "" where the argument is required.
    """

    name: str
    annotation: str
    default: str

    def __str__(self) -> str:
        return f"{self.name}: {self.annotation}" + (f" = {self.default}" if self.default else "")


@dataclass(frozen=True)
class Parameter:
    """A learnable tensor of the module.

    Attributes:
        shape: An expression over the arguments that gives the shape.
        condition: An expression over the arguments, or "" where the parameter is always there.
        optional: Whether it is an `OptionalParameter`, which need not be set before a call.
    """

    name: str
    shape: str
    condition: str
    optional: bool

    def __str__(self) -> str:
        mark = "?" if self.optional else ""
        return f"{self.name}{mark}: {self.shape}" + (f" if {self.condition}" if self.condition else "")


def parse_arguments(text: str) -> tuple[Argument, ...]:
    """Read a Python parameter list.

    Raises:
        AnswerError: The text is no parameter list, or uses what nvtripy or the emitted files cannot take.
    """
    _check_text("arguments", text)
    try:
        (definition,) = _parse(f"def f(\n{text}\n): pass")
    except ValueError:
        definition = None
    # A text that closes the parenthesis itself leaves more behind than an empty function.
    if (
        not isinstance(definition, ast.FunctionDef)
        or definition.returns is not None
        or not isinstance(definition.body[0], ast.Pass)
    ):
        raise AnswerError(
            "arguments", f"{_mark(text)}: no Python parameter list; write for example `{_EXAMPLE_ARGUMENTS}`"
        )
    parameters = definition.args
    for star in (parameters.vararg, parameters.kwarg, *parameters.kwonlyargs, *parameters.posonlyargs):
        if star is not None:
            raise AnswerError("arguments", f"{_mark(star.arg)}: write plain arguments, without `*`, `**` or `/`")
    required = len(parameters.args) - len(parameters.defaults)
    defaults = [None] * required + list(parameters.defaults)
    found = tuple(_argument(argument, default) for argument, default in zip(parameters.args, defaults, strict=True))
    _check_items("arguments", found)
    return found


def parse_parameters(text: str, arguments: Collection[Argument]) -> tuple[Parameter, ...]:
    """Read `name: shape` items whose shapes and conditions are expressions over the arguments.

    Raises:
        AnswerError: An item is malformed, or its shape or condition uses a name that is no argument.
    """
    _check_text("parameters", text)
    found = tuple(_parameter(item, arguments) for item in _split(text))
    _check_items("parameters", found)
    kept = {argument.name for argument in arguments if argument.annotation != "bool"}
    for parameter in found:
        if parameter.name in kept:
            raise AnswerError(
                "parameters",
                f"{_mark(parameter.name)}: an argument has this name; only a bool argument may name the "
                "parameter that it switches",
            )
    return found


def canonical(items: Iterable[Argument | Parameter]) -> str:
    """The same items in the one spelling that renders clean under black."""
    return ", ".join(str(item) for item in items)


def _argument(argument: ast.arg, default: ast.expr | None) -> Argument:
    name = argument.arg
    if argument.annotation is None:
        raise AnswerError("arguments", f"{_mark(name)}: needs an annotation; write for example `{name}: int`")
    _check_annotation(argument.annotation, name)
    annotation = _text(argument.annotation)
    if name == "dtype" and annotation != "datatype.dtype":
        raise AnswerError("arguments", f"{_mark(f'{name}: {annotation}')}: write `dtype: datatype.dtype`")
    if default is None:
        return Argument(name, annotation, "")
    _check_expression(default, "arguments", {"datatype"})
    for node in ast.walk(default):
        if isinstance(node, ast.List):
            raise AnswerError(
                "arguments", f"{_mark(f'{name} = {_text(default)}')}: a default may not be a list; write a tuple"
            )
        if isinstance(node, ast.Attribute) and node.attr not in DTYPES:
            raise AnswerError(
                "arguments",
                f"{_mark(_text(node))}: no data type of nvtripy; write `datatype.` and one of {', '.join(DTYPES)}",
            )
    _check_default(name, annotation, default)
    return Argument(name, annotation, _text(default))


def _check_default(name: str, annotation: str, default: ast.expr) -> None:
    """Refuse a default that nvtripy would refuse as a value; it checks values that are given, defaults never."""
    value = default.operand if isinstance(default, ast.UnaryOp) else default
    shown = _mark(f"{name}: {annotation} = {_text(default)}")
    if isinstance(value, ast.Constant) and value.value is None:
        if "Optional" not in annotation and "None" not in annotation:
            raise AnswerError(
                "arguments", f"{shown}: None is no {annotation}; write {name}: Optional[{annotation}] = None"
            )
    elif isinstance(value, ast.Constant):
        kind = type(value.value).__name__
        if annotation == "float" and kind == "int":
            raise AnswerError("arguments", f"{shown}: nvtripy takes no int for a float; write {_text(default)}.0")
        if kind not in annotation:
            raise AnswerError("arguments", f"{shown}: {kind} is no {annotation}; write a default of that type")
    elif annotation in _PLAIN_TYPES and isinstance(value, (ast.Tuple, ast.Attribute)):
        raise AnswerError("arguments", f"{shown}: this is no {annotation}; write a default of that type")


def _check_annotation(node: ast.expr, argument: str) -> None:
    text = _text(node)
    if isinstance(node, ast.Name) and node.id in _PLAIN_TYPES:
        return
    if isinstance(node, ast.Constant) and node.value is None:
        return
    if text == "datatype.dtype":
        return
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        _check_annotation(node.left, argument)
        _check_annotation(node.right, argument)
        return
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in _SUBSCRIPTED_TYPES:
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for element in inner:
            if isinstance(element, ast.List) and node.value.id == "Callable":
                for parameter in element.elts:
                    _check_annotation(parameter, argument)
            else:
                _check_annotation(element, argument)
        return
    raise AnswerError(
        "arguments",
        f"{argument}: {_mark(text)}: nvtripy cannot check this annotation; use int, float, bool, str, datatype.dtype, "
        "or Optional, Union, Sequence, List, Dict, Callable or a Tuple of fixed length over them",
    )


def _parameter(item: str, arguments: Collection[Argument]) -> Parameter:
    name, colon, rest = item.partition(":")
    name = name.strip()
    optional = name.endswith("?")
    name = name.removesuffix("?").strip()
    if not colon or not rest.strip():
        raise AnswerError("parameters", f"{_mark(item)}: write `name: shape`, for example `weight: (features,)`")
    shape, condition = _shape_and_condition(item, rest)
    names = {argument.name for argument in arguments}
    sequences = {argument.name for argument in arguments if "Sequence" in argument.annotation}
    if not (isinstance(shape, ast.Tuple) or (isinstance(shape, ast.Name) and shape.id in sequences)):
        raise AnswerError(
            "parameters", f"{name}: {_mark(_text(shape))}: a shape is a tuple; write for example `({_text(shape)},)`"
        )
    _check_expression(shape, "parameters", names)
    if any(isinstance(part, ast.Div) for part in ast.walk(shape)):
        raise AnswerError("parameters", f"{name}: {_mark(_text(shape))}: a dimension is an int; write `//` for `/`")
    if condition is not None:
        _check_expression(condition, "parameters", names)
    return Parameter(name, _text(shape), "" if condition is None else _text(condition), optional)


def _shape_and_condition(item: str, text: str) -> tuple[ast.expr, ast.expr | None]:
    unreadable = AnswerError("parameters", f"{_mark(item)}: write `name: shape` or `name: shape if condition`")
    for source in (f"(\n{text}\n)", f"(\n{text} else None\n)"):
        try:
            (statement,) = _parse(source)
        except ValueError:
            continue
        if not isinstance(statement, ast.Expr):
            raise unreadable
        expression = statement.value
        if source.endswith("else None\n)"):
            if isinstance(expression, ast.IfExp):
                return expression.body, expression.test
        elif not isinstance(expression, ast.IfExp):
            return expression, None
        break
    raise unreadable


def _check_expression(node: ast.expr, answer: str, names: Collection[str]) -> None:
    """Admit data only: no call, no lambda, no comprehension, no name that is unknown."""
    admitted = (
        ast.Attribute, ast.BinOp, ast.BoolOp, ast.Compare, ast.Constant, ast.List, ast.Name, ast.Subscript, ast.Tuple,
        ast.UnaryOp, ast.boolop, ast.cmpop, ast.expr_context, ast.operator, ast.unaryop,
    )  # fmt: skip
    for part in ast.walk(node):
        if not isinstance(part, admitted):
            shown = _text(part) if isinstance(part, ast.expr) else _text(node)
            raise AnswerError(answer, f"{_mark(shown)}: {_NOT_ADMITTED}")
        if isinstance(part, ast.Name) and part.id not in names:
            known = ", ".join(sorted(names)) or "there are none"
            raise AnswerError(answer, f"{_mark(part.id)}: no such name; use one of: {known}")
        if isinstance(part, ast.Constant) and not isinstance(part.value, (bool, int, float, str, type(None))):
            raise AnswerError(answer, f"{_mark(ast.unparse(part))}: {_NOT_ADMITTED}")
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and not _STRING.fullmatch(part.value):
            raise AnswerError(
                answer, f"{_mark(ast.unparse(part))}: a string holds printable ASCII without quotes and backslashes"
            )
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow) and not _is_plain(part):
            raise AnswerError(answer, f"{_mark(_text(part))}: a power is of plain names and numbers; write a product")
        if isinstance(part, ast.Attribute) and part.attr.startswith("_"):
            raise AnswerError(answer, f"{_mark(_text(part))}: {_NOT_ADMITTED}")


def _check_items(answer: str, items: Sequence[Argument | Parameter]) -> None:
    seen: set[str] = set()
    for item in items:
        check_name(answer, item.name)
        if item.name in seen:
            raise AnswerError(answer, f"{_mark(item.name)}: stands there twice; remove one")
        seen.add(item.name)
        if len(str(item)) > _LONGEST_ITEM:  # black would split the emitted line
            raise AnswerError(answer, f"{_mark(str(item))}: longer than {_LONGEST_ITEM} characters; write less")


def check_name(answer: str, name: str) -> None:
    """Refuse what cannot be an attribute of a module.

    Raises:
        AnswerError: The name is no public Python name, or is in use in every module.
    """
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        raise AnswerError(answer, f"{_mark(name)}: no Python name; use letters, digits and underscores")
    if name != name.lower():
        raise AnswerError(
            answer, f"{_mark(name)}: has capitals, as no name in nvtripy's signatures; write {name.lower()}"
        )
    if name.startswith("_"):
        raise AnswerError(answer, f"{_mark(name)}: a public name has no leading underscore; leave it out")
    if name in _MODULE_ATTRIBUTES | _NAMES_IN_USE:
        raise AnswerError(answer, f"{_mark(name)}: this name is in use in every module; choose another")


def _split(text: str) -> Iterator[str]:
    """The items between the commas that no bracket or string encloses."""
    depth, quote, item = 0, "", ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        if character == "," and not depth and not quote:
            yield item.strip()
            item = ""
        else:
            item += character
    if item.strip():
        yield item.strip()


def _parse(source: str) -> list[ast.stmt]:
    """The statements of a source.

    Raises:
        ValueError: It is no Python, or too deep for Python's parser.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes warn; they are refused as text later
        try:
            tree = ast.parse(source)
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise ValueError(str(error)) from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            node.kind = ast.get_source_segment(source, node)  # `1e-5`, where unparse would say `1e-05`
    return tree.body


def _check_text(answer: str, text: str) -> None:
    if len(text) > _LONGEST_TEXT:
        raise AnswerError(answer, f"{len(text)} characters; at most {_LONGEST_TEXT} are admitted, so write less")
    if not text.isascii() or any(ord(character) < 32 and character not in "\n\t\r" for character in text):
        shown = next(c for c in text if not c.isascii() or ord(c) < 32)
        raise AnswerError(answer, f"{shown!a}: nvtripy's sources are pure ASCII; write ASCII only")
    for opening in ("{{", "{%", "{#"):
        if opening in text:
            raise AnswerError(answer, f"{_mark(opening)}: looks like a template; write Python only")


def _mark(text: str) -> str:
    """The offending part, in one line."""
    shown = " ".join(text.split()) or "(nothing)"
    return f">>> {shown[:77] + '...' if len(shown) > 80 else shown} <<<"


def _is_plain(operation: ast.BinOp) -> bool:
    return all(isinstance(side, (ast.Name, ast.Constant)) for side in (operation.left, operation.right))


def _text(node: ast.expr) -> str:
    """An expression as black 24 and 26 would write it."""
    return ast.unparse(_Spelling().visit(node))


class _Spelling(ast.NodeTransformer):
    """Puts names that hold the final text where `ast.unparse` would choose another spelling than black."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, str):
            return ast.Name(f'"{node.value}"')
        if type(node.value) in (int, float) and node.kind:
            number = node.kind.lower()
            return ast.Name("0x" + number[2:].upper() if number.startswith("0x") else number)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        plain = _is_plain(node)
        self.generic_visit(node)
        if isinstance(node.op, ast.Pow) and plain:
            return ast.Name(f"{ast.unparse(node.left)}**{ast.unparse(node.right)}")
        return node
