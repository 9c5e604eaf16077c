"""What regressions say of rows: average probabilities, and evidence of counts, noise integrated out."""

import numpy as np

from polystick import augmentation
from polystick.gaussians.normal import Normal, Shifted
from polystick.models import softmax_counts
from polystick.models.normal_points import standard_normal_points
from polystick.models.regression import StickRegression
from polystick.scores import log_mean_exp

__all__ = ["average_shares", "log_evidence", "spread_of_shares"]

FIRST_STEPS = 12  # of a climb to the mode of a row, each of which ascends
LONGEST_STEP = 4.0  # behind a softmax, where they might not


def average_shares(model, line, cov, n_points=64):
    """Return probabilities (n, K) averaged over psi ~ N(line, cov), line (n, k); cov None: at the lines."""
    if cov is None:
        return model.probabilities(line)
    total = np.zeros_like(model.probabilities(line))
    for point in standard_normal_points(n_points, line.shape[1]) @ _root(cov):
        total += model.probabilities(line + point)
    return total / n_points


def spread_of_shares(model, line, cov, n_points=256):
    """Return the standard deviation of probabilities (K,) over psi ~ N(line, cov), for one line (k,)."""
    points = standard_normal_points(n_points, len(line)) @ _root(cov)
    return model.probabilities(line + points).std(axis=0)


def _root(cov):
    """Return a root of what may be singular: cov = root' root."""
    size, axes = np.linalg.eigh(cov)
    return np.sqrt(np.maximum(size, 0.0))[:, None] * axes.T


def log_evidence(model, shard, line, cov, n_points=32):
    """Return log p(y_i | line_i, cov) of each row (n,), psi integrated out by importance sampling.

    Proposals are Laplace's approximations, found from the line on. The multinomial coefficient is left out.
    """
    if cov is None:
        return _log_likelihood(model, shard, line[:, None])[:, 0]
    law = Shifted(line, _regular(cov))
    propose = _about_sticks if isinstance(model, StickRegression) else _about_softmax
    psi, log_density = propose(law, shard, n_points)
    log_prior = law.log_density(psi)
    return log_mean_exp(_log_likelihood(model, shard, psi) + log_prior - log_density, axis=1)


def _regular(cov):
    """Return the law of noise; that of centred log-ratios is given a level, which no count sees."""
    k = len(cov)
    flat = np.abs(cov.sum(axis=0)).max() < 1e-9 * np.trace(cov)
    return Normal(np.zeros(k), cov + np.trace(cov) / k**2 if flat else cov)


def _log_likelihood(model, shard, psi):
    """Return log p(y_i | psi) for psi (n, s, k), without coefficients: (n, s)."""
    if isinstance(model, StickRegression):
        splits = shard.splits._replace(
            successes=shard.splits.successes[:, None], trials=shard.splits.trials[:, None]
        )
        return augmentation.log_likelihood(splits, psi).sum(axis=2)
    return np.einsum("nk,nsk->ns", shard.counts, model.log_probabilities(psi))


def _about_sticks(law, shard, n_points):
    """Draw (n, s, k) from the Gaussian with the curvature at each row's mode; return also log densities."""
    splits, (n, k) = shard.splits, law.mean.shape
    psi, nowhere = law.mean, np.zeros((n, 1, k))
    for _ in range(FIRST_STEPS):
        potential = augmentation.expected_potential(splits, np.abs(psi))
        psi = law.draws(potential, nowhere)[0][:, 0]
    noise = standard_normal_points(n_points, k)
    drawn, log_det = law.draws(
        augmentation.quadratic_potential(splits, psi), np.broadcast_to(noise, (n, n_points, k))
    )
    distance = np.square(noise).sum(axis=1) + k * np.log(2 * np.pi)
    return drawn, 0.5 * (log_det[:, None] - distance)


def _about_softmax(law, shard, n_points):
    psi, k = law.mean, law.mean.shape[1]
    for _ in range(FIRST_STEPS):
        found = softmax_counts.laplace(law, shard, psi).mean
        psi = psi + np.clip(found - psi, -LONGEST_STEP, LONGEST_STEP)
    return softmax_counts.draw_about(law, shard, psi, standard_normal_points(n_points, k + 1)[None])
