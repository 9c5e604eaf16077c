"""Topics as tables, and the trees of words that users describe."""

import numpy as np
import pandas as pd

from polystick.decomposition import decompose
from polystick.estimators.intervals import interval
from polystick.models.tree_words import similar_words

__all__ = ["check_words", "size_table", "topic_table", "tree_of_words"]


def topic_table(topics, share, words, n_words):
    """Return a table of topics (T, V), largest first: share of the tokens, and the likeliest words."""
    best = np.argsort(-topics, axis=1, kind="stable")[:, :n_words]
    table = pd.DataFrame(words[best], columns=pd.RangeIndex(1, best.shape[1] + 1))
    table.insert(0, "share", share)
    return _largest_first(table)


def size_table(shares, level):
    """Return a table of the mean and a central interval of draws of the topics' sizes."""
    found = interval(shares, level, pd.Series)
    table = pd.DataFrame({"share": found.mean, "lower": found.lower, "upper": found.upper})
    return _largest_first(table)


def _largest_first(table):
    table.index.name = "topic"
    return table.sort_values("share", ascending=False)


def check_words(words, n):
    """Return names of n words."""
    names = np.asarray(words, dtype=object)
    if names.shape != (n,):
        raise ValueError(f"words must be {n} names, one for each column; got shape {names.shape}")
    if len(set(names)) < len(names):
        raise ValueError(
            "words must differ; got a vocabulary with doubled names; join their columns"
        )
    return names


def tree_of_words(spec, counts, names):
    """Return the tree that a user describes, for the words of counts (n, V)."""
    if isinstance(spec, str) and spec == "similar":
        return similar_words(counts)
    weights = np.asarray(counts.sum(axis=0)).ravel()
    return decompose(spec, n_categories=counts.shape[1], weights=weights, names=names)
