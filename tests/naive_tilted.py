"""The obvious twin of `polystick.kernels.tilted`: a very fine grid over wherever the density may be."""

import numpy as np


def moments(successes, trials, mean, variance, n_points=400_001):
    """Return mean and variance of N(mean, variance) times a binomial likelihood, for one cell."""

    def log_density(x):
        return successes * x - trials * np.logaddexp(0.0, x) - 0.5 * (x - mean) ** 2 / variance

    # all that is within 60 of the maximum, found by looking ever closer
    low, high = mean - 40 * np.sqrt(variance), mean + 40 * np.sqrt(variance)
    low, high = low - (trials - successes) * variance, high + successes * variance
    for _ in range(60):
        x = np.linspace(low, high, 2001)
        value = log_density(x)
        kept = np.flatnonzero(value > value.max() - 60.0)
        low, high = x[max(kept[0] - 1, 0)], x[min(kept[-1] + 1, 2000)]
    x = np.linspace(low, high, n_points)
    weight = np.exp(log_density(x) - log_density(x).max())
    weight /= weight.sum()
    centre = x[weight.argmax()]
    first = (weight * (x - centre)).sum()
    return centre + first, (weight * (x - centre - first) ** 2).sum()
