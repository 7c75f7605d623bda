"""Several threads at once get right results and leave standard error where it was."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import nvtripy as tp

from tripy_cpu import turnstile


def evaluate(number: int) -> float:
    x = tp.Tensor([float(number), 1.0])
    return float(tp.sum(x * 2.0 + 1.0).tolist())


def test_evaluations_in_several_threads() -> None:
    before = os.fstat(2)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(evaluate, range(40)))
    assert results == [2.0 * number + 4 for number in range(40)]
    after = os.fstat(2)
    assert (before.st_dev, before.st_ino) == (after.st_dev, after.st_ino)


def fail(number: int) -> str:
    try:
        (tp.ones((2, 3)) + tp.ones((number + 4, 3))).eval()
    except tp.TripyException as error:
        return str(error)
    return ""


def test_failed_evaluations_let_others_pass() -> None:
    before = os.fstat(2)
    with ThreadPoolExecutor(4) as pool:
        failures = pool.map(fail, range(8))
        successes = pool.map(evaluate, range(8))
        assert all("conformable" in message for message in failures)
        assert list(successes) == [2.0 * number + 4 for number in range(8)]
    after = os.fstat(2)
    assert (before.st_dev, before.st_ino) == (after.st_dev, after.st_ino)


def test_evaluations_that_fail_in_several_threads_never_block_each_other() -> None:
    code = (
        "import tripy_cpu; tripy_cpu.install(force=True)\n"
        "import threading, nvtripy as tp\n"
        "def work():\n"
        "    for i in range(25):\n"
        "        try: (tp.ones((2, 3)) + tp.ones((4, 3))).eval()\n"
        "        except tp.TripyException: pass\n"
        "threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print('done')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "done\n"


def test_compiled_calls_in_several_threads() -> None:
    compiled = tp.compile(lambda x: tp.exp(x) - x, args=[tp.InputInfo((2,), tp.float32)])
    inputs = [tp.copy(tp.Tensor([float(number), 0.0]), tp.device("gpu")) for number in range(8)]
    expected = [compiled(x).tolist() for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda x: compiled(x).tolist(), inputs * 5)) == expected * 5


def test_a_thread_waits_for_another_ones_evaluation() -> None:
    inside, release = threading.Event(), threading.Event()
    order: list[str] = []

    def eval() -> None:  # the name and the module's are what the turnstile goes by
        turnstile.enter()
        inside.set()
        assert release.wait(10)
        order.append("first")
        turnstile.leave()

    def other() -> None:
        assert inside.wait(10)
        order.append(str(evaluate(1)))

    first = threading.Thread(target=as_nvtripy(eval))
    second = threading.Thread(target=other)
    first.start()
    second.start()
    inside.wait(10)
    second.join(0.1)
    assert order == []
    release.set()
    first.join(10)
    second.join(10)
    assert order == ["first", "6.0"]


def as_nvtripy(function: Any) -> Any:
    """Return the function as if nvtripy's tensor module defined it."""
    namespace = {**function.__globals__, "__name__": "nvtripy.frontend.tensor"}
    return type(function)(function.__code__, namespace, function.__name__, None, function.__closure__)


def test_standard_error_is_still_there_at_the_end() -> None:
    code = (
        "import tripy_cpu; tripy_cpu.install(force=True)\n"
        "import sys, os, threading, nvtripy as tp\n"
        "def work():\n"
        "    for i in range(10): assert (tp.ones((2,)) + float(i)).tolist() == [i + 1.0] * 2\n"
        "threads = [threading.Thread(target=work) for _ in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "os.write(2, b'descriptor\\n'); print('stream', file=sys.stderr, flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.split() == ["descriptor", "stream"]
