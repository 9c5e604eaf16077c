"""Topics: documents share them out, and each has words (paper, section 3)::

topics   ~ words                               DirichletWords, TreeWords or WalkingWords
psi_d    ~ shares                              d = 1..n: NormalShares, WalkingShares, RegressedShares
topic    ~ Categorical(pi(psi_d))              for each token of document d; pi: the link, Sticks or Softmax
word     ~ Categorical(topics_topic)

The model puts three parts together, each a small object with a law of its own, as `topic_parts` asks.
Assignments of tokens live for one sweep only.
"""

import operator
from collections import namedtuple
from dataclasses import dataclass
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from polystick.augmentation import Potential
from polystick.kernels import algebra
from polystick.models import documents, topic_moves
from polystick.models.normal_points import standard_normal_points
from polystick.models.seeded_words import largest_first, matched, settled
from polystick.models.topic_agreement import TopicChains
from polystick.models.topic_moves import Moving, Renaming, Stretching, is_renamed
from polystick.models.topic_parts import Link, Shares, ShareSums, Words, WordSums
from polystick.models.topic_words import Pairs, draw_topics
from polystick.models.warm_start import collapsed_start

MEAN_TOPICS = 0.2  # part of the burn-in in which topics are set to their means, not drawn
FIRST_DRAWS = 10  # of documents, before topics may follow them
REORDERED = (0.25, 0.5, 0.75)  # when in the burn-in the sticks are put in order of size


class Statistics(NamedTuple):
    """Sums over documents."""

    shares: ShareSums
    words: WordSums
    value: float  # log likelihood of the words, without coefficients, or their part of the bound


class Prior(NamedTuple):
    """What the local steps of a sweep share."""

    law: object  # of psi
    topics: np.ndarray  # (V, padded T) float32
    sizes: np.ndarray  # (T,) sums of topics over words


class Rows(NamedTuple):
    """Where the documents of a chain stand; omega and topics of tokens are drawn afresh in every sweep."""

    psi: np.ndarray  # (n, k)
    tokens: np.ndarray  # (n, T) int32, how many have each topic


@lru_cache
def parameters_of(*fields):
    """Return the class of parameters with these fields, and

    share : (T,) of all tokens
    move  : (T,) topics that documents have yet to rename: new topic t was move[t]
    """
    return namedtuple(
        "Parameters", (*fields, "share", "move"), defaults=(None,) * (len(fields) + 2)
    )  # type: ignore[misc]


