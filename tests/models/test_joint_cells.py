"""Which cells are drawn together, and how: given the others of their row, or rows whole."""

import numpy as np
import pytest

from polystick import augmentation
from polystick.decomposition import Splits
from polystick.gaussians.normal import Normal, few_active
from polystick.keys import Key
from polystick.models import joint_cells

K = 40


@pytest.fixture
def splits():
    rng = np.random.default_rng(3)
    trials = rng.integers(1, 2000, (12, K))
    trials[3, 5:] = 0  # few splits of this row have trials
    return Splits(rng.binomial(trials, rng.choice([0.0, 0.001, 0.3, 0.5], (12, K))), trials)


def normal(rng):
    root = rng.normal(size=(K, K + 5))
    return Normal(rng.normal(size=K), root @ root.T / K)


def test_cells_that_counts_tell_much_of_stand_alone(splits):
    cells, alone = joint_cells.find(splits)
    odds = np.minimum(splits.successes, splits.trials - splits.successes)
    assert (odds[alone] > joint_cells.TOLD).all()
    assert not alone[odds <= joint_cells.TOLD].any()
    assert alone.any()
    np.testing.assert_array_equal(cells.whole, [3])
    assert few_active(splits.trials)[3]
    joint = np.zeros_like(alone)
    joint.flat[cells.places] = True
    assert (joint ^ alone)[np.r_[:3, 4:12]].all()
    assert not (joint | alone)[3].any()
    np.testing.assert_array_equal(cells.trials, splits.trials[joint])
    np.testing.assert_array_equal(cells.columns, np.nonzero(joint)[1])
    assert (np.diff(np.diff(cells.starts)[cells.order]) >= 0).all()


def test_alone_cells_stay_and_others_move(splits):
    rng = np.random.default_rng(1)
    cells, alone = joint_cells.find(splits)
    psi, rows = rng.normal(size=(12, K)), np.arange(12, dtype=np.uint64)
    drawn = joint_cells.draw(normal(rng), cells, psi, Key(1), rows)
    np.testing.assert_array_equal(drawn[alone], psi[alone])
    assert (drawn[~alone] != psi[~alone]).all()


@pytest.mark.parametrize("worth", [0.0, 0.25])
def test_where_no_cell_stands_alone_it_is_a_draw_of_the_row(worth, monkeypatch):
    rng = np.random.default_rng(2)
    trials = rng.integers(0, 9, (5, K)) + 1
    splits, psi = Splits(rng.binomial(trials, 0.5), trials), rng.normal(size=(5, K))
    monkeypatch.setattr(joint_cells, "WORTH", worth)
    cells, _ = joint_cells.find(splits)
    assert len(cells.whole) == (0 if worth == 0.0 else 5)
    prior, key, rows = normal(rng), Key(4), np.arange(5, dtype=np.uint64)
    potential = augmentation.draw_potential(splits, psi, key.at("omega"), rows)
    expected = prior.draw(potential, key.normals("psi", rows, 2 * K))
    np.testing.assert_allclose(
        joint_cells.draw(prior, cells, psi, key, rows), expected, rtol=1e-8, atol=1e-9
    )
