"""The errors that nvtripy expects from its compiler and runtime."""

from __future__ import annotations

from dataclasses import dataclass


class RefusedError(Exception):
    """A kernel or a rule refuses its operands; the text says what is wrong, without a location."""


@dataclass(frozen=True)
class Diagnostic:
    """What the compiler has to say about one operation.

    Attributes:
        location: Prints as `loc("inputs;;<out>;;outputs"): error: ...`, from which nvtripy finds the user's line.
    """

    location: str


class MTRTException(RuntimeError):  # noqa: N818 - nvtripy catches it by this name
    """An error of the compiler or the runtime.

    Args:
        message: The text of the error.
        location: The name of the operation's location, if the error belongs to one operation.
        reason: What is wrong with that operation; without it, the text of the error.
    """

    def __init__(self, message: str, location: str = "", reason: str = "") -> None:
        super().__init__(message)
        if location:
            self.error_diagnostics = [Diagnostic(f'loc("{location}"): error: {reason or message}')]


def pipeline_error(reason: str, location: str) -> MTRTException:
    """Return the error of a program that does not compile because of `reason` at `location`."""
    return MTRTException(f"InternalError: failed to run pass pipeline: {reason}", location, reason)
