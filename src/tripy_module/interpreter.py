"""Which Python has nvtripy, and on which backend it can run there; found without importing nvtripy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tripy_module.errors import UserError

BACKENDS = ("auto", "tensorrt", "tripy_cpu")
SOURCE = Path(__file__).resolve().parents[1]  # holds tripy_module and tripy_cpu

_OLDEST, _NEWEST = (0, 1, 5), (0, 1, 7)
_SUPPORTED = "nvtripy 0.1.5 to 0.1.7"
_INSTALL_NVTRIPY = 'pip install --no-deps "nvtripy>=0.1.5,<0.1.8" colored'
_INSTALL_OTHERS = "pip install numpy ml_dtypes pytest"
_PROBE_SECONDS = 30.0
_OLDEST_PYTHON = (3, 10)

# Settings that are meant for another run of Python or pytest than the emitted tests.
_DROPPED = {"PYTHONHOME", "PYTHONOPTIMIZE", "PYTHONSTARTUP", "PYTHONWARNINGS", "__PYVENV_LAUNCHER__"}
_DROPPED |= {"PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_CURRENT_TEST", "PYTEST_VERSION"}


class InterpreterError(UserError):
    """There is no Python that the emitted tests could run on; the message says which command helps."""


@dataclass(frozen=True)
class Candidate:
    """A Python that may have nvtripy.

    Attributes:
        source: Where it was found: "VIRTUAL_ENV", ".venv of the project", ...
    """

    source: str
    executable: Path


@dataclass(frozen=True)
class Interpreter:
    """A Python that the emitted tests can run on.

    Attributes:
        source: Where it was found.
        nvtripy_folder: The package's folder.
        backend: "TensorRT" or "tripy_cpu".
        backend_reason: Why it is that one.
        needs_force: Whether TensorRT is installed, so that `tripy_cpu` must be told to take its place all the same.
    """

    executable: Path
    source: str
    python_version: str
    nvtripy_version: str
    nvtripy_folder: Path
    backend: str
    backend_reason: str
    needs_force: bool


@dataclass(frozen=True)
class _Problem:
    """Why a candidate will not do; the more there is of what is needed, the higher the rank."""

    rank: int
    message: str


def environment(project: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of the emitted tests: the project first on the path, then the backend, then the user's own."""
    kept = {name: value for name, value in environ.items() if name not in _DROPPED}
    path = [str(project), str(SOURCE), *filter(None, [environ.get("PYTHONPATH")])]
    return kept | {
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONUTF8": "1",
    }


def candidates(answered: str, project: Path, environ: Mapping[str, str], own: str) -> tuple[Candidate, ...]:
    """The Pythons to look at, in order; where one is answered, that one alone.

    Args:
        answered: A path or the name of a command, or "".
        project: The folder that may hold a `.venv`.
        environ: The environment.
        own: The Python that runs this.
    """
    if answered:
        path = Path(answered).expanduser()
        found = shutil.which(answered, path=environ.get("PATH")) or path
        return (Candidate("as answered", _in_environment(path) if path.is_dir() else Path(found).absolute()),)
    listed = []
    for source, folder in (
        ("VIRTUAL_ENV", environ.get("VIRTUAL_ENV")),
        (".venv of the project", str(project / ".venv")),
        ("CONDA_PREFIX", environ.get("CONDA_PREFIX")),
    ):
        if folder:
            listed.append(Candidate(source, _in_environment(Path(folder))))
    for name in ("python3", "python"):
        command = shutil.which(name, path=environ.get("PATH", os.defpath))
        if command:
            listed.append(Candidate(f"{name} on PATH", Path(command).absolute()))
    listed.append(Candidate("cookiecutter's own", Path(own)))
    # Links are not resolved: the Python of a virtual environment is one, and its place makes the environment.
    first = {str(candidate.executable): candidate for candidate in reversed(listed)}
    return tuple(candidate for candidate in listed if first[str(candidate.executable)] is candidate)


def find(
    answered: str,
    project: Path,
    *,
    checkout: bool,
    backend: str = "auto",
    any_version: bool = False,
    environ: Mapping[str, str] | None = None,
    own: str = sys.executable,
) -> Interpreter:
    """Find the first Python that has nvtripy and all that the emitted tests need.

    Args:
        answered: A path or the name of a command; "" to look for one.
        project: The folder that the module goes into.
        checkout: Whether that folder's own nvtripy must be the one.
        backend: One of `BACKENDS`.
        any_version: Whether versions of nvtripy that are not supported will do.
        environ: The environment, the process's own by default.
        own: The Python that runs this.

    Raises:
        InterpreterError: None will do.
    """
    environ = os.environ if environ is None else environ
    looked_at = candidates(answered, project, environ, own)
    problems = []
    for candidate in looked_at:
        result = _examine(candidate, project, checkout, backend, any_version, environ)
        if isinstance(result, Interpreter):
            return result
        problems.append(result)
    best = max(problems, key=lambda problem: problem.rank)  # the first of the highest rank
    if best.rank > 0 or answered:
        raise InterpreterError(best.message)
    places = ", ".join(f"{candidate.executable} ({candidate.source})" for candidate in looked_at)
    raise InterpreterError(
        f"no Python with nvtripy was found; looked at {places}. Activate an environment and run: "
        f"{_INSTALL_NVTRIPY} && {_INSTALL_OTHERS}"
    )


