"""Points that stand for a standard normal law, the same at each call."""

import functools

from scipy.stats import norm, qmc

__all__ = ["standard_normal_points"]


@functools.lru_cache(maxsize=8)
def standard_normal_points(n_points, n_dims):
    """Return low-discrepancy standard normals (n_points, n_dims), the same at each call."""
    uniform = qmc.Sobol(n_dims, rng=20150618).random_base2((n_points - 1).bit_length())
    return norm.ppf(uniform[:n_points])
