"""Topics as tables, and the trees of words that users describe."""

from functools import partial

import numpy as np
import pandas as pd

from polystick.decomposition import decompose
from polystick.estimators.intervals import interval
from polystick.models.tree_words import similar_words

__all__ = ["check_words", "size_table", "topic_table", "tree_of_words"]


def topic_table(best, share, index):
    """Return a table of topics, largest first: share of the tokens, and their words (T, n_words)."""
    table = pd.DataFrame(best, index=index, columns=pd.RangeIndex(1, best.shape[1] + 1))
    table.insert(0, "share", share)
    return table.sort_values("share", ascending=False)


def size_table(shares, level, index):
    """Return a table of the mean and a central interval of draws of the topics' sizes."""
    found = interval(shares, level, partial(pd.Series, index=index))
    table = pd.DataFrame({"share": found.mean, "lower": found.lower, "upper": found.upper})
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
        if hasattr(counts, "matrices"):
            raise ValueError(
                'word_tree="similar" looks at all documents at once, and got a corpus in parts; give a tree '
                "of your own, or None"
            )
        return similar_words(counts)
    weights = np.asarray(counts.sum(axis=0)).ravel()
    return decompose(spec, n_categories=counts.shape[1], weights=weights, names=names)
