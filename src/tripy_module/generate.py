"""From answers to a module that is in its project, registered and proven: what the hooks run."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import FrameType

from tripy_module import exports, interpreter, records, registration, report, testing
from tripy_module.answers import Answers, RecipeSignature, validate
from tripy_module.changes import Plan, applied, plan, project_lock
from tripy_module.errors import AnswerError, UserError, one_line
from tripy_module.interpreter import Interpreter, InterpreterError
from tripy_module.project import Destination, Project, destination, locate

_LOCK_WAIT_SECONDS = 900.0  # other runs hold the lock while their tests run
_PARENT_ENDS_SECONDS = 2.0


@dataclass(frozen=True)
class Template:
    """What the hooks are told of the template that they belong to.

    Attributes:
        root: Its folder.
        address: What it was asked for by, absolute where it is a path.
        recipe: The arguments and parameters that the chosen recipe has by itself.
    """

    root: Path
    address: str
    recipe: RecipeSignature

    @classmethod
    def from_facts(cls, facts: Mapping[str, str]) -> Template:
        """Take the facts that `local_extensions.template_for` gave to a hook."""
        recipe = RecipeSignature(arguments=facts["arguments"], parameters=facts["parameters"])
        return cls(root=Path(facts["root"]), address=facts["address"], recipe=recipe)


@dataclass(frozen=True)
class Options:
    """The answers that say how to generate, not what: cookiecutter's own, which copier does not ask."""

    project_dir: str
    interpreter: str
    backend: str
    any_nvtripy: bool
    run_tests: bool
    time_limit: float

    @classmethod
    def from_context(cls, context: Mapping[str, object]) -> Options:
        """Take the options out of cookiecutter's context.

        Raises:
            AnswerError: One of them has no usable value.
        """
        run_tests = context["run_tests"]
        if not isinstance(run_tests, bool):
            raise AnswerError("run_tests", f"{run_tests!r} is neither yes nor no")
        backend = str(context["__backend"])
        if backend not in interpreter.BACKENDS:
            raise AnswerError("backend", f"{backend!r} is unknown; choose one of {', '.join(interpreter.BACKENDS)}")
        any_nvtripy = str(context["__any_nvtripy"])
        if any_nvtripy not in ("yes", "no"):
            raise AnswerError("any_nvtripy", f"{any_nvtripy!r} is neither yes nor no")
        try:
            time_limit = float(str(context["__time_limit"]))
        except ValueError:
            time_limit = 0.0
        if not 0 < time_limit < 1e6:
            raise AnswerError(
                "time_limit", f"{context['__time_limit']!r} is no number of seconds; write for example 600"
            )
        return cls(
            project_dir=str(context["__project_folder"]),
            interpreter=str(context["__interpreter"]),
            backend=backend,
            any_nvtripy=any_nvtripy == "yes",
            run_tests=run_tests,
            time_limit=time_limit,
        )


def check(context: Mapping[str, object], facts: Mapping[str, str]) -> int:
    """Refuse bad answers before anything is rendered from them: the work of the pre-generation hook.

    Returns:
        The exit status.
    """
    staging = Path.cwd()
    try:
        answers = Answers.from_context(context)
        validate(answers, Template.from_facts(facts).recipe)
        options = Options.from_context(context)
        if any(staging.iterdir()):
            raise UserError(f"the output folder {staging} is not empty; choose another with -o, or another module_name")
        locate(options.project_dir, answers.package, staging)
    except (UserError, OSError) as error:
        report.show_error(one_line(error))
        return 1
    return 0


def generate(context: Mapping[str, object], facts: Mapping[str, str]) -> int:
    """Move what was rendered into its project, and keep it there if its tests pass: the post-generation hook.

    Returns:
        The exit status.
    """
    staging, cookiecutter = Path.cwd(), os.getppid()
    try:
        with _termination_as_interrupt():
            _generate(Answers.from_context(context), Options.from_context(context), Template.from_facts(facts), staging)
    except (UserError, OSError) as error:
        report.show_error(one_line(error))
        return 1
    except KeyboardInterrupt:
        report.show_error("interrupted; nothing was changed")
        # Interrupted itself, cookiecutter leaves its folder behind; otherwise it wants to remove it.
        if _gone(cookiecutter):
            _leave_and_remove(staging)
        return 130
    return 0


