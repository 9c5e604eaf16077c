import numba
import numpy as np
import pytest

from naive_markov import chain_root, innovations
from polystick.kernels import markov

PLAIN = numba.config.DISABLE_JIT
TOLERANCE = 1e-9  # in standard deviations
SIZES = [(1, 1), (1, 3), (5, 1), (6, 2), (7, 3), (4, 5)]


def make(n_steps, m, n_rows=3, seed=0, sizes=0.0):
    """Make any chain, with steps that see nothing and innovations of size 10 ** +-sizes."""
    rng = np.random.default_rng(seed)
    transition = rng.normal(size=(n_steps, m, m)) / np.sqrt(m)
    root = np.tril(rng.normal(size=(n_steps, m, m))) + np.eye(m)
    root *= 10.0 ** rng.uniform(-sizes, sizes, (n_steps, m, 1))
    transition[0] = 0.0
    seen = rng.random((n_rows, n_steps)) >= 0.3
    seen[n_rows - 1] = False
    omega = seen * rng.gamma(2.0, size=seen.shape) * 10.0 ** rng.uniform(-sizes, sizes, seen.shape)
    kappa = np.sqrt(omega) * rng.normal(size=seen.shape)
    return transition, root, kappa, omega


def draw(problem, noise):
    white = np.empty_like(noise)
    markov.draw_rows(*problem, noise, white)
    return white


def truths(problem):
    transition, root, kappa, omega = problem
    return [innovations(transition, root, *row) for row in zip(kappa, omega)]


def assert_draws(draw, problem):
    """Assert the law of each row's draws, by zeros and unit vectors."""
    _, root, kappa, _ = problem
    shape = (len(kappa), *root.shape[:2])
    size = root.shape[0] * root.shape[1]
    mean = draw(np.zeros(shape)).reshape(len(kappa), size)
    unit = np.broadcast_to(np.eye(size)[:, None], (size, len(kappa), size)).copy()
    roots = np.array([draw(noise.reshape(shape)).reshape(mean.shape) - mean for noise in unit])
    for row, truth in enumerate(truths(problem)):
        assert_mean(mean[row], truth)
        gap = np.abs(roots[:, row].T @ roots[:, row] - truth.cov)
        assert np.all(gap <= TOLERANCE * np.outer(truth.sd, truth.sd))


def assert_mean(mean, truth):
    assert np.all(np.abs(mean - truth.mean) <= TOLERANCE * (truth.sd + np.abs(truth.mean)))


@pytest.mark.parametrize("sizes", [0.0, 2.0])
@pytest.mark.parametrize(("n_steps", "m"), SIZES)
def test_draws_are_those_of_the_joint(n_steps, m, sizes):
    problem = make(n_steps, m, sizes=sizes)
    assert_draws(lambda noise: draw(problem, noise), problem)


def test_a_pull_where_nothing_weighs():
    """Kappa where omega is 0, beside steps where it is not."""
    problem = make(6, 3)
    problem[2][:] = np.random.default_rng(5).normal(size=problem[2].shape)
    assert (problem[3] == 0.0).any(axis=1).all()
    assert_draws(lambda noise: draw(problem, noise), problem)


@pytest.mark.parametrize(("n_steps", "m"), SIZES)
def test_states_are_what_innovations_make(n_steps, m):
    transition, root, _, _ = make(n_steps, m)
    white = np.random.default_rng(1).normal(size=(2, n_steps, m))
    states = np.empty_like(white)
    markov.run_rows(transition, root, white, states)
    expected = white.reshape(2, -1) @ chain_root(transition, root).T.astype(float)
    np.testing.assert_allclose(states.reshape(2, -1), expected, rtol=1e-12, atol=1e-12)


def targets(n_steps, m, seed=2):
    """Make any targets, two for each step and two behind the last one."""
    rng = np.random.default_rng(seed)
    step = np.repeat(np.arange(n_steps + 1), 2)
    past, innovation = rng.normal(size=(2, len(step), m))
    innovation[step == n_steps] = 0.0
    return step, past, innovation


