"""`pytest -p tripy_cpu.pytest_plugin`: run tests of nvtripy on the CPU, and say so in one line.

Where TensorRT is installed it is used instead, unless the environment variable `TRIPY_CPU` is `always`.
"""

from __future__ import annotations

from typing import Any

import tripy_cpu


def _prepare() -> str:
    if tripy_cpu.is_installed():
        return "tripy_cpu: running nvtripy on the CPU (NumPy reference backend)"
    if not tripy_cpu.wanted():
        return "tripy_cpu: stepping aside, TensorRT is installed (set TRIPY_CPU=always to use the CPU anyway)"
    tripy_cpu.install(force=True)
    return _prepare()


#: Set while pytest loads plugins, before any test module imports nvtripy.
NOTICE = _prepare()


#: nvtripy replaces `sys.stderr` on every evaluation and never closes the old one.
NVTRIPY_WARNINGS = ("ignore:unclosed file:ResourceWarning",)


def pytest_configure(config: Any) -> None:
    """Let nvtripy's own warnings pass where a project turns warnings into errors."""
    for line in NVTRIPY_WARNINGS:
        config.addinivalue_line("filterwarnings", line)


def pytest_report_header(config: Any) -> str | None:
    """Return the line for pytest's header, which is not shown under `-q`."""
    return NOTICE if config.get_verbosity() >= 0 else None


def pytest_sessionstart(session: Any) -> None:
    """Print the line where there is no header."""
    config = session.config
    if config.get_verbosity() < 0 and not hasattr(config, "workerinput"):
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(NOTICE)
