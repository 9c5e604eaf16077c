"""The face of correlated multinomials: what it promises beyond the contract."""

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from polystick import CorrelatedMultinomial, Gibbs, MeanField, datasets
from victims import kill_after

JIT = not numba.config.DISABLE_JIT
SETTINGS = Gibbs(n_draws=12, n_burn=6, n_chains=2, keep=("probabilities",))


def simulated_shares(n, seed=0):
    """Two groups of categories: a, b rise together and against c, d."""
    rng = np.random.default_rng(seed)
    level = rng.normal(0, 1.0, size=(n, 1))
    logits = np.hstack([level, level, -level, -level]) + 0.1 * rng.normal(size=(n, 4))
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), rng


def simulated(n, seed=0):
    pi, rng = simulated_shares(n, seed)
    return pd.DataFrame(rng.multinomial(rng.integers(20, 200, n), pi), columns=list("abcd"))


COUNTS = simulated(1300 if JIT else 300)  # three blocks of rows


@pytest.fixture(scope="module", params=["gibbs", "mean field"])
def fitted(request):
    inference = Gibbs(150, 100, n_chains=2) if request.param == "gibbs" else MeanField()
    return CorrelatedMultinomial(inference=inference, random_state=1).fit(COUNTS)


@pytest.mark.skipif(not JIT, reason="minutes without the compiler")
def test_log_share_correlation_finds_two_groups_of_common_categories(fitted):
    correlation = fitted.log_share_correlation(level=0.9)
    assert correlation.lower.loc["a", "b"] > 0.5
    assert correlation.lower.loc["c", "d"] > 0.5
    assert correlation.upper.loc["a", "c"] < -0.5
    assert (correlation.lower <= correlation.mean).all(axis=None)
    assert (correlation.mean <= correlation.upper).all(axis=None)
    np.testing.assert_allclose(np.diag(correlation.mean), 1.0)


