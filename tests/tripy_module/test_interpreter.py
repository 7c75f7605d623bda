import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import ROOT, installed_nvtripy

from tripy_module.interpreter import InterpreterError, candidates, environment, find

pytestmark = pytest.mark.skipif(os.name == "nt", reason="lays environments out as POSIX does")


def make_environment(folder: Path, *paths: Path) -> Path:
    """Make a virtual environment that finds what is in `paths`, and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "paths.pth").write_text("".join(f"{path}\n" for path in paths), "utf-8")
    return folder / "bin" / "python"


def make_packages(folder: Path, version: str = "0.1.7", *names: str) -> Path:
    """Make a folder of packages: an nvtripy that says its version, and others that are there."""
    for name in ("nvtripy", *names):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f'__version__ = "{version}"\n', "utf-8")
    return folder


NEEDED = ("numpy", "pytest", "colored", "ml_dtypes")
NOWHERE = {"PATH": ""}


def look(project, answered="", environ=NOWHERE, own="/nowhere/python", **options):
    return find(answered, project, checkout=options.pop("checkout", False), environ=environ, own=own, **options)


def test_candidates_come_in_order_and_once(tmp_path):
    (tmp_path / "bin").mkdir()
    for name in ("python", "python3"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n", "utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    environ = {"VIRTUAL_ENV": str(tmp_path), "CONDA_PREFIX": "/conda", "PATH": str(tmp_path / "bin")}

    found = candidates("", Path("/project"), environ, "/own/python")

    assert [(candidate.source, str(candidate.executable)) for candidate in found] == [
        ("VIRTUAL_ENV", f"{tmp_path}/bin/python"),
        (".venv of the project", "/project/.venv/bin/python"),
        ("CONDA_PREFIX", "/conda/bin/python"),
        ("python3 on PATH", f"{tmp_path}/bin/python3"),
        ("cookiecutter's own", "/own/python"),
    ]


@pytest.mark.parametrize("answered", ["{folder}", "{folder}/bin/python", "python"])
def test_an_answered_interpreter_is_the_only_one(tmp_path, answered):
    environ = {"VIRTUAL_ENV": "/elsewhere", "PATH": f"{tmp_path}/bin"}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text("#!/bin/sh\n", "utf-8")
    (tmp_path / "bin" / "python").chmod(0o755)

    (found,) = candidates(answered.format(folder=tmp_path), tmp_path, environ, "/own/python")

    assert found.executable == tmp_path / "bin" / "python"


def test_the_first_that_has_all_is_taken_and_its_link_is_not_resolved(tmp_path):
    bare = make_environment(tmp_path / "bare")
    old = make_environment(tmp_path / "old", make_packages(tmp_path / "a", "0.1.3", *NEEDED))
    good = make_environment(tmp_path / "good", make_packages(tmp_path / "b", "0.1.6", *NEEDED))
    environ = {"VIRTUAL_ENV": str(bare.parents[1]), "CONDA_PREFIX": str(old.parents[1]), "PATH": ""}

    found = look(tmp_path, environ=environ, own=str(good))

    assert (found.executable, found.source, found.nvtripy_version) == (good, "cookiecutter's own", "0.1.6")
    assert found.nvtripy_folder == tmp_path / "b" / "nvtripy"
    assert (found.backend, found.backend_reason) == ("tripy_cpu", "tensorrt and mlir_tensorrt are not installed")
    assert found.python_version == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.parametrize(
    ("version", "packages", "words"),
    [
        ("0.1.7", ("pytest", "colored", "ml_dtypes"), ["lacks numpy; run: ", "bin/python -m pip install numpy"]),
        ("0.1.7", (), ["lacks numpy, pytest, colored, ml_dtypes"]),
        ("0.1.4", NEEDED, ["nvtripy 0.1.4", "too old", "0.1.5 to 0.1.7"]),
        ("0.1.8", NEEDED, ["nvtripy 0.1.8", "newer", "__any_nvtripy=yes"]),
        ("1.0", NEEDED, ["nvtripy 1.0", "newer"]),
    ],
)
def test_the_most_telling_problem_is_reported(tmp_path, version, packages, words):
    python = make_environment(tmp_path / "venv", make_packages(tmp_path / "site", version, *packages))

    with pytest.raises(InterpreterError) as error:
        look(tmp_path, environ={"VIRTUAL_ENV": str(python.parents[1]), "PATH": ""})

    assert all(word in str(error.value) for word in words), error.value
    assert "\n" not in str(error.value)


def test_a_newer_version_can_be_asked_for(tmp_path):
    python = make_environment(tmp_path / "venv", make_packages(tmp_path / "site", "0.1.8", *NEEDED))

    assert look(tmp_path, str(python), any_version=True).nvtripy_version == "0.1.8"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="it works there")
def test_the_oldest_version_is_refused_where_it_breaks(tmp_path):
    python = make_environment(tmp_path / "venv", make_packages(tmp_path / "site", "0.1.5", *NEEDED))

    with pytest.raises(InterpreterError, match=r"0\.1\.5 does not work on Python 3\.11 or later"):
        look(tmp_path, str(python))


def test_where_there_is_none_the_places_and_the_command_are_given(tmp_path):
    bare = make_environment(tmp_path / "bare")

    with pytest.raises(InterpreterError) as error:
        look(tmp_path, environ={"VIRTUAL_ENV": str(bare.parents[1]), "PATH": ""})

    assert f"looked at {bare} (VIRTUAL_ENV)" in str(error.value)
    assert 'pip install --no-deps "nvtripy>=0.1.5,<0.1.8" colored && pip install numpy ml_dtypes pytest' in str(
        error.value
    )


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (None, "cannot be run: No such file or directory"),
        ("not a program", "cannot be run: Exec format error"),
        ("#!/bin/sh\nexit 3\n", "does not work (exit status 3)"),
        ("#!/bin/sh\necho rubbish\n", "does not work (exit status 0)"),
        (
            '#!/bin/sh\necho \'tripy-module-probe:{"python": [3, 9, 1], "nvtripy": null}\'\n',
            "is Python 3.9.1; nvtripy needs 3.10 or later",
        ),
    ],
)
def test_an_interpreter_that_does_not_work_is_named(tmp_path, script, problem):
    python = tmp_path / "python"
    if script is not None:
        python.write_text(script, "utf-8")
        python.chmod(0o755)

    with pytest.raises(InterpreterError) as error:
        look(tmp_path, str(python))

    assert f"{python} {problem}" in str(error.value)


def test_a_checkouts_own_nvtripy_wins_over_an_installed_one(tmp_path):
    python = make_environment(tmp_path / "venv", make_packages(tmp_path / "site", "0.1.7", *NEEDED))
    checkout = make_packages(tmp_path / "a checkout % \u00e4", "0.1.6")

    found = look(checkout, str(python), checkout=True)

    assert (found.nvtripy_version, found.nvtripy_folder) == ("0.1.6", checkout / "nvtripy")


def test_a_folder_that_is_no_package_does_not_count(tmp_path):
    python = make_environment(tmp_path / "venv")
    (tmp_path / "project" / "nvtripy").mkdir(parents=True)

    with pytest.raises(InterpreterError, match="has no nvtripy; run: "):
        look(tmp_path / "project", str(python))


def test_settings_for_other_runs_are_dropped_and_the_users_path_is_kept(tmp_path):
    given = {
        "PYTHONPATH": "/mine",
        "PYTHONOPTIMIZE": "2",
        "PYTEST_ADDOPTS": "-x",
        "PYTHONHOME": "/rubbish",
        "HOME": "/home",
    }

    found = environment(tmp_path, given)

    assert found["PYTHONPATH"] == os.pathsep.join([str(tmp_path), str(ROOT / "src"), "/mine"])
    assert found["HOME"] == "/home"
    assert not {"PYTHONOPTIMIZE", "PYTEST_ADDOPTS", "PYTHONHOME"} & set(found)


GPU = "class RuntimeClient:\n    def get_devices(self):\n        {}\n"


def make_backend(folder: Path, answer: str) -> Path:
    """Add packages of TensorRT's names to a folder, whose client answers so when it is asked for devices."""
    (folder / "tensorrt").mkdir()
    (folder / "tensorrt" / "__init__.py").write_text("print('loading')\n", "utf-8")
    (folder / "mlir_tensorrt" / "runtime").mkdir(parents=True)
    for name in ("mlir_tensorrt/__init__.py", "mlir_tensorrt/runtime/__init__.py"):
        (folder / name).touch()
    (folder / "mlir_tensorrt" / "runtime" / "api.py").write_text(GPU.format(answer), "utf-8")
    return folder


