"""Evaluations pass one at a time.

While it records and compiles, nvtripy points file descriptor 2 at a temporary file and back again. Two threads doing
so at once can leave it pointing at that file for good. So a thread that evaluates a tensor waits here until no other
one is between the start of its evaluation and its end.

The end may never be announced (an evaluation can fail in nvtripy), so a thread that left the function in which it
entered no longer counts. Nor does one that waits for nvtripy's own lock on the compiler, as an evaluation inside an
evaluation does: nvtripy calls here with that lock held, and the two would wait for each other. `nvtripy.compile`
redirects before it first calls the compiler, so it is out of reach: let one thread compile at a time.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from types import FrameType

_EVALUATION = ("nvtripy.frontend.tensor", "eval")
_LOCKED = ("nvtripy.backend.mlir.compiler", "_get_compiler_objects")
_POLL_SECONDS = 0.01


@dataclass(frozen=True)
class _Holder:
    thread: int
    frame: FrameType  # itself, since another one may get the identity of one that is gone


class _Turnstile:
    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.holder: _Holder | None = None


_TURNSTILE = _Turnstile()


def _is_of(frame: FrameType, function: tuple[str, str]) -> bool:
    return (frame.f_globals.get("__name__"), frame.f_code.co_name) == function


def _evaluation_frame(frame: FrameType | None) -> FrameType | None:
    """Return the outermost frame of `Tensor.eval` from `frame` upwards."""
    found = None
    while frame is not None:
        if _is_of(frame, _EVALUATION):
            found = frame
        frame = frame.f_back
    return found


def _is_inside(holder: _Holder) -> bool:
    frame = sys._current_frames().get(holder.thread)
    if frame is not None and _is_of(frame, _LOCKED):
        return False
    while frame is not None:
        if frame is holder.frame:
            return True
        frame = frame.f_back
    return False


def enter() -> None:
    """Wait for other threads' evaluations, if this thread is starting one of its own."""
    if threading.active_count() == 1:
        return
    frame = _evaluation_frame(sys._getframe(1))
    if frame is None:
        return
    me = _Holder(threading.get_ident(), frame)
    with _TURNSTILE.changed:
        while (holder := _TURNSTILE.holder) is not None and holder.thread != me.thread and _is_inside(holder):
            _TURNSTILE.changed.wait(_POLL_SECONDS)
        _TURNSTILE.holder = me


def leave() -> None:
    """Let the next thread in, if this thread was inside."""
    holder = _TURNSTILE.holder
    if holder is not None and holder.thread == threading.get_ident():
        with _TURNSTILE.changed:
            _TURNSTILE.holder = None
            _TURNSTILE.changed.notify()
