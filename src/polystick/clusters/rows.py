"""Rows of a run that are held by the workers of a cluster, with the same bits as in one process.

Blocks go in shards of neighbours, each at one worker, its home. The process that fits keeps the parameters,
snapshots of the shards, and the orders since. A shard without a home is sent to another, which brings it to
where the others are.
"""

import itertools
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polystick.clusters import messages
from polystick.clusters.engine import ClusterError, Engine, Trouble, Worker
from polystick.clusters.worker import (
    BlockError,
    Lost,
    Order,
    Part,
    Snapshot,
    Source,
    forget,
    load,
    obey,
    take_snapshot,
)
from polystick.inference.files import read_arrays, write_arrays
from polystick.inference.held import ROWS, packed, parts_of, unpacked
from polystick.inference.protocols import Look, Stepped
from polystick.inference.recorder import Running, joined_moments
from polystick.inference.sums import TreeSum
from polystick.keys import Key
from polystick.validation import warn_user

__all__ = ["ClusterRows"]

EVERY = 10  # orders between two snapshots
MOST_DEATHS, WITHIN = 3, 600.0  # of workers that held a shard, within seconds
MOST_TROUBLES = 20  # that Dask may have with one order
SHORT = 0.5  # seconds for a sweep, below which one machine is quicker
LOOK_AFTER = 5  # sweeps
MOST_HERE = 0.5  # of a sweep, above which workers can't make it much shorter
SHARDS_EACH = 2  # a worker, so that those of a dead one are spread


