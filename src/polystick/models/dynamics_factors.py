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

import operator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polystick import augmentation
from polystick.gaussians.dynamics import Chain
from polystick.kernels import emissions
from polystick.keys import Key
from polystick.models import gauge
from polystick.models.dynamics_laws import (
    DynamicsFactor,
    EmissionFactor,
    outer,
    packed_matrices,
    unpacked,
)
from polystick.models.dynamics_steps import active_psi, chain_sums, pull_back

LOCAL_STEPS = 10  # of q(states) and q(omega) before the first sweep
LEAST_MOVE = 0.02  # of log odds; measured: above 0.9 with dynamics; without, 1e-4 but once 0.26


class RowFactors(NamedTuple):
    """Each q(omega), which is what q(states) follows from."""

    tilt: np.ndarray  # (active sticks of all steps,)


class ExpectedStatistics(NamedTuple):
    """As `Statistics`, with expectations of the sums."""

    n_pairs: int
    xx: np.ndarray
    yx: np.ndarray
    yy: np.ndarray
    n_first: int
    first: np.ndarray
    first_outer: np.ndarray
    linear: np.ndarray  # (k, E)
    precision: np.ndarray  # (k, P)
    value: float  # the steps' part of the bound
    n_steps: int
    mean: np.ndarray  # (D,) of E[z], all steps
    mean_outer: np.ndarray  # (D, D) of E[z] E[z]'

    @property
    def moves(self):
        """The covariance over steps of E[z]."""
        centre = self.mean / self.n_steps
        return self.mean_outer / self.n_steps - np.outer(centre, centre)


class ExpectedPrior(NamedTuple):
    """What the local steps of a sweep share."""

    chain: Chain
    push: np.ndarray  # (D, q)
    excess: np.ndarray  # (D + q, D + q) of E[W' Q^-1 W]: D K^-1
    first_constant: float  # of the bound, for each sequence
    pair_constant: float  # and for each step but the first
    rows: np.ndarray  # (k, E) E[a]
    products: np.ndarray  # (k, P) E[a a'], packed
    doubled: np.ndarray  # (k, P) the same with off-diagonal entries doubled


