"""The waist: given omega, a multinomial looks to a Gaussian like a diagonal potential on psi.

Left of it are counts, split into binary decisions; right of it are only Gaussians. Gibbs fills omega with
a draw, mean field with an expectation, and nothing downstream can tell. Arrays keep the layout of the
splits: (n, K-1) for dense rows, flat for ragged ones. An empty stick is (0, 0) and needs no epsilon.
"""

from typing import NamedTuple

import numpy as np

from polystick import polyagamma


class Potential(NamedTuple):
    """exp(kappa' psi - psi' diag(omega) psi / 2)."""

    kappa: np.ndarray
    omega: np.ndarray


def kappa(splits):
    """Return successes - trials / 2."""
    return splits.successes - 0.5 * splits.trials


def draw_potential(splits, psi, key, rows):
    """Draw omega ~ PG(trials, psi), each row from its own stream (Gibbs)."""
    if splits.trials.ndim == 1:
        omega = polyagamma.draw_ragged(key, rows, splits.starts, splits.trials, psi)
    else:
        omega = polyagamma.draw_rows(key, rows, splits.trials, psi)
    return Potential(kappa(splits), omega)


def expected_potential(splits, tilt):
    """Expect omega under its best factor PG(trials, tilt), tilt = sqrt(E psi^2) (mean field)."""
    return Potential(kappa(splits), polyagamma.mean(splits.trials, tilt))


def quadratic_potential(splits, psi):
    """Expand the log likelihood to second order about psi (Newton steps, Laplace proposals)."""
    success = 1.0 / (1.0 + np.exp(-np.clip(psi, -700, 700)))
    omega = splits.trials * success * (1.0 - success)
    return Potential(splits.successes - splits.trials * success + omega * psi, omega)


def log_likelihood(splits, psi):
    """Return log p(successes | trials, psi) for each split, without the binomial coefficients."""
    return kappa(splits) * psi - splits.trials * log_two_cosh(psi)


def log_two_cosh(psi):
    """Return log(2 cosh(psi / 2)) without overflow."""
    size = np.abs(psi)
    return 0.5 * size + np.log1p(np.exp(-size))
