"""Sweeps of regressions that are wrong, and the twin of what kernels make at once."""

from dataclasses import dataclass

import numpy as np

from polystick.gaussians import regression
from polystick.models.regression import StickRegression
from polystick.models.regression_state import RegressionPrior
from polystick.population import HuangWand


@dataclass(frozen=True)
class WeakPriorOfScale(HuangWand):
    """Most of scale^-2 is dropped where d is drawn given e / d; without all of it d is lost at once."""

    def step(self, spread, sums, chance):
        drawn, by = super().step(spread, (sums[0], *(0.0 * each for each in sums[1:])), chance)
        before = drawn._replace(cov=drawn.cov / np.outer(by, by), size=drawn.size / np.abs(by))
        weak = HuangWand(self.k, self.diagonal, self.scale / np.sqrt(0.2), self.nu)
        rng = np.random.default_rng(chance.normals.view(np.uint64).ravel())
        return weak.rescale(before, *sums[1:], rng)


@dataclass(frozen=True)
class NoFlip(HuangWand):
    """A negative d turns e, and Q stays as it was."""

    def step(self, spread, sums, chance):
        spread, by = super().step(spread, sums, chance)
        flip = np.sign(by)
        return spread._replace(cov=flip[:, None] * spread.cov * flip), by


@dataclass(frozen=True, eq=False)
class OneByOne(RegressionPrior):
    """The twin of the kernels that make several turns: one by one."""

    turns_at_once = noise_at_once = False


@dataclass(frozen=True, eq=False)
class WrongLaws(OneByOne):
    """The laws of spread are drawn in a wrong way."""

    law: type = HuangWand

    @property
    def laws(self):
        return [self.law(law.k, law.diagonal, law.scale, law.nu) for law in super().laws]


class ForgotLine(StickRegression):
    """Noise is drawn as if kappa were about zero, and not about the line."""

    def about_line(self, line, potential):
        return potential


class NoiseNotIntegrated(StickRegression):
    """B and U are drawn as if there were no noise."""

    def tell(self, parameters, shards, potentials, ordered_map=map):
        told = [regression.tell_of_line(p, None) for p in potentials]
        return [
            regression.row_sums(s.data.columns, s.data.groups, *each)
            for s, each in zip(shards, told)
        ]
