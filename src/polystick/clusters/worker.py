"""What runs at the workers: shards of neighbouring blocks with their states, by run and number.

A shard is a function of where it started, or of a snapshot, and of the orders since. So a worker that dies
costs the replay of its shards, by others, and nobody else goes back. An order that doesn't follow on what a
shard has carried out finds it lost, and it is sent anew.
"""

import hashlib
import importlib.metadata
import platform
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polystick.clusters import messages
from polystick.inference.execution import Serial, Threads, one_blas_thread
from polystick.inference.files import read_arrays, write_arrays
from polystick.inference.held import complaint, packed, unpacked, worked
from polystick.inference.protocols import Array
from polystick.inference.recorder import BlockMoments
from polystick.inference.sums import TreeSum
from polystick.keys import Key

__all__ = [
    "BlockError",
    "Host",
    "Lost",
    "Order",
    "Part",
    "Snapshot",
    "Source",
    "forget",
    "host",
    "load",
    "obey",
    "sees",
]


class Order(NamedTuple):
    """What all shards do; each order has a number, and follows on the one before."""

    kind: str  # start, step, follow: they change states; weigh, describe, lend: they do not
    method: str
    priors: Sequence[Any]  # of each chain; None: not this chain
    keys: Sequence[Key] | None = None
    look: Callable[..., Any] | None = None
    lent: Sequence[Mapping[int, Any]] = ()  # states by chain and block, of rows held elsewhere


class Source(NamedTuple):
    """Where the blocks of a shard come from."""

    blocks: Sequence[Any]
    first: int  # among all blocks
    stop: int
    n_blocks: int  # in all


class Snapshot(NamedTuple):
    """Where a shard stood after an order: arrays, or the file that has them."""

    version: int
    kind: type  # of the states
    arrays: Mapping[str, Array] = {}
    path: Path | None = None
    checksum: str = ""


class Lost(NamedTuple):
    """A shard that is not here, or not where the order needs it."""

    number: int


class Failed(NamedTuple):
    """What was raised in a block of a chain."""

    chain: int
    block: int
    error: Exception


class BlockError(Exception):
    """What was raised in a block while orders were carried out again."""


class Part(NamedTuple):
    """What neighbouring shards answer."""

    numbers: tuple[int, ...]
    sums: list[TreeSum]
    told: list[list[Any]]
    failed: Failed | None = None  # the first


class Host(NamedTuple):
    """What must be alike on all hosts."""

    name: str
    versions: dict[str, str]
    bits: str


class _Shard:
    """Neighbouring blocks and their states."""

    def __init__(self, model: Any, source: Source) -> None:
        self.model, self.source = model, source
        self.version = -1
        self.states: list[list[Any]] = []
        self.moments: list[list[BlockMoments]] = []

    def __len__(self) -> int:
        return self.source.stop - self.source.first

    def block(self, i: int) -> Any:
        return self.source.blocks[i]

    def restore(self, snapshot: Snapshot) -> None:
        if snapshot.path is not None:
            arrays = read_arrays(snapshot.path, snapshot.checksum)
        else:
            arrays = {name: np.array(value) for name, value in snapshot.arrays.items()}
        found = unpacked(arrays, snapshot.kind)
        self.states = [list(states) for states, _ in found]
        self.moments = [list(moments) for _, moments in found]
        self.version = snapshot.version

    def carry_out(self, order: Order, execution: Any) -> Part:
        """Carry out an order; a failure is part of the answer."""
        sums = [TreeSum(self.source.n_blocks, self.source.first) for _ in order.priors]
        told: list[list[Any]] = [[] for _ in order.priors]
        if order.kind == "start":
            self.states = [[None] * len(self) for _ in order.priors]
            self.moments = [[BlockMoments() for _ in range(len(self))] for _ in order.priors]
        chains = [c for c, prior in enumerate(order.priors) if prior is not None]
        jobs = [(chain, i) for chain in chains for i in range(len(self))]

        def work(job: tuple[int, int]) -> Any:
            try:
                return getattr(self, f"_{order.kind}")(order, *job)
            except Exception as error:
                return _Failure(error)

        for (chain, i), done in zip(jobs, execution.map(work, jobs)):
            if isinstance(done, _Failure):
                return Part((), sums, told, Failed(chain, self.source.first + i, done.error))
            self._keep(order, chain, i, done, sums, told)
        return Part((), sums, told)

    def _keep(
        self, order: Order, chain: int, i: int, done: Any, sums: list[TreeSum], told: list[Any]
    ) -> None:
        if order.kind in ("start", "follow"):
            self.states[chain][i] = done
        elif order.kind == "step":
            self.states[chain][i], self.moments[chain][i] = done.state, done.moments
            sums[chain].add(done.statistics)
            told[chain].append(done.told)
        elif order.kind == "weigh":
            sums[chain].add(done)
        else:
            told[chain].append(done)

    # the kinds of orders, block by block

    def _start(self, order: Order, chain: int, i: int) -> Any:
        more = () if order.keys is None else (order.keys[chain],)
        return getattr(self.model, order.method)(order.priors[chain], self.block(i), *more)

    def _step(self, order: Order, chain: int, i: int) -> Any:
        assert order.keys is not None
        key = order.keys[chain]
        given = self.block(i), self.states[chain][i], key, order.look, self.moments[chain][i]
        done = worked(self.model, order.method, order.priors[chain], *given)
        if done.culprit is not None:
            raise FloatingPointError(complaint(done.culprit, key, chain))
        return done

    def _follow(self, order: Order, chain: int, i: int) -> Any:
        return getattr(self.model, order.method)(
            order.priors[chain], self.block(i), self.states[chain][i]
        )

    _weigh = _follow

    def _describe(self, order: Order, chain: int, i: int) -> Any:
        assert order.look is not None
        return order.look(self.model, self.block(i), self.states[chain][i])

    def _lend(self, order: Order, chain: int, i: int) -> Any:
        assert order.keys is not None
        state = order.lent[chain][self.source.first + i]
        given = order.priors[chain], self.block(i), state, order.keys[chain]
        return getattr(self.model, order.method)(*given)

    def pack(self) -> tuple[Any, dict[str, Any]]:
        return type(self.states[0][0]), packed(self.states, self.moments)


