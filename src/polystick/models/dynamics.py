"""Multinomial linear dynamical systems: states in a chain behind sequences of counts (paper, section 5)::

[A B], Q ~ MNIW(dynamics_prior)                       B: what pushes the states, such as inputs
mean, cov ~ NIW(initial_prior)
a_j = [e_j; f_j] ~ N([0; level_j], diag(scales^2))    j = 1..k, the emission of each stick
z_1 ~ N(mean, cov)
z_t = A z_{t-1} + B p_t + N(0, Q)                     t = 2..T
psi_tj = e_j' z_t + f_j' v_t + w' m_tj                v_t is known: 1 for a bias, inputs
x_t ~ Multinomial(N_t, pi(psi_t))                     pi: the decomposition's map

With a `memory` of tokens m_tj is what those before step t say of split j, and w are its weights; without one
both are empty. Where `learns_bias_scale`, the standard deviation of the biases is scales times lambda, and
lambda ~ half-Cauchy(1) is learned.

Rows are sequences. The likelihood is the same for c z, e / c and c^2 Q as for z, e and Q, so that scale
mixes slowly by itself. Each sweep starts with a draw of it (parameter expansion; Liu and Sabatti 2000).
Its law is that of the parameters alone: the parameters carry the draw, `stretch`, to the next sweep.
"""

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polystick import augmentation
from polystick.conjugate import NormalInverseWishart
from polystick.conjugate_dynamics import MatrixNormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.gaussians.dynamics import Chain
from polystick.kernels import algebra, emissions
from polystick.kernels.splits import log_likelihood
from polystick.keys import Key
from polystick.models import dynamics_factors as factors
from polystick.models import dynamics_prediction, gauge, sequence_splits, watched
from polystick.models.chain_sums import added, first_sums, pair_sums
from polystick.models.dynamics_laws import (
    DynamicsFactor,
    EmissionFactor,
    outer,
    packed_matrices,
    unpacked,
)
from polystick.models.dynamics_state import (
    ExpectedStatistics,
    Parameters,
    Prior,
    RowFactors,
    Rows,
    Statistics,
)
from polystick.models.dynamics_steps import (
    active_psi,
    draw_half_cauchy,
    less_offsets,
    named_columns,
    packed_products,
    paths,
    pull_back,
    raise_unless_finite,
)
from polystick.models.memory import Memory, levels, recall_sums

FIRST_DYNAMICS = 0.9  # on the diagonal, about
START_SPREAD = 0.7  # of the logarithm of step sizes and of rates, with which chains start
FIRST_EMISSION = 0.1  # of its standard deviation a priori
FIRST_BIAS_SCALE = 0.1
OF_TOKENS = ("bias_scale", "memory_weights")  # the same, where they are learned
OF_NOISE = ("dynamics_cov", "initial_mean", "initial_cov")  # recorded as they are


