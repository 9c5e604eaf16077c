"""Shares of topics whose law moves from one slice of time to the next::

levels_1 ~ N(initial_mean, initial_cov)
levels_s ~ N(levels_{s-1}, step_cov)               s = 2..S, slices of time
step_cov ~ InverseWishart(step prior),  cov ~ InverseWishart(prior), or a `LearnedScale`
psi_d    ~ N(levels_{s(d)}, cov)                   d = 1..n, given the slices of documents

A slice may have no documents: the levels walk through it. A learned scale is of cov alone; documents then
move together (`topic_moves`): they are stretched about the levels of their slices, or shifted with all these.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polystick.conjugate import InverseWishart, NormalInverseWishart
from polystick.gaussians.dynamics import Chain
from polystick.gaussians.normal import Normal, Shifted
from polystick.kernels import algebra, stick_moves
from polystick.models.normal_points import standard_normal_points
from polystick.models.topic_shares import Sums
from polystick.population.learned_scale import LearnedScale, ScaledParameters

_SCALES = ("precision", "spread", "nu")  # what a learned scale holds beside cov


@dataclass(frozen=True)
class WalkingShares:
    """Documents of a slice are exchangeable. It has no factors."""

    n_slices: int
    prior: NormalInverseWishart  # of the first level and of cov
    step_prior: InverseWishart  # of step_cov
    law: LearnedScale | None = None  # of cov, instead of the prior's; its centre is 0

    told: ClassVar = ("levels", "cov", "step_cov")

    @property
    def fields(self):
        return self.told if self.law is None else (*self.told, *_SCALES)

    def dims(self, axis):
        both = (axis, f"{axis}_too")
        return {"levels": ("time", axis), "cov": both, "step_cov": both}

    def simulate(self, rng):
        scatter = self._simulate_scatter(rng)
        cov, step_cov = scatter["cov"], self.step_prior.draw(rng)
        shape = (self.n_slices, len(cov))
        nothing = np.zeros(shape), np.zeros((*shape, len(cov)))
        levels = self._chain(step_cov).draw(*nothing, rng.standard_normal(shape))
        return {"levels": levels, "step_cov": step_cov, **scatter}

    def _simulate_scatter(self, rng):
        if self.law is None:
            return {"cov": self.prior.of_cov.draw(rng)}
        return _scatter_of(self.law.draw(rng))

    def _start_cov(self):
        """Return the covariance of the first levels."""
        prior = self.prior
        return prior.scale / (prior.degrees - len(prior.mean) - 1) / prior.strength

    def _chain(self, step_cov):
        return Chain.random_walk(self.prior.mean, self._start_cov(), step_cov)

    # Gibbs

    def start(self, psi, key):
        """Start with levels that do not move."""
        k = psi.shape[1]
        normal = self.prior.posterior(len(psi), psi.sum(axis=0), algebra.gram(psi))
        cov = normal.scale / (normal.degrees - k + 1)
        started = {
            "levels": np.tile(normal.mean, (self.n_slices, 1)),
            "cov": cov,
            "step_cov": self.step_prior.scale / (self.step_prior.degrees - k + 1),
        }
        if self.law is None:
            return started
        scales = _scatter_of(self.law.start(key.generator("start")))
        return {**scales, **started, "precision": algebra.inverted(cov)}

    def prepare(self, parameters):
        """Return the law of a document in each slice."""
        cov = parameters.cov
        return Shifted(parameters.levels, Normal(np.zeros(len(cov)), cov))

    def rows(self, law, given):
        return Shifted(law.mean[given["slices"]], law.normal)

    def statistics(self, psi, given):
        """Sum by slice what can move."""
        slices = given["slices"]
        total = np.zeros((self.n_slices, psi.shape[1]))
        np.add.at(total, slices, psi)
        return Sums(np.bincount(slices, minlength=self.n_slices), total, algebra.gram(psi))

    def draw(self, parameters, sums, rng):
        """Levels | psi, cov, step_cov; then cov | psi, levels and step_cov | levels."""
        levels = self.draw_levels(parameters, sums, rng)
        residual = self.about_levels(levels, sums)
        return {
            "levels": levels,
            **self.draw_scatter(parameters, sums.n_rows.sum(), residual, rng),
            "step_cov": self.draw_step_cov(levels, rng),
        }

    def about_levels(self, levels, sums):
        """Return the sum of outer products of psi about the levels of their slices."""
        cross = algebra.multiply(levels.T, sums.total)
        own = algebra.gram(levels * np.sqrt(sums.n_rows[:, None]))
        return sums.outer - cross - cross.T + own

    def draw_step_cov(self, levels, rng):
        steps = np.diff(levels, axis=0)
        return self.step_prior.posterior(len(steps), algebra.gram(steps)).draw(rng)

    def draw_scatter(self, parameters, n, residual, rng):
        """Cov | psi, levels, and its scales, if it has any."""
        if self.law is None:
            return {"cov": self.prior.of_cov.posterior(n, residual).draw(rng)}
        nothing = np.zeros(len(residual))
        held = {name: getattr(parameters, name) for name in ("cov", *_SCALES)}
        known = ScaledParameters(mean=nothing, strength=np.ones(()), **held)
        return _scatter_of(self.law.redraw(known, n, nothing, residual, rng))

    def draw_levels(self, parameters, sums, rng):
        precision = algebra.inverted(parameters.cov)
        linear = algebra.multiply(sums.total, precision)
        noise = rng.standard_normal(linear.shape)
        chain = self._chain(parameters.step_cov)
        return chain.draw(linear, sums.n_rows[:, None, None] * precision, noise)

    def rename(self, parameters, order, link, key):
        """Rename levels one by one, and covariances at their average."""
        middle = parameters.levels.mean(axis=0)
        covs = {
            name: link.rename_law(middle, getattr(parameters, name), order, key)[1]
            for name in ("cov", "step_cov")
        }
        if self.law is not None:
            covs["precision"] = algebra.inverted(covs["cov"])
        return {"levels": link.rename(parameters.levels, order), **covs}

    # moves of all documents at once

    def means(self, parameters, given):
        return parameters.levels[given["slices"]]

    def move(self, parameters, gains, stretch, shift, rng):
        """Stretch documents about their levels with cov, or shift them with all levels."""
        if shift.any():
            return self._shifted(parameters, gains, stretch, shift, rng)
        still = np.zeros(len(gains))
        held = {name: getattr(parameters, name) for name in ("cov", *_SCALES)}
        known = ScaledParameters(mean=still, strength=np.ones(()), **held)
        gains = gains + np.log(
            stretch
        )  # the law of a mean, which is not here, would take this away
        law: Any = self.law
        moved, *done = law.move(known, gains, stretch, still, rng)
        return parameters._replace(**_scatter_of(moved)), *done

    def _shifted(self, parameters, gains, stretch, shift, rng):
        precision, heights = algebra.inverted(self._start_cov()), np.log(rng.random(len(gains)))
        away, shift = parameters.levels[0] - self.prior.mean, shift.copy()
        stick_moves.shift_in_place(heights, gains, precision, 1.0, away, shift)
        return parameters._replace(levels=parameters.levels + shift), stretch, shift

    # what is told

    def average(self, parameters):
        """Return mean and covariance of psi about the average level."""
        return parameters.levels.mean(axis=0), parameters.cov

    def shares_by_slice(self, levels, cov, link, n_points=128):
        """Return the expected shares of topics (S, T) in each slice."""
        about = algebra.multiply(standard_normal_points(n_points, len(cov)), algebra.root(cov))
        return np.stack([link.shares(level + about).mean(0) for level in levels])


def _scatter_of(scaled):
    return {name: getattr(scaled, name) for name in ("cov", *_SCALES)}
