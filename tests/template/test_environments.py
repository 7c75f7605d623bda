"""Where cookiecutter, nvtripy and the backend are: together, apart, with a GPU and without."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import ROOT, commit_all, installed_nvtripy, status


def make_environment(folder: Path, *paths: Path) -> Path:
    """Make a virtual environment that finds what is in `paths`, and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([str(python), "-c", code], capture_output=True, check=True, encoding="utf-8").stdout.strip()
    (Path(site) / "paths.pth").write_text("".join(f"{path}\n" for path in paths), "utf-8")
    return python


def site_packages_without(folder: Path, *names: str) -> Path:
    """Make a folder of links to what is installed here, without some packages."""
    folder.mkdir()
    for entry in installed_nvtripy().parent.iterdir():
        if not any(entry.name.lower().startswith(name) for name in names) and entry.suffix != ".pth":
            (folder / entry.name).symlink_to(entry)
    return folder


@pytest.fixture
def apart(tmp_path, make_cookiecutter, template):
    """Cookiecutter in an environment that has no nvtripy, as pipx and uvx make it."""
    site = site_packages_without(tmp_path / "site", "nvtripy", "numpy", "pytest", "ml_dtypes", "_pytest")
    return make_cookiecutter(template, python=str(make_environment(tmp_path / "pipx", site)))


def test_cookiecutter_apart_finds_nvtripy_through_virtual_env(apart, checkout, tmp_path):
    make_environment(tmp_path / "venv", installed_nvtripy().parent)

    run = apart(cwd=checkout, environment={"VIRTUAL_ENV": str(tmp_path / "venv")})

    assert run.returncode == 0, run.output
    assert f"{tmp_path / 'venv'}" in run.stdout
    assert " passed in " in run.stdout


def test_cookiecutter_apart_finds_nvtripy_in_the_projects_venv(apart, tmp_path):
    project = tmp_path / "project"
    (project / "tripy_layers").mkdir(parents=True)
    (project / "tripy_layers" / "__init__.py").touch()
    make_environment(project / ".venv", installed_nvtripy().parent)

    run = apart(cwd=project, environment={"PATH": "/usr/bin:/bin"})

    assert run.returncode == 0, run.output
    assert f"{project / '.venv'}" in run.stdout
    assert " passed in " in run.stdout


def test_without_nvtripy_anywhere_the_command_that_installs_it_is_given(apart, tmp_path):
    (tmp_path / "work").mkdir()

    run = apart(cwd=tmp_path / "work", environment={"PATH": "/usr/bin:/bin"})

    assert run.returncode != 0
    assert "pip install" in run.output
    assert list((tmp_path / "work").iterdir()) == []


# nvtripy imports TensorRT in the middle of its own import, when tripy_cpu would rightly refuse.
STAND_IN = """\
import sys
import tripy_cpu

importing = {name: sys.modules.pop(name) for name in list(sys.modules) if name == "nvtripy"}
tripy_cpu.install(force=True)
sys.modules.update(importing)
"""
NO_GPU = """\
from mlir_tensorrt.runtime import api

class RuntimeClient:
    def __init__(self):
        raise RuntimeError("CUDA driver version is insufficient")

api.RuntimeClient = RuntimeClient
"""


def make_gpu_environment(folder: Path, *, gpu: bool) -> Path:
    """Make an environment in which what upstream's conftest asks for can be imported, and a GPU answers or not."""
    packages = folder / "packages"
    for name, code in {
        "tensorrt": STAND_IN + ("" if gpu else NO_GPU),
        "mlir_tensorrt": STAND_IN + ("" if gpu else NO_GPU),
        "cupy": "",
        "triton": "",
        "torch": "class cuda:\n    is_available = staticmethod(lambda: True)\n",
    }.items():
        (packages / name).mkdir(parents=True)
        (packages / name / "__init__.py").write_text(code, "utf-8")
    return make_environment(folder / "venv", packages, ROOT / "src", installed_nvtripy().parent)


def leave_a_mark(checkout: Path, mark: Path) -> None:
    """Let the checkout's own conftest show that pytest has loaded it."""
    with (checkout / "tests" / "conftest.py").open("a", encoding="utf-8") as conftest:
        conftest.write(f"\nopen({str(mark)!r}, 'w').close()\n")
    commit_all(checkout, "A conftest that leaves a mark")


def test_where_a_gpu_answers_the_real_backend_and_the_projects_own_configuration_are_used(
    cookiecutter, checkout, tmp_path
):
    leave_a_mark(checkout, tmp_path / "mark")
    python = make_gpu_environment(tmp_path / "gpu", gpu=True)

    run = cookiecutter(f"__interpreter={python}", cwd=checkout)

    assert run.returncode == 0, run.output
    assert "TensorRT" in run.stdout
    assert "tripy_cpu" not in run.stdout.replace(str(tmp_path), "")
    assert " passed in " in run.stdout
    assert (tmp_path / "mark").exists()


def test_where_the_packages_are_there_and_no_gpu_is_the_report_says_so(cookiecutter, checkout, tmp_path):
    leave_a_mark(checkout, tmp_path / "mark")
    python = make_gpu_environment(tmp_path / "gpu", gpu=False)

    run = cookiecutter(f"__interpreter={python}", cwd=checkout)

    assert run.returncode == 0, run.output
    assert "tripy_cpu" in run.stdout
    assert "CUDA driver version is insufficient" in run.stdout
    assert " passed in " in run.stdout
    assert not (tmp_path / "mark").exists()


def test_warnings_as_errors_and_a_c_locale_break_nothing(make_cookiecutter, template, checkout):
    strict = make_cookiecutter(template, python_options=("-W", "error"))
    environment = {"PYTHONWARNINGS": "error", "PYTHONUTF8": "0", "LC_ALL": "C", "LANG": "C", "PYTHONCOERCECLOCALE": "0"}

    run = strict(cwd=checkout, environment=environment)

    assert run.returncode == 0, run.output
    assert "Warning" not in run.output
    assert " passed in " in run.stdout
    assert len(status(checkout)) == 4


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONPATH": str(ROOT / "tests" / "support")},
        {"PYTHONSAFEPATH": "1"},
        {"PYTHONOPTIMIZE": "2"},
        {"PYTEST_ADDOPTS": "--maxfail=1 -k nothing"},
        {"PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "40"},
    ],
    ids=lambda environment: next(iter(environment)),
)
def test_settings_of_the_users_environment_break_nothing(cookiecutter, checkout, environment):
    run = cookiecutter(cwd=checkout, environment=environment)

    assert run.returncode == 0, run.output
    assert " passed in " in run.stdout
    assert len(status(checkout)) == 4


def test_a_json_module_in_the_folder_for_temporary_files_is_not_run(cookiecutter, checkout, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    marker = tmp_path / "marker"
    (temporary / "json.py").write_text(f"open({str(marker)!r}, 'w')\n", "utf-8")

    run = cookiecutter("run_tests=no", cwd=checkout, environment={"TMPDIR": str(temporary)})

    assert run.returncode == 0, run.output
    assert not marker.exists()


def test_output_into_a_pipe_that_is_closed_changes_nothing_of_the_result(cookiecutter, checkout):
    process = cookiecutter.start(checkout)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()

    assert process.wait(timeout=60) == 0, errors
    assert len(status(checkout)) == 4
    assert "Traceback" not in errors
