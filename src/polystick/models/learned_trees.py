"""Trees learned from the data: categories that are seen together are near each other.

What is near is told by vectors. Of tokens: how much more often than by chance two of them are at most a few
steps apart (positive pointwise mutual information; Church and Hanks 1990), and the leading part of a
singular value decomposition of that. Of rows of counts: the leading part of how log shares vary. The
categories are then halved along the direction in which they differ most, and the halves again, which puts
them in a row. Those that were never seen tell nothing. They are spread evenly over the row: in a subtree of
their own, all data would say of one split that nothing goes there.
"""

import itertools

import numpy as np
import scipy.sparse
from scipy.sparse import linalg

from polystick.decomposition import Decomposition

WINDOW = 5  # steps
MOST_DIMS = 30
MOST_DENSE = 2000  # rows or columns of a table that is decomposed as a whole


def learn_from_tokens(sequences, n_categories):
    """Return a tree over the categories of sequences of tokens, -1 where one is missing."""
    K, together = n_categories, scipy.sparse.csr_array((n_categories, n_categories))
    for tokens, lag in itertools.product(sequences, range(1, WINDOW + 1)):
        a, b = tokens[:-lag], tokens[lag:]
        seen = (a >= 0) & (b >= 0)
        pairs = np.ones(seen.sum()), (a[seen], b[seen])
        together = together + scipy.sparse.coo_array(pairs, shape=(K, K)).tocsr()
    together = (together + together.T).tocoo()
    often = together.sum(axis=1)
    i, j = together.coords
    gain = np.log(together.data * together.sum() / (often[i] * often[j]))
    kept = gain > 0.0
    table = scipy.sparse.csr_array((gain[kept], (i[kept], j[kept])), shape=(K, K))
    return _halved(_leading(table), often > 0)


def learn_from_counts(tables):
    """Return a tree over the columns of tables of counts (n, K), dense or CSR."""
    counts = np.concatenate([t.toarray() if scipy.sparse.issparse(t) else t for t in tables])
    logs = np.log(counts + 0.5)
    logs -= logs.mean(axis=1, keepdims=True)
    return _halved(_leading((logs - logs.mean(axis=0)).T), counts.any(axis=0))


def _leading(table):
    """Return vectors of the rows of a table (K, n)."""
    n_dims = min(MOST_DIMS, min(table.shape) - 1)
    if n_dims < 1 or not abs(table).sum():
        return np.zeros((table.shape[0], 1))
    if max(table.shape) <= MOST_DENSE:
        dense = table.toarray() if scipy.sparse.issparse(table) else table
        left, values, _ = np.linalg.svd(dense, full_matrices=False)
        return left[:, :n_dims] * np.sqrt(values[:n_dims])
    start = np.random.default_rng(0).random(min(table.shape))  # the same data give the same tree
    left, values, _ = linalg.svds(table.astype(np.float64), k=n_dims, v0=start)
    return left * np.sqrt(values)


def _halved(vectors, is_seen):
    """Return the tree of categories with vectors (K, d); those that were not seen are spread over it."""
    seen, unseen = _in_a_row(vectors, np.flatnonzero(is_seen)), np.flatnonzero(~is_seen)
    places = np.concatenate([
        (np.arange(len(part)) + 0.5) / max(1, len(part)) for part in (seen, unseen)
    ])  # fmt: skip
    row = np.concatenate([seen, unseen])[np.argsort(places, kind="stable")]
    return Decomposition.from_tuples(_nested(row.tolist()))


def _in_a_row(vectors, members):
    """Return the members in the order of the leaves of their tree."""
    if len(members) < 2:
        return members
    centred = vectors[members] - vectors[members].mean(axis=0)
    direction = np.linalg.eigh(centred.T @ centred)[1][:, -1]
    direction *= np.sign(direction[np.argmax(np.abs(direction))])
    order = members[np.argsort(centred @ direction, kind="stable")]
    half = -(-len(order) // 2)
    return np.concatenate([_in_a_row(vectors, part) for part in (order[:half], order[half:])])


def _nested(row):
    if len(row) == 1:
        return row[0]
    half = -(-len(row) // 2)
    return _nested(row[:half]), _nested(row[half:])
