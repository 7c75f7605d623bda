"""Generation outside a checkout: a project of the user's own."""

import subprocess
import sys

import pytest
from harness import commit_all, status


def test_a_new_project_has_a_package_that_imports_the_class(cookiecutter, tmp_path):
    run = cookiecutter(cwd=tmp_path)

    project = tmp_path / "rms_norm"
    assert run.returncode == 0, run.output
    assert sorted(path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file()) == [
        ".tripy-module/rms_norm.yml",
        "tests/test_rms_norm.py",
        "tripy_layers/__init__.py",
        "tripy_layers/rms_norm.py",
    ]
    assert "from tripy_layers.rms_norm import RMSNorm" in (project / "tripy_layers" / "__init__.py").read_text("utf-8")
    assert f"RMSNorm is in tripy_layers, in the project {project}" in run.stdout
    assert "inside the tripy/ folder of a TensorRT-Incubator checkout" in run.stdout


def test_files_of_ones_own_have_no_license_header_unless_a_holder_is_given(cookiecutter, tmp_path):
    cookiecutter("run_tests=no", cwd=tmp_path)
    cookiecutter(
        "run_tests=no", "module_name=held", "__copyright_holder=A Lab", "__year=1999", "project_dir=", cwd=tmp_path
    )

    assert (tmp_path / "rms_norm/tripy_layers/rms_norm.py").read_text("ascii").startswith("from dataclasses import")
    held = (tmp_path / "held/tripy_layers/held.py").read_text("ascii")
    assert "# SPDX-FileCopyrightText: Copyright (c) 1999 A Lab. All rights reserved.\n" in held


def test_a_second_module_joins_the_project_that_it_is_generated_in(cookiecutter, tmp_path):
    assert cookiecutter("package=my_layers.norm", "module_name=first", "run_tests=no", cwd=tmp_path).returncode == 0
    project = tmp_path / "first"

    run = cookiecutter("class_name=Affine", "recipe=affine", cwd=project / "my_layers")

    assert run.returncode == 0, run.output
    assert f"Affine is in my_layers.norm, in the project {project}" in run.stdout
    init = (project / "my_layers" / "norm" / "__init__.py").read_text("utf-8")
    assert "from my_layers.norm.affine import Affine\nfrom my_layers.norm.first import RMSNorm\n" in init
    assert (project / "tests" / "norm" / "test_affine.py").is_file()
    assert not (project / "my_layers" / "affine").exists()


def test_a_project_named_by_a_relative_path_is_found_from_the_users_folder(cookiecutter, tmp_path):
    (tmp_path / "my project").mkdir()

    run = cookiecutter("project_dir=my project", "run_tests=no", cwd=tmp_path)

    assert run.returncode == 0, run.output
    assert (tmp_path / "my project" / "tripy_layers" / "rms_norm.py").is_file()
    assert not (tmp_path / "rms_norm").exists()


def test_odd_paths_work(cookiecutter, tmp_path):
    folder = tmp_path / "space percent%20d umlaut-\u00e4 quote'd"
    folder.mkdir()

    run = cookiecutter(cwd=folder)

    assert run.returncode == 0, run.output
    assert " passed in " in run.stdout


@pytest.mark.parametrize(("mode", "words"), [("complete", " passed in "), ("exercise", " xfailed in ")])
def test_the_line_that_runs_the_tests_again_does(cookiecutter, tmp_path, mode, words):
    (tmp_path / "a b").mkdir()
    run = cookiecutter(f"mode={mode}", cwd=tmp_path / "a b")
    (line,) = [line for line in run.stdout.splitlines() if "run the tests again: " in line]

    again = subprocess.run(  # noqa: S602
        line.partition("run the tests again: ")[2],
        shell=True,
        cwd=tmp_path,
        env=cookiecutter.environment(),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert again.returncode == 0, again.stdout + again.stderr
    assert words in again.stdout


def test_tripy_module_test_runs_the_tests_of_recorded_modules(cookiecutter, tmp_path):
    cookiecutter("run_tests=no", cwd=tmp_path)
    project = tmp_path / "rms_norm"
    command = [sys.executable, "-m", "tripy_module", "test"]

    def test(*arguments):
        return subprocess.run(
            [*command, *arguments],
            cwd=project,
            env=cookiecutter.environment(),
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    good = test("rms_norm")
    unknown = test("affine")
    module = project / "tripy_layers" / "rms_norm.py"
    module.write_text(module.read_text("utf-8").replace("dim=-1", "dim=0"), "utf-8")
    wrong = test()

    assert good.returncode == 0, good.stderr
    assert " passed in " in good.stdout
    assert unknown.returncode == 1
    assert "has no record of affine; recorded: rms_norm" in unknown.stderr
    assert wrong.returncode == 1
    assert " failed" in wrong.stdout
    assert "test_matches_reference" in wrong.stderr


def test_an_existing_package_keeps_its_lines_and_their_endings(cookiecutter, tmp_path):
    project = tmp_path / "project"
    (project / "tripy_layers").mkdir(parents=True)
    (project / "tripy_layers" / "__init__.py").write_bytes(b'"""Mine."""\r\n\r\nVALUE = 1\r\n')
    commit_all(project, "Mine")

    run = cookiecutter(cwd=project)

    assert run.returncode == 0, run.output
    assert sorted(line[3:] for line in status(project)) == [
        ".tripy-module/rms_norm.yml",
        "tests/test_rms_norm.py",
        "tripy_layers/__init__.py",
        "tripy_layers/rms_norm.py",
    ]
    after = (project / "tripy_layers" / "__init__.py").read_bytes()
    assert b"from tripy_layers.rms_norm import RMSNorm\r\n" in after
    assert after.count(b"\n") == after.count(b"\r\n")
    assert after.endswith(b"\r\nVALUE = 1\r\n")
