import numba
import numpy as np
import pytest
from scipy import stats

from naive_chain import joint, problem
from polystick.gaussians.dynamics import Chain
from polystick.kernels import chain as kernels
from polystick.kernels import sequences
from statistics_tools import MIN_P

PLAIN = numba.config.DISABLE_JIT
SIZES = [(1, 1), (1, 3), (7, 1), (6, 2), (9, 4), *([] if PLAIN else [(5, 11)])]
TOLERANCE = 1e-10  # in standard deviations of the states


def make(n_steps, d, seed=0, **options):
    return problem(n_steps, d, np.random.default_rng(seed), **options)


def deviations(truth):
    return np.sqrt(np.einsum("sisi->si", truth.cov))


def assert_moments(moments, truth):
    """Assert equality to the joint law, relative to each state's own scale."""
    sd = deviations(truth)
    n_steps = len(sd)
    assert np.all(np.abs(moments.mean - truth.mean) <= TOLERANCE * (sd + np.abs(truth.mean)))
    for s in range(n_steps):
        scale = TOLERANCE * np.outer(sd[s], sd[s])
        assert np.all(np.abs(moments.cov[s] - truth.cov[s, :, s]) <= scale)
        np.testing.assert_array_equal(moments.cov[s], moments.cov[s].T)
    for s in range(n_steps - 1):
        scale = TOLERANCE * np.outer(sd[s + 1], sd[s])
        assert np.all(np.abs(moments.cross[s] - truth.cov[s + 1, :, s]) <= scale)
    size = max(1.0, abs(truth.log_normaliser))
    assert abs(moments.log_normaliser - truth.log_normaliser) <= TOLERANCE * size


def assert_draws(draw, truth):
    """Assert that zeros give the mean and unit vectors a root of the joint covariance."""
    n_steps, d = truth.mean.shape
    sd = deviations(truth)
    mean = draw(np.zeros((n_steps, d)))
    assert np.all(np.abs(mean - truth.mean) <= TOLERANCE * (sd + np.abs(truth.mean)))
    units = np.eye(n_steps * d).reshape(-1, n_steps, d)
    root = np.array([(draw(unit) - mean).ravel() for unit in units])
    scale = np.outer(sd, sd) + 1e-5 * np.outer(sd, np.ones(sd.size))  # draw - mean is rounded
    gap = root.T @ root - truth.cov.reshape(len(units), -1)
    assert np.all(np.abs(gap) <= TOLERANCE * np.maximum(scale, scale.T))


def assert_same(p):
    truth, chain = joint(p), Chain(*p.chain)
    assert_moments(chain.moments(*p.potential), truth)
    assert_draws(lambda noise: chain.draw(*p.potential, noise), truth)


# ---- the dense joint Gaussian


@pytest.mark.parametrize(("n_steps", "d"), SIZES)
@pytest.mark.parametrize("noise_scale", [1.0, 1e-8, 1e-3, 1e4])
def test_draws_and_moments_are_those_of_the_joint(n_steps, d, noise_scale):
    assert_same(make(n_steps, d, noise_scale=noise_scale))


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("n_steps", [1, 8])
def test_noise_of_very_different_scales_in_one_covariance(n_steps, order):
    assert_same(make(n_steps, 4, noise_scale=10.0 ** np.linspace(-8, 4, 4)[::order]))


@pytest.mark.parametrize("missing", [0.0, 1.0])
def test_all_steps_seen_and_none(missing):
    p = make(7, 3, missing=missing)
    assert_same(p)
    if missing:
        assert Chain(*p.chain).moments(*p.potential).log_normaliser == 0.0


@pytest.mark.parametrize("noise_scale", [1.0, 1e-8])
@pytest.mark.parametrize("name", ["zero", "identity", "half", "diagonal", "rank one", "explosive"])
def test_any_matrix_is_a_dynamics(name, noise_scale):
    d = 5
    vector = np.random.default_rng(1).normal(size=d)
    dynamics = {
        "zero": np.zeros((d, d)),
        "identity": np.eye(d),
        "half": 0.5 * np.eye(d),
        "diagonal": np.diag(vector),
        "rank one": np.outer(vector, vector) / 3,
        "explosive": 1.5 * np.eye(d) + 0.1,
    }[name]
    assert_same(make(8, d, noise_scale=noise_scale)._replace(dynamics=dynamics))


def test_a_random_walk_is_a_chain_with_the_identity():
    p = make(6, 3)
    walk = Chain.random_walk(p.initial_mean, p.initial_cov, p.dynamics_cov)
    truth = joint(p._replace(dynamics=np.eye(3), bias=np.zeros(3)))
    assert_moments(walk.moments(*p.potential), truth)


