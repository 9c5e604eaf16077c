"""The variational half of topics: coordinate ascent (paper, appendix C).

The factors are q(topics) q(law of psi) prod_d q(psi_d) q(topics of tokens_d); what a link adds to them it
says itself. What parts have then is said by the `Factored` ones of `topic_parts`. What a law tells of its
factor is asked of a model's `approximation`: its own parts, or others that know cruder factors.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from polystick.kernels import assignments
from polystick.models import documents
from polystick.models.multinomial import RowFactors
from polystick.models.normal_points import standard_normal_points
from polystick.models.topic_parts import (
    Approximation,
    FactoredLink,
    FactoredShares,
    FactoredWords,
)
from polystick.models.topic_words import ExpectedWords
from polystick.models.topics import Statistics, TopicModel
from polystick.population.law import LawFactor


@dataclass(frozen=True, eq=False)
class TopicFactor:
    """The factors of the law of psi and of topics."""

    shares: LawFactor
    topics: np.ndarray  # (V, T)


class ExpectedPrior(NamedTuple):
    """What the local steps of a sweep share."""

    law: object  # of psi
    words: Callable[[np.ndarray], np.ndarray]  # from words to topics


@dataclass(frozen=True)
class VariationalTopicModel(TopicModel):
    """A topic model whose parts have a mean field: what `MeanField` and `StochasticVI` ask for."""

    words: FactoredWords
    shares: FactoredShares
    link: FactoredLink
    approximation: tuple[Approximation, Approximation]  # of shares, of words

    most_draws: ClassVar = 32  # topics are large, and tables and scores need no more

    def initial_factor(self, shards, key):
        """Start from collapsed LDA."""
        start = self.warm_start(shards, key)
        psi = self.psi_of(start)
        by = documents.n_rows(shards) / max(len(psi), 1)
        sums = self.shares.statistics(psi, {}).scaled(by)
        return TopicFactor(self.shares.factor(sums), self.words.factor(start.word_topics * by))

    def expect(self, factor):
        shares, words = self.approximation
        return ExpectedPrior(shares.expect(factor.shares), words.expect(factor.topics))

    def initial_row_factors(self, prior, shard):
        normal, n = self.shares.rows(prior.law, shard.given).normal, len(shard.rows)
        return RowFactors(np.tile(normal.mean, (n, 1)), np.tile(np.diag(normal.cov), (n, 1)))

    def update_rows(self, prior, shard, rows, key):
        """q(topics of tokens) and q(psi) in turns until they settle, then the former once more."""
        topics = prior.words(shard.vocabulary)
        law = self.shares.rows(prior.law, shard.given)
        rows, outer, of_psi = self.link.settle(law, shard, rows, partial(self._expect, topics))
        words = np.zeros_like(topics)
        _, value = self._expect_assignments(topics, shard, rows, words)
        return rows, Statistics(
            self.shares.expected_statistics(rows, outer, shard.given),
            ExpectedWords(self.words.n_words, shard.vocabulary, words),
            value + of_psi,
        )

    def _expect(self, topics, shard, rows):
        """Return the expected counts of topics in each document, (n, T)."""
        return self._expect_assignments(topics, shard, rows, topics[:0])[0]

    def _expect_assignments(self, topics, shard, rows, words):
        """Return these counts and the tokens' part of the bound; fill words unless they are empty."""
        log_weights = self.link.expected_log_shares(rows)
        top = log_weights.max(axis=1, keepdims=True)
        counts = np.empty(log_weights.shape)
        value = assignments.expect_assignments(
            shard.starts, shard.stops, shard.columns, shard.counts.astype(np.float64),
            np.exp(log_weights - top), topics, counts, words,
        )  # fmt: skip
        return counts, value + np.sum(shard.totals * top[:, 0])

    def update_factor(self, factor, statistics):
        shares = self.shares.factor(statistics.shares, factor.shares)
        return TopicFactor(shares, self.words.factor(statistics.words.table()))

    def elbo(self, factor, statistics):
        shares, words = self.approximation
        value = statistics.value - shares.divergence(factor.shares)
        return value - words.divergence(factor.topics)

    # stochastic

    def scale(self, statistics, by):
        shares, words, value = statistics
        return Statistics(shares.scaled(by), words.scaled(by), by * value)

    def blend(self, factor, other, rate):
        topics = (1.0 - rate) * factor.topics + rate * other.topics
        return TopicFactor(factor.shares.blend(other.shares, rate), topics)

    # what to record

    def draw_from_factor(self, factor, key):
        (shares, words), rng = self.approximation, key.generator("factor")
        fields = shares.draw_from(factor.shares, rng), words.draw_from(factor.topics, rng)
        return self.parameters(*fields, self.words.tokens(factor.topics))

    def draw_described_rows(self, prior, shard, rows, n_draws=64):
        """Draw from each q(psi_d), with the same points for each document."""
        topics = prior.words(shard.vocabulary)
        law = self.shares.rows(prior.law, shard.given)
        points = standard_normal_points(n_draws, self.link.n_dims)
        given = (law, shard, rows, points, partial(self._expect, topics))
        return {"proportions": self.link.draw_shares(*given)}


def assemble(words, shares, link):
    """Return the model of three parts, with a mean field where they have one."""
    if hasattr(words, "expect") and hasattr(shares, "expect") and hasattr(link, "settle"):
        return VariationalTopicModel(words, shares, link, (shares, words))
    return TopicModel(words, shares, link)
