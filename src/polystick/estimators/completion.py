"""Rows in two parts: what was seen of them, and the rest, which is scored given that."""

import numbers

import scipy.sparse

from polystick import scores

__all__ = ["parts"]


def parts(estimator, X, observed):
    """Return the counts to score and those seen before them, dense or CSR; None where nothing was.

    observed : None, a share of X's own counts, or counts of their own
    """
    counts = estimator._check(X)
    if observed is None:
        return counts, None
    if isinstance(observed, numbers.Real):
        seen, rest = scores.split_words(counts, observed, estimator.seed_)
        return rest.astype(counts.dtype), seen.astype(counts.dtype)
    seen = estimator._check(observed)
    if seen.shape != counts.shape:
        raise ValueError(
            f"observed must have a row for each of the {counts.shape[0]} rows of X; got "
            f"{seen.shape[0]}; put 0 where nothing was seen of a row"
        )
    if scipy.sparse.issparse(seen) != scipy.sparse.issparse(counts):
        return scipy.sparse.csr_array(counts), scipy.sparse.csr_array(seen)
    return counts, seen
