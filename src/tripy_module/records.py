"""The answers file of a module: what copier would have written, so that copier can update what cookiecutter made."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tripy_module.answers import Answers, check_module_name, check_package
from tripy_module.errors import AnswerError, UserError
from tripy_module.project import RECORDS

_HEADER = "# What this module was generated from. Updates rest on it: leave it as it is.\n"
_DIRTY = "-dirty"
_OTHER_REPOSITORY = {"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_NAMESPACE"}
_OTHER_REPOSITORY |= {"GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"}


@dataclass(frozen=True)
class Origin:
    """Where a template came from.

    Attributes:
        address: What copier can fetch it from again.
        commit: `git describe --tags --always` of it, or "" where it has no git data.
        problem: Why updates will not work, or not quite; "" where they will.
        temporary: Whether the template's folder is removed at the end, as cookiecutter does with what it unpacks.
    """

    address: str
    commit: str
    problem: str
    temporary: bool = False


def origin(root: Path, address: str) -> Origin:
    """Describe the template.

    Args:
        root: The template's folder.
        address: The address that it was asked for by, absolute where it is a path.
    """
    if not (root / ".git").exists():
        temporary = Path(tempfile.gettempdir()).resolve() in root.resolve().parents
        return Origin(address, "", "the template came without git data", temporary)
    command = ["git", "-C", str(root), "describe", "--tags", "--always", f"--dirty={_DIRTY}"]
    # Inside a git hook, say, these point to another repository.
    environ = {name: value for name, value in os.environ.items() if name not in _OTHER_REPOSITORY}
    try:
        result = subprocess.run(
            command, capture_output=True, env=environ, text=True, encoding="utf-8", errors="replace", check=False
        )
    except OSError as error:
        return Origin(address, "", f"git could not be run: {error.strerror}")
    if result.returncode:
        reason = result.stderr.strip().splitlines()
        return Origin(address, "", f"git could not describe the template: {reason[0] if reason else 'no reason given'}")
    commit = result.stdout.strip()
    problem = "the template has changes that are not committed" if commit.endswith(_DIRTY) else ""
    return Origin(address, commit.removesuffix(_DIRTY), problem)


def render(answers: Answers, origin: Origin) -> bytes:
    """The answers file, byte for byte as copier renders it."""
    import yaml

    recorded = dataclasses.asdict(answers) | {"_commit": origin.commit, "_src_path": origin.address}
    text = yaml.safe_dump(recorded, indent=4, allow_unicode=True, default_flow_style=False)
    return (_HEADER + text).encode("utf-8")


def packages(root: Path) -> dict[str, str]:
    """The modules that a project has records of, each with its package."""
    import yaml

    def read(path: Path) -> tuple[str, str]:
        try:
            record = yaml.safe_load(path.read_text(encoding="utf-8"))
            name, package = str(record["module_name"]), str(record["package"])
            check_module_name(name)
            check_package(package)
        except (yaml.YAMLError, OSError, UnicodeDecodeError, TypeError, KeyError, AnswerError) as error:
            raise UserError(f"{path} is no answers file of this template; mend it or remove it") from error
        return name, package

    return dict(map(read, sorted((root / RECORDS).glob("*.yml"))))
