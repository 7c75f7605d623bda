"""Where cookiecutter, nvtripy and the backend are: together, apart, with a GPU and without."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import ROOT, installed_nvtripy, status


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


SIMULATED = {
    "tensorrt/__init__.py": "import tripy_cpu; tripy_cpu.install(force=True)\n",
}


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
    process = subprocess.Popen(
        cookiecutter.command("--no-input"),
        cwd=checkout,
        env=cookiecutter.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()

    assert process.wait(timeout=60) == 0, errors
    assert len(status(checkout)) == 4
    assert "Traceback" not in errors
