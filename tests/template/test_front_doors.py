"""The ways in: cookiecutter's options and sources, and copier, which must emit the same bytes."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from harness import FURTHER, RECIPES, ROOT, extended, git, status

PATHS = ["tests/test_rms_norm.py", "tripy_layers/rms_norm.py"]


def test_the_questions_have_the_same_names_in_both_front_doors():
    cookiecutter = json.loads((ROOT / "cookiecutter.json").read_text("utf-8"))
    copier = yaml.safe_load((ROOT / "copier.yml").read_text("utf-8"))

    own = {"project_dir", "run_tests"}
    asked = {name for name in cookiecutter if not name.startswith("_")} - own
    also_in_cookiecutter = {name for name in copier if f"__{name}" in cookiecutter}
    assert asked | also_in_cookiecutter | {"cookiecutter"} == {name for name in copier if not name.startswith("_")}
    for name in ("recipe", "mode"):
        assert list(copier[name]["choices"].values()) == cookiecutter[name]
        assert set(copier[name]["choices"]) == set(cookiecutter["__prompts__"][name].values()) - {
            cookiecutter["__prompts__"][name]["__prompt__"]
        }
    for name in asked:
        prompt = cookiecutter["__prompts__"][name]
        help_text = copier[name]["help"].removesuffix(" (nvtripy.frontend.module inside a tripy checkout)")
        assert (prompt["__prompt__"] if isinstance(prompt, dict) else prompt) == help_text


def test_every_recipe_is_a_choice_and_every_choice_a_recipe():
    choices = json.loads((ROOT / "cookiecutter.json").read_text("utf-8"))["recipe"]

    assert sorted(choices) == sorted(path.stem for path in (ROOT / "templates" / "recipes").glob("*.jinja"))


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("mode", ["complete", "exercise"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_cookiecutter_and_copier_emit_the_same_bytes(cookiecutter, template, tmp_path, recipe, mode, added):
    further = {**extended(recipe, *FURTHER), "summary": "Something else.", "constant_fields": "dtype,alpha"}
    answers = {"recipe": recipe, "mode": mode, **(further if added else {})}
    asked = [f"{'__' if name == 'constant_fields' else ''}{name}={value}" for name, value in answers.items()]
    data = [f"--data={name}={value}" for name, value in answers.items()]

    run = cookiecutter("run_tests=no", *asked, cwd=tmp_path)
    assert run.returncode == 0, run.output
    copier = [
        sys.executable,
        "-m",
        "copier",
        "copy",
        "--quiet",
        "--defaults",
        *data,
        str(template),
        str(tmp_path / "copier"),
    ]
    subprocess.run(copier, check=True, env=cookiecutter.environment())

    for path in [*PATHS, ".tripy-module/rms_norm.yml"]:
        assert (tmp_path / "rms_norm" / path).read_bytes() == (tmp_path / "copier" / path).read_bytes(), path


def test_the_record_names_the_template_and_its_version(cookiecutter, template, tmp_path):
    cookiecutter("run_tests=no", cwd=tmp_path)

    record = yaml.safe_load((tmp_path / "rms_norm" / ".tripy-module" / "rms_norm.yml").read_text("utf-8"))
    assert record["_src_path"] == str(template)
    assert record["_commit"] == "v1.0.0"
    assert record["class_name"] == "RMSNorm"


def test_a_template_with_changes_of_its_own_is_noted(make_cookiecutter, template_clone, tmp_path):
    with (template_clone / "copier.yml").open("a", encoding="utf-8") as questions:
        questions.write("# changed\n")

    run = make_cookiecutter(template_clone)("run_tests=no", cwd=tmp_path)

    assert run.returncode == 0, run.output
    assert "the template has changes that are not committed" in run.stdout


def test_a_relative_local_path(template_clone, make_cookiecutter):
    run = make_cookiecutter("tripy-module")("run_tests=no", cwd=template_clone.parent)

    assert run.returncode == 0, run.output
    record = yaml.safe_load((template_clone.parent / "rms_norm/.tripy-module/rms_norm.yml").read_text("utf-8"))
    assert record["_src_path"] == str(template_clone)


def test_a_git_address(make_cookiecutter, template, checkout):
    address = f"git+{template.as_uri()}"

    run = make_cookiecutter(address)(cwd=checkout)

    assert run.returncode == 0, run.output
    assert " passed in " in run.stdout
    record = yaml.safe_load((checkout / ".tripy-module" / "rms_norm.yml").read_text("utf-8"))
    assert (record["_src_path"], record["_commit"]) == (address, "v1.0.0")


def test_a_zip_file_gives_a_module_but_no_record_and_says_so(make_cookiecutter, template, checkout, tmp_path):
    archive = tmp_path / "tripy-module.zip"
    git(template, "archive", "--format=zip", "--prefix=tripy-module/", f"--output={archive}", "HEAD")
    assert zipfile.is_zipfile(archive)

    run = make_cookiecutter(archive)(cwd=checkout)

    assert run.returncode == 0, run.output
    assert " passed in " in run.stdout
    assert "the template came without git data: this module cannot be updated" in run.stdout
    assert sorted(line[3:] for line in status(checkout)) == [
        "nvtripy/frontend/module/__init__.py",
        "nvtripy/frontend/module/rms_norm.py",
        "tests/frontend/module/test_rms_norm.py",
    ]
    again = next(line for line in run.stdout.splitlines() if "run the tests again: " in line)
    assert f"pip install {archive}" in again  # what cookiecutter has unpacked is gone by now
    assert "isolated.ini" not in again


def test_an_output_folder(cookiecutter, checkout, tmp_path):
    run = cookiecutter("run_tests=no", "-o", str(tmp_path / "out"), cwd=checkout)

    assert run.returncode == 0, run.output
    assert len(status(checkout)) == 4
    assert list((tmp_path / "out").iterdir()) == []


def test_answers_may_name_other_answers(cookiecutter, tmp_path):
    run = cookiecutter("run_tests=no", "summary={{ cookiecutter.class_name }} and no other", cwd=tmp_path)

    assert run.returncode == 0, run.output
    assert "RMSNorm and no other" in (tmp_path / "rms_norm/tripy_layers/rms_norm.py").read_text("ascii")


def test_a_config_file(cookiecutter, tmp_path):
    config = tmp_path / "answers.yaml"
    config.write_text(
        (cookiecutter.home / "config.yaml").read_text("utf-8")
        + "default_context:\n  class_name: Affine\n  recipe: affine\n",
        "utf-8",
    )

    run = cookiecutter("run_tests=no", "--config-file", str(config), cwd=tmp_path)

    assert run.returncode == 0, run.output
    assert (tmp_path / "affine" / "tripy_layers" / "affine.py").is_file()


def test_replay(cookiecutter, tmp_path):
    cookiecutter("run_tests=no", "class_name=Scale", "recipe=affine", cwd=tmp_path)
    first = tmp_path / "scale" / "tripy_layers" / "scale.py"
    before = first.read_bytes()
    shutil.rmtree(tmp_path / "scale")

    run = cookiecutter("--replay", cwd=tmp_path)

    assert run.returncode == 0, run.output
    assert first.read_bytes() == before


def test_a_replay_of_bad_answers_is_refused(cookiecutter, tmp_path):
    cookiecutter("run_tests=no", cwd=tmp_path)
    shutil.rmtree(tmp_path / "rms_norm")
    (replay,) = (cookiecutter.home / "replay").iterdir()
    context = json.loads(replay.read_text("utf-8"))
    context["cookiecutter"]["__arguments"] = "features: int = open('x', 'w')"
    replay.write_text(json.dumps(context), "utf-8")

    run = cookiecutter("--replay", cwd=tmp_path)

    assert run.returncode != 0
    assert 'arguments: >>> open("x", "w") <<<' in run.output
    assert not (tmp_path / "rms_norm").exists()


def test_questions_are_asked_and_a_bad_answer_ends_them_at_once(cookiecutter, tmp_path):
    process = subprocess.run(
        cookiecutter.command(),
        input="bad name\n",
        cwd=tmp_path,
        env=cookiecutter.environment(),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert process.returncode == 1
    assert "class_name: 'bad name' is no Python name" in process.stderr
    assert "[2/10]" not in process.stdout


def test_answers_that_are_typed_arrive_as_data(cookiecutter, tmp_path):
    marker = tmp_path / "marker"
    summary = "It's r'''quoted''' %s %(x)s {x} \u0041"
    typed = ["Typed", "", "", summary, "", "", "", "", "", "no"]

    process = subprocess.run(
        cookiecutter.command(),
        input="\n".join(typed) + "\n",
        cwd=tmp_path,
        env=cookiecutter.environment(),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert process.returncode == 0, process.stdout + process.stderr
    assert summary in (tmp_path / "typed" / "tripy_layers" / "typed.py").read_text("ascii")
    assert not marker.exists()


def test_the_template_has_no_path_that_windows_cannot_have():
    names = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")

    assert len(names) > 30
    for name in names:
        assert not set(name) & set('<>:"|?*\\'), name
        assert all(part == part.rstrip(" .") for part in Path(name).parts), name
    assert os.sep == "/" or names
