"""Scales and levels of psi that move with their law, all documents at once.

A sweep draws psi given the law and the law given psi: a variance that many documents leave open then moves by
small steps. Here a stick of all documents is stretched or shifted together with its part of the law, given
the topics of tokens (generalised Gibbs, Liu and Sabatti 2000). A sweep does one of the two, of all sticks.
"""

import numpy as np

from polystick.kernels import stick_moves

STEPS = (
    0.02,
    0.6,
)  # least and greatest scale of what is proposed; each stick and sweep has its own


def proposed(n_sticks, key):
    """Return stretch and shift (k,): one of them is proposed in this sweep."""
    rng = key.generator("moves")
    steps = np.exp(rng.uniform(*np.log(STEPS), size=n_sticks)) * rng.standard_normal(n_sticks)
    if key.sweep % 2:
        return np.exp(steps), np.zeros(n_sticks)
    return np.ones(n_sticks), steps


def gains(splits, psi, mean, stretch, shift):
    """Return what the log likelihood of some documents would gain, stick by stick (k,).

    mean : of psi, (k,) or (n, k)
    """
    found, means = np.zeros(psi.shape[1]), np.empty(psi.shape)
    means[:] = mean
    stick_moves.add_gains(*splits, psi, means, stretch, shift, found)
    return found


def moved(psi, mean, stretch, shift):
    """Return psi after a move that was decided."""
    return mean + shift + stretch * (psi - mean)
