"""Held-out scores, one definition for every model."""

import numpy as np
from scipy.special import logsumexp


def log_mean_exp(values, axis):
    """Return log of the mean of exp(values)."""
    return logsumexp(values, axis=axis) - np.log(np.prod(np.take(np.shape(values), axis)))


def effective_draws(log_weights, axis):
    """Return how many equally weighted draws the importance weights are worth (Kong 1992)."""
    return np.exp(2 * logsumexp(log_weights, axis=axis) - logsumexp(2 * log_weights, axis=axis))


def per_count(log_likelihoods, counts):
    """Return the log likelihood per count, in nats, of rows with these log likelihoods (n,)."""
    total = counts.sum()
    return float(np.sum(log_likelihoods) / total) if total else 0.0
