"""Keep Ctrl-C out of the few operations that must not stop half-way."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted(*, deliver: bool = True) -> Iterator[None]:
    """Hold back SIGINT inside the block.

    Python raises `KeyboardInterrupt` on the main thread only, so other threads have nothing to hold back.

    Args:
        deliver: Whether an interrupt that arrived meanwhile takes effect when the block is left.
            False where it came too late to matter, and reporting it would be misleading.
    """
    previous = signal.getsignal(signal.SIGINT)
    # None: a handler that Python did not install, and so could not put back.
    if threading.current_thread() is not threading.main_thread() or previous is None:
        yield
        return
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append(number)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        if held and deliver:
            signal.raise_signal(signal.SIGINT)
