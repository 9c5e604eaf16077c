"""States whose dynamics switch: as the dense joint Gaussian, and as a chain where there is one regime."""

import itertools

import numpy as np
import pytest
from scipy import stats

from naive_chain import problem
from polystick.gaussians.dynamics import Chain
from polystick.gaussians.switching import SwitchingChain
from polystick.kernels import switching_chain

STARTS = np.array([0, 4, 4, 5, 9])


def make(d, n_regimes, rng, n_steps=9):
    """Return a chain, regimes, shifts and potentials."""
    parts = [problem(n_steps, d, rng, noise_scale=10.0**-r) for r in range(n_regimes)]
    first = parts[0].initial_mean, parts[0].initial_cov
    chain = SwitchingChain(
        *first, np.array([p.dynamics for p in parts]), np.array([p.dynamics_cov for p in parts])
    )
    regimes = rng.integers(n_regimes, size=n_steps).astype(np.int32)
    return chain, regimes, rng.normal(size=(n_steps, d)), parts[0].potential


def dense(chain, regimes, shifts, potential, a, b, forgets=False):
    """Return the mean and the covariance of the states of one sequence, by the joint precision."""
    d, n = len(chain.initial_mean), b - a
    J, h = np.zeros((n * d, n * d)), np.zeros(n * d)
    for s in range(n):
        here = slice(s * d, (s + 1) * d)
        r = regimes[a + s - forgets * (s > 0)]
        if s == 0:
            inverse, move, shift = np.linalg.inv(chain.initial_cov), None, chain.initial_mean
        else:
            inverse, move = np.linalg.inv(chain.dynamics_cov[r]), chain.dynamics[r]
            shift, past = shifts[a + s], slice((s - 1) * d, s * d)
            J[past, past] += move.T @ inverse @ move
            J[past, here] -= move.T @ inverse
            J[here, past] -= inverse @ move
            h[past] -= move.T @ inverse @ shift
        J[here, here] += inverse + potential[1][a + s]
        h[here] += inverse @ shift + potential[0][a + s]
    cov = np.linalg.inv(J)
    return cov @ h, cov


def draws(chain, regimes, shifts, potential):
    """Return the mean (S D,) and a root (S D, S D) of the law of draws: they are affine in the noise."""
    n, d = potential[0].shape
    given = {"regimes": regimes, "shifts": shifts, "starts": STARTS}
    mean = chain.draw(*potential, np.zeros((n, d)), **given).ravel()
    units = np.eye(n * d).reshape(n * d, n, d)
    root = np.stack([chain.draw(*potential, e, **given).ravel() - mean for e in units], axis=1)
    return mean, root


@pytest.mark.parametrize(("d", "n_regimes"), [(1, 2), (2, 3), (3, 2)])
def test_draws_have_the_law_of_the_joint(d, n_regimes):
    rng = np.random.default_rng(d)
    given = make(d, n_regimes, rng)
    mean, root = draws(*given)
    cov, wrong = root @ root.T, 0.0
    for a, b in itertools.pairwise(STARTS):
        here = slice(a * d, b * d)
        truth = dense(*given, a, b)
        np.testing.assert_allclose(mean[here], truth[0], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(cov[here, here], truth[1], rtol=1e-7, atol=1e-9)
        cov[here, here] = 0.0
        wrong = max(wrong, np.abs(mean[here] - dense(*given, a, b, forgets=True)[0]).max(initial=0))
    np.testing.assert_allclose(cov, 0.0, atol=1e-12)  # sequences are independent
    assert wrong > 1e-3  # a regime that comes a step late is seen


def test_one_regime_is_a_chain():
    rng = np.random.default_rng(7)
    chain, _, shifts, potential = make(3, 1, rng)
    one = Chain(chain.initial_mean, chain.initial_cov, chain.dynamics[0], chain.dynamics_cov[0])
    noise = rng.normal(size=(9, 3))
    found = chain.draw(*potential, noise, regimes=np.zeros(9), shifts=shifts, starts=STARTS)
    expected = one.draw(*potential, noise, shifts=shifts, starts=STARTS)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_equal_regimes_need_not_be_told_apart():
    rng = np.random.default_rng(8)
    chain, regimes, shifts, potential = make(2, 1, rng)
    twice = SwitchingChain(
        chain.initial_mean, chain.initial_cov, chain.dynamics[[0, 0]], chain.dynamics_cov[[0, 0]]
    )
    noise, regimes = rng.normal(size=(9, 2)), rng.integers(2, size=9)
    given = {"shifts": shifts, "starts": STARTS}
    found = twice.draw(*potential, noise, regimes=regimes, **given)
    expected = chain.draw(*potential, noise, regimes=np.zeros(9), **given)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_densities_are_those_of_the_steps():
    rng = np.random.default_rng(9)
    chain, *_ = make(2, 3, rng)
    states, shifts = rng.normal(size=(6, 2)), rng.normal(size=(3, 6, 2))
    follows = np.array([False, True, True, False, True, True])
    found = chain.log_densities(states, shifts, follows)
    for s, r in np.ndindex(6, 3):
        expected = 0.0
        if follows[s]:
            mean = chain.dynamics[r] @ states[s - 1] + shifts[r, s]
            law = stats.multivariate_normal(mean, chain.dynamics_cov[r])
            expected = law.logpdf(states[s]) + np.log(2 * np.pi)  # of two dimensions, left out
        np.testing.assert_allclose(found[s, r], expected, rtol=1e-9, atol=1e-9)


def test_one_signature_per_kernel():
    for kernel in (switching_chain.pass_back_in_place, switching_chain.draw_forward):
        assert len(getattr(kernel, "signatures", [0])) == 1
