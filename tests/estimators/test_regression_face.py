"""Regressions as users meet them: names in, names out, effects that are known, and what bad input gets."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from polystick import Gibbs, MeanField, MultinomialRegression, load

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RNG = np.random.default_rng(7)
N, NAMES = 120, ["ash", "birch", "cedar"]
FRAME = pd.DataFrame(
    {
        "wet": RNG.standard_normal(N),
        "soil": RNG.choice(["clay", "sand"], N),
        "site": RNG.choice([f"site {i}" for i in range(8)], N),
        "plot": RNG.choice(["p", "q"], N),
    },
    index=pd.Index([f"row {i}" for i in range(N)], name="row"),
)
LEVEL = RNG.normal(0, 0.8, (8, 3))


def true_shares(frame):
    """Return softmax shares: wetness moves birch, sand moves cedar, and sites have levels of their own."""
    eta = LEVEL[frame.site.str[5:].astype(int)].copy()
    eta[:, 1] += 0.9 * frame.wet
    eta[:, 2] += 1.2 * (frame.soil == "sand")
    pi = np.exp(eta)
    return pi / pi.sum(axis=1, keepdims=True)


COUNTS = pd.DataFrame(RNG.multinomial(60, true_shares(FRAME)), columns=NAMES, index=FRAME.index)
SHORT = Gibbs(n_draws=150, n_burn=60, n_chains=2)
TINY = Gibbs(n_draws=4, n_burn=2, n_chains=2)


def fit(inference=SHORT, frame=FRAME, counts=COUNTS, **options):
    options = {"formula": "wet + soil", "groups": "site", "random_state": 3, "n_jobs": 1, **options}
    return MultinomialRegression(inference=inference, **options).fit(frame, counts)


@pytest.fixture(scope="module", params=["stick", "softmax"])
def model(request):
    return fit(link=request.param)


def test_mean_field_is_near_gibbs_and_says_what_it_lacks(tmp_path):
    quick = fit(MeanField(n_draws=400), link="stick", checkpoint=tmp_path)
    again = clone(quick).fit(FRAME, COUNTS, resume=True)
    exact = fit(link="stick")
    for column in ("wet", "soil"):
        one, other = (each.effects(column) for each in (quick, exact))
        width = other["upper"] - other["lower"]
        assert ((one["estimate"] - other["estimate"]).abs() < 0.35 * width).all()
        assert ((one["upper"] - one["lower"]) / width).between(0.6, 1.4).all()
    near = np.abs(quick.predict_proba(FRAME) - exact.predict_proba(FRAME))
    assert np.asarray(near).max() < 0.03
    assert np.isfinite(quick.score(FRAME, COUNTS))
    np.testing.assert_array_equal(again.predict_proba(FRAME), quick.predict_proba(FRAME))
    kept = load(quick.save(tmp_path / "model.polystick"))
    np.testing.assert_array_equal(kept.predict_proba(FRAME), quick.predict_proba(FRAME))
    with pytest.raises(ValueError, match="needs draws from the posterior"):
        quick.to_arviz(log_likelihood=True)
    with pytest.raises(ValueError, match="mean field is for"):
        fit(MeanField(), link="softmax")


def test_effects_are_those_of_the_truth(model):
    wet = model.effects("wet", change="slope")
    step = 1e-3
    ends = (true_shares(FRAME.assign(wet=FRAME.wet + by)).mean(axis=0) for by in (-step, step))
    low, high = ends
    truth = (high - low) / (2 * step)
    error = (wet["upper"] - wet["lower"]) / 3.29
    assert (np.abs(wet["estimate"] - truth) < 4 * error).all()
    assert list(wet.index) == NAMES
    assert list(wet.columns) == ["estimate", "lower", "upper", "p_positive"]
    assert wet.loc["birch", "p_positive"] > 0.99
    soil = model.effects("soil")
    ends = (true_shares(FRAME.assign(soil=soil)).mean(axis=0) for soil in ("clay", "sand"))
    truth = -np.subtract(*ends)
    error = (soil["upper"] - soil["lower"]) / 3.29
    assert (np.abs(soil["estimate"] - truth) < 4 * error).all()
    np.testing.assert_allclose(soil["estimate"].sum(), 0.0, atol=1e-12)


def test_groups_are_known_new_or_none(model):
    some = FRAME.head(5)
    known, new, none = (model.predict_proba(some, g) for g in ("known", "new", "none"))
    for pi in (known, new, none):
        np.testing.assert_allclose(pi.sum(axis=1), 1.0, rtol=1e-10)
    truth = true_shares(some)
    assert np.abs(known - truth).max() < 0.12
    assert np.abs(known - truth).mean() < np.abs(none - truth).mean()
    elsewhere = some.assign(site="site 99")
    np.testing.assert_array_equal(model.predict_proba(elsewhere, "new"), new)
    with pytest.raises(ValueError, match="got 'site 99' of site; use groups=\"new\""):
        model.predict_proba(elsewhere)
    assert model.score(FRAME, COUNTS) > model.score(FRAME, COUNTS, "new")


def test_names_come_out(model):
    summary = model.summary(n_draws=20)
    assert summary.index.names == ["covariate", "change", "category"]
    assert set(summary.index.get_level_values("covariate")) == {"wet", "soil"}
    parts = model.variance_components(n_draws=20)
    assert set(parts.index.get_level_values(0)) == {"site", "overdispersion"}
    assert (parts["lower"] <= parts["upper"]).all()
    assert (parts["lower"] >= 0).all()
    sites = model.group_effects(n_draws=40)
    assert list(sites.index.get_level_values(0).unique()) == sorted(set(FRAME.site))
    found = sites["estimate"].unstack()[NAMES].to_numpy()
    centred = LEVEL - LEVEL.mean(axis=0)
    assert (
        np.corrcoef(found[:, 0], (centred - centred.mean(axis=1, keepdims=True))[:, 0])[0, 1] > 0.7
    )
    assert set(model.posterior_.tree["posterior"]["group"].values) == set(FRAME.site)
    assert set(model.predict(FRAME)) <= set(NAMES)
    table = model.contrasts({"soil": ("clay", "sand")}, by="plot", n_draws=20)
    assert list(table.index.get_level_values(0).unique()) == ["p", "q"]
    assert model.effect_curves("wet", [0.0, 1.0], n_draws=20).shape == (6, 3)


def test_pickle_and_clone_give_the_same(model):
    again = pickle.loads(pickle.dumps(model))
    some = FRAME.head(3)
    np.testing.assert_array_equal(again.predict_proba(some), model.predict_proba(some))
    pd.testing.assert_frame_equal(again.effects("wet", n_draws=9), model.effects("wet", n_draws=9))


@pytest.mark.parametrize("link", ["stick", "softmax"])
def test_same_bits_on_any_number_of_threads_and_after_resume(link, tmp_path, monkeypatch):
    from polystick.models import regression_state

    many = {"frame": pd.concat([FRAME] * 5, ignore_index=True)}  # several blocks
    many["counts"] = pd.concat([COUNTS] * 5, ignore_index=True)
    assert len(many["frame"]) > regression_state.ROWS_PER_BLOCK
    options = {"link": link, "groups": ["site", "plot"], **many}
    one, two = (fit(TINY, **{**options, "n_jobs": n}) for n in (1, 2))
    for name in one.posterior_.names():
        np.testing.assert_array_equal(one.posterior_[name], two.posterior_[name])
    folder = tmp_path / "run"
    fit(replace(TINY, n_draws=2), **options, checkpoint=folder)
    model = MultinomialRegression(
        "wet + soil", groups=["site", "plot"], link=link, random_state=3, n_jobs=1,
        inference=TINY, checkpoint=folder,
    )  # fmt: skip
    model.fit(many["frame"], many["counts"], resume=True)
    np.testing.assert_array_equal(model.posterior_["coefficients"], one.posterior_["coefficients"])


def test_single_labels_are_classified_as_by_logistic_regression():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((400, 2))
    eta = x @ np.array([[1.5, 0.0, -1.0], [0.0, 1.0, -0.5]])
    pi = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    y = np.array(["a", "b", "c"])[[rng.choice(3, p=p) for p in pi]]
    model = MultinomialRegression(link="softmax", inference=SHORT, random_state=1, n_jobs=1)
    found = model.fit(x, y).predict_proba(x)
    peer = LogisticRegression(C=10.0).fit(x, y)
    assert np.abs(found - peer.predict_proba(x)).max() < 0.03
    assert model.overdispersion_ is None
    assert list(model.classes_) == ["a", "b", "c"]
    assert (model.predict(x) == peer.predict(x)).mean() > 0.98
    of_label = found[np.arange(400), np.searchsorted(model.classes_, y)]
    assert model.score(x, y) == pytest.approx(np.log(of_label).mean(), abs=0.01)


def test_nested_groups_and_matrices():
    frame = FRAME[["wet", "site", "plot"]]
    model = fit(TINY, frame, formula=None, groups="site/plot")
    assert model.design_.names == ("Intercept", "wet")
    assert list(model.posterior_.tree["posterior"]["factor"].values) == ["site", "site:plot"]
    assert model.group_effects("site:plot", n_draws=3).index.nlevels == 2
    with pytest.raises(ValueError, match="factor must be one of the groups"):
        model.group_effects()


def test_numbers_that_the_formula_makes_a_factor_have_effects():
    frame = FRAME.assign(year=2000 + np.arange(len(FRAME)) % 3)
    model = fit(TINY, frame, formula="C(year)")
    changes = model.summary(n_draws=3).index.unique("change")
    assert list(changes) == ["2000 to 2001", "2000 to 2002"]


def test_prior_draws_know_nothing_of_the_counts():
    model = fit(TINY, prior_scale={"wet": 0.01}, overdispersion="diagonal")
    draws = model.sample_prior(FRAME.head(4), 300)
    assert draws.shape == (300, 4, 3)
    np.testing.assert_allclose(draws.mean(axis=(0, 1)), 1 / 3, atol=0.1)
    np.testing.assert_array_equal(draws, model.sample_prior(FRAME.head(4), 300))


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_integrated_log_likelihoods_go_to_arviz(model):
    arviz = pytest.importorskip("arviz")
    data = model.to_arviz(FRAME, COUNTS, log_likelihood=True, n_draws=200)
    loo = arviz.loo(data, pointwise=True)
    assert (np.asarray(loo.pareto_k) > 0.7).mean() <= 0.1
    assert model.to_arviz().posterior is not None
    with pytest.raises(ValueError, match="the rows of the fit"):
        model.to_arviz(FRAME, COUNTS + 1, log_likelihood=True)


def test_evidence_is_that_of_brute_force(model):
    some, counts = FRAME.head(4), COUNTS.head(4)
    few = model.score_samples(some, counts, n_draws=4)
    states = model.posterior_.spread(["coefficients", "group_effects", "noise_cov"], 4)
    x = model.design_.matrix(some)
    places = model._grouping.places(some)[:, 0]
    rng, values = np.random.default_rng(0), []
    for b, u, cov in states:
        e = rng.multivariate_normal(np.zeros(len(cov)), cov, 40_000, method="svd")
        psi = (x @ b + u[places])[:, None] + e
        log_pi = np.log(model.model_.probabilities(psi))
        height = np.einsum("nk,nsk->ns", counts.to_numpy(float), log_pi)
        values.append(np.logaddexp.reduce(height, axis=1) - np.log(len(e)))
    expected = np.logaddexp.reduce(values, axis=0) - np.log(4)
    np.testing.assert_allclose(few, expected, atol=0.05)


def test_separated_rows_are_told_of():
    above = FRAME.wet.to_numpy() > FRAME.wet.median()
    counts = np.where(above[:, None], [[30, 0]], [[0, 30]])
    model = MultinomialRegression("wet", inference=Gibbs(200, 400, n_chains=1), random_state=0)
    with pytest.warns(RuntimeWarning, match="give overdispersion=None"):
        model.fit(FRAME, counts)


# what bad input gets


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"formula": "ash ~ wet"}, "no response"),
        ({"formula": "wet + height"}, "'height' is missing"),
        ({"formula": "wet + (wet | site)"}, 'groups="site"'),
        ({"formula": "gp(wet)"}, "no processes"),
        (
            {"formula": "d", "frame": FRAME.assign(d=pd.Timestamp("2020-01-01"))},
            "column 'd' has times",
        ),
        ({"groups": "wet | site"}, "slopes that vary between groups there are none"),
        ({"groups": {"site": "wet"}}, "groups must be a column or a list"),
        ({"formula": None}, "must be numbers where there is no formula"),
        ({"groups": "county"}, "groups must be columns of the covariates"),
        ({"groups": ["site", "site"]}, "groups must differ"),
        ({"frame": FRAME.assign(site="one")}, "groups must be at least two"),
        ({"frame": FRAME.assign(site=None)}, "groups must be known"),
        ({"frame": FRAME.assign(wet=np.nan)}, "must be known and finite"),
        ({"frame": FRAME.assign(wet=1.0)}, "must vary"),
        ({"frame": FRAME.iloc[::-1]}, "same index"),
        ({"counts": COUNTS.head(3)}, "equally many rows"),
        ({"counts": COUNTS + 0.5}, "whole numbers"),
        ({"counts": -COUNTS}, "at least 0"),
        ({"counts": COUNTS[["ash"]]}, "at least 2 categories"),
        ({"counts": pd.Series(["a"] * N, FRAME.index)}, "at least 2 categories; got 1"),
        ({"counts": pd.Series([None, *["a"] * (N - 1)], FRAME.index)}, "missing one in row 0"),
        ({"link": "probit"}, 'link must be "stick" or "softmax"'),
        ({"link": "softmax", "decomposition": "balanced"}, "of no use"),
        ({"overdispersion": "some"}, "overdispersion must be"),
        ({"overdispersion": "full", "counts": (COUNTS > 20).astype(int)}, None),
        ({"prior_scale": {"rain": 1.0}}, "must name terms of the model (Intercept, wet, soil)"),
        ({"prior_scale": -1.0}, "prior_scale must be finite and above 0"),
        ({"group_scale": 0.0}, "group_scale must be finite and above 0"),
    ],
)
def test_a_fit_says_what_is_wrong(options, said):
    if said is None:
        labels = pd.Series(COUNTS.to_numpy().argmax(axis=1), FRAME.index)
        options, said = {**options, "counts": labels}, "needs rows of several counts"
    with pytest.raises((ValueError, TypeError)) as error:
        fit(TINY, **options)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_predictions_say_what_is_wrong(model):
    for call, said in [
        (lambda: model.predict_proba(FRAME[["wet", "site"]]), "'soil' is missing"),
        (lambda: model.predict_proba(FRAME[["wet", "soil"]]), "'site' is missing"),
        (lambda: model.predict_proba(FRAME.assign(soil="rock")), "levels seen in fit"),
        (lambda: model.predict_proba(FRAME, "some"), 'groups must be "known"'),
        (lambda: model.predict_proba(FRAME.head(0)), "at least one row"),
        (lambda: model.score(FRAME, COUNTS[NAMES[::-1]]), "in another order"),
        (lambda: model.score(FRAME, COUNTS[["ash", "birch"]]), "3 categories seen in fit"),
        (lambda: model.effects("site"), "no covariate 'site'"),
        (lambda: model.effects("wet", n_draws=0), "n_draws must be at least 1"),
    ]:
        with pytest.raises((ValueError, TypeError)) as error:
            call()
        assert said in str(error.value)


def test_not_fitted():
    model = MultinomialRegression()
    for call in (model.summary, lambda: model.predict_proba(FRAME), lambda: model.effects("wet")):
        with pytest.raises(NotFittedError):
            call()
    assert clone(model).get_params() == model.get_params()


def test_lonely_groups_are_told():
    with pytest.warns(RuntimeWarning, match="each group of plant has one row"):
        fit(TINY, FRAME.assign(plant=np.arange(N)), groups="plant")
