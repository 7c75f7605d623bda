"""The recipes against every version of nvtripy that is supported, each in a checkout of its own."""

import sys
from pathlib import Path

import pytest
from harness import RECIPES, install_nvtripy, installed_nvtripy, make_checkout, make_venv

VERSIONS = ["0.1.5", "0.1.6"]  # the tests of the checkout have the newest


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the package's folder in each version, from the package index."""
    folder = tmp_path_factory.mktemp("wheels")
    python = make_venv(folder / "venv")
    for version in VERSIONS:
        install_nvtripy(python, version, folder / version)
    return {version: folder / version / "nvtripy" for version in VERSIONS}


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_recipe_is_proven_on_every_version(cookiecutter, wheels, tmp_path, version, recipe):
    checkout = tmp_path / "tripy"
    make_checkout(checkout, wheels[version])

    run = cookiecutter("class_name=Layer", f"recipe={recipe}", cwd=checkout)

    if version == "0.1.5" and sys.version_info >= (3, 11):
        assert run.returncode != 0
        assert "nvtripy 0.1.5 does not work on Python 3.11 or later" in run.output
    else:
        assert run.returncode == 0, run.output
        assert f"with nvtripy {version} in {checkout / 'nvtripy'}" in " ".join(run.stdout.split())


def test_the_installed_version_is_the_newest_that_is_supported():
    text = (installed_nvtripy() / "__init__.py").read_text("utf-8")

    assert '__version__ = "0.1.7"' in text
