"""A covariance of rows about zero whose scales are learned, in two ways that a sweep can alternate."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.linalg import lapack
from scipy.special import digamma

from polystick.conjugate import InverseWishart
from polystick.kernels import spreads
from polystick.kernels.buffers import as_buffers
from polystick.kernels.spreads import Chance, Spread
from polystick.population.gammas import gamma_divergence, inverse_gamma

__all__ = ["Chance", "HuangWand", "Spread", "SpreadFactor"]


@dataclass(frozen=True, eq=False)
class SpreadFactor:
    """The factors of a covariance, an inverse Wishart or inverse gammas, and of d^2, gammas."""

    scale: np.ndarray  # (k, k)
    degrees: float
    rate: np.ndarray  # (k,)


@dataclass(frozen=True)
class HuangWand:
    """Rows e ~ N(0, D Q D), d_j ~ N(0, scale^2), Q ~ InverseWishart(nu I, nu + k - 1) (Huang and Wand 2013).

    Standard deviations are half-t with nu degrees, correlations uniform for nu = 2. Both halves of an
    interweaving (Yu and Meng 2011) are conjugate: cov and d given e, and d given e / d, where the sign of d
    is free and goes with those of e / d and of Q.

    Parameters
    ----------
    k : int
    diagonal : bool
        Entries of e are independent; Q is diagonal, of inverse gammas.
    scale : float
        Of the standard deviations.
    nu : float
        Degrees of their half-t law.
    """

    k: int
    diagonal: bool = False
    scale: float = 1.0
    nu: float = 2.0

    def draw(self, rng):
        size = np.abs(self.scale * rng.standard_normal(self.k))
        return Spread(self._draw_cov(0, np.zeros((self.k, self.k)), size, rng), size)

    def start(self, rng):
        sd = 0.5 * self.scale * np.exp(0.5 * rng.standard_normal(self.k))
        return Spread(np.diag(sd**2), sd)

    def redraw(self, spread, n, outer, rng):
        """Covariance | d and n rows with this sum of outer products, then d | covariance."""
        if self.diagonal:
            return self._redraw_diagonal(spread, n, outer, rng)
        normals, gammas = rng.standard_normal((self.k, self.k)), rng.standard_gamma(self._shapes(n))
        cov, size = np.empty((self.k, self.k)), np.empty(self.k)
        given = *as_buffers(outer, spread.size), float(self.nu), float(self.scale), normals, gammas
        spreads.redraw(*given, cov, size)
        return Spread(cov, size)

    def _shapes(self, n):
        """Return shapes of the gammas that a covariance is made of, then of those of d^2."""
        return _shapes(self._degrees + n, self._shape, self.k, self.diagonal)

    def chance(self, n, turns, rng):
        """Draw what some steps given n rows need of chance."""
        return Chance(
            rng.standard_normal((turns, self.k + 1, self.k)),
            rng.standard_gamma(self._shapes(n), (turns, 2 * self.k)),
        )

    @property
    def compiled(self):
        """What kernels must know of the law."""
        return spreads.Law(float(self.nu), float(self.scale), self.diagonal)

    def step(self, spread, sums, chance):
        """Do as `redraw` and then `rescale` in one call: return the spread, and by what to multiply e.

        sums : outer, curvature and slope
        """
        drawn = Spread(spread.cov.copy(), spread.size.copy())
        by, sums = np.empty(self.k), spreads.Sums(*as_buffers(*sums))
        spreads.step_in_place(self.compiled, sums, *chance, drawn, by)
        return drawn, by

    def _redraw_diagonal(self, spread, n, outer, rng):
        cov = self._draw_cov(n, outer, spread.size, rng)
        rate = 0.5 * self.scale**-2.0 + 0.5 * self.nu / np.diag(cov)
        return Spread(cov, np.sqrt(rng.standard_gamma(0.5 * (self.nu + 1.0), self.k) / rate))

    def _draw_cov(self, n, outer, size, rng):
        if self.diagonal:
            rate = 0.5 * (self.nu * size**2 + np.diag(outer))
            return np.diag(inverse_gamma(0.5 * (self.nu + n), rate, rng))
        prior = InverseWishart(np.diag(self.nu * size**2), self.nu + self.k - 1.0)
        return prior.posterior(n, outer).draw(rng)

    def rescale(self, spread, curvature, slope, rng, entries=slice(None)):
        """Scales d | e / d and potentials: return the spread, and by what (k,) to multiply e.

        curvature, slope : (m, m), (m,) of the m entries whose scales are drawn: sums over rows of e weight e'
            and of e (linear - weight rest), where weight and linear are what is told of rest + e; a
            curvature (m,) is diagonal
        """
        before = spread.size[entries]
        if curvature.ndim == 1:
            told = curvature / before**2 + self.scale**-2.0
            noise = rng.standard_normal(len(before)) / np.sqrt(told)
            return self._rescaled(spread, slope / (before * told) + noise, entries)
        told = curvature / np.outer(before, before) + np.eye(len(before)) * self.scale**-2.0
        root, _ = lapack.dpotrf(told, lower=1)
        half, _ = lapack.dtrtrs(root, slope / before, lower=1)
        noise = rng.standard_normal(len(before))
        drawn, _ = lapack.dtrtrs(root, half + noise, lower=1, trans=1)
        return self._rescaled(spread, drawn, entries)

    def _rescaled(self, spread, drawn, entries):
        """Return the spread with some scales, of any sign, and by what they changed."""
        by = np.ones(self.k)
        by[entries] = drawn / spread.size[entries]
        return Spread(by[:, None] * spread.cov * by, spread.size * np.abs(by)), by

    # mean field

    @property
    def _degrees(self):
        return self.nu if self.diagonal else self.nu + self.k - 1.0

    @property
    def _shape(self):
        return 0.5 * (self.nu + (1 if self.diagonal else self.k))

    def initial_factor(self):
        """Start from standard deviations of about half the scale."""
        degrees = self._degrees + self.k + 2.0
        return SpreadFactor(
            0.25 * self.scale**2 * degrees * np.eye(self.k),
            degrees,
            np.full(self.k, 4.0 * self._shape * self.scale**-2.0),
        )

    def updated(self, factor, n, outer):
        """Return the best factor of the covariance given n rows' expected sum, then that of d given it."""
        told = np.diag(np.diag(outer)) if self.diagonal else 0.5 * (outer + outer.T)
        scale = np.diag(self.nu * self._shape / factor.rate) + told
        new = SpreadFactor(scale, self._degrees + n, factor.rate)
        precision = np.diag(self.expected_precision(new))
        return replace(new, rate=0.5 * self.scale**-2.0 + 0.5 * self.nu * precision)

    def expected_precision(self, factor):
        if self.diagonal:
            return np.diag(factor.degrees / np.diag(factor.scale))
        return InverseWishart(factor.scale, factor.degrees).expected_precision

    def expected_log_det_precision(self, factor):
        if self.diagonal:
            each = digamma(0.5 * factor.degrees) - np.log(0.5 * np.diag(factor.scale))
            return each.sum()
        return InverseWishart(factor.scale, factor.degrees).expected_log_det_precision

    def divergence(self, factor):
        """Return KL(factor || this law)."""
        shape, at = self._shape, np.diag(self.nu * self._shape / factor.rate)
        if self.diagonal:
            scale, scale0 = (0.5 * np.diag(each) for each in (factor.scale, at))
            own = gamma_divergence(0.5 * factor.degrees, scale, 0.5 * self.nu, scale0).sum()
        else:
            prior = InverseWishart(at, self._degrees)
            own = InverseWishart(factor.scale, factor.degrees).kl(prior)
        jensen = 0.5 * self._degrees * self.k * (np.log(shape) - digamma(shape))
        scales = gamma_divergence(shape, factor.rate, 0.5, 0.5 * self.scale**-2.0).sum()
        return own + jensen + scales

    def draw_from(self, factor, rng):
        """Draw a covariance and its scales from their factors."""
        size = np.sqrt(rng.standard_gamma(self._shape, self.k) / factor.rate)
        if self.diagonal:
            rate = 0.5 * np.diag(factor.scale)
            return Spread(np.diag(inverse_gamma(0.5 * factor.degrees, rate, rng)), size)
        return Spread(InverseWishart(factor.scale, factor.degrees).draw(rng), size)


@lru_cache(maxsize=256)
def _shapes(degrees, of_size, k, diagonal):
    halves = 0.5 * (degrees - (0.0 if diagonal else np.arange(k)[::-1]))
    return np.concatenate([np.broadcast_to(halves, k), np.full(k, of_size)])
