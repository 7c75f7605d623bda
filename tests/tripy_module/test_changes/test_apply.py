"""Applying a plan, taking it back, and everything that may go wrong in between."""

import errno
import os
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest

from tripy_module.changes import (
    Change,
    ConflictError,
    NotWritableError,
    PathError,
    Plan,
    UndoError,
    Undone,
    applied,
    plan,
    project_lock,
    undo,
)

INIT = PurePosixPath("pkg/__init__.py")
posix_only = pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")


class FailedTestsError(Exception):
    pass


def leave_by(error: BaseException, changes: Plan) -> None:
    """Apply, then end the block by `error`, which comes out."""
    with pytest.raises(type(error)) as raised, applied(changes):
        raise error
    assert raised.value is error


def fail_after(meanwhile: Callable[[], object], changes: AbstractContextManager[None]) -> None:
    """Do something in the block, then end it by `FailedTestsError`."""
    with changes:
        meanwhile()
        raise FailedTestsError


def test_all_files_are_written_when_the_block_begins_and_stay_when_it_ends(
    project: Path, contents: dict, lock: Callable
) -> None:
    with lock(project):
        with applied(plan(project, contents)):
            inside = {path: (project / path).read_bytes() if (project / path).exists() else None for path in contents}
            assert inside == contents
        assert {path for path in contents if (project / path).exists()} == {
            path for path, content in contents.items() if content is not None
        }


def test_nothing_but_the_changes_is_left(project: Path, contents: dict, lock: Callable, snapshot: Callable) -> None:
    expected = set(snapshot(project)) - {"pkg/old.py", "lone", "lone/some", "lone/some/leaf.py"}
    expected |= {"pkg/new.py", "tests", "tests/deep", "tests/deep/test_new.py", ".tripy-module/new.yml"}
    with lock(project), applied(plan(project, contents)):
        pass
    assert set(snapshot(project)) == expected | {".tripy-module"}


@pytest.mark.parametrize(
    "error", [FailedTestsError(), KeyboardInterrupt(), SystemExit(3), OSError("of the block"), GeneratorExit()]
)
def test_leaving_by_an_exception_takes_everything_back(
    project: Path, contents: dict, lock: Callable, snapshot: Callable, error: BaseException
) -> None:
    before = snapshot(project)
    times = {path: (project / path).stat().st_mtime_ns for path in before}
    with lock(project):
        leave_by(error, plan(project, contents))
        held = snapshot(project)
    assert set(held) - set(before) == {".tripy-module", ".tripy-module/.lock"}  # at once, not with the lock
    assert snapshot(project) == before
    files = [path for path in before if (project / path).is_file()]
    assert {path: (project / path).stat().st_mtime_ns for path in files} == {path: times[path] for path in files}


def test_an_existing_state_folder_stays(project: Path, contents: dict, lock: Callable, snapshot: Callable) -> None:
    (project / ".tripy-module").mkdir()
    (project / ".tripy-module/other.yml").write_bytes(b"other\n")
    before = snapshot(project)
    with lock(project):
        leave_by(FailedTestsError(), plan(project, contents))
    assert snapshot(project) == before


def test_byte_code_in_a_created_folder_does_not_keep_it(
    project: Path, contents: dict, lock: Callable, snapshot: Callable
) -> None:
    before = snapshot(project)

    def run_tests() -> None:
        (project / "tests/deep/__pycache__").mkdir()
        (project / "tests/deep/__pycache__/test_new.cpython-311.pyc").write_bytes(b"")
        (project / "tests/deep/__pycache__/test_new.cpython-311.pyc.140").write_bytes(b"")

    with lock(project), pytest.raises(FailedTestsError):
        fail_after(run_tests, applied(plan(project, contents)))
    assert snapshot(project) == before


def test_a_created_folder_stays_where_someone_has_put_something(project: Path, contents: dict, lock: Callable) -> None:
    reports: list[Undone] = []

    def take_notes() -> None:
        (project / "tests/deep/__pycache__").mkdir()
        (project / "tests/deep/__pycache__/notes.txt").write_bytes(b"mine")

    with lock(project), pytest.raises(FailedTestsError):
        fail_after(take_notes, applied(plan(project, contents), on_undone=reports.append))
    assert (project / "tests/deep/__pycache__/notes.txt").read_bytes() == b"mine"
    assert not (project / "tests/deep/test_new.py").exists()
    assert {str(path) for path in reports[0].kept} == {"tests", "tests/deep"}


