"""Correlated topics: documents whose shares of topics have a common Gaussian law (paper, section 3)::

topics_t  ~ Dirichlet(concentration)           t = 1..T, over the V words
mean, cov ~ NIW(prior)
psi_d     ~ N(mean, cov)                       d = 1..n
topic     ~ Categorical(pi(psi_d))             for each token of document d; pi: the decomposition's map
word      ~ Categorical(topics_topic)

Topics are held word by word, as gammas in single precision that are never normalised: a word's weight in
topic t is topics[word, t] / sizes[t]. Assignments of tokens live for one sweep only.
"""

import operator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polystick import augmentation
from polystick.alignment import align
from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.gaussians.normal import Normal
from polystick.kernels import assignments, gammas
from polystick.models import documents, watched
from polystick.models.folding import draw_from_prior
from polystick.models.multinomial import standard_normal_points
from polystick.models.topic_factors import VariationalTopics
from polystick.models.warm_start import collapsed_start
from polystick.models.word_counts import Pairs, padded

WORDS_PER_BLOCK = 1024  # part of the result: sizes are summed block by block
MEAN_TOPICS = 0.2  # part of the burn-in in which topics are set to their means, not drawn
REORDERED = (0.25, 0.5, 0.75)  # when in the burn-in the sticks are put in order of size
_RENAMED = 4096  # draws that tell the law of psi under other names


class Parameters(NamedTuple):
    """What all documents share. k = T - 1 sticks."""

    mean: np.ndarray  # (k,)
    cov: np.ndarray  # (k, k)
    topics: np.ndarray  # (V, padded T) float32
    sizes: np.ndarray  # (T,) sums of topics over words
    share: np.ndarray  # (T,) of all tokens
    move: np.ndarray  # (T,) topics that documents have yet to rename: new topic t was move[t]


class Rows(NamedTuple):
    """Where each document of a chain stands."""

    psi: np.ndarray  # (n, k)


class Statistics(NamedTuple):
    """Sums over documents."""

    n_rows: int
    total: np.ndarray  # (k,) of psi
    outer: np.ndarray  # (k, k) of psi psi'
    words: Pairs
    value: float  # log likelihood of the words, without multinomial coefficients


class Prior(NamedTuple):
    """What the local steps of a sweep share."""

    normal: Normal
    topics: np.ndarray
    sizes: np.ndarray
    move: np.ndarray | None


