"""The answers to the template's questions: parsed, validated, and written as copier would record them."""

from __future__ import annotations

import builtins
import dataclasses
import keyword
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from tripy_module import signature
from tripy_module.errors import AnswerError

CHECKOUT_PACKAGE = "nvtripy.frontend.module"
OWN_PACKAGE = "tripy_layers"
UPSTREAM_COPYRIGHT_HOLDER = "NVIDIA CORPORATION & AFFILIATES"

_LONGEST_NAME = 60  # longer ones make lines that black would split

# Names that the emitted files give to something else.
_USED_CLASS_NAMES = {"Callable", "DefaultParameter", "Dict", "GetInput", "GetReturn", "If", "List", "OneOf", "Optional"}
_USED_CLASS_NAMES |= {"OptionalParameter", "Sequence", "Tuple", "Union", "None", "True", "False"}
_USED_MODULE_NAMES = {"constant_fields", "dataclass", "datatype", "export", "nvtripy", "wrappers"}
_USED_PACKAGES = {"tests", "tripy_cpu", "tripy_module", "tensorrt", "mlir_tensorrt", "numpy", "np", "tp", "pytest"}
_USED_PACKAGES |= {"colored", "ml_dtypes"}
# Reserved by Windows, where no file of such a name can be made.
_DEVICE_NAMES = {"aux", "con", "nul", "prn"} | {f"{port}{number}" for port in ("com", "lpt") for number in range(10)}

# Upstream's tests ban these texts anywhere below nvtripy/, documentation included.
_BANNED_IMPORT = re.compile(r"\b(import|from)\s+(numpy|cupy|pickle)\b")
_TEMPLATE = re.compile(r"\{[{%#]|[#%}]\}")


@dataclass(frozen=True)
class RecipeSignature:
    """The arguments and parameters that a recipe has by itself, in the signature language."""

    arguments: str
    parameters: str


@dataclass(frozen=True)
class Answers:
    """What both front doors, cookiecutter and copier, ask; an empty text leaves the choice to the recipe."""

    class_name: str
    module_name: str
    recipe: str
    summary: str
    arguments: str
    parameters: str
    mode: str
    package: str
    year: str
    copyright_holder: str
    constant_fields: str

    @classmethod
    def from_context(cls, context: Mapping[str, object]) -> Answers:
        """Take the answers out of cookiecutter's context; those that it never asks for are named `__name` there.

        Raises:
            AnswerError: An answer is missing.
        """
        found = {}
        for field in dataclasses.fields(cls):
            # The spelling that was rendered, where cookiecutter has both.
            name = next((name for name in (f"__{field.name}", field.name) if name in context), None)
            if name is None:
                raise AnswerError(field.name, "no answer was given; answer the template's questions again")
            found[field.name] = str(context[name])
        return cls(**found)


def module_name_for(class_name: str) -> str:
    """The snake case of a class name: `RMSNorm` -> `rms_norm`, `Conv2dBlock` -> `conv2d_block`, `Foo2D` -> `foo2d`."""
    words = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", class_name)
    words = re.sub(r"([a-z])([A-Z])|([0-9])([A-Z][a-z])", r"\1\3_\2\4", words)
    return words.lower()


def validate(answers: Answers, recipe: RecipeSignature) -> None:
    """Refuse every answer that cannot be used.

    Raises:
        AnswerError: The first one, with what to write instead.
    """
    check_class_name(answers.class_name)
    check_module_name(answers.module_name)
    check_summary(answers.summary)
    arguments = check_arguments(answers.arguments, recipe)
    check_parameters(answers.parameters, arguments, recipe)
    check_package(answers.package)
    check_copyright(answers.year, answers.copyright_holder)
    _check_constant_fields(answers.constant_fields, arguments)


def check_class_name(name: str) -> None:
    """Refuse what cannot name a class of nvtripy.

    Raises:
        AnswerError: The name is no ASCII identifier, a keyword, private, in lower case, too long or in use.
    """
    _check_identifier("class_name", name, "RMSNorm")
    if not name[0].isupper():
        raise AnswerError("class_name", f"{name!r} starts in lower case; nvtripy's classes are in CapWords, as RMSNorm")
    if name in _USED_CLASS_NAMES:
        raise AnswerError("class_name", f"{name!r} is a name that the emitted file imports; choose another")


def check_module_name(name: str) -> None:
    """Refuse what cannot name a module file.

    Raises:
        AnswerError: The name is no ASCII identifier in lower case, a keyword, private, too long, in use or reserved.
    """
    _check_identifier("module_name", name, "rms_norm")
    if name != name.lower():
        raise AnswerError("module_name", f"{name!r} has capitals; file names of modules are in lower case, as rms_norm")
    if name in _USED_MODULE_NAMES or name in dir(builtins):
        raise AnswerError("module_name", f"{name!r} is a name that the emitted file uses; choose another")
    if name in _DEVICE_NAMES:
        raise AnswerError(
            "module_name", f"{name!r} is a device on Windows, where no file can have this name; choose another"
        )
    if name.startswith("test_"):
        raise AnswerError("module_name", f"{name!r} would be collected as a test file; leave out `test_`")


