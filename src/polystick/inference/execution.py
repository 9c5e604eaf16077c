"""Who maps a step over the blocks of rows.

Rows come in blocks, cut once by the model at fixed places. A step maps each block and its state to a new
state and sufficient statistics; the statistics are added by one fixed tree over the blocks (`sums`), whoever
computed them and whenever. So the bits of a run do not depend on the number of threads. Who holds the rows is
`held`, here or elsewhere.
"""

import concurrent.futures
import contextvars
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from threadpoolctl import threadpool_limits

from polystick.inference.held import HeldRows
from polystick.inference.protocols import Array, Execution

_LONGEST_RUN = 16


@dataclass(frozen=True)
class Serial:
    """One block after another, in the calling thread."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return map(function, items)

    def hold(
        self, model: Any, shards: Sequence[Any], n_chains: int = 1, together: bool = False
    ) -> HeldRows:
        return HeldRows(self.map, model, shards, n_chains)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


class Threads:
    """Threads over the blocks, the calling one among them; kernels release the GIL."""

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = available_threads() if n_threads is None else n_threads

    def hold(
        self, model: Any, shards: Sequence[Any], n_chains: int = 1, together: bool = False
    ) -> HeldRows:
        return HeldRows(self.map, model, shards, n_chains)

    def __enter__(self) -> Self:
        self._pool = concurrent.futures.ThreadPoolExecutor(max(1, self.n_threads - 1))
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Map in order, with a bounded number of results in flight.

        Items go in runs: each hand-over between threads costs as much as a small block.
        """
        items = list(items)
        size = max(1, min(_LONGEST_RUN, -(-len(items) // (8 * self.n_threads))))
        runs = [items[start : start + size] for start in range(0, len(items), size)]
        work = _SharedWork(function, runs, ahead=2 * self.n_threads + 1)
        helpers = [self._pool.submit(work.help) for _ in range(min(len(runs), self.n_threads) - 1)]
        try:
            yield from work.results()
        finally:
            work.stop()
            for helper in helpers:
                helper.cancel()


class _SharedWork:
    """Runs of items which threads take in turn, not too far ahead of the one that reads the results."""

    def __init__(
        self, function: Callable[[Any], Any], runs: Sequence[Sequence[Any]], ahead: int
    ) -> None:
        self._function, self._runs, self._ahead = function, runs, ahead
        self._taken = self._read = 0
        self._done: dict[int, concurrent.futures.Future[list[Any]]] = {}
        self._changed = threading.Condition()

    def results(self) -> Iterator[Any]:
        """Yield results in order, working while the next is not there yet."""
        for i in range(len(self._runs)):
            while i not in self._done:
                self._work_or_wait(i)
            yield from self._done.pop(i).result()
            with self._changed:
                self._read = i + 1
                self._changed.notify_all()

    def help(self) -> None:
        """Work until nothing is left to take."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._may_take() or not self._left())
                if not self._left():
                    return
                i = self._take()
            self._compute(i)

    def stop(self) -> None:
        """Let helpers go."""
        with self._changed:
            self._taken = len(self._runs)
            self._changed.notify_all()

    def _work_or_wait(self, i: int) -> None:
        with self._changed:
            if not self._may_take():
                self._changed.wait_for(lambda: i in self._done)
                return
            taken = self._take()
        self._compute(taken)

    def _left(self) -> bool:
        return self._taken < len(self._runs)

    def _may_take(self) -> bool:
        return self._left() and self._taken < self._read + self._ahead

    def _take(self) -> int:
        self._taken += 1
        return self._taken - 1

    def _compute(self, i: int) -> None:
        result: concurrent.futures.Future[list[Any]] = concurrent.futures.Future()
        try:
            result.set_result([self._function(item) for item in self._runs[i]])
        except BaseException as error:
            result.set_exception(error)
        with self._changed:
            self._done[i] = result
            self._changed.notify_all()


def execution_for(n_jobs: int | None) -> Serial | Threads:
    """Return Serial for one job, else Threads; None is every core this process may use, -2 all but one."""
    if n_jobs is not None and n_jobs < 0:
        n_jobs = max(1, available_threads() + 1 + n_jobs)
    return Serial() if n_jobs == 1 else Threads(n_jobs)


ELSEWHERE: contextvars.ContextVar[Callable[[int | None], Execution] | None] = (
    contextvars.ContextVar("elsewhere", default=None)
)


def execution_of_fit(n_jobs: int | None) -> Execution:
    """Return who runs a fit: `execution_for`, or a cluster where one was entered."""
    elsewhere = ELSEWHERE.get()
    return execution_for(n_jobs) if elsewhere is None else elsewhere(n_jobs)


class _OneBlasThread:
    """The limit belongs to the process, so runs side by side share it: the last one out lifts it."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._limits = threadpool_limits(limits=1)

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limits.restore_original_limits()


_ONE_BLAS_THREAD = _OneBlasThread()


def one_blas_thread() -> _OneBlasThread:
    """Keep BLAS to one thread, so that its sums have one order and our threads have the cores."""
    return _ONE_BLAS_THREAD


def available_threads() -> int:
    """Count the cores that affinity and the cgroup's quota leave to this process."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    return max(1, min(allowed, _cgroup_cores()))


def _cgroup_cores(path: str = "/sys/fs/cgroup/cpu.max") -> int:
    try:
        quota, period = Path(path).read_text().split()
        return math.ceil(int(quota) / int(period))
    except (OSError, ValueError):  # no cgroup v2, or "max": no quota
        return 2**31


def concatenate(parts: Sequence[dict[str, Array]]) -> dict[str, Array]:
    """Join the per-block dictionaries of arrays along the rows."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


__all__ = [
    "ELSEWHERE",
    "Serial",
    "Threads",
    "available_threads",
    "concatenate",
    "execution_for",
    "execution_of_fit",
    "one_blas_thread",
]
