"""What is refused, before anything is written: one line, exit status 1, every file as before."""

import sys

import pytest
from harness import commit_all, git, status


def assert_refused(run, checkout, *words):
    assert run.returncode != 0, run.output
    assert "Traceback" not in run.output, run.output
    for word in words:
        assert word in run.output, run.output
    assert status(checkout) == []
    assert git(checkout, "stash", "list") == ""


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("class_name=Linear", ["class_name: nvtripy exports 'Linear' already"]),
        ("class_name=Tensor", ["class_name: nvtripy exports 'Tensor' already"]),
        ("class_name=float32", ["class_name: 'float32' starts in lower case"]),
        ("class_name=rms norm", ["class_name: 'rms norm' is no Python name"]),
        ("class_name=N\u00f6rm", ["class_name: 'N\\xf6rm' is no Python name in ASCII"]),
        ("class_name=True", ["class_name: 'True' is a keyword"]),
        ("class_name=../Evil", ["class_name: '../Evil' is no Python name"]),
        ("module_name=linear", ["module_name: nvtripy/frontend/module/linear.py is there already"]),
        ("module_name=conv", ["module_name: nvtripy/frontend/module/conv is there already"]),
        ("module_name=gelu", ["module_name: nvtripy exports 'gelu' already"]),
        ("module_name=lambda", ["module_name: 'lambda' is a keyword"]),
        ("module_name=../../evil", ["module_name: '../../evil' is no Python name"]),
        ("module_name=a/b", ["module_name: 'a/b' is no Python name"]),
        ("module_name={% raw %}{{ 7 * 7 }}{% endraw %}", ["looks like a template; answers are data"]),
        ('summary=Ends here""" + str(1)', ["summary: "]),
        ("arguments=features: int = open('x')", ['arguments: >>> open("x") <<<']),
        ("arguments=size: int", ["arguments: this recipe needs `features: int`"]),
        ("parameters=weight: (oops,)", ["parameters: >>> oops <<<: no such name"]),
        ("package=nvtripy.frontend.layers", ["package: the checkout", "has no package"]),
        ("package=tripy_layers", ["package: ", "nvtripy.frontend.module"]),
        ("project_dir=nowhere", ["project_dir: there is no folder"]),
        ("__interpreter=/nowhere/python", ["/nowhere/python"]),
        ("__backend=cuda", ["backend: 'cuda' is unknown"]),
        ("__time_limit=soon", ["time_limit: 'soon' is no number of seconds"]),
        ("__year=soon", ["year: 'soon' is no year"]),
        ("class_name={% raw %}Foo", ["'{% raw %}Foo' looks like a template"]),
        ("summary={# Nothing #}", ["'{# Nothing #}' looks like a template"]),
        ("__interpreter={{ 7 * 7 }}", ["'{{ 7 * 7 }}' looks like a template"]),
        ("__constant_fields=nothing", ["constant_fields: 'nothing' is no argument"]),
    ],
)
def test_bad_answers(cookiecutter, checkout, answer, words):
    assert_refused(cookiecutter(answer, cwd=checkout), checkout, *words)
    assert list(checkout.parent.iterdir()) == [checkout]


def test_code_in_an_answer_is_not_run(cookiecutter, checkout, tmp_path):
    code = f'{{{{ cycler.__init__.__globals__.os.mkdir("{tmp_path.as_posix()}/run") }}}}'

    assert_refused(cookiecutter(f"summary={code}", cwd=checkout), checkout, "looks like a template; answers are data")
    assert not (tmp_path / "run").exists()


def test_an_init_that_does_not_parse(cookiecutter, checkout):
    init = checkout / "nvtripy" / "frontend" / "module" / "__init__.py"
    init.write_text(init.read_text("utf-8") + "from nvtripy import (\n", "utf-8")
    commit_all(checkout, "Broken")

    assert_refused(cookiecutter(cwd=checkout), checkout, "nvtripy/frontend/module/__init__.py: ")


def test_a_test_file_that_is_there_already(cookiecutter, checkout):
    (checkout / "tests/frontend/module/test_rms_norm.py").write_text("mine\n", "utf-8")
    commit_all(checkout, "Mine")

    assert_refused(cookiecutter(cwd=checkout), checkout, "tests/frontend/module/test_rms_norm.py is there already")


def test_an_output_folder_that_is_in_use(cookiecutter, checkout, tmp_path):
    (tmp_path / "out" / "rms_norm").mkdir(parents=True)
    (tmp_path / "out" / "rms_norm" / "mine.txt").write_text("mine", "utf-8")

    run = cookiecutter("-f", "-o", str(tmp_path / "out"), cwd=checkout)

    assert_refused(run, checkout, "is not empty")
    assert (tmp_path / "out" / "rms_norm" / "mine.txt").read_text("utf-8") == "mine"


@pytest.mark.parametrize(("version", "word"), [("0.1.4", "0.1.4"), ("0.0.7", "0.0.7"), ("0.2.0", "0.2.0")])
def test_an_unsupported_nvtripy(cookiecutter, checkout, version, word):
    init = checkout / "nvtripy" / "__init__.py"
    init.write_text(init.read_text("utf-8").replace('"0.1.7"', f'"{version}"'), "utf-8")
    commit_all(checkout, "Another version")

    assert_refused(cookiecutter(cwd=checkout), checkout, word, "0.1.5")


def test_an_interpreter_without_nvtripy(cookiecutter, tmp_path, bare_environment):
    run = cookiecutter(f"__interpreter={bare_environment}", cwd=tmp_path)

    assert run.returncode != 0
    assert "nvtripy" in run.output
    assert "pip install" in run.output
    assert not (tmp_path / "rms_norm").exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="makes files unwritable as Linux does")
def test_a_file_that_cannot_be_written(cookiecutter, checkout, unwritable):
    unwritable(checkout / "nvtripy" / "frontend" / "module")

    run = cookiecutter(cwd=checkout)

    assert_refused(run, checkout, "nvtripy/frontend/module")
    assert [path.name for path in (checkout / "tests" / "frontend" / "module").iterdir()] == ["test_module.py"]
