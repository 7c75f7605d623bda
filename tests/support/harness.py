"""What tests of the template share: git, and cookiecutter in a process of its own."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tripy_module.recipes import load
from tripy_module.signature import parse_arguments

ROOT = Path(__file__).resolve().parents[2]
# Arguments and parameters that can be added to any recipe.
FURTHER = (
    'alpha: float, flag: bool = False, name: str = "a, b", dtype: datatype.dtype = datatype.float16',
    "offset: (2, 3) if flag, scale?: ()",
)
RECIPES = sorted(path.stem for path in (ROOT / "templates" / "recipes").glob("*.jinja"))
# What cookiecutter and copier read, of all that lies beside it.
TEMPLATE = (
    "cookiecutter.json",
    "copier.yml",
    "hooks",
    "local_extensions.py",
    "src",
    "templates",
    "{{cookiecutter.module_name}}",
)
# As upstream's, it needs CUDA as soon as it is imported.
UPSTREAM_CONFTEST = """\
import cupy
import torch
import triton

assert torch.cuda.is_available()
"""
UPSTREAM_PYPROJECT = """\
[project]
name = "nvtripy"
dynamic = ["version"]

[tool.black]
line-length = 120

[tool.pytest.ini_options]
addopts = "--strict-markers"
markers = ["l1: slow tests", "l1_release_package: tests of the package"]
"""
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


def copy_template(folder: Path) -> None:
    """Make a git repository of the template as it is in the working tree, tagged v1.0.0."""
    # Named one by one: anything may lie in a working tree, an environment with links to folders for one.
    names = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *TEMPLATE).split("\0")
    for name in filter(None, names):
        if (ROOT / name).exists():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
    commit_all(folder, "The template")
    git(folder, "tag", "v1.0.0")


def make_checkout(folder: Path, package: Path | None = None) -> None:
    """Make a tripy checkout of a wheel's package, the installed one by default, with a conftest that needs CUDA."""
    ignored = shutil.ignore_patterns("__pycache__", "*.pyi")
    shutil.copytree(package or installed_nvtripy(), folder / "nvtripy", ignore=ignored)
    (folder / "tests" / "frontend" / "module").mkdir(parents=True)
    (folder / "tests" / "conftest.py").write_text(UPSTREAM_CONFTEST, encoding="utf-8")
    (folder / "tests" / "frontend" / "module" / "test_module.py").write_text("import nvtripy as tp\n", encoding="utf-8")
    (folder / "pyproject.toml").write_text(UPSTREAM_PYPROJECT, encoding="utf-8")
    commit_all(folder, "A checkout")


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

    def start(self, cwd: Path, **options: Any) -> "subprocess.Popen[str]":
        """Start it with defaults for all answers, its output into a pipe."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen(
            self.command("--no-input"),
            cwd=cwd,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            **options,
        )

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


def extended(recipe: str, arguments: str, parameters: str) -> dict[str, str]:
    """Return answers that add to a recipe's own arguments and parameters, or give its arguments other defaults."""
    own = load(ROOT, recipe)
    merged = {item.name: item for item in (*parse_arguments(own.arguments), *parse_arguments(arguments))}
    ordered = sorted(merged.values(), key=lambda item: bool(item.default))
    return {"arguments": ", ".join(map(str, ordered)), "parameters": f"{own.parameters}, {parameters}"}


def make_venv(folder: Path, python: str = sys.executable) -> Path:
    """Make a virtual environment with pip, of that interpreter's version, and return its own interpreter."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install_nvtripy(python: Path, version: str, folder: Path) -> None:
    """Install one version of nvtripy, without what it requires, from the package index into a folder."""
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--ignore-requires-python"]
    subprocess.run([*install, f"--target={folder}", f"nvtripy=={version}"], check=True)
