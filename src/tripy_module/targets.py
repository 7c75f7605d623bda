"""Where a planned path really is, and whether it may be written: nothing outside the project ever is."""

import os
import stat
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tripy_module.change_errors import NotWritableError, PathError, reason
from tripy_module.filesystem import DISK, Filesystem

STATE_FOLDER = ".tripy-module"
LOCK_NAME = ".lock"
JOURNAL_NAME = ".journal"

# Separators and drive letters on Windows: `a\..\..\b` must not become a way out there.
_NOT_PORTABLE = frozenset('\\:*?"<>|')
_VERSION_CONTROL = (".git", "git~1")  # the second is what Windows calls the first for old programs
_JUNCTION_TAG = 0xA0000003  # IO_REPARSE_TAG_MOUNT_POINT: a folder link on Windows that `lstat` does not call one


@dataclass(frozen=True)
class Target:
    """A planned path, located on the disk.

    Attributes:
        path: The path as planned, relative to the root.
        location: The file that it stands for, links followed.
        status: The file's status, None if it is not there.
        missing: Parent folders that are not there, outermost first.
        linked: Whether the path itself is a symbolic link to `location`.
    """

    path: PurePosixPath
    location: Path
    status: os.stat_result | None
    missing: tuple[Path, ...]
    linked: bool


def checked_root(root: Path) -> Path:
    """Return the project's folder, absolute and without links.

    Raises:
        PathError: It is not a folder.
    """
    try:
        resolved = root.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, up to Python 3.12
        detail = reason(error) if isinstance(error, OSError) else str(error)
        raise PathError(f"{root} cannot be used as the project's folder: {detail}") from error
    if not resolved.is_dir():
        raise PathError(f"{root} is not a folder, so it cannot be the project to change")
    return resolved


def checked_path(path: PurePosixPath) -> PurePosixPath:
    """Return a path that, by its text alone, stays inside the project.

    Raises:
        PathError: It is absolute or empty, has `..`, a character that some system has another use for, or names
            version control's data or this project's own lock and journal.
    """
    if path.is_absolute() or not path.parts:
        raise PathError(f"{str(path)!r} is not a path relative to the project's folder")
    for part in path.parts:
        if part == "..":
            raise PathError(f"{str(path)!r} contains '..'; give the path from the project's folder downwards")
        if any(character in _NOT_PORTABLE or ord(character) < 32 for character in part) or part[-1] in ". ":
            raise PathError(f"{str(path)!r} contains a character that not every system allows there in a file name")
        if _folded(part) in _VERSION_CONTROL:
            raise PathError(f"{str(path)!r} is version control's own; it is never changed")
    first, second = (*map(_folded, path.parts), "")[:2]
    if first == STATE_FOLDER and second in (LOCK_NAME, JOURNAL_NAME):
        raise PathError(f"{str(path)!r} is a name that tripy-module uses itself")
    return path


def locate(root: Path, path: PurePosixPath, filesystem: Filesystem = DISK) -> Target:
    """Find the file that a path stands for.

    Args:
        root: The project's folder, as `checked_root` returns it.
        path: Relative to `root`.
        filesystem: What reads the disk.

    Raises:
        PathError: The path may not be written (see `checked_path`), leads out of the project through a link, has a file
            in place of a folder, or anything but a regular file at its end.
        NotWritableError: The system does not let us look, or refuses such a long name.
    """
    checked_path(path)
    location, linked = root, False
    missing: list[Path] = []
    status: os.stat_result | None = None
    try:
        for depth, part in enumerate(path.parts, start=1):
            is_last = depth == len(path.parts)
            location = location / part
            status = None if missing else filesystem.status(location)
            if status is not None and _is_link(status):
                location = _followed(root, path, location)
                status, linked = filesystem.status(location), is_last
            if is_last:
                break
            if status is None:
                missing.append(location)
            elif not stat.S_ISDIR(status.st_mode):
                raise PathError(f"{path} cannot be written: {'/'.join(path.parts[:depth])} is a file, not a folder")
    except OSError as error:
        raise NotWritableError(f"{path} cannot be reached: {reason(error)}") from error
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise PathError(f"{path} is a folder, not a file")
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise PathError(f"{path} is not a regular file")
    # Otherwise a link could lend a name that may be written to something that may not.
    checked_path(PurePosixPath(location.relative_to(root).as_posix()))
    return Target(path, location, status, tuple(missing), linked)


def is_plain(root: Path, path: PurePosixPath, filesystem: Filesystem = DISK) -> bool:
    """Whether nothing on the way from the root to `path`, as far as it exists, is a link."""
    location = root
    for part in path.parts:
        location = location / part
        status = filesystem.status(location)
        if status is None:
            return True
        if _is_link(status):
            return False
    return True


def check_apart(targets: Iterable[Target]) -> None:
    """Check that no two targets are, on any system, the same file, and that none lies inside another.

    Raises:
        PathError: They are not apart.
    """
    seen: dict[str, PurePosixPath] = {}
    located = [(target, _folded(target.location.as_posix())) for target in targets]
    for target, key in located:
        if key in seen:
            raise PathError(f"{seen[key]} and {target.path} are the same file")
        seen[key] = target.path
    for target, _ in located:
        for parent in target.location.parents:
            if (other := seen.get(_folded(parent.as_posix()))) is not None:
                raise PathError(f"{target.path} cannot be written: {other} is to be a file, not a folder")


def _followed(root: Path, path: PurePosixPath, link: Path) -> Path:
    """Return where a link leads, refused unless that exists and is inside the project."""
    try:
        destination = link.resolve(strict=True)
    except FileNotFoundError as error:
        raise PathError(f"{path} cannot be used: the link {link.relative_to(root).as_posix()} leads nowhere") from error
    except RuntimeError as error:  # up to Python 3.12; an OSError later, which the caller reports
        raise PathError(f"{path} cannot be used: its links form a loop") from error
    if not destination.is_relative_to(root):
        raise PathError(f"{path} is refused: the link {link.relative_to(root).as_posix()} leads out of the project")
    return destination


def _is_link(status: os.stat_result) -> bool:
    return stat.S_ISLNK(status.st_mode) or getattr(status, "st_reparse_tag", 0) == _JUNCTION_TAG


def _folded(text: str) -> str:
    """Spell names alike that macOS or Windows take for the same file."""
    return unicodedata.normalize("NFC", text).casefold()
