"""Gaussian dynamics of shares: the sweep is right, would be caught if not; the filter is right."""

from dataclasses import dataclass, replace
from functools import partial

import numba
import numpy as np
import pytest
import scipy.sparse
from scipy import stats

from joint import Law, first_and_second
from polystick.baselines.raw_dynamics import Parameters, RawDynamics, Rows, Shard
from polystick.conjugate_dynamics import InverseGamma, MatrixNormalInverseWishart
from polystick.inference.execution import Threads
from polystick.inference.gibbs import Gibbs
from polystick.keys import Key
from polystick.models.chain_sums import added
from polystick.models.sequence_filter import SHOWS
from statistics_tools import MAX_Z

PLAIN = bool(numba.config.DISABLE_JIT)
needs_jit = pytest.mark.skipif(PLAIN, reason="thousands of sweeps need the compiler")
DYNAMICS = MatrixNormalInverseWishart([[0.5]], [[20.0]], [[14.0]], 20.0)
MEAN = np.array([1.4, -1.2, 0.6])
NOISE = InverseGamma(np.array([8.0, 9.0, 10.0]), np.array([3.0, 5.0, 9.0]))
SETTINGS = (DYNAMICS, MEAN, np.array([0.7]), np.array([[0.8]]), np.array([1.0, 0.5, 0.3]), NOISE)
MODEL = RawDynamics(*SETTINGS)
LENGTHS = [3, 2]
MISSING = 1  # the step at which nothing is seen


@pytest.fixture
def rng():
    return np.random.default_rng(1960)


def of_vectors(vectors, first=0):
    """Return a block of sequences of any vectors (steps, K), of NaN where nothing was seen."""
    y = np.concatenate(vectors)
    seen = ~np.isnan(y).any(axis=1)
    ids = np.arange(first, first + len(vectors), dtype=np.uint64)
    starts = np.concatenate([[0], np.cumsum([len(vector) for vector in vectors])])
    offsets = np.concatenate([[0], np.cumsum(seen * y.shape[1])])
    categories = np.tile(np.arange(y.shape[1]), seen.sum())
    return Shard(ids, starts, seen, offsets, categories, y[seen].ravel(), seen.astype(np.int64))


# the sweep against the law


def hide(vectors):
    vectors = [vector.copy() for vector in vectors]
    vectors[0][MISSING] = np.nan
    return vectors


def sweep(model, everything, i, rng):
    parameters, _, values = everything
    key, prior, hidden = Key(5, i), model.prepare(parameters), hide(values)
    shards = [of_vectors(hidden[:1]), of_vectors(hidden[1:], first=1)]
    parts = [model.draw_rows(prior, shard, None, key) for shard in shards]
    parameters = model.draw_parameters(parameters, added(parts[0][1], parts[1][1]), key)
    rows = Rows(np.concatenate([part[0].states for part in parts]))
    return parameters, rows, model.simulate_values(parameters, rows, LENGTHS, rng)


def summarise(everything):
    parameters, rows, values = everything
    laws = [parameters.dynamics, parameters.dynamics_cov, parameters.emission[:2]]
    return first_and_second([*laws, parameters.noise[1:], rows.states, values[0][2], values[1][0]])


LAW = Law(lambda rng: MODEL.simulate(LENGTHS, rng), summarise)


