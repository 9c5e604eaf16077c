"""What others say of associations: correlations of centred log-ratios, SparCC, the graphical lasso."""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.covariance import GraphicalLassoCV

THRESHOLD, N_EXCLUSIONS = 0.1, 10  # SparCC's own
N_DRAWS, N_NULLS = 20, 50  # of shares, and of tables without associations
LEAST_VARIANCE = 1e-4


class Told(NamedTuple):
    """What a method says of all pairs of categories."""

    value: np.ndarray  # (K, K)
    known: np.ndarray  # (K, K) which are told not to be zero, at 90 %
    lower: np.ndarray | None = None  # ends of the 90 % intervals
    upper: np.ndarray | None = None


def centred(counts):
    log = np.log(counts + 0.5)
    return log - log.mean(axis=1, keepdims=True)


def clr(counts, seed):
    """Correlate centred log-ratios of counts + 1/2; Fisher's intervals."""
    value = np.corrcoef(centred(counts), rowvar=False)
    z = np.arctanh(value - 1e-9 * np.eye(len(value)))
    reach = norm.ppf(0.95) / np.sqrt(len(counts) - 3)
    return Told(value, np.abs(z) > reach, np.tanh(z - reach), np.tanh(z + reach))


def lasso(counts, seed):
    """Partial correlations of centred log-ratios by the graphical lasso, its penalty cross-validated."""
    log = centred(counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where it does not converge it says so
        model = GraphicalLassoCV(cv=5).fit((log - log.mean(axis=0)) / log.std(axis=0))
    precision = model.precision_
    sd = np.sqrt(np.diag(precision))
    return Told(-precision / np.outer(sd, sd), precision != 0)


def sparcc(counts, seed):
    """SparCC (Friedman and Alm 2012): medians over draws of shares; p-values by shuffled columns."""
    rng = np.random.default_rng(seed)
    value = median_correlations(counts, rng)
    null = [median_correlations(shuffled(counts, rng), rng) for _ in range(N_NULLS)]
    beyond = (np.abs(value) <= np.abs(null)).sum(axis=0)
    return Told(value, (beyond + 1) / (N_NULLS + 1) <= 0.1)


def median_correlations(counts, rng):
    return np.median([basis_correlations(counts, rng) for _ in range(N_DRAWS)], axis=0)


def shuffled(counts, rng):
    """Draw each column anew from itself, so that none knows of another."""
    drawn = rng.integers(len(counts), size=counts.shape)
    return np.take_along_axis(counts, drawn, axis=0)


def basis_correlations(counts, rng):
    """Return SparCC's correlations for one draw of the rows' shares."""
    log = np.log(np.maximum(rng.standard_gamma(counts + 1.0), 1e-300))
    cov = np.cov(log, rowvar=False)
    variation = np.diag(cov)[:, None] + np.diag(cov) - 2 * cov  # of log-ratios, whatever the level
    used = 1.0 - np.eye(len(cov))
    for _ in range(N_EXCLUSIONS + 1):
        value = _correlations(variation, used)
        strongest = np.unravel_index(np.argmax(np.abs(value) * used), value.shape)
        if np.abs(value[strongest]) * used[strongest] <= THRESHOLD or used.sum(axis=0).min() <= 3:
            break
        used[strongest] = used[strongest[::-1]] = 0.0
    return value


def _correlations(variation, used):
    """Return correlations if those of used pairs are zero on average."""
    system = np.diag(used.sum(axis=0)) + used
    variance = np.maximum(np.linalg.solve(system, (variation * used).sum(axis=0)), LEAST_VARIANCE)
    cov = 0.5 * (variance[:, None] + variance - variation)
    return np.clip(cov / np.sqrt(np.outer(variance, variance)), -1.0, 1.0)