def _generate(answers: Answers, options: Options, template: Template, staging: Path) -> None:
    project = locate(options.project_dir, answers.package, staging)
    paths = destination(answers.package, answers.module_name)
    rendered = _take(staging, paths)
    python = _find_interpreter(project, options)
    if project.checkout:
        exports.check_untaken(project.root / "nvtripy", answers.class_name, answers.module_name)
    elif python is not None:
        exports.check_untaken(python.nvtripy_folder, answers.class_name, answers.module_name)
    origin = records.origin(template.root, template.address)

    with project_lock(project.root, wait_seconds=_LOCK_WAIT_SECONDS, on_wait=report.show_progress) as lock:
        if lock.recovered is not None:
            report.show_progress(lock.recovered.message)
        changes = _plan(answers, project, paths, rendered, origin)
        with applied(changes):
            outcome = None
            if options.run_tests and python is not None:
                report.show_progress(report.testing_with(python))
                outcome = testing.run(
                    python,
                    project.root,
                    [project.root / paths.test],
                    checkout=project.checkout,
                    time_limit=options.time_limit,
                )
                if outcome.failed or outcome.errors:
                    report.show_failures(outcome)
                    raise UserError(report.tests_failed(outcome))

    if project.root != staging:
        _leave_and_remove(staging)
    report.show_result(
        report.Result(
            answers=answers,
            project=project,
            paths=paths,
            changes=changes,
            origin=origin,
            interpreter=python,
            outcome=outcome,
        )
    )


def _take(staging: Path, paths: Destination) -> dict[PurePosixPath, bytes]:
    """Read what cookiecutter has rendered and empty its folder: from here on it is all in memory.

    An empty folder is kept for cookiecutter, which removes it when the hook fails, and is invisible to git.
    """
    rendered = {path: (staging / path).read_bytes() for path in (paths.module, paths.test)}
    for entry in staging.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return rendered


def _find_interpreter(project: Project, options: Options) -> Interpreter | None:
    try:
        return interpreter.find(
            options.interpreter,
            project.root,
            checkout=project.checkout,
            backend=options.backend,
            any_version=options.any_nvtripy,
        )
    except InterpreterError:
        # Without a test run, nvtripy only serves to tell which names it has taken.
        if options.run_tests:
            raise
        return None


def _plan(
    answers: Answers,
    project: Project,
    paths: Destination,
    rendered: Mapping[PurePosixPath, bytes],
    origin: records.Origin,
) -> Plan:
    contents: dict[PurePosixPath, bytes | None] = dict(rendered)
    init = project.root / paths.init
    try:
        contents[paths.init] = registration.add(
            init.read_bytes() if init.exists() else None, answers.package, answers.module_name, answers.class_name
        )
    except registration.RegistrationError as error:
        raise UserError(f"{paths.init}: {error}") from error
    if origin.commit:
        contents[paths.record] = records.render(answers, origin)
    changes = plan(project.root, contents)
    for change in changes.changes:
        if change.before is not None and change.path != paths.init:
            raise AnswerError(
                "module_name", f"{change.path} is there already; choose another name, or move that file away"
            )
    _check_case(project.root, paths)
    return changes


def _check_case(root: Path, paths: Destination) -> None:
    """Refuse names that differ from an existing file's in case only, or are a package's already."""
    folder = root / paths.module.parent
    taken = {entry.name.lower(): entry.name for entry in folder.iterdir()} if folder.is_dir() else {}
    for name in (paths.module.name, paths.module.stem):
        if name in taken:
            raise AnswerError(
                "module_name", f"{paths.module.parent / taken[name]} is there already; choose another name"
            )


def _leave_and_remove(staging: Path) -> None:
    os.chdir(staging.parent)  # Windows removes no folder that a process is in
    shutil.rmtree(staging, ignore_errors=True)


def _gone(parent: int) -> bool:
    """Whether the parent process ends now; a terminal interrupts both at once, and it waits for this one a little."""
    deadline = time.monotonic() + _PARENT_ENDS_SECONDS
    while os.getppid() == parent:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@contextlib.contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    """Let a termination signal roll back as Ctrl-C does."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