def test_what_someone_changes_meanwhile_is_kept_and_said(
    project: Path, contents: dict, lock: Callable, snapshot: Callable, capsys: pytest.CaptureFixture
) -> None:
    before = snapshot(project)
    with lock(project), pytest.raises(FailedTestsError):
        fail_after(lambda: (project / INIT).write_bytes(b"theirs\n"), applied(plan(project, contents)))
    after = snapshot(project)
    assert after.pop(str(INIT))[1] == "theirs\n"
    del before[str(INIT)]
    assert after == before
    assert capsys.readouterr().err == f"changed by someone else meanwhile, so left as is: {INIT}\n"


def test_the_report_lists_what_was_taken_back(project: Path, contents: dict, lock: Callable) -> None:
    reports: list[Undone] = []
    with lock(project), pytest.raises(FailedTestsError), applied(plan(project, contents), on_undone=reports.append):
        raise FailedTestsError
    assert {*reports[0].restored} == {*contents}
    assert reports[0].kept == ()
    assert reports[0].message.startswith("changes taken back: ")


@pytest.mark.parametrize(
    ("path", "theirs"), [("pkg/__init__.py", b"theirs"), ("pkg/new.py", b"theirs"), ("run.sh", None)]
)
def test_a_file_that_changes_between_planning_and_applying_is_a_conflict(
    project: Path, contents: dict, lock: Callable, snapshot: Callable, path: str, theirs: bytes | None
) -> None:
    with lock(project):
        changes = plan(project, contents)
        if theirs is None:
            (project / path).unlink()
        else:
            (project / path).write_bytes(theirs)
        before = snapshot(project)
        with pytest.raises(ConflictError, match=f"^{path} was changed by someone else"), applied(changes):
            pytest.fail("the block must not run")
        assert snapshot(project) == before


def test_a_file_that_needed_no_change_counts_too(project: Path, lock: Callable) -> None:
    with lock(project):
        changes = plan(project, {INIT: (project / INIT).read_bytes(), PurePosixPath("new.py"): b""})
        (project / INIT).write_bytes(b"theirs")
        with pytest.raises(ConflictError, match=str(INIT)), applied(changes):
            pass


def test_a_file_that_changes_at_the_last_moment_is_not_overwritten(
    driver: ModuleType, project: Path, contents: dict, lock: Callable, snapshot: Callable
) -> None:
    def save_in_editor(operation: str, path: Path) -> None:
        if operation == "create" and path.suffix == ".tmp" and path.parent.name == "pkg":
            (project / INIT).write_bytes(b"theirs\n")

    before = snapshot(project)
    filesystem = driver.FaultyFilesystem(save_in_editor)
    reports: list[Undone] = []
    with lock(project):
        changes = applied(plan(project, contents), filesystem=filesystem, on_undone=reports.append)
        with pytest.raises(ConflictError, match=str(INIT)), changes:
            pass
    after = snapshot(project)
    assert after.pop(str(INIT))[1] == "theirs\n"
    del before[str(INIT)]
    assert after == before
    assert reports[0].kept == (INIT,)


def test_a_plan_without_changes_touches_nothing(
    driver: ModuleType, project: Path, lock: Callable, snapshot: Callable
) -> None:
    operations: list[str] = []
    filesystem = driver.FaultyFilesystem(lambda operation, path: operations.append(operation))
    contents = {INIT: (project / INIT).read_bytes(), PurePosixPath("not/there.py"): None}
    with lock(project), applied(plan(project, contents), filesystem=filesystem):
        pass
    assert not set(operations) & set(driver.OPERATIONS)


def test_nothing_is_applied_without_the_lock(project: Path, contents: dict, snapshot: Callable) -> None:
    before = snapshot(project)
    with pytest.raises(RuntimeError, match="project_lock"), applied(plan(project, contents)):
        pass
    assert snapshot(project) == before


def test_a_second_plan_cannot_be_applied_inside_the_first(project: Path, lock: Callable, snapshot: Callable) -> None:
    before = snapshot(project)
    with lock(project), pytest.raises(ConflictError, match="already"):  # noqa: SIM117
        with applied(plan(project, {INIT: b"1"})), applied(plan(project, {PurePosixPath("b.py"): b"2"})):
            pytest.fail("the block must not run")
    assert snapshot(project) == before


