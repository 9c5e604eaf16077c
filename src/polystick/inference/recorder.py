"""What is kept of a run: draws while they fit in memory, running moments and thinned draws of the rest."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from polystick.inference.diagnostics import rhat_of_moments
from polystick.inference.files import CheckpointError
from polystick.inference.protocols import Array

WATCHED = "watched."  # what is recorded only to be diagnosed


class Running(NamedTuple):
    """Mean and sum of squared deviations of each chain so far (Welford 1962), (chain, ...)."""

    n_added: int
    mean: Array
    squares: Array

    def add(self, value: Array) -> "Running":
        n = self.n_added + 1
        change = value - self.mean
        mean = self.mean + change / n
        return Running(n, mean, self.squares + change * (value - mean))

    def moments(self, chain: int | None = None) -> tuple[Array, Array]:
        """Return mean and standard deviation of a chain, or of all of them together."""
        if chain is not None:
            return self.mean[chain], np.sqrt(self.squares[chain] / max(1, self.n_added - 1))
        mean = self.mean.mean(axis=0)
        between = self.n_added * np.square(self.mean - mean).sum(axis=0)
        n = self.n_added * len(self.mean)
        return mean, np.sqrt((self.squares.sum(axis=0) + between) / max(1, n - 1))

    def rhat(self) -> Array:
        """Return the R-hat of each entry; NaN for less than two chains of two draws."""
        if len(self.mean) < 2 or self.n_added < 2:
            return np.full(self.mean.shape[1:], np.nan)
        return rhat_of_moments(self.mean, self.squares / (self.n_added - 1), self.n_added)


def nothing_yet(value: Array) -> Running:
    """Return the empty moments of values (chain, ...) like this one."""
    zeros = np.zeros_like(value, dtype=np.float64)
    return Running(0, zeros, zeros)


class Recorder:
    """Draws by name, as (chain, draw, ...).

    A variable whose draws would need more than `max_bytes` keeps every m-th draw and running moments.
    """

    def __init__(self, n_planned: int, max_bytes: int) -> None:
        self.n_planned = n_planned
        self.max_bytes = max_bytes
        self.strides: dict[str, int] = {}
        self.running: dict[str, Running] = {}
        self._draws: dict[str, list[Array]] = {}
        self._saved: dict[str, int] = {}
        self.n_added = 0

    def add(self, values: Mapping[str, Array]) -> None:
        """Keep one draw of each variable, given as name -> array (chain, ...)."""
        for name, value in values.items():
            if name not in self.strides:
                self.strides[name] = self._stride(name, value)
            stride = self.strides[name]
            if self.n_added % stride == 0:
                self._draws.setdefault(name, []).append(value)
            if stride > 1:
                self._add_to_running(name, value)
        self.n_added += 1

    def draws(self) -> dict[str, Array]:
        """Return name -> (chain, draw, ...)."""
        return {name: np.stack(parts, axis=1) for name, parts in self._draws.items()}

    def unsaved(self) -> dict[str, Array]:
        """Return the draws since `mark_saved`, for a checkpoint."""
        fresh = {name: parts[self._saved.get(name, 0) :] for name, parts in self._draws.items()}
        return {name: np.stack(parts, axis=1) for name, parts in fresh.items() if parts}

    def mark_saved(self) -> None:
        self._saved = {name: len(parts) for name, parts in self._draws.items()}

    def state(self) -> dict[str, Array]:
        """Return what `restore` needs besides the draws."""
        arrays: dict[str, Array] = {"n_added": np.asarray(self.n_added)}
        for name, stride in self.strides.items():
            arrays[f"stride.{name}"] = np.asarray(stride)
        for name, running in self.running.items():
            for field, value in running._asdict().items():
                arrays[f"running.{field}.{name}"] = np.asarray(value)
        return arrays

    def restore(self, arrays: Mapping[str, Array], chunks: Sequence[Mapping[str, Array]]) -> None:
        """Undo `state` and `unsaved`."""
        self.n_added = int(arrays["n_added"])
        names = [key.partition(".")[2] for key in arrays if key.startswith("stride.")]
        for name in names:
            self.strides[name] = int(arrays[f"stride.{name}"])
            if self.strides[name] > 1:
                parts = [arrays[f"running.{field}.{name}"] for field in Running._fields]
                self.running[name] = Running(int(parts[0]), parts[1], parts[2])
        for chunk in chunks:
            for name, value in chunk.items():
                self._draws.setdefault(name, []).extend(np.moveaxis(value, 1, 0))
        self.mark_saved()
        self._check_plan()

    def _check_plan(self) -> None:
        """Raise if what was kept does not suit what is asked for now."""
        if self.n_added > self.n_planned:
            raise CheckpointError(
                f"the checkpoint holds {self.n_added} draws of each chain; got n_draws={self.n_planned}; "
                "ask for at least as many"
            )
        for name, parts in self._draws.items():
            if parts and self._stride(name, parts[0]) > self.strides[name]:
                raise CheckpointError(
                    f"draws of {name} would have to be thinned in so long a run, but the checkpoint has "
                    "all of them; raise max_bytes"
                )

    def _stride(self, name: str, value: Array) -> int:
        """Return a power of two, so that draws of different variables can be paired."""
        if value.ndim == 1 or not value.size or name.startswith(WATCHED):  # little, or nothing
            return 1
        planned = self.n_planned * value.nbytes
        return 1 << max(0, math.ceil(math.log2(planned / self.max_bytes)))

    def _add_to_running(self, name: str, value: Array) -> None:
        self.running[name] = self.running.get(name, nothing_yet(value)).add(value)


class BlockMoments(NamedTuple):
    """Moments of what is told of the rows of a block, in one chain: name -> Running (rows, ...)."""

    running: Mapping[str, Running] = {}

    def add(self, said: Mapping[str, Array]) -> "BlockMoments":
        """Return them with one more draw, name -> array (rows, ...)."""
        fresh = {name: self.running.get(name) or nothing_yet(value) for name, value in said.items()}
        return BlockMoments({name: fresh[name].add(value) for name, value in said.items()})


def joined_moments(chains: Sequence[Sequence[BlockMoments]]) -> dict[str, Running]:
    """Return name -> Running (chain, rows, ...) from the moments of the blocks of each chain."""
    return {
        name: Running(
            first.n_added,
            _stacked([[block.running[name].mean for block in blocks] for blocks in chains]),
            _stacked([[block.running[name].squares for block in blocks] for blocks in chains]),
        )
        for name, first in chains[0][0].running.items()
    }


def _stacked(chains: Sequence[Sequence[Array]]) -> Array:
    """Return arrays of blocks as one over chains and rows, written once."""
    first, n_rows = chains[0][0], sum(map(len, chains[0]))
    whole = np.empty((len(chains), n_rows, *first.shape[1:]))
    for chain, blocks in zip(whole, chains):
        np.concatenate(blocks, out=chain)
    return whole


def named_moments(running: Mapping[str, Running], chain: int | None = None) -> dict[str, Array]:
    """Return name -> Running as name_mean and name_sd, of a chain or of all of them."""
    found = {name: each.moments(chain) for name, each in running.items()}
    return {
        f"{name}_{what}": value
        for name, moments in found.items()
        for what, value in zip(("mean", "sd"), moments)
    }


def posterior_groups(
    recorder: Recorder, row_moments: Mapping[str, Array], chain: int | None = None
) -> dict[str, dict[str, Array]]:
    """Sort what was recorded into the groups of a `Posterior`.

    chain : the one that running moments speak of; None: all
    """
    draws, strides = recorder.draws(), recorder.strides
    groups: dict[str, dict[str, Array]] = {"posterior": {}, "thinned": {}, "watched": {}}
    for name, value in draws.items():
        if name.startswith(WATCHED):
            groups["watched"][name.removeprefix(WATCHED)] = value
        elif name != "log_likelihood":
            groups["posterior" if strides[name] == 1 else "thinned"][name] = value
    groups["running"] = {**named_moments(recorder.running, chain), **row_moments}
    return {name: group for name, group in groups.items() if group}


def thinned_axes(recorder: Recorder) -> dict[str, Array]:
    """Return the numbers of the draws that were kept of each thinned variable, by axis."""
    return {
        f"draw_of_{name}": stride * np.arange(-(-recorder.n_added // stride))
        for name, stride in recorder.strides.items()
        if stride > 1
    }
