"""Noise of each input's own, as a covariance."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel, StationaryKernelMixin

__all__ = ["OwnNoise"]


class OwnNoise(StationaryKernelMixin, Kernel):
    """A variance of each input's own: what a place has and its neighbours have not.

    scikit-learn's `WhiteKernel` is another noise each time that an input is looked at. This one belongs
    to the input: where all columns are equal, so is the noise. A prediction at an input of the fit has the
    noise that was found there, and one at a new input is the average over what it may be.

    Parameters
    ----------
    variance : float
    variance_bounds : pair of floats or "fixed"

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> from polystick.covariances import OwnNoise
    >>> kernel = Matern(30.0, nu=1.5) + OwnNoise(0.5)
    >>> kernel([[1960.0]], [[1960.0], [1961.0]]).round(2)
    array([[1.5, 1. ]])
    """

    def __init__(self, variance: float = 1.0, variance_bounds: Any = (1e-5, 1e5)) -> None:
        self.variance = variance
        self.variance_bounds = variance_bounds

    @property
    def hyperparameter_variance(self) -> Any:
        """The variance with its bounds."""
        return Hyperparameter("variance", "numeric", self.variance_bounds)

    def __call__(self, X, Y=None, eval_gradient=False):
        """Return the covariances of X and Y (or X), and on demand their gradient in theta."""
        if Y is not None and eval_gradient:
            raise ValueError("a gradient needs the covariances of X with itself; got Y as well")
        cov = self.variance * _equal(X, X if Y is None else Y)
        if not eval_gradient:
            return cov
        fixed = self.hyperparameter_variance.fixed
        return cov, np.empty((*cov.shape, 0)) if fixed else cov[..., None].copy()

    def diag(self, X: np.ndarray) -> np.ndarray:
        """Return the variances at X."""
        return np.full(len(X), float(self.variance))

    def __repr__(self):
        """Show the variance."""
        return f"{type(self).__name__}({self.variance:.3g})"


def _equal(a, b):
    """Tell which rows of a (n, d) and b (m, d) are equal, (n, m)."""
    rows = np.vstack([np.atleast_2d(a), np.atleast_2d(b)])
    ids = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    return ids[: len(a), None] == ids[len(a) :]
