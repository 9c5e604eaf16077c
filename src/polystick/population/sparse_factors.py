"""A covariance of few factors that move few entries each, and noise."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import lapack

from polystick.kernels import factor_moves
from polystick.population.gammas import TINY, inverse_gamma, inverse_gamma_within

__all__ = ["FactorParameters", "SparseFactors"]

NOISE = (1e-6, 1e6)  # variances: beyond, a number tells nothing but the rounding of others
LOCAL = (0.0, 1e4)
OVERALL = (0.0, 1.0)


class FactorParameters(NamedTuple):
    """A mean, a covariance loadings loadings' + diag(noise), and the scales that these are drawn from."""

    mean: np.ndarray  # (K,)
    cov: np.ndarray  # (K, K)
    precision: np.ndarray  # (K, K)
    loadings: np.ndarray  # (K, H)
    noise: np.ndarray  # (K,) variances
    noise_rate: np.ndarray  # (K,)
    local: np.ndarray  # (K, H) variances of loadings
    local_rate: np.ndarray  # (K, H)
    overall: np.ndarray  # (H,) variances of columns
    overall_rate: np.ndarray  # (H,)


@dataclass(frozen=True, eq=False)
class SparseFactors:
    """Few factors, each of which moves few entries: cov = loadings loadings' + diag(noise).

    Loadings have a horseshoe law (Carvalho, Polson and Scott 2010), half-Cauchy scales for each and for each
    factor: most are nearly 0, and those that are not are hardly shrunk. Noise has half-Cauchy
    standard deviations. Far out all these laws are cut off (`NOISE`, `LOCAL`, `OVERALL`). The mean is
    N(centre, wide^2).

    Parameters
    ----------
    centre : array (K,)
        Of the mean.
    n_factors : int or None
        None: half as many as there are entries, at most 16.
    scale : float
        Of the standard deviations of the noise.
    sparsity : float
        Scale of the scales of the factors.
    wide : float
        Standard deviation of the mean.
    """

    centre: np.ndarray
    n_factors: int | None = None
    scale: float = 2.0
    sparsity: float = 0.3
    wide: float = 10.0

    parameter_type: ClassVar = FactorParameters

    @cached_property
    def shape(self):
        """K and H."""
        k = len(self.centre)
        return k, max(1, min(16, k // 2)) if self.n_factors is None else self.n_factors

    def draw(self, rng):
        k, h = self.shape
        noise, noise_rate = _half_cauchy(NOISE, self.scale, (k,), rng)
        overall, overall_rate = _half_cauchy(OVERALL, self.sparsity, (h,), rng)
        local, local_rate = _half_cauchy(LOCAL, 1.0, (k, h), rng)
        loadings = np.sqrt(local * overall) * rng.standard_normal((k, h))
        mean = self.centre + self.wide * rng.standard_normal(k)
        scales = (noise, noise_rate, local, local_rate, overall, overall_rate)
        return self._assembled(mean, loadings, *scales)

    def start(self, rng):
        k, h = self.shape
        noise, overall = np.exp(rng.standard_normal(k)), np.full(h, self.sparsity**2)
        ones, loadings = np.ones((k, h)), self.sparsity * rng.standard_normal((k, h))
        mean = self.centre + rng.standard_normal(k)
        return self._assembled(mean, loadings, noise, np.ones(k), ones, ones, overall, np.ones(h))

    def _assembled(self, mean, loadings, noise, *scales):
        cov = loadings @ loadings.T + np.diag(noise)
        precision = _inverse(cov)  # of no noise, where Woodbury's form would cancel, as of any
        return FactorParameters(mean, cov, precision, loadings, noise, *scales)

    def redraw(self, parameters, n, total, outer, rng):
        """Draw factors | rows; mean, loadings | factors, rows; noise | these; scales | loadings, noise."""
        k, p = len(self.centre), parameters
        about = _about(p.mean, n, total, outer)
        gram, cross = _factor_sums(p, n, about, rng)
        self._move_factors(p, gram, cross, rng)
        weights = self._redraw_regressions(p, gram, cross, rng)
        squares = np.diag(about)[1:] - 2.0 * np.sum(weights * cross.T, axis=1)
        squares += np.einsum("kh,hg,kg->k", weights, gram, weights)
        rate = 1.0 / p.noise_rate + 0.5 * np.maximum(squares, 0.0)
        noise = inverse_gamma_within(NOISE, 0.5 * (n + 1), rate, rng)
        noise_rate = inverse_gamma(1.0, 1.0 / noise + self.scale**-2.0, rng)
        loadings = weights[:, 1:]
        sizes = 0.5 * np.square(loadings)
        rate = 1.0 / p.local_rate + sizes / p.overall
        local = inverse_gamma_within(LOCAL, 1.0, rate, rng)
        local_rate = inverse_gamma(1.0, 1.0 / local + 1.0, rng)
        rate = 1.0 / p.overall_rate + (sizes / local).sum(axis=0)
        overall = inverse_gamma_within(OVERALL, 0.5 * (k + 1), rate, rng)
        overall_rate = inverse_gamma(1.0, 1.0 / overall + self.sparsity**-2.0, rng)
        scales = (noise, noise_rate, local, local_rate, overall, overall_rate)
        return self._assembled(p.mean + weights[:, 0], loadings, *scales)

    def _move_factors(self, p, gram, cross, rng):
        """Let factors lean on each other and on the mean, in place; weights follow when they are redrawn."""
        weights, (centre, known) = self.weights(p)
        weights[:, 0], centre[:, 0] = 0.0, self.centre - p.mean
        key = rng.integers(2**64, dtype=np.uint64)
        factor_moves.move_in_place(key, gram, cross, weights, centre, known)

    def _redraw_regressions(self, p, gram, cross, rng):
        """Draw (change of the mean, loadings) of each entry (K, 1 + H) given the factors' sums."""
        (k, h), known = self.shape, np.empty((self.shape[0], self.shape[1] + 1))
        known[:, 0], known[:, 1:] = self.wide**-2.0, 1.0 / np.maximum(p.local * p.overall, TINY)
        precision = gram / p.noise[:, None, None] + known[:, :, None] * np.eye(h + 1)
        linear = cross.T / p.noise[:, None]
        linear[:, 0] += (self.centre - p.mean) * known[:, 0]
        root = np.linalg.cholesky(precision)
        half = np.linalg.solve(root, linear[:, :, None]) + rng.standard_normal((k, h + 1, 1))
        return np.linalg.solve(np.swapaxes(root, 1, 2), half)[:, :, 0]

    def draw_factors(self, parameters, psi, noise):
        """Return (1, factors) of each row (n, 1 + H) given psi, an affine function of noise (n, H)."""
        p = parameters
        m, root = _regression_on_rows(p)
        return np.column_stack([np.ones(len(psi)), (psi - p.mean) @ m + noise @ root.T])

    def weights(self, parameters):
        """Return (mean, loadings) of each entry (K, 1 + H), and centre and precision of their normal law."""
        p = parameters
        weights = np.column_stack([p.mean, p.loadings])
        centre, precision = np.zeros_like(weights), np.empty_like(weights)
        centre[:, 0], precision[:, 0] = self.centre, self.wide**-2.0
        precision[:, 1:] = 1.0 / np.maximum(p.local * p.overall, TINY)
        return weights, (centre, precision)

    def moved(self, parameters, weights, noise, rng):
        """Return the parameters with new weights and noise; the rate of the noise follows."""
        p = parameters
        rate = inverse_gamma(1.0, 1.0 / noise + self.scale**-2.0, rng)
        return self._assembled(
            weights[:, 0], weights[:, 1:], noise, rate,
            p.local, p.local_rate, p.overall, p.overall_rate,
        )  # fmt: skip

    def recentre(self, parameters, rng):
        """Draw what all entries of the mean share, and all loadings of a factor."""
        p = parameters
        weights, (centre, precision) = self.weights(p)
        whole = precision.sum(axis=0)
        level = np.sum(precision * (centre - weights), axis=0) / whole
        weights = weights + level + rng.standard_normal(len(whole)) / np.sqrt(whole)
        return self._assembled(
            weights[:, 0], weights[:, 1:], p.noise, p.noise_rate,
            p.local, p.local_rate, p.overall, p.overall_rate,
        )  # fmt: skip


def _half_cauchy(ends, scale, shape, rng):
    """Draw squares of half-Cauchy numbers within ends, and the rates of the inverse gammas that they are."""
    square, rate = np.zeros(shape), np.zeros(shape)
    wanted = np.ones(shape, dtype=bool)
    while wanted.any():
        rate[wanted] = inverse_gamma(0.5, np.full(wanted.sum(), scale**-2.0), rng)
        square[wanted] = inverse_gamma(0.5, 1.0 / rate[wanted], rng)
        wanted = (square < ends[0]) | (square > ends[1])
    return square, rate


def _about(mean, n, total, outer):
    """Return sums of products (1 + K, 1 + K) of (1, psi - mean) over rows."""
    cross = np.outer(mean, total)
    found = np.empty((len(mean) + 1, len(mean) + 1))
    found[0, 0], found[0, 1:], found[1:, 0] = n, total - n * mean, total - n * mean
    found[1:, 1:] = outer - cross - cross.T + n * np.outer(mean, mean)
    return found


def _regression_on_rows(p):
    """Return M (K, H) and a root R (H, H): given a row's d = psi - mean its factors are N(d M, R R')."""
    information = np.eye(p.loadings.shape[1]) + p.loadings.T @ (p.loadings / p.noise[:, None])
    root = np.linalg.cholesky(information)
    return p.precision @ p.loadings, np.linalg.inv(root).T


def _factor_sums(p, n, about, rng):
    """Draw what the factors of all rows add up to: products of (1, factors) with themselves and with rows.

    Given psi - mean = d, the factors are d M + E R' with E standard normal (n, H). Only sums of products of E
    with itself and with (1, d) are needed, and these are normal and Wishart whatever n is: no factor of a row
    is ever drawn.

    Returns gram (1 + H, 1 + H) and cross (1 + H, K), with d.
    """
    h = p.loadings.shape[1]
    m, root = _regression_on_rows(p)
    with_rows, with_itself = _noise_sums(n, about, h, rng)
    both = about[:, 1:] @ m + with_rows @ root.T  # (1, d)' factors
    gram = np.empty((h + 1, h + 1))
    gram[0, 0], gram[0, 1:], gram[1:, 0] = n, both[0], both[0]
    mixed = m.T @ with_rows[1:] @ root.T
    gram[1:, 1:] = m.T @ about[1:, 1:] @ m + mixed + mixed.T + root @ with_itself @ root.T
    cross = np.ascontiguousarray(np.concatenate([about[:1, 1:], both[1:].T]))
    return gram, cross


def _noise_sums(n, about, h, rng):
    """Draw X'E and E'E for E standard normal (n, h), given X'X: columns of X span part of the rows."""
    factor, failed = lapack.dpotrf(about, lower=1)
    if failed or n <= len(about):
        values, vectors = np.linalg.eigh(about)
        rank = min(n, len(about))
        first = len(about) - rank
        factor = vectors[:, first:] * np.sqrt(np.maximum(values[first:], 0.0))
    within = rng.standard_normal((factor.shape[1], h))
    return factor @ within, within.T @ within + _wishart(n - factor.shape[1], h, rng)


def _wishart(degrees, h, rng):
    """Draw X'X for X standard normal (degrees, h)."""
    if degrees <= h:
        x = rng.standard_normal((degrees, h))
        return x.T @ x
    bartlett = np.tril(rng.standard_normal((h, h)), -1)
    np.fill_diagonal(bartlett, np.sqrt(rng.chisquare(degrees - np.arange(h))))
    return bartlett @ bartlett.T


def _inverse(a):
    """Invert a symmetric positive definite matrix."""
    root, failed = lapack.dpotrf(a, lower=1)
    inverse, failed_too = lapack.dpotri(root, lower=1)
    if failed or failed_too:
        raise np.linalg.LinAlgError("a covariance is not positive definite")
    return np.tril(inverse) + np.tril(inverse, -1).T
