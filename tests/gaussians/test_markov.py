import numba
import numpy as np
import pytest

from naive_markov import matern, process
from polystick.augmentation import Potential
from polystick.gaussians.markov import Markov
from polystick.kernels import markov as kernels

PLAIN = numba.config.DISABLE_JIT
TOLERANCE = 1e-8  # in standard deviations
SMOOTHNESS = [0.5, 1.5, 2.5]
SIZE = 9
LENGTH, VARIANCE = 2.5, 1.7

GAPS = {  # in length scales
    "any": lambda rng: 10.0 ** rng.uniform(-6, 3, SIZE - 1),
    "1e-6": lambda rng: np.full(SIZE - 1, 1e-6),
    "1e-3": lambda rng: np.full(SIZE - 1, 1e-3),
    "1": lambda rng: rng.gamma(2.0, size=SIZE - 1),
    "1e3": lambda rng: np.full(SIZE - 1, 1e3),
    "pairs": lambda rng: np.where(np.arange(SIZE - 1) % 2, 1.0, 1e-5),
    "none": lambda rng: np.where(np.arange(SIZE - 1) % 2, 1.0, 0.0),
}
WEIGHTS = {
    "0": lambda rng: np.zeros(SIZE),
    "1": lambda rng: rng.gamma(2.0, size=SIZE),
    "holes": lambda rng: rng.gamma(2.0, size=SIZE) * (np.arange(SIZE) % 3 == 0),
    "any": lambda rng: 10.0 ** rng.uniform(-5, 5, SIZE),
    "1e5": lambda rng: 1e5 * rng.gamma(2.0, size=SIZE),
}


def times_of(gaps, seed=0):
    gaps = GAPS[gaps](np.random.default_rng(seed))
    return LENGTH * np.concatenate([[0.3], 0.3 + np.cumsum(gaps)])


def potential_of(weights, seed=1):
    """Make a potential whose kappa is what noisy values would give, or anything where nothing weighs."""
    rng = np.random.default_rng(seed)
    omega = WEIGHTS[weights](rng)
    kappa = 0.8 * omega + np.sqrt(omega) * rng.normal(size=SIZE)
    if weights == "0":
        kappa = rng.normal(size=SIZE)
    return Potential(kappa[None], omega[None])


def chain_of(gaps, smoothness):
    return Markov(times_of(gaps), VARIANCE, LENGTH, smoothness)


def truth_of(chain, potential, at=None):
    parameters = (chain.variance, chain.length, chain.smoothness)
    return process(chain.times, *parameters, potential.kappa[0], potential.omega[0], at)


def new_times(times):
    """Return times before, between, at and after the given ones, near and far, in no order."""
    low, high, gaps = times.min(), times.max(), np.diff(times)
    outside = [low - 1e-6, low - 1.0, low - 1e4, high + 1e-6, high + 1.0, high + 1e4]
    inside = [times[:-1] + part * gaps for part in (1e-3, 0.5, 0.999)]
    return np.random.default_rng(2).permutation(np.concatenate([outside, times, *inside]))


def assert_law(mean, variance, truth, prior=VARIANCE):
    """Assert moments in standard deviations; a variance that all but vanishes in those of the prior."""
    size = truth.sd + 1e-7 * np.sqrt(prior)
    assert np.all(np.abs(mean - truth.mean) <= TOLERANCE * (size + np.abs(truth.mean)))
    assert np.all(np.abs(variance - truth.sd**2) <= TOLERANCE * size**2)


def draws(chain, potential):
    """Return the mean of f by a draw without noise, and a root of its covariance by unit vectors."""
    noise = np.vstack([np.zeros(chain.noise_size), np.eye(chain.noise_size)])
    repeated = Potential(*(np.repeat(a, len(noise), axis=0) for a in potential))
    drawn = chain.draw(repeated, noise)
    assert drawn.n_iterations == 0
    f = chain.unwhiten(drawn.white)
    return f[0], f[1:] - f[0]


def assert_solves(chain, potential, truth):
    mean, root = draws(chain, potential)
    assert_law(mean, np.sum(root**2, axis=0), truth)
    assert np.all(np.abs(root.T @ root - truth.cov) <= TOLERANCE * np.outer(truth.sd, truth.sd))
    assert_law(chain.mean(potential)[0], truth.sd**2, truth)


ALL = [(g, w, s) for g in GAPS for w in WEIGHTS for s in SMOOTHNESS]


@pytest.mark.parametrize(("gaps", "weights", "smoothness"), ALL)
def test_draws_and_mean_are_those_of_the_dense_process(gaps, weights, smoothness):
    chain, potential = chain_of(gaps, smoothness), potential_of(weights)
    assert_solves(chain, potential, truth_of(chain, potential))


