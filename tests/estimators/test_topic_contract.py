"""The faces of topic models: scikit-learn's contract, what goes in, what bad input gets."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from polystick import CorrelatedTopicModel, DynamicTopicModel, Gibbs, MeanField, StochasticVI
from polystick.models import warm_start
from topic_tools import needs_jit

SHORT = Gibbs(n_draws=4, n_burn=4, n_chains=2)
FIELD = MeanField(tolerance=0.1, max_sweeps=20, n_draws=8)
STOCHASTIC = StochasticVI(batch_size=8, n_passes=2, n_draws=8)
STREAMED = ["check_n_features_in_after_fitting", "check_fit_score_takes_y"]
WORDS = [f"w{i}" for i in range(12)]


@pytest.fixture(autouse=True)
def one_start(monkeypatch):
    """Start from the first run that is made, not the best of eight: nothing here is about good topics."""
    monkeypatch.setattr(warm_start, "MOST_STARTS", 1)


class Rounded(CorrelatedTopicModel):
    """Counts rounded up: scikit-learn's checks pass fractions, and a token is whole."""

    def fit(self, X, y=None):
        return super().fit(rounded_up(X), y)

    def _check(self, X):
        return super()._check(rounded_up(X))


def rounded_up(X):
    if scipy.sparse.issparse(X):
        return X.tocsr().ceil() if X.dtype.kind == "f" else X
    if isinstance(X, pd.DataFrame):
        return X.apply(np.ceil)
    try:
        return np.ceil(np.asarray(X, dtype=np.float64))
    except (TypeError, ValueError, np.exceptions.ComplexWarning):
        return X


