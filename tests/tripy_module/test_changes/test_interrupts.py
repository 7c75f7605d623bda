"""Ctrl-C at the worst moments."""

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tripy_module.changes import applied, plan, undo
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
    driver: ModuleType, project: Path, contents: dict, snapshot: Callable, lock: Callable, is_failing: bool
) -> None:
    """While files are written it takes everything back; while they are put back it waits; at the end it is too late."""
    before = snapshot(project)
    fatal = count = interrupted = 0
    while count >= fatal:
        fatal += 1
        count = 0

        def interrupt(operation: str, path: Path, fatal: int = fatal) -> None:
            nonlocal count
            count += 1
            if count == fatal:
                signal.raise_signal(signal.SIGINT)

        with lock(project):
            changes = plan(project, contents)
            try:
                with applied(changes, filesystem=driver.FaultyFilesystem(interrupt)):
                    if is_failing:
                        raise FailedTestsError
            except KeyboardInterrupt:
                interrupted += 1
            except FailedTestsError:
                assert count < fatal
            else:
                assert set(snapshot(project)) - {".tripy-module", ".tripy-module/.lock"} != set(before)
                undo(changes)
            # At once, not by what the lock does when it is left.
            assert set(snapshot(project)) - {".tripy-module", ".tripy-module/.lock"} == set(before)
        assert snapshot(project) == before
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert interrupted > 40
    assert (interrupted == fatal - 1) is is_failing


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="hundreds of processes are quick with fork only")
@pytest.mark.parametrize("is_failing", [False, True])
def test_an_interrupt_at_any_line_leaves_all_or_nothing(start: Callable, tmp_path: Path, is_failing: bool) -> None:
    process = start("interrupt_sweep", str(int(is_failing)), "23", root=tmp_path)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    cases = json.loads(output)
    outcomes = [outcome for _, _, outcome in cases]
    turning_point = len(outcomes) if is_failing else outcomes.index("after")
    assert outcomes == ["before"] * turning_point + ["after"] * (len(outcomes) - turning_point)
    assert turning_point > 50
    # What a line between two safe places could not do, the next run has done; there are few of them.
    assert sum(message is not None for _, message, _ in cases) < 0.02 * len(cases)


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