@pytest.mark.parametrize(("gaps", "weights", "smoothness"), ALL)
def test_dual_is_that_of_the_dense_process(gaps, weights, smoothness):
    chain, (_, weights) = chain_of(gaps, smoothness), potential_of(weights)
    linear = np.random.default_rng(4).normal(size=weights.shape)
    dual = chain.dual(linear, weights)
    cov = matern(chain.times, chain.times, VARIANCE, LENGTH, smoothness).astype(float)
    truth = truth_of(chain, Potential(0 * linear, weights))
    assert_law(dual.mean[0], dual.variance[0], truth._replace(mean=linear[0] @ cov))
    np.testing.assert_allclose(dual.log_det, truth.log_det, rtol=TOLERANCE, atol=1e-12)
    assert chain.weights(weights) is weights


@pytest.mark.parametrize(("gaps", "weights", "smoothness"), ALL)
def test_new_times_given_the_potential(gaps, weights, smoothness):
    chain, potential = chain_of(gaps, smoothness), potential_of(weights)
    at = new_times(chain.times)
    mean, variance = chain.predictor(at).collapsed(potential)
    assert_law(mean[0], variance[0], truth_of(chain, potential, at))
    linear = np.random.default_rng(5).normal(size=(1, SIZE))
    mean, variance = chain.predictor(at).dual(linear, potential.omega)
    cross = matern(at, chain.times, VARIANCE, LENGTH, smoothness).astype(float)
    truth = truth_of(chain, potential, at)._replace(mean=cross @ linear[0])
    assert_law(mean[0], variance[0], truth)


