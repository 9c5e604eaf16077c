"""The slow, obvious twins: dense linear algebra, one row at a time."""

from typing import NamedTuple

import numpy as np


class Potential(NamedTuple):
    kappa: np.ndarray
    omega: np.ndarray


class Problem(NamedTuple):
    """A shared prior and one potential for each row."""

    mean: np.ndarray
    cov: np.ndarray
    potential: Potential

    @property
    def precision(self):
        return np.linalg.inv(self.cov)

    @property
    def linear(self):
        return self.precision @ self.mean

    @property
    def root(self):
        return np.ascontiguousarray(np.linalg.cholesky(self.cov).T)

    @property
    def natural(self):
        return self.precision, self.linear, *self.potential

    @property
    def moment(self):
        return self.mean, self.cov, self.root, *self.potential


def problem(n, k, rng, share=0.7, exponent=0.0):
    """Make a problem with some empty sticks, an empty row and omega of size 10 ** +-exponent."""
    roots = rng.normal(size=(k, k + 3))
    cov = roots @ roots.T / k
    active = rng.random((n, k)) < share
    active[n // 2] = False
    omega = active * rng.gamma(2.0, size=(n, k)) * 10.0 ** rng.uniform(-exponent, exponent, (n, k))
    kappa = active * rng.normal(size=(n, k)) * np.sqrt(omega)
    return Problem(rng.normal(size=k), cov, Potential(kappa, omega))


def posteriors(problem):
    """Return the posterior means (n, k), covariances (n, k, k) and log|J| (n,)."""
    precision, linear, kappa, omega = problem.natural
    js = np.array([precision + np.diag(row) for row in omega])
    covs = np.linalg.inv(js)
    means = np.array([np.linalg.solve(j, linear + row) for j, row in zip(js, kappa)])
    return means, covs, np.linalg.slogdet(js)[1]


def draws(problem, noise):
    """Return mean + L^-T noise, (n, s, k)."""
    precision, _, _, omega = problem.natural
    means, _, _ = posteriors(problem)
    psi = np.empty_like(noise)
    for i, row in enumerate(omega):
        chol = np.linalg.cholesky(precision + np.diag(row))
        psi[i] = means[i] + np.linalg.solve(chol.T, noise[i].T).T
    return psi


def wishart_posterior(prior, rows):
    """Return mean, strength, scale, degrees given rows (n, k), by the centred formula."""
    n, mean = len(rows), rows.mean(axis=0)
    strength = prior.strength + n
    shift = mean - prior.mean
    scale = prior.scale + (rows - mean).T @ (rows - mean)
    scale = scale + prior.strength * n / strength * np.outer(shift, shift)
    centre = (prior.strength * prior.mean + n * mean) / strength
    return centre, strength, scale, prior.degrees + n
