"""File operations, and those parts of them that only matter on Windows."""

import errno
import os
from pathlib import Path

import pytest

from tripy_module.filesystem import DISK, Attributes, persistently, remove_if_bare


class Scanner:
    """A virus scanner that has a file open for the first few attempts."""

    def __init__(self, refusals: int, error: type[OSError] = PermissionError) -> None:
        self.refusals, self.error = refusals, error
        self.attempts = 0
        self.pauses: list[float] = []

    def operation(self) -> str:
        self.attempts += 1
        if self.attempts <= self.refusals:
            raise self.error(13, "in use")
        return "done"


def test_an_operation_is_repeated_while_a_scanner_has_the_file() -> None:
    scanner = Scanner(refusals=5)
    assert persistently(scanner.operation, attempts=12, sleep=scanner.pauses.append) == "done"
    assert scanner.attempts == 6
    assert scanner.pauses == sorted(scanner.pauses)


def test_it_is_given_up_after_about_a_second() -> None:
    scanner = Scanner(refusals=1000)
    with pytest.raises(PermissionError, match="in use"):
        persistently(scanner.operation, attempts=12, sleep=scanner.pauses.append)
    assert scanner.attempts == 12
    assert 0.3 < sum(scanner.pauses) < 1


def test_other_refusals_are_final() -> None:
    scanner = Scanner(refusals=1, error=FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        persistently(scanner.operation, attempts=12, sleep=scanner.pauses.append)
    assert scanner.attempts == 1


@pytest.mark.skipif(os.name == "nt", reason="it may be a scanner there")
def test_where_files_can_be_replaced_while_open_there_is_one_attempt() -> None:
    scanner = Scanner(refusals=1)
    with pytest.raises(PermissionError):
        persistently(scanner.operation)
    assert scanner.attempts == 1


def test_creating_does_not_overwrite(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        DISK.create(tmp_path / "there", b"new")
    assert (tmp_path / "there").read_bytes() == b"old"


def test_creating_does_not_translate_newlines_and_restores_attributes(tmp_path: Path) -> None:
    DISK.create(tmp_path / "one", b"a\nb\r\n", Attributes(mode=0o600, modified_ns=1_000_000_000))
    DISK.create(tmp_path / "two", b"", Attributes.of((tmp_path / "one").stat()))
    assert (tmp_path / "one").read_bytes() == b"a\nb\r\n"
    assert Attributes.of((tmp_path / "two").stat()) == Attributes.of((tmp_path / "one").stat())
    assert (tmp_path / "two").stat().st_mtime_ns == 1_000_000_000


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files are not owned by numbers")
def test_an_owner_that_may_not_be_given_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, user: int, group: int) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    monkeypatch.setattr(os, "chown", refuse)
    DISK.create(tmp_path / "one", b"", Attributes(mode=0o600, owner=(1234, 2345)))
    assert (tmp_path / "one").stat().st_uid == os.geteuid()


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_mode_is_not_set_where_it_is_right_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    DISK.create(tmp_path / "one", b"")
    mode = Attributes.of((tmp_path / "one").stat()).mode

    def refuse(path: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    monkeypatch.setattr(Path, "chmod", refuse)
    DISK.create(tmp_path / "two", b"", Attributes(mode=mode))
    with pytest.raises(PermissionError):
        DISK.create(tmp_path / "three", b"", Attributes(mode=0o700))


@pytest.mark.skipif(os.name != "posix", reason="folders are not synced elsewhere")
def test_a_file_system_that_cannot_sync_folders_will_do_but_a_broken_disk_will_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_with(number: int) -> None:
        def refuse(descriptor: int) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", refuse)

    refuse_with(errno.EINVAL)
    DISK.sync_folder(tmp_path)
    refuse_with(errno.EIO)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        DISK.sync_folder(tmp_path)


@pytest.mark.parametrize(
    ("names", "is_bare"),
    [
        ([], True),
        (["__pycache__/a.cpython-311.pyc"], True),
        (["a.py"], False),
        (["a.py", "__pycache__/a.cpython-311.pyc"], False),
        (["__pycache__/notes.txt"], False),
        (["__pycache__"], False),
        (["sub/__pycache__/a.pyc"], False),
    ],
)
def test_only_a_folder_with_nothing_but_byte_code_is_bare(tmp_path: Path, names: list[str], is_bare: bool) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    assert remove_if_bare(DISK, folder) is is_bare
    assert folder.exists() is not is_bare
    assert all((folder / name).exists() for name in names) is (not is_bare or not names)


def test_a_folder_that_is_gone_already_is_no_failure(tmp_path: Path) -> None:
    assert remove_if_bare(DISK, tmp_path / "missing")


def test_a_link_to_byte_code_elsewhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/a.pyc").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/__pycache__").symlink_to(tmp_path / "cache", target_is_directory=True)
    assert not remove_if_bare(DISK, tmp_path / "folder")
    assert (tmp_path / "cache/a.pyc").exists()
