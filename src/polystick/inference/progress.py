"""Progress of a run: a bar in a terminal or a notebook, a callback, or silence."""

import contextlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self, TypeAlias

_PATIENCE = 1.0  # seconds that a run may take without a bar, unless one was asked for


class Progress(NamedTuple):
    """What a callback is told after each sweep."""

    sweep: int
    total: int
    value: float  # log likelihood (Gibbs) or bound (mean field)
    seconds: float
    reached: str | None = None  # what a run that ends when it is done has reached


Show: TypeAlias = bool | Callable[[Progress], object] | None


class Monitor:
    """Show a run's sweeps.

    show : True (a bar), False (silence), None (a bar where a person watches, after a second) or a function
           of a `Progress`
    """

    def __init__(
        self, show: Show, total: int, done: int = 0, label: str = "log likelihood"
    ) -> None:
        self._show, self._total, self._label = show, total, label
        self._start = time.perf_counter()
        delay = 0.0 if show is True else _PATIENCE
        self._bar = _bar(total, done, delay) if is_watched(show) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def update(self, sweep: int, value: float, reached: str | None = None) -> None:
        if self._bar is not None:
            said = f"{self._label} {value:.6g}" if reached is None else reached
            self._bar.set_postfix_str(said, refresh=False)
            self._bar.update()
        elif callable(self._show):
            seconds = time.perf_counter() - self._start
            self._show(Progress(sweep, self._total, float(value), seconds, reached))


@contextlib.contextmanager
def compiling(show: Show, n_kernels: int) -> Iterator[Callable[[], object]]:
    """Show how many kernels are compiled; the function that it gives counts one more."""
    if not is_watched(show):
        yield lambda: None
        return
    text = "compiling {n_fmt} of {total_fmt}, once |{bar}| {elapsed}"
    with _tqdm()(total=n_kernels, bar_format=text, dynamic_ncols=True, leave=False) as bar:
        yield bar.update


def is_watched(show: Show) -> bool:
    """Tell whether a bar is wanted: None is where a terminal or a notebook shows it to a person."""
    if show is None:
        return _in_notebook() or bool(sys.stderr and sys.stderr.isatty())
    return show is True


def _in_notebook() -> bool:
    shell: Any = sys.modules.get("IPython")
    shell = shell and shell.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def _bar(total: int, done: int, delay: float) -> Any:
    return _tqdm()(total=total, initial=done, unit="sweep", dynamic_ncols=True, delay=delay)


def _tqdm() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tqdm's hint about ipywidgets; the text bar works without
        from tqdm.auto import tqdm
    return tqdm
