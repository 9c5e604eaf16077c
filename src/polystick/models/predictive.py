"""What a Gaussian law of psi at new inputs says of probabilities and counts (paper, appendix B).

Given a posterior state the sticks are independent, so expected probabilities, their squares and the
likelihood of counts are products of integrals over one stick each. Arrays of psi are (sticks, inputs), those
of probabilities and counts (inputs, categories).
"""

from typing import NamedTuple

import numpy as np

from polystick.keys import Key
from polystick.models.quadrature import effective_logit, log_binomial_evidence, log_moments

__all__ = [
    "Latent",
    "draw_prior",
    "draw_probabilities",
    "expected_moments",
    "expected_probabilities",
    "latent_at",
    "log_evidence",
    "log_left_out",
]


SMALLEST = 1e-9  # part of what is known of an input that the others tell


class Latent(NamedTuple):
    """The marginal laws psi ~ N(mean, variance) of k sticks at n inputs."""

    mean: np.ndarray  # (k, n)
    variance: np.ndarray  # (k, n)


def latent_at(model, state, inputs, shards=None, seed=0, number=0):
    """Return the law of psi at inputs (n, d) under a posterior state, a draw or a factor.

    shards : of the fit, to integrate out the values there given omega; None: they are as drawn
    seed, number : of the state, which key the draw of omega
    """
    predictor = model.family.predictor(state["theta"], inputs)
    if "white" in state:
        return Latent(*model.latent(state, predictor, shards, _key(seed, number)))
    return Latent(*model.latent_of_factor(state, predictor))


def expected_probabilities(decomposition, latent):
    """Return E[pi] (n, K)."""
    return decomposition.probabilities(effective_logit(*latent).T)


def expected_moments(decomposition, latent):
    """Return E[pi] and E[pi^2], (n, K) each."""
    yes, no, both_yes, both_no = log_moments(*latent)
    k, n = yes.shape
    at_nodes, at_categories = np.zeros((k, n)), np.empty((k + 1, n))
    for node, children in enumerate(decomposition.children):  # in preorder: parents first
        for child, share in zip(children, (both_yes[node], both_no[node])):
            where, place = (at_categories, child) if child >= 0 else (at_nodes, ~child)
            where[place] = at_nodes[node] + share
    return decomposition.probabilities((yes - no).T), np.exp(at_categories).T


def draw_probabilities(decomposition, latent, rows, seed, number):
    """Draw pi (n, K), those of an input from the stream of its row id (n,)."""
    noise = _key(seed, number).normals("psi", rows, len(latent.mean))
    return decomposition.probabilities(latent.mean.T + np.sqrt(latent.variance.T) * noise)


def log_evidence(decomposition, latent, counts):
    """Return the log probability (n,) of each row of counts (n, K), without the coefficient."""
    successes, trials = (part.T for part in decomposition.split(counts))
    active, logs = trials > 0, np.zeros(trials.shape)
    cells = (part[active] for part in (successes, trials, *latent))
    logs[active] = log_binomial_evidence(*cells)
    return logs.sum(axis=0)


def log_left_out(model, state, shards, counts, seed, number):
    """Return log p(x_m | all other inputs, their omega, the parameters) (M,), without the coefficient.

    Given omega the functions are integrated out, so what is left to say of an input without its own counts
    is Gaussian: its law given all, with its own potential taken out again (a cavity).
    """
    solver = model.family.at(state["theta"])
    here, key = model.family.predictor_here(state["theta"]), _key(seed, number)
    means, variances = [], []
    for shard in shards:
        potential, (mean, variance) = model.collapse(state, solver, here, shard, key)
        left = np.maximum(1.0 - variance * potential.omega, SMALLEST)
        means.append((mean - variance * potential.kappa) / left)
        variances.append(variance / left)
    return log_evidence(
        model.decomposition, Latent(*map(np.concatenate, (means, variances))), counts
    )


def draw_prior(model, inputs, seed, number):
    """Draw pi (n, K) at inputs (n, d) from the prior, of the learned parameters too."""
    rng = _key(seed, number).generator("prior")
    nothing = np.zeros(model.family.inputs.shape[0], dtype=np.int64)
    parameters, sticks, _ = model.simulate(nothing, rng)
    f = model.family.prior_draws(parameters.theta, inputs, rng, model.n_sticks)
    psi = sticks.level[:, None] + sticks.scale[:, None] * f
    return model.decomposition.probabilities(psi.T)


def _key(seed, number):
    return Key(seed, number).chain("new inputs")