@pytest.mark.parametrize(
    ("answer", "backend", "reason"),
    [
        ("return ['device']", "TensorRT", "a GPU answers"),
        ("return []", "tripy_cpu", "no GPU answers: there is no device"),
        ("raise RuntimeError('no driver\\nat all')", "tripy_cpu", "no GPU answers: no driver"),
        ("import os; os._exit(3)", "tripy_cpu", "no GPU answers: asking for one crashed or took too long"),
    ],
)
def test_a_gpu_is_asked_as_nvtripy_would(tmp_path, answer, backend, reason):
    site = make_backend(make_packages(tmp_path / "site", "0.1.7", *NEEDED), answer)
    python = make_environment(tmp_path / "venv", site)

    found = look(tmp_path, str(python))

    assert (found.backend, found.backend_reason, found.needs_force) == (backend, reason, backend == "tripy_cpu")
    assert look(tmp_path, str(python), backend="tripy_cpu").backend_reason == "as answered"
    if backend == "tripy_cpu":
        with pytest.raises(InterpreterError, match="the backend tensorrt was asked for"):
            look(tmp_path, str(python), backend="tensorrt")


def test_the_running_environment_will_do(tmp_path):
    found = find("", tmp_path, checkout=False, environ={"PATH": ""}, own=sys.executable)

    assert found.nvtripy_folder == installed_nvtripy()
