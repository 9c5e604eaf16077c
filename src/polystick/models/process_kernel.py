"""The parameters of a covariance, drawn by slices while what does not depend on them is held.

Held is, in order of what a solver can do: what is left of w seen from its posterior given the potential,
w = m + root rest, which lets f be integrated out of the density (a `Conditional`); surrogate data
(`gaussians.surrogate`); or w itself. Slices go along the axes of theta's own spread, learned while sweeps
are forgotten, for its entries are often far from independent: amplitude and length, say.
"""

from typing import Any, NamedTuple

import numpy as np

from polystick import polyagamma
from polystick.augmentation import Potential
from polystick.gaussians.surrogate import Surrogate
from polystick.kernels import splits as splits_kernels
from polystick.models.slices import slice_sweep

LEAST_WORTH = 1e-3  # of surrogate data
WIDTH = 4.0  # of slices, in standard deviations
FIRST_SPREAD = (
    0.3  # of theta, in standard deviations of its prior, before there is anything to go by
)
FORGOTTEN = 5  # sweeps that what was learned before a window counts for in it


class Axes(NamedTuple):
    """What the sweeps to forget have taught of theta."""

    count: np.ndarray  # () sweeps of this window; 0 once it is settled
    centre: np.ndarray  # (p,)
    spread: np.ndarray  # (p, p)

    @classmethod
    def first(cls, theta, prior_sd):
        return cls(np.zeros(()), theta, np.square(FIRST_SPREAD * prior_sd) * np.eye(len(theta)))

    @property
    def weight(self):
        """How much the next sweep counts among those of its window; 0 once it is settled."""
        return 1.0 / (self.count + FORGOTTEN) if self.count else 0.0

    @property
    def root(self):
        return np.linalg.cholesky(self.spread)

    def learn(self, theta, sweep, n_burn):
        """Return axes that have seen theta in a sweep of n_burn to forget: the last half of them counts."""
        if sweep >= n_burn:
            return self._replace(count=np.zeros(()))
        count = 1 if sweep in (n_burn // 4, n_burn // 2) else self.count + 1
        axes = self._replace(count=np.asarray(float(count)))
        away = theta - self.centre
        centre = self.centre + axes.weight * away
        spread = self.spread + axes.weight * (np.outer(away, theta - centre) - self.spread)
        return axes._replace(centre=centre, spread=spread)


class Block(NamedTuple):
    """Sticks as the global step needs them."""

    shard: Any
    rows: Any
    sites: Any
    potential: Potential  # of psi, sites included


def draw_theta(model, theta, axes, blocks, key, ordered_map):
    """Return a new theta and w of all sticks under it."""
    solver = solver_at(model.family, theta)
    held = list(ordered_map(lambda block: _hold(solver, block, key), blocks))

    def log_density(theta):
        prior = model.log_prior(theta)
        if prior == -np.inf:
            return prior
        solver = solver_at(model.family, theta)
        return prior + sum(ordered_map(lambda part: part.log_density(solver), held))

    root = axes.root
    rng, most_steps = key.generator("theta"), 8 if axes.count else 1
    moved = slice_sweep(
        lambda u: log_density(theta + root @ u), np.zeros(len(theta)), WIDTH, rng, most_steps
    )
    theta = theta + root @ moved
    solver = solver_at(model.family, theta)
    return theta, np.concatenate([part.white(solver) for part in held])


def _hold(solver, block, key):
    potential = centred(block.potential, block.rows.level, block.rows.scale)
    conditional = solver.conditional(potential)
    if conditional is not None:
        return _OfPosterior(block, potential, solver, conditional)
    if solver.spectrum is None:
        return _OfPrior(block)
    noise = key.normals("surrogate", block.shard.rows, solver.n_white)
    surrogate = Surrogate.of(solver.spectrum, block.rows.white, worth(block.shard), noise)
    return _OfSurrogate(block, surrogate)


class _OfPosterior:
    """What is left of w seen from its posterior given the potential."""

    def __init__(self, block, potential, solver, conditional):
        self.block, self.potential, self.last = block, potential, (solver, conditional)
        self.rest = conditional.rest(block.rows.white)

    def _conditional(self, solver):
        """Return w given the potential; the last one is kept, for slices begin and end where they looked."""
        if self.last[0] is not solver:
            self.last = (solver, solver.conditional(self.potential))
        return self.last[1]

    def white(self, solver):
        return self._conditional(solver).white(self.rest)

    def log_density(self, solver):
        psi = psi_under(solver, self.white(solver), self.block.rows)
        return self._conditional(solver).log_normaliser.sum() + self.block.sites.remainder(psi)


class _OfSurrogate(NamedTuple):
    """Surrogate data and what is left of w seen from them."""

    block: Block
    surrogate: Surrogate

    def white(self, solver):
        return self.surrogate.white(solver.spectrum)[0]

    def log_density(self, solver):
        white, log_density = self.surrogate.white(solver.spectrum)
        psi = psi_under(solver, white, self.block.rows)
        return _log_likelihood(self.block.shard, psi) + log_density.sum()


class _OfPrior(NamedTuple):
    """w itself."""

    block: Block

    def white(self, solver):
        return self.block.rows.white

    def log_density(self, solver):
        psi = psi_under(solver, self.block.rows.white, self.block.rows)
        return _log_likelihood(self.block.shard, psi)


def _log_likelihood(shard, psi):
    return splits_kernels.log_likelihood(*shard.splits, psi)


def psi_under(solver, white, rows):
    """Return psi (r, M) of sticks whose w is `white`."""
    return rows.level[:, None] + rows.scale[:, None] * solver.unwhiten(white)


def solver_at(family, theta):
    """Return the solver with its eigenproblems solved, before threads would all solve them."""
    solver = family.at(theta)
    solver.unwhiten(np.zeros((1, solver.n_white)))
    return solver


def centred(potential, level, scale):
    """Return the potential of f where psi = level + scale f."""
    kappa, omega = potential
    level, scale = level[:, None], scale[:, None]
    return Potential(scale * (kappa - omega * level), scale**2 * omega)


def worth(shard):
    """Return how much a count of each stick tells of f (r,): omega at its overall share, averaged."""
    yes, no = shard.successes.sum(axis=1), (shard.trials - shard.successes).sum(axis=1)
    tilt = np.abs(np.log((yes + 0.5) / (no + 0.5)))[:, None]
    return np.maximum(polyagamma.mean(shard.trials, tilt).mean(axis=1), LEAST_WORTH)
