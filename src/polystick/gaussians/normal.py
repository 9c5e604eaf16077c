"""Exchangeable rows: psi_i ~ N(mean, cov), each under its own potential."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, lapack

from polystick.gaussians import Moments
from polystick.kernels import gaussian

__all__ = ["Normal"]


def _contiguous(*arrays):
    """Give kernels the one kind of array they are compiled for."""
    return [np.require(array, np.float64, ["C", "W"]) for array in arrays]


def _inverse(a):
    """Invert a symmetric positive definite matrix; NaN where it is not."""
    inverse = cho_solve((_root(a), False), np.eye(len(a)), check_finite=False)
    return 0.5 * (inverse + inverse.T)


def _root(a):
    """Return the upper triangular root, a = root' root; NaN if a is not positive definite."""
    root, failed = lapack.dpotrf(a)
    return np.full_like(a, np.nan) if failed else np.ascontiguousarray(root)


def _few_active(omega):
    """Tell for which rows the conditioning form is cheaper; measured from k = 10 to 199."""
    return 5 * np.count_nonzero(omega, axis=1) <= 3 * omega.shape[1] - 60


@dataclass(frozen=True)
class Normal:
    """Rows psi_i ~ N(mean, cov); pass the precision too where it is at hand."""

    mean: np.ndarray  # (k,)
    cov: np.ndarray  # (k, k)
    precision: np.ndarray | None = None  # (k, k)

    def __post_init__(self):
        if self.precision is None:
            object.__setattr__(self, "precision", _inverse(self.cov))
        for name in ("mean", "cov", "precision"):
            object.__setattr__(self, name, *_contiguous(getattr(self, name)))

    @classmethod
    def natural(cls, precision, linear):
        """Build from precision and linear = precision mean, whose expectations mean field has."""
        cov = _inverse(precision)
        normal = cls(cov @ linear, cov, precision)
        normal.__dict__["linear"] = np.ascontiguousarray(linear, dtype=np.float64)
        return normal

    @cached_property
    def linear(self):
        return self.precision @ self.mean

    @cached_property
    def root(self):
        """The upper triangular root with cov = root' root."""
        return _root(self.cov)

    def draw(self, potential, noise):
        """Draw psi (n, k) given the potential, an affine function of noise (n, 2 k).

        Each row takes the cheaper of the two forms by its number of active sticks, so that it draws
        the same in any company. The information form reads the first half of its noise.
        """
        kappa, omega = _contiguous(potential.kappa, potential.omega)
        few = _few_active(omega)
        if few.all():
            return self._condition(kappa, omega, noise)
        if not few.any():
            return self._draw_information(kappa, omega, noise)
        psi = np.empty_like(kappa)
        for rows, form in ((few, self._condition), (~few, self._draw_information)):
            psi[rows] = form(kappa[rows], omega[rows], noise[rows])
        return psi

    def _condition(self, kappa, omega, noise):
        psi = np.empty_like(kappa)
        (noise,) = _contiguous(noise)
        gaussian.condition_rows(self.mean, self.cov, self.root, kappa, omega, noise, psi)
        return psi

    def _draw_information(self, kappa, omega, noise):
        return self._draws(kappa, omega, noise[:, None])[0][:, 0]

    def draws(self, potential, noise):
        """Return psi (n, s, k), s draws of each row from noise of that shape, and log|J| (n,)."""
        kappa, omega = _contiguous(potential.kappa, potential.omega)
        return self._draws(kappa, omega, noise)

    def _draws(self, kappa, omega, noise):
        (noise,) = _contiguous(noise)
        psi, log_det = np.empty((*noise.shape[:2], kappa.shape[1])), np.empty(len(kappa))
        gaussian.draw_rows(self.precision, self.linear, kappa, omega, noise, psi, log_det)
        return psi, log_det

    def moments(self, potential):
        """Return the moments of each row given the potential."""
        kappa, omega = _contiguous(potential.kappa, potential.omega)
        q = Moments(
            mean=np.empty_like(kappa),
            variance=np.empty_like(kappa),
            cov_sum=np.zeros_like(self.cov),
            log_det=np.empty(len(kappa)),
        )
        gaussian.moment_rows(self.precision, self.linear, kappa, omega, *q)
        return q

    def log_density(self, psi):
        """Return log N(psi_i | mean, cov), (n,)."""
        (psi,) = _contiguous(psi)
        quadratic = np.empty(len(psi))
        gaussian.quadratic_rows(self.precision, self.mean, psi, quadratic)
        log_det = 2.0 * np.log(np.diag(self.root)).sum()
        return -0.5 * (quadratic + log_det + len(self.mean) * np.log(2.0 * np.pi))
