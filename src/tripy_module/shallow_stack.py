"""A pytest plugin: each test function runs in a thread of its own, so on a stack without pytest's forty calls.

For every operation nvtripy describes the whole stack it is called on, which takes most of the operation's time on
Python 3.11 and later: under pytest, four times what the operation takes in a script.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> Generator[None, Any, None]:
    """Have pytest call the test function in another thread."""
    function = pyfuncitem.obj
    if inspect.iscoroutinefunction(function):  # of a plugin that has its own way to run it
        yield
    elif hasattr(function, "hypothesis"):  # which calls the function proper from under as many calls again
        yield from _replacing(function.hypothesis, "inner_test")
    else:
        yield from _replacing(pyfuncitem, "obj")


def _replacing(owner: Any, name: str) -> Generator[None, Any, None]:
    function = getattr(owner, name)
    setattr(owner, name, _in_thread(function))
    try:
        yield
    finally:
        setattr(owner, name, function)


def _in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function run in a thread and return or raise here what it does there."""

    @functools.wraps(function)
    def run(*arguments: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        results: list[Any] = []
        errors: list[BaseException] = []

        def work() -> None:
            __tracebackhide__ = True
            try:
                results.append(function(*arguments, **keywords))
            except BaseException as error:  # skips and exits are among them
                errors.append(error)

        # A daemon: an interrupt ends the test run, and the test that it hits need not end first.
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join()
        if errors:
            raise errors.pop()
        return results.pop()

    return run
