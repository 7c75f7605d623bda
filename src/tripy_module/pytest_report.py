"""A pytest plugin for the interpreter under test: counts the outcomes and says what nvtripy they were for.

It writes JSON to the path in TRIPY_MODULE_REPORT. A test that ends in `NotImplementedError("TODO ...")` is still to do,
which is no failure: that is how exercises are emitted.
"""

import json
import os
import re
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

REPORT_VARIABLE = "TRIPY_MODULE_REPORT"
_TODO = "to do: "
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_SOURCE_LINE = re.compile(r"-->|\d* *\|")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(call: Any) -> Generator[None, Any, None]:
    """Turn what is still to do from a failure into an expected one."""
    outcome = yield
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, NotImplementedError) and str(error).startswith("TODO"):
        report = outcome.get_result()
        report.outcome = "skipped"
        report.wasxfail = f"{_TODO}{error}"


class Recorder:
    """Collects what happens in one test run."""

    def __init__(self) -> None:
        self.counts = {"passed": 0, "failed": 0, "errors": 0, "skipped": 0, "todo": 0}
        self.failures: list[dict[str, str]] = []
        self.start = time.perf_counter()

    def pytest_collectreport(self, report: Any) -> None:
        """Count a file that cannot be imported."""
        if report.failed:
            self._fail("errors", report)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count a test; what fails around it is an error."""
        if report.failed:
            self._fail("failed" if report.when == "call" else "errors", report)
        elif report.skipped:
            self.counts["todo" if getattr(report, "wasxfail", "").startswith(_TODO) else "skipped"] += 1
        elif report.when == "call":
            self.counts["passed"] += 1

    def pytest_sessionfinish(self) -> None:
        """Write the report."""
        nvtripy = sys.modules.get("nvtripy")
        facts = {
            "counts": self.counts,
            "failures": self.failures,
            "seconds": time.perf_counter() - self.start,
            "nvtripy_folder": os.path.dirname(nvtripy.__file__ or "") if nvtripy is not None else "",  # noqa: PTH120
            "nvtripy_version": getattr(nvtripy, "__version__", ""),
        }
        Path(os.environ[REPORT_VARIABLE]).write_text(json.dumps(facts), encoding="utf-8")

    def _fail(self, what: str, report: Any) -> None:
        self.counts[what] += 1
        text = _COLOR.sub("", report.longreprtext)
        crash = getattr(report.longrepr, "reprcrash", None)
        marked = [line for line in text.splitlines() if line.startswith("E ")]
        message = _COLOR.sub("", crash.message) if crash is not None else "\n".join(marked) or text
        self.failures.append({"name": report.nodeid, "message": _first_words(message), "text": text})


def _first_words(message: str) -> str:
    """The line of an error that says most: nvtripy's begin with an empty one and the place in the source."""
    lines = [line.removeprefix("E ").strip() for line in message.splitlines()]
    telling = [line for line in lines if line and not line.endswith(":") and not _SOURCE_LINE.match(line)]
    return telling[0] if telling else message.strip().partition("\n")[0]


def pytest_configure(config: Any) -> None:
    """Record in the process that reports, not in those that pytest-xdist starts for it."""
    if REPORT_VARIABLE in os.environ and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(), "tripy-module-recorder")
