"""Lopsided splits of compositions: fixed sites in the place of omega, and ellipses about them.

Where nearly all trials of a split go one way, omega is much larger than what the counts tell of psi, and a
draw given omega is a small step. Such cells, chosen by the counts alone, have a site each that does not
depend on where the chain is: it is matched to the posterior while burning in, and stays from then on.
"""

from typing import NamedTuple

import numpy as np

from polystick import augmentation
from polystick.augmentation import Potential
from polystick.decomposition import RaggedSplits, Splits
from polystick.kernels import ellipse

SOFTNESS = 0.5  # of the precision of a matched site: tails of the target are wider than its Gaussian's
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


class Paths(NamedTuple):
    """Whole sequences, as `sequence_splits.Steps`, with their lopsided splits and a dense table."""

    rows: np.ndarray
    steps: np.ndarray
    starts: np.ndarray
    splits: RaggedSplits
    known: np.ndarray
    pushes: np.ndarray
    log_coefficient: float
    lopsided: Lopsided
    step_of: np.ndarray  # (cells,) int64 of each active split
    table: tuple  # successes and trials (k, S), float64
    is_all: bool  # there is no other block

    @property
    def n_steps(self):
        return len(self.steps)

    @property
    def active(self):
        return self.splits.starts, self.splits.nodes


def with_cells(block, n_sticks, is_all):
    """Return a block of `Steps` as `Paths`."""
    splits, n_steps = block.splits, block.n_steps
    step_of = np.repeat(np.arange(n_steps), np.diff(splits.starts))
    at = np.flatnonzero(augmentation.lopsided(splits))
    steps = step_of[at]
    counts = splits.successes.astype(np.float64), splits.trials.astype(np.float64)
    starts = np.searchsorted(steps, block.starts).astype(np.int64)
    lopsided = Lopsided(at, steps, splits.nodes[at], starts, *(part[at] for part in counts))
    table = np.zeros((2, n_sticks, n_steps))
    table[:, splits.nodes, step_of] = counts
    return Paths(*block, lopsided, step_of, (table[0], table[1]), is_all)


def smoothed_logit(splits):
    """Return log odds that counts alone tell."""
    yes, no = splits.successes + 0.5, splits.trials - splits.successes + 0.5
    return np.log(yes / no)


def rate_of(sweep, n_burn):
    """Return how far sites go towards matched ones in the next sweep; 0 after the burn-in.

    First a share of the way, then so that they are the mean of what was found in the second half.
    """
    if sweep >= n_burn or sweep % EVERY:
        return 0.0
    n_late = (sweep - n_burn // 2) // EVERY
    return DAMPING if n_late < 1 else max(1.0 / n_late, EVERY / n_burn)


def match(lopsided, sites, mean, variance, rate):
    """Return sites that match the likelihoods better, given the moments (S, k) of states under the sites."""
    at = lopsided.steps, lopsided.nodes
    return augmentation.match_sites(lopsided.splits, sites, mean[at], variance[at], rate)


def softened(sites, centre):
    """Return wider sites with the same slope at the centre."""
    less = (1.0 - SOFTNESS) * sites.omega
    return Potential(sites.kappa - less * centre, sites.omega - less)


def angles(key, shard, sites, states, mean, far):
    """Draw an angle for each sequence; pi / 2 without lopsided splits, 0 where none was found."""
    lopsided, found = shard.lopsided, np.empty(len(shard.rows))
    at = lopsided.steps, lopsided.nodes
    ellipse.draw_angles(
        key, shard.rows, lopsided.starts, lopsided.successes - sites.kappa, lopsided.trials,
        sites.omega, states[at], mean[at], far[at], found,
    )  # fmt: skip
    return found
