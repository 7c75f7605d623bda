"""Whenever a run dies, the next one finds everything as it was, or everything done."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from types import ModuleType

import pytest

from tripy_module.changes import UndoError, plan

Start = Callable[..., "Popen[str]"]

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="hundreds of processes are quick with fork only")


def swept(start: Start, folder: Path, *, is_failing: bool, is_halfway: bool = False, has_second: bool = False) -> list:
    flags = [str(int(flag)) for flag in (is_failing, is_halfway, has_second)]
    process = start("sweep", *flags, root=folder)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return json.loads(output)


@needs_fork
@pytest.mark.parametrize("is_halfway", [False, True])
def test_a_kill_at_any_write_leaves_all_or_nothing(start: Start, tmp_path: Path, is_halfway: bool) -> None:
    cases = swept(start, tmp_path, is_failing=False, is_halfway=is_halfway)
    outcomes = [outcome for _, _, _, outcome in cases]
    turning_point = outcomes.index("after")
    assert turning_point > 20  # writes before the commit
    assert outcomes == ["before"] * turning_point + ["after"] * (len(outcomes) - turning_point)
    assert len(outcomes) - turning_point > 10  # writes after it


@needs_fork
def test_recovery_says_what_it_did_in_one_line(start: Start, tmp_path: Path) -> None:
    cases = swept(start, tmp_path, is_failing=False)
    said = [(message, outcome) for _, _, message, outcome in cases if message is not None]
    assert all("\n" not in message for message, _ in said)
    undone = [message for message, outcome in said if outcome == "before"]
    assert any(message.endswith("interrupted; nothing had to be taken back.") for message in undone)
    assert any("changes taken back: " in message and "pkg/__init__.py" in message for message in undone)
    completed = [message for message, outcome in said if outcome == "after"]
    assert completed
    assert all("had completed its changes" in message for message in completed)


@needs_fork
@pytest.mark.parametrize("is_halfway", [False, True])
def test_a_kill_while_changes_are_taken_back_leaves_nothing_of_them(
    start: Start, tmp_path: Path, is_halfway: bool
) -> None:
    cases = swept(start, tmp_path, is_failing=True, is_halfway=is_halfway)
    assert {outcome for _, _, _, outcome in cases} == {"before"}
    assert len(cases) > 40


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("is_failing", [False, True])
def test_a_kill_of_the_recovery_at_any_write_is_recovered_from(start: Start, tmp_path: Path, is_failing: bool) -> None:
    cases = swept(start, tmp_path, is_failing=is_failing, is_halfway=True, has_second=True)
    by_first: dict[int, set[str]] = {}
    for first, _, _, outcome in cases:
        by_first.setdefault(first, set()).add(outcome)
    outcomes = [by_first[first] for first in sorted(by_first)]
    turning_point = len(outcomes) if is_failing else outcomes.index({"after"})
    assert outcomes == [{"before"}] * turning_point + [{"after"}] * (len(outcomes) - turning_point)
    assert len(cases) > 400


@pytest.mark.parametrize("fatal", [16, 20, 24, 28])
def test_a_killed_process_is_recovered_from_by_the_next(
    driver: ModuleType, start: Start, project: Path, snapshot: Callable, lock: Callable, fatal: int
) -> None:
    before = snapshot(project)
    process = start("killed", str(fatal))
    process.communicate()
    assert process.returncode != 0
    assert snapshot(project) != before
    with lock(project) as held:
        assert held.recovered is not None
    assert snapshot(project) == before


def crashed(start: Start, root: Path) -> None:
    """Leave the project as a run does that dies while the emitted tests run."""
    process = start("run_for_long", root=root)
    assert process.stdout is not None
    assert process.stdout.readline() == "applied\n"
    process.kill()
    process.wait()


def test_what_someone_changed_after_the_crash_is_kept(
    start: Start, project: Path, snapshot: Callable, lock: Callable
) -> None:
    before = snapshot(project)
    crashed(start, project)
    (project / "pkg/__init__.py").write_bytes(b"theirs\n")
    (project / "tests/deep/theirs.py").write_bytes(b"theirs too\n")
    with lock(project) as held:
        message = held.recovered.message
        assert {str(path) for path in held.recovered.undone.kept} == {"pkg/__init__.py", "tests", "tests/deep"}
    assert "changed by someone else meanwhile, so left as is: pkg/__init__.py" in message
    after = snapshot(project)
    assert after.pop("pkg/__init__.py")[1] == "theirs\n"
    assert after.pop("tests/deep/theirs.py")[1] == "theirs too\n"
    del before["pkg/__init__.py"], after["tests"], after["tests/deep"]
    assert after == before


def test_what_someone_deleted_after_the_crash_stays_deleted(start: Start, project: Path, lock: Callable) -> None:
    crashed(start, project)
    (project / "run.sh").unlink()
    (project / "pkg/new.py").unlink()
    with lock(project) as held:
        assert [str(path) for path in held.recovered.undone.kept] == ["run.sh"]
    assert not (project / "run.sh").exists()


def test_a_file_whose_folder_was_removed_after_the_crash_is_restored(
    start: Start, project: Path, snapshot: Callable, lock: Callable
) -> None:
    before = snapshot(project)
    crashed(start, project)
    (project / "lone/some").rmdir()
    with lock(project):
        assert snapshot(project / "lone") == {"some": before["lone/some"], "some/leaf.py": before["lone/some/leaf.py"]}


def test_a_link_put_in_place_of_a_folder_is_not_followed(
    start: Start, project: Path, tmp_path: Path, lock: Callable
) -> None:
    crashed(start, project)
    elsewhere = tmp_path / "elsewhere"
    (project / "pkg").rename(elsewhere)
    (project / "pkg").symlink_to(elsewhere, target_is_directory=True)
    with lock(project) as held:
        assert "pkg/__init__.py" in {str(path) for path in held.recovered.undone.kept}
    assert (elsewhere / "new.py").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"pkg/new.py"', '"../outside.py"'),
        ('"pkg/new.py"', '"/outside.py"'),
        ('"pkg/new.py"', '".git/hooks/pre-commit"'),
        ('"format": 1', '"format": 2'),
        ('"token": "', '"token": "../'),
        ('"entries"', '"others"'),
        ("{", ""),
    ],
)
def test_a_journal_that_makes_no_sense_is_refused_and_kept(
    start: Start, project: Path, snapshot: Callable, lock: Callable, old: str, new: str
) -> None:
    crashed(start, project)
    journal = project / ".tripy-module/.journal/open.json"
    text = journal.read_text()
    assert old in text
    journal.write_text(text.replace(old, new, 1))
    before = snapshot(project)
    with pytest.raises(UndoError, match=r"cannot be read: .* version control and delete that folder"), lock(project):
        pass
    before.pop(".tripy-module/.lock")
    assert snapshot(project) == before


def test_a_damaged_copy_is_not_restored(start: Start, project: Path, snapshot: Callable, lock: Callable) -> None:
    before = snapshot(project)
    crashed(start, project)
    copies = [path for path in (project / ".tripy-module/.journal").glob("before-*") if b"Old" in path.read_bytes()]
    for copy in copies:
        copy.write_bytes(b"damaged")
    with pytest.raises(UndoError, match=r"pkg/old.py \(its copy is missing or damaged\)"), lock(project):
        pass
    assert snapshot(project)["run.sh"] == before["run.sh"]  # the rest was put back


def test_a_journal_that_is_no_folder_is_refused(project: Path, lock: Callable) -> None:
    (project / ".tripy-module").mkdir()
    (project / ".tripy-module/.journal").write_bytes(b"")
    with pytest.raises(UndoError, match="must be a folder"), lock(project):
        pass


def test_planning_is_not_hindered_by_a_crash(start: Start, project: Path, lock: Callable, contents: dict) -> None:
    crashed(start, project)
    with lock(project):
        assert {change.kind for change in plan(project, contents).changes} == {"create", "modify", "delete"}
