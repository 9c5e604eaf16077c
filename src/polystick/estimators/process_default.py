"""The kernel of a process where none is given: what inputs alone suggest.

A constant times a Matérn kernel of smoothness 3/2, plus noise of each input's own. Length scales start at the
standard deviations of the columns. Those within a factor of `ONE_UNIT` of each other pass for columns
in one unit, such as the two of a map: they start together, and are so correlated in their prior that all
of them move rather than one. Data that want one direction stretched may have that.
"""

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from polystick.covariances import OwnNoise

__all__ = ["default_correlation", "default_kernel", "smooth_kernel"]

ONE_UNIT = (
    4.0  # the most that standard deviations of columns in one unit differ by: a map may be a strip
)
TOGETHER = 0.9  # correlation of the logarithms of their length scales: ratios vary by 1.6, not by 4
NOISE = 0.1  # variance of logits: 0.3 is one standard deviation


def _spread(inputs):
    spread = inputs.std(axis=0)
    return np.where(spread > 0, spread, 1.0)


def _in_one_unit(inputs):
    """Tell which pairs of columns pass for columns in one unit, (d, d); a constant one has none."""
    spread, units, smallest = inputs.std(axis=0), np.arange(inputs.shape[1]), None
    for column in np.argsort(spread, kind="stable"):
        if smallest is None or not 0 < spread[column] <= ONE_UNIT * spread[smallest]:
            smallest = column
        units[column] = smallest
    return np.equal.outer(units, units)


def smooth_kernel(inputs):
    """Return the kernel without noise."""
    same = _in_one_unit(inputs)
    scales = np.exp(same @ np.log(_spread(inputs)) / same.sum(axis=1))
    if len(scales) == 1:  # not a vector of one: scikit-learn tells them apart
        scales = scales[0]
    bounds = np.multiply.outer(scales, [1e-2, 1e2])
    return ConstantKernel(1.0, (1e-3, 1e3)) * Matern(scales, bounds, nu=1.5)


def default_kernel(inputs):
    """Return the kernel."""
    return smooth_kernel(inputs) + OwnNoise(NOISE, (1e-5, 1e2))


def default_correlation(inputs):
    """Return how the logarithms of its parameters are correlated in their prior, (p, p)."""
    correlation = np.eye(inputs.shape[1] + 2)  # the constant comes first, the noise last
    correlation[1:-1, 1:-1] = np.where(_in_one_unit(inputs), TOGETHER, 0.0)
    np.fill_diagonal(correlation, 1.0)
    return correlation
