import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness import ROOT

from tripy_module.interpreter import find
from tripy_module.testing import Command, TestingError, command, run, shell_line


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return find("", tmp_path_factory.mktemp("nowhere"), checkout=False, environ={"PATH": ""}, own=sys.executable)


@pytest.fixture
def project(tmp_path):
    """A folder with a name that needs quotes, whose own conftest cannot be loaded."""
    folder = tmp_path / "a project % \u00e4 $HOME"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "conftest.py").write_text("raise RuntimeError('needs CUDA')\n", "utf-8")
    return folder


@pytest.fixture
def run_test(python, project):
    def run_it(text, time_limit=60.0, checkout=False):
        test = project / "tests" / "test_it.py"
        test.write_text(text, "utf-8")
        return run(python, project, [test], checkout=checkout, time_limit=time_limit)

    return run_it


def test_test_functions_run_on_a_shallow_stack_that_failures_do_not_show(run_test):
    outcome = run_test(
        "import inspect, pytest, sys\n"
        "@pytest.fixture\n"
        "def two(): yield 2\n"
        "class TestIt:\n"
        "    @pytest.mark.parametrize('one', [1])\n"
        "    def test_is_shallow(self, one, two, capsys):\n"
        "        assert (one, two) == (1, 2) and len(inspect.stack()) < 8\n"
        "        print('printed')\n"
        "        assert capsys.readouterr().out == 'printed\\n'\n"
        "    def test_fails(self, two): assert two == 3\n"
        "    def test_exits(self): sys.exit(5)\n"
    )

    assert (outcome.passed, outcome.failed) == (1, 2)
    assert outcome.failures[0].message == "assert 2 == 3"
    assert "def test_fails" in outcome.failures[0].text
    assert "thread" not in outcome.failures[0].text


def test_outcomes_are_counted(run_test, project):
    outcome = run_test(
        "import pytest\n"
        "def test_passes(): print('x' * 200000)\n"
        "def test_fails(): assert 1 == 2, 'they differ'\n"
        "def test_errors(missing): pass\n"
        "def test_skips(): pytest.skip('no reason')\n"
        "def test_todo(): raise NotImplementedError('TODO 1: write it')\n"
        "def test_other(): raise NotImplementedError('never')\n"
    )

    counts = (outcome.passed, outcome.failed, outcome.errors, outcome.skipped, outcome.todo)
    assert counts == (1, 2, 1, 1, 1)
    assert [failure.name.rpartition("::")[2] for failure in outcome.failures] == [
        "test_fails",
        "test_errors",
        "test_other",
    ]
    assert outcome.failures[0].message == "AssertionError: they differ"
    assert "assert 1 == 2" in outcome.failures[0].text
    assert outcome.seconds > 0
    assert sorted(path.name for path in project.rglob("*")) == ["conftest.py", "test_it.py", "tests"]


def test_a_todo_that_a_test_expects_otherwise_is_still_to_do(run_test):
    outcome = run_test(
        "import pytest\n"
        "def test_it():\n    with pytest.raises(ValueError):\n        raise NotImplementedError('TODO 2: refuse it')\n"
        "@pytest.fixture\ndef layer(): raise NotImplementedError('TODO 1: build it')\n"
        "def test_layer(layer): pass\n"
    )

    assert (outcome.todo, outcome.failed, outcome.errors) == (2, 0, 0)


def test_the_nvtripy_that_was_imported_is_told(run_test, python):
    outcome = run_test("import nvtripy as tp\ndef test_it(): assert (tp.ones((2,)) + 1).tolist() == [2.0, 2.0]\n")

    assert (outcome.passed, outcome.nvtripy_version, outcome.backend) == (1, "0.1.7", "tripy_cpu")
    assert outcome.nvtripy_folder == python.nvtripy_folder


def test_another_nvtripy_than_the_checkouts_is_refused(run_test):
    with pytest.raises(TestingError, match="the tests imported nvtripy from "):
        run_test("import nvtripy\ndef test_it(): pass\n", checkout=True)


def test_messages_of_nvtripy_are_told_by_their_first_telling_line(run_test):
    outcome = run_test("import nvtripy as tp\ndef test_it(): tp.Tensor(None)\n")

    assert outcome.failures[0].message == "Data argument to Tensor must not be None."
    assert "\x1b" not in outcome.failures[0].text


