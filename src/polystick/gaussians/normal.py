"""Exchangeable rows: psi_i ~ N(mean, cov), each under its own potential."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.linalg import lapack

from polystick.gaussians import Moments, Potential
from polystick.kernels import gaussian
from polystick.kernels.buffers import as_buffers

__all__ = ["Normal", "Shifted"]


def _inverse(a):
    """Invert a symmetric positive definite matrix; NaN where it is not."""
    upper, failed = lapack.dpotri(_root(a))
    if failed:
        return np.full_like(a, np.nan)
    inverse = upper + upper.T
    inverse.flat[:: len(a) + 1] *= 0.5
    return inverse


def _root(a):
    """Return the upper triangular root, a = root' root; NaN if a is not positive definite."""
    root, failed = lapack.dpotrf(a)
    return np.full_like(a, np.nan) if failed else np.ascontiguousarray(root)


def _few_active(omega):
    """Tell for which rows the conditioning form is cheaper; measured from k = 10 to 199."""
    most = (3 * omega.shape[1] - 60) // 5
    if most < 0:
        return np.zeros(len(omega), dtype=bool)
    return np.count_nonzero(omega, axis=1) <= most


@dataclass(frozen=True)
class Normal:
    """Rows psi_i ~ N(mean, cov); pass the precision too where it is at hand."""

    mean: np.ndarray  # (k,)
    cov: np.ndarray  # (k, k)
    precision: np.ndarray | None = None  # (k, k)

    def __post_init__(self):
        if self.precision is None:
            object.__setattr__(self, "precision", _inverse(self.cov))
        held = as_buffers(self.mean, self.cov, self.precision)
        for name, value in zip(("mean", "cov", "precision"), held):
            object.__setattr__(self, name, value)

    @classmethod
    def natural(cls, precision: np.ndarray, linear: np.ndarray) -> Self:
        """Build from precision and linear = precision mean, whose expectations mean field has."""
        cov = _inverse(precision)
        normal = cls(cov @ linear, cov, precision)
        normal.__dict__["linear"] = np.ascontiguousarray(linear, dtype=np.float64)
        return normal

    @cached_property
    def linear(self) -> np.ndarray:
        return self.precision @ self.mean

    @cached_property
    def about_mean(self) -> "Normal":
        """The law of psi_i - mean."""
        return Normal(np.zeros_like(self.mean), self.cov, self.precision)

    @cached_property
    def root(self) -> np.ndarray:
        """The upper triangular root with cov = root' root."""
        return _root(self.cov)

    def draw(self, potential: Potential, noise: np.ndarray) -> np.ndarray:
        """Draw psi (n, k) given the potential, an affine function of noise (n, 2 k).

        Each row takes the cheaper of the two forms by its number of active sticks, so that it draws
        the same in any company. The information form reads the first half of its noise.
        """
        kappa, omega = as_buffers(potential.kappa, potential.omega)
        few = _few_active(omega)
        n_few = np.count_nonzero(few)
        if n_few == len(few):
            return self._condition(kappa, omega, noise)
        if not n_few:
            return self._draw_information(kappa, omega, noise)
        psi = np.empty_like(kappa)
        for rows, form in ((few, self._condition), (~few, self._draw_information)):
            psi[rows] = form(kappa[rows], omega[rows], noise[rows])
        return psi

    def _condition(self, kappa, omega, noise):
        psi = np.empty_like(kappa)
        (noise,) = as_buffers(noise)
        gaussian.condition_rows(self.mean, self.cov, self.root, kappa, omega, noise, psi)
        return psi

    def _draw_information(self, kappa, omega, noise):
        return self._draws(kappa, omega, noise[:, None])[0][:, 0]

    def draws(self, potential: Potential, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return psi (n, s, k), s draws of each row from noise of that shape, and log|J| (n,)."""
        kappa, omega = as_buffers(potential.kappa, potential.omega)
        return self._draws(kappa, omega, noise)

    def _draws(self, kappa, omega, noise):
        (noise,) = as_buffers(noise)
        psi, log_det = np.empty((*noise.shape[:2], kappa.shape[1])), np.empty(len(kappa))
        gaussian.draw_rows(self.precision, self.linear, kappa, omega, noise, psi, log_det)
        return psi, log_det

    def moments(self, potential: Potential) -> Moments:
        """Return the moments of each row given the potential."""
        kappa, omega = as_buffers(potential.kappa, potential.omega)
        q = Moments(
            mean=np.empty_like(kappa),
            variance=np.empty_like(kappa),
            cov_sum=np.zeros_like(self.cov),
            log_det=np.empty(len(kappa)),
        )
        gaussian.moment_rows(self.precision, self.linear, kappa, omega, *q)
        return q

    def log_density(self, psi: np.ndarray) -> np.ndarray:
        """Return log N(psi_i | mean, cov), (n,)."""
        (psi,) = as_buffers(psi)
        quadratic = np.empty(len(psi))
        gaussian.quadratic_rows(self.precision, self.mean, psi, quadratic)
        log_det = 2.0 * np.log(np.diag(self.root)).sum()
        return -0.5 * (quadratic + log_det + len(self.mean) * np.log(2.0 * np.pi))


@dataclass(frozen=True)
class Shifted:
    """Rows psi_i ~ N(mean_i, cov), each about a mean of its own; `normal` is the law of psi_i - mean_i."""

    mean: np.ndarray  # (n, k)
    normal: Normal

    @property
    def precision(self):
        return self.normal.precision

    @property
    def about_mean(self):
        return self.normal

    def draw(self, potential, noise):
        """Draw psi (n, k) given the potential, as `Normal.draw` does."""
        return self.mean + self.normal.draw(self._about(potential), noise)

    def draws(self, potential, noise):
        """Return psi (n, s, k), s draws of each row from noise of that shape, and log|J| (n,)."""
        psi, log_det = self.normal.draws(self._about(potential), noise)
        return self.mean[:, None] + psi, log_det

    def log_density(self, psi):
        """Return log N(psi_i | mean_i, cov) for psi (n, s, k), (n, s)."""
        away = psi - self.mean[:, None]
        return self.normal.log_density(away.reshape(-1, psi.shape[2])).reshape(psi.shape[:2])

    def _about(self, potential):
        kappa, omega = potential
        return potential._replace(kappa=kappa - omega * self.mean)
