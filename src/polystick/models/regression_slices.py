"""Coefficients, groups and scales of lopsided splits, drawn without omega, which would hold them fast.

Noise stays where it is while coefficients move, and noise in units of its scale while that moves: the other
half of an interweaving with the draws of noise given these. Given noise each entry of psi hangs on its own
split alone, so each number has one slice (Neal 2003), and those of several entries are drawn side by side.
"""

from typing import NamedTuple

import numpy as np

from polystick.augmentation import log_likelihood
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
    """Return parameters with what they say of some entries drawn anew, and their noise (n, m) or None."""
    parameters, entries = _move_coefficients(prior, parameters, entries, rng)
    for factor in range(len(prior.n_groups)):
        for at in range(len(entries.which)):
            parameters, entries = _move_groups(prior, parameters, entries, factor, at, rng)
    for number in range(len(prior.laws)):
        parameters, entries = _move_scales(prior, parameters, entries, number, rng)
    return parameters, entries.noise


def _move_coefficients(prior, parameters, entries, rng):
    which, psi, coefficients = entries.which, entries.psi, parameters.coefficients.copy()
    for a in rng.permutation(len(coefficients)):
        along = entries.x[:, a, None]
        away = coefficients[a, which] - prior.mean[a, which]

        def height(step, a=a, away=away, along=along, psi=psi):
            told = -0.5 * ((away + step) / prior.scale[a]) ** 2
            return told + log_likelihood(entries.splits, psi + along * step).sum(axis=0)

        step = _slices(height, len(which), WIDTH, rng)
        coefficients[a, which] += step
        psi = psi + along * step
    return parameters._replace(coefficients=coefficients), entries._replace(psi=psi)


def _move_groups(prior, parameters, entries, factor, at, rng):
    """Move one entry of all groups of a factor, each | its other entries, e, y."""
    j, places = entries.which[at], entries.places[:, factor] - prior.edges[factor]
    splits = Splits(*(part[:, at] for part in entries.splits))
    psi, effects = entries.psi[:, at], parameters.effects.copy()
    mine = effects[prior.groups_of(factor)]  # a view
    precision = np.linalg.inv(parameters.covs[factor])[j]
    pull = mine @ precision / precision[j]  # from the mean given the other entries

    def height(step):
        each = log_likelihood(splits, psi + step[places])
        told = -0.5 * precision[j] * (pull + step) ** 2
        return told + np.bincount(places, each, minlength=len(mine))

    step = _slices(height, len(mine), WIDTH, rng)
    mine[:, j] += step
    moved = entries.psi.copy()
    moved[:, at] += step[places]
    return parameters._replace(effects=effects), entries._replace(psi=moved)


def _move_scales(prior, parameters, entries, number, rng):
    """Move the scales of a law with its rows, groups or noise."""
    which, psi, effects = entries.which, entries.psi, parameters.effects.copy()
    is_noise = number == len(prior.n_groups)
    own = entries.noise if is_noise else effects[entries.places[:, number]][:, which]
    size = parameters.sizes[number][which]

    def height(step):
        by = np.exp(step)
        told = step - 0.5 * (size * by / prior.spread) ** 2
        return told + log_likelihood(entries.splits, psi + own * (by - 1.0)).sum(axis=0)

    by = np.exp(_slices(height, len(which), WIDTH_OF_SCALE, rng))
    entries = entries._replace(psi=psi + own * (by - 1.0))
    parameters = prior.stretched(parameters, number, which, by)
    if is_noise:
        return parameters, entries._replace(noise=entries.noise * by)
    groups = np.arange(*prior.edges[[number, number + 1]])
    effects[np.ix_(groups, which)] *= by
    return parameters._replace(effects=effects), entries


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
