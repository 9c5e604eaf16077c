"""Documents as people read them: tables of their shares, and those that speak most of a topic."""

import numpy as np
import pandas as pd

from polystick.models.folding import content_ids

__all__ = ["share_table", "speaking", "speaking_table", "texts_of"]

_SHORT = 0.25  # of the median length; shorter documents come after all others
_LONGEST_TEXT = 160  # characters that are shown


def share_table(shares, index, topics, names=None):
    """Return shares (n, T) as a table with names of the documents, or else their index."""
    if names is not None:
        names = [names] if isinstance(names, str) else list(names)
        if len(names) != len(shares):
            raise ValueError(
                f"names must be {len(shares)}, one for each document; got {len(names)}"
            )
        index = pd.Index(names)
    if index is None:
        index = pd.RangeIndex(len(shares))
    if index.nlevels == 1 and index.name is None:
        index = index.rename("document")
    return pd.DataFrame(shares, index=index, columns=topics)


def speaking(shares, counts, n):
    """Return for each topic the documents with the largest shares (n, T) of it, at most n: a list.

    The longer of two equals comes first. Documents without words are left out, those that are far shorter
    than most come last, and of copies there is the first only.
    """
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    firsts = np.sort(np.unique(content_ids(counts), return_index=True)[1])
    able = firsts[lengths[firsts] > 0]
    short = lengths[able] < _SHORT * np.median(lengths[able]) if len(able) else able
    return [
        able[np.lexsort((-lengths[able], -shares[able, t], short))][:n]
        for t in range(shares.shape[1])
    ]


def speaking_table(found, shares, counts, index, topics, texts):
    """Return a table of documents found for topics: (topic, rank) -> document, share, tokens, text."""
    topic = np.repeat(np.arange(len(found)), [len(one) for one in found])
    rank = np.concatenate([np.arange(1, len(one) + 1) for one in found])
    row = np.concatenate(found).astype(int)
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    table = pd.DataFrame(
        {
            "document": row if index is None else index[row],
            "share": shares[row, topic],
            "tokens": lengths[row],
        },
        index=pd.MultiIndex.from_arrays([topics[topic], rank], names=["topic", "rank"]),
    )
    if texts is not None:
        table["text"] = [shortened(texts[i]) for i in row]
    return table


def texts_of(X, texts, n):
    """Return n strings: those given, or X where its rows are strings; None where there are none."""
    if texts is None:
        values = list(X) if getattr(X, "ndim", 1) == 1 else []
        return values if values and all(isinstance(text, str) for text in values) else None
    texts = list(texts)
    if len(texts) != n or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"texts must be {n} strings, one for each document; got {len(texts)}")
    return texts


def shortened(text):
    """Return the beginning of a text, on one line."""
    line = " ".join(text[: 8 * _LONGEST_TEXT].split())
    if len(line) <= _LONGEST_TEXT:
        return line
    return line[:_LONGEST_TEXT].rsplit(" ", 1)[0] + " …"
