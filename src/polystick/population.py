"""Laws of the mean and covariance of normal rows that learn their scale.

Like `NormalInverseWishart`, each has

    draw(rng)                                   parameters from the law
    start(rng)                                  parameters to start a chain from: apart, but not far out
    redraw(parameters, n, total, outer, rng)    a Gibbs step given n rows, sums of them and of outer products
    recentre(parameters, rng)                   the level that all entries of the mean share, which a softmax
                                                does not see, drawn given the rest
    given(parameters)                           the conjugate law that mean and cov have given the other
                                                parameters, where there is one

and parameters that begin with mean, cov and precision; for mean field, where there is one,

    initial_factor()                            of all parameters
    updated(factor, n, total, outer)            the best one given the rows' expected sums
    divergence(factor)                          KL(factor || law)

where factor.normal is that of mean and cov. In the room n, K, H are rows, entries and factors.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.special import digamma, gammainc, gammaincc, gammainccinv, gammaincinv, gammaln

from polystick.conjugate import NormalInverseWishart
from polystick.kernels import factor_moves

__all__ = ["LearnedScale", "SparseFactors"]

TINY = 1e-100
NOISE = (1e-6, 1e6)  # variances: beyond, a number tells nothing but the rounding of others
LOCAL = (0.0, 1e4)
OVERALL = (0.0, 1.0)


def _inverse_gamma(shape, rate, rng):
    """Draw an inverse gamma for each rate."""
    rate = np.asarray(rate)
    return np.maximum(rate / np.maximum(rng.standard_gamma(shape, rate.shape), TINY), TINY)


def _inverse(a):
    """Invert a symmetric positive definite matrix."""
    root, failed = lapack.dpotrf(a, lower=1)
    inverse, failed_too = lapack.dpotri(root, lower=1)
    if failed or failed_too:
        raise np.linalg.LinAlgError("a covariance is not positive definite")
    return np.tril(inverse) + np.tril(inverse, -1).T


def _inverse_gamma_within(ends, shape, rate, rng):
    """Draw an inverse gamma for each rate, given that it lies between two ends."""
    high, low = (np.divide(rate, end) if end else np.full(np.shape(rate), np.inf) for end in ends)
    return np.clip(rate / _gamma_within(low, high, shape, rng), *ends)


def _gamma_within(low, high, shape, rng):
    """Draw standard gammas between two ends, by whichever tail tells them apart."""
    if shape == 1.0 and np.isinf(high).all():
        return low + rng.standard_exponential(np.shape(low))
    u, is_right = rng.random(np.shape(low)), low > shape
    with np.errstate(divide="ignore", over="ignore"):
        left = gammainc(shape, low) + u * (gammainc(shape, high) - gammainc(shape, low))
        right = gammaincc(shape, high) + u * (gammaincc(shape, low) - gammaincc(shape, high))
        drawn = np.where(is_right, gammainccinv(shape, right), gammaincinv(shape, left))
        # where a tail is too small a number, it is exponential on the right, a power on the left
        far = np.where(is_right, low - np.log(1.0 - u), high * u ** (1.0 / shape))
    is_told = np.where(is_right, gammaincc(shape, low), gammainc(shape, high)) > TINY
    return np.clip(np.where(is_told, drawn, far), low, high)


class ScaledParameters(NamedTuple):
    """A mean, a covariance, and the scales that they are drawn from."""

    mean: np.ndarray  # (k,)
    cov: np.ndarray  # (k, k)
    precision: np.ndarray  # (k, k)
    spread: np.ndarray  # (k,) a: the inverse Wishart has scale 2 nu diag(1 / a)
    strength: np.ndarray  # () rows that the mean is worth


@dataclass(frozen=True, eq=False)
class LearnedScale:
    """An inverse Wishart law whose scales are learned (Huang and Wand 2013).

    spread_k ~ InverseGamma(1/2, 1 / scale^2) and, given them, cov ~ InverseWishart(2 nu diag(1 / spread),
    nu + k - 1): standard deviations are half-t with nu degrees, each correlation is uniform for nu = 2. The
    mean is N(centre, cov / strength), with strength ~ Gamma(1, rate `RATE`).

    Parameters
    ----------
    centre : array (k,)
        Of the mean.
    scale : float
        Of the standard deviations.
    nu : float
        Degrees of their half-t law.
    """

    centre: np.ndarray
    scale: float = 2.0
    nu: float = 2.0

    SHAPE: ClassVar = 1.0
    RATE: ClassVar = 4.0
    parameter_type: ClassVar = ScaledParameters

    def given(self, parameters):
        """Return the conjugate law that mean and cov have given their scales."""
        return self._given(parameters.spread, parameters.strength)

    def _given(self, spread, strength):
        degrees = self.nu + len(self.centre) - 1
        scale = np.diag(2.0 * self.nu / spread)
        return NormalInverseWishart(self.centre, float(strength), scale, degrees)

    def draw(self, rng):
        k = len(self.centre)
        spread = _inverse_gamma(0.5, np.full(k, self.scale**-2.0), rng)
        return self._draw_given(spread, rng.gamma(self.SHAPE) / self.RATE, rng)

    def start(self, rng):
        spread = np.exp(rng.standard_normal(len(self.centre)))
        return self._draw_given(spread, np.exp(0.5 * rng.standard_normal()) / self.RATE, rng)

    def _draw_given(self, spread, strength, rng):
        mean, cov, precision = self._given(spread, strength).draw(rng)
        return ScaledParameters(mean, cov, precision, spread, np.asarray(strength))

    def redraw(self, parameters, n, total, outer, rng):
        """mean, cov | scales, rows, then scales | mean, cov."""
        drawn = self.given(parameters).posterior(n, total, outer).draw(rng)
        return self.redraw_scales(parameters._replace(**drawn._asdict()), rng)

    def redraw_scales(self, parameters, rng):
        """Draw scales | mean, cov."""
        k, precision = len(self.centre), parameters.precision
        rate = self.nu * np.diag(precision) + self.scale**-2.0
        gap = parameters.mean - self.centre
        strength = rng.gamma(self.SHAPE + 0.5 * k) / (self.RATE + 0.5 * gap @ precision @ gap)
        return parameters._replace(
            spread=_inverse_gamma(0.5 * (self.nu + k), rate, rng), strength=np.asarray(strength)
        )

    def recentre(self, parameters, rng):
        return self.given(parameters).recentre(parameters, rng)

    # mean field

    def initial_factor(self):
        k = len(self.centre)
        rate = np.full(k, 0.5 * (self.nu + k))
        strength = np.array([self.SHAPE + 0.5 * k, self.RATE * (self.SHAPE + 0.5 * k)])
        return ScaledFactor(self._expected(rate, strength), rate, strength)

    def _expected(self, rate, strength):
        """Return the conjugate law at the expected scales."""
        k = len(self.centre)
        inverse = 0.5 * (self.nu + k) / rate
        return NormalInverseWishart(
            self.centre,
            strength[0] / strength[1],
            np.diag(2.0 * self.nu * inverse),
            self.nu + k - 1,
        )

    def updated(self, factor, n, total, outer):
        """Return the best factor of mean and cov given rows, then that of the scales given it."""
        normal = self._expected(factor.rate, factor.strength).posterior(n, total, outer)
        k, gap = len(self.centre), normal.mean - self.centre
        precision = normal.expected_precision
        quadratic = k / normal.strength + gap @ precision @ gap
        strength = np.array([self.SHAPE + 0.5 * k, self.RATE + 0.5 * quadratic])
        return ScaledFactor(normal, self.scale**-2.0 + self.nu * np.diag(precision), strength)

    def divergence(self, factor):
        """Return KL(factor || this law)."""
        k = len(self.centre)
        degrees, shape = self.nu + k - 1, 0.5 * (self.nu + k)
        s, r = factor.strength
        jensen = 0.5 * k * (np.log(s) - digamma(s))
        jensen += 0.5 * degrees * k * (np.log(shape) - digamma(shape))
        own = factor.normal.kl(self._expected(factor.rate, factor.strength))
        scales = _gamma_divergence(shape, factor.rate, 0.5, self.scale**-2.0).sum()
        return own + jensen + scales + _gamma_divergence(s, r, self.SHAPE, self.RATE)


@dataclass(frozen=True, eq=False)
class ScaledFactor:
    """The factors of mean and cov, of 1 / spread (gammas of one shape) and of strength (a gamma)."""

    normal: NormalInverseWishart
    rate: np.ndarray  # (k,)
    strength: np.ndarray  # (2,) shape and rate

    def blend(self, other, rate):
        """Return the factor whose natural parameters are (1 - rate) of these and rate of the other's."""
        return ScaledFactor(
            self.normal.blend(other.normal, rate),
            (1.0 - rate) * self.rate + rate * other.rate,
            (1.0 - rate) * self.strength + rate * other.strength,
        )