@pytest.mark.skipif(not JIT, reason="minutes without the compiler")
def test_summary_has_shares_and_their_spread_and_no_associations(fitted):
    table = fitted.summary()
    assert list(table) == ["share", "lower", "upper", "spread", "spread lower", "spread upper"]
    assert table["share"].sum() == pytest.approx(1.0)
    assert table["share"].is_monotonic_decreasing
    assert (table["lower"] <= table["share"]).all()
    assert (table["share"] <= table["upper"]).all()
    assert (table["spread lower"] <= table["spread"]).all()
    assert (table["spread"] <= table["spread upper"]).all()
    pi = simulated_shares(200_000)[0]
    np.testing.assert_allclose(table["share"].loc[list("abcd")], pi.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(table["spread"].loc[list("abcd")], pi.std(axis=0), atol=0.03)


def test_the_name_that_promised_associations_is_gone():
    assert not hasattr(CorrelatedMultinomial, "category_correlation")


def test_log_share_correlation_is_not_zero_for_independent_categories():
    """Why the pages warn: this is no measure of association, least of all between rare categories."""
    rng = np.random.default_rng(0)
    abundance = np.exp(-0.17 * np.arange(30) + 1.2 * rng.normal(size=(150, 30)))
    counts = rng.multinomial(120, abundance / abundance.sum(axis=1, keepdims=True))
    inference = Gibbs(n_draws=100, n_burn=100, n_chains=1) if JIT else MeanField(max_sweeps=20)
    model = CorrelatedMultinomial(inference=inference, random_state=0).fit(counts)
    correlation = model.log_share_correlation(level=0.9)
    rare = np.triu_indices(10, 1)
    mean, lower, upper = (frame.to_numpy()[20:, 20:][rare] for frame in correlation)
    assert np.mean((lower > 0) | (upper < 0)) > 0.5  # 0.1 if it were calibrated
    assert mean.mean() > 0.3


@pytest.mark.skipif(not JIT, reason="minutes without the compiler")
def test_rows_with_few_counts_borrow_from_the_others(fitted):
    seen = pd.DataFrame([[6, 0, 0, 0], [0, 0, 0, 0]], columns=list("abcd"))
    pi, sd = fitted.predict_proba(seen, return_std=True)
    assert pi[0, 1] > 2 * pi[0, 2:].max()  # b was never seen, but it goes with a
    assert sd[1].min() > sd[0, 2]  # an empty row is as uncertain as the population
    share = fitted.summary()["share"].loc[list("abcd")]
    np.testing.assert_allclose(pi[1], share, atol=0.08)


@pytest.mark.skipif(not JIT, reason="minutes without the compiler")
def test_held_out_score_beats_independence(fitted):
    test = simulated(300, seed=9)
    shares = COUNTS.sum() / COUNTS.to_numpy().sum()
    baseline = (test @ np.log(shares)).sum() / test.to_numpy().sum()
    assert fitted.score(test) > baseline + 0.1
    swapped = test[["a", "c", "b", "d"]].set_axis(list("abcd"), axis=1)  # pairs torn apart
    assert fitted.score(test) > fitted.score(swapped) + 0.05


@pytest.mark.skipif(not JIT, reason="minutes without the compiler")
def test_a_wider_level_gives_wider_intervals(fitted):
    narrow, wide = (fitted.log_share_correlation(level=level) for level in (0.5, 0.95))
    off = ~np.eye(4, dtype=bool)
    assert (narrow.lower.to_numpy() > wide.lower.to_numpy())[off].all()
    assert (narrow.upper.to_numpy() < wide.upper.to_numpy())[off].all()


def test_scores_that_rest_on_few_draws_are_told(monkeypatch):
    model = CorrelatedMultinomial(inference=MeanField(n_draws=10), random_state=0).fit(COUNTS)
    monkeypatch.setattr("polystick.estimators.multinomial._FEW", 1e9)
    with pytest.warns(
        RuntimeWarning, match="10 of 10 rows rest on fewer .* raise n_draws"
    ) as caught:
        model.score(COUNTS.iloc[:10], n_draws=16)
    assert caught[0].filename == __file__  # it points at the user's line


def fit(**options):
    return (
        CorrelatedMultinomial(inference=SETTINGS, random_state=5, **options).fit(COUNTS).posterior_
    )


def same(left, right):
    for name in ("mean", "cov", "probabilities"):
        np.testing.assert_array_equal(left[name], right[name])
    np.testing.assert_array_equal(left.running("probabilities"), right.running("probabilities"))


@pytest.mark.parametrize("n_jobs", [2, 4, None])
def test_same_bits_on_any_number_of_threads(n_jobs):
    same(fit(n_jobs=1), fit(n_jobs=n_jobs))


def test_predictions_have_the_same_bits_on_any_number_of_threads():
    found = []
    for n_jobs in (1, 3):
        model = CorrelatedMultinomial(inference=SETTINGS, random_state=5, n_jobs=n_jobs).fit(COUNTS)
        found.append((model.predict_proba(COUNTS), model.score_samples(COUNTS)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def run(folder, n_jobs=2, progress=False):
    """Fit, and go on with a run that the folder holds."""
    settings = {"inference": SETTINGS, "random_state": 5, "n_jobs": n_jobs}
    model = CorrelatedMultinomial(checkpoint=folder, progress=progress, **settings)
    return model.fit(COUNTS, resume=True)


@pytest.mark.skipif(not JIT, reason="minutes without the compiler")
def test_kill_9_and_resume(tmp_path):
    for sweep in (4, 11):
        kill_after(sweep, run, tmp_path / "run")
    same(run(tmp_path / "run", n_jobs=1).posterior_, fit())


def gap_to_the_chains(model, X):
    """Return how far predictions of the rows of the fit are from the run's own, in posterior sds (rms)."""
    mean, sd = model.posterior_.running("probabilities")
    return np.sqrt(np.mean(np.square((model.predict_proba(X) - mean) / sd)))


@pytest.mark.skipif(not JIT, reason="minutes without the compiler")
def test_predictions_of_training_rows_agree_with_the_chains(monkeypatch):
    """Two ways to the same posterior: importance sampling of a row, and the Gibbs run itself."""
    X = datasets.load_names("M", n_names=60, years=[1970, 1990, 2010])
    model = CorrelatedMultinomial(inference=Gibbs(300, 200, n_chains=2), random_state=1).fit(X)
    assert gap_to_the_chains(model, X) < 0.14
    monkeypatch.setattr(CorrelatedMultinomial, "_weights", lambda self, w: softmax(w, axis=1))
    assert gap_to_the_chains(model, X) > 0.14  # rows that choose among the parameters count twice


def test_resuming_without_a_seed_takes_the_one_of_the_run(tmp_path):
    quick = Gibbs(4, 2, n_chains=1)
    first = CorrelatedMultinomial(inference=quick, checkpoint=tmp_path / "run").fit(COUNTS)
    again = CorrelatedMultinomial(inference=quick, checkpoint=tmp_path / "run").fit(
        COUNTS, resume=True
    )
    assert again.seed_ == first.seed_
    np.testing.assert_array_equal(again.posterior_["cov"], first.posterior_["cov"])


def test_labels_that_are_not_strings_are_kept():
    numbered = COUNTS.set_axis([1990, 2000, 2010, 2020], axis=1)
    model = CorrelatedMultinomial(inference=MeanField(n_draws=10), random_state=0).fit(numbered)
    assert list(model.summary(n_draws=2).index.sort_values()) == [1990, 2000, 2010, 2020]
    pairs = COUNTS.set_axis(pd.MultiIndex.from_product([["x", "y"], [1, 2]]), axis=1)
    model = CorrelatedMultinomial(inference=MeanField(n_draws=10), random_state=0).fit(pairs)
    assert model.categories_[1] == ("x", 2)
    assert ("y", 1) in model.log_share_correlation(n_draws=2).mean.index


def test_fits_side_by_side_do_not_disturb_each_other():
    from threadpoolctl import threadpool_info

    def run():
        return fit(n_jobs=2)

    before, alone = threadpool_info(), run()
    with ThreadPoolExecutor(2) as pool:
        together = [f.result() for f in [pool.submit(run), pool.submit(run)]]
    for posterior in together:
        same(posterior, alone)
    assert threadpool_info() == before


def test_a_fresh_seed_is_kept():
    quick = Gibbs(2, 0, n_chains=1)
    model = CorrelatedMultinomial(inference=quick).fit(COUNTS)
    again = CorrelatedMultinomial(inference=quick, random_state=model.seed_).fit(COUNTS)
    np.testing.assert_array_equal(model.posterior_["cov"], again.posterior_["cov"])
    assert model.seed_ != CorrelatedMultinomial(inference=quick).fit(COUNTS).seed_


@pytest.mark.parametrize(
    "decomposition",
    ["given", "balanced", "huffman", [3, 1, 0, 2], ((("a", "b"), "c"), "d"), "((a,b),(c,d));"],
    ids=str,
)
def test_any_decomposition(decomposition):
    model = CorrelatedMultinomial(
        decomposition=decomposition, inference=MeanField(n_draws=10), random_state=0
    ).fit(COUNTS)
    assert model.decomposition_.n_categories == 4
    assert model.log_share_correlation(n_draws=5).mean.loc["a", "b"] > 0.5


def test_names_data():
    counts = datasets.load_names("F", n_names=12, years=[1960, 2013])
    assert counts.shape == (2 * 51, 12)
    assert counts.loc[(2013, "NY")].sum() > 0
    assert datasets.load_names().shape == (54 * 51, 200)
    boys = datasets.load_names("M")
    assert boys.loc[(2013, "NY"), "Jacob"] == 1297  # as in the SSA's own table
    assert len(datasets.load_names("M", years=(y for y in (1970, 1980)))) == 2 * 51
    wrong = ({"sex": "X"}, {"n_names": 301}, {"n_names": 0}, {"years": [1900, 1970]}, {"years": []})
    for arguments in wrong:
        with pytest.raises(ValueError, match="must be"):
            datasets.load_names(**arguments)
