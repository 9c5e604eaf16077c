"""Lopsided splits of compositions: fixed sites in the place of omega, and ellipses about them.

Where nearly all trials of a split go one way, omega is much larger than what the counts tell of psi, and a
draw given omega is a small step. Such cells, chosen by the counts alone, have a site each that does not
depend on where the chain is: it is matched to the posterior while burning in, and stays from then on.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from polystick import augmentation, polyagamma
from polystick.augmentation import Potential
from polystick.decomposition import Splits
from polystick.kernels import ellipse
from polystick.kernels.walk_sticks import Cells
from polystick.models.sequence_splits import Steps

LOPSIDED = 1.5  # times the curvature of the likelihood
SOFTNESS = (
    0.3  # of the precision of a site where nothing went one way: wide tails of many steps add up
)
EVERY = 5  # sweeps between two matches
DAMPING = 0.5  # of the first matches; later ones are averaged
TINY = 1e-290  # a precision below it is none


class Lopsided(NamedTuple):
    """The m lopsided splits of a block, one sequence after another."""

    at: np.ndarray  # (m,) int64 which of the active splits
    steps: np.ndarray  # (m,) int64 in the block
    nodes: np.ndarray  # (m,)
    starts: np.ndarray  # (n + 1,) int64: those of sequence i are starts[i] .. starts[i + 1]
    successes: np.ndarray  # (m,) float64
    trials: np.ndarray  # (m,)

    @property
    def splits(self):
        return Splits(self.successes, self.trials)


@dataclass(frozen=True, eq=False)
class Paths(Steps):
    """Whole sequences with their lopsided splits and a dense table."""

    lopsided: Lopsided
    step_of: np.ndarray  # (cells,) int64 of each active split
    table: tuple[np.ndarray, np.ndarray]  # successes and trials (k, S), float64
    is_all: bool  # there is no other block


def with_cells(block, n_sticks, is_all):
    """Return a block of `Steps` as `Paths`."""
    splits, n_steps = block.splits, block.n_steps
    step_of = np.repeat(np.arange(n_steps), np.diff(splits.starts))
    at = np.flatnonzero(is_lopsided(splits))
    steps = step_of[at]
    counts = splits.successes.astype(np.float64), splits.trials.astype(np.float64)
    starts = np.searchsorted(steps, block.starts).astype(np.int64)
    lopsided = Lopsided(at, steps, splits.nodes[at], starts, *(part[at] for part in counts))
    table = np.zeros((2, n_sticks, n_steps))
    table[:, splits.nodes, step_of] = counts
    return Paths(
        **vars(block), lopsided=lopsided, step_of=step_of, table=tuple(table), is_all=is_all
    )


def is_lopsided(splits):
    """Tell where omega is larger than what counts tell of psi, however few trials: lags of a path add up."""
    logit = augmentation.empirical_logit(splits)
    chance, omega = expit(logit), polyagamma.mean(splits.trials, logit)
    return omega > LOPSIDED * splits.trials * chance * (1.0 - chance)


def first_sites(lopsided):
    """Return sites and their centres from the counts alone."""
    centre = augmentation.empirical_logit(lopsided.splits)
    return *augmentation.quadratic_potential(lopsided.splits, centre), centre


def rate_of(sweep, n_burn):
    """Return how far sites go towards matched ones in the next sweep; 0 after the burn-in.

    First a share of the way, then so that they are the mean of what was found in the second half.
    """
    if sweep >= n_burn or sweep % EVERY:
        return 0.0
    n_late = (sweep - n_burn // 2) // EVERY
    return DAMPING if n_late < 1 else 1.0 / n_late


def match(lopsided, sites, mean, variance, rate):
    """Return sites that match the likelihoods better, given the moments (S, k) of states under the sites."""
    at = lopsided.steps, lopsided.nodes
    return augmentation.match_sites(lopsided.splits, sites, mean[at], variance[at], rate)


def softened(lopsided, sites, centre):
    """Return wider sites with the same slope at the centre; little is changed where there are counts."""
    fewer = np.minimum(lopsided.successes, lopsided.trials - lopsided.successes)
    less = (1.0 - SOFTNESS) * sites.omega * (2.0 / (fewer + 2.0))
    return Potential(sites.kappa - less * centre, sites.omega - less)


def usable(lopsided, sites):
    """Return the lopsided splits that have a site to speak of, and their sites; others are as any split."""
    kept = np.isfinite(sites.kappa) & np.isfinite(sites.omega) & (sites.omega > TINY)
    if kept.all():
        return lopsided, sites
    starts = np.concatenate([[0], np.cumsum(kept)])[lopsided.starts]
    arrays = {name: part[kept] for name, part in lopsided._asdict().items() if name != "starts"}
    fewer = Lopsided(starts=starts, **arrays)
    return fewer, Potential(sites.kappa[kept], sites.omega[kept])


def angles(key, rows, lopsided, sites, states, mean, far):
    """Draw an angle for each sequence; pi / 2 without lopsided splits, 0 where none was found."""
    found, at = np.empty(len(rows)), (lopsided.steps, lopsided.nodes)
    ellipse.draw_angles(
        key, rows, lopsided.starts, lopsided.successes - sites.kappa, lopsided.trials, sites.omega,
        states[at], mean[at], far[at], found,
    )  # fmt: skip
    return found


def filled(lopsided, omega, sites):
    """Return the potential of all active splits: omega, or the site of a lopsided one."""
    kappa, weights = omega.kappa.copy(), omega.omega.copy()
    kappa[lopsided.at], weights[lopsided.at] = sites
    return Potential(kappa, weights)


def dense(shard, lopsided, potential):
    """Return the cells of all sticks."""
    shape, nodes = shard.table[0].shape, shard.splits.nodes
    kappa, omega, fixed = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool)
    kappa[nodes, shard.step_of], omega[nodes, shard.step_of] = potential
    fixed[lopsided.nodes, lopsided.steps] = True
    hits, tries = shard.table
    return Cells(hits, tries, kappa, omega, fixed)