@pytest.mark.filterwarnings("ignore:.*never seen in fit")
@pytest.mark.filterwarnings("ignore:mean field did not converge")
@parametrize_with_checks(
    [
        Rounded(2, inference=inference, random_state=0, n_jobs=1)
        for inference in (SHORT, FIELD, STOCHASTIC)
    ],
    expected_failed_checks=lambda estimator: (
        dict.fromkeys(STREAMED, "partial_fit asks for the size of the corpus")
        if estimator.inference == STOCHASTIC
        else {}
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def counts():
    rng = np.random.default_rng(3)
    topics = rng.dirichlet(np.full(12, 0.2), 3)
    shares = rng.dirichlet([1.0, 1.0, 1.0], 30)
    return pd.DataFrame(rng.multinomial(rng.integers(0, 40, 30), shares @ topics), columns=WORDS)


@pytest.fixture(params=[SHORT, FIELD, STOCHASTIC], ids=["gibbs", "mean field", "stochastic"])
def model(request):
    return CorrelatedTopicModel(3, inference=request.param, random_state=4, n_jobs=1)


@pytest.mark.filterwarnings("ignore:mean field did not converge")
class TestFace:
    def test_clone_and_pickle_give_the_same(self, model, counts):
        expected = model.fit(counts).transform(counts)
        np.testing.assert_array_equal(clone(model).fit(counts).transform(counts), expected)
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.transform(counts), expected)

    def test_shares_are_probabilities(self, model, counts):
        mean, draws, sd = model.fit(counts).transform(counts, return_draws=True, return_std=True)
        np.testing.assert_allclose(mean.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(draws.sum(axis=2), 1.0, rtol=1e-12)
        assert mean.shape == sd.shape == (30, 3)
        assert (sd > 0).all()

    @pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.csc_array, np.asarray])
    def test_any_container_gives_the_same(self, model, counts, kind):
        expected = model.fit(counts.to_numpy()).transform(counts.to_numpy())
        other = kind(counts.to_numpy())
        np.testing.assert_array_equal(clone(model).fit(other).transform(other), expected)

    def test_a_document_does_not_depend_on_its_neighbours(self, model, counts):
        model.fit(counts)
        whole, scored = model.transform(counts), model.score_samples(counts)
        np.testing.assert_array_equal(model.transform(counts.iloc[5:9]), whole[5:9])
        np.testing.assert_allclose(model.score_samples(counts.iloc[5:9]), scored[5:9])
        alone = model.score_samples(counts.iloc[7:8], method="held_out")
        np.testing.assert_allclose(alone, model.score_samples(counts, method="held_out")[7:8])

    def test_names_travel(self, model, counts):
        table = model.fit(counts).topics(4)
        assert set(table[1]) <= set(WORDS)
        assert [c for c in table.columns if c != "chains"] == ["share", 1, 2, 3, 4]
        assert table["share"].is_monotonic_decreasing
        assert list(model.get_feature_names_out()) == [f"correlatedtopicmodel{t}" for t in range(3)]
        assert list(model.posterior_.tree["posterior"]["word"].values) == WORDS

    def test_topics_are_the_likeliest_words(self, model, counts):
        model.fit(counts)
        best = model.topics_.argmax(axis=1)
        assert list(model.topics(1).sort_index()[1]) == [WORDS[i] for i in best]
        np.testing.assert_allclose(model.topics_.sum(axis=1), 1.0, rtol=1e-5)

    def test_correlation_has_intervals(self, model, counts):
        mean, lower, upper = model.fit(counts).topic_correlation()
        np.testing.assert_allclose(np.diag(mean), 1.0)
        off = ~np.eye(3, dtype=bool)
        assert (lower.to_numpy()[off] < mean.to_numpy()[off]).all()
        assert (mean.to_numpy()[off] < upper.to_numpy()[off]).all()

    def test_scores_agree(self, model, counts):
        model.fit(counts)
        total = counts.to_numpy().sum()
        for per in ("token", "document"):
            assert model.perplexity(counts, per=per) == np.exp(-model.score(counts, per=per))
        whole = model.score_samples(counts, method="held_out")
        assert model.score(counts, method="held_out") == pytest.approx(whole.sum() / total)
        assert model.score(counts, coefficient=True) > model.score(counts)
        bounds = -np.log(len(WORDS)) - 1.5, 0.0
        assert bounds[0] < model.score(counts) < bounds[1]

    def test_documents_without_words_have_the_shares_of_the_prior(self, model, counts):
        model.fit(counts)
        empty = counts.iloc[:2] * 0
        shares = model.transform(empty)
        assert np.isfinite(shares).all()
        np.testing.assert_array_equal(shares[0], shares[1])
        assert (model.score_samples(empty) == 0.0).all()
        assert (model.score_samples(empty, method="held_out") == 0.0).all()

    def test_unseen_words_are_ignored_with_a_count(self, model, counts):
        seen = counts.to_numpy().copy()
        seen[:, 7] = 0
        model.fit(seen)
        extra = seen[:5].copy()
        extra[:, 7] = 2
        with pytest.warns(RuntimeWarning, match="10 tokens of 1 words that were never seen"):
            found = model.transform(extra)
        np.testing.assert_array_equal(found, model.transform(seen[:5]))

    def test_other_width(self, model, counts):
        model.fit(counts.to_numpy())
        with pytest.raises(ValueError, match=r"categories seen in fit; got .X has 5 features"):
            model.transform(counts.to_numpy()[:, :5])

    def test_works_in_a_pipeline_and_a_grid_search(self, model):
        texts = ["cats like milk", "dogs like bones", "milk and bones", "cats and dogs"] * 4
        pipe = make_pipeline(CountVectorizer(), model, LogisticRegression())
        assert pipe.fit(texts, [0, 1, 0, 1] * 4).predict(texts[:2]).shape == (2,)
        words = pipe[0].get_feature_names_out()
        assert set(pipe[1].topics(2, words=words)[1]) <= set(words)
        search = GridSearchCV(model, {"n_topics": [2, 3]}, cv=2)
        X = CountVectorizer().fit_transform(texts)
        assert np.isfinite(search.fit(X).best_score_)

    def test_not_fitted(self, model, counts):
        for call in (model.transform, model.score, model.score_samples, model.perplexity):
            with pytest.raises(NotFittedError):
                call(counts)
        for call in (model.topics, model.topic_sizes, model.topic_correlation):
            with pytest.raises(NotFittedError):
                call()

    def test_a_failed_fit_leaves_the_fitted_model_as_it_was(self, model, counts):
        expected = model.fit(counts).transform(counts)
        with pytest.raises(ValueError, match="Negative"):
            model.fit(-counts.to_numpy())
        np.testing.assert_array_equal(model.transform(counts), expected)