class DynamicsFactors:
    """The mean-field half of `MultinomialDynamics`."""

    warm_sweeps: ClassVar[int] = 200  # of Gibbs; from 50 the ascent often ended lower

    n_dims: Any
    n_sticks: Any
    scales: Any
    dynamics_prior: Any
    initial_prior: Any
    parameter_type: ClassVar[Any]
    _centre: Any
    initial_parameters: Any
    prepare: Any
    initial_rows: Any
    draw_rows: Any
    draw_parameters: Any

    def initial_factor(self, shards, key):
        """Take the laws of the parameters given where a few sweeps of Gibbs end."""
        keys = [Key(key.chain("warm").seed, i) for i in range(self.warm_sweeps + 1)]
        parameters = self.initial_parameters(shards, keys[0])
        prior = self.prepare(parameters)
        rows = [self.initial_rows(prior, shard, keys[0]) for shard in shards]
        for key in keys[1:]:
            prior = self.prepare(parameters)
            drawn = [self.draw_rows(prior, *each, key) for each in zip(shards, rows)]
            rows = [states for states, _ in drawn]
            statistics = _total([part for _, part in drawn])
            parameters = self.draw_parameters(parameters, statistics, key)
        return self.laws_given(statistics, np.cov(np.concatenate([r.states for r in rows]).T))

    def laws_given(self, statistics, moves):
        """Return the laws of the parameters given sums over states and omega, or expected ones."""
        return DynamicsFactor(
            self.dynamics_prior.posterior(*statistics[:4]),
            self.initial_prior.posterior(*statistics[4:7]),
            self._emission_given(statistics.linear, statistics.precision),
            np.atleast_2d(moves),
        )

    def _emission_given(self, linear, packed):
        weights = self.scales**-2.0
        precision = unpacked(packed, len(weights)) + np.diag(weights)
        return EmissionFactor.natural(linear + self._centre * weights, precision)

    def expect(self, factor):
        d, dynamics, initial = self.n_dims, factor.dynamics, factor.initial
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
            _missing(initial, first_cov) - 0.5 * d / initial.strength,
            _missing(dynamics, noise_cov),
            np.ascontiguousarray(factor.emission.mean),
            packed_matrices(second),
            packed_matrices(doubled),
        )

    def initial_row_factors(self, prior, shard):
        """Start from states of 0, and let q(states) and q(omega) settle."""
        nothing = np.column_stack([np.zeros((shard.n_steps, self.n_dims)), shard.known])
        rows = RowFactors(_tilt(prior, shard, packed_matrices(outer(nothing))))
        for _ in range(LOCAL_STEPS):
            moments = self.state_moments(prior, shard, self._expected_omega(shard, rows))[0]
            rows = RowFactors(_tilt(prior, shard, _step_products(shard, moments)))
        return rows

    def _expected_omega(self, shard, rows):
        return augmentation.expected_potential(shard.splits, rows.tilt)

    def state_moments(self, prior, shard, potential):
        """Return the moments of q(states), and what is constant in the exponents of its potentials."""
        parts = pull_back(shard, potential, prior.rows, prior.products, self.n_dims)
        linear, precision, constant = parts
        rest = self._add_excess_in_place(prior, shard, linear, precision)
        shifts = shard.pushes @ prior.push.T
        moments = prior.chain.moments(linear, precision, shifts=shifts, starts=shard.starts)
        return moments, constant.sum() + rest

    def _add_excess_in_place(self, prior, shard, linear, precision):
        """Add -x' excess x / 2 of each step that follows another to the one before; return the rest."""
        d, excess = self.n_dims, prior.excess
        after = _followers(shard.starts)
        p = shard.pushes[after]
        precision[after - 1] += excess[:d, :d]
        linear[after - 1] -= p @ excess[d:, :d]
        return -0.5 * np.einsum("ti,ij,tj->", p, excess[d:, d:], p)

    def update_rows(self, prior, shard, rows, key):
        """q(states), then q(omega)."""
        potential = self._expected_omega(shard, rows)
        moments, constant = self.state_moments(prior, shard, potential)
        products = _step_products(shard, moments)
        rows = RowFactors(_tilt(prior, shard, products))
        sums = expected_chain_sums(shard, moments)
        value = constant + np.sum(moments.log_normaliser) + _likelihood(shard, potential, rows)
        value += sums[4] * prior.first_constant + sums[0] * prior.pair_constant
        linear, precision = np.empty_like(prior.rows), np.empty_like(prior.products)
        u = np.column_stack([moments.mean, shard.known])
        potential = self._expected_omega(shard, rows)
        emissions.gather(*shard.active, *potential, u, products, linear, precision)
        z = moments.mean
        parts = *sums, linear, precision, value, len(z), z.sum(axis=0), z.T @ z
        return rows, ExpectedStatistics(*parts)

    def update_factor(self, factor, statistics):
        """The laws of the parameters, then the scale of the states."""
        factor = self.laws_given(statistics, statistics.moves)
        return factor.rescaled(self.best_scale(factor))

    def best_scale(self, factor):
        """Return the c that makes c times the states best; 1 where the priors do not stretch along."""
        if not gauge.stretches(self):
            return 1.0
        d, prior, first = self.n_dims, self.dynamics_prior, self.initial_prior
        dynamics, initial, emission = _parts(factor)
        squares = emission.mean**2 + emission.variance
        K0, gap = prior.strength[:d, :d], dynamics.mean[:, :d] - prior.mean[:, :d]
        rate = np.sum(squares[:, :d] / self.scales[:d] ** 2)
        rate += np.vdot(dynamics.expected_precision, prior.scale + gap @ K0 @ gap.T)
        rate += np.vdot(dynamics.expected_excess[:d, :d], K0)
        rate += np.vdot(initial.expected_precision, first.scale)
        return np.sqrt(0.5 * rate / gauge.stretch_shape(self))

    def elbo(self, factor, statistics):
        dynamics, initial, emission = _parts(factor)
        kl = dynamics.kl(self.dynamics_prior) + initial.kl(self.initial_prior)
        return statistics.value - kl - emission.kl(self._centre, self.scales)

    def collapsed(self, factor):
        """Tell whether the states move nothing."""
        return factor.largest_move < LEAST_MOVE

    def diagnose(self, factor):
        """Say so if the states have collapsed."""
        if not self.collapsed(factor):
            return None
        return (
            "mean field makes no use of the states: over the steps they move the log odds of no "
            f"stick by more than {factor.largest_move:.1g} (standard deviation); there may be no "
            "dynamics in the data, or too little of it for mean field; compare with Gibbs, or try "
            "a balanced tree or fewer states"
        )

    # what to record

    def draw_from_factor(self, factor, key):
        rng = key.generator("factor")
        dynamics, initial, emission = _parts(factor)
        laws = *dynamics.draw(rng), *initial.draw(rng)[:2]
        return self.parameter_type(*laws, emission.draw(rng), np.asarray(1.0))

    def draw_described_rows(self, prior, shard, rows):
        """Return two values of each state with the moments of q."""
        moments = self.state_moments(prior, shard, self._expected_omega(shard, rows))[0]
        sd = np.sqrt(np.diagonal(moments.cov, axis1=1, axis2=2))
        return {"states": np.stack([moments.mean - sd, moments.mean + sd])}


