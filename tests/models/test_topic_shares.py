"""Shares of topics: links and back, new names, sums that add up."""

import numpy as np
import pytest

from polystick.decomposition import Decomposition
from polystick.keys import Key
from polystick.models.softmax_link import Softmax
from polystick.models.topic_shares import NormalShares, Sticks
from polystick.population import LearnedScale
from statistics_tools import MAX_Z
from topic_tools import PRIOR

LINKS = {
    "sticks": Sticks(Decomposition.sticks([0, 1, 2, 3])),
    "balanced": Sticks(Decomposition.balanced(4)),
    "softmax": Softmax(4, 0.3),
}
over_links = pytest.mark.parametrize("link", LINKS.values(), ids=LINKS.keys())


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


@over_links
def test_the_link_and_back(link, rng):
    psi = rng.normal(size=(6, link.n_dims))
    shares = link.shares(psi)
    assert shares.shape == (6, link.n_topics)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(link.log_shares(psi)), shares)
    np.testing.assert_allclose(link.shares(link.psi(np.log(shares) + 7.0)), shares)


@over_links
def test_new_names_of_psi_are_those_of_shares(link, rng):
    psi, order = rng.normal(size=(6, link.n_dims)), np.array([2, 0, 3, 1])
    np.testing.assert_allclose(link.shares(link.rename(psi, order)), link.shares(psi)[:, order])


@over_links
def test_the_renamed_law_is_that_of_renamed_psi(link, rng):
    k, order = link.n_dims, np.array([2, 0, 3, 1])
    mean, root = rng.normal(size=k), 0.5 * rng.normal(size=(k, k)) + np.eye(k)
    psi = link.rename(mean + rng.normal(size=(20_000, k)) @ root.T, order)
    found, cov = link.rename_law(mean, root @ root.T, order, Key(3))
    sd = np.sqrt(np.diag(cov))
    error = sd * np.sqrt(1 / 4096 + 1 / 20_000)
    assert (np.abs(found - psi.mean(axis=0)) < MAX_Z * error).all()
    gap = (cov - np.cov(psi, rowvar=False)) / np.outer(sd, sd)
    assert np.abs(gap).max() < MAX_Z * np.sqrt(
        5 * (1 / 4096 + 1 / 20_000)
    )  # tails are a little wide


def test_sums_add_up_and_are_scaled(rng):
    shares, psi = NormalShares(PRIOR), rng.normal(size=(9, 2))
    whole = shares.statistics(psi, {})
    parts = shares.statistics(psi[:4], {}) + shares.statistics(psi[4:], {})
    thrice, many = whole.scaled(3), shares.statistics(np.tile(psi, (3, 1)), {})
    for name in ("n_rows", "total", "outer"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name))
        np.testing.assert_allclose(getattr(thrice, name), getattr(many, name))


@pytest.mark.parametrize("law", [PRIOR, LearnedScale(np.array([0.3, -0.4]))])
def test_a_start_is_where_documents_are(law, rng):
    """With many documents the start has their mean and covariance, whatever the law."""
    psi = rng.multivariate_normal([2.0, -1.0], [[2.0, 0.5], [0.5, 1.0]], 5000)
    start = NormalShares(law).start(psi, Key(1))
    assert set(start) == set(law.parameter_type._fields)
    np.testing.assert_allclose(start["mean"], psi.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(start["cov"], np.cov(psi, rowvar=False), rtol=0.05, atol=0.02)
    np.testing.assert_allclose(start["precision"] @ start["cov"], np.eye(2), atol=1e-9)
