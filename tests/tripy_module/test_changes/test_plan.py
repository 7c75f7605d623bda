"""Planning: what is read, what is refused, how changes are named."""

import errno
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest

from tripy_module.changes import Change, NotWritableError, PathError, applied, plan
from tripy_module.errors import UserError
from tripy_module.targets import check_apart, locate

SOME = PurePosixPath("some.py")


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (None, b"", "create"),
        (b"", None, "delete"),
        (b"a", b"b", "modify"),
        (b"a", b"a", "unchanged"),
        (None, None, "unchanged"),
    ],
)
def test_a_change_has_a_kind_and_its_opposite_has_the_opposite_one(
    before: bytes | None, after: bytes | None, kind: str
) -> None:
    opposites = {"create": "delete", "delete": "create", "modify": "modify", "unchanged": "unchanged"}
    change = Change(SOME, before, after)
    assert change.kind == kind
    assert change.reversed().kind == opposites[kind]
    assert change.reversed().reversed() == change


def test_a_plan_holds_what_is_on_the_disk_and_writes_nothing(project: Path, contents: dict, snapshot: Callable) -> None:
    before = snapshot(project)
    changes = plan(project, contents).changes
    assert [change.path for change in changes] == list(contents)
    assert {change.path: change.after for change in changes} == contents
    assert [str(change.path) for change in changes if change.before is None] == [
        "pkg/new.py",
        "tests/deep/test_new.py",
        ".tripy-module/new.yml",
    ]
    modes = {str(change.path): change.mode for change in changes}
    assert modes["pkg/new.py"] is None
    if os.name == "posix":
        assert (modes["run.sh"], modes["pkg/old.py"]) == (0o755, 0o600)
    assert snapshot(project) == before


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/etc/passwd", "not a path relative"),
        ("", "not a path relative"),
        ("../out.py", "contains '..'"),
        ("pkg/../../out.py", "contains '..'"),
        ("pkg\\..\\..\\out.py", "not every system allows"),
        ("C:out.py", "not every system allows"),
        ("pkg/new\n.py", "not every system allows"),
        ("pkg/new\0.py", "not every system allows"),
        ("pkg/.git./config", "not every system allows"),
        (".git/hooks/pre-commit", "version control's own"),
        ("pkg/.GIT/config", "version control's own"),
        ("GIT~1/config", "version control's own"),
        (".tripy-module/.lock", "uses itself"),
        (".Tripy-Module/.JOURNAL/open.json", "uses itself"),
        (".tripy-module/.journal", "uses itself"),
        ("pkg", "is a folder, not a file"),
        ("run.sh/new.py", "run.sh is a file, not a folder"),
        ("pkg/old.py/deep/new.py", "pkg/old.py is a file, not a folder"),
    ],
)
def test_a_path_that_may_not_be_written_is_refused(project: Path, path: str, message: str) -> None:
    with pytest.raises(PathError, match=message) as refusal:
        plan(project, {PurePosixPath(path): b""})
    assert isinstance(refusal.value, UserError)
    assert "\n" not in str(refusal.value)


@pytest.mark.skipif(os.name != "posix", reason="Windows does not tell it from a missing file")
def test_a_name_longer_than_the_system_allows_is_refused_by_name(project: Path) -> None:
    name = "a" * 300
    with pytest.raises(NotWritableError, match=f"{name} cannot be reached: {os.strerror(errno.ENAMETOOLONG)}"):
        plan(project, {PurePosixPath(name): b""})


@pytest.mark.parametrize("root", ["missing", "run.sh"])
def test_a_root_that_is_no_folder_is_refused(project: Path, root: str) -> None:
    with pytest.raises(PathError, match="folder"):
        plan(project / root, {SOME: b""})


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ("a.py", "A.py", "a.py and A.py are the same file"),
        ("ü.py", "u\u0308.py", "are the same file"),
        ("new", "new/a.py", "new is to be a file, not a folder"),
        ("new/b/a.py", "new", "new is to be a file, not a folder"),
    ],
)
def test_paths_that_get_in_each_others_way_are_refused(project: Path, one: str, other: str, message: str) -> None:
    with pytest.raises(PathError, match=message):
        plan(project, {PurePosixPath(one): b"", PurePosixPath(other): b""})


