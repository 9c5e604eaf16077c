"""States in a chain behind a softmax: what the paper's dynamics are compared with (section 5)::

A, Q    ~ MNIW(dynamics_prior)
E_k     ~ N(0, emission_variance I)                k = 1..K
d_k     ~ N(level_k, bias_variance)
z_1     ~ N(initial_mean, initial_cov)
z_t     = A z_{t-1} + N(0, Q)
x_t     ~ Multinomial(N_t, softmax(E z_t + d))

Rows are sequences. The states of one are drawn by particle Gibbs with ancestor sampling (Lindsten, Jordan
and Schoen 2014), whose weights have the bias d in them; each row (E_k, d_k) given the states and the other
rows by elliptical slice sampling; A and Q by conjugacy. The rows of the emission see all states at all
steps, so statistics carry these along.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import softmax

from polystick.baselines.sequence_predictors import LogisticNormalPredictor
from polystick.conjugate_dynamics import MatrixNormalInverseWishart
from polystick.kernels import emission_slice, particle_gibbs
from polystick.models import sequence_blocks
from polystick.models.chain_sums import PairSums, pair_sums

STEPS_PER_BLOCK = 256  # a step costs more here than a thread's hand-over
FIRST_DYNAMICS = 0.5  # times the identity


class Parameters(NamedTuple):
    """What all sequences share, and how the last sweep went."""

    dynamics: np.ndarray  # (D, D)
    dynamics_cov: np.ndarray  # (D, D)
    emission: np.ndarray  # (K, D)
    emission_bias: np.ndarray  # (K,)
    n_looks: np.ndarray  # () points of the ellipse looked at, on average over categories
    renewed: np.ndarray  # () share of the states that are new


class Rows(NamedTuple):
    """Where the sequences of a block stand."""

    states: np.ndarray  # (steps, D)


class Statistics(NamedTuple):
    """Sums over pairs of a state and the one before it; tuples are joined, in the order of the blocks."""

    pairs: PairSums
    n_renewed: int
    value: float  # log likelihood given the states
    pieces: tuple  # of (shard, states)


class Prior(NamedTuple):
    """The chain of w = root^-1 z, whose noise is standard, and what it emits."""

    root: np.ndarray  # (D, D) lower triangular
    law: tuple  # dynamics, start, spread
    emission: np.ndarray  # (K, D)
    bias: np.ndarray  # (K,)


class Filtered(NamedTuple):
    """Particles of each step given those before it, and how probable what it showed was."""

    predicted: np.ndarray  # (steps, D, N)
    values: np.ndarray  # (steps,) estimates of log p(x_t | before) without coefficients
    after: np.ndarray  # (n, D, N) of the step after the last


@dataclass(frozen=True)
class LogisticNormalDynamics:
    """The model: its priors, that of the dynamics a `MatrixNormalInverseWishart`; and its particles.

    A bias_variance of 0 fixes the bias at the level.
    """

    dynamics_prior: MatrixNormalInverseWishart
    level: np.ndarray  # (K,)
    initial_mean: np.ndarray  # (D,)
    initial_cov: np.ndarray  # (D, D)
    emission_variance: float = 1.0
    bias_variance: float = 1.0
    n_particles: int = 100

    parameter_type: ClassVar = Parameters
    dims: ClassVar = {
        "dynamics": ("dim", "dim_too"),
        "dynamics_cov": ("dim", "dim_too"),
        "emission": ("category", "dim"),
        "emission_bias": ("category",),
        "n_looks": (),
        "renewed": (),
        "states": ("step", "dim"),
    }
    identified: ClassVar[tuple[str, ...]] = ()  # states may be turned
    rhat_limit: ClassVar = 1.05

    @property
    def n_dims(self):
        return len(self.initial_mean)

    @property
    def n_categories(self):
        return len(self.level)

    @property
    def _scales(self):
        """Standard deviations of a row (E_k, d_k), (D + 1,)."""
        return np.sqrt([self.emission_variance] * self.n_dims + [self.bias_variance])

    def shards(self, sequences, size=STEPS_PER_BLOCK):
        """Cut sequences of tokens (-1: missing) or of count rows (empty: missing) into blocks."""
        return sequence_blocks.cut(sequences, size)

    # simulate

    def simulate(self, totals, rng):
        """Draw (parameters, rows, sequences) for the totals (steps,) of each sequence."""
        A, Q = self.dynamics_prior.draw(rng)
        noise = rng.standard_normal((self.n_categories, self.n_dims + 1)) * self._scales
        parameters = self._parameters(A, Q, noise, 1.0, 1.0)
        return parameters, *self.simulate_sequences(parameters, totals, rng)

    def simulate_probabilities(self, lengths, rng):
        """Draw the probabilities (steps, K) of sequences of these lengths, from the joint law."""
        nothing = [np.zeros(length, dtype=np.int64) for length in lengths]
        parameters, rows, _ = self.simulate(nothing, rng)
        return self.probabilities(parameters.emission, parameters.emission_bias, rows.states)

    def simulate_sequences(self, parameters, totals, rng):
        """Draw (rows, sequences) given parameters."""
        states = [self._simulate_states(parameters, len(total), rng) for total in totals]
        rows = Rows(np.concatenate(states))
        return rows, self.simulate_counts(parameters, rows, totals, rng)

    def _simulate_states(self, parameters, n_steps, rng):
        states = np.empty((n_steps, self.n_dims))
        root, mean = np.linalg.cholesky(self.initial_cov), self.initial_mean
        for t, noise in enumerate(rng.standard_normal(states.shape)):
            states[t] = mean + root @ noise
            root, mean = (
                np.linalg.cholesky(parameters.dynamics_cov),
                parameters.dynamics @ states[t],
            )
        return states

    def simulate_counts(self, parameters, rows, totals, rng):
        """Draw rows of counts (steps, K) for each sequence, given the states."""
        pi = self.probabilities(parameters.emission, parameters.emission_bias, rows.states)
        counts = rng.multinomial(np.concatenate(totals), pi)
        return np.split(counts, np.cumsum([len(total) for total in totals])[:-1])

    def probabilities(self, emission, bias, states):
        """Return pi (..., K) of states (..., D)."""
        return softmax(states @ emission.T + bias, axis=-1)

    def _parameters(self, dynamics, dynamics_cov, coefficients, n_looks, renewed):
        """Return parameters, given rows (E_k, d_k - level_k)."""
        emission, bias = coefficients[:, :-1].copy(), self.level + coefficients[:, -1]
        told = np.float64(n_looks), np.float64(renewed)
        return Parameters(dynamics, dynamics_cov, emission, bias, *map(np.asarray, told))

    # Gibbs

    def initial_parameters(self, shards, key):
        """Start with stable dynamics, so that chains differ in the emission, which the prior draws."""
        prior = self.dynamics_prior
        cov = prior.scale / max(1.0, prior.degrees - self.n_dims - 1.0)
        coefficients = self._draw_rows_of_prior(key)
        return self._parameters(FIRST_DYNAMICS * np.eye(self.n_dims), cov, coefficients, 1.0, 1.0)

    def _draw_rows_of_prior(self, key):
        ids = np.arange(self.n_categories, dtype=np.uint64)
        return key.normals("emission", ids, self.n_dims + 1) * self._scales

    def prepare(self, parameters):
        root = np.linalg.cholesky(parameters.dynamics_cov)
        law = (
            parameters.dynamics @ root,
            self.initial_mean,
            np.linalg.cholesky(self.initial_cov),
        )
        white = tuple(np.linalg.solve(root, part) for part in law)
        return Prior(root, white, parameters.emission @ root, parameters.emission_bias)

    def initial_rows(self, prior, shard, key):
        """Start with a path at 0, which the first sweep leaves."""
        return Rows(np.zeros((shard.n_steps, self.n_dims)))

    def draw_rows(self, prior, shard, rows, key):
        """The states of a sequence | what was seen, by way of the states before."""
        white = np.ascontiguousarray(np.linalg.solve(prior.root, rows.states.T).T)
        path = white.copy()
        value = particle_gibbs.draw_paths_in_place(
            key.at("states"), shard.rows, shard.starts, _cells(shard), prior.law,
            prior.emission, prior.bias, self.n_particles, path,
        )  # fmt: skip
        renewed = (path != white).any(axis=1)
        states = np.where(renewed[:, None], path @ prior.root.T, rows.states)
        value += shard.log_coefficient
        return Rows(states), self._sum(shard, states, int(renewed.sum()), value)

    def _sum(self, shard, states, n_renewed, value):
        pairs = pair_sums(shard.starts, states)
        return Statistics(pairs, n_renewed, value, ((shard, states),))

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        """A, Q | states, then the rows of the emission | states and counts, one after another."""
        posterior = self.dynamics_prior.posterior(*statistics.pairs)
        A, Q = posterior.draw(key.generator("dynamics"))
        coefficients, n_looks = self.draw_emission(parameters, statistics.pieces, key)
        n_steps = max(1, sum(len(states) for _, states in statistics.pieces))
        renewed = statistics.n_renewed / n_steps
        return self._parameters(A, Q, coefficients, n_looks / self.n_categories, renewed)

    def draw_emission(self, parameters, pieces, key):
        """Return rows (E_k, d_k - level_k), and the number of points looked at."""
        gap = parameters.emission_bias - self.level
        coefficients = np.column_stack([parameters.emission, gap])
        fresh = self._draw_rows_of_prior(key)
        states = np.concatenate([states for _, states in pieces])
        features = np.concatenate([states.T, np.ones((1, len(states)))])
        totals = np.concatenate([shard.totals for shard, _ in pieces]).astype(np.float64)
        n_looks = emission_slice.draw_rows_in_place(
            key.at("slice"), np.arange(self.n_categories, dtype=np.uint64), self._columns(pieces),
            totals, np.ascontiguousarray(features), self.level, coefficients, fresh,
        )  # fmt: skip
        return coefficients, n_looks

    def _columns(self, pieces):
        """Return where each category is seen: offsets, steps and counts."""
        shards = [shard for shard, _ in pieces]
        widths = np.concatenate([np.diff(shard.offsets) for shard in shards])
        steps = np.repeat(np.arange(len(widths)), widths)
        categories = np.concatenate([shard.categories for shard in shards])
        counts = np.concatenate([shard.counts for shard in shards]).astype(np.float64)
        shape = len(widths), self.n_categories
        table = scipy.sparse.coo_array((counts, (steps, categories)), shape=shape).tocsc()
        return table.indptr.astype(np.int64), table.indices.astype(np.int64), table.data

    def log_likelihood(self, statistics):
        """Return log p(x | states, parameters)."""
        return statistics.value

    def describe_rows(self, shard, rows):
        return {"states": rows.states}

    # predictions given parameters, by a bootstrap filter

    def filter(self, prior, shard, key, n_particles=1000):
        """Return particles of each step given those before it.

        The exponentials of sums of values are unbiased estimates of probabilities of sequences.
        """
        n, shape = len(shard.rows), (self.n_dims, n_particles)
        predicted, after = np.empty((shard.n_steps, *shape)), np.empty((n, *shape))
        values = np.empty(shard.n_steps)
        particle_gibbs.filter_sequences(
            key.at("filter"), shard.rows, shard.starts, _cells(shard), prior.law,
            prior.emission, prior.bias, predicted, values, after,
        )  # fmt: skip
        return Filtered(predicted, values, after)

    def expected_probabilities(self, prior, particles):
        """Return the mean over the last axis of pi (..., K), of whitened particles (..., D, N)."""
        states = np.moveaxis(particles, -1, -2)
        return self.probabilities(prior.emission, prior.bias, states).mean(axis=-2)

    def predictor(self, described):
        """Return what predicts with one draw of the parameters."""
        return LogisticNormalPredictor(self, Parameters(**described))


def _cells(shard):
    return shard.offsets, shard.categories, shard.counts