class ClusterRows:
    """Blocks of rows and their states at the workers of a cluster."""

    def __init__(
        self,
        engine: Engine,
        model: Any,
        shards: Sequence[Any],
        n_chains: int,
        n_shards: int | None = None,
        store: Path | None = None,
    ) -> None:
        self._engine, self._blocks, self._n_chains, self._store = engine, shards, n_chains, store
        self._model, self._content = model, messages.written(model)
        self._run = uuid.uuid4().hex[:8]
        wanted = n_shards or SHARDS_EACH * max(1, len(engine.workers()))
        edges = np.linspace(0, len(shards), min(wanted, len(shards)) + 1).astype(int).tolist()
        self._shards = [range(a, b) for a, b in itertools.pairwise(edges)]
        self._homes: dict[int, str] = {}
        self._deaths: dict[int, list[float]] = defaultdict(list)
        self._snapshots: dict[int, Snapshot] = {}
        self._orders: list[bytes] = []
        self._seconds: list[float] = []
        self._shares: list[float] = []
        self._ended = time.monotonic()
        self._version = -1  # of the last order that changed states

    @property
    def n_blocks(self) -> int:
        return len(self._blocks)

    # what a run asks for

    def start(self, method: str, priors: Sequence[Any], keys: Sequence[Key] | None = None) -> None:
        self._snapshots, self._orders, self._version, self._homes = {}, [], -1, {}
        self._change(Order("start", method, priors, keys))

    def step(
        self,
        method: str,
        priors: Sequence[Any],
        keys: Sequence[Key],
        blocks: Sequence[int] | None = None,
        look: Look | None = None,
    ) -> Stepped:
        if blocks is not None:
            raise ClusterError(
                "batches are too small to pay on a cluster; use MeanField() there, or fit by batches outside "
                "of polystick.cluster"
            )
        begun = time.monotonic()
        parts = self._change(Order("step", method, priors, keys, look))
        self._tell_of_short_sweeps(time.monotonic() - begun)
        return Stepped([each.value for each in self._sums(parts)], _told(parts))

    def _tell_of_short_sweeps(self, seconds: float) -> None:
        self._seconds.append(seconds)
        if len(self._seconds) == LOOK_AFTER and min(self._seconds) < SHORT:
            warn_user(
                f"a sweep takes {min(self._seconds):.2f} seconds on this cluster, much of it the cluster's "
                f"own; below about {SHORT} seconds one machine is quicker: fit outside of polystick.cluster"
            )

    def move(self, parameters: Sequence[Any], keys: Sequence[Key]) -> list[Any]:
        model, found = self._model, list(parameters)
        proposed = [model.propose_move(*each) for each in zip(parameters, keys)]
        if all(each is None for each in proposed):
            return found
        sums = self._sums(self._ask(_always(Order("weigh", "weigh_move", proposed))))
        decided: list[Any] = [None] * len(proposed)
        for chain, each in enumerate(proposed):
            if each is not None:
                given = found[chain], each, sums[chain].value, keys[chain]
                found[chain], decided[chain] = model.decide_move(*given)
        self._change(Order("follow", "follow_move", decided))
        return found

    def lend(
        self,
        method: str,
        priors: Sequence[Any],
        keys: Sequence[Key],
        states: Sequence[Sequence[Any]],
    ) -> list[list[tuple[Any, Any]]]:
        """Let workers make a step of rows that this process holds; return states and statistics by chain."""

        def content(numbers: Sequence[int]) -> bytes:
            blocks = [i for number in numbers for i in self._shards[number]]
            lent = [{i: chain[i] for i in blocks} for chain in states]
            return messages.written(Order("lend", method, priors, keys, lent=lent))

        begun = time.monotonic()
        told = _told(self._ask(content))
        self._tell_of_slow_moves(begun, time.monotonic())
        return told

    def _tell_of_slow_moves(self, begun: float, ended: float) -> None:
        """Warn where more of a sweep is done here, since the last step of rows that are lent, than there."""
        here, there = begun - self._ended, ended - begun
        self._ended = ended
        self._shares.append(here / (here + there))
        share = float(np.median(self._shares))
        if share <= MOST_HERE or len(self._shares) < LOOK_AFTER:
            self._tell_of_short_sweeps(here + there)
        elif len(self._shares) == LOOK_AFTER:
            warn_user(
                f"{100 * share:.0f} % of a sweep of {type(self._model).__name__} are moves of all rows at "
                "once, made in this process whoever else is there: fit it outside of polystick.cluster"
            )

    def describe(self, look: Callable[..., Any], last: bool = False) -> Iterator[Any]:
        only_first = [(), *[None] * (self._n_chains - 1)]
        yield from _told(self._ask(_always(Order("describe", "", only_first, look=look))))[0]

    def moments(self) -> dict[str, Running]:
        found = [unpacked(s.arrays, s.kind) for s in self._all_arrays()]
        return joined_moments(
            [[m for shard in found for m in shard[chain][1]] for chain in range(self._n_chains)]
        )

    def save(self, folder: Path, sweep: int) -> dict[str, str]:
        found = [unpacked(s.arrays, s.kind) for s in self._all_arrays()]
        files = {}
        for part in parts_of(self._blocks):
            name, cut = f"{ROWS}{part.start}-{sweep}.npz", slice(part.start, part.stop)
            states = [[s for each in found for s in each[c][0]][cut] for c in range(self._n_chains)]
            moments = [
                [m for each in found for m in each[c][1]][cut] for c in range(self._n_chains)
            ]
            files[name] = write_arrays(folder / name, packed(states, moments))
        return files

    def load(self, folder: Path, files: Mapping[str, str]) -> None:
        kind = self._snapshot_kind()
        states: list[list[Any]] = [[None] * self.n_blocks for _ in range(self._n_chains)]
        moments: list[list[Any]] = [[None] * self.n_blocks for _ in range(self._n_chains)]
        for name, checksum in files.items():
            first = int(name.removeprefix(ROWS).split("-")[0])
            arrays = read_arrays(folder / name, checksum)
            for chain, (some, recorded) in enumerate(unpacked(arrays, kind)):
                states[chain][first : first + len(some)] = some
                moments[chain][first : first + len(some)] = recorded
        self._snapshots = {}
        for number, blocks in enumerate(self._shards):
            cut = slice(blocks.start, blocks.stop)
            arrays = packed([each[cut] for each in states], [each[cut] for each in moments])
            self._snapshots[number] = Snapshot(self._version, kind, arrays)
        self._orders, self._homes = [], {}

    def close(self) -> None:
        """Let the workers forget the run; those that don't answer are left alone."""
        calls = dict.fromkeys(set(self._homes.values()), (forget, (self._run,)))
        alive = self._engine.workers()
        for _ in self._engine.run({w: call for w, call in calls.items() if w in alive}):
            pass
        for snapshot in self._snapshots.values():
            _remove(snapshot)

    # orders

    def _change(self, order: Order) -> list[Part]:
        """Give an order that changes states, and remember it."""
        content = _always(order)
        parts = self._ask(content)
        self._orders.append(content([]))
        self._version += 1
        if len(self._orders) > EVERY:
            self._take_snapshots()
        return parts

    def _ask(self, content: Callable[[Sequence[int]], bytes]) -> list[Part]:
        """Return the answers of all shards, in order, to the order that is written for some of them."""
        parts: list[Part] = []

        def call(numbers: list[int], worker: Worker) -> Any:
            given = self._run, numbers, self._version, content(numbers), worker.n_threads
            return obey, given

        def take(result: bytes) -> Iterator[int]:
            for part in messages.read(result):
                if isinstance(part, Lost):
                    self._homes.pop(part.number, None)
                else:
                    parts.append(part)
                    yield from part.numbers

        self._all_shards(call, take)
        failed = [part.failed for part in parts if part.failed is not None]
        if failed:
            raise min(failed, key=lambda each: (each.chain, each.block)).error
        return sorted(parts, key=lambda part: part.numbers)

    def _all_shards(self, call: Callable[..., Any], take: Callable[..., Iterator[int]]) -> None:
        """Call at the homes of all shards until each has answered."""
        missing, troubles = set(range(len(self._shards))), 0
        while missing:
            live = self._settle()
            groups: dict[str, list[int]] = defaultdict(list)
            for number in sorted(missing):
                groups[self._homes[number]].append(number)
            calls = {worker: call(numbers, live[worker]) for worker, numbers in groups.items()}
            for worker, result in self._engine.run(calls):
                if isinstance(result, Trouble):
                    troubles += 1
                    self._refuse_endless(troubles, result)
                    self._unhouse(groups[worker])
                elif result is None:
                    self._note_death(worker, live)
                else:
                    missing -= set(take(result))

    def _refuse_endless(self, troubles: int, trouble: Trouble) -> None:
        if isinstance(trouble.error, MemoryError):
            raise trouble.error
        if isinstance(trouble.error, BlockError):
            raise trouble.error.args[0]
        if troubles > MOST_TROUBLES:
            raise ClusterError(
                f"the cluster failed {troubles} times at one step, at last by {trouble.error!r}; go on from "
                "the checkpoint with resume=True"
            ) from trouble.error

    def _sums(self, parts: Sequence[Part]) -> list[TreeSum]:
        found = []
        for chain in range(len(parts[0].sums)):
            joined = TreeSum(self.n_blocks)
            for part in parts:
                joined.join(part.sums[chain])
            found.append(joined)
        return found

    # homes

    def _settle(self) -> dict[str, Worker]:
        """See that each shard has a home that lives and stands where the others are; return the workers."""
        troubles = 0
        while True:
            live = self._live()
            self._unhouse([n for n, home in self._homes.items() if home not in live], died=True)
            homeless = [n for n in range(len(self._shards)) if n not in self._homes]
            if not homeless:
                return live
            homes = self._new_homes(homeless, live)
            calls = {w: (_load_all, self._to_load(ns, live[w])) for w, ns in homes.items()}
            for worker, result in self._engine.run(calls):
                if isinstance(result, Trouble):
                    troubles += 1
                    self._refuse_endless(troubles, result)
                elif result is None:
                    for number in homes[worker]:
                        self._homes[number] = worker
                    self._note_death(worker, live)
                else:
                    self._homes.update(dict.fromkeys(result, worker))

    def _live(self) -> dict[str, Worker]:
        deadline = time.monotonic() + self._engine.patience
        while not (live := self._engine.workers()):
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"the cluster has had no workers that take work for {self._engine.patience:.0f} seconds; "
                    "start some, and go on from the checkpoint with resume=True"
                )
            time.sleep(0.2)
        return live

    def _new_homes(self, homeless: list[int], live: Mapping[str, Worker]) -> dict[str, list[int]]:
        homes: dict[str, list[int]] = defaultdict(list)
        if len(homeless) == len(self._shards):  # neighbours go together
            for worker, numbers in zip(sorted(live), np.array_split(homeless, len(live))):
                homes[worker] += numbers.tolist()
            return {worker: numbers for worker, numbers in homes.items() if numbers}
        load_of = {w: sum(home == w for home in self._homes.values()) for w in live}
        for number in homeless:
            worker = min(load_of, key=lambda w: (load_of[w], w))
            load_of[worker] += 1
            homes[worker].append(number)
        return dict(homes)

    def _to_load(self, numbers: Sequence[int], worker: Worker) -> tuple[Any, ...]:
        shards = [(n, self._source(n), self._snapshots.get(n)) for n in numbers]
        return self._run, self._content, shards, list(self._orders), worker.n_threads

    def _source(self, number: int) -> bytes:
        blocks = self._shards[number]
        cut = getattr(self._blocks, "cut", None)
        some = cut(blocks) if cut else [self._blocks[i] for i in blocks]
        return messages.written(Source(some, blocks.start, blocks.stop, self.n_blocks))

    def _unhouse(self, numbers: Sequence[int], died: bool = False) -> None:
        now = time.monotonic()
        for number in numbers:
            home = self._homes.pop(number, None)
            if died and home is not None:
                self._deaths[number] = [t for t in self._deaths[number] if now - t < WITHIN] + [now]
                self._refuse_deadly(number)

    def _note_death(self, worker: str, live: Mapping[str, Worker]) -> None:
        self._limit = live[worker].memory_limit
        self._unhouse([n for n, home in self._homes.items() if home == worker], died=True)

    _limit = 0

    def _refuse_deadly(self, number: int) -> None:
        if len(self._deaths[number]) >= MOST_DEATHS:
            raise ClusterError(
                f"{MOST_DEATHS} workers died while they held {told_of(self._shards[number], self._blocks)} "
                f"(memory limit {self._limit / 1e9:.1f} GB); give workers more memory, and go on "
                "from the checkpoint with resume=True"
            )

    # snapshots

    def _take_snapshots(self) -> None:
        """Let go of the orders that are in the states, and give idle workers their share."""
        fresh = self._snapshots_of(self._store)
        for snapshot in self._snapshots.values():
            _remove(snapshot)
        self._snapshots, self._orders = fresh, []
        live = self._live()
        if set(live) - set(self._homes.values()) and len(self._homes) > len(
            set(self._homes.values())
        ):
            self._homes = {}

    def _snapshots_of(self, folder: Path | None) -> dict[int, Snapshot]:
        found: dict[int, Snapshot] = {}

        def call(numbers: list[int], worker: Worker) -> Any:
            return _snapshot_all, (self._run, numbers, self._version, folder)

        def take(result: bytes) -> Iterator[int]:
            for number, snapshot in messages.read(result):
                if isinstance(snapshot, Lost):
                    self._homes.pop(number, None)
                else:
                    found[number] = snapshot
                    yield number

        self._all_shards(call, take)
        return found

    def _all_arrays(self) -> list[Snapshot]:
        found = self._snapshots_of(None)
        return [found[number] for number in range(len(self._shards))]

    def _snapshot_kind(self) -> Any:
        return self._all_arrays()[0].kind


