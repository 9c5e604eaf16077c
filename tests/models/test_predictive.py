"""What a Gaussian law of psi says of probabilities and counts: integrals against draws."""

import itertools

import numba
import numpy as np
import pytest

from polystick.decomposition import decompose
from polystick.models import predictive
from polystick.models.predictive import Latent
from statistics_tools import MAX_Z, z_scores

PLAIN = numba.config.DISABLE_JIT
N = 2000 if PLAIN else 20_000
TREES = {name: decompose(name, n_categories=5) for name in ("given", "balanced")}
TREES["nested"] = decompose(((3, (0, 4)), (2, 1)))


def some_latent(n=3):
    rng = np.random.default_rng(1)
    return Latent(rng.normal(0, 1.5, (4, n)), rng.gamma(2.0, 1.0, (4, n)))


def drawn(decomposition, latent, n_draws=N):
    """Return draws (n_draws, n, K) of pi, the plain way."""
    noise = np.random.default_rng(2).standard_normal((n_draws, *latent.mean.T.shape))
    return decomposition.probabilities(latent.mean.T + np.sqrt(latent.variance.T) * noise)


@pytest.mark.parametrize("decomposition", TREES.values(), ids=TREES)
def test_moments_are_those_of_draws(decomposition):
    latent = some_latent()
    pi = drawn(decomposition, latent)
    expected, squares = predictive.expected_moments(decomposition, latent)
    alone = predictive.expected_probabilities(decomposition, latent)
    np.testing.assert_allclose(alone, expected, rtol=1e-12)
    np.testing.assert_allclose(expected.sum(axis=1), 1.0, rtol=1e-12)
    assert np.abs(z_scores(pi, expected)).max() < MAX_Z
    assert np.abs(z_scores(pi**2, squares)).max() < MAX_Z
    plugged_in = decomposition.probabilities(latent.mean.T)  # the authors' code has no variance
    assert np.abs(z_scores(pi, plugged_in)).max() > 2 * MAX_Z
    assert np.abs(z_scores(pi**2, expected**2)).max() > 2 * MAX_Z


@pytest.mark.parametrize("decomposition", TREES.values(), ids=TREES)
def test_evidence_is_the_average_likelihood(decomposition):
    latent = some_latent()
    counts = np.array([[1, 0, 3, 0, 2], [0, 2, 0, 0, 0], [0, 0, 0, 0, 0]])
    likelihoods = np.prod(drawn(decomposition, latent) ** counts, axis=2)[:, :2]
    found = np.exp(predictive.log_evidence(decomposition, latent, counts))
    assert found[2] == 1.0
    assert np.abs(z_scores(likelihoods, found[:2])).max() < MAX_Z
    pi = predictive.expected_probabilities(decomposition, latent)
    assert np.abs(z_scores(likelihoods, np.prod(pi**counts, axis=1)[:2])).max() > 2 * MAX_Z


def test_evidence_of_all_counts_adds_up_to_one():
    decomposition, latent = TREES["nested"], some_latent(1)
    rows = [c for c in itertools.product(range(4), repeat=5) if sum(c) == 3]
    total = 0.0
    for row in np.array(rows):
        orders = 6 / np.prod([[1, 1, 2, 6][x] for x in row])
        total += orders * np.exp(predictive.log_evidence(decomposition, latent, row[None])[0])
    assert total == pytest.approx(1.0, abs=1e-9)


def test_draws_belong_to_the_row_and_the_state():
    decomposition, latent = TREES["given"], some_latent(6)
    rows = np.arange(6, dtype=np.uint64)
    pi = predictive.draw_probabilities(decomposition, latent, rows, 3, 1)
    part = Latent(*(p[:, 2:5] for p in latent))
    np.testing.assert_array_equal(
        predictive.draw_probabilities(decomposition, part, rows[2:5], 3, 1), pi[2:5]
    )
    for seed, number in ((3, 2), (4, 1)):
        other = predictive.draw_probabilities(decomposition, latent, rows, seed, number)
        assert (other != pi).all()


def test_draws_have_the_law():
    decomposition, latent = TREES["balanced"], some_latent(1)
    wide = Latent(*(np.repeat(part, N, axis=1) for part in latent))
    rows = np.arange(N, dtype=np.uint64)
    pi = predictive.draw_probabilities(decomposition, wide, rows, 5, 0)
    expected, squares = predictive.expected_moments(decomposition, latent)
    assert np.abs(z_scores(pi, expected[0])).max() < MAX_Z
    assert np.abs(z_scores(pi**2, squares[0])).max() < MAX_Z