def test_without_potentials_a_draw_simulates():
    p = make(40, 2, missing=1.0)
    states = Chain(*p.chain).draw(*p.potential, np.random.default_rng(2).normal(size=(40, 2)))
    shocks = states[1:] - states[:-1] @ p.dynamics.T - p.bias
    shocks = np.linalg.solve(np.linalg.cholesky(p.dynamics_cov), shocks.T)
    assert MIN_P < stats.chi2(78).cdf(np.sum(shocks**2)) < 1.0 - MIN_P


@pytest.mark.skipif(PLAIN, reason="minutes without the compiler")
def test_a_long_chain_reaches_the_steady_state():
    """With noise q and precision 1 the information from the future solves q j^2 = 1 + q j."""
    n_steps, q = 40_000, 1e-6
    chain = Chain.random_walk(np.zeros(1), np.eye(1) * 1e12, q * np.eye(1))
    cov = chain.moments(np.zeros((n_steps, 1)), np.ones((n_steps, 1, 1))).cov
    j = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 / q))
    np.testing.assert_allclose(cov[0, 0, 0], 1.0 / (j + 1e-12), rtol=1e-10)
    np.testing.assert_allclose(cov[n_steps // 2, 0, 0], 1.0 / (2 * j - 1), rtol=1e-10)


# ---- negative controls: each of these wrong programs must be seen


WRONG = {
    "no bias": lambda p: p._replace(bias=0 * p.bias),
    "transposed dynamics": lambda p: p._replace(dynamics=p.dynamics.T.copy()),
    "no linear term": lambda p: p._replace(linear=0 * p.linear),
    "late potentials": lambda p: p._replace(precision=np.roll(p.precision, 1, axis=0)),
    "initial noise is dynamic noise": lambda p: p._replace(initial_cov=p.dynamics_cov),
    "noise off by 1e-8": lambda p: p._replace(dynamics_cov=p.dynamics_cov * (1 + 1e-8)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_seen(name):
    p = make(6, 3)
    truth, wrong = joint(p), WRONG[name](p)
    chain = Chain(*wrong.chain)
    with pytest.raises(AssertionError):
        assert_moments(chain.moments(*wrong.potential), truth)
    with pytest.raises(AssertionError):
        assert_draws(lambda noise: chain.draw(*wrong.potential, noise), truth)


def test_noise_in_the_wrong_step_is_no_harm_but_a_wrong_size_is():
    p = make(5, 2)
    truth, chain = joint(p), Chain(*p.chain)
    assert_draws(lambda noise: chain.draw(*p.potential, noise[::-1]), truth)
    with pytest.raises(AssertionError):
        assert_draws(lambda noise: chain.draw(*p.potential, 1.0001 * noise), truth)


# ---- manners


def test_inputs_are_left_alone_and_any_memory_order_is_taken():
    p, noise = make(6, 3), np.random.default_rng(3).normal(size=(6, 3))
    before = [a.copy() for a in p]
    expected = Chain(*p.chain).draw(*p.potential, noise)
    for a, b in zip(p, before):
        np.testing.assert_array_equal(a, b)
    odd = p._replace(**{k: np.asfortranarray(v) for k, v in p._asdict().items()})
    drawn = Chain(*odd.chain).draw(*odd.potential, np.asfortranarray(noise))
    np.testing.assert_array_equal(drawn, expected)
    moments = Chain(*p.chain).moments(*p.potential)
    assert moments.cross.shape == (5, 3, 3)


def test_no_steps():
    p = make(2, 3)
    chain, none = Chain(*p.chain), (np.zeros((0, 3)), np.zeros((0, 3, 3)))
    assert chain.draw(*none, np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.skipif(PLAIN, reason="math.sqrt raises in plain Python")
@pytest.mark.parametrize("name", ["dynamics_cov", "initial_cov"])
def test_an_indefinite_covariance_gives_nan_not_an_error(name):
    p = make(4, 2)._replace(**{name: np.array([[1.0, 2.0], [2.0, 1.0]])})
    assert np.isnan(Chain(*p.chain).draw(*p.potential, np.zeros((4, 2)))).all()


@pytest.mark.skipif(PLAIN, reason="needs the compiler")
def test_one_signature_per_kernel():
    for n_steps, d in SIZES:
        p = make(n_steps, d)
        Chain(*p.chain).moments(*p.potential)
    assert len(kernels.whiten_potentials.signatures) == 1
    for name in ("pass_back_in_place", "draw_forward", "moments_forward"):
        assert len(getattr(sequences, name).signatures) == 1
