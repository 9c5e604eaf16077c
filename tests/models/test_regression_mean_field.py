"""Mean field of regressions: its bound never falls and is one, factors are near the posterior."""

import numpy as np
import pytest
from scipy.special import logsumexp

from polystick import Gibbs, MeanField
from polystick.decomposition import Decomposition
from polystick.keys import Key
from polystick.models import regression_factors
from polystick.models.regression import StickRegression
from polystick.models.regression_state import RegressionPrior

N = 12
X = np.column_stack([np.ones(N), np.linspace(-1, 1, N)])
ONE = np.array([0, 0, 1, 1, 2, 2, 2, 0, 3, 3, 1, 0])[:, None]
CROSSED = np.column_stack([ONE[:, 0], [0, 1, 0, 1, 0, 1, 1, 0, 0, 0, 1, 1]])
NONE = np.zeros((N, 0), int)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
CASES = {
    "groups and full": (ONE, "full"),
    "crossed and diagonal": (CROSSED, "diagonal"),
    "crossed alone": (CROSSED, None),
    "full alone": (NONE, "full"),
    "neither": (NONE, None),
}


def model_of(groups, overdispersion):
    sizes = tuple(int(each.max()) + 1 for each in groups.T)
    mean, scale = np.array([[-0.5, 0.3], [0.2, 0.0]]), np.array([0.8, 0.6])
    prior = RegressionPrior(mean, scale, sizes, overdispersion, 0.7)
    return StickRegression(prior, Decomposition.balanced(3))


def counts_of(model, groups, total=25, seed=3):
    rng = np.random.default_rng(seed)
    return model.simulate(np.full(N, total), X, groups, rng)[2]


def climb(model, shards, n_sweeps=60):
    return MeanField(tolerance=1e-9, max_sweeps=n_sweeps).run(model, shards, seed=0)


def bounds(posterior):
    return posterior.tree["optimisation"]["elbo"].to_numpy()


@pytest.mark.parametrize("name", CASES)
def test_the_bound_never_falls_wherever_rows_are_cut(name):
    groups, overdispersion = CASES[name]
    model = model_of(groups, overdispersion)
    counts = counts_of(model, groups)
    whole, cut = (bounds(climb(model, model.shards(counts, X, groups, size))) for size in (512, 5))
    assert np.diff(whole).min() > -1e-9
    np.testing.assert_allclose(cut, whole, rtol=1e-9)
    assert whole[-1] > whole[0] + 1


@pytest.mark.parametrize("wrong", ["entropy of noise", "cost of the line", "line of noise"])
def test_a_wrong_bound_falls(wrong, monkeypatch):
    """What one kind of sweeps says would not be what the other does."""
    groups, overdispersion = CASES["groups and full"]
    model = model_of(groups, overdispersion)
    moments, of_line = regression_factors.moments_of_rows, regression_factors._of_line
    if wrong == "cost of the line":
        monkeypatch.setattr(regression_factors, "_of_line", lambda *a: 0.9 * of_line(*a))
    elif wrong == "entropy of noise":
        monkeypatch.setattr(
            regression_factors, "moments_of_rows", lambda *a: (*moments(*a)[:3], 0.0)
        )
    else:
        monkeypatch.setattr(
            regression_factors,
            "moments_of_rows",
            lambda expected, *a: moments(
                expected._replace(line=expected.line._replace(cov=0.0 * expected.line.cov)), *a
            ),
        )
    shards = model.shards(counts_of(model, groups), X, groups)
    assert np.diff(bounds(climb(model, shards))).min() < -1e-3


def test_the_bound_is_below_the_evidence():
    """Without noise and groups the evidence is an average over the prior."""
    model = model_of(NONE, None)
    counts = counts_of(model, NONE, total=4)
    (shard,) = model.shards(counts, X, NONE)
    rng = np.random.default_rng(0)
    drawn = model.prior.mean + model.prior.scale[:, None] * rng.standard_normal((200_000, 2, 2))
    log_pi = np.log(model.probabilities(np.einsum("na,sak->snk", X, drawn)))
    values = np.einsum("nk,snk->s", counts, log_pi)
    evidence = logsumexp(values) - np.log(len(values)) + shard.log_coefficient
    bound = bounds(climb(model, [shard]))[-1]
    assert -1.0 < bound - evidence < 0.02


@pytest.mark.parametrize(
    ("name", "least"), [("groups and full", 0.5), ("crossed alone", 0.4), ("neither", 0.7)]
)
def test_factors_are_near_the_posterior(name, least):
    """Factors are too narrow, most where the law of a few groups is apart from them."""
    groups, overdispersion = CASES[name]
    model = model_of(groups, overdispersion)
    shards = model.shards(counts_of(model, groups, total=60), X, groups)
    exact = Gibbs(n_draws=1500, n_burn=200, n_chains=1).run(model, shards, seed=1)
    near = climb(model, shards, 300)
    psi = [
        np.einsum("na,...ak->...nk", X, posterior["coefficients"][0])
        + (
            posterior["group_effects"][0][:, groups + model.prior.edges[:-1]].sum(axis=2)
            if groups.size
            else 0.0
        )
        for posterior in (exact, near)
    ]
    sd = psi[0].std(axis=0)
    assert (np.abs(psi[1].mean(axis=0) - psi[0].mean(axis=0)) / sd).max() < 0.6
    ratio = psi[1].std(axis=0) / sd
    assert ratio.min() > least
    assert ratio.max() < 1.1


def test_draws_from_factors_are_those_of_the_line():
    groups, overdispersion = CASES["crossed and diagonal"]
    model = model_of(groups, overdispersion)
    factor = climb(model, model.shards(counts_of(model, groups), X, groups), 30).factor
    drawn = [model.draw_from_factor(factor, Key(1, i)) for i in range(4000)]
    data = model.prior.data(X, groups)
    lines = np.stack([model.prior.line(each, data) for each in drawn])
    expected = regression_factors.expect(model.prior, factor).line
    mean, cov = regression_factors.regression.moments_of_lines(expected, data.columns, data.groups)
    sd = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
    assert (np.abs(lines.mean(axis=0) - mean) / sd).max() < 0.08
    np.testing.assert_allclose(lines.std(axis=0), sd, rtol=0.06)
    sizes = np.stack([np.diagonal(each.covs, axis1=1, axis2=2) for each in drawn])
    laws = zip(model.prior.laws, factor.spreads)
    told = [np.diag(f.scale) / (f.degrees - (0 if law.diagonal else 1)) for law, f in laws]
    np.testing.assert_allclose((1 / sizes).mean(axis=0), 1 / np.array(told), rtol=0.1)


def test_counts_may_be_weights():
    model = model_of(NONE, None)
    counts = counts_of(model, NONE)
    (whole,), (half,) = (model.shards(by * counts, X, NONE) for by in (1, 0.5))
    np.testing.assert_allclose(half.splits.trials, 0.5 * whole.splits.trials)
    wide, narrow = (
        climb(model, [shard])["coefficients"][0].std(axis=0).mean() for shard in (half, whole)
    )
    assert wide > narrow
