import importlib.util
from pathlib import Path

import pytest

from tripy_module.errors import AnswerError
from tripy_module.exports import check_untaken, exported_names


@pytest.fixture(scope="module")
def nvtripy() -> Path:
    spec = importlib.util.find_spec("nvtripy")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def test_every_name_that_nvtripy_gives_is_found_in_its_sources(nvtripy):
    import tripy_cpu

    tripy_cpu.install()
    import nvtripy as tp

    exported = {name for name in tp.__all__ if name.isidentifier()}  # two submodules stand there with their full names
    submodules = {name for name in vars(tp) if name.isidentifier() and not name.startswith("_")} - {
        "nvtripy",
        "tensorrt",
    }

    assert exported | submodules <= exported_names(nvtripy)
    assert len(exported) > 90


def test_helpers_that_are_not_exported_are_free(nvtripy):
    assert not {"layernorm", "RMSNorm", "BaseDtype"} & exported_names(nvtripy)


def test_taken_names_are_refused(nvtripy):
    with pytest.raises(AnswerError, match=r"^class_name: nvtripy exports 'Linear' already"):
        check_untaken(nvtripy, "Linear")
    with pytest.raises(AnswerError, match=r"^module_name: nvtripy exports 'gelu' already"):
        check_untaken(nvtripy, "GELULayer", "gelu")
    check_untaken(nvtripy, "RMSNorm", "rms_norm")
