"""A Gaussian linear dynamical system of shares: what the paper's dynamics are compared with (section 5)::

A, Q    ~ MNIW(dynamics_prior)
C_k     ~ N(0, emission_variance_k I)              k = 1..K
R_k     ~ InverseGamma(noise_prior_k)
z_1     ~ N(initial_mean, initial_cov)
z_t     = A z_{t-1} + N(0, Q)
y_t     = mean + C z_t + N(0, diag(R))

y_t are the shares x_t / N_t of the categories: one-hot for tokens. That counts are no Gaussian numbers is
what is wrong with it. Given parameters a Kalman filter says what y_t is expected to be, the mean put back;
these are made probabilities by raising what is below a floor to it, and dividing by the sum.
Rows are sequences. What is seen is sparse and its noise is that of all steps, so a step costs no more
than its states.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from polystick.conjugate_dynamics import InverseGamma, MatrixNormalInverseWishart
from polystick.gaussians.dynamics import Chain
from polystick.models import sequence_blocks
from polystick.models.chain_sums import PairSums, pair_sums
from polystick.models.sequence_filter import SequenceFilter

FIRST_DYNAMICS = 0.5  # times the identity


class Parameters(NamedTuple):
    """What all sequences share."""

    dynamics: np.ndarray  # (D, D)
    dynamics_cov: np.ndarray  # (D, D)
    emission: np.ndarray  # (K, D)
    noise: np.ndarray  # (K,) variances


class Shard(NamedTuple):
    """Whole sequences, one after another, as vectors of which most entries may be 0."""

    rows: np.ndarray  # (n,) ids
    starts: np.ndarray  # (n + 1,)
    seen: np.ndarray  # (steps,) bool
    offsets: np.ndarray  # (steps + 1,): step t has the cells offsets[t] .. offsets[t + 1]
    categories: np.ndarray  # (cells,)
    values: np.ndarray  # (cells,) y
    totals: np.ndarray  # (steps,) counts that the shares are shares of


class Rows(NamedTuple):
    """Where the sequences of a block stand."""

    states: np.ndarray  # (steps, D)


class Statistics(NamedTuple):
    """Sums over pairs of a state and the one before it, and over steps that were seen."""

    pairs: PairSums
    n_seen: int
    squares: np.ndarray  # (D, D) sum of z_t z_t'
    products: np.ndarray  # (D, K) sum of z_t (y_t - mean)'
    shares: np.ndarray  # (K,) sum of (y_t - mean)^2
    value: float  # log likelihood given the states


class Prior(NamedTuple):
    """The chain, and what a step that was seen says of its state."""

    chain: Chain
    parameters: Parameters
    pull: np.ndarray  # (K, D) C_k / R_k
    precision: np.ndarray  # (D, D) sum of C_k C_k' / R_k


@dataclass(frozen=True)
class RawDynamics:
    """The model: its priors, those of dynamics and noise conjugate, and the mean, which is fixed."""

    dynamics_prior: MatrixNormalInverseWishart
    mean: np.ndarray  # (K,)
    initial_mean: np.ndarray  # (D,)
    initial_cov: np.ndarray  # (D, D)
    emission_variance: np.ndarray  # (K,)
    noise_prior: InverseGamma  # of K variances
    floor: float = 1e-4

    parameter_type: ClassVar = Parameters
    dims: ClassVar = {
        "dynamics": ("dim", "dim_too"),
        "dynamics_cov": ("dim", "dim_too"),
        "emission": ("category", "dim"),
        "noise": ("category",),
        "states": ("step", "dim"),
    }
    identified: ClassVar[tuple[str, ...]] = ()  # states may be turned
    rhat_limit: ClassVar = 1.05

    @property
    def n_dims(self):
        return len(self.initial_mean)

    def shards(self, sequences, size=sequence_blocks.STEPS_PER_BLOCK):
        """Cut sequences of tokens (-1: missing) or of count rows (empty: missing) into blocks."""
        return [_shares(block) for block in sequence_blocks.cut(sequences, size)]

    # simulate

    def simulate(self, lengths, rng):
        """Draw (parameters, rows, list of y (steps, K)) for sequences of these lengths."""
        A, Q = self.dynamics_prior.draw(rng)
        shape = len(self.mean), self.n_dims
        C = rng.standard_normal(shape) * np.sqrt(self.emission_variance)[:, None]
        parameters = Parameters(A, Q, C, self.noise_prior.draw(rng))
        rows = self.simulate_states(parameters, lengths, rng)
        return parameters, rows, self.simulate_values(parameters, rows, lengths, rng)

    def simulate_states(self, parameters, lengths, rng):
        chain, states = self._chain(parameters), []
        for length in lengths:
            first = rng.multivariate_normal(self.initial_mean, self.initial_cov, method="cholesky")
            noise = rng.standard_normal((1, length - 1, self.n_dims))
            states += [first[None], chain.extend(first[None], noise)[0]]
        return Rows(np.concatenate(states))

    def simulate_values(self, parameters, rows, lengths, rng):
        """Draw y (steps, K) of each sequence, given the states."""
        y = self.mean + rows.states @ parameters.emission.T
        y += rng.standard_normal(y.shape) * np.sqrt(parameters.noise)
        return np.split(y, np.cumsum(lengths)[:-1])

    def _chain(self, parameters):
        laws = parameters.dynamics, parameters.dynamics_cov
        return Chain(self.initial_mean, self.initial_cov, *laws)

    # Gibbs

    def initial_parameters(self, shards, key):
        """Start with stable dynamics and an emission that the prior draws, so that chains differ."""
        prior = self.dynamics_prior
        Q = prior.scale / max(1.0, prior.degrees - self.n_dims - 1.0)
        ids = np.arange(len(self.mean), dtype=np.uint64)
        scales = np.sqrt(self.emission_variance)[:, None]
        C = key.normals("emission", ids, self.n_dims) * scales
        R = np.broadcast_to(1.0 / self.noise_prior.expected_precision, self.mean.shape).copy()
        return Parameters(FIRST_DYNAMICS * np.eye(self.n_dims), Q, C, R)

    def prepare(self, parameters):
        pull = parameters.emission / parameters.noise[:, None]
        precision = parameters.emission.T @ pull
        return Prior(self._chain(parameters), parameters, pull, precision)

    def initial_rows(self, prior, shard, key):
        """Start anywhere: a sweep does not look at the states before it."""
        return Rows(np.zeros((len(shard.seen), self.n_dims)))

    def draw_rows(self, prior, shard, rows, key):
        """All states of a sequence | what was seen."""
        noise = _normals(key, "states", shard.rows, np.diff(shard.starts), self.n_dims)
        states = prior.chain.draw(*self.potential(prior, shard), noise, starts=shard.starts)
        return Rows(states), self._sum(prior.parameters, shard, states)

    def potential(self, prior, shard):
        """Return the linear terms (steps, D) and precisions (steps, D, D) of what was seen."""
        linear = self._table(shard) @ prior.pull - self.mean @ prior.pull
        return linear * shard.seen[:, None], shard.seen[:, None, None] * prior.precision

    def _table(self, shard):
        """Return y (steps, K), sparse."""
        parts = shard.values, shard.categories, shard.offsets
        return scipy.sparse.csr_array(parts, shape=(len(shard.seen), len(self.mean)))

    def _sum(self, parameters, shard, states):
        pairs = pair_sums(shard.starts, states)
        y, m, n = self._table(shard), self.mean, int(shard.seen.sum())
        z = states[shard.seen]
        products = (y.T @ states).T - np.outer(z.sum(axis=0), m)
        shares = (y * y).sum(axis=0) - 2.0 * m * y.sum(axis=0) + n * np.square(m)
        squares = z.T @ z
        residues = _residues(parameters.emission, squares, products, shares)
        value = -0.5 * np.sum(n * np.log(2.0 * np.pi * parameters.noise))
        value -= 0.5 * np.sum(residues / parameters.noise)
        return Statistics(pairs, n, squares, products, shares, float(value))

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        """A, Q | states; rows of C | states and noise; noise | the rest."""
        A, Q = self.dynamics_prior.posterior(*statistics.pairs).draw(key.generator("dynamics"))
        C = self.draw_emission(parameters.noise, statistics, key)
        residues = _residues(C, statistics.squares, statistics.products, statistics.shares)
        R = self.noise_prior.posterior(statistics.n_seen, residues).draw(key.generator("noise"))
        return Parameters(A, Q, C, R)

    def draw_emission(self, noise, statistics, key):
        """Draw the rows C_k, each of which sees all states."""
        inverse = 1.0 / self.emission_variance
        J = statistics.squares / noise[:, None, None] + inverse[:, None, None] * np.eye(self.n_dims)
        h = statistics.products.T / noise[:, None]
        roots = np.linalg.cholesky(J)
        fresh = key.normals("emission", np.arange(len(h), dtype=np.uint64), self.n_dims)
        half = np.linalg.solve(roots, h[..., None]) + fresh[..., None]
        return np.linalg.solve(np.swapaxes(roots, 1, 2), half)[..., 0]

    def log_likelihood(self, statistics):
        """Return log p(y | states, parameters)."""
        return statistics.value

    def describe_rows(self, shard, rows):
        return {"states": rows.states}

    # predictions given parameters

    def predictor(self, described):
        """Return what predicts with one draw of the parameters."""
        return RawPredictor(self, Parameters(**described))

    def probabilities(self, parameters, states):
        """Return probabilities (..., K): what y is expected to be, raised to the floor, over the sum."""
        pi = np.maximum(self.mean + states @ parameters.emission.T, self.floor)
        return pi / pi.sum(axis=-1, keepdims=True)


class After(NamedTuple):
    """The last state of each sequence."""

    rows: np.ndarray  # (n,) ids
    mean: np.ndarray  # (n, D)
    cov: np.ndarray  # (n, D, D)


@dataclass(frozen=True, eq=False)
class RawPredictor:
    """`RawDynamics` with parameters: a Kalman filter."""

    model: RawDynamics
    parameters: Parameters

    @cached_property
    def _prior(self):
        return self.model.prepare(self.parameters)

    def filter(self, shard, key, *, show=(), before=None, keeps=False):
        potential = self.model.potential(self._prior, shard)
        chain = self._prior.chain if before is None else self._chain_after(before)
        found = chain.filter(*potential, starts=shard.starts)
        predicted = self.model.probabilities(self.parameters, found.predicted_mean)
        last = shard.starts[1:] - 1
        after = After(shard.rows, found.mean[last], found.cov[last])
        values = self._values(shard, predicted)
        if "current" not in show:
            return SequenceFilter(values, predicted, None, None, None, after)
        current = self.model.probabilities(self.parameters, found.mean)
        spread = np.diagonal(found.cov, axis1=1, axis2=2)
        return SequenceFilter(values, predicted, current, found.mean, spread, after)

    def _chain_after(self, before):
        """Return the chain that begins with the step after the last of one sequence."""
        chain = self._prior.chain
        mean, cov = chain.forecast(before.mean[0], before.cov[0], 1)
        return replace(chain, initial_mean=mean[0], initial_cov=cov[0])

    def _values(self, shard, predicted):
        steps = np.repeat(np.arange(len(shard.seen)), np.diff(shard.offsets))
        logs = np.log(predicted[steps, shard.categories])
        counts = np.rint(shard.values * shard.totals[steps])
        return np.bincount(steps, counts * logs, minlength=len(shard.seen))

    def forecast(self, after, n_steps, key, n_paths, inputs=None):
        n, d = after.mean.shape
        noise = key.normals("forecast", after.rows, n_paths * (n_steps + 1) * d)
        noise = noise.reshape(n, n_paths, n_steps + 1, d)
        roots = np.linalg.cholesky(after.cov)
        last = after.mean[:, None] + noise[:, :, 0] @ np.swapaxes(roots, 1, 2)
        flat = noise[:, :, 1:].reshape(n * n_paths, n_steps, d)
        states = self._prior.chain.extend(last.reshape(-1, d), flat)
        states = states.reshape(n, n_paths, n_steps, d).swapaxes(0, 1)
        return self.model.probabilities(self.parameters, states)

    def simulate(self, totals, rng, inputs=None):
        lengths = [len(total) for total in totals]
        rows = self.model.simulate_states(self.parameters, lengths, rng)
        pi = self.model.probabilities(self.parameters, rows.states)
        counts = rng.multinomial(np.concatenate(totals), pi)
        return np.split(counts, np.cumsum(lengths)[:-1])


def _shares(block):
    steps = np.repeat(np.arange(block.n_steps), np.diff(block.offsets))
    values = block.counts / block.totals[steps]
    places = block.rows, block.starts, block.totals > 0, block.offsets, block.categories
    return Shard(*places, values, block.totals)


def _residues(emission, squares, products, shares):
    """Return the sums (K,) of (y - mean - C z)^2."""
    twice = np.einsum("kd,dk->k", emission, products)
    return np.maximum(
        shares - 2.0 * twice + np.einsum("kd,de,ke->k", emission, squares, emission), 0.0
    )


def _normals(key, site, rows, lengths, size):
    """Draw standard normals (steps, size), those of a sequence from its row's stream."""
    parts = [key.normals(site, rows[i : i + 1], n * size) for i, n in enumerate(lengths)]
    return np.concatenate([part.reshape(-1, size) for part in parts])
