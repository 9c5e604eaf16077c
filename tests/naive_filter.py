"""The slow, obvious twins of filters, of shifted chains and of emissions."""

from typing import NamedTuple

import numpy as np

from naive_chain import joint


class Filter(NamedTuple):
    predicted_mean: np.ndarray
    predicted_cov: np.ndarray
    mean: np.ndarray
    cov: np.ndarray
    log_normalisers: np.ndarray


def shifted_joint(p, shifts):
    """Return the joint law of x = y + m, where y has no shifts and m is what they add up to."""
    m = np.zeros_like(shifts)
    for s in range(1, len(m)):
        m[s] = p.dynamics @ m[s - 1] + shifts[s]
    pull = np.einsum("sij,sj->si", p.precision, m)
    found = joint(p._replace(linear=p.linear - pull))
    log = found.log_normaliser + np.sum(m * (p.linear - 0.5 * pull))
    return found._replace(mean=found.mean + m, log_normaliser=log)


def cut(p, n_steps, n_seen):
    """Return the first steps, of which the first n_seen have their potentials."""
    seen = np.arange(n_steps) < n_seen
    return p._replace(
        linear=p.linear[:n_steps] * seen[:, None],
        precision=p.precision[:n_steps] * seen[:, None, None],
    )


def filtered(p, shifts):
    """Condition on the past anew at each step."""
    rows, before = [], 0.0
    for s in range(len(shifts)):
        ahead = shifted_joint(cut(p, s + 1, s), shifts[: s + 1])
        now = shifted_joint(cut(p, s + 1, s + 1), shifts[: s + 1])
        moments = (ahead.mean[s], ahead.cov[s, :, s], now.mean[s], now.cov[s, :, s])
        rows.append((*moments, now.log_normaliser - before))
        before = now.log_normaliser
    return Filter(*(np.array(column) for column in zip(*rows)))


class Emission(NamedTuple):
    """Sticks that are active at steps, a row for each stick and a vector for each step."""

    starts: np.ndarray
    nodes: np.ndarray
    kappa: np.ndarray
    omega: np.ndarray
    rows: np.ndarray
    steps: np.ndarray

    @property
    def sticks(self):
        return self[:4]


def emission(n_steps, n_sticks, d, n_known, rng, *, share=0.5, ones=True):
    """Make potentials; some steps and some sticks have none, some sticks are (0, 0)."""
    active = rng.random((n_steps, n_sticks)) < share
    active[rng.random(n_steps) < 0.2] = False
    active[:, n_sticks // 2] = False
    starts = np.concatenate([[0], np.cumsum(active.sum(1))])
    nodes = np.nonzero(active)[1].astype(np.int64)
    empty = rng.random(len(nodes)) < 0.1
    steps = rng.normal(size=(n_steps, d + n_known))
    if ones and n_known:
        steps[:, d] = 1.0
    return Emission(
        starts,
        nodes,
        np.where(empty, 0.0, rng.normal(size=len(nodes))),
        np.where(empty, 0.0, rng.gamma(2.0, 0.1, size=len(nodes))),
        rng.normal(size=(n_sticks, d + n_known)),
        steps,
    )


def log_potential(e, states):
    """Return the sum over the active sticks of each step of kappa psi - omega psi^2 / 2."""
    u = np.concatenate([states, e.steps[:, states.shape[1] :]], axis=1)
    totals = np.zeros(len(u))
    for s in range(len(u)):
        for at in range(e.starts[s], e.starts[s + 1]):
            psi = e.rows[e.nodes[at]] @ u[s]
            totals[s] += e.kappa[at] * psi - 0.5 * e.omega[at] * psi**2
    return totals


def row_sums(e):
    """Return each stick's sums of kappa u and of omega u u'."""
    n, width = e.rows.shape
    linear, precision = np.zeros((n, width)), np.zeros((n, width, width))
    for s in range(len(e.steps)):
        for at in range(e.starts[s], e.starts[s + 1]):
            linear[e.nodes[at]] += e.kappa[at] * e.steps[s]
            precision[e.nodes[at]] += e.omega[at] * np.outer(e.steps[s], e.steps[s])
    return linear, precision