@dataclass(frozen=True)
class TopicModel(TopicChains, Moving):
    """The model: its three parts."""

    words: Words
    shares: Shares
    link: Link

    @property
    def parameter_type(self):
        return parameters_of(*self.shares.fields, *self.words.fields)

    @property
    def dims(self):
        """Words for the axes of what is recorded."""
        more = {"share": ("topic",), "proportions": ("document", "topic")}
        return {**self.shares.dims(self.link.axis), **self.words.dims, **more}

    @property
    def n_topics(self):
        return self.link.n_topics

    def shards(self, counts, size=documents.ROWS_PER_BLOCK, ids=None, **given):
        """Cut counts (n, V), dense or CSR, into blocks, with what else is given of documents."""
        return documents.cut(counts, size, ids, **given)

    # simulate

    def simulate(self, n_tokens, rng, **given):
        """Draw (parameters, rows, counts) from the joint law, for documents of n_tokens (n,) each."""
        law, words = self.shares.simulate(rng), self.words.simulate(self.n_topics, rng)
        parameters = self.parameters(law, words, np.ones(self.n_topics))
        block = self.shares.rows(self.shares.prepare(parameters), given)
        noise = rng.standard_normal((len(n_tokens), self.link.n_dims))
        psi = block.mean + algebra.multiply(noise, algebra.root(parameters.cov))
        tokens, counts = self.simulate_tokens(parameters, psi, n_tokens, rng, **given)
        return parameters, Rows(psi, tokens), counts

    def simulate_tokens(self, parameters, psi, n_tokens, rng, **given):
        """Draw how many tokens of documents have each topic (n, T), and each word (n, V)."""
        topics = self.words.describe(parameters)["topics"].astype(np.float64)
        topics /= topics.sum(axis=-1, keepdims=True)
        tokens = rng.multinomial(n_tokens, self.link.shares(psi))
        of_topic = [each if each.ndim == 1 else each[given["slices"]] for each in topics]
        counts = sum(rng.multinomial(n, words) for n, words in zip(tokens.T, of_topic))
        return tokens.astype(np.int32), counts

    def simulate_counts(self, parameters, rows, n_tokens, rng, **given):
        """Draw counts of words given the topics and the documents' psi."""
        return self.simulate_tokens(parameters, rows.psi, n_tokens, rng, **given)[1]

    def simulate_shares(self, n, rng, **given):
        """Draw the shares of n documents (n, T), and topics (T, ..., V), from the joint law."""
        parameters, rows, _ = self.simulate(np.zeros(n, dtype=np.int64), rng, **given)
        return self.link.shares(rows.psi), self.words.describe(parameters)["topics"]

    def expected_shares(self, described, n_points=64, **given):
        """Return E pi (n, T) of n documents of which this is given, under a recorded law of psi."""
        block = self.shares.rows(self.shares.prepare(SimpleNamespace(**described)), given)
        noise = standard_normal_points(n_points, self.link.n_dims)
        around = algebra.multiply(noise, algebra.root(described["cov"]))
        return np.stack([self.link.shares(mean + around).mean(axis=0) for mean in block.mean])

    def parameters(self, law, words, tokens):
        """Build parameters from fields that tell of psi, fields that tell of topics, and tokens (T,)."""
        share, move = tokens / max(1, tokens.sum()), np.arange(len(tokens))
        return self.parameter_type(share=share, move=move, **law, **words)

    # Gibbs

    def initial_parameters(self, shards, key):
        """Start from collapsed LDA."""
        start = self.warm_start(shards, key)
        law = self.shares.start(self.psi_of(start), key)
        words = self.words.mean(start.word_topics)
        return self.parameters(law, words, start.word_topics.sum(axis=0))

    def warm_start(self, shards, key):
        given = self.n_topics, self.words.n_words, self.words.concentration
        start = collapsed_start(shards, *given, key)
        start = start.renamed(settled(self.words, start.word_topics))
        held = getattr(self.words, "seeded", ())
        return start.renamed(self.link.places(start.log_shares, held))

    def psi_of(self, start):
        """Return psi (n, k) of the documents that a start has used."""
        return self.link.psi(start.log_shares)

    def prepare(self, parameters):
        return Prior(self.shares.prepare(parameters), parameters.topics, parameters.sizes)

    def initial_rows(self, prior, shard, key):
        """Start at equal shares, and draw a few times: the mean of psi may be far from a long document."""
        n = len(shard.rows)
        equal = self.link.psi(np.zeros((1, self.n_topics)))
        rows = Rows(np.repeat(equal, n, axis=0), np.zeros((n, self.n_topics), np.int32))
        for number in range(FIRST_DRAWS):
            rows = self.fold(prior, shard, rows, key.chain(f"start {number}"))
        return rows

    def propose_move(self, parameters, key):
        """Names of topics that documents have yet to follow; or scales or levels of psi with their law."""
        if is_renamed(parameters.move):
            return Renaming(parameters.move)
        if not self._moves:
            return None
        law = SimpleNamespace(**{name: getattr(parameters, name) for name in self.shares.fields})
        return Stretching(law, *topic_moves.proposed(self.link.n_dims, key))

    def rename_rows(self, rows, order):
        return Rows(self.link.rename(rows.psi, order), rows.tokens[:, order])

    @property
    def _moves(self):
        """Whether the law can move with psi."""
        law = getattr(self.shares, "law", None)
        return hasattr(law, "move") and hasattr(self.link, "split")

    def draw_rows(self, prior, shard, rows, key):
        """Topics of tokens | psi, then psi | topics of tokens."""
        n_tokens = int(shard.counts.sum())  # no two documents share a cell, as they may in `fold`
        psi, counts, pairs, value = self._draw(prior, shard, rows.psi, key, n_tokens)
        words = Pairs([pairs], counts.sum(axis=0), prior.topics.size)
        found = Statistics(self.shares.statistics(psi, shard.given), words, value)
        return Rows(psi, counts.astype(np.int32)), found

    def _draw(self, prior, shard, psi, key, n_tokens):
        """Return psi, how many tokens have each topic (n, T), the pairs and the log likelihood."""
        cells, weights = self.words.cells(shard), self.link.shares(psi) / prior.sizes
        drawn = draw_topics(shard, cells, weights, prior.topics, n_tokens, key)
        block = self.shares.rows(prior.law, shard.given)
        return self.link.draw(block, shard.rows, drawn[0], psi, key), *drawn

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        """The law of psi | psi, and topics | topics of tokens."""
        rng, shape = key.generator("parameters"), parameters.topics.shape
        draw_law = partial(self.shares.draw, parameters, statistics.shares, rng)
        law, counts = ordered_map(
            operator.call, (draw_law, partial(statistics.words.table, *shape))
        )
        words = self.words.draw(parameters, counts, key, ordered_map)
        return self.parameters(law, words, statistics.words.tokens)

    def settle(self, parameters, statistics, key, n_burn, ordered_map=map):
        """Draw parameters while burning in: topics at their means first, sticks in order of size."""
        if key.sweep > MEAN_TOPICS * n_burn:
            drawn = self.draw_parameters(parameters, statistics, key, ordered_map)
        else:
            law = self.shares.draw(parameters, statistics.shares, key.generator("parameters"))
            counts = statistics.words.table(*parameters.topics.shape)[:, : self.n_topics]
            drawn = self.parameters(law, self.words.mean(counts), statistics.words.tokens)
        if self.link.has_order and key.sweep in [int(share * n_burn) for share in REORDERED]:
            drawn = self.rename(drawn, largest_first(self.words, drawn.share), key)
        return drawn

    def rename(self, parameters, order, key):
        """Let new topic t be what topic order[t] was; documents follow before the next sweep."""
        if (order == np.arange(self.n_topics)).all():
            return parameters
        return parameters._replace(
            share=parameters.share[order],
            move=parameters.move[order],
            **self.shares.rename(parameters, order, self.link, key),
            **self.words.rename(parameters, order),
        )

    def agree(self, chains, key):
        """Give chains the labels of the first, by how alike their topics are."""
        topics = [self.words.describe(p)["topics"].reshape(self.n_topics, -1) for p in chains]
        orders = matched(self.words, topics)
        return [chains[0], *(self.rename(p, o, key) for p, o in zip(chains[1:], orders[1:]))]

    def log_likelihood(self, statistics):
        return statistics.value

    # documents given parameters: folding

    @property
    def fold_names(self):
        return (*self.shares.told, "topics")

    def fold_prior(self, described):
        """Return what new documents need of a recorded draw."""
        words = self.words.given(described["topics"])
        law = self.shares.prepare(SimpleNamespace(**described))
        return Prior(law, words["topics"], words["sizes"])

    def word_ids(self, shard):
        """Return the row of `topics` that each cell of a block is about."""
        return self.words.cells(shard)

    def fold(self, prior, shard, rows, key):
        """Draw rows without summing anything up."""
        psi, counts, *_ = self._draw(prior, shard, rows.psi, key, int(shard.totals.sum()))
        return Rows(psi, counts.astype(np.int32))

    @property
    def folds_quickly(self):
        """Whether the link knows a way without draws."""
        return hasattr(self.link, "quick_shares")

    def quick_shares(self, prior, shard):
        """Return shares (n, T) of documents given their words, without draws."""
        link: Any = self.link  # one that knows a way
        law = self.shares.rows(prior.law, shard.given)
        return link.quick_shares(law, shard, self.words.cells(shard), prior.topics, prior.sizes)

    def prior_rows(self, prior, shard, key):
        """Draw rows as if no word had been seen, each the same in any company."""
        k = self.link.n_dims
        nothing = np.zeros((len(shard.rows), k))
        noise = key.normals("prior", shard.rows, 2 * k)
        block = self.shares.rows(prior.law, shard.given)
        psi = block.draw(Potential(nothing, nothing), noise)
        return Rows(psi, np.zeros((len(psi), self.n_topics), np.int32))

    def proportions_of(self, rows):
        return self.link.shares(rows.psi)

    def log_population(self, described, n_points=512):
        """Return log shares (n_points, T) of documents that recorded parameters would give."""
        mean, cov = self.shares.average(SimpleNamespace(**described))
        points = standard_normal_points(n_points, self.link.n_dims)
        return self.link.log_shares(mean + algebra.multiply(points, algebra.root(cov)))

    # what to record

    def describe_parameters(self, parameters):
        told = {name: getattr(parameters, name) for name in self.shares.told}
        return {**told, **self.words.describe(parameters), "share": parameters.share}

    def describe_rows(self, shard, rows):
        return {"proportions": self.link.shares(rows.psi)}
