"""A start for topic models: topics from a short run of collapsed latent Dirichlet allocation.

A cold chain of a correlated topic model needs many sweeps to find its topics; a collapsed sampler with
independent proportions finds almost the same ones in a few cheap sweeps. It goes through the tokens
one after another in one thread, so the start is the same on any number of threads. A corpus of more
than `max_tokens` is represented by a random part of it.

Collapsed sampling needs whole tokens: counts that are weights are rounded to the nearest whole number.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma

from polystick.kernels import collapsed

N_SWEEPS = 60
MAX_TOKENS = 1_500_000
MIN_DOCUMENTS = 1000  # of a large corpus: longer documents give a part of their tokens
LEARN_AFTER, LEARN_EVERY = 5, 5


class Tokens(NamedTuple):
    """Documents token by token. Those of document i are starts[i] .. starts[i + 1]."""

    rows: np.ndarray  # (n,) uint64 ids, which key the random streams
    starts: np.ndarray  # (n + 1,) int64
    words: np.ndarray  # (tokens,) int32


class State(NamedTuple):
    """Where a collapsed sampler stands; its sweeps write into it."""

    assignments: np.ndarray  # (tokens,) int32
    word_topics: np.ndarray  # (V, Tp) float32 whole counts; padding 0
    totals: np.ndarray  # (T,) float64 whole counts


class Start(NamedTuple):
    """What a warm start found."""

    word_topics: np.ndarray  # (V, T) float64 whole counts
    alpha: np.ndarray  # (T,) concentration of the proportions
    document_topics: np.ndarray  # (n, T) int64 counts of the documents used
    rows: np.ndarray  # (n,) uint64 ids of the documents used


def collapsed_start(shards, n_topics, n_words, concentration, key,
                    n_sweeps=N_SWEEPS, max_tokens=MAX_TOKENS):  # fmt: skip
    """Return a `Start`: `n_sweeps` collapsed sweeps over the documents or a random part of them."""
    tokens = expand(shards)
    if len(tokens.words) > max_tokens:
        tokens = choose(tokens, max_tokens, key.generator("warm start"))
    alpha, state = np.full(n_topics, 5.0 / n_topics), unassigned(tokens, n_topics, n_words)
    for sweep in range(n_sweeps):
        advance(tokens, state, alpha, concentration, key.at(f"warm start {sweep}"))
        if sweep >= LEARN_AFTER and sweep % LEARN_EVERY == 0:
            alpha = learn_alpha(count_documents(tokens, state.assignments, n_topics), alpha)
    document_topics = count_documents(tokens, state.assignments, n_topics)
    word_topics = state.word_topics[:, :n_topics].astype(np.float64)
    return Start(word_topics, alpha, document_topics, tokens.rows)


# tokens


def expand(shards):
    """Return the tokens of blocks of `Documents`."""
    parts = [_expand_block(shard) for shard in shards]
    lengths = np.concatenate([length for length, _ in parts] or [np.zeros(0, np.int64)])
    return Tokens(
        np.concatenate([shard.rows for shard in shards] or [np.zeros(0, np.uint64)]),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([words for _, words in parts] or [np.zeros(0, np.int32)]),
    )


def _expand_block(shard):
    """Return the number of tokens of each document, and their words."""
    n_cells = shard.stops - shard.starts
    firsts = np.cumsum(n_cells) - n_cells
    cells = np.arange(n_cells.sum()) + np.repeat(shard.starts - firsts, n_cells)
    counts = np.rint(shard.counts[cells]).astype(np.int64)
    sums = np.concatenate([[0], np.cumsum(counts)])
    lengths = sums[firsts + n_cells] - sums[firsts]
    return lengths, np.repeat(shard.words[cells], counts).astype(np.int32)


def choose(tokens, max_tokens, rng):
    """Return random documents of at most `max_tokens` in all, in their order.

    A document longer than its part of them, for `MIN_DOCUMENTS`, gives so many random tokens.
    """
    lengths = np.diff(tokens.starts)
    longest = max(1, max_tokens // min(MIN_DOCUMENTS, len(lengths)))
    order = rng.permutation(len(lengths))
    within = np.cumsum(np.minimum(lengths, longest)[order]) <= max_tokens
    chosen = np.sort(order[within])
    words = [tokens.words[tokens.starts[i] : tokens.starts[i + 1]] for i in chosen]
    words = [w if len(w) <= longest else rng.choice(w, longest, replace=False) for w in words]
    starts = np.concatenate([[0], np.cumsum([len(w) for w in words])]).astype(np.int64)
    return Tokens(tokens.rows[chosen], starts, np.concatenate(words))


# the sampler


def unassigned(tokens, n_topics, n_words):
    """Return a state in which no token has a topic yet."""
    return State(
        np.full(len(tokens.words), collapsed.UNASSIGNED, np.int32),
        np.zeros((n_words, padded(n_topics)), np.float32),
        np.zeros(n_topics),
    )


def padded(n_topics):
    """Return the number of topics, rounded up to full lanes."""
    return -(-n_topics // collapsed.LANES) * collapsed.LANES


def advance(tokens, state, alpha, concentration, bits):
    """Make a sweep over a state, in place; return the log likelihood."""
    return collapsed.sweep_in_place(
        bits, *tokens, state.assignments, alpha, float(concentration), *state[1:]
    )


def count_documents(tokens, assignments, n_topics):
    """Return the topic counts (n, T) of each document."""
    counts = np.zeros((len(tokens.rows), n_topics), np.int64)
    collapsed.count_documents(tokens.starts, assignments, counts)
    return counts


def learn_alpha(document_topics, alpha, n_steps=20):
    """Return a better concentration for counts (n, T) of rows of a Dirichlet-multinomial.

    Steps of Minka's fixed point (2000), each of which raises the density of the counts times that of
    a gamma prior on each entry, with shape 1.001 and rate 1 (McCallum's), which keeps the entry of
    an empty topic from 0.
    """
    rows, topics = np.nonzero(document_topics)
    longest = int(document_topics.max(initial=0)) + 1
    codes, times = np.unique(topics * longest + document_topics[rows, topics], return_counts=True)
    topics, values = codes // longest, codes % longest
    lengths, n_rows = np.unique(document_topics.sum(axis=1), return_counts=True)
    for _ in range(n_steps):
        gains = times * (digamma(alpha[topics] + values) - digamma(alpha[topics]))
        up = alpha * np.bincount(topics, gains, minlength=len(alpha)) + 0.001
        total = alpha.sum()
        alpha = up / (n_rows @ (digamma(total + lengths) - digamma(total)) + 1.0)
    return alpha
