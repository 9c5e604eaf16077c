"""Documents under given topics, whose shares have a logistic-normal law of their own::

mean, cov ~ law                                population.SparseFactors
psi_d     ~ N(mean, cov)                       d = 1..n, one entry for each topic
topic     ~ Categorical(softmax(psi_d))        for each token of document d
word      ~ Categorical(topics_topic)

Topics come from the posterior of another model, a few states of it one after another, and learn nothing
here: what is drawn has a *cut* posterior. Given the topics of the tokens it is `SoftmaxCounts`.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from polystick.models import softmax_counts
from polystick.models.folding import Foldable
from polystick.models.multinomial import Rows as RowsOfCounts
from polystick.models.softmax_counts import SoftmaxCounts
from polystick.models.topic_words import draw_topics

__all__ = ["GivenTopics"]


class Rows(NamedTuple):
    """Where each document of a chain stands."""

    psi: np.ndarray  # (n, T)
    counts: np.ndarray  # (n, T) tokens of each topic


@dataclass(frozen=True)
class GivenTopics:
    """The model: the law of the shares, and where topics come from.

    Parameters
    ----------
    shares : SoftmaxCounts
    topic_model : Foldable
        It says which row of `topics` each word of a document is.
    states : tuple of priors of that model
        Each has `topics` (V, padded T) and `sizes` (T,).
    n_first, n_each : int
        Sweeps under the first state, and under each of the others; the last holds on.
    """

    shares: SoftmaxCounts
    topic_model: Foldable
    states: tuple
    n_first: int
    n_each: int

    dims: ClassVar = SoftmaxCounts.dims
    identified: ClassVar = ("cov",)

    @property
    def parameter_type(self):
        return self.shares.parameter_type

    def state_at(self, sweep):
        """Return the topics that a sweep is given."""
        return self.states[min(max(0, sweep - self.n_first) // self.n_each, len(self.states) - 1)]

    # simulate

    def simulate(self, n_tokens, rng, sweep=0):
        """Draw (parameters, rows, counts of words) from the joint law, for documents of n_tokens (n,)."""
        parameters, rows, counts = self.shares.simulate(n_tokens, rng)
        return parameters, Rows(rows.psi, counts), self.simulate_words(counts, rng, sweep)

    def simulate_words(self, counts, rng, sweep=0):
        """Draw counts of words (n, V) given how many tokens of each topic documents have (n, T)."""
        state = self.state_at(sweep)
        topics = state.topics[:, : len(state.sizes)].T.astype(np.float64)
        topics /= topics.sum(axis=1, keepdims=True)
        return sum(rng.multinomial(n, words) for n, words in zip(counts.T, topics))

    # Gibbs

    def initial_parameters(self, shards, key):
        return self.shares.initial_parameters(shards, key)

    def prepare(self, parameters):
        return self.shares.prepare(parameters)

    def initial_rows(self, prior, shard, key):
        """Start from topics that are as likely as each other."""
        counts = self._draw_counts(shard, np.zeros((len(shard.rows), self.shares.n_dims)), key)
        return Rows(self.shares.initial_rows(prior, _as_table(shard, counts), key).psi, counts)

    def move_together(self, parameters, shards, rows, key, ordered_map=map):
        """Move topics of all documents with their part of the law, given the topics of tokens."""
        tables = [_as_table(shard, part.counts) for shard, part in zip(shards, rows)]
        plain = [RowsOfCounts(part.psi) for part in rows]
        parameters, moved = self.shares.move_together(parameters, tables, plain, key, ordered_map)
        return parameters, [part._replace(psi=new.psi) for part, new in zip(rows, moved)]

    def draw_rows(self, prior, shard, rows, key):
        """Topics of tokens | psi, words; then psi | topics of tokens."""
        counts = self._draw_counts(shard, rows.psi, key)
        table = _as_table(shard, counts)
        drawn, statistics = self.shares.draw_rows(prior, table, RowsOfCounts(rows.psi), key)
        return Rows(drawn.psi, counts), statistics

    def _draw_counts(self, shard, psi, key):
        state, cells = self.state_at(key.sweep), self.topic_model.word_ids(shard)
        weights, n_tokens = self.shares.probabilities(psi) / state.sizes, int(shard.totals.sum())
        return draw_topics(shard, cells, weights, state.topics, n_tokens, key)[0]

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        return self.shares.draw_parameters(parameters, statistics, key, ordered_map)

    def log_likelihood(self, statistics):
        return self.shares.log_likelihood(statistics)

    def describe_parameters(self, parameters):
        return self.shares.describe_parameters(parameters)

    def describe_rows(self, shard, rows):
        return {}


def _as_table(shard, counts):
    """Return documents as rows of a table of topics."""
    return softmax_counts.Shard(shard.rows, counts, counts.sum(axis=1), 0.0)
