"""The obvious twins of the kernels of topic models, and corpora for them."""

from typing import NamedTuple

import numpy as np

SMALLEST = np.finfo(np.float64).tiny


class Corpus(NamedTuple):
    rows: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    words: np.ndarray
    counts: np.ndarray
    weights: np.ndarray
    topics: np.ndarray

    @property
    def documents(self):
        """Return the document of each cell."""
        return np.repeat(np.arange(len(self.rows)), self.stops - self.starts)

    def probabilities(self):
        """Return the probabilities of topics in each cell (cells, T), and their totals (cells,)."""
        weights = self.weights[self.documents]
        joint = weights * self.topics[self.words, : weights.shape[1]].astype(float)
        totals = joint.sum(axis=1)
        known = totals > 0
        joint[~known] = weights[~known]
        return joint / joint.sum(axis=1, keepdims=True), np.where(known, totals, SMALLEST)

    def log_likelihood(self):
        """Return the log-likelihood of the tokens."""
        return self.counts @ np.log(self.probabilities()[1])


def pad(topics):
    """Return topics as float32, with columns of zeros up to a multiple of 8."""
    n_words, n_topics = topics.shape
    padded = np.zeros((n_words, -(-n_topics // 8) * 8), np.float32)
    padded[:, :n_topics] = topics
    return padded


def corpus(cells, weights, topics):
    """Return the corpus whose document i has the cells [(word, count), ...] = cells[i]."""
    sizes = [len(document) for document in cells]
    stops = np.cumsum(sizes).astype(np.int64)
    words, counts = np.array([pair for document in cells for pair in document], np.int32).T.copy()
    rows = np.arange(len(cells), dtype=np.uint64) + np.uint64(10)
    weights = np.array(weights, float)
    return Corpus(rows, stops - sizes, stops, words, counts, weights, pad(np.array(topics)))


def random_corpus(rng, n_documents, n_words, n_topics, most=6):
    """Return documents of about half of the words, sparse topics and weights of any magnitude."""
    cells = []
    for _ in range(n_documents):
        words = np.flatnonzero(rng.random(n_words) < 0.5)
        cells.append([(word, rng.integers(1, most)) for word in [*words, 0]])
    weights = rng.dirichlet(np.full(n_topics, 0.3), n_documents) * rng.lognormal(
        sigma=5.0, size=(n_documents, 1)
    )
    topics = rng.gamma(0.3, size=(n_words, n_topics)) * (rng.random((n_words, n_topics)) < 0.7)
    topics[:, 0] += 0.01
    return corpus(cells, weights, topics)


def expect(corpus, counts, topics):
    """Return the expected tokens of topics (n, T) and of words (V, T), and the sum of c log z."""
    n, size = corpus.weights.shape
    of_topics, of_words, value = np.zeros((n, size)), np.zeros((len(topics), size)), 0.0
    for document, word, count in zip(corpus.documents, corpus.words, counts):
        u = corpus.weights[document] * topics[word]
        share = count * u / u.sum()
        of_topics[document] += share
        of_words[word] += share
        value += count * np.log(u.sum())
    return of_topics, of_words, value


def log_posterior(psi, corpus, tree, precision, means, topics):
    """Return log p(words, psi) of each document but for constants, (n,), given topics (V, T)."""
    words = np.array([s @ topics.T for s in tree.probabilities(psi)])
    logs = corpus.counts * np.log(words[corpus.documents, corpus.words])
    gap = psi - means
    return np.bincount(corpus.documents, logs) - 0.5 * np.einsum("ni,ij,nj->n", gap, precision, gap)


def dirichlet_shares(corpus, topics, alpha, n_steps):
    """Return shares (n, T) at which they are expected tokens + alpha, from equal ones on."""
    n = len(corpus.rows)
    shares = np.full((n, len(alpha)), 1.0 / len(alpha))
    for _ in range(n_steps):
        joint = shares[corpus.documents] * topics[corpus.words]
        joint *= (corpus.counts / joint.sum(axis=1))[:, None]
        found = np.tile(alpha, (n, 1))
        np.add.at(found, corpus.documents, joint)
        shares = found / found.sum(axis=1, keepdims=True)
    return shares
