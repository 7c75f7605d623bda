from pathlib import Path, PurePosixPath

import pytest

from tripy_module.errors import AnswerError
from tripy_module.project import default_package, destination, detect, is_checkout, locate


def make_checkout(folder: Path) -> Path:
    package = folder / "nvtripy" / "frontend" / "module"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (folder / "pyproject.toml").touch()
    return folder


def make_record(folder: Path, package: str) -> Path:
    (folder / ".tripy-module").mkdir(parents=True)
    (folder / ".tripy-module" / "affine.yml").write_text(f"mode: complete\npackage: {package}\n", encoding="utf-8")
    return folder


def test_tests_mirror_the_package_below_its_top_level():
    paths = destination("nvtripy.frontend.module", "rms_norm")

    assert paths.module == PurePosixPath("nvtripy/frontend/module/rms_norm.py")
    assert paths.test == PurePosixPath("tests/frontend/module/test_rms_norm.py")
    assert paths.init == PurePosixPath("nvtripy/frontend/module/__init__.py")
    assert paths.record == PurePosixPath(".tripy-module/rms_norm.yml")
    assert destination("tripy_layers", "rms_norm").test == PurePosixPath("tests/test_rms_norm.py")


def test_a_checkout_is_found_from_any_folder_inside_it(tmp_path):
    checkout = make_checkout(tmp_path / "tripy")

    assert detect(checkout) == checkout
    assert detect(checkout / "nvtripy" / "frontend") == checkout
    assert detect(tmp_path) is None


def test_an_installed_wheel_is_no_checkout(tmp_path):
    make_checkout(tmp_path)
    (tmp_path / "pyproject.toml").unlink()

    assert not is_checkout(tmp_path)
    assert detect(tmp_path / "nvtripy") is None


def test_a_project_is_found_by_its_records_or_its_package(tmp_path):
    recorded = make_record(tmp_path / "recorded", "my_layers.norm")
    (tmp_path / "plain" / "tripy_layers").mkdir(parents=True)
    (tmp_path / "plain" / "tripy_layers" / "__init__.py").touch()

    assert detect(recorded) == recorded
    assert default_package(recorded) == "my_layers.norm"
    assert detect(tmp_path / "plain" / "tripy_layers") == tmp_path / "plain"
    assert default_package(tmp_path / "plain") == "tripy_layers"
    assert default_package(None) == "tripy_layers"


def test_the_default_package_of_a_checkout_is_upstreams(tmp_path):
    assert default_package(make_checkout(tmp_path)) == "nvtripy.frontend.module"


@pytest.mark.parametrize(
    ("package", "problem"),
    [
        ("nvtripy.frontend.layers", "has no package 'nvtripy.frontend.layers'"),
        ("tripy_layers", "has no package 'tripy_layers'"),
    ],
)
def test_a_checkout_takes_modules_into_its_own_packages_only(tmp_path, package, problem):
    with pytest.raises(AnswerError, match=problem):
        locate(str(make_checkout(tmp_path)), package, tmp_path)


def test_a_package_named_like_nvtripy_is_refused_elsewhere(tmp_path):
    with pytest.raises(AnswerError, match="counts as a part of nvtripy"):
        locate("", "nvtripy_layers", tmp_path)


def test_a_project_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(AnswerError, match=r"^project_dir: there is no folder"):
        locate(str(tmp_path / "typo"), "tripy_layers", tmp_path)


def test_without_a_project_the_output_folder_becomes_one(tmp_path):
    project = locate("", "tripy_layers", tmp_path)

    assert (project.root, project.checkout) == (tmp_path, False)