class _Failure(NamedTuple):
    error: Exception


_RUNS: dict[str, dict[int, _Shard]] = {}
_ONE_AT_A_TIME = threading.Lock()
_CHANGING = ("start", "step", "follow")


def load(
    run: str,
    model: bytes,
    number: int,
    source: bytes,
    snapshot: Snapshot | None,
    orders: Sequence[bytes],
    n_threads: int,
) -> int:
    """Take a shard in, and bring it to where the others are by the orders since its start or snapshot."""
    with _ONE_AT_A_TIME:
        shard = _Shard(messages.read(model), messages.read(source))
        if snapshot is not None:
            shard.restore(snapshot)
        with _threads(n_threads) as execution, one_blas_thread():
            for order in orders:
                part = shard.carry_out(messages.read(order), execution)
                if part.failed is not None:
                    raise BlockError(part.failed.error)
                shard.version += 1
        _RUNS.setdefault(run, {})[number] = shard
        return number


def obey(run: str, numbers: Sequence[int], version: int, content: bytes, n_threads: int) -> bytes:
    """Let shards carry out an order that follows on the order `version`; return their answers, written."""
    order: Order = messages.read(content)
    found: list[Part | Lost] = []
    with _ONE_AT_A_TIME, _threads(n_threads) as execution, one_blas_thread():
        held = _RUNS.get(run, {})
        for number in numbers:
            shard = held.get(number)
            if shard is None or shard.version != version:
                found.append(Lost(number))
                continue
            if order.kind in _CHANGING:
                del held[number]  # if this breaks off, it is lost
            part = shard.carry_out(order, execution)._replace(numbers=(number,))
            if order.kind in _CHANGING and part.failed is None:
                shard.version += 1
                held[number] = shard
            found.append(part)
    return messages.written(_joined(found))


def take_snapshot(run: str, number: int, version: int, folder: Path | None) -> Snapshot | Lost:
    """Return where a shard stands; with a folder, write it there."""
    with _ONE_AT_A_TIME:
        shard = _RUNS.get(run, {}).get(number)
        if shard is None or shard.version != version:
            return Lost(number)
        kind, arrays = shard.pack()
        if folder is None:
            return Snapshot(version, kind, arrays)
        path = folder / f"polystick-shard-{run}-{number}-{version}.npz"
        return Snapshot(version, kind, {}, path, write_arrays(path, arrays))


def _joined(found: Sequence[Part | Lost]) -> list[Part | Lost]:
    """Join the answers of neighbours."""
    joined: list[Part | Lost] = []
    for each in found:
        last = joined[-1] if joined else None
        if isinstance(each, Lost) or not isinstance(last, Part) or not _go_together(last, each):
            joined.append(each)
            continue
        for left, right in zip(last.sums, each.sums):
            left.join(right)
        told = [[*left, *right] for left, right in zip(last.told, each.told)]
        joined[-1] = Part((*last.numbers, *each.numbers), last.sums, told)
    return joined


def _go_together(left: Part, right: Part) -> bool:
    fine = left.failed is None and right.failed is None
    return fine and left.numbers[-1] + 1 == right.numbers[0]


def forget(run: str) -> None:
    """Let a run go."""
    with _ONE_AT_A_TIME:
        _RUNS.pop(run, None)


def host() -> Host:
    """Return what must be alike on all hosts, with the hash of fixed numbers that were computed here."""
    versions = {
        **{name: importlib.metadata.version(name) for name in ("polystick", "numba", "numpy")},
        "python": ".".join(platform.python_version_tuple()[:2]),
    }
    with one_blas_thread():
        normals = Key(1, 2).normals("host", np.arange(300, dtype=np.uint64), 40)
        outer = normals.T @ normals
        told = [normals, outer, np.linalg.cholesky(outer), np.linalg.solve(outer, normals[0])]
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(each).tobytes() for each in told))
    return Host(platform.node(), versions, digest.hexdigest())


def sees(path: Path, content: str) -> bool:
    """Tell whether a file is seen here."""
    try:
        return path.read_text() == content
    except OSError:
        return False


def _threads(n_threads: int) -> Any:
    return Serial() if n_threads == 1 else Threads(n_threads)
