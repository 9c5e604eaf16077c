"""Coherence and diversity of topics, from how often their top words share a document.

A word counts once per document, wherever it stands in it, and every row of the reference corpus is a
document, an empty one too. Pairs with a word that never occurs in the reference are left out; a topic
that is left without pairs has coherence NaN.
"""

from typing import Any

import numpy as np
import scipy.sparse

from polystick.arguments import Counts

__all__ = ["diversity", "npmi", "umass"]


def umass(top_words: Any, counts: Counts, smoothing: float = 1.0) -> Any:
    """Return the UMass coherence of each topic: the mean over its pairs of words; higher is better.

    A pair l < m, where word l is the more probable in the topic, has
    log((D(l, m) + smoothing) / D(l)), with D the number of documents. Mimno et al. (2011) take the
    sum with smoothing 1; the mean does not depend on how many words are looked at. Times
    n_top (n_top - 1) / 2 it is their sum.

    Parameters
    ----------
    top_words : (T, n_top) ids of words, the most probable first
    counts : (n, V) reference corpus, sparse or dense
    smoothing : float above 0

    Returns
    -------
    (T,)
    """
    if not 0 < smoothing < np.inf:
        raise ValueError(f"smoothing must be finite and above 0; got {smoothing}")

    def score(together, first, second, n):
        return np.log((together + smoothing) / first)

    return _mean_over_pairs(score, top_words, counts)


def npmi(top_words: Any, counts: Counts) -> Any:
    """Return the NPMI coherence of each topic: the mean over its pairs of words, from -1 to 1.

    A pair has log(p(l, m) / (p(l) p(m))) / -log p(l, m) (Bouma 2009; Lau et al. 2014), with p the
    share of documents: -1 where the words never meet, 0 where they are independent, 1 where neither
    comes without the other. Two words in every document have 0: they tell nothing.

    Parameters
    ----------
    top_words : (T, n_top) ids of words, in any order
    counts : (n, V) reference corpus, sparse or dense

    Returns
    -------
    (T,)
    """
    return _mean_over_pairs(_npmi, top_words, counts)


def diversity(top_words: Any) -> float:
    """Return the share of distinct words among all top words (T, n_top) (Dieng et al. 2020)."""
    top_words = _check_words(top_words)
    return len(np.unique(top_words)) / top_words.size


def _npmi(together, first, second, n):
    result = np.where(together > 0, 0.0, -1.0)
    mixed = (together > 0) & (together < n)
    both, one, other = together[mixed] / n, first[mixed] / n, second[mixed] / n
    result[mixed] = np.log(both / (one * other)) / -np.log(both)
    return result


def _mean_over_pairs(score, top_words, counts):
    top_words = _check_words(top_words)
    present = _presence(counts)
    n, n_words = present.shape
    if top_words.min() < 0 or top_words.max() >= n_words:
        raise ValueError(
            f"top_words must be columns of the reference corpus, 0 to {n_words - 1}; "
            f"got {top_words.min()} to {top_words.max()}"
        )
    first, second = np.triu_indices(top_words.shape[1], 1)
    result = np.full(len(top_words), np.nan)
    for topic, words in enumerate(top_words):
        columns = present[:, words]
        together = (columns.T @ columns).toarray().astype(float)
        alone = together.diagonal()
        i, j = (side[(alone[first] > 0) & (alone[second] > 0)] for side in (first, second))
        if len(i):
            result[topic] = np.mean(score(together[i, j], alone[i], alone[j], n))
    return result


def _presence(counts):
    present = scipy.sparse.csc_array(counts, copy=True)
    present.sum_duplicates()
    if present.nnz and not present.data.min() >= 0:
        raise ValueError("counts must not be negative or NaN; got some that are")
    present.eliminate_zeros()
    present.data = np.ones(present.nnz, dtype=np.int64)
    return present


def _check_words(top_words):
    words = np.asarray(top_words)
    if words.ndim != 2 or words.dtype.kind not in "iu" or words.shape[1] < 2 or not len(words):
        raise ValueError(
            "top_words must be integers (n_topics, n_top) with n_top at least 2; "
            f"got {words.dtype} {words.shape}: ids are columns of the counts, not names"
        )
    if np.any(np.diff(np.sort(words, axis=1), axis=1) == 0):
        raise ValueError(
            "top_words must be distinct within a topic; got a topic with one word twice"
        )
    return words
