"""Sticks of a walk, each with what ties it to the others: one dense Gaussian, and its precision."""

import numpy as np
import pytest

import naive_walk_sticks as naive
from polystick.kernels import walk_sticks
from polystick.keys import Key

STARTS = np.array([0, 6, 7, 12])


def make(q, seed=0, large=1.0):
    """Return the law of a stick and its potential, empty at some steps."""
    rng = np.random.default_rng(seed)
    n = STARTS[-1]
    moves = rng.standard_normal((n, q))
    moves[STARTS[:-1]] = 0.0
    omega = large * rng.exponential(1.0, n) * (rng.random(n) < 0.7)
    kappa = rng.standard_normal(n) * omega + 0.3 * (omega > 0)
    root = rng.standard_normal((q, q + 2))
    return (
        walk_sticks.Walk(STARTS, moves, 0.3),
        (kappa, omega),
        (rng.standard_normal(3), 1.7),
        (root @ root.T, rng.standard_normal(q)),
    )


def filtered(law, field, first, about):
    """Return what the kernel finds: filtered moments, the precision of b and its linear term."""
    gram, linear = (part.copy() for part in about)
    out = np.empty((STARTS[-1], len(linear) + 2))
    walk_sticks.filter_walk(law, *field, *first, out, gram, linear)
    return out, np.triu(gram) + np.triu(gram, 1).T, linear


@pytest.mark.parametrize("large", [1e-3, 1.0, 1e9])
@pytest.mark.parametrize("q", [0, 1, 4])
def test_b_and_the_path_are_one_gaussian(q, large):
    law, field, first, about = make(q, large=large)
    mean, cov = naive.joint(*law, *field, *first, *about)
    out, gram, linear = filtered(law, field, first, about)
    tie = np.linalg.solve(gram, linear) if q else linear
    np.testing.assert_allclose(tie, mean[:q], rtol=1e-5, atol=1e-7)
    path, silence = np.empty(STARTS[-1]), np.zeros(STARTS[-1])
    walk_sticks.draw_back(law, out, 1.0, tie, silence, path)
    np.testing.assert_allclose(path, mean[q:], rtol=1e-5, atol=1e-6)
    # deviations: a root of the covariance, column by column
    ties = np.linalg.inv(np.linalg.cholesky(gram)).T if q else np.zeros((0, 0))
    columns = [np.concatenate([b, _far(law, out, b, silence)]) for b in ties.T]
    nothing = np.zeros(q)
    columns += [np.concatenate([nothing, _far(law, out, nothing, e)]) for e in np.eye(STARTS[-1])]
    root = np.array(columns).T
    np.testing.assert_allclose(root @ root.T, cov, rtol=1e-4, atol=1e-6 * np.abs(cov).max())


def _far(law, out, tie, noise):
    path = np.empty(STARTS[-1])
    walk_sticks.draw_back(law, out, 0.0, np.ascontiguousarray(tie), noise, path)
    return path


def test_moves_are_those_of_the_other_sticks():
    states = np.random.default_rng(1).standard_normal((12, 4))
    for j in range(4):
        moves = np.empty((12, 3))
        walk_sticks.take_moves(STARTS, states, j, moves)
        np.testing.assert_allclose(moves, naive.moves_of_others(STARTS, states, j))


def test_first_states_given_the_other_sticks():
    """A law that is known, and one integrated out: the variance is an inverse gamma's draw given x."""
    rng = np.random.default_rng(2)
    states, mean, root = rng.standard_normal((12, 3)), rng.standard_normal(3), rng.random((3, 5))
    cov, place = root @ root.T, np.empty(3)
    tie, variance, _ = naive.split_precision(cov, 1)
    first = walk_sticks.LawOfFirst(mean, np.linalg.inv(cov), 0.0)
    found = walk_sticks.place_first(STARTS, states, 1, first, 1.0, place)
    gaps = np.delete(states[STARTS[:-1]] - mean, 1, axis=1)
    np.testing.assert_allclose(found, variance)
    np.testing.assert_allclose(place, mean[1] + gaps @ tie)
    one, place, gamma = np.array([0, 12]), np.empty(1), 2.7
    first = walk_sticks.LawOfFirst(mean, np.linalg.inv(cov), 1.5)  # cov is Psi0 here
    found = walk_sticks.place_first(one, states, 1, first, gamma, place)
    others = naive.split_precision(cov, 1)[2]
    wide = 1.5 + gaps[0] @ np.linalg.solve(others, gaps[0])
    gap = states[0, 1] - mean[1] - gaps[0] @ tie
    np.testing.assert_allclose(found, wide * 0.5 * (variance + gap**2 / wide) / gamma)


def make_noise(k, n, rng):
    normals = rng.standard_normal((k, k - 1)), rng.standard_normal((k, n))
    return walk_sticks.Noise(*normals, *rng.gamma(5, 1, (2, k)))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_sweep_leaves_q_positive_definite_and_no_angle_is_missing(k):
    rng = np.random.default_rng(3)
    n, root = STARTS[-1], rng.standard_normal((k, k + 3))
    states, precision = rng.standard_normal((n, k)), np.linalg.inv(root @ root.T)
    tries = rng.integers(0, 200, (k, n)).astype(float)
    hits = rng.binomial(tries.astype(int), 0.02).astype(float)
    fixed = (tries > 0) & (rng.random((k, n)) < 0.5)
    cells = walk_sticks.Cells(hits, tries, hits - 0.5 * tries, 0.2 * tries, fixed)
    noise = make_noise(k, n, rng)
    before = states.copy(), precision.copy()
    stuck = walk_sticks.draw_sticks(
        Key(1).at("sticks"), STARTS, cells, walk_sticks.LawOfCov(np.eye(k), k + 2.0),
        walk_sticks.LawOfFirst(np.zeros(k), np.eye(k), 0.0), noise, states, precision,
    )  # fmt: skip
    assert stuck == 0
    assert (states != before[0]).all()
    np.testing.assert_allclose(precision, precision.T)
    assert (np.linalg.eigvalsh(precision) > 0).all()


def test_only_the_noise_and_ties_of_a_stick_change_its_part_of_q():
    """After the last stick, Q of the others is what it was before that stick."""
    rng = np.random.default_rng(4)
    n, root = STARTS[-1], rng.standard_normal((2, 6))
    cov = root @ root.T
    states, precision = rng.standard_normal((n, 2)), np.linalg.inv(cov)
    nothing = np.zeros((2, n))
    noise = make_noise(2, n, rng)
    cells = walk_sticks.Cells(nothing, nothing, nothing, nothing, nothing > 0)
    walk_sticks.draw_sticks(
        Key(1).at("sticks"), STARTS, cells, walk_sticks.LawOfCov(np.eye(2), 4.0),
        walk_sticks.LawOfFirst(np.zeros(2), np.eye(2), 0.0), noise, states, precision,
    )  # fmt: skip
    found = np.linalg.inv(precision)
    # stick 0 was moved given stick 1, then stick 1 given stick 0: the increments must fit neither too well
    assert np.isfinite(found).all()
    assert abs(found[0, 0] - cov[0, 0]) > 1e-6