def _gamma_divergence(shape, rate, shape0, rate0):
    """Return KL(Gamma(shape, rate) || Gamma(shape0, rate0))."""
    value = (shape - shape0) * digamma(shape) - gammaln(shape) + gammaln(shape0)
    return value + shape0 * np.log(rate / rate0) + shape * (rate0 - rate) / rate


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
        noise = _inverse_gamma_within(NOISE, 0.5 * (n + 1), rate, rng)
        noise_rate = _inverse_gamma(1.0, 1.0 / noise + self.scale**-2.0, rng)
        loadings = weights[:, 1:]
        sizes = 0.5 * np.square(loadings)
        rate = 1.0 / p.local_rate + sizes / p.overall
        local = _inverse_gamma_within(LOCAL, 1.0, rate, rng)
        local_rate = _inverse_gamma(1.0, 1.0 / local + 1.0, rng)
        rate = 1.0 / p.overall_rate + (sizes / local).sum(axis=0)
        overall = _inverse_gamma_within(OVERALL, 0.5 * (k + 1), rate, rng)
        overall_rate = _inverse_gamma(1.0, 1.0 / overall + self.sparsity**-2.0, rng)
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
        rate = _inverse_gamma(1.0, 1.0 / noise + self.scale**-2.0, rng)
        return self._assembled(weights[:, 0], weights[:, 1:], noise, rate, *p[6:])

    def recentre(self, parameters, rng):
        """Draw what all entries of the mean share, and all loadings of a factor."""
        weights, (centre, precision) = self.weights(parameters)
        whole = precision.sum(axis=0)
        level = np.sum(precision * (centre - weights), axis=0) / whole
        weights = weights + level + rng.standard_normal(len(whole)) / np.sqrt(whole)
        return self._assembled(weights[:, 0], weights[:, 1:], *parameters[4:])


def _half_cauchy(ends, scale, shape, rng):
    """Draw squares of half-Cauchy numbers within ends, and the rates of the inverse gammas that they are."""
    square, rate = np.zeros(shape), np.zeros(shape)
    wanted = np.ones(shape, dtype=bool)
    while wanted.any():
        rate[wanted] = _inverse_gamma(0.5, np.full(wanted.sum(), scale**-2.0), rng)
        square[wanted] = _inverse_gamma(0.5, 1.0 / rate[wanted], rng)
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
    cross = np.concatenate([about[:1, 1:], both[1:].T])
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