def test_one_plan_after_another_under_one_lock(project: Path, lock: Callable) -> None:
    with lock(project):
        for content in (b"1", b"2"):
            with applied(plan(project, {INIT: content})):
                pass
    assert (project / INIT).read_bytes() == b"2"


def test_a_new_file_exists_before_it_is_referred_to_and_a_deleted_one_after(
    driver: ModuleType, project: Path, lock: Callable
) -> None:
    seen: list[tuple[bool, bool]] = []

    def look(operation: str, path: Path) -> None:
        if operation in ("replace", "remove") and ".journal" not in path.parts:
            seen.append(((project / "pkg/new.py").exists(), (project / "pkg/old.py").exists()))

    contents = {PurePosixPath("pkg/old.py"): None, INIT: b"new", PurePosixPath("pkg/new.py"): b""}
    with lock(project), applied(plan(project, contents), filesystem=driver.FaultyFilesystem(look)):
        pass
    # Before the creation, before the modification, before the deletion.
    assert seen == [(False, True), (True, True), (True, True)]


@posix_only
def test_modes_are_kept_and_new_files_get_the_default(project: Path, lock: Callable) -> None:
    (project / "private.py").write_bytes(b"")
    (project / "private.py").chmod(0o640)
    contents = {PurePosixPath(name): b"changed" for name in ("run.sh", "private.py", "new.py", "sub/new.py")}
    old_mask = os.umask(0o027)
    try:
        with lock(project), applied(plan(project, contents)):
            pass
    finally:
        os.umask(old_mask)
    modes = {path: stat.S_IMODE((project / path).stat().st_mode) for path in [*map(str, contents), "sub"]}
    assert modes == {"run.sh": 0o755, "private.py": 0o640, "new.py": 0o640, "sub/new.py": 0o640, "sub": 0o750}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("is_failing", [False, True])
def test_root_does_not_take_files_away_from_their_owner(project: Path, lock: Callable, is_failing: bool) -> None:
    os.chown(project / "run.sh", 1234, 2345)
    with lock(project):
        changes = plan(project, {PurePosixPath("run.sh"): b"changed"})
        if is_failing:
            leave_by(FailedTestsError(), changes)
        else:
            with applied(changes):
                pass
    status = (project / "run.sh").stat()
    assert (status.st_uid, status.st_gid) == (1234, 2345)


def test_untouched_files_are_not_even_rewritten(project: Path, contents: dict, lock: Callable) -> None:
    before = (project / "untouched.bin").stat()
    with lock(project), applied(plan(project, contents)):
        pass
    after = (project / "untouched.bin").stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_mode) == (before.st_ino, before.st_mtime_ns, before.st_mode)


def test_temporary_files_are_nothing_that_python_or_pytest_reads(
    driver: ModuleType, project: Path, contents: dict, lock: Callable
) -> None:
    created: list[Path] = []

    def note(operation: str, path: Path) -> None:
        if operation == "create":
            created.append(path)

    filesystem = driver.FaultyFilesystem(note)
    with lock(project), applied(plan(project, contents), filesystem=filesystem):
        pass
    beside = [path for path in created if ".journal" not in path.parts]
    assert len(beside) == 5
    assert all(path.name.startswith(".") and path.suffix == ".tmp" and len(path.name) < 40 for path in beside)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT, errno.EIO])
def test_a_refusal_at_any_write_takes_everything_back_and_names_the_file(
    driver: ModuleType, project: Path, contents: dict, lock: Callable, snapshot: Callable, number: int
) -> None:
    """Up to the commit, that is; what cannot be tidied after it is tidied later, and no failure."""
    before = snapshot(project)
    fatal = count = refusals = 0
    while count >= fatal:
        fatal += 1
        count = 0

        def refuse(operation: str, path: Path, fatal: int = fatal) -> None:
            nonlocal count
            count += operation in driver.OPERATIONS
            if count == fatal and operation in driver.OPERATIONS:
                raise OSError(number, os.strerror(number), str(path))

        with lock(project):
            changes = plan(project, contents)
            try:
                with applied(changes, filesystem=driver.FaultyFilesystem(refuse)):
                    pass
                message = None
            except NotWritableError as error:
                message = str(error)
        if message is None:
            assert set(snapshot(project)) != set(before)
            assert not [path for path in snapshot(project) if "journal" in path or "tmp" in path]
            with lock(project):
                undo(changes)
        else:
            refusals += 1
            assert os.strerror(number) in message
            assert "\n" not in message
            assert ".tmp" not in message
        assert snapshot(project) == before
    assert refusals > 25
    assert fatal - refusals > 5


