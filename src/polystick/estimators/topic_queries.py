"""Which topics a few words speak of."""

import re

import numpy as np
import pandas as pd
from scipy.special import softmax

from polystick.validation import warn_user

__all__ = ["asked_words", "query_table"]

TOGETHER = "together"


def asked_words(query, names, analyze=None):
    """Return the columns of the words of a query: a string, or a sequence of names.

    analyze : a function from a string to its words, or None; what it does not yield is not looked for
    """
    asked = _cut(query, analyze) if isinstance(query, str) else list(query)
    places = {name: column for column, name in enumerate(names)}
    lower = {str(name).lower(): column for column, name in reversed(list(enumerate(names)))}
    found = {word: places.get(word, lower.get(str(word).lower())) for word in asked}
    unknown = [str(word) for word in found if found[word] is None]
    known = list(dict.fromkeys(column for column in found.values() if column is not None))
    said = ", ".join(repr(word[:40]) for word in unknown[:5]) + (
        ", ..." if len(unknown) > 5 else ""
    )
    if not known:
        raise ValueError(
            f"query must have words of the vocabulary; got {said or 'none'}; `words_` lists those that "
            "there are"
        )
    if unknown:
        warn_user(f"words that are not in the vocabulary are ignored: {said}")
    return known


def _cut(query, analyze):
    return analyze(query) if analyze is not None else re.findall(r"\w[\w'-]*", query)


def query_table(topics, share, words, names, index):
    """Return p(topic | word) of words (q,), columns of topics (T, V), and of all of them together.

    Together they are taken for words of one topic, each drawn on its own.
    """
    with np.errstate(divide="ignore"):
        log_share, log_words = np.log(share), np.log(topics[:, words])
    found = {names[word]: softmax(log_share + log_words[:, i]) for i, word in enumerate(words)}
    table = pd.DataFrame(found, index=index)
    table.insert(0, TOGETHER, softmax(log_share + log_words.sum(axis=1)), allow_duplicates=True)
    return table.sort_values(TOGETHER, ascending=False, kind="stable")
