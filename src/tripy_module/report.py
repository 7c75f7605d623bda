"""All that a person sees of the engine."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TextIO

from tripy_module import registration, testing
from tripy_module.answers import Answers
from tripy_module.changes import Plan
from tripy_module.interpreter import Interpreter
from tripy_module.project import Destination, Project
from tripy_module.records import Origin
from tripy_module.testing import Outcome

_VERBS = {"create": "wrote", "modify": "patched", "delete": "deleted"}
_MOST_FAILURE_LINES = 60
# What `isolated.ini` says, for where that file does not last.
_ISOLATED = ("--noconftest", "-p", "tripy_cpu.pytest_plugin", "-p", "tripy_module.pytest_report")


# A label and a text; without a label, the text stands at the margin.
Row = tuple[str | None, str]


@dataclass(frozen=True)
class Result:
    """What a run has done.

    Attributes:
        interpreter: The Python that has nvtripy, None if none was looked for or found.
        outcome: How the tests went, None if they were not run.
    """

    answers: Answers
    project: Project
    paths: Destination
    changes: Plan
    origin: Origin
    interpreter: Interpreter | None
    outcome: Outcome | None


def show_error(message: str) -> None:
    """Say on standard error why nothing was done."""
    _write(sys.stderr, [("error", message)], "red")


def show_progress(message: str) -> None:
    """Say what is going on."""
    _write(sys.stdout, [(None, message)], "dim")


def show_failures(outcome: Outcome) -> None:
    """Show what pytest says of the first test that failed."""
    failure = outcome.failures[0]
    lines = failure.text.splitlines()
    shown = lines if len(lines) <= _MOST_FAILURE_LINES else ["[...]", *lines[-_MOST_FAILURE_LINES:]]
    _write(sys.stderr, [(None, line) for line in [failure.name, *shown]], "")


def show_outcome(outcome: Outcome) -> None:
    """Show how the tests went, with pytest's own words on the first failure."""
    if outcome.failures:
        show_failures(outcome)
    _write(sys.stdout, [("tested", outcome_summary(outcome))], "red" if outcome.failures else "green")


def show_result(result: Result) -> None:
    """Show what was written, how it was proven, and what comes next."""
    _write(sys.stdout, _result_rows(result), "green")


def testing_with(interpreter: Interpreter) -> str:
    """What the tests are about to run on."""
    return (
        f"Testing with nvtripy {interpreter.nvtripy_version}, Python {interpreter.python_version}, "
        f"{interpreter.backend} ({interpreter.backend_reason}) ..."
    )


def tests_failed(outcome: Outcome) -> str:
    """The last word on tests that failed."""
    failed = outcome.failed + outcome.errors
    total = failed + outcome.passed + outcome.todo
    return (
        f"{failed} of {total} emitted tests failed with nvtripy {outcome.nvtripy_version} on {outcome.backend}, "
        f"first {outcome.failures[0].name}: {outcome.failures[0].message}; nothing was changed"
    )


def outcome_summary(outcome: Outcome) -> str:
    """How the tests went, in a line."""
    counts = [(outcome.passed, "passed"), (outcome.failed, "failed"), (outcome.errors, "errors")]
    counts += [(outcome.todo, "to do"), (outcome.skipped, "skipped")]
    return ", ".join(f"{count} {what}" for count, what in counts if count) + f" in {outcome.seconds:.1f} s"