def test_a_file_that_cannot_be_imported_is_an_error(run_test):
    outcome = run_test("import nothing_of_this_name\n")

    assert (outcome.errors, outcome.passed) == (1, 0)
    assert "No module named 'nothing_of_this_name'" in outcome.failures[0].message


@pytest.mark.parametrize("text", ["", "def helper(): pass\n"])
def test_no_test_is_an_error(run_test, text):
    with pytest.raises(TestingError, match="pytest ran no test of "):
        run_test(text)


@pytest.mark.parametrize("crash", ["os._exit(7)", "os.abort()"])
def test_a_crash_is_told_with_the_last_words(run_test, crash):
    with pytest.raises(TestingError, match=r"pytest ended with status -?\d+ and no report; nothing was changed"):
        run_test(f"import os\ndef test_it(): {crash}\n")


def processes(mark):
    listing = subprocess.run(["ps", "-e", "-o", "pid=,args="], capture_output=True, encoding="utf-8", check=True)
    return [line for line in listing.stdout.splitlines() if mark in line and " ps " not in line]


@pytest.mark.skipif(os.name == "nt", reason="lists processes as POSIX does")
def test_tests_that_hang_are_ended_with_their_children(run_test):
    with pytest.raises(TestingError, match=r"took longer than 2 s and were ended; nothing was changed"):
        run_test("import subprocess\ndef test_it(): subprocess.run(['sleep', '98765.25'])\n", time_limit=2.0)

    assert not processes("98765.25")


@pytest.mark.skipif(os.name == "nt", reason="lists processes as POSIX does")
def test_children_that_tests_leave_behind_are_ended(run_test):
    outcome = run_test("import subprocess\ndef test_it(): subprocess.Popen(['sleep', '98765.5'])\n")

    assert outcome.passed + outcome.failed == 1
    time.sleep(0.2)
    assert not processes("98765.5")


DRIVER = """\
import sys
from pathlib import Path
from tripy_module import interpreter, testing

project = Path(sys.argv[1])
python = interpreter.find("", project, checkout=False, environ={"PATH": ""}, own=sys.executable)
print("running", flush=True)
testing.run(python, project, [project / "tests" / "test_it.py"], checkout=False, time_limit=60)
"""


@pytest.mark.skipif(os.name == "nt", reason="sends signals as POSIX does")
def test_an_interrupt_ends_the_tests_at_once(project, tmp_path):
    (project / "tests" / "test_it.py").write_text(
        "import subprocess\ndef test_it(): subprocess.run(['sleep', '98765.75'])\n", "utf-8"
    )
    (tmp_path / "driver.py").write_text(DRIVER, "utf-8")
    driver = [sys.executable, str(tmp_path / "driver.py"), str(project)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        driver, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=environment
    ) as process:
        for _ in range(300):
            if processes("sleep 98765.75"):
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=20)[1]

    assert "KeyboardInterrupt" in errors
    assert not processes("98765.75")


def test_the_line_for_a_posix_shell_runs(python, project):
    (project / "tests" / "test_it.py").write_text("def test_it(): pass\n", "utf-8")
    line = shell_line(command(python, project, [project / "tests" / "test_it.py"]), windows=False)

    result = subprocess.run(["sh", "-c", line], capture_output=True, encoding="utf-8", check=False)

    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 passed" in result.stdout


def test_the_line_for_powershell_quotes_every_part():
    what = Command((r"C:\it's here\python.exe", "-m", "pytest", "$x"), {"PYTHONPATH": r"C:\a;C:\b"}, Path("it's"))

    assert shell_line(what, windows=True) == (
        r"cd 'it''s'; $env:PYTHONPATH = 'C:\a;C:\b'; & 'C:\it''s here\python.exe' '-m' 'pytest' '$x'"
    )


def test_the_folder_of_the_engine_has_no_name_that_hides_a_users_package():
    assert {path.name for path in (ROOT / "src").iterdir() if not path.name.endswith(".egg-info")} == {
        "tripy_cpu",
        "tripy_module",
    }
    assert Path(ROOT / "src" / "tripy_module" / "isolated.ini").is_file()
