"""What `dense` does, for arrays of any kind and vectors: products and roots that round alike everywhere.

For what is larger than a law of rows, such as all points of a Gaussian process, BLAS is the faster way.
"""

import numpy as np

from polystick.kernels import dense
from polystick.kernels.dense import FULL, LOWER, UPPER

__all__ = ["FULL", "LOWER", "UPPER", "gram", "inverse", "inverted", "log_det", "multiply"]
__all__ += ["pivoted_root", "quadratic", "root", "solve", "solve_lower", "solve_upper"]


def gram(x, shape=FULL):
    """Return x' x."""
    return dense.gram(_buffer(x), shape)


def multiply(a, b):
    """Return a b, for a matrix a, and b a matrix or a vector."""
    out = dense.product(_buffer(a.T), _columns(b))
    return out.reshape(len(a), *b.shape[1:])


def root(a):
    """Return U upper triangular with a = U' U; NaN if a is not positive definite."""
    found = dense.root(_buffer(a))
    return found if np.isfinite(found.sum()) else np.full_like(found, np.nan)


def pivoted_root(a):
    """Return U and an order, U' U = a[order][:, order]; each pivot is the largest variance that is left."""
    found, order = dense.pivoted_root(_buffer(a))
    return (found if np.isfinite(found.sum()) else np.full_like(found, np.nan)), order


def solve_lower(u, b, shape=FULL):
    """Return U'^-1 b; the shape is that of b."""
    return dense.solve_lower(_buffer(u), _columns(b), shape).reshape(b.shape)


def solve_upper(u, b, shape=FULL):
    """Return U^-1 b; the shape is that of b."""
    return dense.solve_upper(_buffer(u.T), _columns(b), shape).reshape(b.shape)


def solve(u, b):
    """Return (U' U)^-1 b."""
    return solve_upper(u, solve_lower(u, b))


def inverse(u):
    """Return (U' U)^-1."""
    return gram(solve_lower(u, np.eye(len(u)), LOWER), LOWER)


def inverted(a):
    """Return a^-1 for a positive definite, else NaN."""
    return inverse(root(a))


def quadratic(a, x):
    """Return x' a x for a symmetric."""
    return np.sum(x * multiply(a, x))


def log_det(u):
    """Return log|U' U|."""
    return 2.0 * np.log(np.diag(u)).sum()


def _buffer(x):
    """Return what kernels take; a copy is quicker than what `as_buffer` does to spare one."""
    if type(x) is np.ndarray and x.dtype == np.float64 and x.flags.carray:
        return x
    return np.array(x, dtype=np.float64, order="C")


def _columns(b):
    return _buffer(b if b.ndim == 2 else b[:, None])
