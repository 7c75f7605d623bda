"""What tests of the template share: git, and cookiecutter in a process of its own."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GIT_IDENTITY = {
    "GIT_AUTHOR_NAME": "A Tester",
    "GIT_AUTHOR_EMAIL": "tester@example.com",
    "GIT_COMMITTER_NAME": "A Tester",
    "GIT_COMMITTER_EMAIL": "tester@example.com",
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *arguments: str) -> str:
    """Run git and return what it prints."""
    result = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        check=True,
        encoding="utf-8",
        env=os.environ | GIT_IDENTITY,
    )
    return result.stdout


def commit_all(folder: Path, message: str) -> None:
    """Make a repository of a folder, or a commit of its changes."""
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--message", message)


def status(folder: Path) -> list[str]:
    """Return git's short status, with every untracked file, ignored ones too."""
    return git(folder, "status", "--porcelain", "--untracked-files=all", "--ignored").splitlines()


def installed_nvtripy() -> Path:
    """Return the folder of the wheel in the running environment."""
    spec = importlib.util.find_spec("nvtripy")
    assert spec is not None, "the tests need the nvtripy wheel; `uv run pytest` installs it"
    assert spec.origin is not None
    return Path(spec.origin).parent


@dataclass(frozen=True)
class Run:
    """What a process has left."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """All that it printed."""
        return self.stdout + self.stderr


@dataclass(frozen=True)
class Cookiecutter:
    """Cookiecutter in a process of its own, with its own configuration and folder of clones."""

    template: str
    home: Path
    python: str = sys.executable
    python_options: tuple[str, ...] = ()

    def environment(self, **changes: str) -> dict[str, str]:
        """Return the process's environment: a change to "" takes a variable away."""
        dropped = {
            "VIRTUAL_ENV",
            "CONDA_PREFIX",
            "PYTHONPATH",
            "PYTHONDONTWRITEBYTECODE",
            "PYTEST_ADDOPTS",
            "PYTHONWARNINGS",
        }
        environment = {name: value for name, value in os.environ.items() if name not in dropped}
        environment |= {"COOKIECUTTER_CONFIG": str(self.home / "config.yaml"), **GIT_IDENTITY, **changes}
        return {name: value for name, value in environment.items() if value}

    def command(self, *arguments: str) -> list[str]:
        """Return the command line."""
        return [self.python, *self.python_options, "-m", "cookiecutter", self.template, *arguments]

    def __call__(self, *arguments: str, cwd: Path, environment: Mapping[str, str] = {}) -> Run:
        """Answer with `name=value` arguments and defaults, in the folder `cwd`."""
        options = [] if "--replay" in arguments else ["--no-input"]
        result = subprocess.run(
            self.command(*options, *arguments),
            cwd=cwd,
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=300,
            check=False,
        )
        return Run(result.returncode, result.stdout, result.stderr)
