"""Sticks of which rows tell little: redrawn column by column, each together with its part of the law.

A sweep that draws rows given mean and cov, then mean and cov given rows, is slow where counts leave psi to
the law: rows and law follow each other. `kernels.columns` draws all rows of one stick and its regression on
the others at once. Which sticks need it is decided by the counts alone.
"""

from typing import NamedTuple

import numpy as np

from polystick.gaussians.normal import Normal
from polystick.kernels import columns, grams, hats

VARIANCE = 0.3  # of psi given the law, where rows vary little
WEAK = 0.05  # share of psi's variance that counts leave to the law, on average over rows
STEP = np.uint64(0x9E3779B97F4A7C15)  # between the keys of sticks
MOST_STICKS = 24  # of a sweep, so that columns cost no more than rows


class Block(NamedTuple):
    """What is known of some rows."""

    rows: np.ndarray  # (n,) uint64 ids
    successes: np.ndarray  # (n, k)
    trials: np.ndarray  # (n, k)
    lopsided: np.ndarray  # (n, k)

    @property
    def counts(self):
        return self.successes, self.trials, self.lopsided


def left_open(splits):
    """Return the share of psi's variance that each split leaves to the law, summed over rows (k,)."""
    successes, trials = splits
    told = successes * (trials - successes) / np.maximum(trials, 1)
    return np.sum(1.0 / (1.0 + VARIANCE * told), axis=0)


def choose(open_share, key):
    """Return the sticks (m,) to redraw in this sweep, given the average share that is open (k,)."""
    weak = np.flatnonzero(open_share > WEAK)
    if len(weak) > MOST_STICKS:
        weak = key.generator("weak").choice(weak, MOST_STICKS, replace=False)
    return weak


def redraw(prior, normal, blocks, psi, sticks, key, ordered_map=map):
    """Redraw some sticks of all rows with their part of the law.

    prior : NormalInverseWishart of the law
    normal : the law as it is
    blocks, psi : of all rows; psi (n, k) of each block

    Returns the new law as a Normal, and psi of each block.
    """
    k, n = len(normal.mean), sum(len(block.rows) for block in blocks)
    psi = [np.array(part) for part in psi]
    keys = key.at("columns") ^ (sticks.astype(np.uint64) * STEP)
    noise, gammas = np.empty((len(sticks), k)), np.empty(len(sticks))
    columns.draw_noise(keys, 0.5 * (prior.degrees + n + k), noise, gammas)
    law = normal.mean.copy(), normal.precision.copy(), normal.cov.copy()
    known = prior.mean, prior.strength, prior.scale
    omega = list(
        ordered_map(lambda i: _draw_omega(blocks[i], psi[i], sticks, key), range(len(blocks)))
    )
    if len(blocks) == 1:
        (block,) = blocks
        columns.sweep_in_place(
            keys, block.rows, block.counts, omega[0], sticks, known, noise, gammas, psi[0], law
        )
    else:
        tables = [columns.tabulate(part, prior.mean) for part in psi]
        for number, stick in enumerate(sticks):
            each = keys[number], stick, noise[number], gammas[number]
            own = [np.ascontiguousarray(part[:, number]) for part in omega]
            _redraw_one(known, law, blocks, own, tables, psi, each, ordered_map)
    mean, precision, cov = law
    return Normal(mean, cov, 0.5 * (precision + precision.T)), psi


def _draw_omega(block, psi, sticks, key):
    omega = np.empty((len(psi), len(sticks)))
    columns.draw_omega(key.at("weak omega"), block.rows, block.trials, psi, sticks, omega)
    return omega


def _redraw_one(prior, law, blocks, omega, tables, psi, each, ordered_map):
    """Do as `columns.sweep_in_place` for one stick of many blocks; sums go in the order of blocks."""
    (centre, strength, scale), (_, precision, _) = prior, law
    key, stick, noise, gamma = each
    v, k = 1.0 / precision[stick, stick], len(centre)

    def tell(i):
        weights, linear = np.zeros((k, k)), np.zeros(k)
        columns.add_regression_in_place(
            blocks[i].successes,
            blocks[i].trials,
            omega[i],
            tables[i],
            stick,
            v,
            weights,
            linear,
        )
        return weights, linear

    weights, linear = np.zeros((k, k)), np.zeros(k)
    for part in ordered_map(tell, range(len(blocks))):
        weights += part[0]
        linear += part[1]
    law_of_stick = np.zeros(grams.padded(k) + 1)
    columns.draw_coefficients(
        centre, strength, scale, stick, v, weights, linear, noise, law_of_stick
    )

    def follow(i):
        return columns.redraw_in_place(
            key, blocks[i].rows, blocks[i].counts, omega[i], centre, stick, law_of_stick,
            hats.make_room(len(psi[i])), tables[i], psi[i],
        )  # fmt: skip

    squares = sum(ordered_map(follow, range(len(blocks))))
    columns.put_back_in_place(centre, strength, scale, stick, law_of_stick, squares, gamma, *law)