def _parts(factor):
    return factor.dynamics, factor.initial, factor.emission


def _total(statistics):
    total, *others = statistics
    for each in others:
        total = type(total)(*map(operator.add, total, each))
    return total


def _missing(law, cov):
    """Return E log N minus log N at the covariance E[precision]^-1, both at their means."""
    return 0.5 * (law.expected_log_det_precision + np.linalg.slogdet(cov)[1])


def _followers(starts):
    """Return the numbers of the steps that follow another of their sequence."""
    follows = np.ones(starts[-1], dtype=bool)
    follows[starts[:-1][np.diff(starts) > 0]] = False
    return np.flatnonzero(follows)


def _step_products(shard, moments):
    """Return E[u u'] of each step, packed."""
    d = moments.mean.shape[1]
    second = outer(np.column_stack([moments.mean, shard.known]))
    second[:, :d, :d] += moments.cov
    return packed_matrices(second)


def _tilt(prior, shard, step_products):
    """Return sqrt(E psi^2) of the active sticks."""
    return np.sqrt(np.maximum(active_psi(shard, prior.doubled, step_products), 0.0))


def _likelihood(shard, potential, rows):
    """Return what the best q(omega) makes of the bound, where q(states) holds the potential's part."""
    trials = shard.splits.trials
    log_cosh = augmentation.log_two_cosh(rows.tilt)
    return np.sum(0.5 * potential.omega * rows.tilt**2 - trials * log_cosh) + shard.log_coefficient


def expected_chain_sums(shard, moments):
    """Return the first seven of `ExpectedStatistics`."""
    n_pairs, xx, yx, yy, *first, squares = chain_sums(shard.starts, moments.mean, shard.pushes)
    after, d = _followers(shard.starts), moments.mean.shape[1]
    heads = np.setdiff1d(np.arange(shard.n_steps), after)
    xx[:d, :d] += moments.cov[after - 1].sum(axis=0)
    yx[:, :d] += moments.cross.sum(axis=0)
    yy = yy + moments.cov[after].sum(axis=0)
    return n_pairs, xx, yx, yy, *first, squares + moments.cov[heads].sum(axis=0)
