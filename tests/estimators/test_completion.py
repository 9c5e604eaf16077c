"""The rest of rows given a part: correlated multinomials against quadrature and against closed forms."""

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import logsumexp

from polystick import CorrelatedMultinomial, DirichletMultinomial, Gibbs, MeanField
from polystick.scores import bootstrap_difference, log_mean_exp, split_words

FEW = Gibbs(n_draws=16, n_burn=100, n_chains=1)
NATS = 0.01  # of error that 8 proposals for each draw of the parameters may leave


def simulated(alpha, n, largest, seed):
    rng = np.random.default_rng(seed)
    return rng.multinomial(rng.integers(0, largest, n), rng.dirichlet(alpha, n))


def quadrature(model, counts, n_points=80):
    """Return the log evidence of rows under each draw of the parameters, (n, S), by brute force."""
    k = model.model_.n_sticks
    z, w = hermegauss(n_points)
    points = np.stack(np.meshgrid(*k * [z], indexing="ij"), axis=-1).reshape(-1, k)
    log_w = np.log(np.stack(np.meshgrid(*k * [w / w.sum()], indexing="ij"), -1)).sum(-1).ravel()
    found = []
    for mean, cov in model._parameters(16):
        log_pi = model.decomposition_.log_probabilities(mean + points @ np.linalg.cholesky(cov).T)
        found.append(logsumexp(counts @ log_pi.T + log_w, axis=1))
    return np.stack(found, axis=1)


def rms(gap):
    return np.sqrt(np.mean(np.square(gap)))


@pytest.mark.parametrize("alpha", [[2.0, 1.0], [3.0, 1.0, 0.5]], ids=["K = 2", "K = 3"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_completion_meets_quadrature(alpha, share):
    model = CorrelatedMultinomial(inference=FEW, random_state=0, n_jobs=1)
    model.fit(simulated(alpha, 60, 40, seed=1))
    test = simulated(alpha, 50, 40, seed=2)
    seen, rest = (part.toarray() for part in split_words(test, share, 0))
    exact = log_mean_exp(quadrature(model, test) - quadrature(model, seen), axis=1)
    found = model.score_samples(rest, observed=seen, coefficient=False)
    assert rms(found - exact) < NATS
    blind = model.score_samples(rest, coefficient=False)
    assert rms(blind - exact) > 0.1  # what a row told is used


@pytest.mark.parametrize("n_scored", [1, 40])
def test_the_ratio_is_closer_than_weights_of_the_observed_part(n_scored):
    """Why both parts are proposed together, be the rest small or large."""
    alpha = [3.0, 1.0, 0.5]
    model = CorrelatedMultinomial(inference=FEW, random_state=0, n_jobs=1)
    model.fit(simulated(alpha, 60, 40, seed=1))
    rng = np.random.default_rng(3)
    pi = rng.dirichlet(alpha, 50)
    seen, rest = rng.multinomial(20, pi), rng.multinomial(n_scored, pi)
    exact = log_mean_exp(quadrature(model, seen + rest) - quadrature(model, seen), axis=1)

    def weigh(shard, psi, log_weights):
        log_pi = model.decomposition_.log_probabilities(psi)
        values = np.einsum("nk,ndk->nd", rest[shard.rows.astype(int)], log_pi)
        return logsumexp(np.log(model._weights(log_weights)) + values, axis=1)

    weighed = np.concatenate(model._propose(seen, 128, weigh))
    found = model.score_samples(rest, observed=seen, coefficient=False, n_draws=128)
    assert rms(found - exact) < 0.5 * rms(weighed - exact)


@pytest.mark.parametrize("inference", [FEW, MeanField(n_draws=16)], ids=["gibbs", "mean field"])
def test_probabilities_of_a_part_are_those_of_the_next_count(inference):
    X = simulated([3.0, 1.0, 0.5, 0.5], 40, 40, seed=1)
    model = CorrelatedMultinomial(inference=inference, random_state=0, n_jobs=1).fit(X)
    nexts = [model.score_samples(np.tile(e, (40, 1)), observed=X) for e in np.eye(4, dtype=int)]
    probabilities = np.exp(nexts).T
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=NATS)
    pi, sd = model.predict_proba(X, return_std=True, n_draws=1024)
    assert rms((probabilities - pi) / sd) < 0.05


def test_the_whole_is_its_part_and_the_rest_under_each_draw_of_the_parameters(monkeypatch):
    """Over several draws it is so but for what a row would tell of them."""
    X = simulated([3.0, 1.0, 0.5], 40, 40, seed=1)
    model = CorrelatedMultinomial(inference=FEW, random_state=0, n_jobs=1).fit(X)
    first = model._parameters(16)[:1]
    monkeypatch.setattr(CorrelatedMultinomial, "_parameters", lambda self, n: first)
    seen, rest = (part.toarray() for part in split_words(X, 0.5, 0))
    whole, part = (model.score_samples(x, coefficient=False) for x in (X, seen))
    given = model.score_samples(rest, observed=seen, coefficient=False)
    np.testing.assert_allclose(part + given, whole, atol=1e-9)


def test_rows_of_a_dirichlet_law_are_completed_almost_as_well_as_by_its_closed_form():
    alpha = np.array([6.0, 4.0, 3.0, 2.0])
    train, test = (simulated(alpha, 400, 60, seed) for seed in (1, 2))
    ours = CorrelatedMultinomial(inference=MeanField(), random_state=0).fit(train)
    theirs = DirichletMultinomial(random_state=0).fit(train)
    assert np.abs(np.log(theirs.concentration_ / alpha)).max() < 0.3
    seen, rest = (part.toarray() for part in split_words(test, 0.5, 0))
    scores = [m.score_samples(rest, observed=seen, coefficient=False) for m in (theirs, ours)]
    gain = bootstrap_difference(*scores, rest)
    assert -3 * gain.standard_error < gain.estimate < 0.01
    unaware = ours.score_samples(rest, coefficient=False)
    assert bootstrap_difference(scores[1], unaware, rest).lower > 0.02


def test_completion_has_the_same_bits_on_any_number_of_threads():
    X = simulated([3.0, 1.0, 0.5], 150, 40, seed=1)
    model = CorrelatedMultinomial(inference=FEW, random_state=0, n_jobs=1).fit(X)
    one = model.score_samples(X, observed=0.5)
    np.testing.assert_array_equal(model.set_params(n_jobs=3).score_samples(X, observed=0.5), one)


def test_shares_of_weights_cannot_be_split():
    X = simulated([3.0, 1.0, 0.5], 30, 40, seed=1) / 2
    model = CorrelatedMultinomial(inference=MeanField(n_draws=8), random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"whole numbers.*split one by one.*round"):
        model.score(X, observed=0.5)
    assert np.isfinite(model.score(X, observed=X))
