"""Lopsided counts of a stick: sites in the place of omega, and an ellipse for what the sites lack.

Where nearly all trials of a split went one way, omega tells more of psi than the counts do, and psi given
omega makes small steps (`augmentation.lag`). There a fixed quadratic potential stands in for omega, the
likelihood's on average over a normal law of psi, whose mean, the anchor, and variance, the spread, come from
sweeps that are forgotten. Given it a stick has a Gaussian law, whose mean and a deviation of it come from one
factor; `kernels.ellipse` says how they make a step that keeps the true law. With many cells the angle is
small, and cells that omega would set free creep; so a draw given omega of all cells comes first.
"""

from typing import NamedTuple

import numpy as np

from polystick import augmentation
from polystick.augmentation import LONG_LAG, Potential
from polystick.decomposition import Splits
from polystick.kernels import ellipse
from polystick.models.process_kernel import FARTHEST, as_psi, centred
from polystick.models.process_state import Rows

N_TURNS = 1  # ellipses of f in a sweep


class Sites(NamedTuple):
    """The potentials that hold some cells of the sticks of a block."""

    held: np.ndarray  # (r, M) whether a cell has a site
    potential: Potential  # (r, M) 0 where it has none
    linear: np.ndarray  # (n,) successes - kappa of the cells that have, stick by stick
    trials: np.ndarray  # (n,)
    omega: np.ndarray  # (n,)

    @classmethod
    def at(cls, shard, anchor, spread):
        """Hold the cells with long lags about their anchors (r, M), but for those without any curvature."""
        held = shard.lopsided & (augmentation.lag(shard.splits, anchor, spread) > LONG_LAG)
        where = np.clip(anchor[held], -FARTHEST, FARTHEST)
        found = augmentation.average_site(
            Splits(*(part[held] for part in shard.splits)), where, spread[held]
        )
        good = (found.omega > 0.0) & np.isfinite(found.kappa)
        held[held] = good
        kappa, omega = (part[good] for part in found)
        potential = Potential(*np.zeros((2, *held.shape)))
        potential.kappa[held], potential.omega[held] = kappa, omega
        trials = shard.trials[held].astype(np.float64)
        return cls(held, potential, shard.successes[held] - kappa, trials, omega)

    def complete(self, shard, psi, key):
        """Return a potential for all cells: omega is drawn where there is no site."""
        free = Splits(*(np.where(self.held, 0, part) for part in shard.splits))
        drawn = augmentation.draw_potential(free, psi, key.at("omega of others"), shard.rows)
        return Potential(*(a + b for a, b in zip(drawn, self.potential)))

    def angles(self, rows, psi, mean, deviation, key):
        """Draw how far each stick goes on its ellipse (r,); 0 if no point was found."""
        starts = np.concatenate([[0], np.cumsum(self.held.sum(axis=1))])
        at_cells = (part[self.held] for part in (psi, mean, deviation))
        angles = np.empty(len(rows))
        ellipse.draw_angles(
            key, rows, starts, self.linear, self.trials, self.omega, *at_cells, angles
        )
        return angles


def draw_white(solver, shard, rows, sites, key):
    """Draw w (r, n_white) given omega, then on ellipses where there are sites.

    Return the last potential of psi, and the iterations too.
    """
    splits = shard.splits
    potential = augmentation.draw_potential(splits, rows.psi, key.at("omega"), shard.rows)
    all_ = _Sticks(shard.rows, splits, rows, potential)
    noise = key.normals("white", shard.rows, solver.noise_size)
    white, n_iterations = solver.draw(all_.potential_of_f, noise)
    some = sites.held.any(axis=1)
    if not some.any():
        return white, potential, n_iterations
    psi = as_psi(solver.unwhiten(white), rows)
    potential = sites.complete(shard, psi, key)
    rows = rows._replace(white=white, psi=psi)
    parts = [type(whole)(*(part[some] for part in whole)) for whole in (splits, rows, potential)]
    mine = sites._replace(held=sites.held[some])  # the others have no cells
    turned, n = _draw_turning(solver, _Sticks(shard.rows[some], *parts), mine, key)
    white[some] = turned
    return white, potential, max(n_iterations, n)


class _Sticks(NamedTuple):
    """Some sticks of a block."""

    ids: np.ndarray
    splits: Splits
    rows: Rows
    potential: Potential  # of psi

    @property
    def potential_of_f(self):
        return centred(self.potential, self.rows.level, self.rows.scale)


def _draw_turning(solver, sticks, sites, key):
    """Go round ellipses about the mean, each with a deviation of its own."""
    noise = key.normals("turns", sticks.ids, N_TURNS * solver.noise_size)
    noises = np.swapaxes(noise.reshape(len(noise), N_TURNS, -1), 0, 1)
    noises = np.concatenate([np.zeros_like(noises[:1]), noises])
    (mean, *drawn), n_iterations = solver.draws(sticks.potential_of_f, noises)
    rows, stuck = sticks.rows, np.zeros(len(mean), bool)
    middle, white, psi = as_psi(solver.unwhiten(mean), rows), rows.white, rows.psi
    for number, other in enumerate(drawn):
        away = as_psi(solver.unwhiten(other), rows) - middle
        angles = sites.angles(sticks.ids, psi, middle, away, key.at(f"turn {number}"))
        white = turn(white, mean, other - mean, angles)
        psi, stuck = turn(psi, middle, away, angles), stuck | (angles == 0.0)
    if stuck.any():
        white[stuck] = _draw_given_omega(solver, sticks, psi, stuck, key)
    return white, n_iterations


def _draw_given_omega(solver, sticks, psi, stuck, key):
    """Draw w of some sticks given omega of all their cells, as if there were no sites."""
    rows, ids = type(sticks.rows)(*(part[stuck] for part in sticks.rows)), sticks.ids[stuck]
    splits = Splits(*(part[stuck] for part in sticks.splits))
    potential = augmentation.draw_potential(splits, psi[stuck], key.at("omega again"), ids)
    again = _Sticks(ids, splits, rows, potential)
    noise = key.normals("white again", ids, solver.noise_size)
    return solver.draw(again.potential_of_f, noise).white


def turn(point, mean, deviation, angles):
    """Return where ellipses (r, ...) are at their angles (r,)."""
    c, s = (part[:, None] for part in (np.cos(angles), np.sin(angles)))
    return mean + (point - mean) * c + deviation * s
