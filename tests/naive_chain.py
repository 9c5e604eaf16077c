"""The slow, obvious twins of chains: the dense joint Gaussian of all steps, in long doubles."""

from typing import NamedTuple

import numpy as np

LONG = np.longdouble


class Problem(NamedTuple):
    """A chain and a potential at each step."""

    initial_mean: np.ndarray
    initial_cov: np.ndarray
    dynamics: np.ndarray
    dynamics_cov: np.ndarray
    bias: np.ndarray
    linear: np.ndarray
    precision: np.ndarray

    @property
    def chain(self):
        return self[:5]

    @property
    def potential(self):
        return self[5:]


class Joint(NamedTuple):
    mean: np.ndarray  # (S, D)
    cov: np.ndarray  # (S, D, S, D)
    log_normaliser: float


def spd(d, rng, scale=1.0):
    """Make a positive definite matrix whose coordinates have scales of their own if asked."""
    roots = rng.normal(size=(d, d + 3)) / np.sqrt(d + 3)
    scales = np.sqrt(np.broadcast_to(scale, d))
    return scales[:, None] * (roots @ roots.T) * scales


def problem(n_steps, d, rng, noise_scale=1.0, missing=0.3):
    """Make a chain with potentials of full, low and no rank."""
    precision = np.zeros((n_steps, d, d))
    linear = np.zeros((n_steps, d))
    for s in range(n_steps):
        if rng.random() >= missing:
            directions = rng.normal(size=(rng.integers(1, d + 3), d))
            precision[s] = directions.T @ directions
            linear[s] = directions.T @ rng.normal(size=len(directions))
    return Problem(
        initial_mean=rng.normal(size=d),
        initial_cov=spd(d, rng),
        dynamics=rng.normal(size=(d, d)) / (1.5 * np.sqrt(d)),
        dynamics_cov=spd(d, rng, noise_scale),
        bias=rng.normal(size=d),
        linear=linear,
        precision=precision,
    )


def cholesky(a):
    """Return the lower root in long doubles, which LAPACK does not know."""
    root = np.zeros_like(a)
    for j in range(len(a)):
        rest = a[j:, j] - root[j:, :j] @ root[j, :j]
        root[j:, j] = rest / np.sqrt(rest[0])
    return root


def solve_lower(root, b):
    x = np.zeros_like(b)
    for i in range(len(root)):
        x[i] = (b[i] - root[i, :i] @ x[:i]) / root[i, i]
    return x


def prior_root(p, n_steps):
    """Return the mean (S D,) and a root (S D, S D) of the joint law of all states, no potential."""
    m0, V0, A, Q, b = (np.asarray(x, LONG) for x in p.chain)
    d = len(m0)
    mean, root = np.zeros((n_steps, d), LONG), np.zeros((n_steps, d, n_steps, d), LONG)
    for s in range(n_steps):
        if s == 0:
            mean[s] = m0
        else:
            mean[s] = A @ mean[s - 1] + b
            root[s] = np.tensordot(A, root[s - 1], axes=1)
        root[s, :, s] = cholesky(V0 if s == 0 else Q)
    return mean.ravel(), root.reshape(n_steps * d, n_steps * d)


def joint(p):
    """Return the posterior of all states: x = m + F n, n ~ N(0, (I + F' J F)^-1)."""
    n_steps, d = p.linear.shape
    m, F = prior_root(p, n_steps)
    J = np.zeros((n_steps, d, n_steps, d), LONG)
    for s in range(n_steps):
        J[s, :, s] = p.precision[s]
    J, h = J.reshape(F.shape), np.asarray(p.linear, LONG).ravel()
    root = cholesky(np.eye(len(F), dtype=LONG) + F.T @ J @ F)
    shift = solve_lower(root, F.T @ (h - J @ m))
    half = solve_lower(root, F.T.copy())
    log_normaliser = h @ m - m @ J @ m / 2 + shift @ shift / 2 - np.log(np.diag(root)).sum()
    mean = (m + half.T @ shift).reshape(n_steps, d)
    cov = (half.T @ half).reshape(n_steps, d, n_steps, d)
    return Joint(mean.astype(float), cov.astype(float), float(log_normaliser))


def walk_problem(initial_mean, initial_variance, step_variance, kappa, omega):
    """Return one scalar random walk as a chain of dimension 1."""
    return Problem(
        initial_mean=np.array([initial_mean]),
        initial_cov=np.array([[initial_variance]]),
        dynamics=np.eye(1),
        dynamics_cov=np.array([[step_variance]]),
        bias=np.zeros(1),
        linear=kappa[:, None],
        precision=omega[:, None, None],
    )
