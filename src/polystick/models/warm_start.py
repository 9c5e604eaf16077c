"""A start for topic models: topics from a short run of collapsed latent Dirichlet allocation.

A cold chain of a correlated topic model needs many sweeps to find its topics; a collapsed sampler with
independent shares finds almost the same ones in a few cheap sweeps. It goes through the tokens one after
another in one thread, so the start is the same on any number of threads. A corpus of more than
`max_tokens` is represented by a random part of it.

Collapsed sampling needs whole tokens: counts that are weights are rounded at random, up as often as
their fraction says, so that small weights are not lost.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma

from polystick.kernels import algebra, collapsed
from polystick.keys import Key
from polystick.models.topic_words import padded

N_TRIAL = 60  # sweeps of each run before the likeliest is chosen
N_SWEEPS = 600  # of that one, in all, but no more than
TOKENS_SWEPT = 300_000_000  # allow
REVIVED = (0.2, 0.4, 0.6)  # when in a run topics that died are given tokens again
DEAD = 0.05  # of an even share of the tokens
TWINS = 0.95  # cosine of the words of two topics that are one
MAX_TOKENS = 1_500_000
MIN_DOCUMENTS = 1000  # of a large corpus; where they are long, each gives a part of its tokens
MOST_STARTS = 8  # runs, but one at least:
TOKENS_OF_STARTS = 400_000  # of all runs together
ALPHA_SUM = 5.0  # before it is learned
LEARN_EVERY = 5  # sweeps
PRIOR_SHAPE, PRIOR_RATE = 1.001, 1.0  # of the gamma prior of alpha, as in MALLET


class Tokens(NamedTuple):
    """Documents token by token. Those of document i are starts[i] .. starts[i + 1]."""

    rows: np.ndarray  # (n,) uint64 ids, which key the random streams
    starts: np.ndarray  # (n + 1,) int64
    words: np.ndarray  # (tokens,) int32


class State(NamedTuple):
    """Where a collapsed sampler stands; its sweeps write into it."""

    assignments: np.ndarray  # (tokens,) int32
    word_topics: np.ndarray  # (V, padded T) float32 whole counts
    totals: np.ndarray  # (T,) whole counts


class Start(NamedTuple):
    """What a warm start found."""

    word_topics: np.ndarray  # (V, T) whole counts
    alpha: np.ndarray  # (T,) concentration of the shares
    document_topics: np.ndarray  # (n, T) whole counts of the documents used
    rows: np.ndarray  # (n,) uint64 ids of the documents used

    def renamed(self, order):
        """Return it with topic t being what topic order[t] was."""
        return self._replace(
            word_topics=self.word_topics[:, order],
            alpha=self.alpha[order],
            document_topics=self.document_topics[:, order],
        )

    @property
    def log_shares(self):
        """Logs of the expected shares (n, T), not normalised."""
        return np.log(self.document_topics + self.alpha)


def collapsed_start(shards, n_topics, n_words, concentration, key,
                    n_sweeps=None, max_tokens=MAX_TOKENS):  # fmt: skip
    """Return a `Start`: `n_sweeps` collapsed sweeps over blocks of `Documents`, or a part of them.

    A small corpus gets several runs, of which the likeliest goes on: on one with six clear topics, one in
    three was stuck with two topics in one.
    """
    tokens = expand(choose(shards, max_tokens, key.generator("warm start")))
    n_tokens = max(1, len(tokens.words))
    if n_sweeps is None:
        n_sweeps = min(N_SWEEPS, max(N_TRIAL, TOKENS_SWEPT // n_tokens))
    n_starts = min(MOST_STARTS, max(1, TOKENS_OF_STARTS // n_tokens))
    runs = [
        _Run(tokens, n_topics, n_words, concentration, Key(key.seed, -1 - number), n_sweeps)
        for number in range(n_starts)
    ]
    for run in runs:
        run.advance(min(N_TRIAL, n_sweeps))
    best = max(runs, key=lambda run: run.value)
    best.advance(n_sweeps - best.sweep)
    return best.found()


class _Run:
    """A collapsed sampler on its way."""

    def __init__(self, tokens, n_topics, n_words, concentration, key, n_sweeps):
        self.tokens, self.n_topics, self.concentration, self.key = (
            tokens,
            n_topics,
            concentration,
            key,
        )
        self.alpha, self.value, self.sweep = initial_alpha(n_topics), -np.inf, 0
        self.revived = [int(part * n_sweeps) for part in REVIVED]
        self.state = assigned(tokens, random_assignments(tokens, n_topics, key), n_topics, n_words)

    def advance(self, n_sweeps):
        for _ in range(n_sweeps):
            if self.sweep in self.revived:
                self._revive()
            bits = self.key.at(f"warm start {self.sweep}")
            self.value = advance(self.tokens, self.state, self.alpha, self.concentration, bits)
            self.sweep += 1
            if self.sweep % LEARN_EVERY == 0:
                self.alpha = learn_alpha(self._document_topics(), self.alpha)

    def _revive(self):
        """Join twins; then let each topic without tokens have those of a large one in half the documents."""
        rng, topics = self.key.generator(f"revive {self.sweep}"), self.state.assignments.copy()
        for kept, joined in twins(self.state.word_topics[:, : self.n_topics]):
            topics[topics == joined] = kept
        document = np.repeat(np.arange(len(self.tokens.rows)), np.diff(self.tokens.starts))
        sizes = np.bincount(topics, minlength=self.n_topics)
        for dead in np.flatnonzero(sizes < DEAD * sizes.mean()):
            large = sizes.argmax()
            half = rng.random(len(self.tokens.rows)) < 0.5
            topics[(topics == large) & half[document]] = dead
            sizes = np.bincount(topics, minlength=self.n_topics)
            self.alpha[[large, dead]] = 0.5 * (self.alpha[large] + self.alpha[dead])
        if (topics != self.state.assignments).any():
            n_words = len(self.state.word_topics)
            self.state = assigned(self.tokens, topics, self.n_topics, n_words)

    def _document_topics(self):
        return count_documents(self.tokens, self.state.assignments, self.n_topics)

    def found(self):
        word_topics = self.state.word_topics[:, : self.n_topics].astype(np.float64)
        return Start(word_topics, self.alpha, self._document_topics(), self.tokens.rows)


def twins(word_topics):
    """Return pairs (kept, joined) of topics, columns of counts (V, T), whose words are the same."""
    lengths = np.maximum(np.linalg.norm(word_topics, axis=0), 1e-30)
    likeness = algebra.gram(word_topics / lengths)
    joined, pairs = set(), []
    for a, b in np.argwhere(np.triu(likeness > TWINS, 1)).tolist():
        if a not in joined and b not in joined:
            joined.add(b)
            pairs.append((a, b))
    return pairs


# tokens


def expand(shards):
    """Return the tokens of blocks of `Documents` with whole counts."""
    lengths = np.concatenate([np.zeros(1, np.int64), *(shard.totals for shard in shards)])
    tokens = Tokens(
        np.concatenate([np.zeros(0, np.uint64), *(shard.rows for shard in shards)]),
        np.cumsum(lengths).astype(np.int64),
        np.concatenate([np.zeros(0, np.int32), *map(_words_of, shards)]),
    )
    _check_sizes(tokens)
    return tokens


def _words_of(shard):
    """Return the word of each token, document after document."""
    n_cells = shard.stops - shard.starts
    skipped = shard.starts - (np.cumsum(n_cells) - n_cells)
    cells = np.arange(n_cells.sum()) + np.repeat(skipped, n_cells)
    return np.repeat(shard.words[cells], shard.counts[cells])


def _check_sizes(tokens):
    longest = int(np.diff(tokens.starts).max(initial=0))
    most = int(np.bincount(tokens.words).max(initial=0))
    if max(longest, most) > collapsed.LARGEST_COUNT:
        what = "document" if longest >= most else "word"
        raise ValueError(
            f"collapsed sampling counts in single precision: a {what} must not have more than "
            f"{collapsed.LARGEST_COUNT} tokens; got {max(longest, most)}; scale the counts down"
        )


def choose(shards, max_tokens, rng):
    """Return blocks of random documents with at most `max_tokens` whole tokens in all.

    Where they would be fewer than `MIN_DOCUMENTS`, long documents give a part of their tokens, drawn
    with replacement.
    """
    in_parts = hasattr(shards, "pick") and shards.totals.dtype.kind in "iu"
    if not in_parts:
        shards = [_whole(shard, rng) for shard in shards]
    lengths = shards.totals if in_parts else _lengths(shards)
    if lengths.sum() <= max_tokens:
        return list(shards)
    longest = max(1, max_tokens // min(MIN_DOCUMENTS, len(lengths)))
    order = rng.permutation(len(lengths))
    used = np.zeros(len(lengths), dtype=bool)
    used[order] = np.cumsum(np.minimum(lengths, longest)[order]) <= max_tokens
    if in_parts:
        return [_shortened(shards.pick(np.flatnonzero(used)), longest, rng)]
    cuts = np.cumsum([len(shard.rows) for shard in shards])[:-1]
    return [
        _shortened(_only(shard, part), longest, rng)
        for shard, part in zip(shards, np.split(used, cuts))
    ]


def _lengths(shards):
    return np.concatenate([np.zeros(0, np.int64), *(shard.totals for shard in shards)])


def _whole(shard, rng):
    if shard.counts.dtype.kind != "f":
        return shard
    up = rng.random(len(shard.counts))
    return shard._replace(counts=np.floor(shard.counts + up).astype(np.int64))


def _only(shard, used):
    return shard._replace(rows=shard.rows[used], starts=shard.starts[used], stops=shard.stops[used])


def _shortened(shard, longest, rng):
    """Let each document have no more than `longest` tokens."""
    counts = shard.counts.copy()
    for i in np.flatnonzero(shard.totals > longest):
        cells = slice(shard.starts[i], shard.stops[i])
        counts[cells] = rng.multinomial(longest, counts[cells] / counts[cells].sum())
    return shard._replace(counts=counts)


# the sampler


def initial_alpha(n_topics):
    return np.full(n_topics, ALPHA_SUM / n_topics)


def random_assignments(tokens, n_topics, key):
    """Return any topic for each token: no worse a start after 60 sweeps than one in the order of tokens."""
    rng = key.generator("assignments")
    return rng.integers(n_topics, size=len(tokens.words), dtype=np.int32)


def assigned(tokens, assignments, n_topics, n_words):
    """Return a state with a copy of these assignments."""
    word_topics = np.zeros((n_words, padded(n_topics)), np.float32)
    collapsed.count_words(tokens.words, assignments, word_topics)
    totals = word_topics[:, :n_topics].sum(axis=0, dtype=np.float64)
    return State(assignments.copy(), word_topics, totals)


def advance(tokens, state, alpha, concentration, bits):
    """Make a sweep over a state, in place; return the log likelihood."""
    return collapsed.sweep_in_place(
        bits, *tokens, state.assignments, alpha, float(concentration),
        state.word_topics, state.totals,
    )  # fmt: skip


def count_documents(tokens, assignments, n_topics):
    """Return how many tokens of each document have each topic, (n, T)."""
    counts = np.zeros((len(tokens.rows), n_topics), np.int64)
    collapsed.count_documents(tokens.starts, assignments, counts)
    return counts


def learn_alpha(document_topics, alpha, n_steps=20):
    """Return a better concentration for counts (n, T) of rows of a Dirichlet-multinomial.

    Steps of Minka's fixed point (2000), each of which raises the density of the counts times a weak
    gamma prior, which keeps the entry of a topic without tokens from 0.
    """
    tallies = [np.bincount(column) for column in document_topics.T]
    found = [1 + np.flatnonzero(tally[1:]) for tally in tallies]
    times = np.concatenate([tally[used] for tally, used in zip(tallies, found)])
    topics = np.repeat(np.arange(len(alpha)), [len(used) for used in found])
    values = np.concatenate(found)
    n_used = np.bincount(topics, times, minlength=len(alpha))
    lengths, n_rows = np.unique(document_topics.sum(axis=1), return_counts=True)
    for _ in range(n_steps):
        gains = np.bincount(topics, times * digamma(alpha[topics] + values), minlength=len(alpha))
        raised = alpha * (gains - n_used * digamma(alpha)) + (PRIOR_SHAPE - 1.0)
        total = alpha.sum()
        told = np.sum(n_rows * (digamma(total + lengths) - digamma(total)))
        alpha = raised / (told + PRIOR_RATE)
    return alpha
