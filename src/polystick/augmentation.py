"""The waist: given omega, a multinomial looks to a Gaussian like a diagonal potential on psi.

Left of it are counts, split into binary decisions; right of it are only Gaussians. Gibbs fills omega with
a draw, mean field with an expectation, an ellipse (`kernels.ellipse`) with a curvature, and nothing
downstream can tell. Arrays keep the layout of the splits: (n, K-1) for dense rows, flat for ragged ones. An
empty stick is (0, 0) and needs no epsilon.
"""

from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from polystick import polyagamma
from polystick.kernels import tilted
from polystick.kernels.buffers import as_buffer, as_buffers
from polystick.kernels.polyagamma import draw_ragged

LONG_LAG = 3.0  # from which a split is lopsided; even ones have 2
VARIANCE = 4.0  # of psi a priori, about: what a split without counts leaves open
SOFTER = 0.8  # than the average curvature
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
WEIGHTS = WEIGHTS / WEIGHTS.sum()  # of a standard normal
LEAST_CAVITY = 1e-3  # of the precision with a site: what is left without it, at least


class Counted(Protocol):
    """Binary splits of counts, dense or ragged."""

    @property
    def successes(self) -> np.ndarray: ...

    @property
    def trials(self) -> np.ndarray: ...


class Potential(NamedTuple):
    """exp(kappa' psi - psi' diag(omega) psi / 2)."""

    kappa: np.ndarray
    omega: np.ndarray


def kappa(splits: Counted) -> np.ndarray:
    """Return successes - trials / 2."""
    return splits.successes - 0.5 * splits.trials


def draw_potential(splits: Counted, psi: np.ndarray, key: np.uint64, rows: np.ndarray) -> Potential:
    """Draw omega ~ PG(trials, psi), each row from its own stream (Gibbs)."""
    trials, psi, omega = as_buffer(splits.trials, np.int64), as_buffer(psi), np.empty(psi.shape)
    if trials.ndim == 1:
        starts = as_buffer(cast(Any, splits).starts, np.int64)
    else:
        starts = np.arange(len(trials) + 1) * trials.shape[1]
    given = (np.uint64(key), as_buffer(rows, np.uint64), starts)
    draw_ragged(*given, trials.ravel(), psi.ravel(), omega.ravel())
    return Potential(kappa(splits), omega)


def expected_potential(splits: Counted, tilt: np.ndarray) -> Potential:
    """Expect omega under its best factor PG(trials, tilt), tilt = sqrt(E psi^2) (mean field)."""
    return Potential(kappa(splits), polyagamma.mean(splits.trials, tilt))


def quadratic_potential(splits: Counted, psi: np.ndarray) -> Potential:
    """Expand the log likelihood to second order about psi (Newton steps, Laplace proposals)."""
    success = 1.0 / (1.0 + np.exp(-np.clip(psi, -700, 700)))
    omega = splits.trials * success * (1.0 - success)
    return Potential(splits.successes - splits.trials * success + omega * psi, omega)


def smoothed(splits):
    """Return successes and failures with half a count more."""
    return splits.successes + 0.5, splits.trials - splits.successes + 0.5


def empirical_logit(splits):
    """Return the log odds that smoothed counts alone tell."""
    yes, no = smoothed(splits)
    return np.log(yes / no)


def predicted_variance(splits):
    """Return the variance of psi given counts, as if it were `VARIANCE` before."""
    yes, no = smoothed(splits)
    return VARIANCE / (1.0 + VARIANCE * yes * no / (yes + no))


def lag(splits, psi, variance):
    """Return 2 E[omega] Var(psi | x): how long Gibbs sampling remembers psi.

    Where it is long, a draw of psi given omega is a small step.
    """
    return 2.0 * polyagamma.mean(splits.trials, np.abs(psi)) * variance


def predicted_lag(splits):
    """Return the lag at the empirical logit, read off the counts alone."""
    return lag(splits, empirical_logit(splits), predicted_variance(splits))


def lopsided(splits, longest=LONG_LAG):
    """Tell for which splits another way to draw psi pays: those with a longer lag."""
    return predicted_lag(splits) > longest


def site_potential(splits: Counted, psi: np.ndarray) -> Potential:
    """Return a fixed potential about psi: Laplace's, softened where the likelihood is skewed.

    For a split of s successes or failures, whichever are fewer, curvature is lowered to (s + 1) / (s + 2)
    of it: the tail on the rare side is as wide as the prior lets it be. The slope at psi stays.
    """
    kappa, omega = quadratic_potential(splits, psi)
    fewer = np.minimum(splits.successes, splits.trials - splits.successes)
    less = omega / (fewer + 2.0)
    return Potential(kappa - less * psi, omega - less)


def average_site(splits, mean, variance):
    """Return a fixed potential with the slope and curvature that the likelihood has on average.

    That is over psi ~ N(mean, variance), under which no other potential leaves less of the log likelihood
    to vary. Curvature is lowered to `SOFTER` of it: ellipses are slow in tails wider than theirs.
    """
    psi = mean[..., None] + np.sqrt(variance)[..., None] * NODES
    success = 1.0 / (1.0 + np.exp(-np.clip(psi, -700, 700)))
    curvature = splits.trials * ((success * (1.0 - success)) @ WEIGHTS)
    slope = splits.successes - splits.trials * (success @ WEIGHTS)
    omega = SOFTER * curvature
    return Potential(slope + omega * mean, omega)


def match_sites(splits, sites, mean, variance, damping=0.5):
    """Return sites nearer to what the likelihood does to the moments of psi (expectation propagation).

    mean, variance : of psi under a Gaussian prior and the sites, split by split. Each split in turn would
        have its site replaced by its likelihood, and the site that gives the same moments; all at once
        they go `damping` of the way. Omega never is negative; a site stays where no number was found.
    """
    with np.errstate(all="ignore"):
        precision = np.maximum(1.0 / variance - sites.omega, LEAST_CAVITY / variance)
        linear = mean / variance - sites.kappa
        tilted_mean, tilted_variance = tilted_moments(splits, linear / precision, 1.0 / precision)
        omega = np.maximum(1.0 / tilted_variance - precision, 0.0)
        kappa = tilted_mean * (precision + omega) - linear
        new = [old + damping * (to - old) for old, to in zip(sites, (kappa, omega))]
        kept = np.isfinite(new[0]) & np.isfinite(new[1]) & (splits.trials > 0)
    return Potential(*(np.where(kept, part, old) for part, old in zip(new, sites)))


def tilted_moments(splits, mean, variance):
    """Return mean and variance of psi under a Gaussian for each split times its likelihood."""
    given = (splits.successes, splits.trials, mean, variance)
    flat = [part.ravel() for part in as_buffers(*given)]
    found = np.empty((2, flat[0].size))
    tilted.moment_cells(*flat, *found)
    return found.reshape(2, *np.shape(mean))


def log_likelihood(splits: Counted, psi: np.ndarray) -> np.ndarray:
    """Return log p(successes | trials, psi) for each split, without the binomial coefficients."""
    return kappa(splits) * psi - splits.trials * log_two_cosh(psi)


def log_two_cosh(psi: np.ndarray) -> np.ndarray:
    """Return log(2 cosh(psi / 2)) without overflow."""
    size = np.abs(psi)
    return 0.5 * size + np.log1p(np.exp(-size))
