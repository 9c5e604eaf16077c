"""A hidden Markov model of tokens or counts: what the paper's dynamics are compared with (section 5)::

initial         ~ Dirichlet(initial_concentration)
transition_s    ~ Dirichlet(transition_concentration)     s = 1..S
emission_s      ~ Dirichlet(emission_concentration)       s = 1..S, over the K categories
state_1         ~ Categorical(initial)
state_t         ~ Categorical(transition of state_{t-1})
x_t             ~ Multinomial(N_t, emission of state_t)

Rows are sequences. All states of one are drawn at once: a filter forward, then draws backward, in which the
states before play no part. Given parameters, predictions are exact: they are what the filter expects.
"""

import functools
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from polystick.alignment import align
from polystick.baselines.sequence_predictors import HiddenMarkovPredictor
from polystick.kernels import gammas, hidden_markov, hidden_markov_paths
from polystick.kernels.hidden_markov import LEAST
from polystick.models import sequence_blocks


class Parameters(NamedTuple):
    """What all sequences share."""

    initial: np.ndarray  # (S,)
    transition: np.ndarray  # (S, S), from the row to the column
    emission: np.ndarray  # (S, K)


class Rows(NamedTuple):
    """Where the sequences of a block stand."""

    states: np.ndarray  # (steps,) int32


class Statistics(NamedTuple):
    """Whole counts, and the log likelihood with states integrated out."""

    initial: np.ndarray  # (S,)
    transition: np.ndarray  # (S, S)
    emission: np.ndarray  # (S, K)
    value: float


class Prior(NamedTuple):
    """Probabilities of at least LEAST."""

    initial: np.ndarray  # (S,)
    transition: np.ndarray  # (S, S)
    emission: np.ndarray  # (K, S)


class Filtered(NamedTuple):
    """What was expected before each step, and how probable what it showed was."""

    predicted: np.ndarray  # (steps, S) p(state | before)
    values: (
        np.ndarray
    )  # (steps,) log p(x_t | before) without coefficients; 0 where nothing was seen
    after: np.ndarray  # (n, S) p(state of the step after the last)


