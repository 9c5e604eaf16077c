"""Blocks of rows held in this process, with their states and the moments of what is told of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from polystick.inference.files import read_arrays, write_arrays
from polystick.inference.machine import give_back
from polystick.inference.moving import moved
from polystick.inference.protocols import Array, Look, Named, OrderedMap, Stepped
from polystick.inference.recorder import BlockMoments, Running, joined_moments
from polystick.inference.sums import TreeSum
from polystick.keys import Key

ROWS = "polystick-rows-"  # files of a checkpoint
_OFTEN = 512  # blocks between two times that their memory is given back


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


class Worked(NamedTuple):
    """What came of a step of a block."""

    state: Named
    statistics: Named
    culprit: NotFinite | None
    moments: BlockMoments
    told: object


# (method, prior and key of each chain, its states) -> new state and statistics, by chain and block
Lend: TypeAlias = Callable[
    [str, Sequence[Any], Sequence[Key], Sequence[Sequence[Any]]], list[list[tuple[Any, Any]]]
]


class HeldRows:
    """The blocks of rows and their states, one list of states for each chain."""

    def __init__(
        self,
        ordered_map: OrderedMap,
        model: Any,
        shards: Sequence[Any],
        n_chains: int,
        lend: Lend | None = None,
    ) -> None:
        """Hold rows here; whom they are lent to makes their steps."""
        self._map, self._model, self._shards, self._lend = ordered_map, model, shards, lend
        self._states: list[list[Any]] = [[None] * len(shards) for _ in range(n_chains)]
        self._moments = [[BlockMoments() for _ in shards] for _ in range(n_chains)]

    @property
    def n_blocks(self) -> int:
        return len(self._shards)

    def start(self, method: str, priors: Sequence[Any], keys: Sequence[Key] | None = None) -> None:
        """Give the rows of each chain their first states, method(prior, shard[, key])."""
        function = getattr(self._model, method)

        def work(job: tuple[int, int]) -> Any:
            chain, i = job
            more = () if keys is None else (keys[chain],)
            return function(priors[chain], self._shards[i], *more)

        self._keep_states(self._jobs(range(len(priors))), work)

    def step(
        self,
        method: str,
        priors: Sequence[Any],
        keys: Sequence[Key],
        blocks: Sequence[int] | None = None,
        look: Look | None = None,
    ) -> Stepped:
        """Give each block its new state; return the summed statistics of each chain, and what was seen.

        method : of the model, (prior, shard, state, key) -> (state, statistics)
        blocks : numbers of the blocks to step, in the order of the sums; the others stay. None: all
        look   : what to record of the new states
        """
        blocks = range(self.n_blocks) if blocks is None else blocks
        jobs = [(chain, i) for chain in range(len(priors)) for i in blocks]
        lent = None if self._lend is None else self._lend(method, priors, keys, self._states)

        def work(job: tuple[int, int]) -> Worked:
            chain, i = job
            shard, moments = self._shards[i], self._moments[chain][i]
            if lent is not None:
                return looked_at(self._model, shard, *lent[chain][i], look, moments)
            given = priors[chain], shard, self._states[chain][i], keys[chain]
            return worked(self._model, method, *given, look, moments)

        sums = [TreeSum(len(blocks)) for _ in priors]
        told: list[list[Any]] = [[] for _ in priors]
        for (chain, i), done in zip(jobs, self._map(work, jobs)):
            if done.culprit is not None:
                raise FloatingPointError(complaint(done.culprit, keys[chain], chain))
            self._states[chain][i], self._moments[chain][i] = done.state, done.moments
            sums[chain].add(done.statistics)
            told[chain].append(done.told)
        return Stepped([each.value for each in sums], told)

    def move(self, parameters: Sequence[Any], keys: Sequence[Key]) -> list[Any]:
        """Let the model move all rows of each chain at once; return the parameters that moved with them."""

        def move(chain: int) -> Any:
            given = parameters[chain], self._shards, self._states[chain], keys[chain]
            return moved(self._model, *given, self._map)

        found = list(self._map(move, range(len(keys))))
        self._states = [list(rows) for _, rows in found]
        return [each for each, _ in found]

    def describe(self, look: Callable[..., Any], last: bool = False) -> Iterator[Any]:
        """Map look(model, shard, state) over the blocks of the first chain; after the last look states go."""
        states = self._states[0]

        def work(i: int) -> Any:
            seen = look(self._model, self._shards[i], states[i])
            if last:
                states[i] = None
            return seen

        for number, seen in enumerate(self._map(work, range(self.n_blocks))):
            yield seen
            if last and number % _OFTEN == _OFTEN - 1:
                give_back()

    def moments(self) -> dict[str, Running]:
        """Return name -> moments of all rows, of what was recorded."""
        return joined_moments(self._moments)

    # files

    def save(self, folder: Path, sweep: int) -> dict[str, str]:
        """Write the states and moments, a file for each part of the data; return name -> checksum."""
        found = {}
        for part in parts_of(self._shards):
            name = f"{ROWS}{part.start}-{sweep}.npz"
            states = [chain[part.start : part.stop] for chain in self._states]
            moments = [chain[part.start : part.stop] for chain in self._moments]
            found[name] = write_arrays(folder / name, packed(states, moments))
        return found

    def load(self, folder: Path, files: Mapping[str, str]) -> None:
        """Undo `save`, for rows that have been started."""
        for name, checksum in files.items():
            first = int(name.removeprefix(ROWS).split("-")[0])
            arrays = read_arrays(folder / name, checksum)
            for chain, (states, moments) in enumerate(unpacked(arrays, type(self._states[0][0]))):
                self._states[chain][first : first + len(states)] = states
                self._moments[chain][first : first + len(states)] = moments

    # the work

    def _jobs(self, chains: Sequence[int]) -> list[tuple[int, int]]:
        return [(chain, i) for chain in chains for i in range(self.n_blocks)]

    def _keep_states(self, jobs: Sequence[tuple[int, int]], work: Callable[..., Any]) -> None:
        for (chain, i), state in zip(jobs, self._map(work, jobs)):
            self._states[chain][i] = state


def worked(
    model: Any,
    method: str,
    prior: Any,
    shard: Any,
    state: Any,
    key: Key,
    look: Look | None,
    moments: BlockMoments,
) -> Worked:
    """Make the step of a block."""
    state, statistics = getattr(model, method)(prior, shard, state, key)
    return looked_at(model, shard, state, statistics, look, moments)


def looked_at(
    model: Any,
    shard: Any,
    state: Any,
    statistics: Any,
    look: Look | None,
    moments: BlockMoments,
) -> Worked:
    """Look at what came of the step of a block."""
    culprit = find_not_finite(state, shard.rows)
    if look is None or culprit is not None:
        return Worked(state, statistics, culprit, moments, None)
    said, told = look(model, shard, state)
    return Worked(state, statistics, None, moments.add(said), told)


def complaint(culprit: NotFinite, key: Key, chain: int) -> str:
    return (
        f"{culprit.variable} of row {culprit.row} is not finite after sweep {key.sweep} of chain {chain}; "
        "look for a row with extreme counts, or try a stronger prior"
    )


def parts_of(shards: Sequence[Any]) -> Sequence[range]:
    """Return the numbers of the blocks of each part of the data: one, or those of a corpus in parts."""
    return getattr(shards, "parts", None) or [range(len(shards))]


def packed(
    states: Sequence[Sequence[Any]], moments: Sequence[Sequence[BlockMoments]]
) -> dict[str, Array]:
    """Return name -> array over all rows, of states and moments by chain and block."""
    arrays: dict[str, Array] = {}
    for chain, (blocks, recorded) in enumerate(zip(states, moments)):
        for name in blocks[0]._fields:
            _pack(arrays, f"chain{chain}.state.{name}", [getattr(each, name) for each in blocks])
        for name, first in recorded[0].running.items():
            where = f"chain{chain}.moments"
            arrays[f"{where}.n_added.{name}"] = np.asarray(first.n_added)
            for field in ("mean", "squares"):
                values = [getattr(each.running[name], field) for each in recorded]
                _pack(arrays, f"{where}.{field}.{name}", values)
    return arrays


def unpacked(arrays: Mapping[str, Array], kind: Any) -> list[tuple[list[Any], list[BlockMoments]]]:
    """Undo `packed`: (states, moments) of each chain, the former of this kind."""
    n_chains = len({name.partition(".")[0] for name in arrays if name.startswith("chain")})
    found = []
    for chain in range(n_chains):
        parts = [_unpack(arrays, f"chain{chain}.state.{name}") for name in kind._fields]
        states, where = [kind(*part) for part in zip(*parts)], f"chain{chain}.moments"
        moments: list[dict[str, Running]] = [{} for _ in states]
        for key in [key for key in arrays if key.startswith(f"{where}.n_added.")]:
            name = key.removeprefix(f"{where}.n_added.")
            means, squares = (_unpack(arrays, f"{where}.{f}.{name}") for f in ("mean", "squares"))
            for block, mean, square in zip(moments, means, squares):
                block[name] = Running(int(arrays[key]), mean, square)
        found.append((states, [BlockMoments(block) for block in moments]))
    return found


def _pack(arrays: dict[str, Array], name: str, blocks: Sequence[Array]) -> None:
    arrays[name] = np.concatenate(blocks)
    arrays[f"stops.{name}"] = np.cumsum([len(block) for block in blocks])


def _unpack(arrays: Mapping[str, Array], name: str) -> list[Array]:
    return list(map(np.ascontiguousarray, np.split(arrays[name], arrays[f"stops.{name}"][:-1])))


__all__ = [
    "ROWS",
    "HeldRows",
    "NotFinite",
    "Worked",
    "complaint",
    "find_not_finite",
    "packed",
    "parts_of",
    "unpacked",
    "worked",
]
