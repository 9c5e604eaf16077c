"""Ctrl-C, SIGTERM and SIGHUP let the sweep under way end, so that nothing is half done.

A second Ctrl-C stops at once. SIGTERM and SIGHUP may come as often as they like: schedulers, containers and
`timeout` send them twice.
"""

import signal
import threading
from typing import Any, Self

from polystick.inference.checkpoint import Checkpoint, Saved
from polystick.validation import warn_user

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # the last is not known everywhere
_SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


class Interruption:
    """A context in which a signal to end is noted in `requested` instead of raised."""

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> Self:
        self._previous: dict[int, Any] = {}
        if threading.current_thread() is not threading.main_thread():
            return self
        for number in _SIGNALS:
            previous = signal.getsignal(number)
            if previous not in (signal.SIG_IGN, None):  # a job in the background stays one
                self._previous[number] = previous
                signal.signal(number, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, previous in self._previous.items():
            signal.signal(number, previous)

    def _note(self, number: int, frame: object) -> None:
        self.requested = True
        if number == signal.SIGINT:
            signal.signal(number, signal.default_int_handler)


def report_interruption(run: Saved, saver: Checkpoint | None) -> None:
    """Save the run and say what is kept; raise if that is nothing."""
    saved = ""
    if saver and run.save(saver):
        saved = f"; it is saved in {saver.folder}, go on with resume=True"
    if run.kept() is None:
        raise KeyboardInterrupt(
            f"interrupted after sweep {run.sweep}, before there was anything to keep{saved}"
        )
    warn_user(f"interrupted after sweep {run.sweep}; {run.kept()}{saved}")
