"""What the tests run in processes of their own: to be killed, to get in each other's way, to be interrupted.

Also imported by the tests for `FaultyFilesystem`.
"""

import contextlib
import json
import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath
from types import FrameType

from tripy_module.changes import applied, plan, project_lock
from tripy_module.filesystem import Attributes, Filesystem

# Everything that alters the disk; a kill before a read is a kill after the write before it.
OPERATIONS = ("create", "replace", "remove", "make_folder", "remove_folder", "open_lock", "sync_folder")

Tree = dict[str, tuple[int, str]]


class FaultyFilesystem(Filesystem):
    """The real disk, but for what `fault` does before an operation is carried out."""

    def __init__(self, fault: Callable[[str, Path], None]) -> None:
        self.fault = fault


def _with_fault(name: str) -> Callable[..., object]:
    original = getattr(Filesystem, name)

    def operation(self: FaultyFilesystem, path: Path, *rest: object) -> object:
        self.fault(name, path)
        return original(self, path, *rest)

    return operation


for _name in (*OPERATIONS, "status", "is_writable", "read", "names"):
    setattr(FaultyFilesystem, _name, _with_fault(_name))


class DeadlyFilesystem(FaultyFilesystem):
    """Ends the process before the n-th write, or in the middle of it."""

    def __init__(self, fatal: int, *, is_halfway: bool = False) -> None:
        self.count, self.fatal, self.is_halfway = 0, fatal, is_halfway
        super().__init__(self._count)

    def _count(self, name: str, path: Path) -> None:
        self.count += name in OPERATIONS
        if self.count == self.fatal and not (name == "create" and self.is_halfway):
            kill_self()

    def create(self, path: Path, content: bytes, attributes: Attributes | None = None) -> None:
        self.fault("create", path)
        if self.count == self.fatal:
            path.write_bytes(content[: len(content) // 2])
            kill_self()
        Filesystem.create(self, path, content, attributes)


def kill_self() -> None:
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))  # SIGTERM cannot be caught on Windows
    time.sleep(60)


def snapshot(root: Path) -> Tree:
    """Return every file and folder with mode and content; byte code is derived data and does not count."""
    tree: Tree = {}
    for path in sorted(root.rglob("*")):
        if "__pycache__" in path.relative_to(root).parts:
            continue
        status = path.lstat()
        content = ""
        if stat.S_ISLNK(status.st_mode):
            content = f"-> {path.readlink()}"
        elif stat.S_ISREG(status.st_mode):
            content = path.read_bytes().decode("latin-1")
        tree[path.relative_to(root).as_posix()] = (stat.S_IMODE(status.st_mode), content)
    return tree


