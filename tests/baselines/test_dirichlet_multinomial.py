"""Dirichlet multinomials: the law and its slopes, the climb, and closed forms against brute force."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import beta, dirichlet_multinomial
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from polystick import DirichletMultinomial
from polystick.baselines import dirichlet_multinomial as law
from polystick.baselines.dirichlet_multinomial import Cells
from polystick.scores import log_coefficients
from statistics_tools import MAX_Z, z_scores

ALPHA = np.array([2.0, 0.7, 0.2, 0.05])


def simulated(alpha, totals, seed=0):
    rng = np.random.default_rng(seed)
    return rng.multinomial(totals, rng.dirichlet(alpha, len(totals)))


def cells(x):
    return Cells.of(scipy.sparse.csr_array(x))


X = simulated(ALPHA, np.random.default_rng(1).integers(0, 60, 80))


def test_the_evidence_is_that_of_scipy():
    model = DirichletMultinomial().fit(X)
    expected = dirichlet_multinomial.logpmf(X, model.concentration_, X.sum(axis=1))
    np.testing.assert_allclose(model.score_samples(X, coefficient=True), expected, atol=1e-11)
    bare = expected - log_coefficients(X)
    np.testing.assert_allclose(model.score_samples(X, coefficient=False), bare, atol=1e-11)
    assert model.score(X) == pytest.approx(bare.sum() / X.sum(), rel=1e-12)


@pytest.mark.parametrize("a", [0.01, 1.0, 7.0])
def test_slopes_and_curvatures_are_those_of_the_density(a):
    point = np.log(ALPHA) + 0.3 * np.random.default_rng(0).normal(size=4)

    def gradient(point):
        alpha = np.exp(point)
        at = law.slopes(alpha, cells(X), a)
        return at.more - alpha * at.less

    h, steps = 1e-5, 1e-5 * np.eye(4)
    ahead, behind = ([law.log_density(point + t * s, cells(X), a) for s in steps] for t in (1, -1))
    np.testing.assert_allclose(
        gradient(point), np.subtract(ahead, behind) / (2 * h), rtol=1e-6, atol=1e-5
    )
    alpha = np.exp(point)
    at = law.slopes(alpha, cells(X), a)
    curvature = np.diag(at.variance - alpha * at.less) + at.bend * np.outer(alpha, alpha)
    bends = np.stack([gradient(point + s) - gradient(point - s) for s in steps]) / (2 * h)
    np.testing.assert_allclose(bends, curvature, rtol=1e-6, atol=1e-5)


def test_the_prior_is_that_of_the_docstring():
    """m ~ Dirichlet(a), A / K ~ F(2, 2), as a density of log alpha: by hand, with the Jacobian."""
    a, K = 0.6, 3
    nothing = cells(np.zeros((2, K)))

    def by_hand(point):
        alpha = np.exp(point)
        A = alpha.sum()
        m = alpha / A
        log_density = (a - 1) * np.log(m).sum() - 2 * np.log1p(A / K)
        return log_density - (K - 1) * np.log(A) + point.sum()

    points = np.random.default_rng(2).normal(size=(5, K))
    gaps = [law.log_density(point, nothing, a) - by_hand(point) for point in points]
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-12)


@pytest.mark.parametrize("x", [1, 50, 10**5])
@pytest.mark.parametrize("a", [1e-8, 0.5, 99.9, 100.1, 1e4, 1e12])
def test_differences_of_gamma_functions_do_not_cancel(a, x):
    """For whole x they are sums."""
    terms = a + np.arange(x)
    expected = [math.fsum(part) for part in (np.log(terms), 1.0 / terms, 1.0 / terms**2)]
    found = [f(np.array(a), x) for f in (law.log_rising, law.digamma_rise, law.trigamma_fall)]
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def hard_tables():
    rng = np.random.default_rng(5)
    shares = rng.dirichlet(np.ones(6))
    wide = simulated(rng.gamma(0.3, 1.0, 130), rng.integers(5, 2000, 208), seed=3)
    empty = X.copy()
    empty[:, 1], empty[3] = 0, 0
    return {
        "empty row and column": empty,
        "one row": X[5:6],
        "one count": np.eye(5)[:1],
        "nothing": np.zeros((3, 4)),
        "208 x 130": wide,
        "no spread": rng.multinomial(1000, shares, size=100),
        "no spread, huge": rng.multinomial(10**9, shares, size=50),
        "equal rows": np.full((9, 3), 10**8),
        "huge": np.round(9e8 * rng.dirichlet([1, 2, 3], 50)),
        "one category each": 1000 * np.eye(6)[rng.integers(0, 6, 100)],
        "one category each, huge": 10**9 * np.eye(2),
        "tokens": np.eye(6)[rng.integers(0, 6, 300)],
        "weights": rng.gamma(1.0, 1e-3, (50, 4)),
    }


HARD = hard_tables()


@pytest.mark.parametrize("a", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("name", HARD)
def test_the_climb_settles_at_a_maximum(name, a):
    x = HARD[name]
    alpha, n_steps, settled = law.fit(cells(x), x.shape[1], a, 1e-9, 200)
    assert settled
    assert n_steps < 60
    assert np.isfinite(alpha).all()
    assert (alpha > 0).all()
    at = law.slopes(alpha, cells(x), a)
    noise = 1e-13 * x.sum()
    assert (np.abs(at.more - alpha * at.less) <= 1e-5 * at.more + noise).all()
    diagonal = alpha * at.less - at.variance
    assert diagonal.min() > 0
    assert at.bend * np.sum(alpha**2 / diagonal) < 1.0 + 1e-9  # concave


def test_the_maximum_is_that_of_a_general_climber():
    x = HARD["empty row and column"]
    alpha, _, _ = law.fit(cells(x), 4, 1.0, 1e-9, 200)
    found = minimize(lambda p: -law.log_density(p, cells(x), 1.0), np.zeros(4), method="BFGS")
    np.testing.assert_allclose(np.log(alpha), found.x, atol=1e-4)


def test_the_sure_step_never_goes_down():
    """Whatever the prior; the climb falls back to it."""
    rng = np.random.default_rng(4)
    for a in (0.01, 1.0, 20.0):
        for _ in range(50):
            point = rng.normal(0, 4, 4)
            at = law.slopes(np.exp(point), cells(X), a)
            there = point + law.sure_step(np.exp(point), at, a)
            before, after = (law.log_density(p, cells(X), a) for p in (point, there))
            assert after >= before - 1e-9 * abs(before)


def test_a_bad_newton_step_falls_back():
    point = np.log(ALPHA)
    at = law.slopes(ALPHA, cells(X), 1.0)
    sure = law.sure_step(ALPHA, at, 1.0)
    downhill = -1e6 * (at.more - ALPHA * at.less)

    def density(p):
        return law.log_density(p, cells(X), 1.0)

    there, value = law.ascend(point, density(point), downhill, sure, density, 0.0)
    np.testing.assert_array_equal(there, point + sure)
    assert value > density(point)


def test_alpha_is_recovered():
    x = simulated(ALPHA, np.full(4000, 40), seed=7)
    alpha = DirichletMultinomial().fit(x).concentration_
    at = law.slopes(alpha, cells(x), 1.0)
    curvature = np.diag(alpha * at.less - at.variance) - at.bend * np.outer(alpha, alpha)
    z = (np.log(alpha) - np.log(ALPHA)) / np.sqrt(np.linalg.inv(curvature).diagonal())
    assert np.abs(z).max() < MAX_Z


def test_a_category_without_counts_has_a_small_share():
    x = HARD["empty row and column"]
    model = DirichletMultinomial().fit(x)
    alpha = model.concentration_
    assert 0 < alpha[1] < alpha[[0, 2, 3]].min()
    less = law.slopes(alpha, cells(x), 1.0).less
    assert alpha[1] == pytest.approx(1.0 / less, rel=1e-6)  # share_concentration fresh counts
    population = model.predict_proba(np.zeros((1, 4)))[0]
    np.testing.assert_allclose(population, alpha / alpha.sum(), rtol=1e-12)
    assert model.score_samples(x)[3] == 0.0


def test_nothing_counted_gives_the_mode_of_the_prior():
    np.testing.assert_allclose(
        DirichletMultinomial().fit(np.zeros((2, 5))).concentration_, 1.0, rtol=1e-9
    )


def test_columns_in_another_order_and_sparse_rows_give_the_same():
    order = np.random.default_rng(0).permutation(130)
    x = HARD["208 x 130"]
    model = DirichletMultinomial().fit(x)
    other = DirichletMultinomial().fit(x[:, order])
    np.testing.assert_allclose(other.concentration_, model.concentration_[order], rtol=1e-9)
    sparse = DirichletMultinomial().fit(scipy.sparse.csr_array(x))
    np.testing.assert_array_equal(sparse.concentration_, model.concentration_)


def test_posterior_moments_are_those_of_a_beta_law():
    model = DirichletMultinomial(random_state=1).fit(X)
    mean, sd = model.predict_proba(X[:6], return_std=True)
    alpha = model.concentration_ + X[:6]
    marginal = beta(alpha, alpha.sum(axis=1, keepdims=True) - alpha)
    np.testing.assert_allclose(mean, marginal.mean(), rtol=1e-12)
    np.testing.assert_allclose(sd, marginal.std(), rtol=1e-12)


def test_draws_have_the_moments_and_their_seed():
    model = DirichletMultinomial(random_state=1).fit(X)
    mean, sd, draws = model.predict_proba(X[:6], return_std=True, return_draws=True, n_draws=4000)
    assert np.abs(z_scores(draws, mean)).max() < MAX_Z
    assert np.abs(z_scores(np.square(draws - mean), np.square(sd))).max() < MAX_Z
    again = model.predict_proba(X[:6], return_draws=True, n_draws=4000)[1]
    np.testing.assert_array_equal(again, draws)
    counts = model.predict_counts(X[:6], n_draws=4000)
    assert (counts.sum(axis=2) == X[:6].sum(axis=1)).all()
    busy = X[:6].sum(axis=1) > 0
    expected = (mean * X[:6].sum(axis=1, keepdims=True))[busy]
    assert np.abs(z_scores(counts[:, busy], expected)).max() < MAX_Z
    np.testing.assert_array_equal(model.predict_counts(X[:6], n_draws=4000), counts)
    new = model.predict_counts(0 * X[:6], totals=7, n_draws=3)
    assert (new.sum(axis=2) == 7).all()


def test_the_whole_is_its_part_and_the_rest_given_that():
    model = DirichletMultinomial().fit(X)
    seen = np.random.default_rng(0).binomial(X, 0.4)
    whole, part = (model.score_samples(x, coefficient=False) for x in (X, seen))
    rest = model.score_samples(X - seen, observed=seen, coefficient=False)
    np.testing.assert_allclose(part + rest, whole, atol=1e-10)
    assert np.abs(rest - model.score_samples(X - seen, coefficient=False)).max() > 1.0


def test_completion_of_two_categories_meets_quadrature():
    x, seen = np.array([[5, 2]]), np.array([[1, 6]])
    model = DirichletMultinomial().fit([[8, 2], [1, 6], [5, 5], [0, 3]])
    a, b = model.concentration_ + seen[0]
    expected = quad(lambda p: p**5 * (1 - p) ** 2 * beta.pdf(p, a, b), 0, 1)[0]
    found = model.score_samples(x, observed=seen, coefficient=False)
    assert found[0] == pytest.approx(np.log(expected), rel=1e-7)


def test_probabilities_of_a_part_are_those_of_the_next_count():
    model = DirichletMultinomial().fit(X)
    nexts = [model.score_samples(np.tile(e, (len(X), 1)), observed=X) for e in np.eye(4)]
    np.testing.assert_allclose(np.exp(nexts).T, model.predict_proba(X), rtol=1e-11)


def test_completion_keeps_its_digits_after_huge_counts():
    model = DirichletMultinomial().fit(X)
    seen = np.array([[9 * 10**8, 5, 0, 10**7]])
    one = model.score_samples(np.array([[0, 1, 0, 0]]), observed=seen)
    assert one[0] == pytest.approx(np.log(model.predict_proba(seen)[0, 1]), rel=1e-11)


def test_a_table_of_categories():
    frame = pd.DataFrame(X, columns=list("wxyz"))
    model = DirichletMultinomial().fit(frame)
    table = model.summary()
    assert list(table.index) == ["w", "x", "y", "z"]
    assert table["share"].sum() == pytest.approx(1.0)
    pi = np.random.default_rng(0).dirichlet(model.concentration_, 20_000)
    assert np.abs(z_scores(pi, table["share"])).max() < MAX_Z
    np.testing.assert_allclose(pi.std(axis=0), table["spread"], rtol=0.05)
    assert list(model.get_feature_names_out()) == ["w", "x", "y", "z"]
    assert list(model.set_output(transform="pandas").transform(frame)) == list("wxyz")


def test_works_in_a_pipeline_and_a_grid_search():
    y = np.arange(len(X)) % 2
    make_pipeline(DirichletMultinomial(), LogisticRegression()).fit(X, y).predict(X)
    search = GridSearchCV(DirichletMultinomial(), {"share_concentration": [0.1, 1.0]}, cv=2).fit(X)
    assert np.isfinite(search.best_score_)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"share_concentration": 0.0}, ValueError, "share_concentration must be finite and above 0"),
        ({"share_concentration": "1"}, TypeError, "share_concentration must be a number; got '1'"),
        ({"tolerance": -1.0}, ValueError, "tolerance must be finite and above 0; got -1"),
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1; got 0"),
        ({"random_state": 1.5}, TypeError, r"random_state must be an integer, a .*; got 1\.5"),
    ],
)  # fmt: skip
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        DirichletMultinomial(**parameters).fit(X)


def test_a_climb_that_does_not_settle_is_told():
    with pytest.warns(
        ConvergenceWarning, match="did not settle in 1 steps; raise max_iter"
    ) as told:
        model = DirichletMultinomial(max_iter=1).fit(X)
    assert told[0].filename == __file__
    assert np.isfinite(model.score(X))
