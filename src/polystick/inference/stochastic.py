"""Stochastic variational inference (Hoffman et al. 2013): steps on batches, in natural parameters.

A step maps the rows of one batch, makes their statistics stand for all rows, and goes a part of the way,
the rate, to the factor that those would give. The rates shrink so that the steps settle. With all rows in
the batch and rate 1 it is mean field. `protocols.BatchModel` is what is asked of a model.
"""

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic

import numpy as np

from polystick.inference.execution import Serial, one_blas_thread
from polystick.inference.factors import Ascent, ascend, build_posterior, hold_rows, take_step
from polystick.inference.posterior import Posterior
from polystick.inference.progress import Show
from polystick.inference.protocols import (
    BatchModel,
    Execution,
    F,
    L,
    P,
    R,
    S,
    T,
    check_model,
)
from polystick.keys import Key
from polystick.validation import check_integer, check_positive

_LARGEST_BLOCK = 64  # small blocks mix well and keep threads busy within a batch


@dataclass(frozen=True)
class StochasticVI:
    """Approximate the posterior as `MeanField` does, from batches: for corpora too large for sweeps.

    Parameters
    ----------
    batch_size : int
        Rows for one step, about: all batches of a pass are made equally large.
    delay, forgetting : float
        The t-th step has rate (t + delay) ** -forgetting. A larger delay slows the first steps down;
        forgetting is above 0.5 and at most 1, and larger values settle sooner.
    n_passes : int
        Times to go through all rows, in a fresh order each time.
    n_draws, max_bytes
        As in `MeanField`.
    """

    batch_size: int = 256
    delay: float = 10.0
    forgetting: float = 0.7
    n_passes: int = 10
    n_draws: int | None = None
    max_bytes: int = 2**30

    needs_whole_counts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in ("batch_size", "n_passes", "max_bytes"):
            check_integer(name, getattr(self, name), at_least=1)
        if self.n_draws is not None:
            check_integer("n_draws", self.n_draws, at_least=1)
        _check_rate(self.delay, self.forgetting)

    @property
    def rows_per_block(self) -> int:
        """Rows in the blocks to be cut: a batch is a whole number of them."""
        return -(-self.batch_size // -(-self.batch_size // _LARGEST_BLOCK))

    def rate(self, step: int) -> float:
        """Return how far the step goes; the first is 1."""
        return float((step + self.delay) ** -self.forgetting)

    def run(
        self,
        model: BatchModel[S, P, L, R, T, F],
        shards: Sequence[S],
        *,
        seed: int,
        execution: Execution | None = None,
        progress: Show = False,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        every: float = 60.0,
        coords: Mapping[str, Any] | None = None,
    ) -> Posterior:
        """Go through the rows and return a `Posterior`.

        Blocks of `rows_per_block` rows, drawn together, should be alike: shuffle rows before they are cut.
        """
        check_model(model, "StochasticVI")
        with execution or Serial() as mapping, one_blas_thread():
            run = _Run(self, model, shards, seed, mapping)
            ascend(run, run.n_steps, progress, checkpoint, resume, every, coords)
            run.settle_rows()
            return run.posterior(coords)

    def start(
        self,
        model: BatchModel[S, P, L, R, T, F],
        shards: Sequence[S],
        *,
        seed: int,
        corpus_size: int,
    ) -> "Stream[S, P, L, R, T, F]":
        """Return a `Stream` whose factor starts from a first batch, which it has not absorbed yet."""
        check_model(model, "StochasticVI")
        check_integer("corpus_size", corpus_size, at_least=1)
        with one_blas_thread():
            factor = model.initial_factor(shards, Key(seed))
        return Stream(self, model, factor, seed, corpus_size)


class _Run(Ascent[S, P, L, R, T, F, StochasticVI]):
    inference = "stochastic"

    def __init__(
        self,
        settings: StochasticVI,
        model: BatchModel[S, P, L, R, T, F],
        shards: Sequence[S],
        seed: int,
        execution: Execution,
    ) -> None:
        super().__init__(settings, model, shards, seed, execution)
        wanted = max(1, round(self.n_rows / settings.batch_size))
        self.n_batches = min(len(shards), wanted)
        self.n_steps = settings.n_passes * self.n_batches

    def advance(self) -> None:
        blocks = self.batch(self.sweep)
        n_rows = sum(self.n_rows_of[i] for i in blocks)
        step = self.sweep + 1
        self.factor, bound = take_step(
            self.model,
            self.factor,
            self.held,
            Key(self.seed, step),
            blocks,
            scale=self.n_rows / n_rows,
            rate=self.settings.rate(step),
        )
        self.elbo.append(bound)
        self.sweep = step

    def batch(self, n_before: int) -> list[int]:
        """Return the numbers of the blocks for the step after `n_before` others."""
        number, place = divmod(n_before, self.n_batches)
        order = Key(self.seed, number).generator("order").permutation(self.held.n_blocks)
        return sorted(np.array_split(order, self.n_batches)[place].tolist())

    def finished(self) -> bool:
        return self.sweep >= self.n_steps

    def identity(self) -> dict[str, object]:
        names = ("batch_size", "delay", "forgetting")
        return super().identity() | {name: getattr(self.settings, name) for name in names}

    def settle_rows(self) -> None:
        """Bring the rows, some of them a pass old or never seen, to the last factor."""
        prior, key = self.model.expect(self.factor), Key(self.seed, self.sweep + 1)
        (statistics,) = self.held.step("update_rows", [prior], [key]).statistics
        self.bound = float(self.model.elbo(self.factor, statistics))

    def attrs(self) -> dict[str, object]:
        return {"elbo": self.bound}


class Stream(Generic[S, P, L, R, T, F]):
    """A factor that learns from batches as they come and keeps none of them."""

    def __init__(
        self,
        settings: StochasticVI,
        model: BatchModel[S, P, L, R, T, F],
        factor: F,
        seed: int,
        corpus_size: int,
    ) -> None:
        self.settings, self.model, self.factor, self.seed = settings, model, factor, seed
        self.corpus_size = corpus_size
        self.elbo: list[float] = []

    @property
    def n_steps(self) -> int:
        return len(self.elbo)

    def absorb(self, shards: Sequence[S], execution: Execution | None = None) -> None:
        """Make one step on a batch that stands for the corpus."""
        n_rows, step = sum(len(shard.rows) for shard in shards), self.n_steps + 1
        if n_rows > self.corpus_size:
            raise ValueError(
                f"corpus_size must be the number of rows of the whole corpus; got {self.corpus_size}, "
                f"and a batch of {n_rows} rows"
            )
        with execution or Serial() as mapping, one_blas_thread():
            self.factor, bound = take_step(
                self.model,
                self.factor,
                hold_rows(self.model, self.factor, shards, mapping),
                Key(self.seed, step),
                scale=self.corpus_size / n_rows,
                rate=self.settings.rate(step),
            )
        self.elbo.append(bound)

    def posterior(self, coords: Mapping[str, Any] | None = None) -> Posterior:
        """Return draws from the factor as it stands, with the last batch's estimate of the bound."""
        attrs = {"inference": "stochastic", "n_sweeps": self.n_steps, "seed": str(self.seed)}
        bound = {"elbo": float(self.elbo[-1]) if self.elbo else np.nan}
        with one_blas_thread():
            return build_posterior(self, {**attrs, **bound}, coords)


def _check_rate(delay: object, forgetting: float) -> None:
    if isinstance(delay, bool) or not isinstance(delay, numbers.Real):
        raise TypeError(f"delay must be a number; got {delay!r}")
    if not 0 <= float(delay) < np.inf:
        raise ValueError(f"delay must be finite and at least 0; got {delay}")
    check_positive("forgetting", forgetting)
    if not 0.5 < forgetting <= 1:
        raise ValueError(
            f"forgetting must be above 0.5, so that the steps settle, and at most 1, so that they get "
            f"anywhere; got {forgetting}"
        )