def assert_moments(mean, variance, log_det, problem, targets):
    n_steps, m = problem[1].shape[:2]
    step, past, innovation = targets
    states = np.vstack([np.zeros((m, n_steps * m)), chain_root(*problem[:2])]).astype(float)
    weights = np.einsum("ni,nij->nj", past, states.reshape(n_steps + 1, m, -1)[step])
    within = np.flatnonzero(step < n_steps)
    weights.reshape(len(step), n_steps, m)[within, step[within]] += innovation[within]
    for row, truth in enumerate(truths(problem)):
        expected = np.einsum("ni,ij,nj->n", weights, truth.cov, weights)
        np.testing.assert_allclose(variance[row], expected, rtol=TOLERANCE)
        gap = np.abs(mean[row] - weights @ truth.mean)
        assert np.all(gap <= TOLERANCE * (np.sqrt(expected) + np.abs(weights) @ np.abs(truth.mean)))
        np.testing.assert_allclose(log_det[row], truth.log_det, rtol=TOLERANCE, atol=1e-12)


def moments(problem, targets):
    n_rows, n = len(problem[2]), len(targets[0])
    mean, variance, log_det = np.empty((n_rows, n)), np.empty((n_rows, n)), np.empty(n_rows)
    markov.moment_rows(*problem, *targets, mean, variance, log_det)
    return mean, variance, log_det


@pytest.mark.parametrize("sizes", [0.0, 1.0])
@pytest.mark.parametrize(("n_steps", "m"), SIZES)
def test_moments_are_those_of_the_joint(n_steps, m, sizes):
    problem = make(n_steps, m, sizes=sizes)
    assert_moments(*moments(problem, targets(n_steps, m)), problem, targets(n_steps, m))


WRONG = {
    "no kappa": lambda A, R, kappa, omega: (A, R, 0 * kappa, omega),
    "potentials late by a step": lambda A, R, kappa, omega: (A, R, kappa, np.roll(omega, 1, 1)),
    "rows exchanged": lambda A, R, kappa, omega: (A, R, kappa[::-1].copy(), omega),
    "transposed": lambda A, R, kappa, omega: (np.swapaxes(A, 1, 2).copy(), R, kappa, omega),
    "a root off by 1e-6": lambda A, R, kappa, omega: (A, R * (1 + 1e-6), kappa, omega),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_seen(name):
    problem = make(6, 3)
    wrong, at = WRONG[name](*problem), targets(6, 3)
    with pytest.raises(AssertionError):
        assert_draws(lambda noise: draw(wrong, noise), problem)
    with pytest.raises(AssertionError):
        assert_moments(*moments(wrong, at), problem, at)


def test_noise_of_a_wrong_size_is_seen():
    problem = make(5, 2)
    with pytest.raises(AssertionError):
        assert_draws(lambda noise: draw(problem, 1.0001 * noise), problem)


def test_a_row_is_the_same_in_any_company():
    problem = make(6, 3, n_rows=5)
    noise = np.random.default_rng(3).normal(size=(5, 6, 3))
    whole, at = draw(problem, noise), targets(6, 3)
    for row in range(5):
        alone = (*problem[:2], problem[2][row : row + 1], problem[3][row : row + 1])
        np.testing.assert_array_equal(draw(alone, noise[row : row + 1]), whole[row : row + 1])
        for one, all_ in zip(moments(alone, at), moments(problem, at)):
            np.testing.assert_array_equal(one, all_[row : row + 1])


def test_inputs_are_left_alone():
    problem, noise = make(4, 2), np.random.default_rng(4).normal(size=(3, 4, 2))
    at = targets(4, 2)
    before = [a.copy() for a in (*problem, noise, *at)]
    draw(problem, noise)
    moments(problem, at)
    for a, b in zip((*problem, noise, *at), before):
        np.testing.assert_array_equal(a, b)


def test_no_rows():
    transition, root, kappa, omega = make(3, 2)
    assert draw((transition, root, kappa[:0], omega[:0]), np.zeros((0, 3, 2))).shape == (0, 3, 2)


@pytest.mark.skipif(PLAIN, reason="needs the compiler")
def test_one_signature_per_kernel():
    problem = make(2, 2)
    moments(problem, targets(2, 2))
    white = draw(problem, np.zeros((3, 2, 2)))
    markov.run_rows(*problem[:2], white, np.empty_like(white))
    for name in ("draw_rows", "run_rows", "moment_rows"):
        assert len(getattr(markov, name).signatures) == 1
