"""Rows whose terms are made in one loop, chunk by chunk: what each is does not depend on its neighbours."""

import numpy as np
import pytest

from polystick.augmentation import log_likelihood
from polystick.decomposition import Decomposition, Splits
from polystick.kernels import splits

RNG = np.random.default_rng(9)


@pytest.mark.parametrize("k", [1, 5, 40, 300])
@pytest.mark.parametrize("most", [0, 1, 30], ids=["empty", "single", "counts"])
def test_log_likelihoods_of_short_rows_are_those_of_their_splits(k, most):
    trials = RNG.integers(0, most + 1, (301, k))
    trials[::7] = np.minimum(trials[::7], 1)  # single ones among others
    yes, psi = RNG.binomial(trials, 0.4), 3.0 * RNG.standard_normal((301, k))
    psi[5] = 800.0
    expected = np.where(trials > 0, log_likelihood(Splits(yes, trials), psi), 0.0).sum()
    assert splits.log_likelihood(yes, trials, psi) == pytest.approx(expected, rel=1e-10, abs=1e-8)


@pytest.mark.parametrize("n_categories", [2, 6, 300])
def test_probabilities_of_rows_are_the_same_in_any_company(n_categories):
    tree = Decomposition.balanced(n_categories)
    psi = 3.0 * RNG.standard_normal((301, n_categories - 1))
    whole = tree.log_probabilities(psi)
    alone = np.concatenate([tree.log_probabilities(row[None]) for row in psi])
    np.testing.assert_array_equal(whole, alone)
