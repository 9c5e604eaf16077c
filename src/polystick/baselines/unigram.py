"""Tokens or counts without any order: what every model of sequences has to beat::

pi      ~ Dirichlet(concentration)      of all sequences
x_t     ~ Multinomial(N_t, pi)

Given the counts of the fit pi is Dirichlet too, and nothing has to be drawn. Like other parameters it is not
learned from sequences that come later.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from polystick.models import sequence_blocks
from polystick.models.sequence_filter import SequenceFilter


@dataclass(frozen=True, eq=False)
class Unigram:
    """The law of pi, whose predictor is itself: it has no other parameters."""

    concentration: np.ndarray  # (K,) with the counts of the fit

    def shards(self, sequences, size=sequence_blocks.STEPS_PER_BLOCK):
        """Cut sequences of tokens (-1: missing) or of count rows (empty: missing) into blocks."""
        return sequence_blocks.cut(sequences, size)

    def predictor(self, described):
        return self

    @property
    def expected(self):
        """E[pi], (K,)."""
        return self.concentration / self.concentration.sum()

    def filter(self, shard, key, *, show=(), before=None, keeps=False):
        steps = np.repeat(np.arange(shard.n_steps), np.diff(shard.offsets))
        values = self.log_evidence(steps, shard.categories, shard.counts, shard.n_steps)
        pi = np.tile(self.expected, (shard.n_steps, 1)) if "predicted" in show else None
        if "current" not in show:
            return SequenceFilter(values, pi, None, None, None, shard.rows)
        none = np.empty((shard.n_steps, 0))
        return SequenceFilter(values, pi, self._current(shard, steps), none, none, shard.rows)

    def _current(self, shard, steps):
        """Return E[pi | x_t], (steps, K)."""
        table = np.tile(self.concentration, (shard.n_steps, 1))
        np.add.at(table, (steps, shard.categories), shard.counts)
        return table / table.sum(axis=1, keepdims=True)

    def log_evidence(self, groups, categories, counts, n_groups):
        """Return the log of E[prod_k pi_k^x_k], (n_groups,), of the counts in each group of cells.

        No category may come twice in a group.
        """
        a = self.concentration
        cells = gammaln(a[categories] + counts) - gammaln(a[categories])
        totals = np.bincount(groups, counts, minlength=n_groups)
        whole = gammaln(a.sum() + totals) - gammaln(a.sum())
        return np.bincount(groups, cells, minlength=n_groups) - whole

    def forecast(self, after, n_steps, key, n_paths, inputs: Any = None):
        """Draw pi for each path, the same at all steps; `after` are the rows' ids."""
        seeds = [key.generator(f"forecast {row}") for row in after]
        pi = np.stack([rng.dirichlet(self.concentration, n_paths) for rng in seeds], axis=1)
        return np.repeat(pi[:, :, None], n_steps, axis=2)

    def simulate(self, totals, rng, inputs: Any = None):
        pi = rng.dirichlet(self.concentration)
        return [rng.multinomial(total, pi) for total in totals]