@needs_jit
@pytest.mark.parametrize("n_iter", [1500, pytest.param(60_000, marks=pytest.mark.slow)])
def test_geweke(n_iter, rng):
    z = LAW.z(partial(sweep, MODEL), n_iter, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@dataclass(frozen=True)
class ForgottenMean(RawDynamics):
    """States are drawn as if the mean were 0, as the authors' code does at the other end."""

    def potential(self, prior, shard):
        return replace(MODEL, mean=np.zeros(3)).potential(prior, shard)


@dataclass(frozen=True)
class SeenGap(RawDynamics):
    """Missing steps are taken for zeros."""

    def draw_rows(self, prior, shard, rows, key):
        return super().draw_rows(prior, shard._replace(seen=np.ones_like(shard.seen)), rows, key)


@dataclass(frozen=True)
class FullVariance(RawDynamics):
    """The noise is drawn as if squares counted twice."""

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        drawn = super().draw_parameters(parameters, statistics, key)
        return drawn._replace(noise=2.0 * drawn.noise)


@dataclass(frozen=True)
class NoNoise(RawDynamics):
    """The emission is its mean, not a draw."""

    def draw_emission(self, noise, statistics, key):
        draws = [
            super(NoNoise, self).draw_emission(noise, statistics, Key(0, i)) for i in (1, 2, 3)
        ]
        return np.mean(draws, axis=0)


@needs_jit
@pytest.mark.parametrize("wrong", [ForgottenMean, SeenGap, FullVariance, NoNoise])
def test_geweke_rejects_a_sabotaged_sweep(wrong, rng):
    assert LAW.worst_z(partial(sweep, wrong(*SETTINGS)), 600, rng) > MAX_Z


# the filter against the dense joint


def wide_model(d=2, n_categories=4, floor=1e-3):
    eye, ones = np.eye(d), np.ones(n_categories)
    prior = MatrixNormalInverseWishart(0.6 * eye, 9.0 * eye, eye, 8.0)
    mean = np.arange(1.0, n_categories + 1) / np.arange(1.0, n_categories + 1).sum()
    law = np.linspace(-0.5, 0.5, d), np.diag(np.arange(1.0, d + 1))
    return RawDynamics(prior, mean, *law, 0.1 * ones, InverseGamma(3 * ones, 0.1 * ones), floor)


def dense(model, parameters, length):
    """Return the joint mean and covariance of the states, and of y given as C z + noise."""
    A, Q, C, R = parameters
    d, K = model.n_dims, len(model.mean)
    mean, cov = [model.initial_mean], np.zeros((length, length, d, d))
    cov[0, 0] = model.initial_cov
    for t in range(1, length):
        mean.append(A @ mean[-1])
        for s in range(t):
            cov[t, s] = A @ cov[t - 1, s]
            cov[s, t] = cov[t, s].T
        cov[t, t] = A @ cov[t - 1, t - 1] @ A.T + Q
    states = cov.transpose(0, 2, 1, 3).reshape(length * d, length * d)
    E = np.kron(np.eye(length), C)
    values = E @ states @ E.T + np.kron(np.eye(length), np.diag(R))
    expected = E @ np.concatenate(mean) + np.tile(model.mean, length)
    return np.concatenate(mean), states, expected, values, states @ E.T, K


def condition(model, parameters, y, t, up_to):
    """Return mean and covariance of z_t given the steps of y before up_to that are seen."""
    mean, states, expected, values, cross, K = dense(model, parameters, len(y))
    seen = np.flatnonzero(~np.isnan(y[:up_to]).any(axis=1))
    index = (seen[:, None] * K + np.arange(K)).ravel()
    own = slice(t * model.n_dims, (t + 1) * model.n_dims)
    if not len(index):
        return mean[own], states[own, own]
    gain = np.linalg.solve(values[np.ix_(index, index)], cross[own][:, index].T).T
    shift = gain @ (y.ravel()[index] - expected[index])
    return mean[own] + shift, states[own, own] - gain @ cross[own][:, index].T


def as_probabilities(model, parameters, states):
    pi = np.maximum(model.mean + states @ parameters.emission.T, model.floor)
    return pi / pi.sum()


def test_filter_is_the_dense_joint(rng):
    model = wide_model()
    parameters, _, _ = model.simulate([4], rng)
    table = rng.multinomial(3, np.full(4, 0.25), size=5)
    table[2] = 0
    tokens = np.array([3, -1, 0])
    (shard,) = model.shards([table, tokens])
    found = model.predictor(parameters._asdict()).filter(shard, Key(1), show=SHOWS)
    with np.errstate(invalid="ignore"):
        shares = table / table.sum(axis=1, keepdims=True)
    one_hot = np.where(tokens[:, None] < 0, np.nan, np.eye(4)[tokens])
    for y, first, counts in ((shares, 0, table), (one_hot, 5, np.nan_to_num(one_hot))):
        for t in range(len(y)):
            mean, cov = condition(model, parameters, y, t, t + 1)
            np.testing.assert_allclose(found.states[first + t], mean, atol=1e-10)
            np.testing.assert_allclose(found.spread[first + t], np.diag(cov), atol=1e-10)
            current = as_probabilities(model, parameters, mean)
            np.testing.assert_allclose(found.current[first + t], current, atol=1e-10)
            before, _ = condition(model, parameters, y, t, t)
            ahead = as_probabilities(model, parameters, before)
            np.testing.assert_allclose(found.predicted[first + t], ahead, atol=1e-10)
            value = counts[t] @ np.log(ahead)
            np.testing.assert_allclose(found.values[first + t], value, atol=1e-10)
    assert found.values[2] == 0.0
    assert found.values[6] == 0.0
    last = [condition(model, parameters, y, len(y) - 1, len(y)) for y in (shares, one_hot)]
    np.testing.assert_allclose(found.after.mean, [mean for mean, _ in last], atol=1e-10)
    np.testing.assert_allclose(found.after.cov, [cov for _, cov in last], atol=1e-10)


def test_draws_have_the_moments_of_the_dense_joint(rng):
    model = wide_model()
    parameters, _, values = model.simulate([3], rng)
    values[0][1] = np.nan
    shard, prior = of_vectors(values), model.prepare(parameters)
    n = 300 if PLAIN else 3000
    draws = np.stack([model.draw_rows(prior, shard, None, Key(2, i))[0].states for i in range(n)])
    for t in range(3):
        mean, cov = condition(model, parameters, values[0], t, 3)
        z = (draws[:, t].mean(axis=0) - mean) / np.sqrt(np.diag(cov) / n)
        assert np.abs(z).max() < MAX_Z
        p = stats.kstest((draws[:, t, 0] - mean[0]) / np.sqrt(cov[0, 0]), "norm").pvalue
        assert p > 1e-5


def test_forecast_draws_have_the_moments_of_the_future(rng):
    model = wide_model(floor=1e-300)
    parameters, _, _ = model.simulate([4], rng)
    small = parameters._replace(emission=0.01 * parameters.emission)  # nothing meets the floor
    y = np.eye(4)[[0, 1, 1]]
    (shard,) = model.shards([np.array([0, 1, 1])])
    predictor = model.predictor(small._asdict())
    after = predictor.filter(shard, Key(1)).after
    n = 4000
    paths = predictor.forecast(after, 2, Key(1), n)
    assert paths.shape == (n, 1, 2, 4)
    long = np.concatenate([y, np.full((2, 4), np.nan)])
    for s in range(2):
        mean, cov = condition(model, small, long, 3 + s, 5)
        E = small.emission
        # the sum of pi before division is not 1, for C need not sum to 0
        draws = rng.multivariate_normal(mean, cov, 200_000) @ E.T + model.mean
        draws /= draws.sum(axis=1, keepdims=True)
        z = (paths[:, 0, s].mean(axis=0) - draws.mean(axis=0)) / (draws.std(axis=0) / np.sqrt(n))
        assert np.abs(z).max() < MAX_Z
        ratio = paths[:, 0, s].std(axis=0) / draws.std(axis=0)
        assert np.abs(ratio - 1).max() < MAX_Z / np.sqrt(2 * n)


def test_simulated_counts_have_the_moments_of_the_states(rng):
    model = wide_model(floor=1e-300)
    parameters, _, _ = model.simulate([4], rng)
    C = parameters.emission - parameters.emission.mean(axis=0)  # what sums to 0 leaves the sum 1
    small = parameters._replace(emission=0.02 * C)
    n, totals = 1000, np.array([40, 0, 40])
    drawn = model.predictor(small._asdict()).simulate([totals] * n, rng)
    assert len(drawn) == n
    shares = np.stack(drawn)[:, [0, 2]] / 40
    A, m = small.dynamics, model.initial_mean
    expected = model.mean + np.stack([m, A @ A @ m]) @ small.emission.T
    error = shares.std(axis=0) / np.sqrt(n)
    assert np.abs((shares.mean(axis=0) - expected) / error).max() < MAX_Z


# pieces


def test_sparse_shares_are_dense_shares(rng):
    model = wide_model()
    parameters, _, _ = model.simulate([4], rng)
    prior, table = model.prepare(parameters), rng.multinomial(5, np.full(4, 0.25), size=6)
    table[4] = 0
    with np.errstate(invalid="ignore"):
        vectors = of_vectors([table / table.sum(axis=1, keepdims=True)])
    for sequence in (table, scipy.sparse.csr_array(table)):
        (shard,) = model.shards([sequence])
        for mine, other in zip(model.potential(prior, shard), model.potential(prior, vectors)):
            np.testing.assert_allclose(mine, other, atol=1e-12)
        found, expected = (
            model.draw_rows(prior, each, None, Key(3))[1] for each in (shard, vectors)
        )
        for mine, other in zip((*found.pairs, *found[1:]), (*expected.pairs, *expected[1:])):
            np.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-12)


