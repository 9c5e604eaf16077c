"""Shares of topics whose law moves from one slice of time to the next::

levels_1 ~ N(initial_mean, initial_cov)
levels_s ~ N(levels_{s-1}, step_cov)               s = 2..S, slices of time
step_cov ~ InverseWishart(step prior),  cov ~ InverseWishart(prior)
psi_d    ~ N(levels_{s(d)}, cov)                   d = 1..n, given the slices of documents

A slice may have no documents: the levels walk through it.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polystick.conjugate import NormalInverseWishart
from polystick.gaussians.dynamics import Chain
from polystick.gaussians.normal import Normal, Shifted
from polystick.models.normal_points import standard_normal_points
from polystick.models.topic_shares import Sums


@dataclass(frozen=True)
class WalkingShares:
    """Documents of a slice are exchangeable. It has no factors."""

    n_slices: int
    prior: NormalInverseWishart  # of the first level and of cov
    step_prior: NormalInverseWishart  # of step_cov; its mean and strength are not used

    fields: ClassVar = ("levels", "cov", "step_cov")
    told: ClassVar = fields

    def dims(self, axis):
        both = (axis, f"{axis}_too")
        return {"levels": ("time", axis), "cov": both, "step_cov": both}

    def simulate(self, rng):
        cov, step_cov = self.prior.draw(rng).cov, self.step_prior.draw(rng).cov
        shape = (self.n_slices, len(cov))
        nothing = np.zeros(shape), np.zeros((*shape, len(cov)))
        levels = self._chain(step_cov).draw(*nothing, rng.standard_normal(shape))
        return {"levels": levels, "cov": cov, "step_cov": step_cov}

    def _chain(self, step_cov):
        start = self.prior.scale / (self.prior.degrees - len(step_cov) - 1)
        return Chain.random_walk(self.prior.mean, start / self.prior.strength, step_cov)

    # Gibbs

    def start(self, psi, key):
        """Start with levels that do not move."""
        k = psi.shape[1]
        normal = self.prior.posterior(len(psi), psi.sum(axis=0), psi.T @ psi)
        return {
            "levels": np.tile(normal.mean, (self.n_slices, 1)),
            "cov": normal.scale / (normal.degrees - k + 1),
            "step_cov": self.step_prior.scale / (self.step_prior.degrees - k + 1),
        }

    def prepare(self, parameters):
        """Return the law of a document in each slice."""
        cov = parameters.cov
        return Shifted(parameters.levels, Normal(np.zeros(len(cov)), cov))

    def rows(self, walk, given):
        return Shifted(walk.mean[given["slices"]], walk.normal)

    def statistics(self, psi, given):
        """Sum by slice what can move."""
        slices = given["slices"]
        total = np.zeros((self.n_slices, psi.shape[1]))
        np.add.at(total, slices, psi)
        return Sums(np.bincount(slices, minlength=self.n_slices), total, psi.T @ psi)

    def draw(self, parameters, sums, rng):
        """Levels | psi, cov, step_cov; then cov | psi, levels and step_cov | levels."""
        levels = self._draw_levels(parameters, sums, rng)
        cross = levels.T @ sums.total
        residual = sums.outer - cross - cross.T + (levels * sums.n_rows[:, None]).T @ levels
        steps = np.diff(levels, axis=0)
        return {
            "levels": levels,
            "cov": draw_cov(self.prior, sums.n_rows.sum(), residual, rng),
            "step_cov": draw_cov(self.step_prior, len(steps), steps.T @ steps, rng),
        }

    def _draw_levels(self, parameters, sums, rng):
        precision = np.linalg.inv(parameters.cov)
        linear = sums.total @ precision
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
        return {"levels": link.rename(parameters.levels, order), **covs}

    # what is told

    def average(self, parameters):
        """Return mean and covariance of psi about the average level."""
        return parameters.levels.mean(axis=0), parameters.cov

    def shares_by_slice(self, levels, cov, link, n_points=128):
        """Return the expected shares of topics (S, T) in each slice."""
        about = standard_normal_points(n_points, len(cov)) @ np.linalg.cholesky(cov).T
        return np.stack([link.shares(level + about).mean(0) for level in levels])


def draw_cov(prior, n, outer, rng):
    """Draw a covariance given n residuals and their sum of outer products, under the scale of an NIW law."""
    scale = prior.scale + outer
    known = NormalInverseWishart(
        prior.mean, prior.strength, 0.5 * (scale + scale.T), prior.degrees + n
    )
    return known.draw(rng).cov
