import numba
import numpy as np
import pytest

from naive_chain import joint, walk_problem
from polystick.kernels import walks

PLAIN = numba.config.DISABLE_JIT
TOLERANCE = 1e-10  # in standard deviations


def make(n_steps, n_walks, seed=0, exponent=0.0, missing=0.3):
    """Make walks with some empty steps, one empty walk and variances of size 10 ** +-exponent."""
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.uniform(-exponent, exponent, (2, n_walks))
    variances = scales * rng.gamma(2.0, size=(2, n_walks))
    seen = rng.random((n_steps, n_walks)) >= missing
    seen[:, n_walks // 2] = False
    omega = seen * rng.gamma(2.0, size=(n_steps, n_walks))
    kappa = seen * rng.normal(size=(n_steps, n_walks))
    return rng.normal(size=n_walks), *variances, kappa, omega


def draw(problem, noise):
    out = np.empty_like(noise)
    walks.draw_walks(*problem, noise, out)
    return out


def one(problem, walk):
    return walk_problem(*(a[..., walk] for a in problem))


def assert_walks(draw, problem):
    """Assert that each walk's draws are those of its joint law, by zeros and unit vectors."""
    n_steps, n_walks = problem[3].shape
    mean = draw(np.zeros((n_steps, n_walks)))
    unit = np.eye(n_steps)[:, :, None] * np.ones(n_walks)
    root = np.array([draw(noise) - mean for noise in unit])
    for walk in range(n_walks):
        truth = joint(one(problem, walk))
        cov = truth.cov[:, 0, :, 0]
        sd = np.sqrt(np.diag(cov))
        size = sd + np.abs(truth.mean[:, 0])
        assert np.all(np.abs(mean[:, walk] - truth.mean[:, 0]) <= TOLERANCE * size)
        gap = np.abs(root[:, :, walk].T @ root[:, :, walk] - cov)
        assert np.all(gap <= TOLERANCE * np.outer(sd, sd) + 1e-15 * np.outer(size, size))


@pytest.mark.parametrize("exponent", [0.0, 4.0])
@pytest.mark.parametrize(("n_steps", "n_walks"), [(1, 1), (1, 3), (6, 1), (9, 5)])
def test_draws_are_those_of_the_joint(n_steps, n_walks, exponent):
    problem = make(n_steps, n_walks, exponent=exponent)
    assert_walks(lambda noise: draw(problem, noise), problem)


def test_variances_from_1e_8_to_1e4():
    problem = make(7, 4)
    for variance in (1e-8, 1e4):
        problem[2][:] = variance
        assert_walks(lambda noise: draw(problem, noise), problem)


@pytest.mark.parametrize("n_walks", [walks.BLOCK - 1, walks.BLOCK, walks.BLOCK + 1])
def test_a_walk_draws_the_same_in_any_company(n_walks):
    problem = make(3, n_walks)
    noise = np.random.default_rng(1).normal(size=(3, n_walks))
    whole = draw(problem, noise)
    for walk in (0, 5, walks.BLOCK - 2, n_walks - 1):
        alone = tuple(np.ascontiguousarray(a[..., walk : walk + 1]) for a in problem)
        column = np.ascontiguousarray(noise[:, walk : walk + 1])
        np.testing.assert_array_equal(draw(alone, column), whole[:, walk : walk + 1])


def test_no_variance_stands_still():
    mean, start, step, kappa, omega = make(5, 3)
    noise = np.random.default_rng(2).normal(size=(5, 3))
    constant = draw((mean, start, 0 * step, kappa, omega), noise)
    np.testing.assert_array_equal(constant, np.broadcast_to(constant[0], (5, 3)))
    known = draw((mean, 0 * start, 0 * step, kappa, omega), noise)
    np.testing.assert_array_equal(known, np.broadcast_to(mean, (5, 3)))


def test_no_potential_is_the_prior():
    mean, start, step, kappa, omega = make(6, 4, missing=1.0)
    noise = np.random.default_rng(3).normal(size=(6, 4))
    steps = np.concatenate([[np.sqrt(start)], np.tile(np.sqrt(step), (5, 1))]) * noise
    expected = mean + np.cumsum(steps, axis=0)
    np.testing.assert_allclose(draw((mean, start, step, kappa, omega), noise), expected, rtol=1e-12)


WRONG = {
    "variances exchanged": lambda p: (p[0], p[2], p[1], p[3], p[4]),
    "no kappa": lambda p: (*p[:3], 0 * p[3], p[4]),
    "potentials late by a step": lambda p: (*p[:4], np.roll(p[4], 1, axis=0)),
    "variance off by 1e-8": lambda p: (*p[:2], p[2] * (1 + 1e-8), *p[3:]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_seen(name):
    problem = make(6, 3)
    wrong = WRONG[name](problem)
    with pytest.raises(AssertionError):
        assert_walks(lambda noise: draw(wrong, noise), problem)


def test_inputs_are_left_alone():
    problem, noise = make(4, 3), np.random.default_rng(4).normal(size=(4, 3))
    before = [a.copy() for a in (*problem, noise)]
    draw(problem, noise)
    for a, b in zip((*problem, noise), before):
        np.testing.assert_array_equal(a, b)


def test_no_steps_or_walks():
    none = np.zeros((0, 3))
    assert draw((*make(2, 3)[:3], none, none), none).shape == (0, 3)
    empty = tuple(a[..., :0] for a in make(2, 3))
    assert draw(tuple(map(np.ascontiguousarray, empty)), np.zeros((2, 0))).shape == (2, 0)


@pytest.mark.skipif(PLAIN, reason="needs the compiler")
def test_one_signature():
    draw(make(2, 2), np.zeros((2, 2)))
    assert len(walks.draw_walks.signatures) == 1