def make_project(root: Path) -> None:
    for name, content in {
        "pkg/__init__.py": b"from pkg.old import Old\n",
        "pkg/old.py": b"class Old:\n    pass\n",
        "lone/some/leaf.py": b"leaf = 1\r\n",
        "run.sh": b"#!/bin/sh\n",
        "untouched.bin": b"\0\xff",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    (root / "run.sh").chmod(0o755)
    (root / "pkg/old.py").chmod(0o600)


CONTENTS: dict[PurePosixPath, bytes | None] = {
    PurePosixPath("pkg/new.py"): b"class New:\n    pass\n",
    PurePosixPath("tests/deep/test_new.py"): b"def test_new():\n    pass\n",
    PurePosixPath(".tripy-module/new.yml"): b"class_name: New\n",
    PurePosixPath("pkg/__init__.py"): b"from pkg.new import New\n",
    PurePosixPath("run.sh"): b"#!/bin/sh\necho new\n",
    PurePosixPath("pkg/old.py"): None,
    PurePosixPath("lone/some/leaf.py"): None,
}


class FailedTestsError(Exception):
    pass


def change(root: Path, filesystem: Filesystem, *, is_failing: bool) -> None:
    """Make all changes; with `is_failing`, have them taken back."""
    with project_lock(root, wait_seconds=5, on_wait=print, filesystem=filesystem):
        changes = plan(root, CONTENTS, filesystem=filesystem)
        with contextlib.suppress(FailedTestsError), applied(changes, filesystem=filesystem):
            cache = root / "tests/deep/__pycache__"
            cache.mkdir()
            (cache / "test_new.cpython-311.pyc").write_bytes(b"derived")
            if is_failing:
                raise FailedTestsError


def settle(root: Path, filesystem: Filesystem) -> str | None:
    """Do what the next run does first."""
    with project_lock(root, wait_seconds=5, on_wait=print, filesystem=filesystem) as lock:
        return lock.recovered.message if lock.recovered else None


def survives(action: Callable[[], object]) -> bool:
    """Run in a process of its own; False if it was killed."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException as error:
            print(f"unexpected: {error!r}", file=sys.stderr)
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code > 0:
        raise SystemExit("the process failed instead of being killed")
    return code == 0


class Trial:
    """A project to be left in some state, again and again, and to be compared with how it should be."""

    def __init__(self, folder: Path) -> None:
        self.template, self.root = folder / "template", folder / "project"
        make_project(self.template)
        complete = folder / "complete"
        shutil.copytree(self.template, complete)
        change(complete, Filesystem(), is_failing=False)
        self.names = {
            json.dumps(snapshot(self.template)): "before",
            json.dumps(snapshot(complete)): "after",
        }

    def begin(self) -> Path:
        shutil.copytree(self.template, self.root)
        return self.root

    def end(self) -> tuple[str | None, str]:
        """Do what the next run does first; return what it says, and which state that leaves."""
        message = settle(self.root, Filesystem())
        tree = json.dumps(snapshot(self.root))
        shutil.rmtree(self.root)
        return message, self.names.get(tree, tree)


def sweep(folder: Path, is_failing: str, is_halfway: str, has_second_kill: str) -> None:
    """Kill a run at every single write, and with `has_second_kill` also its recovery at every single write.

    Prints a JSON list with, for each case: the fatal operations, what recovery said, how the project was left.
    """
    trial = Trial(folder)
    cases: list[tuple[int, int, str | None, str]] = []
    first = second = 0
    is_over = False
    while not is_over:
        first += second == 0
        second += has_second_kill == "1"
        root = trial.begin()
        deadly = DeadlyFilesystem(first, is_halfway=is_halfway == "1")
        is_over = survives(partial(change, root, deadly, is_failing=is_failing == "1"))
        deadly = DeadlyFilesystem(second, is_halfway=is_halfway == "1")
        if second and survives(partial(settle, root, deadly)):
            second = 0
        cases.append((first, second, *trial.end()))
    print(json.dumps(cases))


def interrupt_sweep(folder: Path, is_failing: str, step: str) -> None:
    """Interrupt a run before every `step`-th line of the code that makes the changes.

    Prints a JSON list with, for each case: the number of the line, what recovery said, how the project was left.
    """
    trial = Trial(folder)
    cases: list[tuple[int, str | None, str]] = []
    fatal = 1
    is_over = False
    while not is_over:
        root = trial.begin()
        is_over = not survives(partial(_interrupted, root, fatal, is_failing=is_failing == "1"))
        cases.append((fatal, *trial.end()))
        fatal += int(step)
    print(json.dumps(cases))


def _interrupted(root: Path, fatal: int, *, is_failing: bool) -> None:
    """Interrupt at one line; killed if there are fewer of them."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> object:
        nonlocal count
        if not {"tripy_module", "contextlib.py"} & {*Path(frame.f_code.co_filename).parts}:
            return None
        if event == "line":
            count += 1
            if count == fatal:
                signal.raise_signal(signal.SIGINT)
        return trace

    with contextlib.suppress(KeyboardInterrupt):
        sys.settrace(trace)
        change(root, Filesystem(), is_failing=is_failing)
    sys.settrace(None)
    if count < fatal:
        kill_self()


def killed(root: Path, fatal: str) -> None:
    change(root, DeadlyFilesystem(int(fatal)), is_failing=False)


def append(root: Path, name: str, times: str) -> None:
    """Add lines to a file that other processes add to as well."""
    path = PurePosixPath("pkg/__init__.py")
    for number in range(int(times)):
        with project_lock(root, wait_seconds=60, on_wait=lambda message: None) as lock:
            old = (lock.root / path).read_bytes()
            with applied(plan(root, {path: old + f"{name}-{number}\n".encode()})):
                pass


def hold(root: Path) -> None:
    """Keep the lock until killed."""
    with project_lock(root, wait_seconds=5, on_wait=print):
        print("held", flush=True)
        time.sleep(60)


def run_for_long(root: Path) -> None:
    """Have changes applied while something takes its time, until interrupted."""
    with project_lock(root, wait_seconds=5, on_wait=print), applied(plan(root, CONTENTS)):
        print("applied", flush=True)
        time.sleep(60)


if __name__ == "__main__":
    command, place, *arguments = sys.argv[1:]
    globals()[command](Path(place), *arguments)
