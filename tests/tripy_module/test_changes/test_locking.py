"""One run at a time in a project."""

import errno
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import ModuleType

import pytest

from tripy_module.changes import LockedError, NotWritableError, PathError, project_lock
from tripy_module.locking import (
    WINDOWS_LOCKED_OFFSET,
    acquired_on_windows,
    is_held_here,
    released_on_windows,
)

Start = Callable[..., "subprocess.Popen[str]"]


def holder(start: Start) -> "subprocess.Popen[str]":
    """Start a process that has the lock when this returns."""
    process = start("hold")
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize("has_folder", [False, True])
def test_nothing_is_left_of_the_lock(project: Path, snapshot: Callable, lock: Callable, has_folder: bool) -> None:
    if has_folder:
        (project / ".tripy-module").mkdir()
        (project / ".tripy-module/other.yml").write_bytes(b"")
    before = snapshot(project)
    with lock(project) as held:
        assert held.recovered is None
        assert held.root == project
        assert (project / ".tripy-module/.lock").read_bytes().split()[0] == str(os.getpid()).encode()
        assert is_held_here(project)
    assert snapshot(project) == before
    assert not is_held_here(project)


def test_it_is_free_again_after_an_exception(project: Path, lock: Callable) -> None:
    with pytest.raises(KeyError), lock(project):
        raise KeyError
    with lock(project):
        pass


def test_another_process_is_waited_for_then_named(start: Start, project: Path) -> None:
    process = holder(start)
    said: list[str] = []
    begin = time.monotonic()
    with pytest.raises(LockedError) as refusal, project_lock(project, wait_seconds=0.4, on_wait=said.append):
        pytest.fail("the block must not run")
    assert 0.4 <= time.monotonic() - begin < 5
    assert len(said) == 1  # told once, not at every attempt
    assert f"process {process.pid} (since 2" in said[0]
    assert f"process {process.pid} (since 2" in str(refusal.value)
    assert str(project) in str(refusal.value)
    assert "within 0.4 s" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_without_time_to_wait_nothing_is_said(start: Start, project: Path, lock: Callable) -> None:
    holder(start)
    with pytest.raises(LockedError), lock(project):
        pytest.fail("the block must not run")


def test_a_refused_run_leaves_the_holder_alone(start: Start, project: Path, snapshot: Callable, lock: Callable) -> None:
    holder(start)
    before = snapshot(project)
    with pytest.raises(LockedError), lock(project):
        pass
    assert snapshot(project) == before


def test_a_dead_process_holds_nothing(start: Start, project: Path, snapshot: Callable, lock: Callable) -> None:
    before = snapshot(project)
    process = holder(start)
    process.kill()
    process.wait()
    assert (project / ".tripy-module/.lock").exists()
    with lock(project):
        pass
    assert snapshot(project) == before


def test_what_a_dead_process_wrote_does_not_show_through(project: Path, lock: Callable) -> None:
    (project / ".tripy-module").mkdir()
    (project / ".tripy-module/.lock").write_bytes(b"9" * 200)
    with lock(project):
        words = (project / ".tripy-module/.lock").read_text(encoding="ascii").split()
        assert words[0] == str(os.getpid())
        assert datetime.fromisoformat(words[1]) <= datetime.now().astimezone()
        assert len(words) == 2


@pytest.mark.skipif(os.name != "posix", reason="needs SIGINT for one process")
def test_a_run_that_waits_gets_the_lock_when_the_holder_ends(start: Start, project: Path) -> None:
    process = holder(start)
    with project_lock(project, wait_seconds=30, on_wait=lambda message: process.send_signal(signal.SIGINT)):
        process.wait(timeout=30)


