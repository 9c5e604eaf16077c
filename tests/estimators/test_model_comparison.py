"""Comparisons of models: what ArviZ says of the same fits, what refits say, and what bad input gets."""

import numpy as np
import pandas as pd
import pytest

from polystick import CorrelatedMultinomial, Gibbs, MultinomialRegression, compare

pytest.importorskip("arviz")
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Estimated shape parameter"),
]
RNG = np.random.default_rng(11)
N = 60
FRAME = pd.DataFrame({"wet": RNG.standard_normal(N), "idle": RNG.standard_normal(N)})
ETA = np.column_stack([np.zeros(N), 1.2 * FRAME.wet, -0.5 + 0.4 * RNG.standard_normal(N)])
PI = np.exp(ETA) / np.exp(ETA).sum(axis=1, keepdims=True)
COUNTS = pd.DataFrame(RNG.multinomial(30, PI), columns=["ash", "birch", "cedar"])
SHORT = Gibbs(n_draws=200, n_burn=60, n_chains=2)


def fit(columns, frame=FRAME, counts=COUNTS, **options):
    model = MultinomialRegression(inference=SHORT, random_state=2, n_jobs=1, **options)
    return model.fit(frame[columns], counts)


@pytest.fixture(scope="module")
def models():
    return {
        "wet": fit(["wet"]),
        "idle": fit(["idle"]),
        "softmax": fit(["wet"], link="softmax"),
        "balanced": fit(["wet"], decomposition="balanced"),
    }


def test_terms_trees_and_links_are_told_apart(models):
    table = compare(models)
    assert list(table.columns) == ["elpd", "difference", "standard_error", "bad_k"]
    assert table.index[-1] == "idle"
    assert table.loc["idle", "difference"] < -4 * table.loc["idle", "standard_error"]
    close = table.drop(index="idle")
    assert (close["difference"].abs() < 0.2 * abs(table.loc["idle", "difference"])).all()
    assert table["difference"].iloc[0] == table["standard_error"].iloc[0] == 0
    assert (table["bad_k"] <= 0.1).all()


def test_the_figures_are_those_of_arviz(models):
    import arviz

    two = {name: models[name] for name in ("wet", "idle")}
    table = compare(two)
    theirs = arviz.compare({n: m.to_arviz(log_likelihood=True) for n, m in two.items()})
    ours = table.loc["idle", ["elpd", "difference", "standard_error"]].to_numpy(float)
    elpd = theirs.loc["idle", "elpd_loo" if "elpd_loo" in theirs else "elpd"]
    told = [elpd, -theirs.loc["idle", "elpd_diff"], theirs.loc["idle", "dse"]]
    np.testing.assert_allclose(np.abs(ours), np.abs(told), rtol=0.05)


def test_rows_are_as_probable_as_refits_without_them_say(models):
    """A wrong integration, or likelihoods given psi, would be nats too high."""
    data = models["wet"].to_arviz(log_likelihood=True)
    import arviz

    found = arviz.loo(data, pointwise=True)
    each = np.asarray(found.loo_i if hasattr(found, "loo_i") else found.elpd_i)
    for row in (3, 17):
        others = FRAME.index != row
        refit = fit(["wet"], FRAME[others], COUNTS[others])
        held = refit.score_samples(FRAME[["wet"]].iloc[[row]], COUNTS.iloc[[row]], coefficient=True)
        assert abs(each[row] - held[0]) < 0.1


def test_rows_of_correlated_counts_are_compared_too():
    names = ("frequency", "balanced")
    models = {
        name: CorrelatedMultinomial(decomposition=name, inference=SHORT, random_state=0, n_jobs=1)
        for name in names
    }
    table = compare({name: model.fit(COUNTS) for name, model in models.items()}, COUNTS)
    assert set(table.index) == set(names)
    assert table["difference"].min() > -10


def test_bad_estimates_are_told(models, monkeypatch):
    from polystick.estimators import model_comparison

    def half_bad(tree):
        return np.zeros(N), np.where(np.arange(N) % 2, 0.8, np.nan)

    monkeypatch.setattr(model_comparison, "leave_one_out", half_bad)
    with pytest.warns(RuntimeWarning, match="100 % of the rows cannot be taken back"):
        table = compare({name: models[name] for name in ("wet", "idle")})
    assert (table["bad_k"] == 1).all()


def test_what_cannot_be_compared(models):
    with pytest.raises(ValueError, match="dict of two or more"):
        compare({"wet": models["wet"]})
    with pytest.raises(ValueError, match="dict of two or more"):
        compare(list(models.values()))
    with pytest.raises(ValueError, match="the same counts"):
        compare({"wet": models["wet"], "other": fit(["wet"], counts=COUNTS + 1)})