@pytest.mark.parametrize(
    ("parameters", "X", "error", "message"),
    [
        ({"n_topics": 1}, None, ValueError, "n_topics must be at least 2; got 1"),
        ({"n_topics": 2.5}, None, TypeError, r"n_topics must be an integer; got 2\.5"),
        ({}, [[1, 0], [0, 1]], ValueError, "must not exceed the number of tokens; got 3 topics for 2"),
        ({}, [[1, -2], [0, 3]], ValueError, "counts must be at least 0; got -2"),
        ({}, [[1.5, 2], [0, 3]], ValueError, r"whole numbers .*got 1\.5"),
        ({}, pd.DataFrame([[5, 5]], columns=["a", "a"]), ValueError, "must differ; got 'a' twice"),
        ({"topic_concentration": 0}, None, ValueError, "topic_concentration must be finite and above"),
        ({"inference": "gibbs"}, None, TypeError, "inference must be Gibbs"),
        ({"word_tree": "balanced", "inference": FIELD}, None, TypeError, "word_tree needs inference=G"),
        ({"prior": 3}, None, TypeError, "prior must be a NormalInverseWishart or None; got 3"),
        ({"decomposition": "sticks?"}, None, ValueError, "sticks"),
    ],
)  # fmt: skip
def test_bad_fits(counts, parameters, X, error, message):
    model = CorrelatedTopicModel(3, inference=SHORT, n_jobs=1).set_params(**parameters)
    with pytest.raises(error, match=message):
        model.fit(counts if X is None else X)
    assert not hasattr(model, "posterior_")


def test_bad_questions(counts):
    model = CorrelatedTopicModel(3, inference=SHORT, n_jobs=1, random_state=0).fit(counts)
    for unused in ({"observed": 0.3}, {"per": "token"}):
        with pytest.raises(ValueError, match="takes no observed or per"):
            model.score(counts, method="held_out", **unused)
    with pytest.raises(ValueError, match="method must be 'completion' or 'held_out'; got 'both'"):
        model.score(counts, method="both")
    with pytest.raises(ValueError, match="per"):
        model.score(counts, per="word")
    with pytest.raises(ValueError, match="words must be 12 names"):
        model.topics(words=["a"])
    with pytest.raises(ValueError, match="doubled names"):
        model.topics(words=["a"] * 12)
    with pytest.raises(ValueError, match="n_draws must be at least 1; got 0"):
        model.transform(counts, n_draws=0)
    with pytest.raises(TypeError, match="times"):
        model.transform(counts, times=[1] * 30)


def test_a_stream_asks_for_the_size_of_the_corpus(counts):
    model = CorrelatedTopicModel(3, inference=STOCHASTIC, random_state=0, n_jobs=1)
    with pytest.raises(TypeError, match="corpus_size must say how many documents"):
        model.partial_fit(counts)
    model.partial_fit(counts.iloc[:10], corpus_size=30)
    first = model.topics_.copy()
    model.partial_fit(counts.iloc[10:20]).partial_fit(counts.iloc[20:])
    assert model.n_iter_ == 3
    assert np.abs(model.topics_ - first).max() > 1e-6
    assert model.transform(counts).shape == (30, 3)
    assert not hasattr(CorrelatedTopicModel(3, inference=SHORT), "partial_fit")


def test_a_stream_gives_the_same_on_any_number_of_threads(counts):
    found = []
    for n_jobs in (1, 2, 4):
        model = CorrelatedTopicModel(3, inference=STOCHASTIC, random_state=0, n_jobs=n_jobs)
        model.partial_fit(counts.iloc[:20], corpus_size=30).partial_fit(counts.iloc[20:])
        found.append(model.topics_)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.filterwarnings("ignore:mean field did not converge")
def test_the_same_on_any_number_of_threads(model, counts):
    many = pd.concat([counts] * 20, ignore_index=True)  # several blocks
    expected = model.fit(many)
    for n_jobs in (2, 4):
        other = clone(model).set_params(n_jobs=n_jobs).fit(many)
        for name in expected.posterior_.names():
            np.testing.assert_array_equal(other.posterior_[name], expected.posterior_[name])
        np.testing.assert_array_equal(other.transform(counts), expected.transform(counts))


@pytest.mark.parametrize("tree", ["similar", "balanced", "huffman"])
def test_correlated_words(counts, tree):
    model = CorrelatedTopicModel(3, word_tree=tree, inference=SHORT, random_state=0, n_jobs=1)
    model.fit(counts)
    np.testing.assert_allclose(model.topics_.sum(axis=1), 1.0, rtol=1e-5)
    assert np.isfinite(model.score(counts))


@pytest.mark.parametrize("evolving", [False, True])
def test_dynamic_topics_on_a_tree_of_words(counts, evolving):
    """Words of one branch rise and fall together, whether they walk or not."""
    times = np.repeat([2000, 2001, 2004], 10)

    def fit(tree):
        options = {"inference": SHORT, "random_state": 0, "n_jobs": 1, "evolving": evolving}
        return DynamicTopicModel(3, word_tree=tree, **options).fit(counts, times=times)

    none, similar, balanced = map(fit, (None, "similar", "balanced"))
    for model in (similar, balanced):
        np.testing.assert_allclose(model.topics_.sum(axis=-1), 1.0, rtol=1e-5)
        assert np.isfinite(model.score(counts, times=times))
    assert (none.topics_ == similar.topics_).all() == evolving
    assert (similar.topics_ != balanced.topics_).any()
    assert ("node_mean" in similar.posterior_.names()) == (not evolving)


