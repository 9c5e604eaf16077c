"""Sticks redrawn with their part of the law: against dense algebra, and however the rows are cut."""

import numpy as np
import pytest

from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import Decomposition, Splits
from polystick.gaussians.normal import Normal
from polystick.inference.execution import Threads
from polystick.kernels import columns
from polystick.keys import Key
from polystick.models import weak_sticks
from polystick.models.multinomial import CorrelatedCounts

K, N = 4, 37
PRIOR = NormalInverseWishart(
    np.array([0.5, -1.0, 0.2, 0.1]), 1.5, 3 * np.eye(K) + np.outer([1, 2, 0, 1], [1, 2, 0, 1]), 9.0
)


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


def problem(rng):
    cov = np.linalg.inv(np.cov(rng.normal(size=(K, 30))))
    normal = Normal(rng.normal(size=K), 0.5 * (cov + cov.T))
    trials = rng.integers(0, 60, (N, K))
    successes = rng.binomial(trials, 0.1)
    block = weak_sticks.Block(
        np.arange(N, dtype=np.uint64), successes, trials, (trials > 40) & (successes == 0)
    )
    return normal, block, rng.normal(size=(N, K))


def dense_regression(block, psi, omega, stick, v):
    """Return precision and linear term of b, psi_j integrated out, prior and all."""
    x = psi - PRIOR.mean
    x[:, stick] = 1.0
    others = np.arange(K) != stick
    kappa = block.successes[:, stick] - block.trials[:, stick] / 2
    root = np.diag(1 / (1 + v * omega))
    precision = x.T @ root @ np.diag(omega) @ x
    linear = x.T @ root @ kappa
    precision[np.ix_(others, others)] += PRIOR.scale[np.ix_(others, others)] / v
    precision[stick, stick] += PRIOR.strength / v
    linear[others] += PRIOR.scale[others, stick] / v
    linear[stick] += PRIOR.strength * PRIOR.mean[stick] / v
    return precision, linear


@pytest.mark.parametrize("stick", [0, 2, 3])
def test_coefficients_follow_the_dense_regression(stick, rng):
    _, block, psi = problem(rng)
    omega, noise, v = rng.gamma(2.0, size=N), rng.normal(size=K), 0.7
    weights, linear, law = np.zeros((K, K)), np.zeros(K), np.empty(K + 1)
    table = columns.tabulate(psi, PRIOR.mean)
    columns.add_regression_in_place(
        block.successes, block.trials, omega, table, stick, v, weights, linear
    )
    columns.draw_coefficients(
        PRIOR.mean, PRIOR.strength, PRIOR.scale, stick, v, weights, linear, noise, law
    )
    precision, target = dense_regression(block, psi, omega, stick, v)
    root = np.linalg.cholesky(precision)
    expected = np.linalg.solve(precision, target) + np.linalg.solve(root.T, noise)
    np.testing.assert_allclose(law, [*expected, v], rtol=1e-10)


@pytest.mark.parametrize("stick", [0, 1, 3])
def test_the_law_of_the_other_sticks_stays(stick, rng):
    normal, _, _ = problem(rng)
    mean, precision, kept = normal.mean.copy(), normal.precision.copy(), normal.cov.copy()
    law = np.append(rng.normal(size=K), 0.9)
    columns.put_back_in_place(
        PRIOR.mean, PRIOR.strength, PRIOR.scale, stick, law, 5.0, 30.0, mean, precision, kept
    )
    np.testing.assert_allclose(kept, np.linalg.inv(precision), rtol=1e-9)
    cov, others = np.linalg.inv(precision), np.arange(K) != stick
    among = np.ix_(others, others)
    np.testing.assert_allclose(cov[among], normal.cov[among], rtol=1e-9)
    b = law[:K][others]
    np.testing.assert_allclose(cov[stick, others], normal.cov[among] @ b, rtol=1e-9)
    gap = (
        b @ PRIOR.scale[among] @ b - 2 * b @ PRIOR.scale[others, stick] + PRIOR.scale[stick, stick]
    )
    rate = 0.5 * (5.0 + gap + PRIOR.strength * (law[stick] - PRIOR.mean[stick]) ** 2)
    np.testing.assert_allclose(1 / precision[stick, stick], rate / 30.0, rtol=1e-10)
    np.testing.assert_array_equal(mean[others], normal.mean[others])
    expected = law[stick] + b @ (normal.mean - PRIOR.mean)[others]
    assert mean[stick] == pytest.approx(expected, rel=1e-12)


def cut(block, psi, places):
    parts = [np.split(part, places) for part in block]
    return [weak_sticks.Block(*part) for part in zip(*parts)], np.split(psi, places)


def test_however_rows_are_cut_the_draw_is_the_same(rng):
    normal, block, psi = problem(rng)
    sticks = np.array([2, 0, 3])
    whole, (moved,) = weak_sticks.redraw(PRIOR, normal, [block], [psi], sticks, Key(3, 1))
    blocks, parts = cut(block, psi, [10, 11, 30])
    law, redrawn = weak_sticks.redraw(PRIOR, normal, blocks, parts, sticks, Key(3, 1))
    np.testing.assert_allclose(np.concatenate(redrawn), moved, rtol=1e-9)
    np.testing.assert_allclose(law.cov, whole.cov, rtol=1e-9)
    np.testing.assert_array_equal(moved[:, 1], psi[:, 1])
    with Threads(3) as threads:
        again, mapped = weak_sticks.redraw(
            PRIOR, normal, blocks, parts, sticks, Key(3, 1), threads.map
        )
    np.testing.assert_array_equal(np.concatenate(mapped), np.concatenate(redrawn))
    np.testing.assert_array_equal(again.cov, law.cov)


def test_which_sticks_are_weak_is_read_off_the_counts():
    trials = np.array([[1000, 1000, 3], [2000, 2000, 0]])
    open_share = weak_sticks.left_open(Splits(trials // [2, 1000, 2], trials)) / 2
    assert list(weak_sticks.choose(open_share, Key(1))) == [1, 2]
    many = weak_sticks.choose(np.ones(200), Key(1))
    assert len(set(many)) == weak_sticks.MOST_STICKS
    assert set(many) != set(weak_sticks.choose(np.ones(200), Key(1, 2)))


def test_well_told_rows_are_left_alone(rng):
    model = CorrelatedCounts(
        NormalInverseWishart.weak(np.zeros(2), np.ones(2)), Decomposition.sticks(range(3))
    )
    parameters, rows, counts = model.simulate(np.full(20, 1_000_000), rng)
    found = model.move_together(parameters, model.shards(counts), [rows], Key(1))
    weak = model.shards(counts)[0].open / 20 > weak_sticks.WEAK
    assert not weak.any()
    assert found[0] is parameters