@dataclass(frozen=True)
class StateDynamics:
    """The model: its decomposition and its priors; and its Gibbs sampler."""

    decomposition: Decomposition
    dynamics_prior: MatrixNormalInverseWishart  # of [A B] (D, D + q) and Q
    initial_prior: NormalInverseWishart
    level: np.ndarray  # (k, e) the means of f
    scales: np.ndarray  # (D + e,) the standard deviations of a row
    has_bias: bool = True  # psi has a bias, the first of v
    has_drift: bool = False  # states have one, the first of p
    inputs: tuple[str, ...] = ()  # what they go to: "states", "emissions"
    memory: Memory | None = None
    learns_bias_scale: bool = False

    parameter_type: ClassVar[Any] = Parameters
    dims: ClassVar = {
        "dynamics": ("dim", "dim_too"),
        "dynamics_drift": ("dim",),
        "dynamics_input": ("dim", "input"),
        "dynamics_cov": ("dim", "dim_too"),
        "initial_mean": ("dim",),
        "initial_cov": ("dim", "dim_too"),
        "emission": ("stick", "dim"),
        "emission_bias": ("stick",),
        "bias_scale": (),
        "memory_weights": ("memory",),
        "emission_input": ("stick", "input"),
        "states": ("step", "dim"),
    }
    identified: ClassVar[tuple[str, ...]] = ()  # states may be turned and stretched
    rhat_limit: ClassVar = 1.05
    warm_sweeps: ClassVar[int] = (
        200  # of Gibbs before mean field; from 50 the ascent often ended lower
    )

    @property
    def n_dims(self):
        return len(self.dynamics_prior.mean)

    @property
    def n_sticks(self):
        return self.decomposition.n_categories - 1

    def shards(self, sequences, inputs=None, size=None):
        """Cut sequences of tokens (-1: missing) or of count rows (empty: missing) into blocks.

        inputs : (T, m) of each sequence
        """
        size = sequence_splits.sequence_blocks.STEPS_PER_BLOCK if size is None else size
        return sequence_splits.cut(
            sequences, self.decomposition, inputs, self.known, size, self.memory
        )

    def known(self, inputs):
        """Return v (S, e) and p (S, q) of steps with these inputs (S, m)."""
        ones, nothing = np.ones((len(inputs), 1)), np.zeros((len(inputs), 0))
        ends = []
        for has_one, place in ((self.has_bias, "emissions"), (self.has_drift, "states")):
            given = inputs if place in self.inputs else nothing
            ends.append(np.column_stack([ones, given]) if has_one else given)
        return ends

    # simulate

    def simulate(self, totals, rng, inputs=None):
        """Draw (parameters, rows, sequences) for the totals (T,) of each sequence."""
        parameters = self.draw_from_prior(rng)
        rows = self.simulate_rows(parameters, totals, rng, inputs)
        return parameters, rows, self.simulate_counts(parameters, rows, totals, rng, inputs)

    def draw_from_prior(self, rng):
        """Draw the parameters."""
        coefficients, dynamics_cov = self.dynamics_prior.draw(rng)
        mean, cov, _ = self.initial_prior.draw(rng)
        bias_scale = abs(rng.standard_cauchy()) if self.learns_bias_scale else 1.0
        emission = self._centre + self._scales(bias_scale) * rng.standard_normal(self._centre.shape)
        weights = np.zeros(0) if self.memory is None else self.memory.draw_from_prior(rng)
        found = self._with_stretch(coefficients, dynamics_cov, mean, cov, emission, rng)
        return found._replace(bias_scale=np.asarray(bias_scale), memory_weights=weights)

    def _scales(self, bias_scale):
        """Return the standard deviations of a row of the emission, (E,)."""
        scales = self.scales.copy()
        scales[self.n_dims : self.n_dims + self.has_bias] *= bias_scale
        return scales

    def simulate_probabilities(self, lengths, rng, inputs=None):
        """Draw the probabilities (S, K) of the steps of sequences of these lengths, from the joint law."""
        parameters, d = self.draw_from_prior(rng), self.n_dims
        known, pushes = self._ends(lengths, inputs)
        dynamics, push = np.split(parameters.coefficients, [d], axis=1)
        states = paths(parameters, dynamics, pushes @ push.T, lengths, rng)
        u = np.column_stack([np.concatenate(states), known])
        return self.decomposition.probabilities(u @ parameters.emission.T)

    def simulate_rows(self, parameters, totals, rng, inputs=None):
        """Draw the states of sequences as long as their totals."""
        chain, push = self._chain(parameters)
        lengths = [len(total) for total in totals]
        shape = (sum(lengths), self.n_dims)
        pushes = self._ends(lengths, inputs)[1]
        nothing = np.zeros(shape), np.zeros((*shape, self.n_dims))
        starts = np.concatenate([[0], np.cumsum(lengths)])
        noise = rng.standard_normal(shape)
        return Rows(chain.draw(*nothing, noise, shifts=pushes @ push.T, starts=starts))

    def simulate_counts(self, parameters, rows, totals, rng, inputs=None):
        """Draw rows of counts (T, K) for each sequence, given the states."""
        lengths = [len(total) for total in totals]
        u = np.column_stack([rows.states, self._ends(lengths, inputs)[0]])
        psi = u @ parameters.emission.T
        if self.memory is not None:
            return self.memory.simulate(psi, totals, parameters.memory_weights, rng)
        pi = self.decomposition.probabilities(psi)
        counts = rng.multinomial(np.concatenate(totals), pi)
        return np.split(counts, np.cumsum(lengths)[:-1])

    def _ends(self, lengths, inputs):
        given = np.zeros((sum(lengths), 0)) if inputs is None else np.concatenate(inputs)
        return self.known(given)

    @property
    def _centre(self):
        """The means of the rows of the emission, (k, E)."""
        return np.column_stack([np.zeros((self.n_sticks, self.n_dims)), self.level])

    def _chain(self, parameters):
        d = self.n_dims
        A, B = parameters.coefficients[:, :d], parameters.coefficients[:, d:]
        start = parameters.initial_mean, parameters.initial_cov
        return Chain(*start, A, parameters.dynamics_cov), B

    # Gibbs

    def initial_parameters(self, shards, key):
        """Start with slow states that hardly matter, so that the first ones are drawn from what is seen.

        How slow they are and how far they go in a step differs between chains.
        """
        rng, prior, d = key.generator("start"), self.dynamics_prior, self.n_dims
        noise = rng.standard_normal(self._centre.shape)
        pace, size = np.exp(START_SPREAD * rng.standard_normal((2, d)))
        coefficients = np.zeros_like(prior.mean)
        coefficients[:, :d] = np.diag(FIRST_DYNAMICS**pace)
        cov = np.outer(size, size) * prior.scale / max(1.0, prior.degrees - d - 1.0)
        emission = self._centre + FIRST_EMISSION * self.scales * noise
        initial = self.initial_prior
        initial_cov = initial.scale / max(1.0, initial.degrees - d - 1.0)
        bias_scale = np.asarray(FIRST_BIAS_SCALE if self.learns_bias_scale else 1.0)
        weights = np.zeros(0) if self.memory is None else self.memory.first_weights
        one, mean = np.asarray(1.0), initial.mean
        return Parameters(coefficients, cov, mean, initial_cov, emission, one, bias_scale, weights)

    def prepare(self, parameters):
        """Stretch the states, and what depends on their scale; then whiten."""
        c, d = float(parameters.stretch), self.n_dims
        chain, push = self._chain(self.stretched(parameters, c))
        emission = parameters.emission.copy()
        emission[:, :d] /= c
        white = np.ascontiguousarray(
            np.column_stack([algebra.multiply(emission[:, :d], chain.root), emission[:, d:]])
        )
        weights = parameters.memory_weights
        return Prior(chain, push, emission, white, packed_products(white), c, weights)

    def stretched(self, parameters, c):
        """Return the parameters of c times the states; the emission is left as it is."""
        coefficients = parameters.coefficients.copy()
        coefficients[:, self.n_dims :] *= c
        return parameters._replace(
            coefficients=coefficients,
            dynamics_cov=c * c * parameters.dynamics_cov,
            initial_mean=c * parameters.initial_mean,
            initial_cov=c * c * parameters.initial_cov,
        )

    def initial_rows(self, prior, shard, key):
        """Start where states do not matter."""
        return Rows(np.zeros((shard.n_steps, self.n_dims)))

    def draw_rows(self, prior, shard, rows, key):
        """Omega | psi, x, then the states | omega, x."""
        u = np.column_stack([prior.stretch * rows.states, shard.known])
        offsets = levels(shard.recalled, prior.memory_weights)
        psi = active_psi(shard, prior.emission, u) + offsets
        potential = augmentation.draw_potential(shard.splits, psi, key.at("omega"), shard.steps)
        states = self.draw_states(prior, shard, less_offsets(potential, offsets), key)
        return Rows(states), self._sum(prior, shard, states, potential)

    def draw_states(self, prior, shard, potential, key):
        """States | omega, x."""
        linear, precision, _ = pull_back(shard, potential, prior.white, prior.products, self.n_dims)
        noise = key.normals("states", shard.steps, self.n_dims)
        shifts = algebra.multiply(shard.pushes, prior.push.T)
        white = prior.chain.white
        states = white.draw_in_place(linear, precision, noise, shifts=shifts, starts=shard.starts)
        raise_unless_finite(states, prior, key)
        return states

    def _sum(self, prior, shard, states, potential):
        splits = shard.splits
        offsets = levels(shard.recalled, prior.memory_weights)
        u = np.column_stack([states, shard.known])
        psi = active_psi(shard, prior.emission, u) + offsets
        value = log_likelihood(splits.successes[None], splits.trials[None], psi[None])
        pairs = pair_sums(shard.starts, states, shard.pushes)
        first = first_sums(shard.starts, states)
        given = less_offsets(potential, offsets)
        linear, precision = self.emission_sums(prior, shard, states, given)
        recall = self.recall_sums(shard, u, potential)
        return Statistics(pairs, first, linear, precision, value + shard.log_coefficient, recall)

    def recall_sums(self, shard, u, potential):
        """Return the sums of the memory's regression."""
        return recall_sums(shard, u, potential, self.n_sticks)

    def emission_sums(self, prior, shard, states, potential):
        """Return the sums of each stick's regression on the states."""
        u = np.column_stack([states, shard.known])
        linear, precision = np.empty_like(prior.emission), np.empty_like(prior.products)
        emissions.gather(*shard.active, *potential, u, packed_products(u), linear, precision)
        return linear, precision

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        """A, B, Q | states; mean, cov | first states; the emission | states, omega; the rest | it."""
        rng = key.generator("dynamics")
        coefficients, dynamics_cov = self.draw_dynamics(statistics.pairs, rng)
        mean, cov, _ = self.initial_prior.posterior(*statistics.first).draw(rng)
        emission = self.draw_emission(statistics, key, parameters.bias_scale)
        found = self._with_stretch(coefficients, dynamics_cov, mean, cov, emission, rng)
        return found._replace(
            bias_scale=np.asarray(self.draw_bias_scale(emission, parameters.bias_scale, rng)),
            memory_weights=self.draw_weights(
                parameters.memory_weights, statistics.recall, emission, rng
            ),
        )

    def draw_bias_scale(self, emission, bias_scale, rng):
        """The biases' lambda | them."""
        if not self.learns_bias_scale:
            return 1.0
        far = (emission - self._centre)[:, self.n_dims] / self.scales[self.n_dims]
        return draw_half_cauchy(far, float(bias_scale), rng)

    def draw_weights(self, weights, sums, emission, rng):
        """The weights of memory | states, omega, the emission."""
        if self.memory is None:
            return np.zeros(0)
        return self.memory.draw_weights(weights, sums.given(emission), sums.precision, rng)

    def draw_dynamics(self, pairs, rng):
        """A, B, Q | states."""
        return self.dynamics_prior.posterior(*pairs).draw(rng)

    def draw_emission(self, statistics, key, bias_scale):
        """The row of each stick | states, omega."""
        ids = np.arange(self.n_sticks, dtype=np.uint64)
        noise = key.normals("emission", ids, len(self.scales))
        weights = self._scales(bias_scale) ** -2.0
        emission = np.empty_like(noise)
        emissions.draw_rows(
            np.diag(weights), self._centre * weights, statistics.linear, statistics.precision,
            noise, emission,
        )  # fmt: skip
        return emission

    def _with_stretch(self, coefficients, dynamics_cov, mean, cov, emission, rng):
        parameters = Parameters(coefficients, dynamics_cov, mean, cov, emission, np.asarray(1.0))
        return parameters._replace(stretch=np.asarray(self.draw_stretch(parameters, rng)))

    def draw_stretch(self, parameters, rng):
        """The stretch c | all but the scale of the states."""
        return gauge.draw_stretch(self, parameters, rng)

    def log_likelihood(self, statistics):
        """Return log p(x | states, parameters)."""
        return statistics.value

    # what to record

    def describe_parameters(self, parameters):
        """Return the parameters by name, those of inputs and biases where there are some."""
        d = self.n_dims
        said = {name: getattr(parameters, name) for name in OF_NOISE}
        said |= {"dynamics": parameters.coefficients[:, :d], "emission": parameters.emission[:, :d]}
        said |= named_columns(
            parameters.coefficients[:, d:], self.has_drift, "dynamics_drift", "dynamics_input"
        )
        said |= named_columns(
            parameters.emission[:, d:], self.has_bias, "emission_bias", "emission_input"
        )
        learned = (self.learns_bias_scale, self.memory is not None)
        return said | {n: getattr(parameters, n) for n, is_so in zip(OF_TOKENS, learned) if is_so}

    def recall(self, described):
        """Undo `describe_parameters`."""
        parts = (("dynamics", "dynamics_drift", "dynamics_input"),
                 ("emission", "emission_bias", "emission_input"))  # fmt: skip
        coefficients, emission = (
            np.column_stack([described[name] for name in names if name in described])
            for names in parts
        )
        noise = {name: described[name] for name in OF_NOISE}
        rest = {name: described[name] for name in OF_TOKENS if name in described}
        one = np.asarray(1.0)
        return Parameters(coefficients, **noise, emission=emission, stretch=one, **rest)

    def describe_rows(self, shard, rows):
        return {"states": rows.states}

    def watch(self, shards):
        """Judge a run by the probabilities of some steps: they are the same however states are turned."""
        cells = watched.choose_cells(
            watched.ragged_cells(shard.steps, shard.splits) for shard in shards
        )

        steps = np.unique(cells.rows).astype(np.intp)
        known = np.concatenate([shard.known for shard in shards])[steps]

        def take(shard, rows, picked):
            return {"states": rows.states.take(picked(shard.steps), axis=0)}

        recalled = None if self.memory is None else self.memory.at_steps(shards, steps)

        def psi(parameters, taken):
            found = self.watched_psi(parameters, taken["states"], known)
            level = 0.0 if recalled is None else levels(recalled, parameters.memory_weights)
            return found + level

        return watched.LatentWatch(cells, self.decomposition, "step", take, psi)

    def watched_psi(self, parameters, states, known):
        u = np.concatenate([states, known], axis=1)
        return algebra.multiply(u, parameters.emission.T)

    def smoothing_prior(self, prior, sweep, n_sweeps):
        """Return the prior for one of the sweeps over sequences that are new to a predictor."""
        return prior

    def predictor(self, described):
        """Return what predicts under one posterior draw of the parameters."""
        parameters = self.recall(described)
        return dynamics_prediction.Predictor(self, parameters, self.prepare(parameters))