def test_a_file_that_cannot_be_read_is_named(driver: ModuleType, project: Path) -> None:
    def refuse(operation: str, path: Path) -> None:
        if operation == "read":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

    with pytest.raises(NotWritableError, match=r"^pkg/old.py cannot be read: Permission denied$"):
        plan(project, {PurePosixPath("pkg/old.py"): b""}, filesystem=driver.FaultyFilesystem(refuse))


def test_a_link_to_a_file_in_the_project_is_followed_and_stays_a_link(project: Path, lock: Callable) -> None:
    (project / "link.py").symlink_to("pkg/old.py")
    with lock(project):
        changes = plan(project, {PurePosixPath("link.py"): b"new\n"})
        assert changes.changes[0].before == (project / "pkg/old.py").read_bytes()
        with applied(changes):
            pass
    assert (project / "link.py").is_symlink()
    assert (project / "pkg/old.py").read_bytes() == b"new\n"


def test_a_folder_may_be_a_link_inside_the_project(project: Path, lock: Callable) -> None:
    (project / "alias").symlink_to("pkg", target_is_directory=True)
    with lock(project), applied(plan(project, {PurePosixPath("alias/sub/new.py"): b"new\n"})):
        pass
    assert (project / "pkg/sub/new.py").read_bytes() == b"new\n"


def test_a_root_may_be_reached_through_a_link(project: Path, tmp_path: Path, lock: Callable) -> None:
    (tmp_path / "entrance").symlink_to(project, target_is_directory=True)
    with lock(tmp_path / "entrance") as held, applied(plan(tmp_path / "entrance", {SOME: b"new\n"})):
        assert held.root == project.resolve()
    assert (project / "some.py").read_bytes() == b"new\n"


@pytest.mark.parametrize(
    ("link", "destination", "path", "message"),
    [
        ("link.py", "../outside/file.py", "link.py", "leads out of the project"),
        ("link", "../outside", "link/file.py", "leads out of the project"),
        ("link", "../outside", "link/deep/new.py", "leads out of the project"),
        ("link.py", "nowhere.py", "link.py", "leads nowhere"),
        ("link", "nowhere", "link/new.py", "leads nowhere"),
        ("link", ".", "link/.tripy-module/.lock", "uses itself"),
        ("link", ".git", "link/config", "version control's own"),
        ("link", "pkg", "link", "is a folder, not a file"),
        ("link", "run.sh", "link/new.py", "link is a file, not a folder"),
    ],
)
def test_a_link_that_leads_astray_is_refused(
    project: Path, tmp_path: Path, link: str, destination: str, path: str, message: str
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file.py").write_bytes(b"")
    (project / ".git").mkdir()
    (project / link).symlink_to(destination)
    with pytest.raises(PathError, match=message):
        plan(project, {PurePosixPath(path): b""})


def test_links_that_form_a_loop_are_refused(project: Path) -> None:
    (project / "one").symlink_to("two")
    (project / "two").symlink_to("one")
    with pytest.raises((PathError, NotWritableError), match=r"^one/new.py cannot be "):
        plan(project, {PurePosixPath("one/new.py"): b""})


def test_two_names_of_one_file_are_refused(project: Path) -> None:
    (project / "link.py").symlink_to("pkg/old.py")
    with pytest.raises(PathError, match=r"pkg/old\.py and link\.py are the same file"):
        check_apart(locate(project, PurePosixPath(name)) for name in ("pkg/old.py", "link.py"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_is_refused_without_waiting_for_it(project: Path) -> None:
    os.mkfifo(project / "pipe")
    with pytest.raises(PathError, match="pipe is not a regular file"):
        plan(project, {PurePosixPath("pipe"): b""})
