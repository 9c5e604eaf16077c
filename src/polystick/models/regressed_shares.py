"""Shares of topics whose law is a regression on what is known of documents (structural topics)::

mean, cov, scales ~ law                                LearnedScale
shrinkage_g       ~ Gamma(SHAPE, rate RATE)            g: terms of the regression
coefficients_c    ~ N(0, cov / shrinkage_{g(c)})       c = 1..p, columns of the covariates
psi_d             ~ N(mean + x_d coefficients, cov)    d = 1..n, given the covariates x of documents

So effects are measured in units of the scatter of documents, with a half-Cauchy law of the size of each term
(SHAPE = RATE = 1/2): what a prior says does not change with the scale of psi. Columns should have mean 0 in
the corpus, so that `mean` is its level. Structural topic models (Roberts et al. 2016) have this law of
shares.

A stick that is stretched about `mean` takes its coefficients along: as cov is stretched too, the densities of
psi and of the coefficients change only by what the volume of the move makes up for.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from polystick.gaussians.normal import Normal, Shifted
from polystick.kernels import algebra
from polystick.models.topic_shares import RENAMED, NormalShares, Sums
from polystick.population import LearnedScale

SHAPE = RATE = 0.5


class Line(NamedTuple):
    """What all documents share: the regression, and the law of psi about it."""

    weights: np.ndarray  # (1 + p, k) the mean, and coefficients
    normal: Normal


class Told(NamedTuple):
    """What documents tell of the weights (1 + p, k) of the regression given cov, and of cov."""

    mean: np.ndarray  # (1 + p, k) of the weights
    root: np.ndarray  # (1 + p, 1 + p) upper triangular root of their precision, in units of 1 / cov
    squares: np.ndarray  # (k, k) added to the scale of the law of cov


@dataclass(frozen=True, eq=False)
class RegressedShares:
    """Documents are exchangeable but for their covariates. It has no factors."""

    law: LearnedScale  # of mean and cov
    terms: np.ndarray  # (p,) the term of each column of the covariates, from 0 on
    covariates_cov: np.ndarray  # (p, p) of the covariates over documents, of mean 0

    told: ClassVar = ("mean", "coefficients", "cov")

    @property
    def fields(self):
        return (*self.law.parameter_type._fields, "coefficients", "shrinkage")

    @property
    def n_terms(self):
        return int(self.terms.max()) + 1

    def dims(self, axis):
        both = (axis, f"{axis}_too")
        return {"mean": (axis,), "coefficients": ("covariate", axis), "cov": both}

    def simulate(self, rng):
        law = self.law.draw(rng)
        shrinkage = rng.gamma(SHAPE, size=self.n_terms) / RATE
        noise = rng.standard_normal((len(self.terms), len(law.mean)))
        slopes = noise @ np.linalg.cholesky(law.cov).T / np.sqrt(shrinkage[self.terms, None])
        return {**law._asdict(), "coefficients": slopes, "shrinkage": shrinkage}

    # Gibbs

    def start(self, psi, key):
        """Start with covariates that tell nothing."""
        start = NormalShares(self.law).start(psi, key)
        slopes = np.zeros((len(self.terms), psi.shape[1]))
        return {**start, "coefficients": slopes, "shrinkage": np.ones(self.n_terms)}

    def prepare(self, parameters):
        weights = np.vstack([parameters.mean, parameters.coefficients])
        return Line(weights, Normal(np.zeros(weights.shape[1]), parameters.cov))

    def rows(self, law, given):
        """Return the law of documents; a row's mean has the same bits in any company, as BLAS has not."""
        mean = law.weights[0] + np.einsum("dc,ck->dk", given["covariates"], law.weights[1:])
        return Shifted(mean, law.normal)

    def statistics(self, psi, given):
        x = _with_ones(given["covariates"])
        return Sums(algebra.gram(x), algebra.multiply(x.T, psi), algebra.gram(psi))

    def draw(self, parameters, sums, rng):
        """nu; cov | nu; weights | cov; scales and shrinkage | these."""
        told, n = self._told(parameters, sums), sums.n_rows[0, 0]
        parameters = self.law.redraw_nu(parameters, n, told.squares, rng)
        prior = self.law.given(parameters).of_cov
        root, inverse_root = prior.posterior(n, told.squares).draw_roots(rng)
        noise = algebra.multiply(rng.standard_normal(told.mean.shape), root)
        weights = told.mean + algebra.solve_upper(told.root, noise)
        drawn = parameters._replace(
            mean=weights[0],
            cov=algebra.gram(root, algebra.UPPER),
            precision=algebra.gram(inverse_root.T, algebra.LOWER),
        )
        drawn = self.law.redraw_scales(drawn, rng)
        found = {name: getattr(drawn, name) for name in self.law.parameter_type._fields}
        shrinkage = self._draw_shrinkage(algebra.multiply(weights[1:], inverse_root), rng)
        return {**found, "coefficients": weights[1:], "shrinkage": shrinkage}

    def _told(self, parameters, sums):
        """Sums are taken about the centre of the mean first, so that a good one does not cancel."""
        gram, centre = sums.n_rows, self.law.centre
        strength = parameters.shrinkage[self.terms]
        root = algebra.root(gram + np.diag([float(parameters.strength), *strength]))
        rest = sums.total - np.outer(gram[0], centre)
        cross = np.outer(centre, sums.total[0])
        about = sums.outer - cross - cross.T + gram[0, 0] * np.outer(centre, centre)
        half = algebra.solve_lower(root, rest)
        mean = algebra.solve_upper(root, half)
        mean[0] += centre
        return Told(mean, root, about - algebra.gram(half))

    def _draw_shrinkage(self, standard, rng):
        """Draw the shrinkage of each term given coefficients (p, k) in units of the scatter of documents."""
        return draw_shrinkage(self.terms, standard, rng)

    def move(self, parameters, gains, stretch, shift, rng):
        """As the law of mean and cov has it, with the coefficients of a stick that is stretched."""
        moved, stretch, shift = self.law.move(parameters, gains, stretch, shift, rng)
        return moved._replace(coefficients=stretch * moved.coefficients), stretch, shift

    def rename(self, parameters, order, link, key):
        """Take the line that comes nearest to renamed psi: good enough for the one sweep that uses it."""
        level, slopes, rest = renamed_line(self.average(parameters), order, link, key)
        half = algebra.multiply(algebra.root(parameters.cov), slopes)
        found = algebra.gram(half) + algebra.gram(rest) / RENAMED
        law = {"mean": level, "cov": found, "precision": algebra.inverted(found)}
        return {**law, "coefficients": algebra.multiply(parameters.coefficients, slopes)}

    # what is told

    def average(self, parameters):
        """Return mean and covariance of psi over documents, what covariates explain included."""
        slopes = parameters.coefficients
        spread = algebra.multiply(self.covariates_cov, slopes)
        return parameters.mean, parameters.cov + algebra.multiply(slopes.T, spread)


def renamed_line(average, order, link, key):
    """Return level, slopes (k, k) and rest of renamed psi, as a line in psi as it was; average: its law."""
    mean, cov = average
    noise = key.generator("rename").standard_normal((RENAMED, len(mean)))
    root = algebra.root(cov)
    psi = link.rename(mean + algebra.multiply(noise, root), order)
    level = psi.mean(axis=0)
    told = algebra.multiply(noise.T, psi - level)
    standard = algebra.solve(algebra.root(algebra.gram(noise)), told)  # slopes on the noise
    rest = psi - level - algebra.multiply(noise, standard)
    return level, algebra.solve_upper(root, standard), rest


def draw_shrinkage(terms, standard, rng):
    """Draw the shrinkage of each term given coefficients (p, k) in units of the scatter of documents."""
    squares = np.bincount(terms, weights=np.square(standard).sum(axis=1))
    sizes = standard.shape[1] * np.bincount(terms)
    return rng.gamma(SHAPE + 0.5 * sizes) / (RATE + 0.5 * squares)


def _with_ones(x):
    return np.column_stack([np.ones(len(x)), x])
