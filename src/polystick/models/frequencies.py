"""Smoothed frequencies: a discount is taken from each count, and what it takes goes to all categories alike::

(max(n_k - d, 0) + (s + d T) / K) / (N + s)           T: how many categories were seen; d in [0, 1], s > 0

d = 0 is the mean under a Dirichlet prior, the rest that of a Pitman-Yor process. d and s foretell some
stretches of what was seen by the others. Were it each token by all others, then what comes in bursts, as
words do, would be foretold by its neighbours, and what is unseen get too little of what comes later.
"""

import numpy as np
from scipy import optimize
from scipy.special import expit

N_STRETCHES = 10
STRENGTHS = (-7.0, 7.0)  # log of s / K
DISCOUNTS = (-20.0, 20.0)  # log odds of d
STARTS = ((-3.0, -3.0), (-3.0, 0.0), (0.0, -3.0), (0.0, 0.0))


def smoothed(stretches):
    """Return frequencies (K,), all above 0, of the counts (B, K) of stretches that follow each other."""
    stretches = stretches[stretches.any(axis=1)]
    counts, K = stretches.sum(axis=0), stretches.shape[1]
    discount, strength = (0.5, float(K)) if len(stretches) < 2 else _tuned(stretches, counts)
    return _frequency(counts, np.count_nonzero(counts), counts.sum(), K, discount, strength)


def _tuned(stretches, counts):
    """Return the discount and the strength that foretell each stretch best by the others."""
    K, others = len(counts), counts - stretches
    block, category = np.nonzero(stretches)
    alike = np.column_stack([block, others[block, category]])  # these are equally likely
    (block, count), which = _distinct(alike)
    weight = np.bincount(which, stretches[stretches > 0]) / counts.sum()
    n_seen, total = np.count_nonzero(others, axis=1)[block], others.sum(axis=1)[block]

    def loss(logs):
        found = _frequency(count, n_seen, total, K, expit(logs[0]), K * np.exp(logs[1]))
        return -np.sum(weight * np.log(found))

    ends = [
        optimize.minimize(loss, start, method="Nelder-Mead", bounds=(DISCOUNTS, STRENGTHS))
        for start in STARTS
    ]
    best = min(ends, key=lambda end: end.fun).x
    return expit(best[0]), K * np.exp(best[1])


def _distinct(rows):
    """Return the columns of the distinct rows, and which of these each row is."""
    found, which = np.unique(rows, axis=0, return_inverse=True)
    return found.T, which.ravel()


def _frequency(count, n_seen, total, n_categories, discount, strength):
    """Return the frequency of what was counted so often among a total, where so many categories were seen."""
    shared = (strength + discount * n_seen) / n_categories
    return (np.maximum(count - discount, 0.0) + shared) / (total + strength)
