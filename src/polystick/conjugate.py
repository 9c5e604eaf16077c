"""Conjugate parameters: a posterior from sufficient statistics, a draw, expectations, the SVI step.

In the room m, r, Psi, nu are the mean, strength, scale and degrees of

    cov ~ InverseWishart(Psi, nu),    mean | cov ~ N(m, cov / r).
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.special import digamma, multigammaln

from polystick.kernels import algebra

__all__ = ["InverseWishart", "NormalInverseWishart", "NormalParameters"]

LOG_2, LOG_2PI = np.log(2.0), np.log(2.0 * np.pi)


@lru_cache(maxsize=4)
def _above_diagonal(k):
    """Return 1 above the diagonal and 0 elsewhere, (k, k)."""
    return np.triu(np.ones((k, k)), 1)


class NormalParameters(NamedTuple):
    """A mean and a covariance with its inverse."""

    mean: np.ndarray  # (k,)
    cov: np.ndarray  # (k, k)
    precision: np.ndarray  # (k, k)


@dataclass(frozen=True, eq=False)
class InverseWishart:
    """The conjugate law of a covariance: |cov|^(-(degrees + k + 1) / 2) exp(-tr(scale cov^-1) / 2).

    Parameters
    ----------
    scale : array (k, k)
        Positive definite. E[cov] is scale / (degrees - k - 1).
    degrees : float
        Above k - 1; E[cov] needs more than k + 1.
    """

    scale: np.ndarray  # (k, k)
    degrees: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "degrees", float(self.degrees))
        object.__setattr__(self, "scale", np.array(self.scale, dtype=np.float64))
        self._check()

    @classmethod
    def _known(cls, scale, degrees):
        """Build what is proper by its making, without a check."""
        law = object.__new__(cls)
        law.__dict__.update(scale=scale, degrees=degrees)
        return law

    def _check(self):
        """Raise unless the law is proper."""
        if self.scale.ndim != 2 or self.scale.shape[0] != self.scale.shape[1]:
            raise ValueError(f"scale must be a square matrix; got shape {self.scale.shape}")
        k = len(self.scale)
        if not np.isfinite(self.degrees) or self.degrees <= k - 1:
            raise ValueError(
                f"degrees must exceed {k - 1}, one less than the {k} dimensions; got {self.degrees}"
            )
        if not np.isfinite(self.scale).all():
            raise ValueError("scale must be finite")
        if np.abs(self.scale - self.scale.T).max() > 1e-8 * np.abs(self.scale).max():
            raise ValueError(
                "scale must be symmetric; got a matrix that is not; try (scale + scale.T) / 2"
            )
        try:
            self.root  # noqa: B018
        except np.linalg.LinAlgError:
            raise ValueError("scale must be positive definite") from None

    @cached_property
    def root(self) -> np.ndarray:
        """The upper triangular root of the scale."""
        root = algebra.root(self.scale)
        if np.isnan(root[0, 0]):
            raise np.linalg.LinAlgError("scale is not positive definite")
        return root

    @property
    def _log_det_scale(self):
        return algebra.log_det(self.root)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return scale^-1 b."""
        return algebra.solve(self.root, b)

    def posterior(self, n: float, outer: np.ndarray) -> "InverseWishart":
        """Return the law given n normal rows of mean 0 and their sum of outer products (k, k)."""
        scale = self.scale + outer
        return InverseWishart._known(0.5 * (scale + scale.T), self.degrees + n)

    def draw_roots(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw upper triangular roots R of a covariance R' R, and S of the precision S S'.

        Bartlett: T upper triangular with T T' ~ Wishart(nu, I). Then T^-1 U, for Psi = U' U, is the
        root of the covariance, and U^-1 T that of the precision.
        """
        k = len(self.scale)
        bartlett = rng.standard_normal((k, k)) * _above_diagonal(k)
        bartlett.flat[:: k + 1] = np.sqrt(rng.chisquare(self.degrees - np.arange(k)[::-1]))
        root = algebra.solve_upper(bartlett, self.root, algebra.UPPER)
        return root, algebra.solve_upper(self.root, bartlett, algebra.UPPER)

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a covariance."""
        root, _ = self.draw_roots(rng)
        return algebra.gram(root, algebra.UPPER)

    @property
    def expected_cov(self) -> np.ndarray:
        """Return E[cov]; it needs degrees > k + 1."""
        excess = self.degrees - len(self.scale) - 1
        if excess <= 0:
            raise ValueError(
                f"E[cov] is finite only for degrees above {len(self.scale) + 1}; got {self.degrees}"
            )
        return self.scale / excess

    @cached_property
    def expected_precision(self) -> np.ndarray:
        """Return E[precision]."""
        return self.degrees * algebra.inverse(self.root)

    @property
    def expected_log_det_precision(self) -> float:
        """Return E[log|precision|]."""
        return self._expected_log_det_standard() - self._log_det_scale

    def _expected_log_det_standard(self):
        """Return E[log|W|] for W ~ Wishart(nu, I)."""
        k = len(self.scale)
        return digamma(0.5 * (self.degrees - np.arange(k))).sum() + k * LOG_2

    @property
    def log_normaliser(self) -> float:
        """Return the log of the integral that makes |cov|^(-(nu + k + 1) / 2) exp(...) a density."""
        k, nu = len(self.scale), self.degrees
        return 0.5 * nu * (k * LOG_2 - self._log_det_scale) + multigammaln(0.5 * nu, k)

    def kl(self, other: "InverseWishart") -> float:
        """Return KL(self || other)."""
        k, nu, nu0 = len(self.scale), self.degrees, other.degrees
        between_roots = algebra.solve_lower(self.root, other.root.T, algebra.LOWER)
        log_ratio = self._log_det_scale - other._log_det_scale
        return (
            0.5 * nu0 * log_ratio
            + 0.5 * nu * (np.sum(between_roots**2) - k)
            + multigammaln(0.5 * nu0, k)
            - multigammaln(0.5 * nu, k)
            + 0.5 * (nu - nu0) * (self._expected_log_det_standard() - k * LOG_2)
        )


@dataclass(frozen=True, eq=False)
class NormalInverseWishart:
    """The conjugate law of the mean and the covariance of normal rows.

    cov ~ InverseWishart(scale, degrees), mean given cov ~ N(mean, cov / strength).

    Parameters
    ----------
    mean : array (k,)
    strength : float
        How many rows the mean is worth, above 0.
    scale : array (k, k)
        Positive definite. E[cov] is scale / (degrees - k - 1).
    degrees : float
        Above k - 1; E[cov] needs more than k + 1.
    """

    mean: np.ndarray  # (k,)
    strength: float
    scale: np.ndarray  # (k, k)
    degrees: float

    def __post_init__(self):
        for name in ("strength", "degrees"):
            object.__setattr__(self, name, float(getattr(self, name)))
        for name in ("mean", "scale"):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=np.float64))
        self._check()

    @classmethod
    def known(cls, mean: np.ndarray, strength: float, scale: np.ndarray, degrees: float) -> Self:
        """Build what is proper by its making, without a check: a posterior is drawn from in each sweep."""
        law = object.__new__(cls)
        law.__dict__.update(mean=mean, strength=strength, scale=scale, degrees=degrees)
        return law

    @classmethod
    def weak(cls, mean: npt.ArrayLike, variance: npt.ArrayLike, strength: float = 0.1) -> Self:
        """Build the prior with E[cov] = diag(variance) and as few whole degrees as have one."""
        mean = np.atleast_1d(np.asarray(mean, dtype=np.float64))
        variance = np.broadcast_to(np.asarray(variance, dtype=np.float64), mean.shape)
        return cls(mean, strength, np.diag(variance), len(mean) + 2)

    def _check(self):
        """Raise unless the law is proper."""
        if self.mean.ndim != 1:
            raise ValueError(f"mean must be a vector; got an array of shape {self.mean.shape}")
        k = len(self.mean)
        if self.scale.shape != (k, k):
            raise ValueError(f"scale must be ({k}, {k}) like the mean; got {self.scale.shape}")
        if not np.isfinite(self.strength) or self.strength <= 0:
            raise ValueError(f"strength must be positive and finite; got {self.strength}")
        if not np.isfinite(self.mean).all():
            raise ValueError("mean must be finite")
        self.of_cov._check()

    @cached_property
    def of_cov(self) -> InverseWishart:
        """The law of the covariance alone."""
        return InverseWishart._known(self.scale, self.degrees)

    # ---- updates

    def posterior(self, n: float, total: np.ndarray, outer: np.ndarray) -> "NormalInverseWishart":
        """Return the law given n rows, their sum (k,) and their sum of outer products (k, k)."""
        m, r = self.mean, self.strength
        shift = total - n * m
        mean = m + shift / (r + n)
        scale = self.scale + outer - m[:, None] * total - shift[:, None] * mean
        return NormalInverseWishart.known(mean, r + n, 0.5 * (scale + scale.T), self.degrees + n)

    def blend(self, other: "NormalInverseWishart", rate: float) -> "NormalInverseWishart":
        """Return the law whose natural parameters are (1 - rate) of these and rate of the other's.

        The natural parameters are (r, r m, Psi + r m m', nu); the form below never cancels.
        """
        left, right = (1.0 - rate) * self.strength, rate * other.strength
        weight = right / (left + right)
        gap = self.mean - other.mean
        return NormalInverseWishart(
            (1.0 - weight) * self.mean + weight * other.mean,
            left + right,
            (1.0 - rate) * self.scale + rate * other.scale + left * weight * np.outer(gap, gap),
            (1.0 - rate) * self.degrees + rate * other.degrees,
        )

    # ---- draws

    def draw(self, rng: np.random.Generator) -> NormalParameters:
        """Draw the mean and the covariance, with the precision."""
        root, inverse_root = self.of_cov.draw_roots(rng)
        away = algebra.multiply(root.T, rng.standard_normal(len(self.mean)))
        return NormalParameters(
            self.mean + away / np.sqrt(self.strength),
            algebra.gram(root, algebra.UPPER),
            algebra.gram(inverse_root.T, algebra.LOWER),
        )

    # ---- as a law of `population`, whose scale is not learned

    parameter_type: ClassVar = NormalParameters

    @property
    def centre(self) -> np.ndarray:
        return self.mean

    def start(self, rng: np.random.Generator) -> NormalParameters:
        return self.draw(rng)

    def given(self, parameters: Any) -> Self:
        return self

    def redraw(
        self,
        parameters: Any,
        n: float,
        total: np.ndarray,
        outer: np.ndarray,
        rng: np.random.Generator,
    ) -> NormalParameters:
        return self.posterior(n, total, outer).draw(rng)

    def initial_factor(self) -> Self:
        return self

    @property
    def normal(self) -> Self:
        """The factor of mean and cov, which is all there is."""
        return self

    def updated(
        self, factor: Any, n: float, total: np.ndarray, outer: np.ndarray
    ) -> "NormalInverseWishart":
        return self.posterior(n, total, outer)

    def divergence(self, factor: "NormalInverseWishart") -> float:
        return factor.kl(self)

    def recentre(self, parameters: Any, rng: np.random.Generator) -> Any:
        """Draw the level that all entries of the mean share, given the rest."""
        weight = parameters.precision.sum(axis=0)
        whole = weight.sum()
        error = rng.standard_normal() / np.sqrt(whole * self.strength)
        level = error - np.sum(weight * (parameters.mean - self.mean)) / whole
        return parameters._replace(mean=parameters.mean + level)

    # ---- expectations

    @property
    def expected_cov(self) -> np.ndarray:
        """Return E[cov]; it needs degrees > k + 1."""
        return self.of_cov.expected_cov

    @cached_property
    def expected_precision(self) -> np.ndarray:
        """Return E[precision]."""
        return self.of_cov.expected_precision

    @property
    def expected_linear(self) -> np.ndarray:
        """Return E[precision mean]."""
        return self.degrees * self.of_cov.solve(self.mean)

    @property
    def expected_quadratic(self) -> float:
        """Return E[mean' precision mean]."""
        return len(self.mean) / self.strength + np.sum(self.mean * self.expected_linear)

    @property
    def expected_log_det_precision(self) -> float:
        """Return E[log|precision|]."""
        return self.of_cov.expected_log_det_precision

    # ---- normaliser and divergence

    @property
    def log_normaliser(self) -> float:
        """Return the log of the integral that makes |cov|^(-(nu + k + 2) / 2) exp(...) a density.

        The log evidence of n rows is the posterior's less the prior's, less n k log(2 pi) / 2.
        """
        k = len(self.mean)
        return self.of_cov.log_normaliser + 0.5 * k * (LOG_2PI - np.log(self.strength))

    def kl(self, other: "NormalInverseWishart") -> float:
        """Return KL(self || other)."""
        return self._kl_of_means(other) + self.of_cov.kl(other.of_cov)

    def _kl_of_means(self, other):
        k, gap = len(self.mean), self.mean - other.mean
        ratio = other.strength / self.strength
        distance = other.strength * self.degrees * np.sum(gap * self.of_cov.solve(gap))
        return 0.5 * (k * (ratio - 1.0 - np.log(ratio)) + distance)
