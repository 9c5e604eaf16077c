"""Shares of topics that move with time and depend on what is known of documents::

levels_s          ~ WalkingShares                             s = 1..S, slices of time
cov, scales       ~ LearnedScale                              of documents about their line
shrinkage_g       ~ Gamma(SHAPE, rate RATE)                   g: terms of the regression
coefficients_c    ~ N(0, cov / shrinkage_{g(c)})              c = 1..p, columns of the covariates
psi_d             ~ N(levels_{s(d)} + x_d coefficients, cov)  given slices and covariates of documents

What all documents of a slice share is the walk's or the regression's: only how smooth levels are tells the
two apart. So an effect is mostly of what varies between documents of a slice.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from polystick.gaussians.normal import Normal, Shifted
from polystick.kernels import algebra
from polystick.models.regressed_shares import (
    RATE,
    SHAPE,
    draw_shrinkage,
    renamed_line,
)
from polystick.models.topic_shares import Sums
from polystick.models.walking_shares import WalkingShares


class Line(NamedTuple):
    """What all documents share."""

    levels: np.ndarray  # (S, k)
    coefficients: np.ndarray  # (p, k)
    normal: Normal  # of psi about the line


@dataclass(frozen=True, eq=False)
class DatedSums:
    """Sums over documents, of psi and of covariates x."""

    n_rows: np.ndarray  # (S,) by slice
    total: np.ndarray  # (S, k) of psi by slice
    covariates: np.ndarray  # (S, p) by slice
    outer: np.ndarray  # (k, k) of psi psi'
    gram: np.ndarray  # (p, p) of x x'
    cross: np.ndarray  # (p, k) of x psi'

    def __add__(self, other):
        return DatedSums(*(a + b for a, b in zip(vars(self).values(), vars(other).values())))


@dataclass(frozen=True, eq=False)
class RegressedWalk:
    """Documents of a slice are exchangeable but for their covariates. It has no factors."""

    walk: WalkingShares  # of the levels, and of cov, with a learned scale
    terms: np.ndarray  # (p,) the term of each column of the covariates, from 0 on
    covariates_cov: np.ndarray  # (p, p) of the covariates over documents, of mean 0

    told: ClassVar = ("levels", "coefficients", "cov", "step_cov")

    @property
    def law(self):
        return self.walk.law

    @property
    def fields(self):
        return (*self.walk.fields, "coefficients", "shrinkage")

    @property
    def n_terms(self):
        return int(self.terms.max()) + 1

    def dims(self, axis):
        return {**self.walk.dims(axis), "coefficients": ("covariate", axis)}

    def simulate(self, rng):
        law = self.walk.simulate(rng)
        shrinkage = rng.gamma(SHAPE, size=self.n_terms) / RATE
        noise = rng.standard_normal((len(self.terms), len(law["cov"])))
        slopes = algebra.multiply(noise, algebra.root(law["cov"])) / np.sqrt(
            shrinkage[self.terms, None]
        )
        return {**law, "coefficients": slopes, "shrinkage": shrinkage}

    # Gibbs

    def start(self, psi, key):
        """Start with levels that do not move and covariates that tell nothing."""
        slopes = np.zeros((len(self.terms), psi.shape[1]))
        start = self.walk.start(psi, key)
        return {**start, "coefficients": slopes, "shrinkage": np.ones(self.n_terms)}

    def prepare(self, parameters):
        cov = parameters.cov
        return Line(parameters.levels, parameters.coefficients, Normal(np.zeros(len(cov)), cov))

    def rows(self, line, given):
        """Return the law of documents; a row's mean has the same bits in any company, as BLAS has not."""
        slopes = np.einsum("dc,ck->dk", given["covariates"], line.coefficients)
        return Shifted(line.levels[given["slices"]] + slopes, line.normal)

    def statistics(self, psi, given):
        slices, x = given["slices"], given["covariates"]
        of_slices = (
            np.zeros((self.walk.n_slices, psi.shape[1])),
            np.zeros((self.walk.n_slices, x.shape[1])),
        )
        for sums, values in zip(of_slices, (psi, x)):
            np.add.at(sums, slices, values)
        n_rows = np.bincount(slices, minlength=self.walk.n_slices)
        return DatedSums(
            n_rows, *of_slices, algebra.gram(psi), algebra.gram(x), algebra.multiply(x.T, psi)
        )

    def draw(self, parameters, sums, rng):
        """Levels | psi, coefficients, covs; cov, coefficients and scales | levels; step_cov | levels."""
        rest = sums.total - algebra.multiply(sums.covariates, parameters.coefficients)
        levels = self.walk.draw_levels(parameters, Sums(sums.n_rows, rest, sums.outer), rng)
        scatter, slopes = self._draw_regression(parameters, levels, sums, rng)
        standard = algebra.solve_lower(algebra.root(scatter["cov"]), slopes.T).T
        return {
            "levels": levels,
            **scatter,
            "step_cov": self.walk.draw_step_cov(levels, rng),
            "coefficients": slopes,
            "shrinkage": draw_shrinkage(self.terms, standard, rng),
        }

    def _draw_regression(self, parameters, levels, sums, rng):
        """Cov and its scales | levels, psi; coefficients (p, k) | these."""
        strength = parameters.shrinkage[self.terms]
        root = algebra.root(sums.gram + np.diag(strength))
        rest = sums.cross - algebra.multiply(sums.covariates.T, levels)
        half = algebra.solve_lower(root, rest)
        about = self.walk.about_levels(levels, Sums(sums.n_rows, sums.total, sums.outer))
        scatter = self.walk.draw_scatter(
            parameters, sums.n_rows.sum(), about - algebra.gram(half), rng
        )
        noise = algebra.multiply(rng.standard_normal(half.shape), algebra.root(scatter["cov"]))
        return scatter, algebra.solve_upper(root, half + noise)

    def means(self, parameters, given):
        return self.walk.means(parameters, given)

    def move(self, parameters, gains, stretch, shift, rng):
        """As the walk has it, with the coefficients of a stick that is stretched."""
        moved, stretch, shift = self.walk.move(parameters, gains, stretch, shift, rng)
        return moved._replace(coefficients=stretch * moved.coefficients), stretch, shift

    def rename(self, parameters, order, link, key):
        """Rename levels one by one; coefficients follow the line that comes nearest to renamed psi."""
        slopes = renamed_line(self.average(parameters), order, link, key)[1]
        renamed = self.walk.rename(parameters, order, link, key)
        return {**renamed, "coefficients": algebra.multiply(parameters.coefficients, slopes)}

    # what is told

    def average(self, parameters):
        """Return mean and covariance of psi about the average level, what covariates explain included."""
        slopes = parameters.coefficients
        spread = algebra.multiply(self.covariates_cov, slopes)
        return (
            parameters.levels.mean(axis=0),
            parameters.cov + algebra.multiply(slopes.T, spread),
        )

    def shares_by_slice(self, levels, cov, link, n_points=128):
        return self.walk.shares_by_slice(levels, cov, link, n_points)
