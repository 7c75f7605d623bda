"""What is needed to take changes back, written before the first of them.

The journal is a folder with a description in JSON and a copy of every file that is changed or deleted:

    .tripy-module/.journal/open.json    changes may have begun: whoever finds this puts everything back
    .tripy-module/.journal/done.json    they are complete and stay: only tidying is left
    .tripy-module/.journal/before-<n>   the n-th entry's file as it was

Commit is the renaming of `open.json` to `done.json`, so there is no moment at which it is unclear what holds. Without
either file nothing has been changed yet, or all is over. Putting back may itself be cut off at any point and repeated.
"""

import errno
import hashlib
import json
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tripy_module.change_errors import ChangesError, UndoError, reason
from tripy_module.filesystem import DISK, Attributes, Filesystem, remove_if_bare, remove_if_there
from tripy_module.targets import JOURNAL_NAME, STATE_FOLDER, checked_path, is_plain

_FORMAT = 1
_OPEN, _DONE, _DRAFT = "open.json", "done.json", "draft.json"
_NOT_A_FILE = "not a regular file"  # equals no digest, so such a thing counts as someone else's


def digest(content: bytes | None) -> str | None:
    """Return what identifies a content; None, for a file that is not there, stays None."""
    return None if content is None else hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Entry:
    """One file to be changed.

    Attributes:
        target: The file itself, links followed, relative to the root.
        before: Digest of its content before, None if it is not there.
        after: Digest of its content afterwards, None if it is deleted.
        attributes: What else to restore with the content; None if there is no file before.
    """

    target: PurePosixPath
    before: str | None
    after: str | None
    attributes: Attributes | None


