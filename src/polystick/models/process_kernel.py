"""The parameters of a covariance, drawn by slices while what does not depend on them is held.

Where a solver has a `Conditional`, it is what is left of w seen from its posterior under fixed potentials of
all cells, about the anchors of `process_sites`: f is integrated out of theta's density as far as these go,
and what they lack is the likelihood less the potentials at f, which follows theta. Else it is surrogate data
(`gaussians.surrogate`) and what is left of w seen from them. How theta moves is said in `process_axes`.
"""

from typing import NamedTuple

import numpy as np

from polystick import augmentation, polyagamma
from polystick.augmentation import Potential
from polystick.gaussians.surrogate import Surrogate
from polystick.kernels import splits as splits_kernels
from polystick.models.process_state import Rows, Shard

FARTHEST = 30.0  # that an anchor may be from 0: beyond, a site has next to no curvature
LEAST_WORTH = 1e-3  # of surrogate data


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

    theta = axes.move(log_density, theta, key.sweep, key.generator("theta"))
    solver = solver_at(model.family, theta)
    return theta, np.concatenate([part.white(solver) for part in held])


def _hold(solver, block, key):
    shard, rows = block
    potential = _quadratic(solver, shard, rows.anchor)
    conditional = solver.conditional(centred(potential, rows.level, rows.scale))
    if conditional is not None:
        return _OfPosterior(shard, rows, potential, solver, conditional)
    noise = key.normals("surrogate", shard.rows, solver.n_white)
    surrogate = Surrogate.of(solver.spectrum, rows.white, worth(shard), noise)
    return _OfSurrogate(shard, rows, surrogate)


def _quadratic(solver, shard, anchor):
    """Return potentials of psi with the slopes of the likelihood at the anchors, and about its curvatures."""
    anchor = np.clip(anchor, -FARTHEST, FARTHEST)
    kappa, omega = augmentation.quadratic_potential(shard.splits, anchor)
    weights = solver.weights(omega)
    return Potential(kappa + (weights - omega) * anchor, weights)


class _OfPosterior:
    """What is left of w seen from its posterior under a potential."""

    def __init__(self, shard, rows, potential, solver, conditional):
        self.shard, self.rows, self.potential = shard, rows, potential
        self.of_f = centred(potential, rows.level, rows.scale)
        self.last, self.rest = (solver, conditional), conditional.rest(rows.white)

    def _conditional(self, solver):
        """Return w given the potential; the last one is kept, for slices begin and end where they looked."""
        if self.last[0] is not solver:
            self.last = (solver, solver.conditional(self.of_f))
        return self.last[1]

    def white(self, solver):
        return self._conditional(solver).white(self.rest)

    def log_density(self, solver):
        conditional, (kappa, omega) = self._conditional(solver), self.potential
        psi = as_psi(conditional.values(self.rest), self.rows)
        sites = np.sum((kappa - 0.5 * omega * psi) * psi)
        return conditional.log_normaliser.sum() + _log_likelihood(self.shard, psi) - sites


class _OfSurrogate(NamedTuple):
    """Surrogate data and what is left of w seen from them."""

    shard: Shard
    rows: Rows
    surrogate: Surrogate

    def white(self, solver):
        return self.surrogate.white(solver.spectrum)[0]

    def log_density(self, solver):
        white, log_density = self.surrogate.white(solver.spectrum)
        psi = as_psi(solver.unwhiten(white), self.rows)
        return _log_likelihood(self.shard, psi) + log_density.sum()


def _log_likelihood(shard, psi):
    return splits_kernels.log_likelihood(*shard.splits, psi)


def as_psi(f, rows):
    """Return psi (r, M) of sticks with values f."""
    return rows.level[:, None] + rows.scale[:, None] * f


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