@dataclass(frozen=True)
class HiddenMarkov:
    """The model: its priors. A concentration is that of each entry, a number or an array."""

    n_states: int
    n_categories: int
    initial_concentration: float | np.ndarray = 1.0
    transition_concentration: float | np.ndarray = 1.0
    emission_concentration: float | np.ndarray = 0.1

    parameter_type: ClassVar = Parameters
    dims: ClassVar = {
        "initial": ("state",),
        "transition": ("state", "state_too"),
        "emission": ("state", "category"),
        "occupancy": ("step", "state"),
    }
    identified: ClassVar[tuple[str, ...]] = ()  # chains give states labels of their own
    has_labels: ClassVar = True
    rhat_limit: ClassVar = 1.05

    def shards(self, sequences, size=sequence_blocks.STEPS_PER_BLOCK):
        """Cut sequences of tokens (-1: missing) or of count rows (empty: missing) into blocks."""
        return sequence_blocks.cut(sequences, size)

    # simulate

    def simulate(self, totals, rng):
        """Draw (parameters, rows, sequences) for the totals (steps,) of each sequence."""
        initial, transition, emission = self._concentrations
        first = rng.dirichlet(initial)
        rows = (np.stack([rng.dirichlet(row) for row in c]) for c in (transition, emission))
        parameters = Parameters(first, *rows)
        return parameters, *self.simulate_sequences(parameters, totals, rng)

    def simulate_probabilities(self, lengths, rng):
        """Draw the probabilities (steps, K) of sequences of these lengths, from the joint law."""
        nothing = [np.zeros(length, dtype=np.int64) for length in lengths]
        parameters, rows, _ = self.simulate(nothing, rng)
        return parameters.emission[rows.states]

    def simulate_sequences(self, parameters, totals, rng):
        """Draw (rows, sequences) given parameters."""
        states = [self._simulate_states(parameters, len(total), rng) for total in totals]
        rows = Rows(np.concatenate([np.zeros(0, np.int32), *states]))
        return rows, self.simulate_counts(parameters, rows, totals, rng)

    def _simulate_states(self, parameters, n_steps, rng):
        states, law = np.empty(n_steps, dtype=np.int32), parameters.initial
        for t, u in enumerate(rng.random(n_steps)):
            states[t] = min(np.searchsorted(np.cumsum(law), u, side="right"), self.n_states - 1)
            law = parameters.transition[states[t]]
        return states

    def simulate_counts(self, parameters, rows, totals, rng):
        """Draw rows of counts (steps, K) for each sequence, given the states."""
        counts = rng.multinomial(np.concatenate(totals), parameters.emission[rows.states])
        return np.split(counts, np.cumsum([len(total) for total in totals])[:-1])

    @functools.cached_property
    def _concentrations(self):
        """Those of initial (S,), transition (S, S) and emission (S, K)."""
        size = self.n_states
        shapes = (size,), (size, size), (size, self.n_categories)
        given = (
            self.initial_concentration,
            self.transition_concentration,
            self.emission_concentration,
        )
        return [np.broadcast_to(np.float64(c), shape) for c, shape in zip(given, shapes)]

    # Gibbs

    def initial_parameters(self, shards, key):
        """Start states apart, but about what is seen: one count of each category, shared by use."""
        use = np.zeros(self.n_categories)
        for shard in shards:
            np.add.at(use, shard.categories, shard.counts)
        use *= self.n_categories / max(1.0, use.sum())
        nothing = np.zeros(self.n_states)
        return self.draw_parameters(None, Statistics(nothing, nothing, use, 0.0), key)

    def prepare(self, parameters):
        initial, transition, emission = (np.maximum(part, LEAST) for part in parameters)
        return Prior(initial, transition, np.ascontiguousarray(emission.T))

    def initial_rows(self, prior, shard, key):
        """Start anywhere: a sweep does not look at the states before it."""
        return Rows(np.zeros(shard.n_steps, dtype=np.int32))

    def draw_rows(self, prior, shard, rows, key):
        """All states of a sequence | what was seen."""
        table, tops = self.weights(prior, shard)
        states = np.empty(shard.n_steps, dtype=np.int32)
        value = hidden_markov.draw_states(
            key.at("states"), shard.rows, shard.starts, shard.lookups, table,
            prior.initial, prior.transition, states,
        )  # fmt: skip
        value += shard.log_coefficient + np.sum(tops)
        return Rows(states), self._count(shard, states, value)

    def weights(self, prior, shard):
        """Return weights (m, S) to look up, and the logarithms of factors taken out of steps."""
        if shard.is_single:
            return prior.emission, 0.0
        weights, tops = np.empty((shard.n_steps, self.n_states)), np.empty(shard.n_steps)
        hidden_markov.weigh_counts(
            shard.offsets, shard.categories, shard.counts, np.log(prior.emission), weights, tops
        )
        return weights, tops

    def _count(self, shard, states, value):
        initial = np.zeros(self.n_states, dtype=np.int64)
        transition = np.zeros((self.n_states, self.n_states), dtype=np.int64)
        emission = np.zeros((self.n_states, self.n_categories), dtype=np.int64)
        hidden_markov.count_states(shard.starts, states, initial, transition)
        hidden_markov.count_emissions(
            shard.offsets, shard.categories, shard.counts, states, emission
        )
        return Statistics(initial, transition, emission, value)

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        """Initial, transition and emission | counts."""
        initial, transition, emission = (
            concentration + counts
            for concentration, counts in zip(self._concentrations, statistics)
        )
        return Parameters(
            draw_dirichlet(initial[None], key.at("initial"))[0],
            draw_dirichlet(transition, key.at("transition")),
            draw_dirichlet(emission, key.at("emission")),
        )

    def agree(self, chains, key):
        """Give chains the labels of the first, by how alike their emissions are."""
        orders, _ = align([parameters.emission for parameters in chains])
        return [
            Parameters(p.initial[order], p.transition[np.ix_(order, order)], p.emission[order])
            for p, order in zip(chains, orders)
        ]

    def log_likelihood(self, statistics):
        """Return log p(x | parameters): states are integrated out."""
        return statistics.value

    def describe_rows(self, shard, rows):
        """Return the states as indicators (steps, S), whose means are probabilities."""
        return {"occupancy": np.eye(self.n_states)[rows.states]}

    # predictions given parameters, all exact

    def filter(self, prior, shard):
        """Return what is expected of each step given those before it.

        The values of the last steps of a sequence add up to log p(these | all before).
        """
        table, tops = self.weights(prior, shard)
        predicted, values = np.empty((shard.n_steps, self.n_states)), np.empty(shard.n_steps)
        after = np.empty((len(shard.rows), self.n_states))
        hidden_markov.filter_sequences(
            shard.starts, shard.lookups, table, prior.initial, prior.transition,
            predicted, values, after,
        )  # fmt: skip
        return Filtered(predicted, values + tops, after)

    def condition(self, prior, shard, predicted):
        """Return p(state | before and x_t), (steps, S), given p(state | before)."""
        table, _ = self.weights(prior, shard)
        seen = shard.lookups >= 0
        states = predicted.copy()
        states[seen] *= table[shard.lookups[seen]]
        return states / states.sum(axis=1, keepdims=True)

    def smooth(self, prior, shard):
        """Return p(state | all of its sequence), (steps, S)."""
        filtered = self.condition(prior, shard, self.filter(prior, shard).predicted)
        smoothed = np.empty_like(filtered)
        hidden_markov_paths.smooth_sequences(shard.starts, filtered, prior.transition, smoothed)
        return smoothed

    def likeliest_paths(self, parameters, shard):
        """Return the likeliest states (steps,) and the log p (n,) of them with what was seen."""
        with np.errstate(divide="ignore"):
            initial, transition, emission = map(np.log, parameters)
        states, values = np.empty(shard.n_steps, np.int32), np.empty(len(shard.rows))
        hidden_markov_paths.likeliest_paths(
            shard.starts, *self._log_weights(emission, shard), initial, transition, states, values
        )
        return states, values

    def _log_weights(self, log_emission, shard):
        """Return lookups and a table (m, S) of log p(x_t | state) without coefficients."""
        if shard.is_single:
            return shard.lookups, np.ascontiguousarray(log_emission.T)
        steps = np.repeat(np.arange(shard.n_steps), np.diff(shard.offsets))
        table = np.zeros((shard.n_steps, self.n_states))
        np.add.at(table, steps, shard.counts[:, None] * log_emission.T[shard.categories])
        return shard.lookups, table

    def probabilities(self, prior, states):
        """Return the probabilities (..., K) of categories given those of states (..., S)."""
        return states @ prior.emission.T

    def forecast(self, prior, after, n_steps):
        """Return the probabilities (n, n_steps, K) of the steps after the last."""
        ahead = [after]
        for _ in range(n_steps - 1):
            ahead.append(ahead[-1] @ prior.transition)
        return self.probabilities(prior, np.stack(ahead, axis=1))

    def predictor(self, described):
        """Return what predicts with one draw of the parameters."""
        return HiddenMarkovPredictor(self, Parameters(**described))


def draw_dirichlet(concentration, bits):
    """Draw a Dirichlet row for each row of concentrations."""
    drawn = np.empty(concentration.shape)
    ids = np.arange(len(drawn), dtype=np.uint64)
    gammas.draw_dirichlet_rows(bits, ids, concentration, drawn)
    return drawn
