"""nvtripy can only be imported once the stand-ins are in place, so this happens before any test here is collected."""

from __future__ import annotations

import pytest

import tripy_cpu
from tripy_cpu.pytest_plugin import NVTRIPY_WARNINGS
from tripy_module.shallow_stack import pytest_pyfunc_call  # noqa: F401  # four times as fast

tripy_cpu.install(force=True)


def pytest_configure(config: pytest.Config) -> None:
    for line in NVTRIPY_WARNINGS:
        config.addinivalue_line("filterwarnings", line)
