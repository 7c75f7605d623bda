"""What the tests of the template run on: a git clone of it, a tripy checkout, and cookiecutter."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import Cookiecutter, copy_template, git, make_checkout


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a git repository that holds the template as it is in the working tree, tagged v1.0.0."""
    folder = tmp_path_factory.mktemp("template") / "tripy-module"
    copy_template(folder)
    return folder


@pytest.fixture
def template_clone(template: Path, tmp_path: Path) -> Path:
    """Return a clone of the template that a test may change."""
    clone = tmp_path / "clone" / "tripy-module"
    git(template, "clone", "--quiet", str(template), str(clone))
    return clone


@pytest.fixture(scope="session")
def pristine_checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tripy checkout made of the installed wheel, with the conftest that needs CUDA."""
    folder = tmp_path_factory.mktemp("checkout") / "tripy"
    make_checkout(folder)
    return folder


@pytest.fixture
def checkout(pristine_checkout: Path, tmp_path: Path) -> Path:
    """Return a tripy checkout that a test may change."""
    folder = tmp_path / "TensorRT-Incubator" / "tripy"
    shutil.copytree(pristine_checkout, folder)
    return folder


@pytest.fixture
def make_cookiecutter(tmp_path: Path) -> Callable[..., Cookiecutter]:
    """Return a function that sets cookiecutter up for a template."""
    home = tmp_path / "cookiecutter-home"
    home.mkdir()
    config = f"cookiecutters_dir: {home / 'clones'}\nreplay_dir: {home / 'replay'}\n"
    (home / "config.yaml").write_text(config, encoding="utf-8")

    def make(template: Path | str, **settings: object) -> Cookiecutter:
        return Cookiecutter(str(template), home, **settings)  # type: ignore[arg-type]

    return make


@pytest.fixture
def cookiecutter(template: Path, make_cookiecutter: Callable[..., Cookiecutter]) -> Cookiecutter:
    """Return cookiecutter, set up for the template."""
    return make_cookiecutter(template)


@pytest.fixture(scope="session")
def bare_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a virtual environment that has nothing in it."""
    folder = tmp_path_factory.mktemp("bare") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


@pytest.fixture
def unwritable() -> Iterator[Callable[[Path], None]]:
    """Return a function that makes a folder unwritable, for root too, until the test ends."""
    undo: list[Callable[[], object]] = []

    def make(folder: Path) -> None:
        if os.geteuid():
            mode = folder.stat().st_mode
            folder.chmod(0o555)
            undo.append(lambda: folder.chmod(mode))
            return
        if subprocess.run(["chattr", "+i", str(folder)], capture_output=True, check=False).returncode:
            pytest.skip("root writes anywhere, and this file system has no immutable files")
        undo.append(lambda: subprocess.run(["chattr", "-i", str(folder)], check=True))

    yield make
    for action in undo:
        action()
