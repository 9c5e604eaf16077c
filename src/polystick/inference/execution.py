"""Where the rows live while a run lasts, and who maps a step over them.

Rows come in blocks, cut once by the model at fixed places. A step maps each block and its state to a new
state and sufficient statistics; the statistics are added in the order of the blocks, whoever computed
them and whenever. So the bits of a run do not depend on the number of threads, and a cluster is one more
class with `hold`.
"""

import concurrent.futures
import math
import operator
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from threadpoolctl import threadpool_limits

from polystick.inference.protocols import Array, Named, OrderedMap
from polystick.keys import Key

_LONGEST_RUN = 16


def add(left: Any, right: Any) -> Any:
    """Add two named tuples of statistics, field by field."""
    return type(left)(*map(operator.add, left, right))


class _Sum:
    """A sum of statistics, in place once its arrays are its own: those of a block may be large."""

    def __init__(self) -> None:
        self.value: Any = None
        self._own = False

    def add(self, statistics: Any) -> None:
        if self.value is None:
            self.value = statistics
        elif self._own:
            self.value = type(statistics)(*map(_add_onto, self.value, statistics))
        else:
            self.value, self._own = add(self.value, statistics), True


def _add_onto(left: Any, right: Any) -> Any:
    """Return left + right, written to left where that gives the same bits."""
    if isinstance(left, np.ndarray) and left.dtype != np.result_type(left, right):
        return left + right
    left += right
    return left


class NotFinite(NamedTuple):
    """The first entry of a block's state that is not finite."""

    variable: str
    row: int


def find_not_finite(state: Named, ids: Array | None = None) -> NotFinite | None:
    """Return where a named tuple of arrays is not finite, or None."""
    for name, value in zip(state._fields, map(np.asarray, state)):
        if value.dtype.kind not in "fc" or np.isfinite(value.sum()):
            continue  # one quick pass; a sum that overflows is looked at again
        finite = np.isfinite(value)
        if not finite.all():
            row = int(np.argwhere(~np.atleast_1d(finite))[0, 0])
            return NotFinite(name, row if ids is None or row >= len(ids) else int(ids[row]))
    return None


class HeldRows:
    """The blocks of rows and their states, one list of states for each chain."""

    def __init__(self, ordered_map: OrderedMap, shards: Sequence[Any], n_chains: int) -> None:
        self._map = ordered_map
        self.shards = shards
        self.states: list[list[Any]] = [[None] * len(shards) for _ in range(n_chains)]

    def step(
        self,
        function: Callable[[Any, Any, Any, Key], tuple[Any, Any]],
        priors: Sequence[Any],
        keys: Sequence[Key],
        blocks: Sequence[int] | None = None,
    ) -> list[Any]:
        """Give each block its new state; return the summed statistics of each chain.

        function(prior, shard, state, key) -> (state, statistics)
        blocks : numbers of the blocks to step, in the order of the sums; the others stay. None: all
        """
        blocks = range(len(self.shards)) if blocks is None else blocks
        jobs = [(chain, i) for chain in range(len(priors)) for i in blocks]

        def work(job: tuple[int, int]) -> tuple[Any, Any, NotFinite | None]:
            chain, i = job
            shard, state = self.shards[i], self.states[chain][i]
            state, statistics = function(priors[chain], shard, state, keys[chain])
            return state, statistics, find_not_finite(state, shard.rows)

        totals = [_Sum() for _ in priors]
        fresh = [list(states) for states in self.states]
        for (chain, i), (state, statistics, culprit) in zip(jobs, self._map(work, jobs)):
            if culprit is not None:
                raise FloatingPointError(
                    f"{culprit.variable} of row {culprit.row} is not finite after sweep "
                    f"{keys[chain].sweep} of chain {chain}; look for a row with extreme counts, "
                    "or try a stronger prior"
                )
            fresh[chain][i] = state
            totals[chain].add(statistics)
        self.states = fresh
        return [total.value for total in totals]

    def look(self, function: Callable[[Any, Any], Any]) -> Iterator[list[Any]]:
        """Map function(shard, state), changing nothing; yield a list over chains for each block."""

        def work(i: int) -> list[Any]:
            return [function(self.shards[i], states[i]) for states in self.states]

        return self._map(work, range(len(self.shards)))

    def gather(self) -> list[dict[str, Array]]:
        """Return the state of each chain as arrays over all rows, by name."""
        return [
            {
                name: np.concatenate([getattr(state, name) for state in states])
                for name in states[0]._fields
            }
            for states in self.states
        ]

    def scatter(self, arrays: Sequence[Mapping[str, Array]]) -> None:
        """Undo `gather`, cutting where the states at hand are cut."""
        for chain, named in enumerate(arrays):
            kind, states = type(self.states[chain][0]), self.states[chain]
            parts = [
                np.split(
                    named[name], np.cumsum([len(getattr(state, name)) for state in states])[:-1]
                )
                for name in kind._fields
            ]
            self.states[chain] = [kind(*map(np.ascontiguousarray, part)) for part in zip(*parts)]


@dataclass(frozen=True)
class Serial:
    """One block after another, in the calling thread."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return map(function, items)

    def hold(self, shards: Sequence[Any], n_chains: int = 1) -> HeldRows:
        return HeldRows(self.map, shards, n_chains)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


class Threads:
    """Threads over the blocks, the calling one among them; kernels release the GIL."""

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = available_threads() if n_threads is None else n_threads

    def hold(self, shards: Sequence[Any], n_chains: int = 1) -> HeldRows:
        return HeldRows(self.map, shards, n_chains)

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
    "HeldRows",
    "Serial",
    "Threads",
    "add",
    "available_threads",
    "concatenate",
    "execution_for",
    "find_not_finite",
    "one_blas_thread",
]
