"""Rows behind a softmax, as users meet them: options, associations, predictions, errors."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.special import softmax

from polystick import CorrelatedMultinomial, Gibbs, MeanField, NormalInverseWishart
from polystick.estimators.row_models import default_inference

NAMES = ["ash", "beech", "cedar", "elm", "fir", "larch", "lime", "oak", "pine", "poplar"]
GLANCE = Gibbs(150, 150, n_chains=2, keep=("probabilities",))


def simulated(n_rows=80, seed=0):
    """Return counts of ten trees: ash and beech go together, and cedar against elm."""
    rng = np.random.default_rng(seed)
    cov = np.eye(10)
    cov[0, 1] = cov[1, 0] = 0.9
    cov[2, 3] = cov[3, 2] = -0.9
    level = np.linspace(0, -2, 10)
    logits = level + rng.standard_normal((n_rows, 10)) @ np.linalg.cholesky(cov).T
    counts = rng.multinomial(200, softmax(logits, axis=1))
    return pd.DataFrame(counts, columns=NAMES)


COUNTS = simulated()


def model_of(**options):
    options = {"link": "softmax", "inference": GLANCE, "random_state": 0, **options}
    return CorrelatedMultinomial(**options)


@pytest.fixture(scope="module")
def fitted():
    return model_of().fit(COUNTS)


def test_associations_are_found_and_named(fitted):
    found = fitted.category_association()
    table = found.table(2)
    pairs = {frozenset(pair) for pair in table[["category", "with"]].to_numpy()}
    assert pairs == {frozenset(("ash", "beech")), frozenset(("cedar", "elm"))}
    assert found.mean.loc["ash", "beech"] > 0.5 > -0.5 > found.mean.loc["cedar", "elm"]
    assert found.known.loc["ash", "beech"]
    assert found.nonzero.loc["ash", "beech"] > 0.99
    assert found.rhat.loc["ash", "beech"] < 1.2
    np.testing.assert_array_equal(found.known, found.nonzero > found.level)


def test_a_table_of_all_pairs_has_all_of_them(fitted):
    found = fitted.category_association()
    assert len(found.table(None, all_pairs=True)) == 45
    assert len(found.table(3, all_pairs=True)) == 3
    sizes = found.table(None, all_pairs=True)["mean"].abs()
    assert (np.diff(sizes) <= 0).all()


def test_the_summary_says_what_a_category_goes_with(fitted):
    told = fitted.summary()["goes with"]
    assert told["ash"].startswith("+beech")
    assert told["elm"].startswith("-cedar")


def test_predictions_and_scores(fitted):
    pi, sd = fitted.predict_proba(COUNTS, return_std=True)
    shares = COUNTS / COUNTS.sum(axis=1).to_numpy()[:, None]
    assert np.abs(pi - shares.to_numpy()).max() < 0.1
    running = fitted.posterior_.running("probabilities")[0]
    assert np.abs(pi - running).max() < 0.05
    assert (sd > 0).all()
    new = simulated(seed=1)
    assert fitted.score(new) > np.log(1 / 10) + 0.2
    assert fitted.score(new, observed=0.5) > fitted.score(new) - 0.2
    assert fitted.predict_counts(COUNTS[:3], n_draws=4).shape == (4, 3, 10)
    assert fitted.sample_prior(2, 3).shape == (3, 2, 10)


def test_rows_without_counts_get_the_population(fitted):
    nothing = fitted.predict_proba(0 * COUNTS[:2])
    np.testing.assert_allclose(nothing[0], fitted.summary().loc[NAMES, "share"], atol=0.03)


def test_the_same_bits_on_any_threads_and_for_csr():
    short = Gibbs(4, 3, n_chains=2)
    runs = [
        model_of(inference=short, n_jobs=n).fit(x).posterior_["cov"]
        for n, x in ((1, COUNTS), (2, COUNTS), (4, scipy.sparse.csr_array(COUNTS.to_numpy())))
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])


@pytest.mark.parametrize("covariance", ["full", "factor"])
@pytest.mark.parametrize("link", ["stick", "softmax"])
def test_a_run_that_was_stopped_goes_on(link, covariance, tmp_path):
    options = {"link": link, "covariance": covariance}
    whole = model_of(inference=Gibbs(6, 2, n_chains=2), **options).fit(COUNTS)
    folder = tmp_path / "run"
    model_of(inference=Gibbs(3, 2, n_chains=2), checkpoint=folder, **options).fit(COUNTS)
    longer = model_of(inference=Gibbs(6, 2, n_chains=2), checkpoint=folder, **options)
    longer.fit(COUNTS, resume=True)
    np.testing.assert_array_equal(whole.posterior_["cov"], longer.posterior_["cov"])


def test_a_prior_of_ones_own_is_taken():
    prior = NormalInverseWishart.weak(np.zeros(10), np.ones(10))
    assert model_of(prior=prior, inference=Gibbs(2, 0)).fit(COUNTS).model_.law is prior


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"link": "probit"}, 'link must be "stick" or "softmax"'),
        ({"covariance": "diagonal"}, 'covariance must be "full", "factor" or None'),
        ({"decomposition": "balanced"}, "decomposition is of no use"),
        ({"inference": MeanField()}, "has no mean field; use Gibbs"),
        ({"link": "stick", "covariance": "factor", "inference": MeanField()}, "has no mean field"),
        (
            {"covariance": "full", "prior": NormalInverseWishart.weak(np.zeros(10), np.ones(10))},
            "leave one of them out",
        ),
        (
            {"prior": NormalInverseWishart.weak(np.zeros(5), np.ones(5))},
            "one entry for each of the 10",
        ),
    ],
)
def test_options_that_do_not_go_together(options, words):
    with pytest.raises(ValueError, match=words):
        model_of(**options).fit(COUNTS)


def test_sticks_say_what_to_do_about_associations():
    sticks = model_of(link="stick", inference=Gibbs(2, 0)).fit(COUNTS)
    with pytest.raises(ValueError, match='needs link="softmax"'):
        sticks.category_association()


def test_few_categories_have_no_associations():
    few = model_of(inference=Gibbs(4, 0)).fit(COUNTS[NAMES[:4]])
    with pytest.raises(ValueError, match="needs at least 5 categories, got 4"):
        few.category_association()
    assert "goes with" not in few.summary()


def test_what_the_prior_alone_says_is_told():
    with pytest.warns(RuntimeWarning, match=r"1 of 11 categories have no counts \(yew\)"):
        model_of(inference=Gibbs(2, 0)).fit(COUNTS.assign(yew=0))
    with pytest.warns(RuntimeWarning, match="2 rows are fewer than the 5 factors"):
        model_of(inference=Gibbs(2, 0)).fit(COUNTS[:2])


def test_the_default_schedules():
    assert default_inference(CorrelatedMultinomial()) == Gibbs(min_ess=400, max_draws=2500)
    assert default_inference(model_of()).min_ess == 200


def test_mean_field_of_learned_scales_meets_gibbs():
    options = {"link": "stick", "random_state": 0}
    field = CorrelatedMultinomial(inference=MeanField(), **options).fit(COUNTS)
    gibbs = CorrelatedMultinomial(inference=Gibbs(300, 200, n_chains=2), **options).fit(COUNTS)
    sd = gibbs.posterior_.flat("mean").std(axis=0)
    gap = gibbs.posterior_.flat("mean").mean(axis=0) - field.posterior_.flat("mean").mean(axis=0)
    assert (np.abs(gap) < sd).all()