def test_threads_of_one_process_exclude_one_another(project: Path) -> None:
    inside: list[int] = []
    most: list[int] = []
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            for _ in range(5):
                with project_lock(project, wait_seconds=30, on_wait=lambda message: None):
                    inside.append(number)
                    most.append(len(inside))
                    time.sleep(0.002)
                    inside.remove(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert most == [1] * 20


def test_it_cannot_be_taken_twice(project: Path, lock: Callable) -> None:
    with lock(project), pytest.raises(LockedError, match=f"process {os.getpid()} "), lock(project):
        pytest.fail("the block must not run")


def test_eight_processes_lose_none_of_each_others_changes(start: Start, project: Path, snapshot: Callable) -> None:
    before = snapshot(project)
    processes = [start("append", f"p{number}", "5") for number in range(8)]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    after = snapshot(project)
    mode, content = after.pop("pkg/__init__.py")
    assert mode == before["pkg/__init__.py"][0]
    first, *added = content.splitlines()
    assert f"{first}\n" == before.pop("pkg/__init__.py")[1]
    assert sorted(added) == sorted(f"p{number}-{time}" for number in range(8) for time in range(5))
    assert after == before


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be removed")
def test_a_lock_file_removed_by_hand_while_held_is_not_taken_for_ours(
    project: Path, lock: Callable, snapshot: Callable
) -> None:
    file = project / ".tripy-module/.lock"
    with lock(project):
        file.unlink()
        file.write_bytes(b"someone else's")
    assert file.read_bytes() == b"someone else's"


def test_a_holder_that_leaves_just_now_is_no_obstacle(driver: ModuleType, project: Path) -> None:
    """The folder goes away between making it and opening the file in it."""
    folder = project / ".tripy-module"
    vanished = 0

    def vanish(operation: str, path: Path) -> None:
        nonlocal vanished
        if operation == "open_lock" and vanished < 3:
            vanished += 1
            folder.rmdir()

    filesystem = driver.FaultyFilesystem(vanish)
    with project_lock(project, wait_seconds=0, on_wait=pytest.fail, filesystem=filesystem):
        assert vanished == 3


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be removed")
def test_a_file_that_the_holder_removed_just_now_is_no_lock(driver: ModuleType, project: Path) -> None:
    """It goes away between opening and locking it, so others would lock a newer one."""
    looks = 0

    def vanish(operation: str, path: Path) -> None:
        nonlocal looks
        if operation == "status" and path.name == ".lock":
            looks += 1
            if looks == 2:  # the first look is before it is opened
                path.unlink()

    filesystem = driver.FaultyFilesystem(vanish)
    with project_lock(project, wait_seconds=0, on_wait=pytest.fail, filesystem=filesystem):
        assert looks > 2
        assert is_held_here(project)


@pytest.mark.parametrize("operation", ["make_folder", "open_lock"])
@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_project_that_cannot_be_written_is_refused(
    driver: ModuleType, project: Path, snapshot: Callable, operation: str, number: int
) -> None:
    def refuse(name: str, path: Path) -> None:
        if name == operation:
            raise OSError(number, os.strerror(number), str(path))

    before = snapshot(project)
    filesystem = driver.FaultyFilesystem(refuse)
    with pytest.raises(NotWritableError, match=rf"\.lock cannot be made or locked: {os.strerror(number)}$"):  # noqa: SIM117
        with project_lock(project, on_wait=pytest.fail, filesystem=filesystem):
            pytest.fail("the block must not run")
    assert snapshot(project) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_project_on_the_disk_is_refused(project: Path, lock: Callable) -> None:
    project.chmod(0o555)
    try:
        with pytest.raises(NotWritableError, match="Permission denied"), lock(project):
            pytest.fail("the block must not run")
    finally:
        project.chmod(0o755)


@pytest.mark.parametrize("name", [".tripy-module", ".tripy-module/.lock"])
def test_a_link_in_the_locks_place_is_not_followed(
    project: Path, tmp_path: Path, lock: Callable, snapshot: Callable, name: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).symlink_to(outside if name == ".tripy-module" else outside / "file")
    with pytest.raises(NotWritableError, match="must be a "), lock(project):
        pytest.fail("the block must not run")
    assert list(outside.iterdir()) == []


def test_a_file_in_the_folders_place_is_refused(project: Path, lock: Callable) -> None:
    (project / ".tripy-module").write_bytes(b"")
    with pytest.raises(NotWritableError, match="must be a folder"), lock(project):
        pytest.fail("the block must not run")


def test_a_project_that_is_not_there_is_refused(tmp_path: Path, lock: Callable) -> None:
    with pytest.raises(PathError, match="missing"), lock(tmp_path / "missing"):
        pytest.fail("the block must not run")


class Msvcrt:
    """What `msvcrt.locking` does, as its documentation says: EACCES where the byte is taken."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self) -> None:
        self.locked: set[int] = set()

    def locking(self, descriptor: int, mode: int, count: int) -> None:
        offset = os.lseek(descriptor, 0, os.SEEK_CUR)
        assert count == 1
        if mode == self.LK_UNLCK:
            self.locked.remove(offset)
        elif offset in self.locked:
            raise PermissionError(errno.EACCES, "Permission denied")
        else:
            self.locked.add(offset)


def test_windows_locks_a_byte_that_leaves_the_text_readable(tmp_path: Path) -> None:
    msvcrt = Msvcrt()
    descriptor = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    try:
        assert acquired_on_windows(descriptor, msvcrt.locking, msvcrt.LK_NBLCK)
        assert msvcrt.locked == {WINDOWS_LOCKED_OFFSET}
        os.lseek(descriptor, 0, os.SEEK_SET)
        assert not acquired_on_windows(descriptor, msvcrt.locking, msvcrt.LK_NBLCK)
        os.lseek(descriptor, 0, os.SEEK_SET)
        released_on_windows(descriptor, msvcrt.locking, msvcrt.LK_UNLCK)
        assert acquired_on_windows(descriptor, msvcrt.locking, msvcrt.LK_NBLCK)
    finally:
        os.close(descriptor)
    assert (tmp_path / "lock").stat().st_size == 0
