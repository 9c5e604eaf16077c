"""What sweeps of multinomial processes hand on: parameters, sticks and blocks of them."""

from typing import Any, NamedTuple

import numpy as np

from polystick.decomposition import Splits
from polystick.models.process_axes import Axes


class Parameters(NamedTuple):
    """What all sticks share, and where the chain goes on, for white moves with theta."""

    theta: np.ndarray  # (p,) of the sweep that has just been made
    iterations: (
        np.ndarray
    )  # () of the solver in that sweep, averaged over blocks; 0 for direct ones
    next_theta: np.ndarray  # (p,)
    next_white: np.ndarray  # (k, n_white), or (0, n_white): where the sticks are
    n_learned: np.ndarray  # () what sweeps to forget have taught, see `Axes`
    centre: np.ndarray  # (p,)
    spread: np.ndarray  # (p, p)

    @property
    def axes(self):
        return Axes(self.n_learned, self.centre, self.spread)


class Rows(NamedTuple):
    """Where each stick of a chain stands."""

    psi: np.ndarray  # (r, M)
    white: np.ndarray  # (r, n_white)
    level: np.ndarray  # (r,)
    scale: np.ndarray  # (r,)
    anchor: np.ndarray  # (r, M) where sites stand; fixed once sweeps count
    spread: np.ndarray  # (r, M) the variance of psi there; fixed then too

    def learn(self, weight):
        """Return rows whose anchors and spreads have seen psi, with some weight."""
        away = self.psi - self.anchor
        anchor = self.anchor + weight * away
        spread = self.spread + weight * (away * (self.psi - anchor) - self.spread)
        return self._replace(anchor=anchor, spread=spread)


class Prior(NamedTuple):
    """What the sticks need for a sweep."""

    solver: Any  # of `gaussians`: any of them
    white: np.ndarray  # (k, n_white), or (0, n_white): where the sticks are
    weight: float  # of this sweep in the mean that anchors are; 0 once they are fixed


class Statistics(NamedTuple):
    """What the global step needs: the sticks themselves, block by block, for psi moves with theta."""

    blocks: tuple  # of pairs (shard, rows)
    iterations: np.ndarray  # summed over blocks
    value: float  # log likelihood


class Shard(NamedTuple):
    """A block of sticks."""

    rows: np.ndarray  # (r,) uint64 ids
    successes: np.ndarray  # (r, M)
    trials: np.ndarray  # (r, M)
    log_coefficient: float  # sum of the log multinomial coefficients; with the first block only
    lopsided: np.ndarray  # (r, M) of each split

    @property
    def splits(self):
        return Splits(self.successes, self.trials)
