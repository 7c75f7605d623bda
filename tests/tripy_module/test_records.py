import pytest
from harness import commit_all, git

from tripy_module.answers import Answers
from tripy_module.errors import UserError
from tripy_module.records import Origin, origin, packages, render

ANSWERS = Answers("RMSNorm", "rms_norm", "rms_norm", "", "", "", "complete", "tripy_layers", "2026", "", "")


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "template"
    folder.mkdir()
    (folder / "file").touch()
    commit_all(folder, "First")
    return folder


def test_a_tag_names_the_version(repository):
    git(repository, "tag", "v1.2.3")

    assert origin(repository, "gh:org/tripy-module") == Origin("gh:org/tripy-module", "v1.2.3", "")


def test_without_a_tag_the_commit_does(repository):
    assert origin(repository, "address").commit == git(repository, "rev-parse", "--short", "HEAD").strip()


def test_changes_that_are_not_committed_are_a_problem_that_is_named(repository):
    git(repository, "tag", "v1")
    (repository / "file").write_text("changed", "utf-8")

    found = origin(repository, "address")

    assert (found.commit, found.problem) == ("v1", "the template has changes that are not committed")


def test_a_template_without_git_data_has_no_version(tmp_path):
    found = origin(tmp_path, "address")

    assert (found.commit, found.problem) == ("", "the template came without git data")


def test_a_template_in_the_folder_for_temporary_files_does_not_last(tmp_path, monkeypatch):
    (tmp_path / "unpacked").mkdir()

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "elsewhere"))
    assert not origin(tmp_path / "unpacked", "address").temporary
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert origin(tmp_path / "unpacked", "address").temporary


def test_a_folder_inside_another_repository_does_not_pass_for_it(repository):
    (repository / "inner").mkdir()

    assert origin(repository / "inner", "address").commit == ""


def test_a_repository_that_git_refuses_gives_the_reason(tmp_path):
    (tmp_path / ".git").mkdir()

    found = origin(tmp_path, "address")

    assert found.commit == ""
    assert found.problem.startswith("git could not describe the template: fatal: not a git repository")


def test_another_repository_in_the_environment_does_not_count(repository, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    git(repository, "tag", "v1")
    commit_all(tmp_path / "other", "Other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))

    assert origin(repository, "address").commit == "v1"


def test_without_git_the_reason_is_given(repository, monkeypatch):
    monkeypatch.setenv("PATH", "")

    assert origin(repository, "address").problem.startswith("git could not be run: ")


def test_records_are_found_again(tmp_path):
    (tmp_path / ".tripy-module").mkdir()
    (tmp_path / ".tripy-module" / "rms_norm.yml").write_bytes(render(ANSWERS, Origin("address", "v1", "")))

    assert packages(tmp_path) == {"rms_norm": "tripy_layers"}
    assert packages(tmp_path / ".tripy-module") == {}


@pytest.mark.parametrize(
    "text",
    ["just text", "module_name: a", "a: [", "- a", "module_name: ../x\npackage: a", "module_name: a\npackage: a/b"],
)
def test_a_file_that_is_no_record_is_named(tmp_path, text):
    (tmp_path / ".tripy-module").mkdir()
    (tmp_path / ".tripy-module" / "odd.yml").write_text(text, "utf-8")

    with pytest.raises(UserError, match=r"odd\.yml is no answers file"):
        packages(tmp_path)
