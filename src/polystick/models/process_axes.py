"""Where theta of a process moves along: axes that are learned while sweeps are forgotten.

Then it moves on ellipses about their centre, and now and then by slices along them.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from polystick.models.slice_sampling import MOST_STEPS, ellipse_step, slice_sweep

WIDTH = 4.0  # of slices, in standard deviations
FIRST_SPREAD = (
    0.3  # of theta, in standard deviations of its prior, before there is anything to go by
)
WIDER = 1.3  # times the spread: ellipses are slow in tails that theirs are lighter than
ENOUGH_LEARNED = 50  # sweeps after which ellipses are better than slices
SLICES_EVERY = 5  # sweeps: they mind no tails
FORGOTTEN = 5  # sweeps that what was learned before a window counts for in it


class Axes(NamedTuple):
    """What the sweeps to forget have taught of theta."""

    n_learned: np.ndarray  # () sweeps of this window; less than 0 once nothing is learned any more
    centre: np.ndarray  # (p,)
    spread: np.ndarray  # (p, p)

    @classmethod
    def first(cls, theta, prior_sd):
        return cls(np.zeros(()), theta, np.square(FIRST_SPREAD * prior_sd) * np.eye(len(theta)))

    @property
    def weight(self):
        """How much the next sweep counts among those of its window; 0 if it is not one to forget."""
        return 1.0 / (self.n_learned + FORGOTTEN) if self.n_learned > 0 else 0.0

    @property
    def root(self):
        return np.linalg.cholesky(self.spread)

    def learn(self, theta, sweep, n_burn):
        """Return axes that have seen theta in a sweep of n_burn to forget: the last half of them counts."""
        if sweep >= n_burn:
            return self._replace(n_learned=-self.n_learned)
        n_learned = 1.0 if sweep in (n_burn // 4, n_burn // 2) else self.n_learned + 1.0
        axes = self._replace(n_learned=np.asarray(n_learned))
        away = theta - self.centre
        centre = self.centre + axes.weight * away
        spread = self.spread + axes.weight * (np.outer(away, theta - centre) - self.spread)
        return axes._replace(centre=centre, spread=spread)

    def move(self, log_density, theta, sweep, rng):
        """Return a draw of theta: on an ellipse if its law is known, else, or now and then, by slices."""
        root = self.root
        if self.n_learned <= -ENOUGH_LEARNED and sweep % SLICES_EVERY:
            return ellipse_step(log_density, theta, self.centre, WIDER * root, rng)
        most_steps = 1 if self.n_learned < 0 else MOST_STEPS
        along = partial(_along, log_density, theta, root)
        return theta + root @ slice_sweep(along, np.zeros(len(theta)), WIDTH, rng, most_steps)


def _along(log_density, theta, root, u):
    return log_density(theta + root @ u)