def _examine(
    candidate: Candidate, project: Path, checkout: bool, backend: str, any_version: bool, environ: Mapping[str, str]
) -> Interpreter | _Problem:
    python = candidate.executable
    facts = _probe(python, project, environ, gpu=backend != "tripy_cpu")
    if isinstance(facts, _Problem):
        return facts
    version = ".".join(map(str, facts["python"]))
    if tuple(facts["python"]) < _OLDEST_PYTHON:
        return _Problem(0, f"{python} is Python {version}; nvtripy needs 3.10 or later, so answer another interpreter")
    if not facts["nvtripy"]:
        return _Problem(0, f"{python} has no nvtripy; run: {python} -m {_INSTALL_NVTRIPY}")
    folder = Path(facts["nvtripy"]).parent
    if checkout and folder.resolve() != (project / "nvtripy").resolve():
        return _Problem(1, f"{python} imports nvtripy from {folder}, not from the checkout {project}; mend its path")
    unsupported = _unsupported(facts["version"], folder, tuple(facts["python"]))
    if unsupported and not any_version:
        return _Problem(2, unsupported)
    real = bool(facts.get("gpu"))
    if backend == "tensorrt" and not real:
        return _Problem(3, f"the backend tensorrt was asked for, and {python} cannot use it: {_reason(facts, backend)}")
    missing = [name for name in facts["missing"] if not (real and name == "ml_dtypes")]
    if missing:
        return _Problem(3, f"{python} lacks {', '.join(missing)}; run: {python} -m pip install {' '.join(missing)}")
    return Interpreter(
        executable=python,
        source=candidate.source,
        python_version=version,
        nvtripy_version=facts["version"] or "of unknown version",
        nvtripy_folder=folder,
        backend="TensorRT" if real else "tripy_cpu",
        backend_reason=_reason(facts, backend),
        needs_force=not facts["without"] and not real,
    )


def _unsupported(version: str, folder: Path, python: tuple[int, ...]) -> str:
    """Why a version of nvtripy will not do, or ""."""
    numbers = tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
    if numbers == (0, 1, 5) and python >= (3, 11):
        # Its error texts subtract columns that Python 3.11 leaves out, and every evaluation makes such texts.
        return f"nvtripy 0.1.5 does not work on Python 3.11 or later ({folder}); use Python 3.10, or nvtripy 0.1.6"
    if len(numbers) == 3 and _OLDEST <= numbers <= _NEWEST:
        return ""
    if not version:
        return f"{folder} does not say which version of nvtripy it is; {_SUPPORTED} are supported"
    if numbers < _OLDEST:
        return (
            f"nvtripy {version} in {folder} is too old: {_SUPPORTED} are supported, since older ones have neither "
            f"`input_requirements` nor `frontend.wrappers.constant_fields`; update it"
        )
    return (
        f"nvtripy {version} in {folder} is newer than this template knows: {_SUPPORTED} are supported; use a newer "
        "version of the template, or answer __any_nvtripy=yes to try it all the same"
    )


def _reason(facts: Mapping[str, Any], backend: str) -> str:
    if facts.get("gpu"):
        return "a GPU answers"
    if backend == "tripy_cpu":
        return "as answered"
    without = facts["without"]
    if without:
        return f"{' and '.join(without)} {'is' if len(without) == 1 else 'are'} not installed"
    return f"no GPU answers: {facts.get('reason') or 'asking for one crashed or took too long'}"


def _probe(python: Path, project: Path, environ: Mapping[str, str], *, gpu: bool) -> dict[str, Any] | _Problem:
    command = [str(python), str(SOURCE / "tripy_module" / "probe.py"), *(["--gpu"] if gpu else [])]
    try:
        result = subprocess.run(
            command,
            cwd=project,
            env=environment(project, environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PROBE_SECONDS,
            check=False,
        )
        output, end = result.stdout, f"exit status {result.returncode}"
    except subprocess.TimeoutExpired as error:
        output, end = error.stdout or b"", f"no answer within {_PROBE_SECONDS:.0f} s"
    except OSError as error:
        return _Problem(0, f"{python} cannot be run: {error.strerror}; answer another interpreter")
    facts: dict[str, Any] = {}
    for line in output.decode("utf-8", "replace").splitlines():
        if line.startswith(_MARK):
            facts |= json.loads(line.removeprefix(_MARK))
    return facts or _Problem(0, f"{python} does not work ({end}); answer another interpreter")


_MARK = "tripy-module-probe:"


def _in_environment(folder: Path) -> Path:
    """The Python of a virtual or conda environment."""
    if os.name == "nt":
        script = folder / "Scripts" / "python.exe"
        return script if script.exists() else folder / "python.exe"
    return folder / "bin" / "python"
