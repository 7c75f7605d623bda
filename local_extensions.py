"""What cookiecutter's own process does for the template: defaults of the questions, and checks as soon as possible.

Cookiecutter loads this from the template's root. A bad answer ends it at the next question with one line, before
anything is written.
"""

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, wraps
from pathlib import Path
from typing import TypeVar

import click
from jinja2 import Environment
from jinja2.ext import Extension

_ROOT = Path(__file__).resolve().parent
_REFERENCE = re.compile(r"\{\{ ?cookiecutter\.\w+ ?\}\}")
_MARKUP = re.compile(r"\{[{%#]")
_START = Path.cwd()  # cookiecutter changes to the template's folder before it renders the hooks
sys.path.insert(0, str(_ROOT / "src"))

from tripy_module import answers, exports, project, recipes  # noqa: E402
from tripy_module.errors import UserError, one_line  # noqa: E402

Context = Mapping[str, str]
Result = TypeVar("Result")


class TripyModuleExtension(Extension):
    """Adds what `cookiecutter.json` and the hooks call."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        for function in (module_name_for, checked, canonical_arguments, canonical_parameters, project_folder):
            environment.filters[function.__name__] = _one_line(function)
        for function in (detected_project, default_package, default_copyright_holder, template_for):
            environment.globals[function.__name__] = _one_line(function)
        # Where a hook ends with an error, cookiecutter logs a traceback of itself behind the hook's one line.
        logging.getLogger("cookiecutter.hooks").addFilter(_without_traceback)

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return the source, unless it is an answer that would run as a template.

        Cookiecutter renders what it is given on its command line or in its configuration, with all that Jinja can
        reach. Of what has no file name, only the template's own defaults, hooks and paths may hold more than the name
        of another answer.
        """
        if name is None and source not in self._own_sources and _MARKUP.search(self._without_own_paths(source)):
            shown = source if len(source) <= 60 else f"{source[:57]}..."
            raise click.ClickException(
                f"{shown!r} looks like a template; answers are data: write it without {{{{ or {{%"
            )
        return source

    @cached_property
    def _own_sources(self) -> frozenset[str]:
        questions = json.loads((_ROOT / "cookiecutter.json").read_text(encoding="utf-8"))
        hooks = (path.read_text(encoding="utf-8") for path in (_ROOT / "hooks").glob("*.py"))
        return frozenset([*_strings(questions), *hooks])

    @cached_property
    def _own_names(self) -> list[str]:
        return [path.name for path in (_ROOT / "{{cookiecutter.module_name}}").rglob("*") if "{%" in path.name]

    def _without_own_paths(self, source: str) -> str:
        for name in self._own_names:
            source = source.replace(name, "")
        return _REFERENCE.sub("", source)


def _without_traceback(record: logging.LogRecord) -> bool:
    record.exc_info = None
    return True


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _one_line(function: Callable[..., Result]) -> Callable[..., Result]:
    """Let cookiecutter end with the message of an error alone."""

    @wraps(function)
    def wrapper(*arguments: object) -> Result:
        try:
            return function(*arguments)
        except (UserError, OSError) as error:
            raise click.ClickException(one_line(error)) from error

    return wrapper


def module_name_for(class_name: str) -> str:
    """The default of `module_name`, once the class name is found to be good."""
    answers.check_class_name(class_name)
    found = project.detect(_START)
    if found is not None and project.is_checkout(found):
        exports.check_untaken(found / "nvtripy", class_name)
    return answers.module_name_for(class_name)


def checked(context: Context) -> str:
    """Nothing, once the answers given so far are found to be good."""
    answers.check_class_name(context["class_name"])
    answers.check_module_name(context["module_name"])
    if "summary" in context:
        answers.check_summary(context["summary"])
    if "arguments" in context:
        canonical_arguments(context)
    if "parameters" in context:
        canonical_parameters(context)
    return ""


def canonical_arguments(context: Context) -> str:
    """The arguments as they are rendered."""
    return answers.canonical_arguments(context["arguments"], _recipe(context))


def canonical_parameters(context: Context) -> str:
    """The parameters as they are rendered."""
    return answers.canonical_parameters(context["parameters"], context["arguments"], _recipe(context))


def detected_project() -> str:
    """The default of `project_dir`: empty where a project of its own is to be made."""
    return str(project.detect(_START) or "")


def default_package(project_dir: str) -> str:
    """The default of `package`."""
    return project.default_package(_START / project_dir if project_dir else None)


def default_copyright_holder(package: str) -> str:
    """The default of `__copyright_holder`: upstream's own files have its header, others have none."""
    return answers.UPSTREAM_COPYRIGHT_HOLDER if package.startswith("nvtripy.") else ""


def project_folder(context: Context) -> str:
    """The answer `project_dir`, absolute, since hooks run in another folder; the last look at all answers."""
    given = answers.Answers.from_context(context)
    answers.validate(given, _recipe(context))
    if not context["project_dir"]:
        return ""
    root = _START / context["project_dir"]
    if project.locate(str(root), given.package, root).checkout:
        exports.check_untaken(root / "nvtripy", given.class_name, given.module_name)
    return str(root)


def template_for(context: Context) -> dict[str, str]:
    """What the hooks must know of the template."""
    recipe = _recipe(context)
    local = _START / context["_template"]
    return {
        "root": str(_ROOT),
        "source": str(_ROOT / "src"),
        "address": str(local.resolve()) if local.exists() else context["_template"],
        "arguments": recipe.arguments,
        "parameters": recipe.parameters,
    }


def _recipe(context: Context) -> answers.RecipeSignature:
    return recipes.load(_ROOT, context["recipe"])