def _result_rows(result: Result) -> list[Row]:
    answers, paths = result.answers, result.paths
    kind = "tripy checkout" if result.project.checkout else "project"
    rows: list[Row] = [
        (None, f"{answers.class_name} is in {answers.package}, in the {kind} {result.project.root}"),
        (None, ""),
    ]
    after = {change.path: change.after or b"" for change in result.changes.changes}
    for change in result.changes.changes:
        if change.kind in _VERBS:
            rows.append((_VERBS[change.kind], str(change.path)))
        line = registration.line_of(after[paths.init], answers.package, answers.module_name, answers.class_name)
        if change.path == paths.init and line is not None:
            text = after[paths.init].splitlines()[line - 1].decode("utf-8", "replace").strip()
            rows.append(("", f"line {line}: {text}"))
    if result.origin.problem:
        consequence = "updates start from the last commit" if result.origin.commit else "this module cannot be updated"
        rows.append(("note", f"{result.origin.problem}: {consequence}"))
    rows += _proof_rows(result)
    return [*rows, (None, ""), *_next_rows(result, after[paths.module].decode("ascii"))]


def _proof_rows(result: Result) -> list[Row]:
    if result.outcome is None or result.interpreter is None:
        return [("not tested", "run_tests was answered no: nothing has shown yet that this module works")]
    outcome = result.outcome
    return [
        ("tested", outcome_summary(outcome)),
        ("with", f"nvtripy {outcome.nvtripy_version} in {outcome.nvtripy_folder}"),
        ("", f"Python {outcome.python_version}, {result.interpreter.executable} ({result.interpreter.source})"),
        ("", f"{outcome.backend} ({result.interpreter.backend_reason})"),
    ]


def _next_rows(result: Result, module: str) -> list[Row]:
    answers, paths, project = result.answers, result.paths, result.project
    lines = module.splitlines()
    helper = f"def {answers.module_name}("
    math = next((number for number, line in enumerate(lines, 1) if line.startswith(helper)), None)
    if math is None:
        math = next(number for number, line in enumerate(lines, 1) if line.startswith("    def forward("))
    what = "fill in the TODOs" if answers.mode == "exercise" else "write the math"
    rows: list[Row] = [("next", f"{what}: {project.root / paths.module}:{math}")]
    if result.interpreter is not None:
        rows.append(("", f"run the tests again: {_again(result, result.interpreter)}"))
    if project.checkout:
        rows.append(
            (
                "",
                f"contribute it: git add {paths.module} {paths.test} {paths.init}, run pre-commit, open a pull request",
            )
        )
        rows.append(("", f"  ({paths.record} is for updates from this template: keep it out of the pull request)"))
    else:
        rows.append(
            ("", "contribute it: answer the same questions inside the tripy/ folder of a TensorRT-Incubator checkout")
        )
    return rows


def _again(result: Result, interpreter: Interpreter) -> str:
    """The line that runs the tests once more, also when the template that did it now is gone."""
    test = result.project.root / result.paths.test
    command = testing.command(interpreter, result.project.root, [test])
    if not result.origin.temporary or interpreter.backend != "tripy_cpu":
        return testing.shell_line(command, windows=os.name == "nt")
    python = str(interpreter.executable)
    lasting = testing.Command(
        (python, "-m", "pytest", *_ISOLATED, str(test)),
        {**command.variables, "PYTHONPATH": str(result.project.root)},
        result.project.root,
    )
    install = testing.Command((python, "-m", "pip", "install", result.origin.address), {}, result.project.root)
    return "; ".join(testing.shell_line(line, windows=os.name == "nt") for line in (install, lasting))


def _write(stream: TextIO, rows: list[Row], style: str) -> None:
    """Print rows of a label and a text, in color where a person looks at them.

    A reader that has gone away, or an encoding without some character, is no reason to fail.
    """
    width = max((len(label) for label, _ in rows if label), default=0)
    lines = [text if label is None else f"{label:{width}}  {text}".rstrip() for label, text in rows]
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    try:
        if stream.isatty():
            _print_in_color(stream, lines, width, style)
        else:
            print("\n".join(lines), file=stream, flush=True)
    except BrokenPipeError:
        # Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _print_in_color(stream: TextIO, lines: list[str], width: int, style: str) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, soft_wrap=True)
    for line in lines:
        text = Text(line)
        text.stylize(style, 0, width or len(line))
        console.print(text)