@pytest.mark.parametrize("path", ["pkg/new.py", "pkg/__init__.py", "tests/deep/test_new.py"])
def test_a_full_disk_is_reported_by_file_and_reason(
    driver: ModuleType, project: Path, contents: dict, lock: Callable, path: str
) -> None:
    def refuse(operation: str, location: Path) -> None:
        if operation == "replace" and location.parent == (project / path).parent:
            raise OSError(errno.ENOSPC, "No space left on device", str(location))

    contents = {PurePosixPath(path): contents[PurePosixPath(path)]}
    with lock(project):
        changes = applied(plan(project, contents), filesystem=driver.FaultyFilesystem(refuse))
        message = f"^{path} could not be written: No space left on device; whatever was written has been taken back$"
        with pytest.raises(NotWritableError, match=message), changes:
            pass


def test_the_journal_stops_counting_before_its_copies_go(
    driver: ModuleType, project: Path, contents: dict, lock: Callable
) -> None:
    removed: list[str] = []

    def note(operation: str, path: Path) -> None:
        if operation == "remove" and path.parent.name == ".journal":
            removed.append(path.name)

    filesystem = driver.FaultyFilesystem(note)
    with lock(project), pytest.raises(FailedTestsError):
        fail_after(
            lambda: (project / INIT).write_bytes(b"theirs"), applied(plan(project, contents), filesystem=filesystem)
        )
    assert removed == ["open.json", "before-3"]  # the copies that were needed have been moved back


def test_putting_back_needs_no_space(
    driver: ModuleType, project: Path, contents: dict, lock: Callable, snapshot: Callable
) -> None:
    is_full = False

    def refuse(operation: str, path: Path) -> None:
        if is_full and operation in ("create", "make_folder"):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))

    before = snapshot(project)
    filesystem = driver.FaultyFilesystem(refuse)

    def fill() -> None:
        nonlocal is_full
        is_full = True

    with lock(project), pytest.raises(FailedTestsError):
        fail_after(fill, applied(plan(project, contents), filesystem=filesystem))
    assert snapshot(project) == before


def test_a_copy_that_cannot_be_moved_from_another_disk_is_copied(
    driver: ModuleType, project: Path, contents: dict, lock: Callable, snapshot: Callable
) -> None:
    def refuse(operation: str, path: Path) -> None:
        if operation == "replace" and path.name.startswith("before-"):
            raise OSError(errno.EXDEV, "Invalid cross-device link", str(path))

    before = snapshot(project)
    filesystem = driver.FaultyFilesystem(refuse)
    with lock(project), pytest.raises(FailedTestsError), applied(plan(project, contents), filesystem=filesystem):
        raise FailedTestsError
    assert snapshot(project) == before


def test_what_cannot_be_put_back_is_named_and_the_next_run_puts_it_back(
    driver: ModuleType, project: Path, contents: dict, lock: Callable, snapshot: Callable
) -> None:
    is_broken = False

    def refuse(operation: str, path: Path) -> None:
        if is_broken and operation in ("replace", "remove") and ".journal" in path.parts:
            raise OSError(errno.EIO, "Input/output error", str(path))

    before = snapshot(project)
    filesystem = driver.FaultyFilesystem(refuse)
    # `filesystem` for the lock too: it tries once more when it is left.

    def break_disk() -> None:
        nonlocal is_broken
        is_broken = True

    with pytest.raises(UndoError) as raised, project_lock(project, on_wait=pytest.fail, filesystem=filesystem):
        fail_after(break_disk, applied(plan(project, contents), filesystem=filesystem))
    assert "pkg/__init__.py (Input/output error)" in str(raised.value)
    assert str(project / ".tripy-module/.journal") in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (project / "pkg/new.py").exists()  # what could be taken back was
    with lock(project) as held:
        assert held.recovered is not None
        assert "pkg/__init__.py" in held.recovered.message
    assert snapshot(project) == before


