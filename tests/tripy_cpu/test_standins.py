"""What the stand-ins cost a process, and what they answer to names that they lack."""

from __future__ import annotations

import subprocess
import sys

import cupy as cp
import mlir_tensorrt.runtime.api as runtime
import numpy as np
import nvtripy as tp
import pytest

INSTALL = "import sys, tripy_cpu; tripy_cpu.install(force=True)\n"


def printed_by(code: str) -> str:
    return subprocess.run([sys.executable, "-c", INSTALL + code], capture_output=True, text=True, check=True).stdout


def test_importing_nvtripy_does_not_import_numpy() -> None:
    assert printed_by("import nvtripy, cupy; print('numpy' in sys.modules)") == "False\n"


def test_the_lookalike_of_cupy_loads_none_of_numpys_late_submodules() -> None:
    code = (
        "import cupy; cupy.ones(1); print('numpy' in sys.modules, *{'numpy.f2py', 'numpy.testing'} & set(sys.modules))"
    )
    assert printed_by(code) == "True\n"


def test_missing_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match=r"'mlir_tensorrt.runtime.api' has no attribute 'Nothing'"):
        runtime.Nothing  # noqa: B018
    assert not hasattr(cp, "__nothing__")


def test_the_lookalike_of_cupy_makes_arrays_that_can_be_got() -> None:
    arrays = [cp.arange(3), cp.eye(2), cp.random.rand(2, 2), cp.concatenate([cp.ones(1), cp.zeros(1)]), cp.ones(2) + 1]
    arrays += [cp.ones((2, 3)).sum(), cp.max(cp.ones(2)), cp.linspace(0, 1, 3), cp.where(cp.ones(2) > 0, 1, 2)]
    assert {type(array.get()) for array in arrays} == {np.ndarray}
    assert cp.asnumpy(cp.full((2,), 3.0) + 1).tolist() == [4.0, 4.0]
    assert cp.float32 is np.float32
    assert cp.array_equal(cp.from_dlpack(tp.ones((2,))), cp.ones(2, cp.float32))


def test_what_the_lookalike_of_cupy_lacks_is_said() -> None:
    with pytest.raises(AttributeError, match="look-alike of cupy has no 'cuda'"):
        cp.cuda.Device(0)