def check_summary(text: str) -> None:
    """Refuse what cannot be the first line of a raw docstring in a source of nvtripy.

    Raises:
        AnswerError: The text is not one line of ASCII, too long, or holds what the docstring or upstream cannot take.
    """
    if not text:
        return
    if not text.isascii() or not text.isprintable():
        raise AnswerError("summary", "holds characters other than printable ASCII; write one line of plain English")
    if text != text.strip() or len(text) > 110:
        raise AnswerError("summary", "write at most 110 characters, with no space at either end")
    if '"""' in text or text[0] == '"' or "\\" in text:
        raise AnswerError("summary", 'write it without a backslash and without """ or a quote at its start')
    if _TEMPLATE.search(text):
        raise AnswerError("summary", "looks like a template; write it without {{ or {%")
    if _BANNED_IMPORT.search(text):
        raise AnswerError(
            "summary", "nvtripy's sources may not hold this import statement, not even in words; rephrase it"
        )


def check_arguments(text: str, recipe: RecipeSignature) -> tuple[signature.Argument, ...]:
    """Read the arguments, the recipe's own where the answer is empty.

    Raises:
        AnswerError: They cannot be read, or lack what the recipe's `forward` needs.
    """
    own = signature.parse_arguments(recipe.arguments)
    if not text.strip():
        return own
    arguments = signature.parse_arguments(text)
    given = {argument.name: argument for argument in arguments}
    for needed in own:
        found = given.get(needed.name)
        if found is None or found.annotation != needed.annotation:
            raise AnswerError("arguments", f"this recipe needs `{needed.name}: {needed.annotation}`; add it to yours")
        if needed.default and not found.default:
            raise AnswerError("arguments", f"{needed.name}: this recipe needs a default; write for example `{needed}`")
    known = {argument.name for argument in own}
    for argument in arguments:
        if argument.name not in known and not argument.default and argument.annotation not in _SAMPLED_TYPES:
            raise AnswerError(
                "arguments",
                f"{argument.name}: the tests know no value for {argument.annotation}; give a default, "
                f"for example `{argument.name}: Optional[{argument.annotation}] = None`",
            )
    return arguments


_SAMPLED_TYPES = {"bool", "datatype.dtype", "float", "int", "str", "Sequence[int]"}


def check_parameters(
    text: str, arguments: tuple[signature.Argument, ...], recipe: RecipeSignature
) -> tuple[signature.Parameter, ...]:
    """Read the parameters, the recipe's own where the answer is empty.

    Raises:
        AnswerError: They cannot be read, or lack what the recipe's `forward` needs.
    """
    own = signature.parse_parameters(recipe.parameters, arguments)
    if not text.strip():
        return own
    parameters = signature.parse_parameters(text, arguments)
    for needed in own:
        if needed not in parameters:
            raise AnswerError("parameters", f"this recipe needs `{needed}`; add it to your own")
    return parameters


def check_package(package: str) -> None:
    """Refuse what cannot be the dotted name of a package.

    Raises:
        AnswerError: A part is no ASCII identifier in use for packages.
    """
    for part in package.split("."):
        _check_identifier("package", part, OWN_PACKAGE)
        if part.lower() in _DEVICE_NAMES:
            raise AnswerError("package", f"{part!r} is a device on Windows, where no folder can have this name")
    if package.split(".")[0] in _USED_PACKAGES | sys.stdlib_module_names:
        raise AnswerError("package", f"{package!r} would hide another package; choose a name of your own")


def check_copyright(year: str, holder: str) -> None:
    """Refuse what cannot stand in a license header.

    Raises:
        AnswerError: The year is no year, or the holder not one line of ASCII.
    """
    if not re.fullmatch(r"[12][0-9]{3}", year):
        raise AnswerError("year", f"{year!r} is no year; write for example 2026")
    if not holder.isascii() or (holder and not holder.isprintable()) or len(holder) > 60 or holder != holder.strip():
        raise AnswerError("copyright_holder", "write one line of at most 60 ASCII characters, or nothing for no header")
    if _TEMPLATE.search(holder):
        raise AnswerError("copyright_holder", "looks like a template; write it without {{ or {%")


def canonical_arguments(text: str, recipe: RecipeSignature) -> str:
    """The answer in the spelling that renders clean under black; empty where it was."""
    return signature.canonical(check_arguments(text, recipe)) if text.strip() else ""


def canonical_parameters(text: str, arguments: str, recipe: RecipeSignature) -> str:
    """The answer in the spelling that renders clean under black; empty where it was."""
    if not text.strip():
        return ""
    return signature.canonical(check_parameters(text, check_arguments(arguments, recipe), recipe))


def _check_constant_fields(text: str, arguments: tuple[signature.Argument, ...]) -> None:
    known = [argument.name for argument in arguments]
    for name in filter(None, text.replace(" ", "").split(",")):
        if name not in known:
            raise AnswerError("constant_fields", f"{name!r} is no argument; use some of: {', '.join(known)}")


def _check_identifier(answer: str, name: str, example: str) -> None:
    if not name:
        raise AnswerError(answer, f"is empty; write for example {example}")
    if not name.isascii() or not name.isidentifier():
        shown = ascii(name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + "...")
        raise AnswerError(
            answer, f"{shown} is no Python name in ASCII; use letters, digits and underscores, as in {example}"
        )
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise AnswerError(answer, f"{name!r} is a keyword of Python; choose another, for example {name}_layer")
    if name.startswith("_"):
        raise AnswerError(answer, f"{name!r} is private by its underscore; write {name.lstrip('_') or example}")
    if len(name) > _LONGEST_NAME:
        raise AnswerError(answer, f"{name[:20]!r}... has {len(name)} characters; at most {_LONGEST_NAME} are admitted")
