"""Plans as unified diffs."""

import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from tripy_module.changes import Change, applied, plan

A = PurePosixPath("pkg/a b.py")


def test_a_modification_shows_what_changes_with_context() -> None:
    lines = [f"line {number}\n" for number in range(10)]
    after = [*lines[:5], "new\n", *lines[5:]]
    assert Change(PurePosixPath("a.py"), "".join(lines).encode(), "".join(after).encode()).diff() == (
        "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -3,6 +3,7 @@\n"
        " line 2\n line 3\n line 4\n+new\n line 5\n line 6\n line 7\n"
    )


def test_creation_and_deletion_are_told_apart_from_empty_files() -> None:
    created = Change(PurePosixPath("a.py"), None, b"x\n").diff()
    assert "new file mode 100644\n--- /dev/null\n+++ b/a.py\n" in created
    deleted = Change(PurePosixPath("a.py"), b"x\n", None, 0o755).diff()
    assert "deleted file mode 100755\n--- a/a.py\n+++ /dev/null\n" in deleted
    emptied = Change(PurePosixPath("a.py"), b"x\n", b"").diff()
    assert "--- a/a.py\n+++ b/a.py\n" in emptied
    assert "mode" not in emptied


def test_nothing_is_shown_of_what_does_not_change() -> None:
    assert Change(A, b"x", b"x").diff() == ""


def test_a_missing_final_newline_is_marked_on_the_side_that_misses_it() -> None:
    assert Change(A, b"x", b"x\n").diff().endswith("-x\n\\ No newline at end of file\n+x\n")
    assert Change(A, b"x\n", b"x").diff().endswith("-x\n+x\n\\ No newline at end of file\n")


def test_only_a_line_feed_ends_a_line() -> None:
    diff = Change(A, None, "a\x0cb\u2028c\rd\n".encode()).diff()
    assert "@@ -0,0 +1 @@\n+a\x0cb\u2028c\rd\n" in diff


def test_bytes_that_are_not_utf8_are_escaped() -> None:
    assert Change(A, b"ok \xff\n", b"ok\n").diff().endswith("-ok \\xff\n+ok\n")


def test_the_content_of_a_binary_file_is_not_shown() -> None:
    diff = Change(PurePosixPath("a.bin"), b"\0\x1b[2J", b"\0").diff()
    assert diff == "diff --git a/a.bin b/a.bin\nBinary files a/a.bin and b/a.bin differ\n"


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_git_makes_the_same_changes_from_the_diff(
    tmp_path: Path, snapshot: Callable, lock: Callable, ending: bytes
) -> None:
    contents = {
        A: b"one" + ending + b"two",
        PurePosixPath("ü/new empty.py"): b"",
        PurePosixPath("ü/new.py"): "ü".encode() + ending,
        PurePosixPath("gone.py"): None,
        PurePosixPath("gone empty.py"): None,
        PurePosixPath("same.py"): b"same",
    }
    roots = [tmp_path / "ours", tmp_path / "gits"]
    for root in roots:
        (root / "pkg").mkdir(parents=True)
        (root / A).write_bytes(b"zero" + ending + b"two" + ending)
        (root / "gone.py").write_bytes(b"x")
        (root / "gone empty.py").write_bytes(b"")
        (root / "same.py").write_bytes(b"same")
    with lock(roots[0]):
        changes = plan(roots[0], contents)
        with applied(changes):
            pass
    subprocess.run(["git", "apply", "-"], cwd=roots[1], input=changes.diff().encode(), check=True)
    assert snapshot(roots[1]) == snapshot(roots[0])
