"""The slow, obvious twins of Markov processes: dense joint Gaussians, in long doubles."""

from typing import NamedTuple

import numpy as np

from naive_chain import LONG, cholesky, solve_lower


class Law(NamedTuple):
    """The posterior of some values, and log|I + omega^(1/2) cov omega^(1/2)|."""

    mean: np.ndarray  # (n,)
    cov: np.ndarray  # (n, n)
    log_det: float

    @property
    def sd(self):
        return np.sqrt(np.maximum(np.diag(self.cov), 0.0))


def condition(prior, cross, among, kappa, omega):
    """Return the law of values with covariance `prior`, and `cross` (n, M) with those of a potential."""
    kappa, scale = np.asarray(kappa, LONG), np.sqrt(np.asarray(omega, LONG))
    root = cholesky(np.eye(len(scale), dtype=LONG) + scale[:, None] * among * scale)
    half = solve_lower(root, scale[:, None] * cross.T)
    mean = cross @ kappa - half.T @ solve_lower(root, scale * (among @ kappa))
    log_det = 2.0 * np.log(np.diag(root)).sum()
    return Law(mean.astype(float), (prior - half.T @ half).astype(float), float(log_det))


def matern(times, others, variance, length, smoothness):
    """Return the Matérn covariances of times and others."""
    distance = np.abs(np.asarray(times, LONG)[:, None] - np.asarray(others, LONG))
    x = np.sqrt(LONG(2 * smoothness)) * distance / LONG(length)
    shape = {0.5: 1 + 0 * x, 1.5: 1 + x, 2.5: 1 + x + x * x / 3}[smoothness]
    return LONG(variance) * shape * np.exp(-x)


def process(times, variance, length, smoothness, kappa, omega, at=None):
    """Return the law of a Matérn process at new times (or its own), given a potential at its times."""
    parameters = (variance, length, smoothness)
    at = times if at is None else at
    among = matern(times, times, *parameters)
    return condition(
        matern(at, at, *parameters), matern(at, times, *parameters), among, kappa, omega
    )


def chain_root(transition, root):
    """Return the matrix (M m, M m) that makes states of innovations."""
    n_steps, m = root.shape[:2]
    whole = np.zeros((n_steps + 1, m, n_steps, m), LONG)  # after a state of 0
    for s in range(n_steps):
        whole[s + 1] = np.tensordot(np.asarray(transition[s], LONG), whole[s], axes=1)
        whole[s + 1, :, s] += root[s]
    return whole[1:].reshape(n_steps * m, n_steps * m)


def innovations(transition, root, kappa, omega):
    """Return the law of the innovations (M m,) given potentials on the first coordinates."""
    seen = chain_root(transition, root)[:: root.shape[1]]
    prior = np.eye(seen.shape[1], dtype=LONG)
    return condition(prior, seen.T.copy(), seen @ seen.T, kappa, omega)
