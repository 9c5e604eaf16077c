"""Topics are exchangeable (label switching): before chains are compared, their topics must be matched."""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

__all__ = ["Alignment", "align"]


class Alignment(NamedTuple):
    """The match of each chain with the first one.

    order      : (C, T) int; topic order[c, t] of chain c is matched with topic t of chain 0
    similarity : (C, T) of each matched pair: 1 for equal topics, 0 for topics without a common word
    """

    order: np.ndarray
    similarity: np.ndarray


def align(topics_by_chain: Any) -> Any:
    """Match the topics of each chain with those of the first, one to one.

    The match has the largest total similarity (Hungarian algorithm). Similarity is the Bhattacharyya
    coefficient, sum over words of sqrt(beta beta'), which is 1 - (Hellinger distance)^2. Below about
    one half a pair is no match at all: the chains have found different topics.

    Parameters
    ----------
    topics_by_chain : iterable over C chains of (T, V), non-negative; rows are normalised here

    Returns
    -------
    Alignment (order, similarity): topics_by_chain[c][order[c]] are like topics_by_chain[0]
    """
    roots = [_roots(chain, topics) for chain, topics in enumerate(topics_by_chain)]
    if not roots:
        raise ValueError("topics_by_chain must have at least one chain; got none")
    shapes = [root.shape for root in roots]
    if len(set(shapes)) > 1:
        raise ValueError(f"chains must have topics (T, V) of one shape; got {shapes}")
    itself = np.arange(len(roots[0])), np.ones(len(roots[0]))
    matches = [itself] + [_match(roots[0] @ root.T) for root in roots[1:]]
    return Alignment(*(np.stack(part) for part in zip(*matches)))


def _roots(chain, topics):
    topics = np.asarray(topics, float)
    if topics.ndim != 2:
        raise ValueError(f"topics of chain {chain} must have shape (T, V); got {topics.shape}")
    totals = topics.sum(axis=1, keepdims=True)
    if not (np.all(topics >= 0) and np.all(totals > 0) and np.all(np.isfinite(totals))):
        raise ValueError(
            f"topics of chain {chain} must be finite, non-negative, and not all zero in any row; "
            "got others: pass probabilities or expected counts of words"
        )
    return np.sqrt(topics / totals)


def _match(similarity):
    rows, order = linear_sum_assignment(similarity, maximize=True)
    return order, similarity[rows, order]
