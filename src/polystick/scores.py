"""Held-out scores and weighted draws, one definition for every model."""

import numpy as np
from scipy.special import logsumexp, softmax

__all__ = ["effective_draws", "log_mean_exp", "per_count", "resampled", "softmax"]


def log_mean_exp(values, axis):
    """Return log of the mean of exp(values)."""
    return logsumexp(values, axis=axis) - np.log(np.shape(values)[axis])


def effective_draws(log_weights, axis):
    """Return how many equally weighted draws the importance weights are worth (Kong 1992)."""
    return np.exp(2 * logsumexp(log_weights, axis=axis) - logsumexp(2 * log_weights, axis=axis))


def resampled(weights, draws, n_draws):
    """Return draws of equal weight (n_draws, n, ...) from weighted ones (n, d), (n, d, ...).

    Systematic resampling (Kitagawa 1996) with its offset in the middle: no draw is at random.
    """
    levels = (np.arange(n_draws) + 0.5) / n_draws
    edges = np.cumsum(weights, axis=1)
    picked = [np.searchsorted(row[:-1], levels * row[-1]) for row in edges]
    return np.stack([row[index] for row, index in zip(draws, picked)], axis=1)


def per_count(log_likelihoods, counts):
    """Return the log likelihood per count, in nats, of rows with these log likelihoods (n,)."""
    total = counts.sum()
    return float(np.sum(log_likelihoods) / total) if total else 0.0