@dataclass(frozen=True)
class CorrelatedTopics(VariationalTopics):
    """The model: its priors and the decomposition of the topics."""

    n_words: int
    concentration: float
    prior: NormalInverseWishart
    decomposition: Decomposition

    parameter_type: ClassVar[Any] = Parameters
    fold_names: ClassVar[Any] = ("mean", "cov", "topics")  # what new documents need
    dims: ClassVar[Any] = {
        "mean": ("stick",),
        "cov": ("stick", "stick_too"),
        "topics": ("topic", "word"),
        "share": ("topic",),
        "proportions": ("document", "topic"),
    }
    identified: ClassVar[tuple[str, ...]] = ()  # chains give topics labels of their own
    has_labels: ClassVar = True
    rhat_limit: ClassVar = 1.05
    advice: ClassVar = watched.MODES

    @property
    def n_topics(self):
        return self.decomposition.n_categories

    @property
    def n_sticks(self):
        return self.n_topics - 1

    @property
    def n_cells(self):
        """Rows of `topics`."""
        return self.n_words

    def shards(self, counts, size=documents.ROWS_PER_BLOCK, ids=None):
        """Cut counts (n, V), dense or CSR, into blocks of documents."""
        return documents.cut(counts, size, ids)

    @cached_property
    def _path_signs(self):
        """The side, +1 or -1, that leads to each topic at each stick above it, (k, T)."""
        starts, nodes, sides = self.decomposition.paths()
        signs = np.zeros((self.n_sticks, self.n_topics))
        signs[nodes, np.repeat(np.arange(self.n_topics), np.diff(starts))] = sides
        return signs

    # the link between psi and the shares of topics

    def proportions(self, psi):
        return self.decomposition.probabilities(psi)

    def psi(self, log_proportions):
        return self.decomposition.psi_from_log(log_proportions)

    # simulate

    def simulate(self, n_tokens, rng):
        """Draw (parameters, rows, counts) from the joint law, for documents of n_tokens (n,) each."""
        mean, cov, _ = self.prior.draw(rng)
        share = np.full(self.n_topics, 1 / self.n_topics)
        law = {"mean": mean, "cov": cov}
        parameters = self.parameters(law, self.simulate_words(rng), share)
        rows = Rows(rng.multivariate_normal(mean, cov, size=len(n_tokens), method="cholesky"))
        return parameters, rows, self.simulate_counts(parameters, rows, n_tokens, rng)

    def simulate_counts(self, parameters, rows, n_tokens, rng):
        """Draw counts of words given the topics and the documents' psi."""
        topics = self.describe_parameters(parameters)["topics"].astype(np.float64)
        words = self.proportions(rows.psi) @ (topics / topics.sum(axis=1, keepdims=True))
        return rng.multinomial(n_tokens, words / words.sum(axis=1, keepdims=True))

    def simulate_shares(self, n, *slices_and_rng):
        """Draw the shares of n documents (n, T), and topics (T, ...), from the joint law."""
        parameters, rows, _ = self.simulate(np.zeros(n, dtype=np.int64), *slices_and_rng)
        return self.proportions(rows.psi), self.describe_parameters(parameters)["topics"]

    def parameters(self, law, words, share):
        """Build parameters from the fields that tell of psi and those that tell of the topics."""
        return self.parameter_type(share=share, move=np.arange(self.n_topics), **law, **words)

    def simulate_words(self, rng):
        return self.pad(rng.standard_gamma(self.concentration, (self.n_words, self.n_topics)))

    def pad(self, topics):
        """Return topics (V, T), not normalised, as fields of parameters."""
        wide = np.zeros((len(topics), padded(self.n_topics)), dtype=np.float32)
        wide[:, : self.n_topics] = topics
        return {"topics": wide, "sizes": wide[:, : self.n_topics].sum(axis=0, dtype=np.float64)}

    # Gibbs

    def initial_parameters(self, shards, key):
        """Start from collapsed LDA, with the largest topics first."""
        start = self._warm_start(shards, key)
        words = self.mean_words(start.word_topics)
        return self.parameters(
            self.law_of(start, shards), words, shares(start.word_topics.sum(axis=0))
        )

    def _warm_start(self, shards, key):
        start = collapsed_start(shards, self.n_topics, self.n_words, self.concentration, key)
        order = np.argsort(-start.word_topics.sum(axis=0), kind="stable")
        return start._replace(
            word_topics=start.word_topics[:, order],
            alpha=start.alpha[order],
            document_topics=start.document_topics[:, order],
        )

    def law_of(self, start, shards):
        """Return the expected mean and covariance of psi, had documents the shares of a start."""
        normal = self.prior.posterior(*self.moments_of(start))
        return {"mean": normal.mean, "cov": normal.scale / (normal.degrees - self.n_sticks + 1)}

    def moments_of(self, start):
        psi = self.psi(np.log(start.document_topics + start.alpha))
        return len(psi), psi.sum(axis=0), psi.T @ psi

    def prepare(self, parameters):
        moved = (parameters.move != np.arange(self.n_topics)).any()
        return Prior(
            Normal(parameters.mean, parameters.cov),
            parameters.topics,
            parameters.sizes,
            parameters.move if moved else None,
        )

    def initial_rows(self, prior, shard, key):
        return Rows(np.tile(prior.normal.mean, (len(shard.rows), 1)))

    def draw_rows(self, prior, shard, rows, key):
        """Topics of tokens | psi, then psi | topics of tokens."""
        psi = rows.psi if prior.move is None else self.renamed(rows.psi, prior.move)
        counts, pairs, value = self._draw_assignments(prior, shard, psi, key)
        psi = self.draw_psi(prior, shard, counts, psi, key)
        words = Pairs([pairs], counts.sum(axis=0))
        return Rows(psi), self.summarise(shard, psi, words, value)

    def summarise(self, shard, psi, words, value):
        return Statistics(len(psi), psi.sum(axis=0), psi.T @ psi, words, value)

    def renamed(self, psi, move):
        return self.psi(self.decomposition.log_probabilities(psi)[:, move])

    def _draw_assignments(self, prior, shard, psi, key):
        """Return how many tokens of each document have each topic, the pairs, the log likelihood."""
        weights = self.proportions(psi) / prior.sizes
        counts = np.empty(weights.shape, dtype=np.int64)
        pairs = np.empty(int(shard.totals.sum()), dtype=np.int32)
        value = assignments.draw_assignments(
            key.at("topic"), *shard[:3], self.word_ids(shard), shard.counts,
            weights, prior.topics, pairs, counts,
        )  # fmt: skip
        return counts, pairs, value

    def draw_psi(self, prior, shard, counts, psi, key):
        """Omega | psi, counts, then psi | omega, counts."""
        splits = self.decomposition.split(counts)
        potential = augmentation.draw_potential(splits, psi, key.at("omega"), shard.rows)
        return prior.normal.draw(potential, key.normals("psi", shard.rows, 2 * psi.shape[1]))

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        """mean, cov | psi and topics | topics of tokens."""
        draw_law = partial(self.draw_law, parameters, statistics, key)
        count = partial(statistics.words.table, self.n_cells, padded(self.n_topics))
        law, counts = ordered_map(operator.call, (draw_law, count))
        words = self.draw_words(parameters, counts, key, ordered_map)
        return self.parameters(law, words, shares(statistics.words.tokens))

    def draw_law(self, parameters, statistics, key):
        """mean, cov | psi."""
        normal = self.prior.posterior(*statistics[:3])
        mean, cov, _ = normal.draw(key.generator("parameters"))
        return {"mean": mean, "cov": cov}

    def draw_words(self, parameters, counts, key, ordered_map):
        """Topics | topics of tokens."""
        topics = np.empty(counts.shape, dtype=np.float32)
        site = key.at("topics")

        def draw(block):
            sums, given = np.empty(self.n_topics), (counts[block], self.concentration)
            gammas.draw_topics(site, block.start, *given, topics[block], sums)
            return sums

        sizes = sum(ordered_map(draw, documents.evenly(np.ones(self.n_words), WORDS_PER_BLOCK)))
        return {"topics": topics, "sizes": sizes}

    def mean_words(self, counts):
        """Return the expectation of the topics given counts (V, T)."""
        return self.pad(counts + self.concentration)

    def settle(self, parameters, statistics, key, n_burn, ordered_map=map):
        """Draw parameters while burning in: topics at their means first, sticks in order of size."""
        if key.sweep > MEAN_TOPICS * n_burn:
            drawn = self.draw_parameters(parameters, statistics, key, ordered_map)
        else:
            counts = statistics.words.table(self.n_cells, padded(self.n_topics))[:, : self.n_topics]
            law = self.draw_law(parameters, statistics, key)
            drawn = self.parameters(law, self.mean_words(counts), shares(statistics.words.tokens))
        if key.sweep in [int(share * n_burn) for share in REORDERED]:
            drawn = self._rename(drawn, np.argsort(-drawn.share, kind="stable"), key)
        return drawn

    def _rename(self, parameters, order, key):
        """Let new topic t be what topic order[t] was; documents follow in the next sweep."""
        if (order == np.arange(self.n_topics)).all():
            return parameters
        return parameters._replace(
            share=parameters.share[order],
            move=parameters.move[order],
            **self.rename_law(parameters, order, key),
            **self.rename_words(parameters, order),
        )

    def rename_words(self, parameters, order):
        wide = np.concatenate([order, np.arange(self.n_topics, parameters.topics.shape[1])])
        topics = np.ascontiguousarray(parameters.topics[:, wide])
        return {"topics": topics, "sizes": parameters.sizes[order]}

    def rename_law(self, parameters, order, key):
        """Match the moments of renamed psi: good enough for the one sweep that uses them."""
        noise = key.generator("rename").standard_normal((_RENAMED, self.n_sticks))
        psi = parameters.mean + noise @ np.linalg.cholesky(parameters.cov).T
        psi = self.renamed(psi, order)
        return {"mean": psi.mean(axis=0), "cov": np.atleast_2d(np.cov(psi, rowvar=False))}

    def agree(self, chains, key):
        """Give chains the labels of the first, by how alike their topics are."""
        topics = [self.describe_parameters(p)["topics"].reshape(self.n_topics, -1) for p in chains]
        orders, _ = align(topics)
        return [chains[0], *(self._rename(p, o, key) for p, o in zip(chains[1:], orders[1:]))]

    def log_likelihood(self, statistics):
        return statistics.value

    # documents given parameters: folding

    def fold_prior(self, described):
        """Return what new documents need of a recorded draw."""
        mean, cov, topics = (described[name] for name in ("mean", "cov", "topics"))
        words = self.pad(topics.T)
        return Prior(Normal(mean, cov), words["topics"], words["sizes"], None)

    def word_ids(self, shard):
        """Return the row of `topics` that each cell of a block is about."""
        return shard.words

    def fold(self, prior, shard, rows, key):
        """Draw rows without summing anything up."""
        counts, _, _ = self._draw_assignments(prior, shard, rows.psi, key)
        return Rows(self.draw_psi(prior, shard, counts, rows.psi, key))

    def prior_rows(self, prior, shard, key):
        """Draw rows as if no word had been seen."""
        return Rows(draw_from_prior(prior.normal, shard, key))

    def proportions_of(self, rows):
        return self.proportions(rows.psi)

    def log_population(self, described, n_points=512):
        """Return log shares (n_points, T) of documents that recorded parameters would give."""
        points = standard_normal_points(n_points, self.n_sticks)
        root = np.linalg.cholesky(described["cov"])
        return self.decomposition.log_probabilities(described["mean"] + points @ root.T)

    # what to record

    def describe_parameters(self, parameters):
        """Return what is recorded: topics as (T, V) probabilities."""
        topics = parameters.topics[:, : self.n_topics].T / parameters.sizes[:, None]
        topics = np.ascontiguousarray(topics, dtype=np.float32)
        return {**self.describe_law(parameters), "topics": topics, "share": parameters.share}

    def describe_law(self, parameters):
        return {"mean": parameters.mean, "cov": parameters.cov}

    def describe_rows(self, shard, rows):
        return {"proportions": self.proportions(rows.psi)}

    def watch(self, shards):
        """Judge a run by what needs no labels."""
        return watched.ShareWatch.of(shards)


def shares(tokens):
    """Return the share of each topic in the tokens (T,)."""
    return tokens / max(1, tokens.sum())
