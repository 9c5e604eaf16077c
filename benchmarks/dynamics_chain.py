"""States behind words: potentials and a draw of the states (FFBS) against dynamax, CPU time of one thread.

The peer: dynamax's jitted `lgssm_posterior_sample` in float32 with diagonal noise of its own at each step,
which is what a stick-breaking LDS asks of it; compilation is not timed.
"""

import os
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse
import sequences
from timing import in_turns, record

from polystick import polyagamma
from polystick.decomposition import Decomposition, RaggedSplits
from polystick.gaussians.dynamics import Chain
from polystick.kernels import emissions

D, SEED = 10, 0
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
CASES = (("DNA", 8.0, 15), ("Alice", 400.0, 1))  # the target, and the calls of the peer


class Problem(NamedTuple):
    """Tokens split by a tree, the parameters of a chain and of its emission, and noise."""

    splits: RaggedSplits
    kappa: np.ndarray
    omega: np.ndarray
    rows: np.ndarray
    states: np.ndarray
    chain: Chain
    noise: np.ndarray


def make(tokens, tree):
    rng, n_steps = np.random.default_rng(SEED), len(tokens)
    matrix = (np.ones(n_steps, np.int64), tokens, np.arange(n_steps + 1))
    splits = tree.split_sparse(scipy.sparse.csr_array(matrix, (n_steps, tree.n_categories)))
    rows = 0.3 * rng.normal(size=(tree.n_categories - 1, D + 1))
    states = rng.normal(size=(n_steps, D))
    dynamics = 0.95 * np.linalg.qr(rng.normal(size=(D, D)))[0]
    chain = Chain(np.zeros(D), np.eye(D), dynamics, 0.1 * np.eye(D))
    kappa = splits.successes - 0.5 * splits.trials
    problem = Problem(splits, kappa, kappa, rows, states, chain, rng.normal(size=(n_steps, D)))
    return problem._replace(omega=draw_omega(problem))


# ---- ours


def products(vectors):
    width = vectors.shape[1]
    packed = np.empty((len(vectors), width * (width + 1) // 2))
    emissions.pack_products(vectors, packed)
    return packed


def with_ones(states):
    return np.concatenate([states, np.ones((len(states), 1))], axis=1)


def draw_omega(problem):
    splits, psi = problem.splits, np.empty(len(problem.kappa))
    emissions.multiply_active(
        splits.starts, splits.nodes, problem.rows, with_ones(problem.states), psi
    )
    ids = np.arange(len(problem.states), dtype=np.uint64)
    return polyagamma.draw_ragged(SEED, ids, splits.starts, splits.trials, psi)


def draw_states(problem, omega):
    splits, n_steps = problem.splits, len(problem.states)
    chain = Chain(*(getattr(problem.chain, name) for name in problem.chain.__dataclass_fields__))
    rows = problem.rows.copy()
    rows[:, :D] = rows[:, :D] @ chain.root
    linear, precision = np.empty((n_steps, D)), np.empty((n_steps, D, D))
    emissions.pull_back(
        splits.starts,
        splits.nodes,
        problem.kappa,
        omega,
        rows,
        products(rows),
        np.ones((n_steps, 1)),
        linear,
        precision,
        np.empty(n_steps),
    )
    return chain.white.draw_in_place(linear, precision, problem.noise)


def draw_omega_and_states(problem):
    return draw_states(problem, draw_omega(problem))


# ---- the peer


def dynamax_draw(problem):
    """Return a function that draws the states with dynamax."""
    os.environ.setdefault("XLA_FLAGS", ONE_THREAD)
    import jax
    from dynamax.linear_gaussian_ssm.inference import lgssm_posterior_sample, make_lgssm_params

    law, (observed, variances) = problem.chain, dense(problem)
    loadings = np.ascontiguousarray(problem.rows[:, :D])
    arrays = (
        law.initial_mean,
        law.initial_cov,
        law.dynamics,
        law.dynamics_cov,
        loadings,
        variances,
    )
    parameters = make_lgssm_params(*(jax.numpy.asarray(a, "float32") for a in arrays))
    observed, key = jax.numpy.asarray(observed, "float32"), jax.random.PRNGKey(SEED)
    draw = jax.jit(lgssm_posterior_sample)
    return lambda: draw(key, parameters, observed).block_until_ready()


def dense(problem):
    """Return kappa / omega less the bias, and 1 / omega, a large variance where a stick is not active."""
    n_steps, n = len(problem.states), len(problem.rows)
    which = np.repeat(np.arange(n_steps), np.diff(problem.splits.starts)), problem.splits.nodes
    observed, variances = np.zeros((n_steps, n)), np.full((n_steps, n), 1e6)
    observed[which] = problem.kappa / problem.omega - problem.rows[problem.splits.nodes, D]
    variances[which] = 1.0 / problem.omega
    return observed, variances


# ---- lines


def against_dynamax(name, target, repeats):
    tokens, n_categories = sequences.load(name)
    weights = np.bincount(tokens, minlength=n_categories)
    problem = make(tokens, Decomposition.by_frequency(weights))
    plain, whole, theirs = in_turns(
        partial(draw_states, problem, problem.omega),
        partial(draw_omega_and_states, problem),
        dynamax_draw(problem),
        repeats=(25, 25, repeats),
    )
    n_active = len(problem.kappa) / len(tokens)
    case = f"T={len(tokens)}, K={n_categories}, D={D}, {n_active:.0f} active sticks"
    return [
        record(f"potentials and states vs dynamax, {case}", plain, theirs, target),
        record(f"omega, potentials and states vs dynamax, {case}", whole, theirs),
    ]


def run():
    """Return one record per case; raises MissingDataError without the data."""
    if not sequences.is_installed("dynamax"):
        return [sequences.left_out("dynamax")]
    return [line for case in CASES for line in against_dynamax(*case)]


if __name__ == "__main__":
    for line in run():
        print(line, flush=True)
