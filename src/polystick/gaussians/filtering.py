"""What a filter returns, and what comes after the last step: forecasts, as moments and as draws."""

from typing import NamedTuple

import numpy as np

from polystick.kernels import algebra

__all__ = ["Filtered", "extend", "forecast"]


class Filtered(NamedTuple):
    """The moments of each state given the potentials of the steps before, and with its own too.

    The log normalisers, of each step's potential given those before, add up to the sequence's.
    """

    predicted_mean: np.ndarray  # (S, D)
    predicted_cov: np.ndarray  # (S, D, D)
    mean: np.ndarray  # (S, D)
    cov: np.ndarray  # (S, D, D)
    log_normalisers: np.ndarray  # (S,)


def forecast(dynamics, dynamics_cov, pushes, mean, cov):
    """Return means and covariances of the states that follow x ~ N(mean, cov).

    pushes : (n_steps, D) what is added to each
    """
    means, covs = np.empty(pushes.shape), np.empty((*pushes.shape, len(dynamics)))
    for s, push in enumerate(pushes):
        mean = algebra.multiply(dynamics, mean) + push
        cov = algebra.multiply(algebra.multiply(dynamics, cov), dynamics.T) + dynamics_cov
        means[s], covs[s] = mean, cov
    return means, covs


def extend(dynamics, root, pushes, states, noise):
    """Return the states (n, n_steps, D) that follow states (n, D); root root' is their noise's."""
    shocks = np.einsum("nsi,ki->nsk", noise, root) + pushes
    following = np.empty(shocks.shape)
    for s in range(len(pushes)):
        states = algebra.multiply(states, dynamics.T) + shocks[:, s]
        following[:, s] = states
    return following
