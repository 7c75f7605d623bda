"""The one engine through which every file of a project is changed: planned in memory, applied, taken back, shown.

    with project_lock(root, on_wait=print) as lock:        # puts an interrupted run's files back first
        changes = plan(root, {path: content, ...})         # sees what earlier runs have written
        print(changes.diff())
        with applied(changes):                             # everything is written
            run_tests()                                    # any exception from here: as if nothing had happened
                                                           # left normally: it stays
    undo(changes)                                          # later, under the lock again: take it back

A run that is killed leaves a journal (see `journal`), and the next `project_lock` settles it.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal

from tripy_module.change_errors import (
    ChangesError,
    ConflictError,
    LockedError,
    NotWritableError,
    PathError,
    UndoError,
    reason,
)
from tripy_module.diffing import unified_diff
from tripy_module.filesystem import DISK, Attributes, Filesystem
from tripy_module.interrupts import uninterrupted
from tripy_module.journal import Entry, Journal, Record, Recovered, Undone, digest, new_token
from tripy_module.locking import is_held_here, locked
from tripy_module.targets import Target, check_apart, checked_root, locate

__all__ = [
    "Change",
    "ChangesError",
    "ConflictError",
    "LockedError",
    "NotWritableError",
    "PathError",
    "Plan",
    "ProjectLock",
    "Recovered",
    "UndoError",
    "Undone",
    "applied",
    "plan",
    "project_lock",
    "recover",
    "undo",
]

Kind = Literal["create", "modify", "delete", "unchanged"]

# A file exists before anything refers to it, and nothing refers to it any more before it is deleted.
_ORDER: dict[Kind, int] = {"create": 0, "modify": 1, "delete": 2, "unchanged": 3}


@dataclass(frozen=True)
class Change:
    """What happens to one file.

    Attributes:
        path: Relative to the root.
        before: Its content now, None if it is not there.
        after: Its content afterwards, None if it is deleted.
        mode: Permission bits of the file before or, where there is none, for the new one; None for the default.
    """

    path: PurePosixPath
    before: bytes | None
    after: bytes | None
    mode: int | None = None

    @property
    def kind(self) -> Kind:
        """What the change amounts to."""
        if self.before == self.after:
            return "unchanged"
        if self.before is None:
            return "create"
        return "delete" if self.after is None else "modify"

    def diff(self) -> str:
        """Return the change as a unified diff."""
        return unified_diff(self.path, self.before, self.after, self.mode)

    def reversed(self) -> "Change":
        """Return the change that takes this one back."""
        return replace(self, before=self.after, after=self.before)


@dataclass(frozen=True)
class Plan:
    """Changes that belong together: all of them happen, or none.

    Attributes:
        root: The project's folder, absolute and without links.
        changes: At most one for a file.
    """

    root: Path
    changes: tuple[Change, ...]

    def diff(self) -> str:
        """Return all changes as one unified diff, which `git apply` understands unless a file is not UTF-8."""
        return "".join(change.diff() for change in self.changes)


@dataclass(frozen=True)
class ProjectLock:
    """The right to change a project.

    Attributes:
        root: The project's folder, absolute and without links.
        recovered: What was done about an earlier run that had been interrupted, None if there was none.
    """

    root: Path
    recovered: Recovered | None


def report_conflict(undone: Undone) -> None:
    """Say on standard error what could not be taken back because someone else has changed it."""
    if undone.kept:
        print(undone.conflict, file=sys.stderr)


@contextmanager
def project_lock(
    root: Path,
    *,
    wait_seconds: float = 60.0,
    on_wait: Callable[[str], None],
    filesystem: Filesystem = DISK,
) -> Iterator[ProjectLock]:
    """Keep other runs out of a project, and settle what an interrupted one has left there.

    Args:
        root: The project's folder.
        wait_seconds: How long to wait for another run.
        on_wait: Told once, in one line, if there is a wait.
        filesystem: What does the file operations.

    Raises:
        PathError: `root` is not a folder.
        LockedError: Another run is still at work after `wait_seconds`.
        NotWritableError: The project cannot be written.
        UndoError: What an interrupted run has left cannot be settled.
    """
    root = checked_root(root)
    with locked(root, wait_seconds=wait_seconds, on_wait=on_wait, filesystem=filesystem):
        with uninterrupted():
            recovered = recover(root, filesystem=filesystem)
        try:
            yield ProjectLock(root, recovered)
        finally:
            # A second Ctrl-C may have come just before `applied` could shut it out.
            with uninterrupted(), suppress(ChangesError):
                recover(root, filesystem=filesystem)


def recover(root: Path, *, filesystem: Filesystem = DISK) -> Recovered | None:
    """Settle what an interrupted run has left: put everything back, or tidy up if it was complete.

    To be called under the lock; `project_lock` does.

    Returns:
        What was done, None if there was nothing to do.

    Raises:
        UndoError: It cannot be settled; the message says why and what is left to do.
    """
    return Journal(root, filesystem).recover()


def plan(root: Path, contents: Mapping[PurePosixPath, bytes | None], *, filesystem: Filesystem = DISK) -> Plan:
    """Plan what files are to hold; reads what they hold now, writes nothing.

    Args:
        root: The project's folder.
        contents: For each path, relative to `root`, its new content; None deletes the file.
        filesystem: What reads the disk.

    Raises:
        PathError: `root` is not a folder, or a path is not one that may be written.
        NotWritableError: A file cannot be read.
    """
    root = checked_root(root)
    targets = [locate(root, path, filesystem) for path in contents]
    check_apart(targets)
    changes = []
    for target, after in zip(targets, contents.values(), strict=True):
        mode = None if target.status is None else Attributes.of(target.status).mode
        changes.append(Change(target.path, _content(target, filesystem), after, mode))
    return Plan(root, tuple(changes))


@contextmanager
def applied(
    plan: Plan, *, on_undone: Callable[[Undone], None] = report_conflict, filesystem: Filesystem = DISK
) -> Iterator[None]:
    """Make a plan's changes for the duration of a block, and for good if the block ends normally.

    If it ends by an exception, `KeyboardInterrupt` and `SystemExit` included, every file is put back and the folders
    made for them are removed. A file that someone else has changed meanwhile is left as it is then. Putting back cannot
    be interrupted.

    Args:
        plan: Made under the same `project_lock`.
        on_undone: Told what was put back and what could not be, before the exception goes on.
        filesystem: What does the file operations.

    Raises:
        RuntimeError: This process does not hold the project's lock.
        PathError: A path may not be written.
        ConflictError: A file is not what it was when the plan was made; nothing is changed then.
        NotWritableError: The system refuses a change; nothing is changed then either.
        UndoError: Something could not be put back. The journal stays for the next run.
    """
    if not is_held_here(plan.root):
        raise RuntimeError("changes are applied under `project_lock` only")
    steps = _prepared(plan, filesystem)
    if not steps:
        yield
        return
    record = _record(plan.root, steps)
    journal = Journal(plan.root, filesystem)
    try:
        journal.begin()
    except FileExistsError as error:
        raise ConflictError(f"other changes are being made already: {journal.folder} is there") from error
    except OSError as error:
        raise NotWritableError(f"{journal.folder} cannot be made: {reason(error)}; nothing was changed") from error
    try:
        with _naming(journal.folder):
            journal.write(record, [step.change.before for step in steps])
        _perform(plan.root, steps, record, filesystem)
        yield
        with _naming(plan.root):
            _sync(plan.root, record, filesystem)
    except BaseException:
        with uninterrupted():
            on_undone(journal.undo())
        raise
    # An interrupt that comes now is too late to matter: raised, it would claim that nothing was changed.
    with uninterrupted(deliver=False):
        try:
            journal.commit()
        except OSError as error:
            on_undone(journal.undo())
            raise _refused(journal.folder, error) from error


def undo(plan: Plan, *, filesystem: Filesystem = DISK) -> Undone:
    """Take back a plan whose changes were made for good. To be called under `project_lock`.

    A file that someone else has changed since is kept as it is; the others are put back, all or none.

    Raises:
        ChangesError: As for `applied`.
    """
    backwards, kept = [], []
    for change in reversed([change for change in plan.changes if change.kind != "unchanged"]):
        try:
            now = _content(locate(plan.root, change.path, filesystem), filesystem)
        except PathError:  # a folder or a link has taken its place
            kept.append(change.path)
            continue
        if now == change.after:
            backwards.append(change.reversed())
        elif now != change.before:
            kept.append(change.path)
    with applied(Plan(plan.root, tuple(backwards)), filesystem=filesystem):
        pass
    return Undone(tuple(change.path for change in backwards), tuple(kept))


@dataclass(frozen=True)
class _Step:
    """A change with the file that it is about."""

    change: Change
    target: Target


def _prepared(plan: Plan, filesystem: Filesystem) -> tuple[_Step, ...]:
    """Check everything that can be checked before the first write; return what there is to do, in order."""
    steps = [_Step(change, locate(plan.root, change.path, filesystem)) for change in plan.changes]
    check_apart(step.target for step in steps)
    for step in steps:
        _check_unchanged(step, filesystem)
    steps = sorted(
        (step for step in steps if step.change.kind != "unchanged"), key=lambda step: _ORDER[step.change.kind]
    )
    for step in steps:
        _check_writable(step, filesystem)
    return tuple(steps)


def _check_unchanged(step: _Step, filesystem: Filesystem) -> None:
    if _content(step.target, filesystem) != step.change.before:
        raise ConflictError(
            f"{step.change.path} was changed by someone else since the changes were planned; theirs is kept, "
            "run this again"
        )


def _check_writable(step: _Step, filesystem: Filesystem) -> None:
    path, target = step.change.path, step.target
    if target.linked and step.change.kind == "delete":
        raise PathError(f"{path} is a link to another file; delete it yourself if that is what you want")
    parent = (target.missing[0] if target.missing else target.location).parent
    try:
        if not filesystem.is_writable(parent):
            raise NotWritableError(f"{path} cannot be written: the folder {parent} is read-only for this user")
        if target.status is not None and not filesystem.is_writable(target.location):
            raise NotWritableError(f"{path} cannot be written: the file is read-only for this user")
    except OSError as error:
        raise _refused(path, error) from error


def _record(root: Path, steps: tuple[_Step, ...]) -> Record:
    def relative(location: Path) -> PurePosixPath:
        return PurePosixPath(location.relative_to(root).as_posix())

    entries = []
    # Dictionaries for their order: a folder is listed once, and after the ones that it is in.
    created: dict[PurePosixPath, None] = {}
    emptied: set[PurePosixPath] = set()
    for step in steps:
        target, change = step.target, step.change
        attributes = None if target.status is None else Attributes.of(target.status)
        entries.append(Entry(relative(target.location), digest(change.before), digest(change.after), attributes))
        if change.kind == "create":
            created.update(dict.fromkeys(relative(folder) for folder in target.missing))
        elif change.kind == "delete":
            emptied.update(entries[-1].target.parents[:-1])
    innermost_first = sorted(emptied, key=lambda folder: (-len(folder.parts), folder))
    return Record(new_token(), tuple(entries), tuple(created), tuple(innermost_first))


def _perform(root: Path, steps: tuple[_Step, ...], record: Record, filesystem: Filesystem) -> None:
    for folder in record.created:
        with _naming(folder):
            filesystem.make_folder(root / folder)
    for index, step in enumerate(steps):
        with _naming(step.change.path):
            if step.change.after is None:
                _check_unchanged(step, filesystem)
                filesystem.remove(step.target.location)
                continue
            temporary = root / record.temporary(index)
            filesystem.create(temporary, step.change.after, _attributes(step))
            # Once more, as late as possible: whatever was saved in an editor just now must not be lost.
            _check_unchanged(step, filesystem)
            filesystem.replace(temporary, step.target.location)


def _attributes(step: _Step) -> Attributes:
    """Return what the new content's file gets: all that the old one had, but for the time."""
    if step.target.status is None:
        return Attributes(mode=step.change.mode)
    return replace(Attributes.of(step.target.status), modified_ns=None)


def _sync(root: Path, record: Record, filesystem: Filesystem) -> None:
    """Push every folder in which an entry has changed to the disk."""
    changed = {entry.target.parent for entry in record.entries} | {folder.parent for folder in record.created}
    for folder in sorted(changed):
        if filesystem.status(root / folder) is not None:  # someone may have deleted it meanwhile
            filesystem.sync_folder(root / folder)


def _content(target: Target, filesystem: Filesystem) -> bytes | None:
    """Return what the file holds now, None if it is not there.

    Raises:
        NotWritableError: It cannot be read.
    """
    try:
        return None if filesystem.status(target.location) is None else filesystem.read(target.location)
    except OSError as error:
        raise NotWritableError(f"{target.path} cannot be read: {reason(error)}") from error


def _refused(path: PurePosixPath | Path, error: OSError) -> NotWritableError:
    return NotWritableError(f"{path} could not be written: {reason(error)}; whatever was written has been taken back")


@contextmanager
def _naming(path: PurePosixPath | Path) -> Iterator[None]:
    """Say of a system's refusal which file it was about, whose temporary name would tell the user nothing."""
    try:
        yield
    except OSError as error:
        raise _refused(path, error) from error
