"""An inverse Wishart law whose scales are learned."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from polystick.conjugate import NormalInverseWishart
from polystick.population.gammas import inverse_gamma

__all__ = ["LearnedScale", "ScaledFactor", "ScaledParameters"]


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
        spread = inverse_gamma(0.5, np.full(k, self.scale**-2.0), rng)
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
            spread=inverse_gamma(0.5 * (self.nu + k), rate, rng), strength=np.asarray(strength)
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
