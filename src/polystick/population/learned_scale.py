"""An inverse Wishart law whose scales are learned, and how diagonal it is."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, logsumexp, softmax

from polystick.conjugate import NormalInverseWishart
from polystick.kernels import algebra, stick_moves
from polystick.population.gammas import gamma_divergence, inverse_gamma

__all__ = ["LearnedScale", "ScaledFactor", "ScaledParameters"]


class ScaledParameters(NamedTuple):
    """A mean, a covariance, and the scales that they are drawn from."""

    mean: np.ndarray  # (k,)
    cov: np.ndarray  # (k, k)
    precision: np.ndarray  # (k, k)
    spread: np.ndarray  # (k,) a: the inverse Wishart has scale 2 nu diag(1 / a)
    strength: np.ndarray  # () rows that the mean is worth
    nu: np.ndarray  # () degrees beyond those that a covariance needs


@dataclass(frozen=True, eq=False)
class LearnedScale:
    """An inverse Wishart law whose scales are learned (Huang and Wand 2013).

    spread_k ~ InverseGamma(1/2, 1 / scale^2) and, given them, cov ~ InverseWishart(2 nu diag(1 / spread),
    nu + k - 1): standard deviations are half-t with nu degrees, each correlation is uniform for nu = 2 and
    the smaller the larger nu is. Where nu is learned too, each value of `NUS` is as probable as the others:
    rows whose entries hardly depend on each other make the covariance nearly diagonal. The mean is
    N(centre, cov / strength), with strength ~ Gamma(1, rate `RATE`).

    Parameters
    ----------
    centre : array (k,)
        Of the mean.
    scale : float
        Of the standard deviations.
    nu : float or None
        Degrees of their half-t law; None: learned.
    """

    centre: np.ndarray
    scale: float = 2.0
    nu: float | None = None

    NUS: ClassVar = 2.0 ** np.arange(1, 10.5, 0.5)  # 2 to 1024
    SHAPE: ClassVar = 1.0
    RATE: ClassVar = 4.0
    parameter_type: ClassVar = ScaledParameters

    @cached_property
    def nus(self):
        """Values that nu may have (G,)."""
        return self.NUS if self.nu is None else np.array([float(self.nu)])

    def given(self, parameters):
        """Return the conjugate law that mean and cov have given their scales."""
        return self._given(parameters.spread, parameters.strength, parameters.nu)

    def _given(self, spread, strength, nu):
        degrees = float(nu) + len(self.centre) - 1
        return NormalInverseWishart.known(
            self.centre, float(strength), np.diag(2.0 * float(nu) / spread), degrees
        )

    def draw(self, rng):
        k = len(self.centre)
        spread = inverse_gamma(0.5, np.full(k, self.scale**-2.0), rng)
        return self._draw_given(spread, rng.gamma(self.SHAPE) / self.RATE, rng)

    def start(self, rng):
        spread = np.exp(rng.standard_normal(len(self.centre)))
        return self._draw_given(spread, np.exp(0.5 * rng.standard_normal()) / self.RATE, rng)

    def _draw_given(self, spread, strength, rng):
        nu = rng.choice(self.nus)
        mean, cov, precision = self._given(spread, strength, nu).draw(rng)
        scales = (spread, np.asarray(strength), np.asarray(nu))
        return ScaledParameters(mean, cov, precision, *scales)

    def redraw(self, parameters, n, total, outer, rng):
        """nu, mean, cov | scales, rows, then scales | these."""
        if len(self.nus) > 1:
            prior = self.given(parameters)
            told = prior.posterior(n, total, outer).scale - prior.scale
            parameters = self.redraw_nu(parameters, n, told, rng)
        drawn = self.given(parameters).posterior(n, total, outer).draw(rng)
        return self.redraw_scales(parameters._replace(**drawn._asdict()), rng)

    def redraw_nu(self, parameters, n, told, rng):
        """Draw nu with mean and cov integrated out: given these it would hardly move.

        told : (k, k) what n rows add to the scale of the law of cov
        """
        if len(self.nus) == 1:
            return parameters
        root = np.sqrt(parameters.spread)
        p = softmax(self._log_marginal(n, np.linalg.eigvalsh(root[:, None] * told * root)))
        return parameters._replace(nu=np.asarray(rng.choice(self.nus, p=p)))

    def _log_marginal(self, n, eigenvalues):
        """Return log p(rows | nu) of each nu (G,) but for a constant.

        eigenvalues : (k,) of the rows' sum of squares in units of the scales
        """
        k, nu = len(self.centre), self.nus
        degrees = nu + k - 1
        log_scale = 0.5 * degrees * k * np.log(2.0 * nu)
        log_scale -= 0.5 * (degrees + n) * np.log(np.add.outer(2.0 * nu, eigenvalues)).sum(axis=1)
        both = _log_gammas(k, n, tuple(degrees)) - _log_gammas(k, 0, tuple(degrees))
        return log_scale + both

    def redraw_scales(self, parameters, rng):
        """Draw scales | mean, cov."""
        k, precision, nu = len(self.centre), parameters.precision, float(parameters.nu)
        rate = nu * np.diag(precision) + self.scale**-2.0
        gap = parameters.mean - self.centre
        strength = rng.gamma(self.SHAPE + 0.5 * k) / (
            self.RATE + 0.5 * algebra.quadratic(precision, gap)
        )
        return parameters._replace(
            spread=inverse_gamma(0.5 * (nu + k), rate, rng), strength=np.asarray(strength)
        )

    def move(self, parameters, gains, stretch, shift, rng):
        """Decide which sticks of all rows are stretched or shifted with their part of the law.

        gains : (k,) of the log likelihood, were all of them

        Returns parameters, and the stretch and the shift (k,) that rows must follow.
        """
        stretch, shift, away = stretch.copy(), shift.copy(), parameters.mean - self.centre
        heights, strength = np.log(rng.random(len(away))), float(parameters.strength)
        cov, precision, spread = (
            np.array(part) for part in (parameters.cov, parameters.precision, parameters.spread)
        )
        if shift.any():
            stick_moves.shift_in_place(heights, gains, precision, strength, away, shift)
        else:
            stick_moves.stretch_in_place(
                heights, gains, away, strength, self.scale**-2.0, stretch, cov, precision, spread
            )
        law = {"mean": self.centre + away, "cov": cov, "precision": precision, "spread": spread}
        return parameters._replace(**law), stretch, shift

    def recentre(self, parameters, rng):
        return self.given(parameters).recentre(parameters, rng)

    # mean field

    def initial_factor(self):
        k, nu = len(self.centre), self.nus[0]
        shape = 0.5 * (nu + k)
        strength = np.array([self.SHAPE + 0.5 * k, self.RATE * (self.SHAPE + 0.5 * k)])
        spread = np.concatenate([[shape], np.full(k, shape)])
        weights = np.where(self.nus == nu, 1.0, 0.0)
        return ScaledFactor(self._expected(nu, spread, strength), spread, strength, weights)

    def _expected(self, nu, spread, strength):
        """Return the conjugate law at the expected scales."""
        return NormalInverseWishart(
            self.centre,
            strength[0] / strength[1],
            np.diag(2.0 * nu * spread[0] / spread[1:]),
            nu + len(self.centre) - 1,
        )

    def updated(self, factor, n, total, outer):
        """Return the best factor of mean and cov given rows, then those of scales and nu given it."""
        nu, k = float(np.sum(factor.weights * self.nus)), len(self.centre)
        normal = self._expected(nu, factor.spread, factor.strength).posterior(n, total, outer)
        gap, precision = normal.mean - self.centre, normal.expected_precision
        quadratic = k / normal.strength + algebra.quadratic(precision, gap)
        strength = np.array([self.SHAPE + 0.5 * k, self.RATE + 0.5 * quadratic])
        rate = self.scale**-2.0 + nu * np.diag(precision)
        spread = np.concatenate([[0.5 * (nu + k)], rate])
        weights = softmax(self._expected_heights(normal, spread))
        return ScaledFactor(normal, spread, strength, weights)

    def _expected_heights(self, normal, spread):
        """Return the expected log density of cov given each nu (G,)."""
        k, nu, (shape, rate) = len(self.centre), self.nus, (spread[0], spread[1:])
        degrees, log_det = nu + k - 1, normal.expected_log_det_precision
        log_scale = k * (np.log(nu) + digamma(shape)) - np.log(rate).sum()
        value = 0.5 * degrees * log_scale + 0.5 * (degrees + k + 1) * log_det
        value -= nu * np.sum(np.diag(normal.expected_precision) * shape / rate)
        return value - _log_gammas(k, 0, tuple(degrees))

    def divergence(self, factor):
        """Return KL(factor || this law), with the best weights of nu."""
        heights = self._expected_heights(factor.normal, factor.spread)
        chosen = logsumexp(heights) - np.log(len(heights)) - heights[0]
        return self._divergence_given(self.nus[0], factor) - chosen

    def _divergence_given(self, nu, factor):
        """Return KL(factor || this law with this nu)."""
        k = len(self.centre)
        degrees, shape, rate = nu + k - 1, factor.spread[0], factor.spread[1:]
        s, r = factor.strength
        jensen = 0.5 * k * (np.log(s) - digamma(s))
        jensen += 0.5 * degrees * k * (np.log(shape) - digamma(shape))
        own = factor.normal.kl(self._expected(nu, factor.spread, factor.strength))
        scales = gamma_divergence(shape, rate, 0.5, self.scale**-2.0).sum()
        return own + jensen + scales + gamma_divergence(s, r, self.SHAPE, self.RATE)


@dataclass(frozen=True, eq=False)
class ScaledFactor:
    """The factors of mean and cov, of 1 / spread and of strength (gammas), and of nu."""

    normal: NormalInverseWishart
    spread: np.ndarray  # (1 + k,) one shape, and rates
    strength: np.ndarray  # (2,) shape and rate
    weights: np.ndarray  # (G,) of the values of nu

    def blend(self, other, rate):
        """Return (1 - rate) of these natural parameters, and weights, and rate of the other's."""
        return ScaledFactor(
            self.normal.blend(other.normal, rate),
            (1.0 - rate) * self.spread + rate * other.spread,
            (1.0 - rate) * self.strength + rate * other.strength,
            (1.0 - rate) * self.weights + rate * other.weights,
        )


@lru_cache(maxsize=64)
def _log_gammas(k, n, degrees):
    """Return the log of the k-variate gamma function of (degrees + n) / 2, but for a constant."""
    return gammaln(0.5 * (np.subtract.outer(np.array(degrees) + n, np.arange(k)))).sum(axis=1)
