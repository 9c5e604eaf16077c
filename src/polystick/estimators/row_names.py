"""Names of rows: the index of a table, as labels that any file can hold."""

import numpy as np
import pandas as pd
import scipy.sparse

from polystick.models.folding import content_ids

__all__ = ["ids_of", "labels_of", "named", "row_labels", "same_rows"]


def labels_of(X):
    """Return a label for each row of a table: whole numbers or strings; None where rows have no names.

    The levels of a MultiIndex are joined, as in "CA, 1990". Labels that are not all different name nothing.
    """
    index = getattr(X, "index", None)
    if not isinstance(index, pd.Index):
        return None
    if isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(index))):
        return None
    if pd.api.types.is_integer_dtype(index.dtype) and not index.hasnans:
        labels = index.to_numpy(dtype=np.int64)
    else:
        labels = np.array([_text(label) for label in _plain(index)], dtype=object).astype(str)
    return labels if len(np.unique(labels)) == len(labels) else None


def named(axis, X):
    """Return axis -> labels for the coordinates of a posterior; nothing where rows have no names."""
    labels = labels_of(X)
    return {} if labels is None else {axis: labels}


def row_labels(posterior, axis):
    """Return the labels of rows that a posterior has kept, as an index; None where rows have no names."""
    kept = posterior.tree["running"].coords if "running" in posterior.tree.children else {}
    return pd.Index(kept[axis].values) if axis in kept else None


def _plain(index):
    """Return the index with dates as pandas writes them."""
    is_time = isinstance(index, pd.DatetimeIndex | pd.PeriodIndex | pd.TimedeltaIndex)
    return index.astype(str) if is_time else index


def _text(label):
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def ids_of(counts):
    """Return a number (n,) for each row of counts that only its contents decide, to know rows again."""
    if hasattr(counts, "matrices"):
        return np.concatenate(list(map(content_ids, counts.matrices())))
    return content_ids(scipy.sparse.csr_array(counts))


def same_rows(seen, counts):
    """Tell whether these are the rows whose ids were seen, in their order."""
    return np.array_equal(seen, ids_of(counts))
