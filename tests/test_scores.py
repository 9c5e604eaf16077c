"""Scores and weighted draws."""

import numpy as np
import pytest

from polystick import scores


def test_log_mean_exp():
    values = np.array([[0.0, -1e4, np.log(3)], [1e4, 1e4, 1e4]])
    np.testing.assert_allclose(scores.log_mean_exp(values, axis=1), [np.log(4 / 3), 1e4])


def test_effective_draws():
    weights = np.log([[1.0, 1.0, 1.0, 1.0], [1.0, 1e-300, 1e-300, 1e-300]])
    np.testing.assert_allclose(scores.effective_draws(weights, axis=1), [4.0, 1.0])
    np.testing.assert_allclose(scores.effective_draws(np.log([1.0, 2.0, 3.0]), axis=0), 36 / 14)


def test_resampling_keeps_each_draw_as_often_as_its_weight_says():
    weights = np.array([[0.5, 0.25, 0.25, 0.0], [0.0, 0.0, 0.0, 1.0]])
    draws = np.arange(8.0).reshape(2, 4, 1)
    found = scores.resampled(weights, draws, 8)[..., 0]
    assert sorted(found[:, 0]) == [0, 0, 0, 0, 1, 1, 2, 2]
    assert set(found[:, 1]) == {7.0}
    assert scores.resampled(np.array([[0.3, 0.7]]), draws[:1, :2], 1)[0, 0] == 1  # the middle


def test_per_count():
    assert scores.per_count(np.array([-2.0, -4.0]), np.array([[1, 2], [0, 0]])) == pytest.approx(
        -2.0
    )
    assert scores.per_count(np.zeros(1), np.zeros((1, 2))) == 0.0
