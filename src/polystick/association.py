"""Which categories go together: correlations of log abundances, as far as shares tell them.

Shares know the covariance C of log abundances but for C + a 1' + 1 a', whatever a is: only log-ratios are
seen. Of all these the *sparse gauge* takes the one whose correlations are smallest in sum of sizes, which is
right where most pairs are not associated: it is 0 off the diagonal for independent categories, whatever
their variances. It is the same for all C that differ by a gauge, and in any order of the categories.
"""

import numpy as np

__all__ = ["LEAST_CATEGORIES", "correlations", "double_centred", "sparse_gauge"]

LEAST_CATEGORIES = 5  # below, a gauge could explain any association away
SMALL = 0.1  # size of correlations below which squares are summed instead (Huber)
FLOOR = 0.02  # of its centred variance, the least variance of a category
N_STEPS = 12


def double_centred(cov):
    """Return covariances (..., K, K) of centred log-ratios, the gauge whose rows sum to zero."""
    rows = cov.mean(axis=-1, keepdims=True)
    return cov - rows - np.swapaxes(rows, -1, -2) + rows.mean(axis=-2, keepdims=True)


def sparse_gauge(cov):
    """Return covariances (..., K, K) in the sparse gauge, by iteratively reweighted least squares."""
    k = cov.shape[-1]
    gauged = double_centred(np.asarray(cov, dtype=np.float64))
    least = np.maximum(_diagonal(gauged), 1e-12)
    variance, off = least, 1.0 - np.eye(k)
    for _ in range(N_STEPS):
        both = variance[..., :, None] * variance[..., None, :]
        weight = off / (both * np.maximum(np.abs(gauged) / np.sqrt(both), SMALL))
        weight /= weight.max(axis=(-1, -2), keepdims=True)
        normal = weight + np.eye(k) * weight.sum(axis=-1)[..., None]
        a = np.linalg.solve(normal, -(weight * gauged).sum(axis=-1)[..., None])
        gauged = gauged + a + np.swapaxes(a, -1, -2)
        variance = np.maximum(_diagonal(gauged), FLOOR * least)
    return gauged + np.eye(k) * (variance - _diagonal(gauged))[..., None]


def correlations(cov):
    """Return correlations (..., K, K) in the sparse gauge."""
    gauged = sparse_gauge(cov)
    sd = np.sqrt(_diagonal(gauged))
    return np.clip(gauged / (sd[..., :, None] * sd[..., None, :]), -1.0, 1.0)


def _diagonal(a):
    return np.diagonal(a, axis1=-2, axis2=-1)
