"""The variational half of topics: coordinate ascent (paper, appendix C).

The factors are q(topics) q(law of psi) prod_d q(psi_d) q(topics of tokens_d); what a link adds to them it
says itself. Parts have a mean field where they have, besides what `topics` lists, words:

    factor(counts)                             -> the best factor given expected counts (V, T), an array
    expect(factor)                             -> with at(vocabulary) -> exp E log topics (u, T)
    divergence(factor)                         -> KL(factor || law)
    tokens(factor)                             -> how many tokens of each topic it has seen, (T,)
    draw_from(factor, rng)                     -> fields

shares:

    factor(statistics, old=None)               -> the best factor given what is expected of psi
    expect(factor)                             -> law, for `rows`
    expected_statistics(row factors, outer, given) -> statistics
    divergence(factor), draw_from(factor, rng)    as words

and links:

    expected_log_shares(row factors)           -> (n, T), but for a number that topics have in common
    settle(block, shard, row factors, expect)  -> row factors, expected sum of psi psi', part of the bound
    draw_shares(block, shard, row factors, points, expect) -> shares (s, n, T)
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from polystick.kernels import assignments
from polystick.models.multinomial import standard_normal_points
from polystick.models.topic_shares import RowFactors
from polystick.models.topic_words import ExpectedWords
from polystick.models.topics import Statistics, TopicModel


@dataclass(frozen=True, eq=False)
class TopicFactor:
    """The factors of the law of psi and of topics."""

    shares: Any
    topics: np.ndarray  # (V, T)


class ExpectedPrior(NamedTuple):
    """What the local steps of a sweep share."""

    law: Any
    words: Any


@dataclass(frozen=True)
class Factors:
    """Parameters have factors, of which documents see expectations: mean field."""

    def expect(self, model, factor):
        return ExpectedPrior(model.shares.expect(factor.shares), model.words.expect(factor.topics))

    def divergences(self, model, factor):
        """Return what the bound loses to the factors of the law of psi and of topics."""
        return model.shares.divergence(factor.shares), model.words.divergence(factor.topics)

    def draw(self, model, factor, rng):
        law = model.shares.draw_from(factor.shares, rng)
        return law, model.words.draw_from(factor.topics, rng)


@dataclass(frozen=True)
class VariationalTopicModel(TopicModel):
    """A topic model whose parts have a mean field: what `MeanField` and `StochasticVI` ask for."""

    approximation: Any = Factors()

    def initial_factor(self, shards, key):
        """Start from collapsed LDA, with the largest topics first."""
        start = self.warm_start(shards, key)
        psi = self.psi_of(start)
        by = sum(len(shard.rows) for shard in shards) / max(len(psi), 1)
        sums = self.shares.statistics(psi, {}).scaled(by)
        return TopicFactor(self.shares.factor(sums), self.words.factor(start.word_topics * by))

    def expect(self, factor):
        return self.approximation.expect(self, factor)

    def initial_row_factors(self, prior, shard):
        normal, n = self.shares.rows(prior.law, shard.given).normal, len(shard.rows)
        return RowFactors(np.tile(normal.mean, (n, 1)), np.tile(np.diag(normal.cov), (n, 1)))

    def update_rows(self, prior, shard, rows, key):
        """q(topics of tokens) and q(psi) in turns until they settle, then the former once more."""
        topics = prior.words.at(shard.vocabulary)
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
        return counts, value + shard.totals @ top[:, 0]

    def update_factor(self, factor, statistics):
        shares = self.shares.factor(statistics.shares, factor.shares)
        return TopicFactor(shares, self.words.factor(statistics.words.table()))

    def elbo(self, factor, statistics):
        of_law, of_topics = self.approximation.divergences(self, factor)
        return statistics.value - of_law - of_topics

    # stochastic

    def scale(self, statistics, by):
        shares, words, value = statistics
        return Statistics(shares.scaled(by), words.scaled(by), by * value)

    def blend(self, factor, other, rate):
        topics = (1.0 - rate) * factor.topics + rate * other.topics
        return TopicFactor(factor.shares.blend(other.shares, rate), topics)

    # what to record

    def draw_from_factor(self, factor, key):
        law, words = self.approximation.draw(self, factor, key.generator("factor"))
        return self.parameters(law, words, self.words.tokens(factor.topics))

    def draw_described_rows(self, prior, shard, rows, n_draws=64):
        """Draw from each q(psi_d), with the same points for each document."""
        topics = prior.words.at(shard.vocabulary)
        law = self.shares.rows(prior.law, shard.given)
        points = standard_normal_points(n_draws, self.link.n_dims)
        given = (law, shard, rows, points, partial(self._expect, topics))
        return {"proportions": self.link.draw_shares(*given)}


def assemble(words, shares, link):
    """Return the model of three parts, with a mean field where they have one."""
    has_factors = all(hasattr(part, "expect") for part in (words, shares))
    kind = VariationalTopicModel if has_factors and hasattr(link, "settle") else TopicModel
    return kind(words, shares, link)
