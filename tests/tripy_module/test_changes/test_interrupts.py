"""Ctrl-C at the worst moments."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tripy_module.changes import applied, plan, project_lock
from tripy_module.interrupts import uninterrupted


class FailedTestsError(Exception):
    pass


def test_an_interrupt_takes_effect_after_the_block_only() -> None:
    steps = []

    def run() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            steps.append("went on")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert steps == ["went on"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_came_too_late_is_dropped() -> None:
    with uninterrupted(deliver=False):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_handler_is_put_back_when_the_block_fails() -> None:
    with pytest.raises(FailedTestsError), uninterrupted():
        raise FailedTestsError
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_leave_the_handler_alone() -> None:
    seen = []

    def look() -> None:
        with uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


@pytest.mark.parametrize("is_failing", [False, True])
def test_an_interrupt_at_any_operation_leaves_all_or_nothing(
    driver: ModuleType, project: Path, contents: dict, snapshot: Callable, is_failing: bool
) -> None:
    """While files are written it takes everything back; while they are put back it waits; at the end it is too late."""
    before = snapshot(project)
    fatal = interrupted = 0
    while True:
        fatal += 1
        count = 0

        def interrupt(operation: str, path: Path, fatal: int = fatal) -> None:
            nonlocal count
            count += 1
            if count == fatal:
                signal.raise_signal(signal.SIGINT)

        filesystem = driver.FaultyFilesystem(interrupt)
        try:
            with project_lock(project, on_wait=pytest.fail):  # noqa: SIM117
                with applied(plan(project, contents), filesystem=filesystem):
                    if is_failing:
                        raise FailedTestsError
        except KeyboardInterrupt:
            interrupted += 1
            assert snapshot(project) == before
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        except FailedTestsError:
            break
        else:
            break
    assert interrupted > 40
    assert (snapshot(project) == before) is is_failing


@pytest.mark.skipif(os.name != "posix", reason="a console's Ctrl-C cannot be sent to one process elsewhere")
@pytest.mark.parametrize("times", [1, 2, 20])
def test_a_process_that_is_interrupted_any_number_of_times_puts_everything_back(
    start: Callable, project: Path, snapshot: Callable, lock: Callable, times: int
) -> None:
    before = snapshot(project)
    process = start("run_for_long")
    assert process.stdout.readline() == "applied\n"
    for _ in range(times):
        process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    if times > 1:  # one may hit between two safe places; then the next run settles it
        with lock(project):
            pass
    assert snapshot(project) == before
