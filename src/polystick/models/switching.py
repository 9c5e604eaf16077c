"""Dynamics that switch: multinomial dynamics whose states move by the law of one of several regimes::

transition_r ~ Dirichlet(switches + stays [r' = r])           r = 1..R
r_1 ~ uniform,  r_t ~ Categorical(transition of r_{t-1})
[A B]_r, Q_r ~ MNIW(the prior of dynamics)                    each regime by itself
z_1 ~ N(mean, cov)
z_t = A_r z_{t-1} + B_r p_t + N(0, Q_r)                       r = r_t, t = 2..T

and all else as in `models.dynamics`: the emission, which regimes share, its bias, inputs and memory (a
switching linear dynamical system; Fox et al. 2011). A sweep draws the regimes given the states by a hidden
Markov model of their steps, and the states given the regimes and omega by a chain whose dynamics switch,
behind the same Potential(kappa, omega).

Regimes may be renamed without any change of the law. When burn-in ends, those of each chain are named by how
far psi goes in a step, the calmest first.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polystick import augmentation
from polystick.gaussians.switching import SwitchingChain
from polystick.kernels import algebra, hidden_markov
from polystick.kernels.splits import log_likelihood
from polystick.models import dynamics_state, gauge
from polystick.models.chain_sums import PairSums, first_sums, heads_of
from polystick.models.dynamics import MultinomialDynamics
from polystick.models.dynamics_steps import (
    active_psi,
    less_offsets,
    named_columns,
    packed_products,
    pull_back,
    spectral_radius,
    switching_path,
)
from polystick.models.memory import levels
from polystick.models.switching_prediction import SwitchingPredictor
from polystick.models.switching_state import Parameters, Prior, Rows, Statistics

START_SPREAD = 0.7  # of the logarithm of step sizes, by which regimes differ in the start
OF_A_REGIME = {"dynamics", "dynamics_drift", "dynamics_input", "dynamics_cov"}


@dataclass(frozen=True)
class SwitchingDynamics:
    """The model: that of one regime and of all that regimes share, and how regimes follow each other."""

    base: MultinomialDynamics
    n_regimes: int
    stays: float = 50.0
    switches: float = 1.0

    parameter_type: ClassVar[type] = Parameters
    identified: ClassVar[tuple[str, ...]] = ()
    has_labels: ClassVar[bool] = True
    rhat_limit: ClassVar[float] = 1.05

    @property
    def dims(self):
        names = dict(self.base.dims)
        names |= {name: ("regime", *names[name]) for name in OF_A_REGIME}
        return names | {"transition": ("regime", "regime_too"), "regimes": ("step", "regime")}

    # what regimes share

    @property
    def decomposition(self):
        return self.base.decomposition

    @property
    def memory(self):
        return self.base.memory

    @property
    def n_dims(self):
        return self.base.n_dims

    @property
    def n_sticks(self):
        return self.base.n_sticks

    def shards(self, sequences, inputs=None, size=None):
        """Cut sequences into blocks."""
        return self.base.shards(sequences, inputs, size)

    def known(self, inputs):
        """Return v (S, e) and p (S, q) of steps with these inputs (S, m)."""
        return self.base.known(inputs)

    @property
    def concentration(self):
        """Of the transitions, (R, R)."""
        return self.switches + self.stays * np.eye(self.n_regimes)

    # simulate

    def simulate(self, totals, rng, inputs=None):
        """Draw (parameters, rows, sequences) for the totals (T,) of each sequence."""
        parameters = self.draw_from_prior(rng)
        rows = self.simulate_rows(parameters, totals, rng, inputs)
        return parameters, rows, self.simulate_counts(parameters, rows, totals, rng, inputs)

    def draw_from_prior(self, rng):
        """Draw the parameters."""
        shared = self.base.draw_from_prior(rng)
        laws = [self.base.dynamics_prior.draw(rng) for _ in range(self.n_regimes)]
        coefficients, covs = (np.array(part) for part in zip(*laws))
        transition = np.array([rng.dirichlet(row) for row in self.concentration])
        parameters = _joined(shared, coefficients, covs, transition)
        return parameters._replace(stretch=np.asarray(self.draw_stretch(parameters, rng)))

    def simulate_rows(self, parameters, totals, rng, inputs=None):
        """Draw the regimes and the states of sequences as long as their totals."""
        lengths = [len(total) for total in totals]
        given = np.zeros((sum(lengths), 0)) if inputs is None else np.concatenate(inputs)
        pushes, n = self.known(given)[1], sum(lengths)
        parts = [_simulate_regimes(parameters.transition, length, rng) for length in lengths]
        regimes = np.concatenate(parts)
        prior = self.prepare(parameters._replace(stretch=np.asarray(1.0)))
        nothing = np.zeros((n, self.n_dims)), np.zeros((n, self.n_dims, self.n_dims))
        starts = np.concatenate([[0], np.cumsum(lengths)])
        shifts = prior.shifts(pushes)[regimes, np.arange(n)]
        noise = rng.standard_normal((n, self.n_dims))
        return Rows(
            prior.chain.draw(*nothing, noise, regimes=regimes, shifts=shifts, starts=starts),
            regimes,
        )

    def simulate_counts(self, parameters, rows, totals, rng, inputs=None):
        """Draw rows of counts (T, K) for each sequence, given the states."""
        return self.base.simulate_counts(parameters, rows, totals, rng, inputs)

    def simulate_probabilities(self, lengths, rng, inputs=None):
        """Draw the probabilities (S, K) of the steps of sequences of these lengths, from the joint law."""
        parameters, d, states = self.draw_from_prior(rng), self.n_dims, []
        given = np.zeros((sum(lengths), 0)) if inputs is None else np.concatenate(inputs)
        (known, pushes), at = self.known(given), 0
        dynamics, push = np.split(parameters.coefficients, [d], axis=2)
        first, *roots = map(np.linalg.cholesky, (parameters.initial_cov, *parameters.dynamics_cov))
        for length in lengths:
            noise = rng.standard_normal((length, d))
            regimes = _simulate_regimes(parameters.transition, length, rng)
            shocks = [roots[r] @ e + push[r] @ p for r, e, p in zip(regimes, noise, pushes[at:])]
            start, at = parameters.initial_mean + first @ noise[0], at + length
            states.append(switching_path(start, dynamics[regimes[1:]], shocks[1:]))
        u = np.column_stack([np.concatenate(states), known])
        return self.decomposition.probabilities(u @ parameters.emission.T)

    # Gibbs

    def initial_parameters(self, shards, key):
        """Start regimes apart in how far states go in a step."""
        shared, rng = self.base.initial_parameters(shards, key), key.generator("regimes")
        size = np.exp(START_SPREAD * np.sort(rng.standard_normal(self.n_regimes)))
        coefficients = np.repeat(shared.coefficients[None], self.n_regimes, axis=0)
        covs = size[:, None, None] ** 2 * shared.dynamics_cov
        transition = self.concentration / self.concentration.sum(axis=1, keepdims=True)
        return _joined(shared, coefficients, covs, transition)

    def prepare(self, parameters):
        """Stretch the states, and what depends on their scale."""
        c, d = float(parameters.stretch), self.n_dims
        dynamics, push = np.split(parameters.coefficients, [d], axis=2)
        first = c * parameters.initial_mean, c * c * parameters.initial_cov
        emission = parameters.emission.copy()
        emission[:, :d] /= c
        return Prior(
            SwitchingChain(*first, np.ascontiguousarray(dynamics), c * c * parameters.dynamics_cov),
            c * push,
            emission,
            packed_products(emission),
            c,
            parameters.memory_weights,
            np.maximum(parameters.transition, hidden_markov.LEAST),
        )

    def initial_rows(self, prior, shard, key):
        """Start with regimes and states from the prior: states of 0 would tell no regimes apart."""
        table, nothing = np.ones((1, prior.n_regimes)), np.full(shard.n_steps, -1)
        regimes = self._draw_chains(prior, shard, nothing, table, key.at("first regimes"))
        shape = (shard.n_steps, self.n_dims)
        noise = key.normals("first states", shard.steps, self.n_dims)
        potential = np.zeros(shape), np.zeros((*shape, self.n_dims))
        return Rows(self._draw_chain(prior, shard, regimes, potential, noise), regimes)

    def draw_rows(self, prior, shard, rows, key):
        """Regimes | states; omega | psi, x; then the states | regimes, omega, x."""
        states = prior.stretch * rows.states
        regimes = self.draw_regimes(prior, shard, states, key)
        offsets = levels(shard.recalled, prior.memory_weights)
        psi = active_psi(shard, prior.emission, np.column_stack([states, shard.known])) + offsets
        potential = augmentation.draw_potential(shard.splits, psi, key.at("omega"), shard.steps)
        states = self.draw_states(prior, shard, regimes, less_offsets(potential, offsets), key)
        rows = Rows(states, regimes)
        return rows, self._sum(prior, shard, rows, potential)

    def draw_regimes(self, prior, shard, states, key):
        """Regimes | states: those of a sequence together, forward and back."""
        follows = _follows(shard)
        logs = prior.chain.log_densities(states, prior.shifts(shard.pushes), follows)
        table = np.maximum(np.exp(logs - logs.max(axis=1, keepdims=True)), hidden_markov.LEAST)
        lookups = np.where(follows, np.arange(len(states)), -1)
        return self._draw_chains(prior, shard, lookups, table, key.at("regimes"))

    def _draw_chains(self, prior, shard, lookups, table, bits):
        regimes = np.empty(shard.n_steps, dtype=np.int32)
        hidden_markov.draw_states(
            bits, shard.rows, shard.starts, lookups, table, prior.initial, prior.transition, regimes
        )
        return regimes

    def draw_states(self, prior, shard, regimes, potential, key):
        """States | regimes, omega, x."""
        found = pull_back(shard, potential, prior.emission, prior.products, self.n_dims)
        noise = key.normals("states", shard.steps, self.n_dims)
        states = self._draw_chain(prior, shard, regimes, found[:2], noise)
        if not np.isfinite(states).all():
            radius = max(map(spectral_radius, prior.chain.dynamics))
            raise FloatingPointError(
                f"the states overflow in sweep {key.sweep}: the dynamics have spectral radius up to "
                f"{radius:.3g}; try fewer states or regimes, or shorter sequences"
            )
        return states

    def _draw_chain(self, prior, shard, regimes, potential, noise):
        shifts = prior.shifts(shard.pushes)[regimes, np.arange(shard.n_steps)]
        given = {"regimes": regimes, "shifts": shifts, "starts": shard.starts}
        return prior.chain.draw(*potential, noise, **given)

    def _sum(self, prior, shard, rows, potential):
        offsets, splits = levels(shard.recalled, prior.memory_weights), shard.splits
        u = np.column_stack([rows.states, shard.known])
        psi = active_psi(shard, prior.emission, u) + offsets
        value = log_likelihood(splits.successes[None], splits.trials[None], psi[None])
        given = less_offsets(potential, offsets)
        linear, precision = self.base.emission_sums(prior, shard, rows.states, given)
        moves = np.zeros((self.n_regimes, self.n_regimes), dtype=np.int64)
        hidden_markov.count_states(
            shard.starts, rows.regimes, np.zeros(self.n_regimes, dtype=np.int64), moves
        )
        return Statistics(
            self.pairs(shard, rows), first_sums(shard.starts, rows.states), linear, precision,
            value + shard.log_coefficient, self.base.recall_sums(shard, u, potential), moves,
        )  # fmt: skip

    def pairs(self, shard, rows):
        """Return the sums over pairs of states of each regime, stacked."""
        follows, found = _follows(shard), []
        before = np.column_stack([np.roll(rows.states, 1, axis=0), shard.pushes])
        for r in range(self.n_regimes):
            here = follows & (rows.regimes == r)
            x, y = before[here], rows.states[here]
            found.append((len(y), algebra.gram(x), algebra.multiply(y.T, x), algebra.gram(y)))
        n, xx, yx, yy = (np.array(part) for part in zip(*found))
        return PairSums(n, xx, yx, yy)

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        """A, B, Q of regimes | states; mean, cov | first ones; the emission | states, omega; the rest."""
        base, rng = self.base, key.generator("dynamics")
        laws = [base.draw_dynamics(PairSums(*sums), rng) for sums in zip(*statistics.pairs)]
        coefficients, covs = (np.array(part) for part in zip(*laws))
        mean, cov, _ = base.initial_prior.posterior(*statistics.first).draw(rng)
        emission = base.draw_emission(statistics, key, parameters.bias_scale)
        concentration = self.concentration + statistics.moves
        found = Parameters(
            coefficients, covs, mean, cov, emission, np.asarray(1.0),
            np.asarray(base.draw_bias_scale(emission, parameters.bias_scale, rng)),
            base.draw_weights(parameters.memory_weights, statistics.recall, emission, rng),
            np.array([rng.dirichlet(row) for row in concentration]),
        )  # fmt: skip
        return found._replace(stretch=np.asarray(self.draw_stretch(found, rng)))

    def draw_stretch(self, parameters, rng):
        """The stretch c | all but the scale of the states; see `gauge`."""
        laws = zip(parameters.coefficients, parameters.dynamics_cov)
        return gauge.draw_stretch_of(self.base, parameters, list(laws), rng)

    def agree(self, chains, key):
        """Name the regimes of each chain by how far psi goes in a step, the calmest first."""
        return [_renamed(parameters, self._restlessness(parameters)) for parameters in chains]

    def _restlessness(self, parameters):
        e = parameters.emission[:, : self.n_dims]
        return np.argsort(np.einsum("ij,rij->r", e.T @ e, parameters.dynamics_cov), kind="stable")

    def log_likelihood(self, statistics):
        """Return log p(x | states, parameters)."""
        return statistics.value

    # what to record

    def describe_parameters(self, parameters):
        """Return the parameters by name, those of regimes stacked."""
        said = self.base.describe_parameters(_of_regime(parameters, 0))
        rest, one = parameters.coefficients[:, :, self.n_dims :], self.base.has_drift
        said["dynamics"] = parameters.coefficients[:, :, : self.n_dims]
        columns = np.moveaxis(rest, 2, 1)
        said |= named_columns(columns, one, "dynamics_drift", "dynamics_input")
        if "dynamics_input" in said:
            said["dynamics_input"] = np.moveaxis(said["dynamics_input"], 1, 2)
        return said | {
            "dynamics_cov": parameters.dynamics_cov,
            "transition": parameters.transition,
        }

    def recall(self, described):
        """Undo `describe_parameters`."""
        found = [
            self.base.recall(
                {name: part[r] if name in OF_A_REGIME else part for name, part in described.items()}
            )
            for r in range(self.n_regimes)
        ]
        coefficients, covs = (
            np.array([getattr(each, name) for each in found])
            for name in ("coefficients", "dynamics_cov")
        )
        return _joined(found[0], coefficients, covs, np.asarray(described["transition"]))

    def describe_rows(self, shard, rows):
        """Return the states, and the regimes as indicators, whose means are probabilities."""
        return {"states": rows.states, "regimes": np.eye(self.n_regimes)[rows.regimes]}

    def watch(self, shards):
        """Judge a run by the probabilities of some steps."""
        return self.base.watch(shards)

    def smoothing_prior(self, prior, sweep, n_sweeps):
        """Return the prior for one of the sweeps over sequences that are new to a predictor."""
        return prior

    def predictor(self, described):
        """Return what predicts under one posterior draw of the parameters."""
        parameters = self.recall(described)
        return SwitchingPredictor(self, parameters, self.prepare(parameters))


def _joined(shared, coefficients, covs, transition):
    """Return the parameters of several regimes that share those of one model."""
    return Parameters(
        coefficients, covs, shared.initial_mean, shared.initial_cov, shared.emission,
        np.asarray(1.0), shared.bias_scale, shared.memory_weights, transition,
    )  # fmt: skip


def _of_regime(parameters, r):
    """Return the parameters of the model that never leaves a regime."""
    of_all = dynamics_state.Parameters._fields
    found = {name: getattr(parameters, name) for name in of_all}
    found |= {name: found[name][r] for name in ("coefficients", "dynamics_cov")}
    return dynamics_state.Parameters(**found)


def _renamed(parameters, order):
    return parameters._replace(
        coefficients=parameters.coefficients[order],
        dynamics_cov=parameters.dynamics_cov[order],
        transition=parameters.transition[np.ix_(order, order)],
    )


def _simulate_regimes(transition, length, rng):
    regimes, law = np.empty(length, dtype=np.int32), np.full(len(transition), 1.0 / len(transition))
    for t in range(length):
        regimes[t] = rng.choice(len(law), p=law)
        law = transition[regimes[t]]
    return regimes


def _follows(shard):
    """Tell of each step whether it has one before it."""
    follows = np.ones(shard.n_steps, dtype=bool)
    follows[heads_of(shard.starts)] = False
    return follows
