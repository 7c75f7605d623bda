"""All tests of the backend hold on every version of nvtripy that is supported: this runs them on the older ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nvtripy
import pytest
from harness import ROOT, install_nvtripy, make_venv

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(nvtripy.__version__ != "0.1.7", reason="only the newest version's run starts the others"),
]


def python310() -> str | None:
    """Return an interpreter of Python 3.10, later ones of which nvtripy 0.1.5 does not know."""
    if sys.version_info[:2] == (3, 10):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for command in ("python3.10", *map(str, pyenv.glob("versions/3.10*/bin/python"))):
        try:
            answer = subprocess.run([command, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True)
        except OSError:
            continue
        if answer.returncode == 0 and answer.stdout.strip() == b"(3, 10)":
            return command
    return None


def run_tests(python: str | Path, version: str, path: Path) -> None:
    """Run the backend's tests but these, with that version of nvtripy, which lies in `path`."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), str(ROOT / "src")])}
    ask = "from importlib.metadata import version; print(version('nvtripy'))"
    answer = subprocess.run(
        [str(python), "-c", ask], env=environment, capture_output=True, encoding="utf-8", check=True
    )
    assert answer.stdout.strip() == version
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--override-ini=addopts=--import-mode=importlib"]
    result = subprocess.run(
        [str(python), *arguments, "tests/tripy_cpu", "--deselect=tests/tripy_cpu/test_versions.py"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=280,
    )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]
    assert " passed" in result.stdout


def test_nvtripy_0_1_6(tmp_path: Path) -> None:
    install_nvtripy(make_venv(tmp_path / "venv"), "0.1.6", tmp_path / "nvtripy")
    run_tests(sys.executable, "0.1.6", tmp_path / "nvtripy")


def test_nvtripy_0_1_5_with_the_oldest_packages(tmp_path: Path) -> None:
    command = python310()
    if command is None:
        pytest.skip("needs Python 3.10")
    python = make_venv(tmp_path / "venv", command)
    packages = ["numpy==1.26.*", "ml_dtypes==0.4.*", "colored", "hypothesis", "pytest", "pytest-timeout"]
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
    install_nvtripy(python, "0.1.5", tmp_path / "nvtripy")
    run_tests(python, "0.1.5", tmp_path / "nvtripy")
