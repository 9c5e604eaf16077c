"""Ctrl-C lets the sweep under way end, so that nothing is half done; a second one stops at once."""

import signal
import threading
from typing import Self

from polystick.inference.checkpoint import Checkpoint, Saved
from polystick.validation import warn_user


class Interruption:
    """A context in which the first SIGINT is noted in `requested` instead of raised."""

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> Self:
        self._previous = signal.getsignal(signal.SIGINT)
        self._listens = (
            threading.current_thread() is threading.main_thread()
            and self._previous not in (signal.SIG_IGN, None)  # a job in the background stays one
        )
        if self._listens:
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._listens:
            signal.signal(signal.SIGINT, self._previous)

    def _note(self, number: int, frame: object) -> None:
        self.requested = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


def report_interruption(run: Saved, saver: Checkpoint | None) -> None:
    """Save the run and say what is kept; raise if that is nothing."""
    saved = ""
    if saver:
        run.save(saver)
        saved = f"; it is saved in {saver.folder}, go on with resume=True"
    if run.kept() is None:
        raise KeyboardInterrupt(
            f"interrupted after sweep {run.sweep}, before there was anything to keep{saved}"
        )
    warn_user(f"interrupted after sweep {run.sweep}; {run.kept()}{saved}")
