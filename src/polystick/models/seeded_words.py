"""Topics with words that they should have: a Dirichlet law with more weight on these::

topics_t ~ Dirichlet(concentration + weights of seeds in topic t)     t = 1..T, over the V words

A gamma with the sum of two shapes is the sum of two gammas, so a draw is that of `DirichletWords` and a few
gammas more. Topics with seeds have names of their own: only the others may be renamed.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import digamma, gammaln

from polystick.alignment import align
from polystick.models.topic_words import DirichletWords, wide

__all__ = ["Seed", "SeededWords", "largest_first", "matched", "settled"]


class Seed(NamedTuple):
    """A word that a topic should have, with so many tokens on top of its prior."""

    word: int
    topic: int
    weight: float


@dataclass(frozen=True)
class SeededWords:
    """Topics with a Dirichlet law, some of which have seeds."""

    flat: DirichletWords  # without seeds
    n_topics: int
    seeds: tuple[Seed, ...]

    fields: ClassVar = DirichletWords.fields
    dims: ClassVar = DirichletWords.dims

    @property
    def n_words(self):
        return self.flat.n_words

    @property
    def concentration(self):
        return self.flat.concentration

    @cached_property
    def seeded(self):
        """Topics that must not be renamed."""
        return np.unique([seed.topic for seed in self.seeds])

    @cached_property
    def _places(self):
        """Words, topics and weights of the seeds."""
        words, topics, weights = zip(*self.seeds)
        return np.array(words), np.array(topics), np.array(weights, dtype=np.float64)

    @cached_property
    def weights(self):
        """What seeds add to the concentration, (V, T)."""
        words, topics, weights = self._places
        table = np.zeros((self.n_words, self.n_topics))
        np.add.at(table, (words, topics), weights)
        return table

    def cells(self, shard):
        return self.flat.cells(shard)

    def simulate(self, n_topics, rng):
        return wide(rng.standard_gamma(self.concentration + self.weights))

    # Gibbs

    def mean(self, counts):
        return wide(counts + self.concentration + self.weights)

    def draw(self, parameters, counts, key, ordered_map):
        """Topics | topics of tokens."""
        drawn = self.flat.draw(parameters, counts, key, ordered_map)
        words, topics, weights = self._places
        more = key.generator("seeds").standard_gamma(weights)
        held, sizes = drawn["topics"], drawn["sizes"].copy()
        np.add.at(held, (words, topics), more.astype(np.float32))
        np.add.at(sizes, topics, more)
        return {"topics": held, "sizes": sizes}

    def rename(self, parameters, order):
        return self.flat.rename(parameters, order)

    def given(self, topics):
        return self.flat.given(topics)

    def describe(self, parameters):
        return self.flat.describe(parameters)

    # mean field

    def factor(self, counts):
        return self.flat.factor(counts) + self.weights

    def expect(self, factor):
        return self.flat.expect(factor)

    def divergence(self, factor):
        """Return KL(factor || this law): that of the flat law, and what seeds change."""
        words, topics, weights = _merged(self.weights)
        eta, sums = self.concentration, self.weights.sum(axis=0)
        expected = digamma(factor[words, topics]) - digamma(factor.sum(axis=0))[topics]
        spread = self.n_words * eta
        flat = gammaln(spread) * self.n_topics - gammaln(eta) * len(weights)
        ours = gammaln(spread + sums).sum() - gammaln(eta + weights).sum()
        return self.flat.divergence(factor) + flat - ours - weights @ expected

    def tokens(self, factor):
        return self.flat.tokens(factor) - self.weights.sum(axis=0)

    def draw_from(self, factor, rng):
        return self.flat.draw_from(factor, rng)


def _merged(weights):
    """Return words, topics and weights, each place once."""
    words, topics = np.nonzero(weights)
    return words, topics, weights[words, topics]


# names of topics: nothing here changes where no topic has seeds


def largest_first(words, sizes):
    """Return an order of topics by size; topics with seeds keep their places."""
    seeded = getattr(words, "seeded", None)
    if seeded is None:
        return np.argsort(-sizes, kind="stable")
    free, order = np.setdiff1d(np.arange(len(sizes)), seeded), np.arange(len(sizes))
    order[free] = free[np.argsort(-sizes[free], kind="stable")]
    return order


def settled(words, word_topics):
    """Return an order for topics that were found without seeds, counts (V, T): each seed finds its own.

    A topic with seeds takes over the one whose words it explains best, beyond what the flat law does.
    """
    sizes = word_topics.sum(axis=0)
    seeded = getattr(words, "seeded", None)
    if seeded is None:
        return largest_first(words, sizes)
    shares = np.log(word_topics + words.concentration) - np.log(
        sizes + words.n_words * words.concentration
    )
    gain = words.weights.T[seeded] @ shares  # (seeded, T)
    rows, taken = linear_sum_assignment(gain, maximize=True)
    order, left = np.empty(len(sizes), dtype=np.int64), np.setdiff1d(np.arange(len(sizes)), taken)
    order[seeded[rows]] = taken
    free = np.setdiff1d(np.arange(len(sizes)), seeded)
    order[free] = left[np.argsort(-sizes[left], kind="stable")]
    return order


def matched(words, topics_by_chain):
    """Return orders (C, T) that match topics of chains with those of the first; seeds match themselves."""
    seeded = getattr(words, "seeded", None)
    if seeded is None:
        return align(topics_by_chain).order
    every = np.arange(len(topics_by_chain[0]))
    free = np.setdiff1d(every, seeded)
    orders = np.tile(every, (len(topics_by_chain), 1))
    if len(free):
        orders[:, free] = free[align([topics[free] for topics in topics_by_chain]).order]
    return orders
