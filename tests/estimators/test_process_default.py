"""What a process is where no kernel is given, and that it holds against simpler ways."""

import numba
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from sklearn.neighbors import NearestNeighbors

from polystick import Gibbs, MeanField, MultinomialGP
from polystick.covariances import OwnNoise
from polystick.estimators.process_default import default_correlation, default_kernel

RNG = np.random.default_rng(0)


def columns(*spreads):
    x = np.random.default_rng(1).normal(size=(50, len(spreads)))
    return (x - x.mean(axis=0)) / x.std(axis=0) * spreads


@pytest.mark.parametrize(
    ("spreads", "scales"),
    [
        ([2.0, 2.0], [2.0, 2.0]),
        ([1.25, 4.9], [6.125**0.5] * 2),  # a map that is a strip
        ([1.0, 4.1], [1.0, 4.1]),
        ([1000.0, 9.0, 4.0], [1000.0, 6.0, 6.0]),  # days and degrees
        ([1.0, 3.0, 9.0], [3.0**0.5, 3.0**0.5, 9.0]),
        ([0.0, 3.0, 0.0], [1.0, 3.0, 1.0]),  # what does not vary is alone
    ],
)
def test_columns_in_one_unit_have_length_scales_that_belong_together(spreads, scales):
    inputs = columns(*spreads)
    np.testing.assert_allclose(default_kernel(inputs).k1.k2.length_scale, scales)
    together = default_correlation(inputs)[1:-1, 1:-1] > 0.5
    varies = np.array(spreads) > 0
    same = np.isclose(scales, np.array(scales)[:, None]) & varies & varies[:, None]
    np.testing.assert_array_equal(together, same | np.eye(len(spreads), dtype=bool))


def test_the_correlation_has_a_row_for_each_parameter():
    for d in (1, 2, 3):
        inputs = columns(*np.ones(d))
        assert default_correlation(inputs).shape == (len(default_kernel(inputs).theta),) * 2
        np.linalg.cholesky(default_correlation(inputs))


@pytest.mark.filterwarnings("ignore:mean field did not converge")
def test_a_long_series_is_still_a_chain():
    years = np.arange(320.0)[:, None]
    counts = RNG.multinomial(20, [0.5, 0.3, 0.2], size=320)
    model = MultinomialGP(inference=MeanField(max_sweeps=2), random_state=0).fit(years, counts)
    assert model.solver_ == "markov"
    assert isinstance(model.kernel_.k2, OwnNoise)


@pytest.mark.parametrize("solver", ["dense", "markov", "unstructured"])
def test_an_input_of_the_fit_keeps_its_noise_and_a_new_one_does_not_have_it(solver):
    times = np.arange(12.0)[:, None]
    counts = np.tile([300, 300], (12, 1))
    counts[6] = [590, 10]
    kernel = Matern(20.0, nu=1.5) + OwnNoise(0.5)
    options = {"learn": (), "solver": solver, "inference": MeanField(), "random_state": 0}
    model = MultinomialGP(kernel, **options).fit(times, counts)
    (here, beside), (sure, unsure) = (
        part[:, 0] for part in model.predict_proba([[6.0], [6.001]], return_std=True)
    )
    assert here > 0.9
    assert beside < 0.7
    assert unsure > 3 * sure


# ---- against simpler ways


def softmax(eta):
    e = np.exp(eta)
    return e / e.sum(axis=1, keepdims=True)


def simulated_map(seed, noise, n=60, k=6):
    """Return inputs, counts and the shares behind a softmax, so that no stick is the truth."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(0, [10.0, 7.0], (n, 2))
    root = np.linalg.cholesky(0.5 * Matern(2.5, nu=1.5)(z) + 1e-9 * np.eye(n))
    eta = rng.normal(size=k) + root @ rng.normal(size=(n, k)) + noise * rng.normal(size=(n, k))
    share = softmax(eta)
    return z, rng.multinomial(rng.integers(30, 2000, n), share), share


def neighbours(z, x, new):
    near = NearestNeighbors(n_neighbors=3).fit(z).kneighbors(new, return_distance=False)
    pooled = x[near].sum(axis=1) + 0.5
    return pooled / pooled.sum(axis=1, keepdims=True)


def log_ratios(z, x, new):
    logs = np.log(x + 0.5)
    kernel = 1.0 * Matern(2.0, nu=1.5) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, normalize_y=True)
    return softmax(model.fit(z, logs - logs.mean(axis=1, keepdims=True)).predict(new))


def by_default(z, x, new):
    brief = Gibbs(n_draws=40, n_burn=30, n_chains=1)
    return MultinomialGP(inference=brief, random_state=0).fit(z, x).predict_proba(new)


def lost(share, predicted):
    return np.sum(share * np.log(share / predicted), axis=1).mean()


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="needs the compiler")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_default_beats_neighbours_and_a_plain_process_on_a_map(noise):
    losses = []
    for seed in (1, 2):
        z, x, share = simulated_map(seed, noise)
        seen = np.arange(len(z)) % 4 > 0
        ways = (by_default, neighbours, log_ratios)
        losses.append([lost(share[~seen], way(z[seen], x[seen], z[~seen])) for way in ways])
    ours, near, plain = np.mean(losses, axis=0)
    assert ours < 0.9 * near
    assert ours < plain