@pytest.mark.parametrize(
    ("path", "refused", "message"),
    [
        ("pkg/new.py", "pkg", "^pkg/new.py cannot be written: the folder .*pkg is read-only"),
        ("tests/deep/new.py", "", "^tests/deep/new.py cannot be written: the folder .* is read-only"),
        ("run.sh", "run.sh", "^run.sh cannot be written: the file is read-only"),
    ],
)
def test_what_is_read_only_is_refused_before_the_first_write(
    driver: ModuleType, project: Path, lock: Callable, path: str, refused: str, message: str
) -> None:
    """By injection, as root may write everywhere."""
    operations: list[str] = []
    filesystem = driver.FaultyFilesystem(lambda operation, path: operations.append(operation))
    filesystem.is_writable = lambda location: location != project / refused
    contents = {PurePosixPath("untouched.bin"): b"first", PurePosixPath(path): b""}
    with lock(project), pytest.raises(NotWritableError, match=message):  # noqa: SIM117
        with applied(plan(project, contents), filesystem=filesystem):
            pytest.fail("the block must not run")
    assert not set(operations) & set(driver.OPERATIONS)


@posix_only
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_on_the_disk_is_refused(project: Path, lock: Callable) -> None:
    (project / "pkg").chmod(0o555)
    try:
        with lock(project), pytest.raises(NotWritableError, match="pkg is read-only"):  # noqa: SIM117
            with applied(plan(project, {PurePosixPath("pkg/new.py"): b""})):
                pytest.fail("the block must not run")
    finally:
        (project / "pkg").chmod(0o755)


def test_a_link_is_not_deleted_in_place_of_its_file(project: Path, lock: Callable) -> None:
    (project / "link.py").symlink_to("pkg/old.py")
    with lock(project), pytest.raises(PathError, match=r"link\.py is a link"):  # noqa: SIM117
        with applied(plan(project, {PurePosixPath("link.py"): None})):
            pytest.fail("the block must not run")
    assert (project / "pkg/old.py").exists()


def test_a_handmade_plan_is_checked_like_any_other(project: Path, lock: Callable) -> None:
    with lock(project), pytest.raises(PathError, match=r"contains '\.\.'"):  # noqa: SIM117
        with applied(Plan(project, (Change(PurePosixPath("../out.py"), None, b""),))):
            pytest.fail("the block must not run")


def test_folders_that_deletion_leaves_empty_go_and_others_stay(project: Path, lock: Callable) -> None:
    (project / "lone/__pycache__").mkdir()
    (project / "lone/__pycache__/x.cpython-311.pyc").write_bytes(b"")
    (project / "kept").mkdir()
    (project / "kept/one.py").write_bytes(b"")
    (project / "kept/notes.txt").write_bytes(b"")
    with lock(project), applied(plan(project, {PurePosixPath(p): None for p in ("lone/some/leaf.py", "kept/one.py")})):
        pass
    assert not (project / "lone").exists()
    assert [path.name for path in (project / "kept").iterdir()] == ["notes.txt"]


def test_undo_takes_back_what_was_made_for_good(
    project: Path, contents: dict, lock: Callable, snapshot: Callable
) -> None:
    before = snapshot(project)
    with lock(project):
        changes = plan(project, contents)
        with applied(changes):
            pass
    with lock(project):
        undone = undo(changes)
    assert snapshot(project) == before
    assert {*undone.restored} == {*contents}
    assert undone.kept == ()


def test_undo_keeps_what_someone_has_changed_since(
    project: Path, contents: dict, lock: Callable, snapshot: Callable
) -> None:
    before = snapshot(project)
    untouched = PurePosixPath("untouched.bin")
    with lock(project):
        changes = plan(project, {**contents, untouched: (project / untouched).read_bytes()})
        with applied(changes):
            pass
        (project / INIT).write_bytes(b"theirs\n")
        (project / untouched).write_bytes(b"theirs, and none of the plan's business\n")
        (project / "run.sh").unlink()
        (project / "run.sh").mkdir()
        undone = undo(changes)
    assert {*undone.kept} == {INIT, PurePosixPath("run.sh")}
    after = snapshot(project)
    for path in (str(INIT), "run.sh", "untouched.bin"):
        del before[path], after[path]
    assert after == before


def test_undoing_twice_changes_nothing_more(project: Path, contents: dict, lock: Callable, snapshot: Callable) -> None:
    with lock(project):
        changes = plan(project, contents)
        with applied(changes):
            pass
        undo(changes)
        once = snapshot(project)
        assert undo(changes) == Undone((), ())
        assert snapshot(project) == once