@dataclass(frozen=True)
class Record:
    """Everything that a run is going to do.

    Attributes:
        token: Makes this run's temporary names its own.
        entries: In the order in which they are changed.
        created: Folders that are made for them, outermost first.
        emptied: Folders to remove at the end if the changes leave nothing in them, innermost first.
    """

    token: str
    entries: tuple[Entry, ...]
    created: tuple[PurePosixPath, ...] = ()
    emptied: tuple[PurePosixPath, ...] = ()

    def temporary(self, index: int) -> PurePosixPath:
        """Return where an entry's new content is written before it takes the file's place.

        In the same folder, since only a move within it is a single step; no suffix that Python or pytest reads; and of
        a length that does not depend on the file's name.
        """
        return self.entries[index].target.parent / f".tripy-module-{self.token}-{index}.tmp"

    def to_json(self) -> str:
        """Return the text of the description."""
        entries = [
            {
                "target": str(entry.target),
                "before": entry.before,
                "after": entry.after,
                "attributes": asdict(entry.attributes) if entry.attributes else None,
            }
            for entry in self.entries
        ]
        return json.dumps(
            {
                "format": _FORMAT,
                "token": self.token,
                "entries": entries,
                "created": [str(folder) for folder in self.created],
                "emptied": [str(folder) for folder in self.emptied],
            },
            indent=1,
        )

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """Read `to_json`'s text. It may have come with the project from anywhere, so nothing in it is trusted.

        Raises:
            ValueError: It is not such a text.
            ChangesError: A path in it may not be changed.
        """
        try:
            data = json.loads(text)
            if data["format"] != _FORMAT:
                raise ValueError(f"format {data['format']!r} is not known")
            token = data["token"]
            bytes.fromhex(token)
            return cls(
                token,
                tuple(_entry(item) for item in data["entries"]),
                tuple(_path(folder) for folder in data["created"]),
                tuple(_path(folder) for folder in data["emptied"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error


def new_token() -> str:
    """Return a token for a new record."""
    return secrets.token_hex(4)


@dataclass(frozen=True)
class Undone:
    """What was put back.

    Attributes:
        restored: Files that are again what they were.
        kept: Files and folders that are not, because someone else has changed them since; theirs was left alone.
    """

    restored: tuple[PurePosixPath, ...]
    kept: tuple[PurePosixPath, ...]

    @property
    def message(self) -> str:
        """One line for a person."""
        restored = f"changes taken back: {_listed(self.restored)}" if self.restored else "nothing had to be taken back"
        return f"{restored}; {self.conflict}" if self.kept else restored

    @property
    def conflict(self) -> str:
        """The part of the message that needs attention, empty if there is none."""
        return f"changed by someone else meanwhile, so left as is: {_listed(self.kept)}" if self.kept else ""


@dataclass(frozen=True)
class Recovered:
    """What was found of an interrupted run.

    Attributes:
        undone: What was put back; None if the run had completed its changes and only left the journal behind.
    """

    undone: Undone | None

    @property
    def message(self) -> str:
        """One line for a person."""
        if self.undone is None:
            return "An earlier run was interrupted after it had completed its changes; its leftovers were removed."
        return f"An earlier run was interrupted; {self.undone.message}."


class Journal:
    """The journal of one project."""

    def __init__(self, root: Path, filesystem: Filesystem = DISK) -> None:
        self._root = root
        self._filesystem = filesystem
        self.folder = root / STATE_FOLDER / JOURNAL_NAME

    def begin(self) -> None:
        """Make the folder.

        Raises:
            FileExistsError: There is a journal already.
            OSError: The folder cannot be made.
        """
        self._filesystem.make_folder(self.folder)

    def write(self, record: Record, befores: Iterable[bytes | None]) -> None:
        """Put everything on the disk that `undo` needs; durable when this returns.

        Args:
            record: What is going to be done.
            befores: The content before of each entry.
        """
        for index, (entry, content) in enumerate(zip(record.entries, befores, strict=True)):
            if content is not None:
                self._filesystem.create(self._copy(index), content, entry.attributes)
        self._filesystem.create(self.folder / _DRAFT, record.to_json().encode("ascii"))
        self._filesystem.replace(self.folder / _DRAFT, self.folder / _OPEN)
        for folder in (self.folder, self.folder.parent, self._root):
            self._filesystem.sync_folder(folder)

    def commit(self) -> None:
        """Declare the changes complete, then tidy up.

        Raises:
            OSError: They could not be declared complete. What fails after that is left to the next run.
        """
        self._filesystem.replace(self.folder / _OPEN, self.folder / _DONE)
        with suppress(OSError, ChangesError):
            self._filesystem.sync_folder(self.folder)
            self._finish()

    def undo(self) -> Undone:
        """Put back whatever has been changed. May be cut off and called again.

        Raises:
            UndoError: Something cannot be put back; the rest has been, and the journal is kept.
        """
        record = self._read(_OPEN)
        if record is None:
            self._discard()
            return Undone((), ())
        restored: list[PurePosixPath] = []
        kept: list[PurePosixPath] = []
        failures: list[str] = []
        for index in reversed(range(len(record.entries))):
            target = record.entries[index].target
            try:
                outcome = self._restore(record, index)
            except OSError as error:
                failures.append(f"{target} ({reason(error)})")
            else:
                restored += [target] if outcome is True else []
                kept += [target] if outcome is False else []
        for folder in reversed(record.created):
            try:
                if not (is_plain(self._root, folder, self._filesystem) and self._is_removed(folder)):
                    kept.append(folder)
            except OSError as error:  # noqa: PERF203 - one failure must not keep the rest from being put back
                failures.append(f"{folder} ({reason(error)})")
        if failures:
            raise self._stuck(f"could not be put back: {', '.join(failures)}")
        self._discard()
        return Undone(tuple(restored), tuple(kept))

    def recover(self) -> Recovered | None:
        """Finish or undo what an interrupted run has left; None if there is nothing to report.

        Raises:
            UndoError: That is not possible; the message says why.
        """
        status = self._filesystem.status(self.folder)
        if status is None:
            return None
        if not stat.S_ISDIR(status.st_mode):
            raise UndoError(f"{self.folder} must be a folder, not a file or a link; move it away and run this again")
        try:
            names = self._filesystem.names(self.folder)
            if _DONE in names:
                self._finish()
                return Recovered(None)
            undone = self.undo()
            return Recovered(undone) if _OPEN in names else None
        except OSError as error:
            raise self._stuck(f"could not be completed: {reason(error)}") from error

    def _restore(self, record: Record, index: int) -> bool | None:
        """Put one file back.

        Returns:
            True if it was, None if there was no need, False if someone else has changed the file.
        """
        entry = record.entries[index]
        if not is_plain(self._root, entry.target, self._filesystem):
            return False
        remove_if_there(self._filesystem, self._root / record.temporary(index))
        location = self._root / entry.target
        now = self._digest_at(location)
        if now == entry.before:
            return None
        if now != entry.after:
            return False
        if entry.before is None:
            self._filesystem.remove(location)
        else:
            try:
                self._make_parents(entry.target)
            except FileExistsError:  # a file has taken the place of a folder
                return False
            self._put_copy(record, index)
        self._filesystem.sync_folder(location.parent)
        return True

    def _put_copy(self, record: Record, index: int) -> None:
        """Move the copy to where it came from, which needs no space on a disk that may be full."""
        entry, copy = record.entries[index], self._copy(index)
        if self._digest_at(copy) != entry.before:
            raise OSError(errno.EIO, "its copy is missing or damaged")
        location, temporary = self._root / entry.target, self._root / record.temporary(index)
        try:
            self._filesystem.replace(copy, location)
        except OSError as error:
            if error.errno != errno.EXDEV:  # a folder of the project is mounted from another disk
                raise
            self._filesystem.create(temporary, self._filesystem.read(copy), entry.attributes)
            self._filesystem.replace(temporary, location)

    def _make_parents(self, target: PurePosixPath) -> None:
        """Make the folders above a file again that someone else has removed."""
        for parent in reversed(target.parents):
            status = self._filesystem.status(self._root / parent)
            if status is None or not stat.S_ISDIR(status.st_mode):
                self._filesystem.make_folder(self._root / parent)

    def _finish(self) -> None:
        """Tidy up after complete changes."""
        record = self._read(_DONE)
        for folder in record.emptied if record else ():
            with suppress(OSError):  # an empty folder too many does no harm
                if is_plain(self._root, folder, self._filesystem):
                    remove_if_bare(self._filesystem, self._root / folder)
        self._discard()

    def _discard(self) -> None:
        """Remove the journal, the description first: from then on nothing of it counts."""
        try:
            names = self._filesystem.names(self.folder)
            for name in [*(names & {_OPEN, _DONE}), *sorted(names - {_OPEN, _DONE})]:
                self._filesystem.remove(self.folder / name)
            self._filesystem.remove_folder(self.folder)
        except OSError as error:
            raise self._stuck(f"are settled, but their journal cannot be removed: {reason(error)}") from error

    def _is_removed(self, folder: PurePosixPath) -> bool:
        """Remove a folder that was made; True if it is gone, False if someone else uses it."""
        try:
            return remove_if_bare(self._filesystem, self._root / folder)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return False
            raise

    def _read(self, name: str) -> Record | None:
        path = self.folder / name
        if self._filesystem.status(path) is None:
            return None
        try:
            return Record.from_json(self._filesystem.read(path).decode("ascii"))
        except (OSError, ValueError, ChangesError) as error:
            detail = reason(error) if isinstance(error, OSError) else str(error)
            raise self._stuck(f"cannot be read: {detail}") from error

    def _digest_at(self, location: Path) -> str | None:
        status = self._filesystem.status(location)
        if status is None:
            return None
        if not stat.S_ISREG(status.st_mode):
            return _NOT_A_FILE
        return digest(self._filesystem.read(location))

    def _copy(self, index: int) -> Path:
        return self.folder / f"before-{index}"

    def _stuck(self, problem: str) -> UndoError:
        return UndoError(
            f"Changes of an interrupted or failed run {problem}. What is needed to undo them is in {self.folder}: "
            "remove the cause and run this again, or restore the files from version control and delete that folder"
        )


def _listed(paths: Iterable[PurePosixPath]) -> str:
    return ", ".join(str(path) for path in paths)


def _path(text: str) -> PurePosixPath:
    return checked_path(PurePosixPath(text))


def _entry(item: Any) -> Entry:
    attributes = item["attributes"]
    if attributes is not None:
        owner = attributes["owner"]
        attributes = Attributes(
            int(attributes["mode"]) & 0o777,
            None if owner is None else (int(owner[0]), int(owner[1])),
            int(attributes["modified_ns"]),
        )
    return Entry(_path(item["target"]), item["before"], item["after"], attributes)