@pytest.mark.parametrize("smoothness", SMOOTHNESS)
@pytest.mark.parametrize("gaps", GAPS)
def test_new_times_given_the_white_values(gaps, smoothness):
    """The part that white values tell has the right covariance with f, and what is left adds up."""
    chain = chain_of(gaps, smoothness)
    at = new_times(chain.times)
    white = np.eye(chain.n_white)
    mean, variance = chain.predictor(at).given(white)
    assert mean.shape == (chain.n_white, len(at))
    assert variance.shape == (len(at),)
    cross = matern(at, chain.times, VARIANCE, LENGTH, smoothness).astype(float)
    np.testing.assert_allclose(mean.T @ chain.unwhiten(white), cross, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(np.sum(mean**2, 0) + variance, VARIANCE, rtol=TOLERANCE)
    known = np.isin(at, chain.times)
    assert np.all(variance[known] == 0.0)
    place = np.array([np.flatnonzero(chain.times == t)[0] for t in at[known]])
    np.testing.assert_allclose(mean[:, known], chain.unwhiten(white)[:, place], atol=1e-12)


@pytest.mark.parametrize("smoothness", SMOOTHNESS)
def test_a_prior_draw_has_the_covariance(smoothness):
    for gaps in GAPS:
        chain = chain_of(gaps, smoothness)
        root = chain.unwhiten(np.eye(chain.n_white))
        cov = matern(chain.times, chain.times, VARIANCE, LENGTH, smoothness)
        np.testing.assert_allclose(root.T @ root, cov.astype(float), rtol=0, atol=1e-12)


@pytest.mark.parametrize("smoothness", SMOOTHNESS)
def test_innovations_keep_their_digits_over_any_gap(smoothness):
    """The spread of f given the state before grows as gap^(2 smoothness), down to 1e-30 and less."""
    gaps = np.array([1e-9, 1e-6, 1e-3])
    spread = []
    for gap in gaps:
        chain = Markov(np.array([0.0, gap]), 1.0, 1.0, smoothness)
        spread.append(chain.predictor(np.array([2 * gap])).given(np.zeros((1, chain.n_white)))[1])
    rate = {0.5: 2.0, 1.5: 4 * 3**1.5 / 3, 2.5: 16 / 3 * 5**2.5 / 20}[smoothness]
    np.testing.assert_allclose(np.ravel(spread), rate * gaps ** (2 * smoothness), rtol=0.01)


def test_times_in_any_order():
    times = times_of("1")
    order = np.random.default_rng(6).permutation(SIZE)
    straight, shuffled = (Markov(t, VARIANCE, LENGTH, 2.5) for t in (times, times[order]))
    potential = potential_of("holes")
    moved = Potential(*(a[:, order] for a in potential))
    noise = np.random.default_rng(7).normal(size=(1, straight.noise_size))
    white = straight.draw(potential, noise).white
    np.testing.assert_array_equal(shuffled.draw(moved, noise).white, white)
    np.testing.assert_array_equal(shuffled.unwhiten(white), straight.unwhiten(white)[:, order])
    np.testing.assert_array_equal(shuffled.mean(moved), straight.mean(potential)[:, order])
    for a, b in zip(shuffled.dual(*moved)[:2], straight.dual(*potential)[:2]):
        np.testing.assert_array_equal(a, b[:, order])
    at = new_times(times)
    for a, b in zip(
        shuffled.predictor(at).collapsed(moved), straight.predictor(at).collapsed(potential)
    ):
        np.testing.assert_array_equal(a, b)


def test_one_time_and_no_new_times():
    chain = Markov(np.array([3.0]), VARIANCE, LENGTH, 1.5)
    potential = Potential(np.array([[0.7]]), np.array([[2.0]]))
    at = np.array([2.0, 3.0, 5.0])
    mean, variance = chain.predictor(at).collapsed(potential)
    assert_law(mean[0], variance[0], truth_of(chain, potential, at))
    assert chain.predictor(np.zeros(0)).collapsed(potential)[0].shape == (1, 0)
    assert (chain.size, chain.n_white, chain.noise_size) == (1, 2, 2)


@pytest.mark.skipif(PLAIN, reason="minutes without the compiler")
def test_a_long_series_stays_exact():
    """In the middle of many even steps the variance is that of the spectrum, omega (1 + omega S)^-1."""
    gap, omega, n = 0.3, 3.0, 20_001
    chain = Markov(gap * np.arange(n), 1.0, 1.0, 2.5)
    lags = gap * np.arange(-200, 201)
    frequencies = 2 * np.pi * (np.arange(4000) + 0.5) / 4000
    covs = matern(lags, [0.0], 1.0, 1.0, 2.5)[:, 0].astype(float)
    spectrum = np.cos(np.outer(frequencies, np.arange(-200, 201))) @ covs
    dual = chain.dual(np.zeros((1, n)), np.full((1, n), omega))
    expected = np.mean(spectrum / (1.0 + omega * spectrum))
    np.testing.assert_allclose(dual.variance[0, n // 2], expected, rtol=1e-10)
    rate = np.mean(np.log1p(omega * spectrum))
    np.testing.assert_allclose(dual.log_det[0] / n, rate, rtol=1e-3)


WRONG = {
    "length off by 1e-6": lambda c: (c.times, c.variance, c.length * (1 + 1e-6), c.smoothness),
    "variance off by 1e-6": lambda c: (c.times, c.variance * (1 + 1e-6), c.length, c.smoothness),
    "a rougher process": lambda c: (c.times, c.variance, c.length, c.smoothness - 1.0),
    "a time that moved": lambda c: (
        c.times + 1e-5 * (np.arange(SIZE) == 4),
        c.variance,
        c.length,
        c.smoothness,
    ),
    "even steps": lambda c: (
        np.linspace(*c.times[[0, -1]], SIZE),
        c.variance,
        c.length,
        c.smoothness,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_seen(name):
    chain, potential = chain_of("1", 2.5), potential_of("1")
    wrong, truth = Markov(*WRONG[name](chain)), truth_of(chain, potential)
    with pytest.raises(AssertionError):
        assert_solves(wrong, potential, truth)
    at = new_times(chain.times)
    moments = wrong.predictor(at).collapsed(potential)
    with pytest.raises(AssertionError):
        assert_law(*(a[0] for a in moments), truth_of(chain, potential, at))


def test_inputs_are_left_alone_and_any_memory_order_is_taken():
    chain = chain_of("1", 2.5)
    rng = np.random.default_rng(8)
    potential = Potential(rng.normal(size=(3, SIZE)), rng.gamma(1.0, size=(3, SIZE)))
    noise = rng.normal(size=(3, chain.noise_size))
    before = [a.copy() for a in (*potential, noise, chain.times)]
    expected = chain.draw(potential, noise).white
    chain.dual(*potential)
    for a, b in zip((*potential, noise, chain.times), before):
        np.testing.assert_array_equal(a, b)
    odd = chain.draw(Potential(*map(np.asfortranarray, potential)), np.asfortranarray(noise)).white
    np.testing.assert_array_equal(odd, expected)


@pytest.mark.skipif(PLAIN, reason="needs the compiler")
def test_one_signature_per_kernel():
    for smoothness in SMOOTHNESS:
        chain, potential = chain_of("1", smoothness), potential_of("1")
        chain.predictor(chain.times[::-1][::2]).collapsed(potential)
        chain.unwhiten(chain.draw(potential, np.zeros((1, chain.noise_size))).white[::1])
    for name in ("draw_rows", "run_rows", "moment_rows"):
        assert len(getattr(kernels, name).signatures) == 1
