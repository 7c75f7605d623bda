import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest

import tripy_module.changes
from tripy_module.changes import ProjectLock, project_lock

DRIVER = Path(__file__).with_name("driver.py")


@pytest.fixture(scope="session")
def driver() -> ModuleType:
    spec = importlib.util.spec_from_file_location("changes_driver", DRIVER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(driver: ModuleType, tmp_path: Path) -> Path:
    """A project in a folder whose name has all that code tends to stumble over."""
    root = tmp_path / "my prøject 100% {x}"
    driver.make_project(root)
    return root


@pytest.fixture
def contents(driver: ModuleType) -> dict[PurePosixPath, bytes | None]:
    """What the changes of most tests are: three files created, two modified, two deleted."""
    return dict(driver.CONTENTS)


@pytest.fixture
def snapshot(driver: ModuleType) -> Callable[[Path], dict[str, tuple[int, str]]]:
    return driver.snapshot


@pytest.fixture
def lock() -> Callable[[Path], AbstractContextManager[ProjectLock]]:
    """Hold a project's lock, for which nobody is to wait."""
    return lambda root: project_lock(root, wait_seconds=0, on_wait=pytest.fail)


@pytest.fixture
def start(project: Path) -> Callable[..., "subprocess.Popen[str]"]:
    """Start one of the driver's commands on the project, with all warnings as errors."""
    started: list[subprocess.Popen[str]] = []
    source = Path(tripy_module.changes.__file__).parents[1]

    def run(command: str, *arguments: str, root: Path = project) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-W", "error", str(DRIVER), command, str(root), *arguments],
            env={**os.environ, "PYTHONPATH": str(source)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()
