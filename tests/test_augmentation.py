"""The waist: drawn and expected potentials agree, and empty sticks leave nothing."""

import numba
import numpy as np
import pytest
from scipy.stats import binom

from polystick import augmentation
from polystick.decomposition import Decomposition, RaggedSplits, Splits
from polystick.keys import Key
from statistics_tools import MAX_Z, z_scores

N = 300 if numba.config.DISABLE_JIT else 20_000
COUNTS = np.array([[3, 0, 5, 0], [0, 0, 0, 0], [0, 40, 0, 2]])
PSI = np.array([[0.7, -1.2, 0.1], [1.0, 2.0, -3.0], [-4.0, 1.5, 9.0]])
SPLITS = Decomposition.sticks(range(4)).split(COUNTS)
ROWS = np.arange(3, dtype=np.uint64)


def test_expected_potential_is_the_mean_of_drawn_ones():
    for i in range(len(COUNTS)):
        splits = Splits(*(np.repeat(part[i : i + 1], N, axis=0) for part in SPLITS))
        psi = np.repeat(PSI[i : i + 1], N, axis=0)
        rows = np.arange(N, dtype=np.uint64)
        drawn = augmentation.draw_potential(splits, psi, Key(1).at("omega"), rows)
        expected = augmentation.expected_potential(Splits(*(p[i] for p in SPLITS)), PSI[i])
        np.testing.assert_array_equal(drawn.kappa[0], expected.kappa)
        active = SPLITS.trials[i] > 0
        z = z_scores(drawn.omega[:, active], expected.omega[active])
        assert np.abs(z).max(initial=0) < MAX_Z
        assert not drawn.omega[:, ~active].any()
        wrong = z_scores(drawn.omega[:, active], 1.05 * expected.omega[active])
        assert numba.config.DISABLE_JIT or not active.any() or np.abs(wrong).max() > MAX_Z


def test_empty_sticks_are_zero_zero():
    for potential in (
        augmentation.draw_potential(SPLITS, PSI, Key(1).at("omega"), ROWS),
        augmentation.expected_potential(SPLITS, np.abs(PSI)),
        augmentation.quadratic_potential(SPLITS, PSI),
    ):
        empty = SPLITS.trials == 0
        assert empty.any()
        assert not potential.kappa[empty].any()
        assert not potential.omega[empty].any()


def test_ragged_rows_have_the_bits_of_dense_ones():
    row, node = np.nonzero(SPLITS.trials)
    starts = np.searchsorted(row, np.arange(4))
    ragged = RaggedSplits(starts, node, SPLITS.successes[row, node], SPLITS.trials[row, node])
    key = Key(1).at("omega")
    dense = augmentation.draw_potential(SPLITS, PSI, key, ROWS)
    flat = augmentation.draw_potential(ragged, PSI[row, node], key, ROWS)
    for whole, part in zip(dense, flat):
        np.testing.assert_array_equal(whole[row, node], part)


def test_log_likelihood_is_binomial():
    splits = Splits(np.array([[3, 0, 7]]), np.array([[5, 0, 7]]))
    psi = np.array([[0.3, 2.0, -800.0]])
    value = augmentation.log_likelihood(splits, psi)
    p = 1 / (1 + np.exp(-0.3))
    assert value[0, 0] == pytest.approx(binom.logpmf(3, 5, p) - np.log(10))
    assert value[0, 1] == 0
    assert value[0, 2] == pytest.approx(-5600.0)


def test_quadratic_potential_is_the_second_order_expansion():
    splits, psi, h = Splits(np.array([3.0]), np.array([10.0])), np.array([0.8]), 1e-4
    kappa, omega = augmentation.quadratic_potential(splits, psi)
    values = [augmentation.log_likelihood(splits, psi + d)[0] for d in (-h, 0, h)]
    slope, curvature = (
        (values[2] - values[0]) / (2 * h),
        (values[2] - 2 * values[1] + values[0]) / h**2,
    )
    assert (kappa - omega * psi)[0] == pytest.approx(slope, rel=1e-5)
    assert omega[0] == pytest.approx(-curvature, rel=1e-5)
