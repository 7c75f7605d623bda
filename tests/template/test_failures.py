"""What goes wrong after the answers are found to be good: the project is as before, and the reason is shown."""

import os
import signal
import subprocess
import time

import pytest
from harness import commit_all, status


def edit_recipe(clone, old, new):
    recipe = clone / "templates" / "recipes" / "rms_norm.jinja"
    text = recipe.read_text("utf-8")
    assert old in text
    recipe.write_text(text.replace(old, new), "utf-8")
    commit_all(clone, "An edited recipe")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("dim=-1, keepdim", "dim=0, keepdim", ["test_matches_reference", "Mismatched elements", "tests failed"]),
        ("    x = cast(input", "    x = undefined_name(input", ["NameError", "undefined_name", "tests failed"]),
        ("from nvtripy.frontend.ops.cast import cast", "syntax error", ["SyntaxError"]),
        (
            "[datatype.float32, datatype.float16, datatype.bfloat16]",
            "[datatype.float32, datatype.float16, datatype.bfloat16, datatype.int32]",
            ["test_rejects_unsupported_dtypes"],
        ),
        ("cast(input, datatype.float32)", "input", ["test_large_inputs_do_not_overflow"]),
    ],
)
def test_failing_tests_take_everything_back_and_are_shown(make_cookiecutter, template_clone, checkout, old, new, words):
    edit_recipe(template_clone, old, new)

    run = make_cookiecutter(template_clone)(cwd=checkout)

    assert run.returncode != 0
    for word in words:
        assert word in run.output, run.output
    assert "nothing was changed" in run.output
    assert status(checkout) == []
    assert not (checkout / "rms_norm").exists()


def test_a_project_of_its_own_is_not_left_half_made(make_cookiecutter, template_clone, tmp_path):
    edit_recipe(template_clone, "dim=-1, keepdim", "dim=0, keepdim")
    (tmp_path / "work").mkdir()

    run = make_cookiecutter(template_clone)(cwd=tmp_path / "work")

    assert run.returncode != 0
    assert list((tmp_path / "work").iterdir()) == []


def test_tests_that_hang_are_ended(make_cookiecutter, template_clone, checkout):
    edit_recipe(template_clone, "    x = cast(input", "    while True: pass\n    x = cast(input")

    run = make_cookiecutter(template_clone)("__time_limit=5", cwd=checkout)

    assert run.returncode != 0
    assert "5" in run.output
    assert status(checkout) == []


@pytest.mark.skipif(os.name == "nt", reason="sends signals as POSIX does")
@pytest.mark.parametrize("whom", ["terminal", "hook"])
def test_an_interrupt_during_the_tests_takes_everything_back(make_cookiecutter, template_clone, checkout, whom):
    edit_recipe(template_clone, "    x = cast(input", "    while True: pass\n    x = cast(input")
    cookiecutter = make_cookiecutter(template_clone)
    process = cookiecutter.start(checkout, stderr=subprocess.STDOUT, start_new_session=True)
    assert process.stdout is not None
    line = next(line for line in process.stdout if line.startswith("Testing with"))
    assert "tripy_cpu" in line
    time.sleep(1.0)
    assert len(status(checkout)) >= 4  # applied, and under test

    if whom == "terminal":
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does for Ctrl-C
    else:
        os.kill(hook_of(process.pid), signal.SIGTERM)
    try:
        output = process.communicate(timeout=60)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise

    assert process.returncode != 0
    wait_until(lambda: not processes_of(process.pid))
    assert "interrupted; nothing was changed" in output
    assert "Traceback" not in output
    assert status(checkout) == []
    assert not (checkout / "rms_norm").exists()


def processes_of(session):
    """The processes of a session, other than those that have ended."""
    listing = subprocess.run(["ps", "-e", "-o", "pid=,sess=,stat="], capture_output=True, encoding="utf-8", check=True)
    rows = [line.split() for line in listing.stdout.splitlines()]
    return [int(pid) for pid, sess, state in rows if int(sess) == session and not state.startswith("Z")]


def hook_of(session):
    listing = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, encoding="utf-8", check=True)
    children = [
        int(pid) for pid, parent in (line.split() for line in listing.stdout.splitlines()) if int(parent) == session
    ]
    assert len(children) == 1
    return children[0]


def wait_until(condition):
    for _ in range(100):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("still not so after ten seconds")