@dataclass(frozen=True)
class MultinomialDynamics(StateDynamics):
    """The model, with a mean field."""

    # mean field

    def initial_factor(self, shards, key):
        """Take the laws of the parameters given where a few sweeps of Gibbs end."""
        first, *keys = (Key(key.chain("warm").seed, i) for i in range(self.warm_sweeps + 1))
        parameters = self.initial_parameters(shards, first)
        prior = self.prepare(parameters)
        rows = [self.initial_rows(prior, shard, first) for shard in shards]
        for key in keys:
            prior = self.prepare(parameters)
            drawn = [self.draw_rows(prior, *each, key) for each in zip(shards, rows)]
            rows = [states for states, _ in drawn]
            statistics = functools.reduce(added, (part for _, part in drawn))
            parameters = self.draw_parameters(parameters, statistics, key)
        return self.laws_given(statistics, np.cov(np.concatenate([r.states for r in rows]).T))

    def laws_given(self, statistics, moves):
        """Return the laws of the parameters given sums over states and omega, or expected ones."""
        return DynamicsFactor(
            self.dynamics_prior.posterior(*statistics.pairs),
            self.initial_prior.posterior(*statistics.first),
            self._emission_given(statistics.linear, statistics.precision),
            np.atleast_2d(moves),
        )

    def _emission_given(self, linear, packed):
        weights = self.scales**-2.0
        precision = unpacked(packed, len(weights)) + np.diag(weights)
        return EmissionFactor.natural(linear + self._centre * weights, precision)

    def expect(self, factor):
        return factors.expected_prior(factor)

    def initial_row_factors(self, prior, shard):
        """Start from states of 0, and let q(states) and q(omega) settle."""
        nothing = np.column_stack([np.zeros((shard.n_steps, self.n_dims)), shard.known])
        rows = RowFactors(factors.tilt(prior, shard, packed_matrices(outer(nothing))))
        for _ in range(factors.LOCAL_STEPS):
            moments = self.state_moments(prior, shard, self._expected_omega(shard, rows))[0]
            rows = RowFactors(factors.tilt(prior, shard, factors.step_products(shard, moments)))
        return rows

    def _expected_omega(self, shard, rows):
        return augmentation.expected_potential(shard.splits, rows.tilt)

    def state_moments(self, prior, shard, potential):
        """Return the moments of q(states), and what is constant in the exponents of its potentials."""
        parts = pull_back(shard, potential, prior.rows, prior.products, self.n_dims)
        linear, precision, constant = parts
        rest = self._add_excess_in_place(prior, shard, linear, precision)
        shifts = algebra.multiply(shard.pushes, prior.push.T)
        moments = prior.chain.moments(linear, precision, shifts=shifts, starts=shard.starts)
        return moments, constant.sum() + rest

    def _add_excess_in_place(self, prior, shard, linear, precision):
        return factors.add_excess_in_place(prior, shard, linear, precision)

    def update_rows(self, prior, shard, rows, key):
        """q(states), then q(omega)."""
        potential = self._expected_omega(shard, rows)
        moments, constant = self.state_moments(prior, shard, potential)
        products = factors.step_products(shard, moments)
        rows = RowFactors(factors.tilt(prior, shard, products))
        pairs, first = factors.expected_sums(shard, moments)
        value = (
            constant + np.sum(moments.log_normaliser) + factors.likelihood(shard, potential, rows)
        )
        value += first.n * prior.first_constant + pairs.n * prior.pair_constant
        linear, precision = np.empty_like(prior.rows), np.empty_like(prior.products)
        u = np.column_stack([moments.mean, shard.known])
        potential = self._expected_omega(shard, rows)
        emissions.gather(*shard.active, *potential, u, products, linear, precision)
        z = moments.mean
        spread = len(z), z.sum(axis=0), algebra.gram(z)
        return rows, ExpectedStatistics(pairs, first, linear, precision, value, *spread)

    def update_factor(self, factor, statistics):
        """The laws of the parameters, then the scale of the states."""
        factor = self.laws_given(statistics, statistics.moves)
        return factor.rescaled(gauge.best_scale(self, factor))

    def elbo(self, factor, statistics):
        dynamics, initial, emission = factor.dynamics, factor.initial, factor.emission
        kl = dynamics.kl(self.dynamics_prior) + initial.kl(self.initial_prior)
        return statistics.value - kl - emission.kl(self._centre, self.scales)

    def collapsed(self, factor):
        """Tell whether the states move nothing."""
        return factor.largest_move < factors.LEAST_MOVE

    def diagnose(self, factor):
        """Say so if the states have collapsed."""
        if not self.collapsed(factor):
            return None
        return factors.COLLAPSED.format(factor.largest_move)

    def draw_from_factor(self, factor, key):
        rng = key.generator("factor")
        dynamics, initial, emission = factor.dynamics, factor.initial, factor.emission
        A, Q = dynamics.draw(rng)
        mean, cov, _ = initial.draw(rng)
        return Parameters(A, Q, mean, cov, emission.draw(rng), np.asarray(1.0))

    def draw_described_rows(self, prior, shard, rows):
        """Return two values of each state with the moments of q."""
        moments = self.state_moments(prior, shard, self._expected_omega(shard, rows))[0]
        sd = np.sqrt(np.diagonal(moments.cov, axis1=1, axis2=2))
        return {"states": np.stack([moments.mean - sd, moments.mean + sd])}