def told_of(shard: range, blocks: Sequence[Any]) -> str:
    """Say which rows a shard has."""
    parts = getattr(blocks, "parts", None) or []
    held = [
        n for n, part in enumerate(parts) if part.start < shard.stop and shard.start < part.stop
    ]
    of_what = f"parts {held[0]} to {held[-1]} of the corpus" if held else "the rows"
    return f"blocks {shard.start} to {shard.stop - 1} of {of_what}"


def _always(order: Order) -> Callable[[Sequence[int]], bytes]:
    """Return how an order is written that is the same for all shards."""
    content = messages.written(order)
    return lambda numbers: content


def _told(parts: Sequence[Part]) -> list[list[Any]]:
    return [[told for part in parts for told in part.told[c]] for c in range(len(parts[0].told))]


def _load_all(
    run: str, model: bytes, shards: Sequence[Any], orders: Sequence[bytes], n_threads: int
) -> list[int]:
    return [
        load(run, model, number, source, snapshot, orders, n_threads)
        for number, source, snapshot in shards
    ]


def _snapshot_all(run: str, numbers: Sequence[int], version: int, folder: Path | None) -> bytes:
    found = [(n, take_snapshot(run, n, version, folder)) for n in numbers]
    return messages.written(found)


def _remove(snapshot: Snapshot) -> None:
    if snapshot.path is not None:
        snapshot.path.unlink(missing_ok=True)
