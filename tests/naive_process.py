"""The slow, obvious twins of the solvers of Gaussian processes: explicit inverses, one row at a time."""

from typing import NamedTuple

import numpy as np

from naive_gaussian import Potential


class Posterior(NamedTuple):
    mean: np.ndarray  # (r, M)
    cov: np.ndarray  # (r, M, M)


def invert(cov, potential):
    """Return N(Sigma kappa, Sigma), Sigma = (C^-1 + Omega)^-1; for a C that can be inverted."""
    precision = np.linalg.inv(cov)
    covs = np.array([np.linalg.inv(precision + np.diag(row)) for row in potential.omega])
    return Posterior(np.einsum("rij,rj->ri", covs, potential.kappa), covs)


def condition(cov, potential):
    """Return the same by C - C S B^-1 S C, which needs no inverse of C."""
    covs = []
    for omega in potential.omega:
        half = np.sqrt(omega)[:, None] * cov
        b = np.eye(len(cov)) + half * np.sqrt(omega)
        covs.append(cov - half.T @ np.linalg.solve(b, half))
    covs = np.array(covs)
    return Posterior(np.einsum("rij,rj->ri", covs, potential.kappa), covs)


def predict(cov, potential, cross, variance):
    """Return mean and variance (r, M*) at new inputs given the potential, by explicit inverses."""
    back = cross @ np.linalg.inv(cov)
    posterior = invert(cov, potential)
    left = variance - np.sum(back * cross, axis=1)
    known = np.einsum("ni,rij,nj->rn", back, posterior.cov, back)
    return posterior.mean @ back.T, left + known


def affine(solver, potential):
    """Return the mean (r, n_white) of draws and their root (r, noise_size, n_white)."""
    r = len(potential.kappa)
    mean = solver.draw(potential, np.zeros((r, solver.noise_size))).white
    units = np.eye(solver.noise_size)
    root = [solver.draw(potential, np.tile(unit, (r, 1))).white - mean for unit in units]
    return mean, np.stack(root, axis=1)


def posterior_of_draws(solver, potential):
    """Return the moments of f that a solver's draws have."""
    mean, root = affine(solver, potential)
    f = np.stack([solver.unwhiten(part) for part in root])
    return Posterior(solver.unwhiten(mean), np.einsum("rsi,rsj->rij", f, f))


def matern(x, length):
    """Return a Matern-3/2 covariance with variance 1 at points x (n, d)."""
    distance = np.sqrt(3.0) * np.linalg.norm(x[:, None] - x, axis=-1) / length
    return (1.0 + distance) * np.exp(-distance)


def potentials(r, m, rng, *, largest=50.0, share=0.8):
    """Make potentials of binomials with 1 to `largest` trials; some inputs and a row are unseen."""
    trials = np.floor(np.exp(rng.uniform(0.0, np.log(largest + 1.0), (r, m))))
    trials *= rng.random((r, m)) < share
    trials[r // 2] = 0.0
    psi = rng.normal(size=(r, m))
    omega = trials * np.tanh(psi / 2) / (2 * psi) * rng.gamma(4.0, 0.25, (r, m))
    return Potential(rng.binomial(trials.astype(int), 1 / (1 + np.exp(-psi))) - trials / 2, omega)
