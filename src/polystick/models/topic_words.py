"""The words of topics: how often each has each topic, and the law that topics come from::

topics_t ~ Dirichlet(concentration)            t = 1..T, over the V words

Topics are held word by word, as gammas in single precision that are never normalised: a word's weight in
topic t is topics[word, t] / sizes[t].

A block of documents knows few of the words, so it hands over what it has: a list of (word, topic) pairs
(Gibbs), or rows for its own vocabulary (mean field). Both add up block after block, and become a table in
the end.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import digamma, gammaln

from polystick.kernels import assignments, gammas, special
from polystick.kernels.simd32 import WIDTH
from polystick.models.blocks import evenly

WORDS_PER_BLOCK = 1024  # part of the result: sizes are summed block by block


@dataclass(frozen=True, eq=False)
class Pairs:
    """Tokens by word and topic: one by one until they are more than cells of a table, then tallied there."""

    blocks: list[np.ndarray]  # tokens as word * padded + topic
    tokens: np.ndarray  # how many have each topic, (T,)
    n_cells: int  # of a table of counts by word and topic
    tallied: np.ndarray | None = None  # (1, cells) int32, of tokens that are in no block any more

    exact: ClassVar = True  # whole counts may be added in any order

    def __getstate__(self):
        """Return what goes to another process: a table and no tokens, where there is a table."""
        if self.tallied is None:
            return vars(self)
        return {**vars(self), "blocks": [], "tallied": self._tally(self.blocks, self.tallied)}

    def __add__(self, other):
        blocks, tokens = self.blocks + other.blocks, self.tokens + other.tokens
        tables = [each for each in (self.tallied, other.tallied) if each is not None]
        tallied = sum(tables[1:], start=tables[0]) if tables else None
        if sum(map(len, blocks)) > self.n_cells:
            blocks, tallied = [], self._tally(blocks, tallied)
        return Pairs(blocks, tokens, self.n_cells, tallied)

    def table(self, n_words, width):
        """Return whole counts (n_words, width)."""
        return self._tally(self.blocks, self.tallied).reshape(n_words, width)

    def _tally(self, blocks, before):
        """Return counts (1, cells) in an array of its own."""
        counts = np.zeros((1, self.n_cells), np.int32) if before is None else before.copy()
        for pairs in blocks:
            assignments.tally_in_place(pairs, counts)
        return counts


def draw_topics(shard, cells, weights, topics, n_tokens, key):
    """Draw a topic for each token, given weights (n, T) of topics in documents and topics (V, padded T).

    cells : the row of `topics` that each cell of the block is about

    Returns how many tokens of each document have each topic (n, T), tokens as pairs, and the log likelihood.
    """
    counts, pairs = np.empty(weights.shape, dtype=np.int64), np.empty(n_tokens, dtype=np.int32)
    given = (key.at("topic"), shard.rows, shard.starts, shard.stops, cells, shard.counts)
    value = assignments.draw_assignments(*given, weights, topics, pairs, counts)
    return counts, pairs, value


@dataclass(frozen=True, eq=False)
class ExpectedWords:
    """Expected counts (u, T) for the words of a vocabulary (u,), or of all words, where that is None."""

    n_words: int
    vocabulary: np.ndarray | None
    values: np.ndarray

    def __add__(self, other):
        total = self.table().copy() if self.vocabulary is None else self.table()
        return ExpectedWords(self.n_words, None, total).__iadd__(other)

    def __iadd__(self, other):
        """Add to what is a sum already, in place."""
        if self.vocabulary is not None:
            return self + other
        if other.vocabulary is None:
            np.add(self.values, other.values, out=self.values)
        else:
            self.values[other.vocabulary] += other.values
        return self

    def scaled(self, by):
        return ExpectedWords(self.n_words, None, by * self.table())

    def table(self):
        """Return expected counts (n_words, T)."""
        if self.vocabulary is None:
            return self.values
        table = np.zeros((self.n_words, self.values.shape[1]))
        table[self.vocabulary] = self.values
        return table


@dataclass(frozen=True, eq=False)
class ExpectedTopics:
    """A function from words (u,) to exp E log topics (u, T); it may be sent to another process."""

    factor: np.ndarray  # (V, T)
    normaliser: np.ndarray  # (T,)

    def __call__(self, vocabulary):
        out = np.empty((len(vocabulary), len(self.normaliser)))
        special.exp_digamma_rows(self.factor, vocabulary, self.normaliser, out)
        return out


@dataclass(frozen=True)
class DirichletWords:
    """Topics with a Dirichlet law."""

    n_words: int
    concentration: float

    fields: ClassVar = ("topics", "sizes")
    dims: ClassVar = {"topics": ("topic", "word")}

    def cells(self, shard):
        return shard.words

    def simulate(self, n_topics, rng):
        return wide(rng.standard_gamma(self.concentration, (self.n_words, n_topics)))

    # Gibbs

    def mean(self, counts):
        return wide(counts + self.concentration)

    def draw(self, parameters, counts, key, ordered_map):
        """Topics | topics of tokens."""
        topics, n_topics = np.empty(counts.shape, dtype=np.float32), len(parameters.sizes)
        site = key.at("topics")

        def draw(block):
            sums, given = np.empty(n_topics), (counts[block], self.concentration)
            gammas.draw_topics(site, block.start, *given, topics[block], sums)
            return sums

        return {"topics": topics, "sizes": sum(ordered_map(draw, self._blocks))}

    @cached_property
    def _blocks(self):
        return evenly(np.ones(self.n_words), WORDS_PER_BLOCK)

    def rename(self, parameters, order):
        return renamed(parameters, order)

    def given(self, topics):
        return wide(topics.T)

    def describe(self, parameters):
        return {"topics": probabilities(parameters.topics, parameters.sizes)}

    # mean field: a factor is (V, T), the parameters of a Dirichlet law for each topic

    def factor(self, counts):
        return self.concentration + counts

    def expect(self, factor):
        return ExpectedTopics(factor, digamma(factor.sum(axis=0)))

    def divergence(self, factor):
        """Return KL(factor || this law)."""
        eta, sums = self.concentration, factor.sum(axis=0)
        theirs = len(sums) * (gammaln(self.n_words * eta) - self.n_words * gammaln(eta))
        mine = gammaln(sums).sum() + special.dirichlet_sum(factor, eta, digamma(sums))
        return mine - theirs

    def tokens(self, factor):
        """Return how many tokens of each topic a factor has seen, (T,)."""
        return factor.sum(axis=0) - self.n_words * self.concentration

    def draw_from(self, factor, rng):
        return wide(rng.standard_gamma(factor))


def padded(n_topics):
    """Return the number of topics rounded up to whole vectors."""
    return -(-n_topics // WIDTH) * WIDTH


def wide(topics):
    """Return topics (V, T), not normalised, as fields of parameters."""
    n_topics = topics.shape[1]
    held = np.zeros((len(topics), padded(n_topics)), dtype=np.float32)
    held[:, :n_topics] = topics
    return {"topics": held, "sizes": held[:, :n_topics].sum(axis=0, dtype=np.float64)}


def renamed(parameters, order):
    """Return topics and sizes in a new order."""
    columns = np.concatenate([order, np.arange(len(order), parameters.topics.shape[1])])
    topics = np.ascontiguousarray(parameters.topics[:, columns])
    return {"topics": topics, "sizes": parameters.sizes[order]}


def probabilities(topics, sizes):
    """Return topics (V, padded T), which sum to sizes (T,), as probabilities (T, V)."""
    return np.ascontiguousarray(topics[:, : len(sizes)].T / sizes[:, None], dtype=np.float32)


def mixed(shares, topics, slices=None):
    """Return the probabilities of words (n, V) in documents with these shares (n, T) of topics.

    topics : (T, V), or (T, S, V) where documents are in slices (n,)
    """
    if topics.ndim == 2:
        return shares @ topics
    return np.einsum("nt,tnv->nv", shares, topics[:, slices])
