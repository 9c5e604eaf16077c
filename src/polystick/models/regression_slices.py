"""Coefficients and scales where splits are lopsided: drawn without omega, which would hold them nearly fast.

Noise stays where it is while coefficients move, and noise in units of its scale while that moves: the other
half of an interweaving with the draws of noise given these. Given noise each entry of psi hangs on its own
split alone, so each number has one slice (Neal 2003), and those of several entries are drawn side by side.
"""

from typing import NamedTuple

import numpy as np

from polystick import augmentation
from polystick.decomposition import Splits

__all__ = ["Entries", "move"]

WIDTH = 2.0  # of a slice of a coefficient, which is on the scale of log odds
WIDTH_OF_SCALE = 1.0  # in the logarithm
MOST_STEPS = 60  # of a search that shrinks a slice: nothing moves after it


class Entries(NamedTuple):
    """Some entries of psi of all rows, each behind a binary split."""

    which: np.ndarray  # (m,)
    splits: Splits  # (n, m) each
    psi: np.ndarray  # (n, m) log odds of the splits
    x: np.ndarray  # (n, p)
    places: np.ndarray  # (n, F)
    noise: np.ndarray | None  # (n, m)


def move(prior, parameters, entries, rng):
    """Return parameters with new coefficients and scales of some entries, and their noise or None."""
    which, psi, noise = entries.which, entries.psi, entries.noise
    coefficients, effects = parameters.coefficients.copy(), parameters.effects.copy()
    for a in rng.permutation(len(coefficients)):
        now, mean, scale = coefficients[a, which], prior.mean[a, which], prior.scale[a]
        along = entries.x[:, a, None]

        def height(step, now=now, mean=mean, scale=scale, along=along, psi=psi):
            told = -0.5 * ((now + step - mean) / scale) ** 2
            return told + _log_likelihood(entries.splits, psi + along * step)

        step = _slices(height, len(which), WIDTH, rng)
        coefficients[a, which] += step
        psi = psi + along * step
    parameters = parameters._replace(coefficients=coefficients)
    for number in range(len(prior.laws)):
        is_noise = number == len(prior.n_groups)
        own = noise if is_noise else effects[entries.places[:, number]][:, which]
        size = parameters.sizes[number][which]

        def height(step, size=size, own=own, psi=psi):
            by = np.exp(step)
            told = step - 0.5 * (size * by / prior.spread) ** 2
            return told + _log_likelihood(entries.splits, psi + own * (by - 1.0))

        by = np.exp(_slices(height, len(which), WIDTH_OF_SCALE, rng))
        psi = psi + own * (by - 1.0)
        if is_noise:
            noise = noise * by
        else:
            mine = np.arange(*prior.edges[[number, number + 1]])
            effects[np.ix_(mine, which)] *= by
        parameters = prior.stretched(parameters, number, which, by)
    return parameters._replace(effects=effects), noise


def _log_likelihood(splits, psi):
    return augmentation.log_likelihood(splits, psi).sum(axis=0)


def _slices(height, m, width, rng):
    """Return steps (m,) from 0, each by a slice of its own height(steps) (m,), which shrinks about 0."""
    floor = height(np.zeros(m)) - rng.standard_exponential(m)
    low = -width * rng.random(m)
    high = low + width
    step, found = np.zeros(m), np.zeros(m, dtype=bool)
    for _ in range(MOST_STEPS):
        tried = low + (high - low) * rng.random(m)
        good = ~found & (height(np.where(found, step, tried)) > floor)
        step[good] = tried[good]
        found |= good
        if found.all():
            break
        low, high = np.where(tried < 0.0, tried, low), np.where(tried < 0.0, high, tried)
    return step
