"""Latent Dirichlet allocation (Blei, Ng and Jordan 2003): shares of topics have a Dirichlet law::

topics_t ~ Dirichlet(concentration)           t = 1..T, over the V words
shares_d ~ Dirichlet(alpha)                   d = 1..n
topic    ~ Categorical(shares_d)              for each token of document d
word     ~ Categorical(topics_topic)

The sampler is collapsed (Griffiths and Steyvers 2004): shares and topics are integrated out, and the state is
the topic of each token. Tokens are visited one after another, each given all the others, so there is one
block of documents, and threads serve chains. Shares and topics are drawn given the assignments where they
are recorded, so what is recorded is a draw from the posterior of all.

Alpha may be learned: while burning in, it moves to its most probable value given the assignments
(Minka's fixed point). Then it stays, so the draws that are kept have one law: the posterior given alpha.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from polystick.alignment import align
from polystick.kernels import gammas
from polystick.models import documents, warm_start
from polystick.models.quick_folding import settle_dirichlet
from polystick.models.topic_agreement import TopicChains
from polystick.models.topic_moves import Moving, Renaming, is_renamed
from polystick.models.topic_words import draw_topics, padded, probabilities, wide


class Parameters(NamedTuple):
    """What all documents share."""

    alpha: np.ndarray  # (T,)
    word_topics: np.ndarray  # (V, padded T) float32 whole counts
    totals: np.ndarray  # (T,) their sums; all 0: to be counted anew
    bits: np.ndarray  # (1,) uint64, the key of the topics that are drawn if they are recorded
    move: np.ndarray  # (T,) topics that tokens have yet to rename: new topic t was move[t]


class Rows(NamedTuple):
    """Where the documents of a chain stand, and what their shares depend on besides."""

    assignments: np.ndarray  # (tokens,) int32
    alpha: np.ndarray  # (T,)
    bits: np.ndarray  # (1,) uint64, the key of the shares that are drawn if they are recorded


class FoldedRows(NamedTuple):
    """Where new documents stand under fixed topics."""

    proportions: np.ndarray  # (n, T)


class Statistics(NamedTuple):
    """Counts of tokens. There is one block, so these are never added up."""

    document_topics: np.ndarray | None  # (n, T), in sweeps that may learn alpha
    word_topics: np.ndarray  # (V, padded T)
    totals: np.ndarray  # (T,)
    value: float  # log likelihood


class Prior(NamedTuple):
    """What a sweep needs of the parameters."""

    alpha: np.ndarray
    word_topics: np.ndarray
    totals: np.ndarray


class FoldPrior(NamedTuple):
    """What new documents need of a recorded draw."""

    alpha: np.ndarray
    topics: np.ndarray  # (V, padded T) float32
    sizes: np.ndarray  # (T,)


@dataclass(frozen=True)
class DirichletTopics(TopicChains, Moving):
    """The model: its priors. Alpha is a number, a vector (T,), or None to learn it while burning in."""

    n_topics: int
    n_words: int
    concentration: float
    alpha: float | np.ndarray | None = None

    parameter_type: ClassVar = Parameters
    fold_names: ClassVar = ("alpha", "topics")
    dims: ClassVar = {
        "alpha": ("topic",),
        "topics": ("topic", "word"),
        "share": ("topic",),
        "proportions": ("document", "topic"),
    }

    def shards(self, counts, size=None, ids=None):
        """Return counts (n, V) as one block of `Tokens` to learn from, or as blocks to fold in."""
        if size is not None:
            return documents.cut(counts, size, ids)
        return [warm_start.expand(documents.cut(counts, max(1, counts.shape[0]), ids))]

    @property
    def initial_alpha(self):
        """Where alpha starts, and stays unless it is learned, (T,)."""
        if self.alpha is None:
            return warm_start.initial_alpha(self.n_topics)
        return np.broadcast_to(np.asarray(self.alpha, dtype=np.float64), self.n_topics).copy()

    def parameters(self, alpha, word_topics, totals, bits):
        return Parameters(alpha, word_topics, totals, np.array([bits]), np.arange(self.n_topics))

    # simulate

    def simulate(self, n_tokens, rng):
        """Draw (parameters, rows, counts) from the joint law, for documents of n_tokens (n,) each."""
        alpha = self.initial_alpha
        topics = rng.dirichlet(np.full(self.n_words, self.concentration), self.n_topics)
        shares = rng.dirichlet(alpha, len(n_tokens))
        drawn = [rng.choice(self.n_topics, n, p=share) for n, share in zip(n_tokens, shares)]
        topic = np.concatenate([np.zeros(0, int), *drawn])
        document = np.repeat(np.arange(len(n_tokens)), n_tokens)
        rows, counts = self.simulate_counts(document, topic, topics, len(n_tokens), rng)
        (tokens,) = self.shards(counts)
        state = warm_start.assigned(tokens, rows.assignments, self.n_topics, self.n_words)
        bits = rng.integers(2**64, dtype=np.uint64)
        drawn = self.parameters(alpha, state.word_topics, state.totals, bits)
        return drawn, rows, counts

    def simulate_shares(self, n, rng):
        """Draw the shares of n documents (n, T), and topics (T, V), from the joint law."""
        topics = rng.dirichlet(np.full(self.n_words, self.concentration), self.n_topics)
        return rng.dirichlet(self.initial_alpha, n), topics

    def simulate_counts(self, document, topic, topics, n, rng):
        """Draw a word for each token, given its document and topic, and topics (T, V).

        Returns rows, whose tokens are in the order of documents and words, and counts (n, V).
        """
        ends = np.cumsum(topics, axis=1)[topic]
        word = (rng.random((len(topic), 1)) * ends[:, -1:] >= ends).sum(axis=1)
        order = np.lexsort((word, document))
        counts = np.zeros((n, self.n_words), dtype=np.int64)
        np.add.at(counts, (document, word), 1)
        bits = rng.integers(2**64, size=1, dtype=np.uint64)
        return Rows(topic[order].astype(np.int32), self.initial_alpha, bits), counts

    # Gibbs

    def initial_parameters(self, shards, key):
        """Start without tokens; the first rows bring them."""
        nothing = np.zeros((self.n_words, padded(self.n_topics)), np.float32)
        totals = np.zeros(self.n_topics)
        return self.parameters(self.initial_alpha, nothing, totals, key.at("topics"))

    def prepare(self, parameters):
        return Prior(parameters.alpha, parameters.word_topics, parameters.totals)

    def propose_move(self, parameters, key):
        """Names of topics that tokens have yet to follow."""
        return Renaming(parameters.move) if is_renamed(parameters.move) else None

    def rename_rows(self, rows, order):
        return rows._replace(assignments=np.argsort(order).astype(np.int32)[rows.assignments])

    def initial_rows(self, prior, shard, key):
        """Start tokens anywhere; fold from equal shares."""
        if isinstance(prior, FoldPrior):
            return FoldedRows(np.full((len(shard.rows), self.n_topics), 1.0 / self.n_topics))
        start = warm_start.random_assignments(shard, self.n_topics, key)
        return Rows(start, prior.alpha, np.array([key.at("shares")]))

    def draw_rows(self, prior, shard, rows, key):
        """The topic of each token | those of all others."""
        topics = rows.assignments
        if prior.totals.any():
            carried = prior.word_topics.copy(), prior.totals.copy()
            state = warm_start.State(topics.copy(), *carried)
        else:
            state = warm_start.assigned(shard, topics, self.n_topics, self.n_words)
        return self._swept(prior, shard, state, key)

    def _swept(self, prior, shard, state, key):
        value = warm_start.advance(shard, state, prior.alpha, self.concentration, key.at("topic"))
        counts = None
        if self._learns(key):
            counts = warm_start.count_documents(shard, state.assignments, self.n_topics)
        rows = Rows(state.assignments, prior.alpha, np.array([key.at("shares")]))
        return rows, Statistics(counts, state.word_topics, state.totals, value)

    def _learns(self, key):
        """Say whether alpha would be learned after this sweep."""
        return self.alpha is None and key.sweep % warm_start.LEARN_EVERY == 0

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        """Take over the counts; topics | counts are drawn by `describe_parameters`."""
        _, word_topics, totals, _ = statistics
        return self.parameters(parameters.alpha, word_topics, totals, key.at("topics"))

    def settle(self, parameters, statistics, key, n_burn, ordered_map=map):
        """Learn alpha now and then, while burning in."""
        if self._learns(key):
            alpha = warm_start.learn_alpha(statistics.document_topics, parameters.alpha)
            parameters = parameters._replace(alpha=alpha)
        return self.draw_parameters(parameters, statistics, key, ordered_map)

    def agree(self, chains, key):
        """Give chains the labels of the first, by how alike their topics are."""
        smooth = [p.word_topics[:, : self.n_topics].T + self.concentration for p in chains]
        orders, _ = align(smooth)
        return [self._rename(p, order) for p, order in zip(chains, orders)]

    def _rename(self, parameters, order):
        """Let new topic t be what topic order[t] was; tokens follow before the next sweep."""
        wide = np.concatenate([order, np.arange(self.n_topics, padded(self.n_topics))])
        return parameters._replace(
            alpha=parameters.alpha[order],
            word_topics=np.ascontiguousarray(parameters.word_topics[:, wide]),
            totals=parameters.totals[order],
            move=parameters.move[order],
        )

    def log_likelihood(self, statistics):
        """Return the sum over tokens of log(shares . topics), both at their means given assignments.

        It is a by-product of the sweep: each token counts as things stand right after its draw. At draws
        of shares and topics, as models that are not collapsed have it, it would be a little lower: by
        0.05 for each token of the AP corpus with 50 topics.
        """
        return statistics.value

    # documents given topics: folding

    def fold_prior(self, described):
        """Return what new documents need of a recorded draw."""
        return FoldPrior(np.asarray(described["alpha"], float), **wide(described["topics"].T))

    def fold(self, prior, shard, rows, key):
        """The topic of each token | shares, then shares | topics of tokens."""
        weights, n_tokens = rows.proportions / prior.sizes, int(shard.totals.sum())
        given = (shard, self.word_ids(shard), weights, prior.topics, n_tokens, key)
        counts, _, _ = draw_topics(*given)
        return FoldedRows(draw_shares(prior.alpha, counts, shard.rows, key.at("shares")))

    folds_quickly: ClassVar = True

    def quick_shares(self, prior, shard):
        """Return shares (n, T) of documents given their words, without draws."""
        return settle_dirichlet(prior.alpha, shard, self.word_ids(shard), prior.topics, prior.sizes)

    def prior_rows(self, prior, shard, key):
        """Draw rows as if no word had been seen."""
        nothing = np.zeros((len(shard.rows), self.n_topics))
        return FoldedRows(draw_shares(prior.alpha, nothing, shard.rows, key.at("prior")))

    def proportions_of(self, rows):
        return rows.proportions

    def word_ids(self, shard):
        return shard.words

    # what to record

    def describe_parameters(self, parameters):
        """Return what is recorded: topics (T, V), drawn given the counts."""
        counts = parameters.word_topics.astype(np.int32)
        topics, sizes = np.empty(counts.shape, dtype=np.float32), np.empty(self.n_topics)
        gammas.draw_topics(parameters.bits[0], 0, counts, self.concentration, topics, sizes)
        tokens = counts[:, : self.n_topics].sum(axis=0)
        return {
            "alpha": parameters.alpha,
            "topics": probabilities(topics, sizes),
            "share": tokens / max(1, tokens.sum()),
        }

    def describe_rows(self, shard, rows):
        """Return shares (n, T), drawn given the assignments."""
        counts = warm_start.count_documents(shard, rows.assignments, self.n_topics)
        return {"proportions": draw_shares(rows.alpha, counts, shard.rows, rows.bits[0])}


def draw_shares(alpha, counts, ids, bits):
    """Draw shares (n, T) given the topics of tokens, (n, T) counts."""
    shares = np.empty(counts.shape)
    gammas.draw_dirichlet_rows(bits, ids, counts + alpha, shares)
    return shares
