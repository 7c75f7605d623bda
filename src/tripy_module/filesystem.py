"""The handful of file operations that changes are made of.

Everything that touches the disk goes through one object, so that a test can make any single operation fail, or end the
process just before it.
"""

import errno
import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")

# What network and shared file systems say that know no such thing, and folders that may be written but not listed.
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES, errno.EPERM)

# O_BINARY exists on Windows only; O_NOFOLLOW not there.
_BINARY = getattr(os, "O_BINARY", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)

# Together under a second: a virus scanner or indexer holds a file for some milliseconds.
_ATTEMPTS = 12 if sys.platform == "win32" else 1
_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.1


def persistently(
    operation: Callable[[], Result],
    *,
    attempts: int = _ATTEMPTS,
    sleep: Callable[[float], None] = time.sleep,
) -> Result:
    """Repeat an operation that Windows refuses for as long as another program has the file open.

    Elsewhere a refusal is final, and the default is a single attempt.

    Raises:
        PermissionError: The refusal of the last attempt.
        OSError: Any other failure, at once.
    """
    pause = _FIRST_PAUSE_SECONDS
    for _ in range(attempts - 1):
        try:
            return operation()
        except PermissionError:  # noqa: PERF203 - waiting is the point
            sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
    return operation()


@dataclass(frozen=True)
class Attributes:
    """What a file has besides its content. None stands for whatever the system gives a new file.

    Attributes:
        mode: Permission bits.
        owner: User and group number; kept where permitted, so that a run as root in a container
            does not take files away from the person who owns the checkout.
        modified_ns: Time of the last modification in nanoseconds since 1970.
    """

    mode: int | None = None
    owner: tuple[int, int] | None = None
    modified_ns: int | None = None

    @classmethod
    def of(cls, status: os.stat_result) -> "Attributes":
        """Take them from a file's status."""
        return cls(stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid), status.st_mtime_ns)


class Filesystem:
    """The real disk. Every method raises `OSError` as the system call does."""

    def status(self, path: Path) -> os.stat_result | None:
        """Return the status of what is at `path` itself, links not followed, or None if nothing is."""
        try:
            return path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def is_writable(self, path: Path) -> bool:
        """Whether the system says that a file, or the entries of a folder, may be changed."""
        return os.access(path, os.W_OK | (os.X_OK if path.is_dir() else 0))

    def read(self, path: Path) -> bytes:
        """Return the content of a file."""
        return path.read_bytes()

    def names(self, folder: Path) -> frozenset[str]:
        """Return the names in a folder."""
        return frozenset(entry.name for entry in folder.iterdir())

    def create(self, path: Path, content: bytes, attributes: Attributes | None = None) -> None:
        """Write a new file and push it to the disk. A failure leaves a partial file, which the caller removes."""
        attributes = attributes or Attributes()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY | _NO_FOLLOW, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if attributes.owner is not None:
            _give(path, attributes.owner)
        # Only if needed: some mounted folders give every file the same mode and refuse any other call.
        if attributes.mode is not None and attributes.mode != stat.S_IMODE(path.lstat().st_mode):
            path.chmod(attributes.mode)
        if attributes.modified_ns is not None:
            os.utime(path, ns=(attributes.modified_ns, attributes.modified_ns))

    def replace(self, source: Path, target: Path) -> None:
        """Move a file over another one in a single step."""
        persistently(lambda: source.replace(target))

    def remove(self, path: Path) -> None:
        """Delete a file."""
        persistently(path.unlink)

    def make_folder(self, path: Path) -> None:
        """Create a folder, whose parent exists."""
        path.mkdir()

    def remove_folder(self, path: Path) -> None:
        """Delete an empty folder."""
        persistently(path.rmdir)

    def open_lock(self, path: Path) -> int:
        """Open a lock file, made if it is not there, and return its descriptor."""
        # A file that Windows is still deleting refuses to be opened for a moment.
        return persistently(lambda: os.open(path, os.O_RDWR | os.O_CREAT | _BINARY | _NO_FOLLOW, 0o666))

    def sync_folder(self, path: Path) -> None:
        """Push a folder's entries to the disk, so that a rename survives a loss of power, where that can be done."""
        if sys.platform == "win32":  # a folder cannot be opened there; NTFS journals its entries itself
            return
        try:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            if error.errno not in _CANNOT_SYNC:
                raise


DISK = Filesystem()


def remove_if_there(filesystem: Filesystem, path: Path) -> None:
    """Delete a file unless it is gone already."""
    if filesystem.status(path) is not None:
        filesystem.remove(path)


def remove_if_bare(filesystem: Filesystem, folder: Path) -> bool:
    """Delete a folder if it holds nothing, or nothing but the byte code that Python derives from what was in it.

    Returns:
        Whether the folder is gone.
    """
    status = filesystem.status(folder)
    if status is None:
        return True
    if not stat.S_ISDIR(status.st_mode) or filesystem.names(folder) - {"__pycache__"}:
        return False
    cache = folder / "__pycache__"
    if (cache_status := filesystem.status(cache)) is not None:
        if not stat.S_ISDIR(cache_status.st_mode):
            return False
        files = [cache / name for name in sorted(filesystem.names(cache))]
        if not all(file.name.endswith(".pyc") or ".pyc." in file.name for file in files):
            return False
        for file in files:
            filesystem.remove(file)
        filesystem.remove_folder(cache)
    filesystem.remove_folder(folder)
    return True


def _give(path: Path, owner: tuple[int, int]) -> None:
    """Hand a file over to its former owner where that can be done: mostly by root, and not in every container."""
    if sys.platform == "win32":
        return
    status = path.lstat()
    if (status.st_uid, status.st_gid) != owner:
        with suppress(OSError):
            os.chown(path, *owner)
