"""Corpora for the topic benchmarks: AP and 20 Newsgroups from the shared data, and a synthetic one."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

VARIABLE, FILE = "POLYSTICK_DATA", "ap_counts.npz"
CSR = ("data", "indices", "indptr", "shape")
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
    counts, stored = _load(FILE, "vocab")
    return counts, stored["vocab"].tolist()


def split_ap(seed):
    """Hold out N_TEST random documents; words that only they have are left out."""
    return _split(*load_ap(), N_TEST, seed)


def split(name, seed):
    """Hold out documents of one of CORPORA."""
    corpus = CORPORA[name]
    counts, words = corpus.load()
    return _split(counts, words, corpus.n_test, seed)


def _ap_thousand():
    counts, _ = _load("ap_bow_v10000.npz")
    return counts[:, :1000], [f"w{i}" for i in range(1000)]


def _newsgroups():
    counts, stored = _load("20news_bow_v10000.npz", "is_train")
    counts = counts[np.flatnonzero(stored["is_train"])][:, :1000]
    return counts[np.flatnonzero(counts.sum(axis=1) >= 5)], [f"w{i}" for i in range(1000)]


class Corpus(NamedTuple):
    """A corpus to complete documents of, and what correlated topics are to gain on LDA."""

    title: str
    load: Callable
    n_topics: int
    concentration: float
    n_test: int
    gains: tuple


CORPORA = {
    "ap": Corpus("AP, all terms, T = 50", load_ap, 50, 0.05, 300, (0.03, 0.02, 0.0, -0.005)),
    "ap1000": Corpus(
        "AP, 1000 terms, T = 100", _ap_thousand, 100, 0.05, 300, (0.045, 0.045, 0.02, 0.01)
    ),
    "newsgroups": Corpus(
        "20 Newsgroups, 1000 terms, T = 50", _newsgroups, 50, 0.1, 800, (0.01, 0.025, 0.02, 0.02)
    ),
}


def _load(file, *names):
    folder = os.environ.get(VARIABLE)
    if not folder or not (Path(folder) / file).is_file():
        raise MissingDataError(f"the topic benchmarks need {file} in the folder {VARIABLE} names")
    with np.load(Path(folder) / file) as stored:
        stored = {name: stored[name] for name in (*CSR, *names)}
    parts = (stored["data"].astype(np.int64), stored["indices"], stored["indptr"])
    return scipy.sparse.csr_array(parts, shape=tuple(stored["shape"])), stored


def _split(counts, vocabulary, n_test, seed):
    order = np.random.default_rng(seed).permutation(counts.shape[0])
    test, train = counts[np.sort(order[:n_test])], counts[np.sort(order[n_test:])]
    seen = np.flatnonzero(train.sum(axis=0))
    return Split(train[:, seen], test[:, seen], [vocabulary[i] for i in seen])


def synthetic(n, **options):
    """Return counts of n documents from a logistic-normal topic model with correlated topics."""
    return scipy.sparse.vstack(list(synthetic_blocks(n, **options)), format="csr")


def synthetic_blocks(n, *, n_words=10_000, n_topics=50, n_tokens=100, seed=0):
    """Yield them by BLOCK documents."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.05), n_topics)
    edges = np.cumsum(topics, axis=1)
    edges[:, -1] = 1.0
    loadings = rng.normal(size=(n_topics, 5))
    for start in range(0, n, BLOCK):
        size = min(BLOCK, n - start)
        logits = rng.normal(size=(size, 5)) @ loadings.T + rng.normal(size=(size, n_topics))
        yield _documents(logits, edges, n_tokens, rng)


def _documents(logits, edges, n_tokens, rng):
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    of_topic = rng.multinomial(n_tokens, shares / shares.sum(axis=1, keepdims=True))
    rows = np.concatenate([np.repeat(np.arange(len(of_topic)), column) for column in of_topic.T])
    words = np.concatenate(
        [np.searchsorted(edge, rng.random(n)) for edge, n in zip(edges, of_topic.sum(axis=0))]
    )
    ones = np.ones(len(rows), dtype=np.int32)
    return scipy.sparse.coo_array((ones, (rows, words)), (len(logits), edges.shape[1])).tocsr()
