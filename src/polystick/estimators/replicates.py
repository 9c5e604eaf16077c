"""Counts drawn from probabilities, for totals that are given: what predictive checks are made of."""

import numpy as np

__all__ = ["check_room", "check_totals", "drawn_counts", "generator", "totals_of"]

LARGEST = 2**31  # bytes of counts that are drawn at once


def generator(seed, *numbers):
    """Return a NumPy generator that belongs to a seed and to the numbers of what is drawn."""
    return np.random.default_rng([seed, *numbers])


def totals_of(counts):
    """Return the totals (n,) of rows of counts, dense or sparse, which must be whole."""
    return check_totals(np.asarray(counts.sum(axis=1)).ravel(), counts.shape[0])


def check_totals(totals, n):
    """Return totals as integers (n,); one number serves all rows."""
    given = np.asarray(totals)
    whole = given.dtype.kind in "iu" or (
        given.dtype.kind == "f" and bool(np.all(np.isfinite(given) & (given == np.floor(given))))
    )
    if not whole or given.shape not in ((), (n,)) or (given.size and given.min() < 0):
        raise ValueError(
            f"totals must be whole numbers of at least 0, one or {n} of them (one for each row); got "
            f"{totals!r}"
        )
    return np.broadcast_to(given.astype(np.int64), (n,))


def check_room(n_draws, n, n_categories):
    """Raise where so many counts would not fit in memory."""
    size = 4 * n_draws * n * n_categories
    if size > LARGEST:
        raise ValueError(
            f"counts of {n_draws} draws x {n} rows x {n_categories} categories would need "
            f"{size / 2**30:.0f} GiB, more than {LARGEST / 2**30:.0f}; ask for fewer draws (n_draws), or "
            "for some of the rows"
        )


def drawn_counts(probabilities, totals, rng):
    """Return counts (n, K) for probabilities (n, K) and totals (n,)."""
    pi = np.asarray(probabilities, dtype=np.float64)
    return rng.multinomial(totals, pi / pi.sum(axis=1, keepdims=True)).astype(np.int32)
