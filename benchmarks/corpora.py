"""Corpora for the topic benchmarks: AP from the shared data, and a synthetic one of any size."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

VARIABLE, FILE = "POLYSTICK_DATA", "ap_counts.npz"
N_TEST = 112
BLOCK = 2000  # synthetic documents that are made at once


class MissingDataError(Exception):
    """The shared data are not there."""


class Split(NamedTuple):
    """Documents to learn from and documents to complete, over the words seen in training."""

    train: scipy.sparse.csr_array
    test: scipy.sparse.csr_array
    vocabulary: list


def load_ap():
    """Return counts (2246, 10473) as a CSR array, and the words."""
    folder = os.environ.get(VARIABLE)
    if not folder or not (Path(folder) / FILE).is_file():
        raise MissingDataError(f"the topic benchmarks need {FILE} in the folder {VARIABLE} names")
    with np.load(Path(folder) / FILE) as stored:
        parts = (stored["data"].astype(np.int64), stored["indices"], stored["indptr"])
        counts = scipy.sparse.csr_array(parts, shape=tuple(stored["shape"]))
        return counts, stored["vocab"].tolist()


def split_ap(seed):
    """Hold out N_TEST random documents; words that only they have are left out."""
    counts, vocabulary = load_ap()
    order = np.random.default_rng(seed).permutation(counts.shape[0])
    test, train = counts[np.sort(order[:N_TEST])], counts[np.sort(order[N_TEST:])]
    seen = np.flatnonzero(train.sum(axis=0))
    return Split(train[:, seen], test[:, seen], [vocabulary[i] for i in seen])


def synthetic(n, *, n_words=10_000, n_topics=50, n_tokens=100, seed=0):
    """Return counts of n documents from a logistic-normal topic model with correlated topics."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.05), n_topics)
    edges = np.cumsum(topics, axis=1)
    edges[:, -1] = 1.0
    loadings = rng.normal(size=(n_topics, 5))
    blocks = []
    for start in range(0, n, BLOCK):
        size = min(BLOCK, n - start)
        logits = rng.normal(size=(size, 5)) @ loadings.T + rng.normal(size=(size, n_topics))
        blocks.append(_documents(logits, edges, n_tokens, rng))
    return scipy.sparse.vstack(blocks, format="csr")


def _documents(logits, edges, n_tokens, rng):
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    of_topic = rng.multinomial(n_tokens, shares / shares.sum(axis=1, keepdims=True))
    rows = np.concatenate([np.repeat(np.arange(len(of_topic)), column) for column in of_topic.T])
    words = np.concatenate(
        [np.searchsorted(edge, rng.random(n)) for edge, n in zip(edges, of_topic.sum(axis=0))]
    )
    ones = np.ones(len(rows), dtype=np.int32)
    return scipy.sparse.coo_array((ones, (rows, words)), (len(logits), edges.shape[1])).tocsr()
