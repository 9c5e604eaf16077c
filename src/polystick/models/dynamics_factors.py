"""Mean field for multinomial dynamics, with an exact bound.

The factors are q(A, B, Q), q(mean, cov), q(a_j) of each stick, q(states) and q(omega), which is PG(trials,
tilt) with tilt^2 = E psi^2 at best. With x_t = [z_{t-1}; p_t], W = [A B] and q(W, Q) of mean M and
strength K,

    E[(z_t - W x_t)' Q^-1 (z_t - W x_t)] = (z_t - M x_t)' E[Q^-1] (z_t - M x_t) + D x_t' K^-1 x_t,

so that q(states) is a chain with dynamics M, noise E[Q^-1]^-1 and one more potential at each step that
another follows. Where it starts decides: from nowhere, states that explain little are soon not used at
all. It starts where a few sweeps of Gibbs end, with the laws of the parameters given the last states.

The scale of the states is weakly held by the counts and slow to climb along, as it mixes slowly in Gibbs.
Each global step ends with the best one, in closed form: the bound is shape log g - rate g / 2 in g = c^-2.
"""

import numpy as np

from polystick import augmentation
from polystick.gaussians.dynamics import Chain
from polystick.models.chain_sums import FirstSums, PairSums, first_sums, heads_of, pair_sums
from polystick.models.dynamics_laws import outer, packed_matrices
from polystick.models.dynamics_state import ExpectedPrior
from polystick.models.dynamics_steps import active_psi

LOCAL_STEPS = 10  # of q(states) and q(omega) before the first sweep
COLLAPSED = (
    "mean field makes no use of the states: over the steps they move the log odds of no "
    "stick by more than {:.1g} (standard deviation); there may be no "
    "dynamics in the data, or too little of it for mean field; compare with Gibbs, or try "
    "a balanced tree or fewer states"
)
LEAST_MOVE = 0.02  # of log odds; measured: above 0.9 with dynamics; without, 1e-4 but once 0.26


def expected_prior(factor):
    """Return what the local steps of a sweep need of the laws of the parameters."""
    dynamics, initial = factor.dynamics, factor.initial
    d = len(dynamics.mean)
    noise_cov, first_cov = (law.scale / law.degrees for law in (dynamics, initial))
    A, B = dynamics.mean[:, :d], dynamics.mean[:, d:]
    second = factor.emission.second
    doubled = 2.0 * second
    diagonal = np.arange(second.shape[1])
    doubled[:, diagonal, diagonal] *= 0.5
    return ExpectedPrior(
        Chain(initial.mean, first_cov, A, noise_cov),
        B,
        dynamics.expected_excess,
        missing(initial, first_cov) - 0.5 * d / initial.strength,
        missing(dynamics, noise_cov),
        np.ascontiguousarray(factor.emission.mean),
        packed_matrices(second),
        packed_matrices(doubled),
    )


def missing(law, cov):
    """Return E log N minus log N at the covariance E[precision]^-1, both at their means."""
    return 0.5 * (law.expected_log_det_precision + np.linalg.slogdet(cov)[1])


def followers(starts):
    """Return the numbers of the steps that follow another of their sequence."""
    follows = np.ones(starts[-1], dtype=bool)
    follows[heads_of(starts)] = False
    return np.flatnonzero(follows)


def add_excess_in_place(prior, shard, linear, precision):
    """Add -x' excess x / 2 of each step that follows another to the one before; return the rest."""
    d, excess = linear.shape[1], prior.excess
    after = followers(shard.starts)
    p = shard.pushes[after]
    precision[after - 1] += excess[:d, :d]
    linear[after - 1] -= p @ excess[d:, :d]
    return -0.5 * np.einsum("ti,ij,tj->", p, excess[d:, d:], p)


def step_products(shard, moments):
    """Return E[u u'] of each step, packed."""
    d = moments.mean.shape[1]
    second = outer(np.column_stack([moments.mean, shard.known]))
    second[:, :d, :d] += moments.cov
    return packed_matrices(second)


def tilt(prior, shard, step_products):
    """Return sqrt(E psi^2) of the active sticks."""
    return np.sqrt(np.maximum(active_psi(shard, prior.doubled, step_products), 0.0))


def likelihood(shard, potential, rows):
    """Return what the best q(omega) makes of the bound, where q(states) holds the potential's part."""
    trials = shard.splits.trials
    log_cosh = augmentation.log_two_cosh(rows.tilt)
    return np.sum(0.5 * potential.omega * rows.tilt**2 - trials * log_cosh) + shard.log_coefficient


def expected_sums(shard, moments):
    """Return the expectations of `pair_sums` and `first_sums` under q(states)."""
    n_pairs, xx, yx, yy = pair_sums(shard.starts, moments.mean, shard.pushes)
    n_first, total, squares = first_sums(shard.starts, moments.mean)
    after, d = followers(shard.starts), moments.mean.shape[1]
    heads = np.setdiff1d(np.arange(shard.n_steps), after)
    xx[:d, :d] += moments.cov[after - 1].sum(axis=0)
    yx[:, :d] += moments.cross.sum(axis=0)
    yy = yy + moments.cov[after].sum(axis=0)
    squares = squares + moments.cov[heads].sum(axis=0)
    return PairSums(n_pairs, xx, yx, yy), FirstSums(n_first, total, squares)
