"""Small multinomial dynamics for tests, and sweeps of them."""

import functools

import numpy as np

from polystick.conjugate import NormalInverseWishart
from polystick.conjugate_dynamics import MatrixNormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.keys import Key
from polystick.models import composition, composition_sites, dynamics
from polystick.models.chain_sums import added
from polystick.models.composition import CompositionDynamics
from polystick.models.dynamics import MultinomialDynamics

RAGGED = [np.array([2, 0, 3]), np.array([1]), np.array([0, 4])]


def make_model(
    n_dims, n_sticks, kind=MultinomialDynamics, *, inputs=(), m=0, drift=False, tree=None, **more
):
    """Return a model with a bias and priors under which nothing is extreme."""
    q, e = drift + m * ("states" in inputs), 1 + m * ("emissions" in inputs)
    mean = np.column_stack([0.3 * np.eye(n_dims), np.zeros((n_dims, q))])
    strength = np.diag([3.0] * n_dims + [2.0] * q)
    prior = MatrixNormalInverseWishart(mean, strength, 3 * np.eye(n_dims), n_dims + 8.0)
    initial = NormalInverseWishart(np.zeros(n_dims), 2.0, 4 * np.eye(n_dims), n_dims + 8.0)
    level = np.zeros((n_sticks, e))
    level[:, 0] = np.linspace(-0.5, 0.5, n_sticks)
    scales = np.array([0.8] * n_dims + [0.6] * e)
    tree = Decomposition.sticks(np.arange(n_sticks + 1)) if tree is None else tree
    return kind(tree, prior, initial, level, scales, True, drift, inputs, **more)


def make_composition(n_sticks, *, walks, kind=CompositionDynamics):
    """Return a walk, or an autoregression with a drift."""
    drift = np.zeros((n_sticks, 0 if walks else 1))
    mean = np.column_stack([np.eye(n_sticks) * (1.0 if walks else 0.5), drift])
    strength = 4.0 * np.eye(mean.shape[1])
    prior = MatrixNormalInverseWishart(mean, strength, 3 * np.eye(n_sticks), n_sticks + 8.0)
    initial = NormalInverseWishart(
        np.linspace(-0.4, 0.4, n_sticks), 2.0, 4 * np.eye(n_sticks), n_sticks + 8.0
    )
    tree = Decomposition.balanced(n_sticks + 1)
    level, scales = np.zeros((n_sticks, 0)), np.ones(n_sticks)
    return kind(tree, prior, initial, level, scales, False, not walks, walks=walks)


def inputs_for(totals, m, seed=5):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((len(total), m)) for total in totals] if m else None


def sweep(model, totals, everything, key, rng, inputs=None, size=3):
    """Draw all but the counts given these, in blocks, then new counts."""
    parameters, rows, counts = everything
    prior, at, parts = model.prepare(parameters), 0, []
    for shard in model.shards(counts, inputs, size=size):
        mine = rows_at(model, shard, rows.states[at : at + shard.n_steps])
        parts.append(model.draw_rows(prior, shard, mine, key))
        at += shard.n_steps
    total = functools.reduce(added, (part[1] for part in parts))
    parameters = model.draw_parameters(parameters, total, key)
    rows = rows._replace(states=np.concatenate([part[0].states for part in parts]))
    return parameters, rows, model.simulate_counts(parameters, rows, totals, rng, inputs)


def rows_at(model, shard, states):
    """Return rows with these states, and sites that depend on the counts alone."""
    if not isinstance(model, CompositionDynamics):
        return dynamics.Rows(states)
    return composition.Rows(states, *composition_sites.first_sites(shard.lopsided))


def resample(model, totals, inputs=None, size=3):
    """Return what a `Law` wants; with a large size all is one block."""
    return lambda everything, i, rng: sweep(
        model, totals, everything, Key(11, i), rng, inputs, size
    )
