"""One run at a time in a project.

The operating system keeps the lock, so it is free as soon as its holder is gone, however that ended. The lock is tied
to an open file, not to a process, so it excludes threads of one process too. The file itself only says who holds it.
"""

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from tripy_module.change_errors import LockedError, NotWritableError, reason
from tripy_module.filesystem import DISK, Filesystem
from tripy_module.interrupts import uninterrupted
from tripy_module.targets import LOCK_NAME, STATE_FOLDER

_POLL_SECONDS = 0.05
_LONGEST_NOTE_BYTES = 100
# `msvcrt` forbids others even to read what is locked, so lock a byte that is never written.
WINDOWS_LOCKED_OFFSET = 1 << 30
# How often in a row to lose against runs that end just then, before waiting like for any other.
_MOST_RACES = 100


def acquired_on_windows(descriptor: int, locking: Callable[[int, int, int], None], mode: int) -> bool:
    """Try to lock an open file the way Windows does.

    Args:
        descriptor: The open file.
        locking: `msvcrt.locking`.
        mode: `msvcrt.LK_NBLCK`.

    Returns:
        False if someone else holds the lock.
    """
    os.lseek(descriptor, WINDOWS_LOCKED_OFFSET, os.SEEK_SET)
    try:
        locking(descriptor, mode, 1)
    except PermissionError:  # EACCES is how the C runtime says that it is taken
        return False
    return True


def released_on_windows(descriptor: int, locking: Callable[[int, int, int], None], mode: int) -> None:
    """Undo `acquired_on_windows`, with `msvcrt.LK_UNLCK` as `mode`."""
    os.lseek(descriptor, WINDOWS_LOCKED_OFFSET, os.SEEK_SET)
    locking(descriptor, mode, 1)


if sys.platform == "win32":
    import msvcrt

    def _acquire(descriptor: int) -> bool:
        return acquired_on_windows(descriptor, msvcrt.locking, msvcrt.LK_NBLCK)

    def _release(descriptor: int) -> None:
        released_on_windows(descriptor, msvcrt.locking, msvcrt.LK_UNLCK)

else:
    import fcntl

    def _acquire(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _release(descriptor: int) -> None:
        # Said explicitly: a forked child may have a copy of the descriptor, and closing ours would not free the lock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def locked(
    root: Path, *, wait_seconds: float, on_wait: Callable[[str], None], filesystem: Filesystem = DISK
) -> Iterator[None]:
    """Hold the project's lock.

    When it is left, the lock file is gone, and so is its folder unless that holds anything else.

    Args:
        root: The project's folder, as `targets.checked_root` returns it.
        wait_seconds: How long to wait for another run before giving up.
        on_wait: Told once, if there is a wait, for whom.
        filesystem: What does the file operations.

    Raises:
        LockedError: Another run still held the lock after `wait_seconds`.
        NotWritableError: The lock file cannot be made.
    """
    lock = root / STATE_FOLDER / LOCK_NAME
    descriptor = _waited_for(lock, wait_seconds, on_wait, filesystem)
    try:
        yield
    finally:
        with uninterrupted():
            _let_go(lock, descriptor, filesystem)


def is_held_here(root: Path) -> bool:
    """Whether this very process holds the project's lock."""
    return _holder(root / STATE_FOLDER / LOCK_NAME).split(" ")[0] == str(os.getpid())


def _waited_for(lock: Path, wait_seconds: float, on_wait: Callable[[str], None], filesystem: Filesystem) -> int:
    deadline = time.monotonic() + wait_seconds
    has_told = False
    while True:
        try:
            descriptor = _tried(lock, filesystem)
        except OSError as error:
            raise NotWritableError(f"{lock} cannot be made or locked: {reason(error)}") from error
        if descriptor is not None:
            return descriptor
        if time.monotonic() >= deadline:
            raise LockedError(
                f"{_described(lock)} is at work in {lock.parent.parent} and did not finish within {wait_seconds:g} s; "
                "wait for it or end it, then run this again"
            )
        if not has_told:
            on_wait(f"Waiting for {_described(lock)}, which is at work in {lock.parent.parent}")
            has_told = True
        time.sleep(max(0.0, min(_POLL_SECONDS, deadline - time.monotonic())))


def _tried(lock: Path, filesystem: Filesystem) -> int | None:
    """Return the descriptor of the locked file, or None if another run has it."""
    for _ in range(_MOST_RACES):
        _make_own_folder(lock.parent, filesystem)
        try:
            descriptor = _opened(lock, filesystem)
        except FileNotFoundError:  # the holder removed the folder just then
            continue
        is_acquired = False
        try:
            is_acquired = _acquire(descriptor)
            if not is_acquired:
                return None
            # The holder may have removed the file after we opened it; then others lock a newer one.
            is_acquired = _is_same_file(descriptor, filesystem.status(lock))
        finally:
            if not is_acquired:
                os.close(descriptor)
        if is_acquired:
            try:
                _sign(descriptor)
            except BaseException:
                _let_go(lock, descriptor, filesystem)
                raise
            return descriptor
    return None


def _opened(lock: Path, filesystem: Filesystem) -> int:
    status = filesystem.status(lock)
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise NotWritableError(f"{lock} must be a regular file; move it away and run this again")
    try:
        return filesystem.open_lock(lock)
    except OSError:
        with suppress(OSError):
            filesystem.remove_folder(lock.parent)  # refused by the system unless empty
        raise


def _make_own_folder(folder: Path, filesystem: Filesystem) -> None:
    """Make the folder of lock and journal; a link in its place could lead out of the project."""
    status = filesystem.status(folder)
    if status is None:
        with suppress(FileExistsError):  # another run was quicker
            filesystem.make_folder(folder)
        status = filesystem.status(folder)
    if status is not None and not stat.S_ISDIR(status.st_mode):
        raise NotWritableError(f"{folder} must be a folder, not a file or a link; move it away and run this again")


def _is_same_file(descriptor: int, status: os.stat_result | None) -> bool:
    return status is not None and os.path.samestat(os.fstat(descriptor), status)


def _sign(descriptor: int) -> None:
    """Write into the lock file who holds it, for the messages of those who wait."""
    note = f"{os.getpid()} {datetime.now().astimezone().isoformat(timespec='seconds')}\n"
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, note.encode("ascii"))


def _let_go(lock: Path, descriptor: int, filesystem: Filesystem) -> None:
    """Remove the lock file and its folder, and free the lock.

    A file that cannot be removed harms nobody: the next run locks the same one. One that someone put in its place is
    not ours to remove.
    """
    is_windows = sys.platform == "win32"
    try:
        if is_windows:  # an open file cannot be removed there; nor can one that the next holder has opened already
            _release(descriptor)
            os.close(descriptor)
        with suppress(OSError):
            if is_windows or _is_same_file(descriptor, filesystem.status(lock)):
                filesystem.remove(lock)
        with suppress(OSError):
            filesystem.remove_folder(lock.parent)  # refused by the system unless empty
    finally:
        if not is_windows:
            _release(descriptor)
            os.close(descriptor)


def _holder(lock: Path) -> str:
    """Return what the holder wrote into the lock file, empty if there is nothing to read."""
    try:
        with lock.open("rb") as file:
            return file.read(_LONGEST_NOTE_BYTES).decode("ascii", errors="replace").strip()
    except OSError:
        return ""


def _described(lock: Path) -> str:
    process, _, since = _holder(lock).partition(" ")
    if not process.isdigit():
        return "another run"
    return f"process {process} (since {since})" if since else f"process {process}"
