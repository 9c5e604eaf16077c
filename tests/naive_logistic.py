"""The slow, obvious twins of the logistic-normal kernels."""

import numpy as np
from scipy.special import logsumexp

from polystick.kernels import polyagamma, streams


def conditional(counts, precision, mean, psi, t, omega, zeta):
    """Return the mean and the variance of psi[t] given the rest and omega, for one row."""
    others = np.arange(len(psi)) != t
    prior_variance = 1 / precision[t, t]
    prior_mean = mean[t] - prior_variance * precision[t, others] @ (psi - mean)[others]
    kappa = counts[t] - counts.sum() / 2
    variance = 1 / (omega + 1 / prior_variance)
    return variance * (kappa + omega * zeta + prior_mean / prior_variance), variance


def sweep_row(key, row, counts, precision, mean, psi):
    """Draw one row site by site from its stream; return the new psi."""
    psi, state = psi.copy(), streams.open_stream(key, row)
    for t in range(len(psi)):
        zeta = logsumexp(np.delete(psi, t))
        omega = 0.0
        if counts.sum() > 0:
            omega, *state = polyagamma.draw(counts.sum(), psi[t] - zeta, *map(np.uint64, state))
        noise, *state = streams.normal(*map(np.uint64, state))
        centre, variance = conditional(counts, precision, mean, psi, t, omega, zeta)
        psi[t] = centre + np.sqrt(variance) * noise
    return psi


def draw_omega(counts, gap, rng):
    """Draw PG(N, gap), one for each row."""
    out, ids = np.empty(len(gap)), np.arange(len(gap), dtype=np.uint64)
    key, b = np.uint64(rng.integers(2**63)), counts.sum(axis=1).astype(np.int64)
    polyagamma.draw_ragged(key, ids, np.arange(len(gap) + 1), b, np.ascontiguousarray(gap), out)
    return out


def sweep_rows(counts, precision, mean, psi, rng, stale=False):
    """Draw all rows at once, with other random numbers; stale draws every omega before any psi moves."""
    psi, sites = psi.copy(), range(psi.shape[1])
    logit = lambda t: psi[:, t] - logsumexp(np.delete(psi, t, axis=1), axis=1)
    early = [draw_omega(counts, logit(t), rng) for t in sites] if stale else None
    for t in sites:
        zeta = logsumexp(np.delete(psi, t, axis=1), axis=1)
        omega = early[t] if stale else draw_omega(counts, psi[:, t] - zeta, rng)
        pull = (psi - mean) @ precision[t] - (psi[:, t] - mean[t]) * precision[t, t]
        kappa = counts[:, t] - counts.sum(axis=1) / 2
        j = omega + precision[t, t]
        h = kappa + omega * zeta + precision[t, t] * mean[t] - pull
        psi[:, t] = h / j + rng.standard_normal(len(psi)) / np.sqrt(j)
    return psi


def bound(counts, precision, mean, location, variance, zeta=None):
    """Return the bound of one row, term by term, but for the words and the entropy of their topics."""
    k, n_tokens = len(mean), counts.sum()
    total = np.exp(location + variance / 2).sum()
    zeta = total if zeta is None else zeta
    expected_log_prior = 0.5 * (
        np.linalg.slogdet(precision)[1]
        - k * np.log(2 * np.pi)
        - (location - mean) @ precision @ (location - mean)
        - np.diag(precision) @ variance
    )
    expected_log_topics = counts @ location - n_tokens * (total / zeta + np.log(zeta) - 1)
    entropy = 0.5 * np.sum(np.log(2 * np.pi * np.e * variance))
    return expected_log_prior + expected_log_topics + entropy