def test_statistics_are_sums(rng):
    model = wide_model()
    parameters, rows, values = model.simulate([3, 1, 2], rng)
    values[0][1] = np.nan
    prior, shard = model.prepare(parameters), of_vectors(values)
    rows, found = model.draw_rows(prior, shard, None, Key(4))
    z, y = rows.states, np.concatenate(values) - model.mean
    pairs = [(z[1], z[0]), (z[2], z[1]), (z[5], z[4])]
    assert found.pairs.n == 3
    np.testing.assert_allclose(found.pairs.yx, sum(np.outer(a, b) for a, b in pairs))
    np.testing.assert_allclose(found.pairs.xx, sum(np.outer(b, b) for _, b in pairs))
    np.testing.assert_allclose(found.pairs.yy, sum(np.outer(a, a) for a, _ in pairs))
    seen = [0, 2, 3, 4, 5]
    assert found.n_seen == 5
    np.testing.assert_allclose(found.squares, z[seen].T @ z[seen])
    np.testing.assert_allclose(found.products, z[seen].T @ y[seen], atol=1e-12)
    np.testing.assert_allclose(found.shares, np.square(y[seen]).sum(axis=0))
    residues = y[seen] - z[seen] @ parameters.emission.T
    law = stats.norm(scale=np.sqrt(parameters.noise))
    assert model.log_likelihood(found) == pytest.approx(law.logpdf(residues).sum())


def test_probabilities_never_fall_below_the_floor_and_have_their_mean_back():
    model = wide_model()
    parameters = Parameters(np.eye(2), np.eye(2), np.full((4, 2), -1.0), np.ones(4))
    np.testing.assert_allclose(model.probabilities(parameters, np.zeros(2)), model.mean)
    np.testing.assert_allclose(model.probabilities(parameters, np.ones(2)), 0.25)


# runs


def run(counts, n_draws=3, execution=None, **options):
    model = wide_model()
    shards = model.shards(counts, size=4)
    return Gibbs(n_draws, n_burn=1, n_chains=2).run(
        model, shards, seed=3, execution=execution, **options
    )


def test_same_bits_on_any_number_of_threads_and_after_a_kill(tmp_path, rng):
    counts = [rng.multinomial(2, np.full(4, 0.25), size=n) for n in (5, 3, 6)]
    first, second = run(counts), run(counts, execution=Threads(2))
    run(counts, 1, checkpoint=tmp_path)
    third = run(counts, checkpoint=tmp_path, resume=True)
    for name in Parameters._fields:
        np.testing.assert_array_equal(first[name], second[name])
        np.testing.assert_array_equal(first[name], third[name])
    assert (first["emission"][0] != first["emission"][1]).all()
