"""Smoothed frequencies: a number is added to each count, such that each token is foretold by the others."""

import numpy as np
from scipy import optimize

LEAST, MOST = -7.0, 3.0  # log of what is added


def smoothed(counts):
    """Return frequencies (K,) of counts (K,), all above 0.

    What is added to each count, a, makes the product over tokens of (n_k - 1 + a) / (N - 1 + K a) largest:
    each is left out of the counts once. Where most categories were seen once, what is unseen gets much.
    """
    K, total, seen = len(counts), counts.sum(), counts[counts > 0]
    if total < 2:
        return np.full(K, 1.0 / K)

    def loss(log_added):
        added = np.exp(log_added)
        told = np.sum(seen * np.log(seen - 1.0 + added))
        return total * np.log(total - 1.0 + K * added) - told

    added = np.exp(optimize.minimize_scalar(loss, bounds=(LEAST, MOST), method="bounded").x)
    return (counts + added) / (total + K * added)
