"""Run emitted tests on the interpreter that has nvtripy, and read how they went."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tripy_module.errors import UserError
from tripy_module.interpreter import SOURCE, Interpreter, environment

_POLL_SECONDS = 0.5
_TAIL_LINES = 15


class TestingError(UserError):
    """The tests could not be run to their end; the message says why."""

    __test__ = False  # pytest collects classes of such names


@dataclass(frozen=True)
class Failure:
    """A test that failed: its name, the first line of why, and all that pytest says of it."""

    name: str
    message: str
    text: str


@dataclass(frozen=True)
class Outcome:
    """How a test run went.

    Attributes:
        errors: How many tests could not be run, files that cannot be imported included.
        todo: How many tests wait for a part of the module that is still to be written.
        seconds: How long pytest took.
        nvtripy_folder: The package that the tests have imported.
        output: All that pytest printed.
    """

    passed: int
    failed: int
    errors: int
    skipped: int
    todo: int
    seconds: float
    nvtripy_version: str
    nvtripy_folder: Path
    python_version: str
    backend: str
    failures: tuple[Failure, ...]
    output: str


@dataclass(frozen=True)
class Command:
    """A command line, the folder to run it in, and what it needs in the environment."""

    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    folder: Path


def command(interpreter: Interpreter, project: Path, tests: Sequence[Path]) -> Command:
    """How to run the tests: with the project's own pytest configuration on TensorRT, isolated from it on the CPU."""
    variables = {"PYTHONPATH": os.pathsep.join([str(project), str(SOURCE)])}
    options = ["-p", "tripy_module.pytest_report"]
    if interpreter.backend == "tripy_cpu":
        # Not the project's path as the root: pytest would expand a variable in it.
        options += ["-c", str(SOURCE / "tripy_module" / "isolated.ini"), "--rootdir=."]
        if interpreter.needs_force:
            variables["TRIPY_CPU"] = "always"
    return Command((str(interpreter.executable), "-m", "pytest", *options, *map(str, tests)), variables, project)


def shell_line(command: Command, *, windows: bool) -> str:
    """The command as it can be pasted into a POSIX shell, or into PowerShell."""
    if windows:
        settings = "".join(f"$env:{name} = {_quoted(value)}; " for name, value in command.variables.items())
        return f"cd {_quoted(str(command.folder))}; {settings}& {' '.join(map(_quoted, command.arguments))}"
    settings = "".join(f"{name}={shlex.quote(value)} " for name, value in command.variables.items())
    return f"(cd {shlex.quote(str(command.folder))} && {settings}{shlex.join(command.arguments)})"


def run(
    interpreter: Interpreter,
    project: Path,
    tests: Sequence[Path],
    *,
    checkout: bool,
    time_limit: float,
    environ: Mapping[str, str] | None = None,
) -> Outcome:
    """Run the tests in a process group of their own, of which nothing is left afterwards.

    Args:
        interpreter: The Python to run them with.
        project: The folder that their modules are in.
        tests: Their files.
        checkout: Whether the nvtripy under test must be the project's own.
        time_limit: After how many seconds to end them.
        environ: The environment, the process's own by default.

    Raises:
        TestingError: The tests took too long, crashed, were none, or tested another nvtripy.
        KeyboardInterrupt: This process was interrupted, or the one that started it is gone.
    """
    with tempfile.TemporaryDirectory(prefix="tripy-module-") as folder:
        report, log = Path(folder) / "report.json", Path(folder) / "output.txt"
        what = command(interpreter, project, tests)
        variables = environment(project, os.environ if environ is None else environ)
        variables |= {name: value for name, value in what.variables.items() if name != "PYTHONPATH"}
        variables["TRIPY_MODULE_REPORT"] = str(report)
        arguments = [*what.arguments, "-q"]
        status = _run(arguments, project, variables, log, time_limit)
        output = log.read_text(encoding="utf-8", errors="replace")
        if not report.exists():
            tail = "\n".join(output.splitlines()[-_TAIL_LINES:])
            raise TestingError(f"{tail}\npytest ended with status {status} and no report; nothing was changed".lstrip())
        facts = json.loads(report.read_text(encoding="utf-8"))
    outcome = _outcome(interpreter, facts, output)
    if not outcome.passed + outcome.failed + outcome.errors + outcome.todo:
        raise TestingError(f"pytest ran no test of {', '.join(map(str, tests))}; nothing was changed")
    if checkout and facts["nvtripy_folder"] and outcome.nvtripy_folder.resolve() != (project / "nvtripy").resolve():
        raise TestingError(
            f"the tests imported nvtripy from {outcome.nvtripy_folder}, not from {project}; nothing was changed"
        )
    return outcome


def _outcome(interpreter: Interpreter, facts: Mapping[str, Any], output: str) -> Outcome:
    return Outcome(
        **facts["counts"],
        seconds=facts["seconds"],
        nvtripy_version=facts["nvtripy_version"] or interpreter.nvtripy_version,
        nvtripy_folder=Path(facts["nvtripy_folder"] or interpreter.nvtripy_folder),
        python_version=interpreter.python_version,
        backend=interpreter.backend,
        failures=tuple(Failure(**failure) for failure in facts["failures"]),
        output=output,
    )


def _run(arguments: Sequence[str], folder: Path, variables: Mapping[str, str], log: Path, time_limit: float) -> int:
    """Run a command to its end and return its exit status."""
    parent = os.getppid()
    deadline = time.monotonic() + time_limit
    with log.open("wb") as output:
        # A group of its own does not get the terminal's Ctrl-C, and can be ended whole.
        process = subprocess.Popen(
            arguments,
            cwd=folder,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            creationflags=_CREATION_FLAGS,
        )
        try:
            while (status := _wait(process)) is None:
                if time.monotonic() > deadline:
                    raise TestingError(
                        f"the emitted tests took longer than {time_limit:g} s and were ended; nothing was changed "
                        "(answer __time_limit=SECONDS to allow more)"
                    )
                if os.getppid() != parent:
                    raise KeyboardInterrupt
            return status
        finally:
            _end_group(process)


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(timeout=_POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return None


if sys.platform == "win32":
    _CREATION_FLAGS = subprocess.CREATE_NEW_PROCESS_GROUP

    def _end_group(process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            subprocess.run(["taskkill", "/F", "/T", "/PID", str(process.pid)], capture_output=True, check=False)
            process.wait()

else:
    _CREATION_FLAGS = 0

    def _end_group(process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS says the latter of a group of zombies
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _quoted(text: str) -> str:
    """A PowerShell literal."""
    return "'" + text.replace("'", "''") + "'"