def test_leaves_of_a_tree_of_words_are_names(counts):
    first, *others = counts.columns
    tree = first
    for name in others:
        tree = (name, tree)
    options = {"word_tree": tree, "inference": SHORT, "random_state": 0, "n_jobs": 1}
    dynamic = DynamicTopicModel(3, **options).fit(counts, times=np.repeat([2000, 2001, 2004], 10))
    for model in (dynamic, CorrelatedTopicModel(3, **options).fit(counts)):
        np.testing.assert_allclose(model.topics_.sum(axis=1), 1.0, rtol=1e-5)


TIMES = {
    "integers": np.repeat([2000, 2001, 2004], 10),
    "dates": np.repeat(np.array(["2000-03-01", "2001-07-09", "2004-12-31"], "datetime64[D]"), 10),
    "strings": np.repeat(["2000-03-01", "2001-07-09", "2004-12-31"], 10),
    "periods": pd.PeriodIndex(np.repeat(["2000", "2001", "2004"], 10), freq="Y"),
}


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("evolving", [False, True])
def test_dynamic_topics_take_many_kinds_of_time(counts, kind, evolving):
    model = DynamicTopicModel(3, evolving=evolving, inference=SHORT, random_state=0, n_jobs=1)
    model.fit(counts, times=TIMES[kind])
    assert [int(str(t)[:4]) for t in model.times_] == [2000, 2001, 2002, 2003, 2004]
    shares = model.shares_over_time()
    np.testing.assert_allclose(shares.mean.sum(axis=1), 1.0, rtol=1e-10)
    assert (shares.lower < shares.upper).to_numpy().all()
    assert model.transform(counts, times=TIMES[kind]).shape == (30, 3)
    scores = [model.score(counts, times=TIMES[kind], method=m) for m in ("completion", "held_out")]
    assert np.isfinite(scores).all()
    assert model.topics(3, time=TIMES[kind][0]).shape == (3, 5)


@pytest.mark.parametrize("evolving", [False, True])
def test_dynamic_topics_are_the_same_on_any_number_of_threads(counts, evolving):
    found = [
        DynamicTopicModel(3, evolving=evolving, inference=SHORT, random_state=0, n_jobs=n_jobs)
        .fit(counts, times=TIMES["integers"])
        .posterior_["topics"]
        for n_jobs in (1, 2, 4)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize(
    ("times", "error", "message"),
    [
        (None, TypeError, "times must hold a time stamp for each document"),
        ([1, 2], ValueError, "for each of the 30 documents; got 2"),
        ([0.5] * 30, TypeError, "integers, dates or periods; got float64"),
        ([1.0] * 29 + [np.nan], ValueError, "must not be missing"),
        (["soon"] * 30, TypeError, "integers, dates or periods"),
    ],
)
def test_bad_times(counts, times, error, message):
    with pytest.raises(error, match=message):
        DynamicTopicModel(3, inference=SHORT).fit(counts, times=times)


def test_new_documents_must_lie_in_the_years_of_the_fit(counts):
    model = DynamicTopicModel(3, inference=SHORT, random_state=0, n_jobs=1)
    model.fit(counts, times=TIMES["integers"])
    with pytest.raises(ValueError, match="from 2000 to 2004, as in fit; got 2005"):
        model.transform(counts.iloc[:1], times=[2005])
    with pytest.raises(TypeError, match="times must hold"):
        model.transform(counts)
    with pytest.raises(TypeError, match="needs inference=Gibbs"):
        DynamicTopicModel(3, inference=FIELD).fit(counts, times=TIMES["integers"])


@needs_jit
def test_defaults_of_schedules_suit_topics(counts):
    """Factors are drawn 32 times, and a long run of Gibbs sampling is told as such."""
    for inference in (MeanField(0.1, max_sweeps=20), StochasticVI(batch_size=8, n_passes=2)):
        field = CorrelatedTopicModel(2, inference=inference, random_state=0)
        assert len(field.fit(counts).posterior_["topics"][0]) == 32
    model = CorrelatedTopicModel(2, inference=Gibbs())
    with pytest.warns(RuntimeWarning, match=r"6000 sweeps over all chains, 2\.5 times as many"):
        model._tell_of_long_runs()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for inference in (None, SHORT, Gibbs(n_draws=999), FIELD):
            CorrelatedTopicModel(2, inference=inference)._tell_of_long_runs()
