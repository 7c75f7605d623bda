"""Where a module goes: a checkout of tripy, a project that has modules already, or a new one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tripy_module.answers import CHECKOUT_PACKAGE, OWN_PACKAGE
from tripy_module.errors import AnswerError

RECORDS = PurePosixPath(".tripy-module")

_PACKAGE_ANSWER = re.compile(r"^package: ['\"]?([\w.]+)", re.MULTILINE)


@dataclass(frozen=True)
class Project:
    """A folder that modules are added to.

    Attributes:
        root: The folder, absolute.
        checkout: Whether it is a checkout of tripy, whose own nvtripy the module becomes a part of.
    """

    root: Path
    checkout: bool


@dataclass(frozen=True)
class Destination:
    """The paths of one module, relative to its project's root."""

    module: PurePosixPath
    test: PurePosixPath
    init: PurePosixPath
    record: PurePosixPath


def destination(package: str, module_name: str) -> Destination:
    """Lay a module out: tests mirror the package below its top level, as upstream's do.

    `nvtripy.frontend.module` -> `nvtripy/frontend/module/` and `tests/frontend/module/`.
    """
    folder = PurePosixPath(package_path(package))
    return Destination(
        module=folder / f"{module_name}.py",
        test=PurePosixPath(tests_path(package)) / f"test_{module_name}.py",
        init=folder / "__init__.py",
        record=RECORDS / f"{module_name}.yml",
    )


def package_path(package: str) -> str:
    """The folder of a package."""
    return package.replace(".", "/")


def tests_path(package: str) -> str:
    """The folder of a package's tests."""
    return "/".join(["tests", *package.split(".")[1:]])


def is_checkout(folder: Path) -> bool:
    """Whether a folder is the `tripy/` of TensorRT-Incubator, and not a wheel that was installed."""
    return (folder / package_path(CHECKOUT_PACKAGE) / "__init__.py").is_file() and (folder / "pyproject.toml").is_file()


def detect(start: Path) -> Path | None:
    """The nearest folder, from `start` upwards, that is a checkout or has modules of this template already."""
    for folder in (start, *start.parents):
        if is_checkout(folder) or _recorded_package(folder) or (folder / OWN_PACKAGE / "__init__.py").is_file():
            return folder
    return None


def default_package(root: Path | None) -> str:
    """The package that a project's next module most likely goes into."""
    if root is None:
        return OWN_PACKAGE
    if is_checkout(root):
        return CHECKOUT_PACKAGE
    return _recorded_package(root) or OWN_PACKAGE


def locate(project_dir: str, package: str, staging: Path) -> Project:
    """The project that the answers name, the staging folder itself where they name none.

    Raises:
        AnswerError: There is no such folder, or the package cannot be in it.
    """
    if not project_dir:
        root = staging
    else:
        root = Path(project_dir)
        if not root.is_dir():
            raise AnswerError("project_dir", f"there is no folder {project_dir!r}; make it first, or name another")
    checkout = is_checkout(root)
    if checkout and not (root / package_path(package) / "__init__.py").is_file():
        raise AnswerError("package", f"the checkout {root} has no package {package!r}; write {CHECKOUT_PACKAGE}")
    if checkout and not package.startswith("nvtripy."):
        raise AnswerError(
            "package", f"a module of a checkout goes below nvtripy, not into {package!r}; write {CHECKOUT_PACKAGE}"
        )
    if not checkout and package.split(".")[0].startswith("nvtripy"):
        raise AnswerError(
            "package",
            f"{package!r} counts as a part of nvtripy by its name, and {root} is no checkout of tripy; "
            f"choose a name of your own, for example {OWN_PACKAGE}",
        )
    return Project(root, checkout)


def _recorded_package(folder: Path) -> str | None:
    """The package in the records of the modules that were generated into a folder."""
    for record in filter(Path.is_file, sorted((folder / RECORDS).glob("*.yml"))):
        found = _PACKAGE_ANSWER.search(record.read_text(encoding="utf-8", errors="replace"))
        if found:
            return found[1]
    return None
