"""The slow, obvious twin of mean field for multinomial dynamics: dense joint Gaussians, term by term."""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, multigammaln

LOG_2PI = np.log(2 * np.pi)


class Sequence(NamedTuple):
    """One sequence with its q(states) and q(omega)."""

    counts: np.ndarray  # (T, K)
    known: np.ndarray
    pushes: np.ndarray
    mean: np.ndarray  # (T D,)
    cov: np.ndarray  # (T D, T D)
    tilt: np.ndarray  # (T, k)


def expected_omega(trials, tilt):
    safe = np.where(tilt > 1e-6, tilt, 1.0)
    return trials * np.where(tilt > 1e-6, np.tanh(safe / 2) / (2 * safe), 0.25)


def noise_precision(law):
    return law.degrees * np.linalg.inv(law.scale)


def expected_log_det(law):
    d = len(law.scale)
    return (
        digamma((law.degrees - np.arange(d)) / 2).sum()
        + d * np.log(2)
        - np.linalg.slogdet(law.scale)[1]
    )


def best_states(model, factor, sequence):
    """Return the sequence with the best q(states), by one dense inverse."""
    n, d = len(sequence.counts), model.n_dims
    J, h = np.zeros((n, d, n, d)), np.zeros((n, d))
    first = noise_precision(factor.initial)
    J[0, :, 0] += first
    h[0] += first @ factor.initial.mean
    noise, M = noise_precision(factor.dynamics), factor.dynamics.mean
    second = M.T @ noise @ M + d * np.linalg.inv(factor.dynamics.strength)
    for t in range(1, n):
        p = sequence.pushes[t]
        J[t, :, t] += noise
        J[t, :, t - 1] -= noise @ M[:, :d]
        J[t - 1, :, t] -= (noise @ M[:, :d]).T
        J[t - 1, :, t - 1] += second[:d, :d]
        h[t] += noise @ M[:, d:] @ p
        h[t - 1] -= second[:d, d:] @ p
    successes, trials = model.decomposition.split(sequence.counts)[:2]
    omega = expected_omega(trials, sequence.tilt)
    for t in range(n):
        for j in range(model.n_sticks):
            a = factor.emission.mean[j]
            aa = np.outer(a, a) + factor.emission.cov[j]
            J[t, :, t] += omega[t, j] * aa[:d, :d]
            h[t] += (successes[t, j] - trials[t, j] / 2) * a[:d]
            h[t] -= omega[t, j] * aa[:d, d:] @ sequence.known[t]
    cov = np.linalg.inv(J.reshape(n * d, n * d))
    return sequence._replace(mean=cov @ h.ravel(), cov=cov)


def moments(model, sequence):
    """Return E z (T, D) and E z z' (T, D, T, D)."""
    n, d = len(sequence.counts), model.n_dims
    second = sequence.cov + np.outer(sequence.mean, sequence.mean)
    return sequence.mean.reshape(n, d), second.reshape(n, d, n, d)


def psi_moments(model, factor, sequence):
    """Return E psi and E psi^2, (T, k)."""
    z, zz = moments(model, sequence)
    n = len(z)
    first, square = np.zeros((2, n, model.n_sticks))
    for t in range(n):
        v = sequence.known[t]
        uu = np.block([[zz[t, :, t], np.outer(z[t], v)], [np.outer(v, z[t]), np.outer(v, v)]])
        for j in range(model.n_sticks):
            a = factor.emission.mean[j]
            first[t, j] = a @ np.concatenate([z[t], v])
            square[t, j] = np.trace((np.outer(a, a) + factor.emission.cov[j]) @ uu)
    return first, square


def best_omega(model, factor, sequence):
    return sequence._replace(tilt=np.sqrt(psi_moments(model, factor, sequence)[1]))


def likelihood(model, factor, sequence):
    """Return E log p(x, omega | psi) - E log q(omega)."""
    x = sequence.counts
    successes, trials = model.decomposition.split(x)[:2]
    psi, square = psi_moments(model, factor, sequence)
    c = sequence.tilt
    value = (successes - trials / 2) * psi - trials * np.log(2 * np.cosh(c / 2))
    value -= expected_omega(trials, c) * (square - c**2) / 2
    return value.sum() + gammaln(x.sum(axis=1) + 1).sum() - gammaln(x + 1).sum()


def law_of_states(model, factor, sequence):
    """Return E log p(states | parameters) - E log q(states)."""
    z, zz = moments(model, sequence)
    (n, d), initial, dynamics = z.shape, factor.initial, factor.dynamics
    precision, m = noise_precision(initial), initial.mean
    gap = zz[0, :, 0] - np.outer(m, z[0]) - np.outer(z[0], m) + np.outer(m, m)
    value = expected_log_det(initial) - np.trace(precision @ gap) - d / initial.strength
    precision, M = noise_precision(dynamics), dynamics.mean
    columns = np.linalg.inv(dynamics.strength)
    for t in range(1, n):
        p = sequence.pushes[t]
        xx = np.block(
            [
                [zz[t - 1, :, t - 1], np.outer(z[t - 1], p)],
                [np.outer(p, z[t - 1]), np.outer(p, p)],
            ]
        )
        yx = np.column_stack([zz[t, :, t - 1], np.outer(z[t], p)])
        gap = zz[t, :, t] - M @ yx.T - yx @ M.T + M @ xx @ M.T
        value += expected_log_det(dynamics) - np.trace(precision @ gap)
        value -= d * np.trace(columns @ xx)
    entropy = np.linalg.slogdet(sequence.cov)[1] + n * d * (1 + LOG_2PI)
    return 0.5 * (value - n * d * LOG_2PI + entropy)


def kl_of_noise(q, p):
    """Return KL between inverse Wishart laws."""
    d = len(q.scale)

    def expected_log_density(law):
        constant = law.degrees / 2 * (np.linalg.slogdet(law.scale)[1] - d * np.log(2))
        constant -= multigammaln(law.degrees / 2, d)
        trace = np.trace(law.scale @ noise_precision(q))
        return constant + (law.degrees + d + 1) / 2 * expected_log_det(q) - trace / 2

    return expected_log_density(q) - expected_log_density(p)


def kl_of_normals(mean, cov, other_mean, other_cov):
    gap, inverse = mean - other_mean, np.linalg.inv(other_cov)
    log_ratio = np.linalg.slogdet(other_cov)[1] - np.linalg.slogdet(cov)[1]
    return 0.5 * (np.trace(inverse @ cov) + gap @ inverse @ gap - len(mean) + log_ratio)


def kl_of_parameters(model, factor):
    """Return KL(q || prior): conditional normals at Q = E[Q^-1]^-1, which KL only needs E[Q^-1] of."""
    total = 0.0
    for q, p in ((factor.dynamics, model.dynamics_prior), (factor.initial, model.initial_prior)):
        cov = np.linalg.inv(noise_precision(q))
        columns = [np.linalg.inv(np.atleast_2d(law.strength)) for law in (q, p)]
        covs = [np.kron(cov, c) for c in columns]
        total += kl_of_noise(q, p) + kl_of_normals(q.mean.ravel(), covs[0], p.mean.ravel(), covs[1])
    centre = np.column_stack([np.zeros((model.n_sticks, model.n_dims)), model.level])
    for a, c, m in zip(factor.emission.mean, factor.emission.cov, centre):
        total += kl_of_normals(a, c, m, np.diag(model.scales**2))
    return total


def bound(model, factor, sequences):
    """Return the whole bound."""
    total = -kl_of_parameters(model, factor)
    for sequence in sequences:
        total += likelihood(model, factor, sequence) + law_of_states(model, factor, sequence)
    return total
