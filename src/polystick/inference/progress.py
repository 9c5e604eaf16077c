"""Progress of a run: a bar in a terminal or a notebook, a callback, or silence."""

import time
import warnings
from typing import NamedTuple


class Progress(NamedTuple):
    """What a callback is told after each sweep."""

    sweep: int
    total: int
    value: float  # log likelihood (Gibbs) or bound (mean field)
    seconds: float


class Monitor:
    """Show a run's sweeps. show: True (a bar), False (silence) or a function of a `Progress`."""

    def __init__(self, show, total, done=0, label="log likelihood"):
        self._show, self._total, self._label = show, total, label
        self._start = time.perf_counter()
        self._bar = _bar(total, done) if show is True else None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self._bar is not None:
            self._bar.close()

    def update(self, sweep, value):
        if self._bar is not None:
            self._bar.set_postfix_str(f"{self._label} {value:.6g}", refresh=False)
            self._bar.update()
        elif callable(self._show):
            seconds = time.perf_counter() - self._start
            self._show(Progress(sweep, self._total, float(value), seconds))


def _bar(total, done):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tqdm's hint about ipywidgets; the text bar works without
        from tqdm.auto import tqdm
    return tqdm(total=total, initial=done, unit="sweep", dynamic_ncols=True)
