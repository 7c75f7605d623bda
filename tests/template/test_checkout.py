"""Generation inside a tripy checkout."""

import os
import subprocess
import sys

import pytest
from harness import FURTHER, RECIPES, ROOT, commit_all, extended, git, status

PATHS = [
    ".tripy-module/rms_norm.yml",
    "nvtripy/frontend/module/__init__.py",
    "nvtripy/frontend/module/rms_norm.py",
    "tests/frontend/module/test_rms_norm.py",
]
IMPORT = "from nvtripy.frontend.module.rms_norm import RMSNorm"


@pytest.mark.parametrize(("start", "answers"), [(".", ["run_tests=no"]), ("nvtripy/frontend", []), ("tests", [])])
def test_exactly_the_module_its_test_the_init_and_the_record_change(cookiecutter, checkout, start, answers):
    run = cookiecutter(*answers, cwd=checkout / start)

    assert run.returncode == 0, run.output
    assert sorted(line[3:] for line in status(checkout)) == PATHS
    assert [line for line in status(checkout) if line.startswith(" M")] == [f" M {PATHS[1]}"]
    assert not (checkout / start / "rms_norm").exists()


def test_the_init_gains_one_line_and_keeps_every_other(cookiecutter, checkout):
    cookiecutter("run_tests=no", cwd=checkout)

    diff = git(checkout, "diff", "--unified=0", "--", PATHS[1]).splitlines()
    assert [line for line in diff if line.startswith(("+", "-"))][2:] == [f"+{IMPORT}"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_report_says_what_was_written_and_how_it_was_proven(cookiecutter, checkout, recipe):
    class_name = "My" + recipe.title().replace("_", "")
    run = cookiecutter(f"class_name={class_name}", f"module_name=my_{recipe}", f"recipe={recipe}", cwd=checkout)

    assert run.returncode == 0, run.output
    words = " ".join(run.stdout.split())
    assert f"{class_name} is in nvtripy.frontend.module, in the tripy checkout {checkout}" in words
    assert f"wrote nvtripy/frontend/module/my_{recipe}.py" in words
    assert f"wrote tests/frontend/module/test_my_{recipe}.py" in words
    assert "patched nvtripy/frontend/module/__init__.py" in words
    assert f"from nvtripy.frontend.module.my_{recipe} import {class_name}" in words
    assert " passed in " in words
    assert "failed" not in words
    assert f"with nvtripy 0.1.7 in {checkout / 'nvtripy'}" in words
    assert f"Python {sys.version.split()[0]}" in words
    assert "tripy_cpu (" in words
    assert "write the math: " in words
    assert "run the tests again: " in words
    assert "contribute it: git add " in words


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["complete", "exercise"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_is_proven_with_further_arguments_and_parameters(cookiecutter, checkout, recipe, mode):
    answers = extended(recipe, *FURTHER)

    run = cookiecutter(
        "class_name=Layer", f"recipe={recipe}", f"mode={mode}", *(f"{k}={v}" for k, v in answers.items()), cwd=checkout
    )

    assert run.returncode == 0, run.output
    assert (" to do in " in run.stdout) is (mode == "exercise")


def test_the_class_becomes_a_part_of_nvtripy(cookiecutter, checkout, tmp_path):
    assert cookiecutter("run_tests=no", cwd=checkout).returncode == 0

    script = tmp_path / "script.py"
    script.write_text(
        "import nvtripy as tp; print(tp.__file__, tp.RMSNorm.__module__, 'RMSNorm' in tp.__all__)\n", encoding="utf-8"
    )
    result = subprocess.run(
        [sys.executable, "-m", "tripy_cpu", str(script)],
        cwd=tmp_path,
        env=cookiecutter.environment(PYTHONPATH=os.pathsep.join([str(checkout), str(ROOT / "src")])),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [
        str(checkout / "nvtripy" / "__init__.py"),
        "nvtripy.frontend.module.rms_norm",
        "True",
    ]


def test_the_checkouts_own_nvtripy_is_tested_where_another_is_installed(cookiecutter, checkout):
    init = checkout / "nvtripy" / "__init__.py"
    init.write_text(init.read_text(encoding="utf-8").replace('"0.1.7"', '"0.1.6"'), encoding="utf-8")
    commit_all(checkout, "An older version than the wheel")

    run = cookiecutter(cwd=checkout)

    assert run.returncode == 0, run.output
    assert f"nvtripy 0.1.6 in {checkout / 'nvtripy'}" in " ".join(run.stdout.split())


def test_several_modules_live_side_by_side(cookiecutter, checkout):
    assert cookiecutter("run_tests=no", cwd=checkout).returncode == 0
    commit_all(checkout, "The first module")

    run = cookiecutter("class_name=Affine", "recipe=affine", cwd=checkout)

    assert run.returncode == 0, run.output
    lines = (checkout / PATHS[1]).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("from ")] == [
        "from nvtripy.frontend.module.module import Module",
        "from nvtripy.frontend.module.affine import Affine",
        IMPORT,
    ]


def test_added_arguments_and_parameters_are_emitted_and_tested(cookiecutter, checkout):
    run = cookiecutter(
        "class_name=ScaledNorm",
        "arguments=features:int, alpha: float, flag:bool=False, dtype:datatype.dtype=datatype.float32, eps: float=1e-5",
        "parameters=weight: (features,), gain: (features, 2*features), offset: (2,) if flag, scale?: ()",
        "summary=Normalizes and remembers much more than it needs",
        cwd=checkout,
    )

    assert run.returncode == 0, run.output
    module = (checkout / "nvtripy/frontend/module/scaled_norm.py").read_text(encoding="ascii")
    assert "gain: Tensor" in module
    assert "offset: Optional[Tensor]" in module
    assert "self.scale = OptionalParameter((), dtype=dtype)" in module
    assert "Normalizes and remembers much more than it needs" in module


@pytest.mark.parametrize(
    "answers",
    [
        ["__constant_fields=features,eps"],
        ["arguments=features: int, dtype: datatype.dtype = datatype.float16, eps: float = 0.5"],
        ["parameters=extra?: (features,), weight: (features,)"],
        ["arguments=features:int, n:int=2, on:bool=True, dtype:datatype.dtype=datatype.float16, eps:float=1.0"],
    ],
    ids=["features kept as a constant", "other defaults", "optional parameter first", "a default as it is sampled"],
)
def test_signatures_that_users_may_well_answer_are_proven(cookiecutter, checkout, answers):
    run = cookiecutter(*answers, cwd=checkout)

    assert run.returncode == 0, run.output


def test_files_that_are_none_are_passed_over(cookiecutter, checkout):
    (checkout / "nvtripy" / ".#lock.py").symlink_to("nobody@nowhere.1")
    (checkout / ".tripy-module" / "odd.yml").mkdir(parents=True)

    run = cookiecutter("run_tests=no", cwd=checkout)

    assert run.returncode == 0, run.output


def test_an_exercise_lands_with_what_is_left_to_do(cookiecutter, checkout):
    run = cookiecutter("mode=exercise", cwd=checkout)

    assert run.returncode == 0, run.output
    words = " ".join(run.stdout.split())
    assert " to do" in words
    assert "failed" not in words
    assert "fill in the TODOs: " in words
    assert "raise NotImplementedError" in (checkout / PATHS[2]).read_text(encoding="ascii")


def test_run_tests_no_writes_without_testing_and_says_so(cookiecutter, checkout):
    run = cookiecutter("run_tests=no", cwd=checkout)

    assert run.returncode == 0, run.output
    assert sorted(line[3:] for line in status(checkout)) == PATHS
    assert "not tested" in run.stdout
    assert "passed" not in run.stdout


def test_a_second_run_is_refused_and_changes_nothing(cookiecutter, checkout):
    assert cookiecutter("run_tests=no", cwd=checkout).returncode == 0
    before = status(checkout), git(checkout, "diff")

    run = cookiecutter("run_tests=no", cwd=checkout)

    assert run.returncode == 1
    assert "nvtripy exports 'RMSNorm' already" in run.output
    assert (status(checkout), git(checkout, "diff")) == before
