"""One table over all estimators: scikit-learn's contract."""

import inspect
import pickle
import sys
import types
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xarray as xr
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import polystick
from polystick import (
    CorrelatedMultinomial,
    CorrelatedTopicModel,
    DirichletMultinomial,
    DynamicMultinomial,
    Gibbs,
    MeanField,
    MultinomialGP,
    MultinomialLDS,
    MultinomialRegression,
    NormalInverseWishart,
    baselines,
)
from polystick.estimators.tables import steps_after
from polystick.scores import log_coefficients, split_words

FIELD = MeanField(tolerance=1e-4, n_draws=20)
SHORT = Gibbs(n_draws=6, n_burn=4, n_chains=2)
NAMES = ["ash", "birch", "cedar", "date"]

A_CLASSIFIER = "the check takes whatever has predict_proba for a classifier, and fails inside"
FRACTIONS = "the check passes fractional counts, and a Pólya-gamma draw counts whole trials"
SPARSE = ("check_estimator_sparse_array", "check_estimator_sparse_matrix")
WITH_FRACTIONS = [
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimator_sparse_tag",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_nan_inf",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1sample",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_readonly_memmap_input",
    "check_transformer_data_not_an_array",
    "check_transformer_general",
    "check_transformer_preserve_dtypes",
]


def expected_failures(estimator):
    """Of scikit-learn's checks; each must fail, so that none is listed in vain."""
    expected = dict.fromkeys(SPARSE, A_CLASSIFIER)
    if isinstance(getattr(estimator, "inference", None), Gibbs):
        expected |= dict.fromkeys(WITH_FRACTIONS, FRACTIONS)
    return expected


class Rounded(CorrelatedMultinomial):
    """Shows that fractions are the one reason: with counts rounded up, Gibbs passes these checks too."""

    def fit(self, X, y=None):
        return super().fit(rounded_up(X), y)

    def _check(self, X):
        return super()._check(rounded_up(X))


def rounded_up(X):
    """Round what can be rounded; the rest is for the estimator to refuse."""
    if scipy.sparse.issparse(X):
        return X.ceil() if X.dtype.kind == "f" else X
    if isinstance(X, pd.DataFrame):
        return X.apply(np.ceil)
    try:
        return np.ceil(np.asarray(X, dtype=np.float64))
    except (TypeError, ValueError, np.exceptions.ComplexWarning):
        return X


@parametrize_with_checks(
    [
        CorrelatedMultinomial(inference=FIELD, n_jobs=1),
        CorrelatedMultinomial(inference=SHORT, n_jobs=1),
        Rounded(inference=SHORT, n_jobs=1),
        DirichletMultinomial(),
    ],
    expected_failed_checks=lambda estimator: (
        dict.fromkeys(SPARSE, A_CLASSIFIER)
        if isinstance(estimator, Rounded)
        else expected_failures(estimator)
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def counts():
    rng = np.random.default_rng(3)
    shares = rng.dirichlet([4, 3, 2, 1], size=40)
    return pd.DataFrame(rng.multinomial(rng.integers(0, 60, 40), shares), columns=NAMES)


@pytest.fixture(params=[FIELD, SHORT], ids=["mean field", "gibbs"])
def model(request):
    return CorrelatedMultinomial(inference=request.param, random_state=4, n_jobs=1)


@pytest.fixture(params=[FIELD, SHORT, None], ids=["mean field", "gibbs", "dirichlet"])
def face(request):
    """A model of rows or its baseline, for what both promise."""
    if request.param is None:
        return DirichletMultinomial(random_state=4)
    return CorrelatedMultinomial(inference=request.param, random_state=4, n_jobs=1)


def test_fit_changes_no_parameter_and_returns_self(face, counts):
    before = face.get_params()
    assert face.fit(counts) is face
    assert face.get_params() == before


def test_clone_and_pickle_give_the_same(face, counts):
    expected = face.fit(counts).predict_proba(counts)
    np.testing.assert_array_equal(clone(face).fit(counts).predict_proba(counts), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(face)).predict_proba(counts), expected)


def test_probabilities_are_probabilities(face, counts):
    pi, sd, draws = face.fit(counts).predict_proba(counts, return_std=True, return_draws=True)
    np.testing.assert_allclose(pi.sum(axis=1), 1.0, rtol=1e-12)
    assert (pi > 0).all()
    assert draws.shape == (256, *counts.shape)
    np.testing.assert_allclose(draws.sum(axis=2), 1.0, rtol=1e-12)
    np.testing.assert_allclose(draws.mean(axis=0), pi, atol=0.02)
    np.testing.assert_allclose(draws.std(axis=0), sd, atol=0.02)


def test_a_row_does_not_depend_on_its_neighbours(face, counts):
    face.fit(counts)
    whole, order = face.transform(counts), np.random.default_rng(0).permutation(len(counts))
    np.testing.assert_allclose(face.transform(counts.iloc[order]), whole[order], rtol=1e-10)
    np.testing.assert_allclose(face.transform(counts.iloc[5:9]), whole[5:9], rtol=1e-10)
    np.testing.assert_allclose(
        face.score_samples(counts.iloc[5:9]), face.score_samples(counts)[5:9]
    )


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.csc_array, np.asarray])
def test_any_container_gives_the_same(face, counts, kind):
    expected = face.fit(counts.to_numpy()).predict_proba(counts.to_numpy())
    other = kind(counts.to_numpy())
    np.testing.assert_array_equal(clone(face).fit(other).predict_proba(other), expected)


def test_doubled_and_unsorted_entries_are_added(face):
    clean = np.array([[3, 0, 2], [0, 5, 1]])
    messy = scipy.sparse.csr_array(
        ([2, 1, 2, 1, 5], [2, 0, 0, 2, 1], [0, 3, 5]), shape=(2, 3)
    )  # row 0: 3, 0, 2 with the first entry in two parts, out of order; row 1: 0, 5, 1
    expected = face.fit(clean).predict_proba(clean)
    np.testing.assert_array_equal(clone(face).fit(messy).predict_proba(messy), expected)
    np.testing.assert_allclose(face.score_samples(messy), face.score_samples(clean), rtol=1e-12)


def test_names_travel(model, counts):
    model.fit(counts)
    assert list(model.get_feature_names_out()) == NAMES
    assert list(model.categories_) == NAMES
    assert list(model.set_output(transform="pandas").transform(counts).columns) == NAMES
    assert list(model.posterior_.tree["posterior"]["stick"].values) == NAMES[:3]
    with pytest.raises(ValueError, match="feature names"):
        model.predict_proba(counts[NAMES[::-1]])


def test_works_in_a_pipeline_and_a_grid_search(model, counts):
    y = np.arange(len(counts)) % 2
    make_pipeline(model, LogisticRegression()).fit(counts, y).predict(counts)
    search = GridSearchCV(model, {"decomposition": ["frequency", "balanced"]}, cv=2).fit(counts)
    assert np.isfinite(search.best_score_)


def test_completion_is_scored_as_the_rest_of_rows(face, counts):
    face.fit(counts)
    seen, rest = (part.toarray() for part in split_words(counts, 0.5, face.seed_))
    seen, rest = (pd.DataFrame(part, columns=NAMES) for part in (seen, rest))
    bare = face.score_samples(rest, observed=seen)
    np.testing.assert_array_equal(face.score_samples(counts, observed=0.5), bare)
    assert face.score(counts, observed=0.5) == face.score(rest, observed=seen)
    given = face.score_samples(rest, observed=seen, coefficient=True)
    assert face.score(rest, observed=seen) == pytest.approx(bare.sum() / rest.to_numpy().sum())
    np.testing.assert_allclose(given - bare, log_coefficients(rest.to_numpy()), atol=1e-9)
    nothing = face.score_samples(0 * counts, observed=counts)
    np.testing.assert_allclose(nothing, 0.0, atol=1e-9)
    np.testing.assert_allclose(
        face.score_samples(rest, observed=0 * seen), face.score_samples(rest), atol=1e-9
    )


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, np.asarray])
def test_completion_takes_any_pair_of_containers(face, counts, kind):
    x = counts.to_numpy()
    expected = face.fit(x).score_samples(x[:9], observed=x[9:18])
    found = face.score_samples(scipy.sparse.csr_array(x[:9]), observed=kind(x[9:18]))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_is_observed_must_fit_the_rows(face, counts):
    face.fit(counts)
    with pytest.raises(ValueError, match="a row for each of the 40 rows of X; got 3; put 0 where"):
        face.score(counts, observed=counts.iloc[:3])
    with pytest.raises(ValueError, match=r"observed must lie between 0 and 1.*got 1\.5"):
        face.score(counts, observed=1.5)
    with pytest.raises(ValueError, match="Negative values"):
        face.score_samples(counts, observed=-counts)
    with pytest.raises(ValueError, match="the categories seen in fit"):
        face.score_samples(counts, observed=counts[NAMES[::-1]])


def test_not_fitted(face, counts):
    for call in (face.predict_proba, face.transform, face.score, face.score_samples):
        with pytest.raises(NotFittedError):
            call(counts)
    with pytest.raises(NotFittedError):
        face.summary()


def test_empty_rows_and_columns_are_allowed(face):
    X = np.array([[0, 0, 0], [4, 0, 1], [2, 0, 2]])
    pi = face.fit(X).predict_proba(X)
    assert np.isfinite(pi).all()
    assert np.isfinite(face.score_samples(X)).all()
    assert face.score_samples(X)[0] == pytest.approx(0.0, abs=1e-9)


def test_scores_with_and_without_the_coefficient(face, counts):
    from scipy.special import gammaln

    face.fit(counts)
    x = counts.to_numpy()
    coefficient = gammaln(x.sum(1) + 1) - gammaln(x + 1).sum(1)
    gap = face.score_samples(counts, coefficient=True) - face.score_samples(counts)
    np.testing.assert_allclose(gap, coefficient, atol=1e-9)
    expected = face.score_samples(counts).sum() / x.sum()
    assert face.score(counts) == pytest.approx(expected)


# what bad input gets

FIT_ERRORS = [
    (
        [[1, -2], [0, 3]],
        "Negative values in data .* counts must be at least 0; got -2; if they are",
    ),
    (scipy.sparse.csr_array([[1, -2], [0, 3]]), "counts must be at least 0; got -2"),
    (
        [[1.0, np.nan], [0, 3]],
        "counts must be finite; got .*NaN.*; put 0 where nothing was counted",
    ),
    ([[1.0, np.inf], [0, 3]], "counts must be finite; got .*infinity.*; put 0 where"),
    (scipy.sparse.csr_array([[1.0, np.nan]]), "counts must be finite; got .*NaN"),
    ([[5], [3]], "at least 2 categories .*; got n_features=1; add the counts of everything else"),
    (np.empty((0, 3)), "counts must have at least one row; got .*0 sample"),
    ([["a", "b"], ["c", "d"]], "counts must be numbers; got .*; count words first"),
    (pd.DataFrame({"a": ["x"], "b": ["y"]}), "counts must be numbers; got .*; count words first"),
    (
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        "names of categories must differ; got 'a' twice; add",
    ),
    ([[2e9, 1.0]], "add up to at most 1e[+]09; row 0 has 2e[+]09; divide"),
    (np.array([[2**63, 1]], dtype=np.uint64), "add up to at most"),
    ([[2**62, 2**62]], "add up to at most"),
    (scipy.sparse.csr_array([[2**40, 1]]), "add up to at most"),
    ([1, 2, 3], "2D array"),
]


@pytest.mark.parametrize(("X", "message"), FIT_ERRORS, ids=range(len(FIT_ERRORS)))
def test_bad_counts(face, X, message):
    with pytest.raises(ValueError, match=message):
        face.fit(X)
    assert not hasattr(face, "seed_")


def test_gibbs_needs_whole_counts_and_says_what_to_do():
    X = [[1.5, 2.0], [1.0, 1.0]]
    with pytest.raises(ValueError, match=r"whole numbers for Gibbs.*got 1\.5; .*MeanField"):
        CorrelatedMultinomial(inference=SHORT).fit(X)
    CorrelatedMultinomial(inference=FIELD).fit(X)


def test_too_few_draws_to_predict(model, counts):
    with pytest.raises(ValueError, match="n_draws must be at least 8; got 1"):
        model.fit(counts).predict_proba(counts, n_draws=1)


def test_bad_levels_and_numbers_of_draws(model, counts):
    model.fit(counts)
    with pytest.raises(
        ValueError, match=r"level must be a probability below 1, such as 0\.9; got 90"
    ):
        model.log_share_correlation(level=90)
    with pytest.raises(ValueError, match="n_draws must be at least 1; got 0"):
        model.summary(n_draws=0)


def test_other_width_than_in_fit(face, counts):
    face.fit(counts.to_numpy())
    with pytest.raises(
        ValueError, match=r"the categories seen in fit; got .X has 3 features.*select the columns"
    ):
        face.predict_proba(counts.to_numpy()[:, :3])


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"random_state": 1.5}, TypeError, r"random_state must be an integer, a .*; got 1\.5"),
        ({"random_state": "seed"}, TypeError, "random_state must be an integer"),
        ({"random_state": -1}, ValueError, "random_state must not be negative; got -1"),
        ({"random_state": [3]}, TypeError, "random_state must be an integer"),
        ({"inference": "gibbs"}, TypeError, r"inference must be Gibbs\(\.\.\.\)"),
        ({"inference": Gibbs}, TypeError, r"inference must be Gibbs\(\.\.\.\)"),
        ({"prior": 3}, TypeError, "prior must be a NormalInverseWishart or None; got 3"),
        (
            {"prior": NormalInverseWishart(np.zeros(2), 1.0, np.eye(2), 5.0)},
            ValueError,
            "one entry for each of the 3 splits of 4 categories; got 2",
        ),
        ({"decomposition": "sticks?"}, ValueError, "sticks"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0; give the number of threads"),
        ({"checkpoint": 5}, TypeError, "checkpoint must be the path of a folder, or None; got 5"),
        (
            {"checkpoint_every": "5"},
            TypeError,
            "checkpoint_every must be a number of seconds; got '5'",
        ),
        ({"checkpoint_every": -1}, ValueError, "must be finite and at least 0 seconds; got -1"),
        ({"checkpoint": ""}, ValueError, "checkpoint must be the path of a folder; got an empty"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs must be an integer"),
        (
            {"progress": "yes"},
            TypeError,
            "progress must be True, False, None or a function; got 'yes'",
        ),
    ],
)
def test_bad_parameters(model, counts, parameters, error, message):
    model.set_params(**parameters)
    with pytest.raises(error, match=message):
        model.fit(counts)


@pytest.mark.parametrize(
    "arguments",
    [
        (np.array([np.nan, 0.0]), 1.0, np.eye(2), 5.0),
        (np.zeros(2), np.inf, np.eye(2), 5.0),
        (np.zeros(2), 0.0, np.eye(2), 5.0),
        (np.zeros(2), 1.0, -np.eye(2), 5.0),
        (np.zeros(2), 1.0, np.eye(2), 1.0),
        (np.zeros(2), 1.0, np.eye(3), 5.0),
        (np.zeros(2), 1.0, np.array([[1.0, 0.9], [0.0, 1.0]]), 5.0),
        (0.0, 1.0, 1.0, 5.0),
    ],
)
def test_priors_that_are_not_proper(arguments):
    with pytest.raises(ValueError, match="must"):
        NormalInverseWishart(*arguments)


@pytest.mark.parametrize("settings", [{"tolerance": 0.0}, {"tolerance": np.nan}, {"max_sweeps": 0}])
def test_bad_mean_field_settings(settings):
    with pytest.raises(ValueError, match="must be"):
        MeanField(**settings)


def test_a_failed_fit_leaves_the_fitted_model_as_it_was(face, counts):
    expected = face.fit(counts).predict_proba(counts)
    with pytest.raises(ValueError, match="Negative"):
        face.fit(-counts.to_numpy())
    np.testing.assert_array_equal(face.predict_proba(counts), expected)


# what all faces promise

WORDS = np.random.default_rng(8).poisson(0.8, (16, 12))
ROWS = np.random.default_rng(9).multinomial(20, [0.4, 0.3, 0.2, 0.1], size=16)
PLACES = np.arange(16.0)[:, None]
LABELS = np.eye(4, dtype=int)[np.arange(16) % 4]
STEPS = [ROWS[:9], ROWS[9:]]
TINY = Gibbs(n_draws=4, n_burn=2, n_chains=2)
RUN = {"inference": TINY, "random_state": 5, "n_jobs": 1}
FACES = {  # name: a face, and what it is fitted to
    "rows": (CorrelatedMultinomial(**RUN), (ROWS,)),
    "rows, softmax": (CorrelatedMultinomial(link="softmax", **RUN), (ROWS,)),
    "rows, Dirichlet": (DirichletMultinomial(random_state=5), (ROWS,)),
    "process": (MultinomialGP(**RUN), (PLACES, ROWS)),
    "process, softmax": (baselines.LogisticNormalGP(**RUN), (PLACES, ROWS)),
    "process, raw": (baselines.RawGP(), (PLACES, ROWS)),
    "process, static": (baselines.Static(), (PLACES, ROWS)),
    "regression": (MultinomialRegression(**RUN), (PLACES, ROWS)),
    "regression, softmax": (MultinomialRegression(link="softmax", **RUN), (PLACES, ROWS)),
    "regression, probit": (baselines.MultinomialProbit(**RUN), (PLACES, LABELS)),
    "states": (MultinomialLDS(1, **RUN), (STEPS,)),
    "composition": (DynamicMultinomial(**RUN), (STEPS,)),
    "states, softmax": (baselines.LogisticNormalLDS(1, n_particles=5, **RUN), (STEPS,)),
    "states, raw": (baselines.RawLDS(1, **RUN), (STEPS,)),
    "states, hidden": (baselines.MultinomialHMM(2, **RUN), (STEPS,)),
    "unigram": (baselines.SmoothedUnigram(random_state=5), (STEPS,)),
    "topics": (CorrelatedTopicModel(3, **RUN), (WORDS,)),
    "topics, Dirichlet": (baselines.LDA(3, **RUN), (WORDS,)),
    "topics, softmax": (baselines.LogisticNormalTopicModel(3, **RUN), (WORDS,)),
}
RUNS = [name for name, (face, _) in FACES.items() if hasattr(face, "inference")]
SEEDED = [name for name, (face, _) in FACES.items() if hasattr(face, "random_state")]
WITHOUT_RUNS = ["process, raw", "process, static", "unigram"]


def fresh(name, **params):
    face, data = FACES[name]
    return clone(face).set_params(**params), data


@pytest.fixture(scope="module")
def fitted():
    """Fit each face once, when it is first asked for."""
    kept = {}

    def fit(name):
        if name not in kept:
            face, data = fresh(name)
            kept[name] = face.fit(*data)
        return kept[name], FACES[name][1]

    return fit


def test_the_table_has_every_public_face():
    everything = {*polystick.__all__, *baselines.__all__}
    homes = (getattr(polystick, name, None) or getattr(baselines, name) for name in everything)
    public = {home for home in homes if isinstance(home, type) and issubclass(home, BaseEstimator)}
    dated = {polystick.DynamicTopicModel}  # fitted with times: see test_time_slices
    assert public - dated == {type(face) for face, _ in FACES.values()}


@pytest.mark.parametrize("name", RUNS)
def test_settings_of_the_schedule_are_parameters(name):
    face, data = fresh(name)
    assert face.get_params()["inference__n_draws"] == 4
    assert not any("__" in key for key in face.get_params(deep=False))
    face.set_params(inference__n_draws=3, inference__n_chains=1)
    assert face.inference == Gibbs(n_draws=3, n_burn=2, n_chains=1)
    assert TINY.n_draws == 4  # schedules are shared, and stay
    assert face.fit(*data).posterior_.log_likelihood.shape == (1, 3)
    assert clone(face).get_params()["inference__n_draws"] == 3
    with pytest.raises(
        ValueError, match="Gibbs has no setting 'n_drows'; there are n_draws, n_burn"
    ):
        face.set_params(inference__n_drows=3)
    with pytest.raises(ValueError, match="n_draws must be at least 1"):
        face.set_params(inference__n_draws=0)
    assert face.inference.n_draws == 3


@pytest.mark.parametrize("name", RUNS)
def test_settings_may_be_changed_from_the_default(name):
    face, _ = fresh(name, inference=None)
    default = face._default_inference()
    assert face.set_params(inference__thin=2).inference == replace(default, thin=2)
    both = face.set_params(inference__n_draws=7, inference=Gibbs(5, 1))  # the whole comes first
    assert both.inference == Gibbs(7, 1)


def test_a_face_without_a_schedule_has_no_settings():
    with pytest.raises(ValueError, match="RawGP is run by no schedule; got 'inference__n_draws'"):
        baselines.RawGP().set_params(inference__n_draws=3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["rows", "process"])
def test_a_grid_search_may_vary_settings(name):
    face, data = fresh(name)
    search = GridSearchCV(face, {"inference__n_draws": [2, 6]}, cv=2, refit=True).fit(*data)
    assert search.best_estimator_.inference.n_draws == search.best_params_["inference__n_draws"]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
@pytest.mark.parametrize("name", SEEDED)
def test_generators_give_seeds(name, kind):
    one, data = fresh(name, random_state=kind(3))
    two, _ = fresh(name, random_state=kind(3))
    assert one.fit(*data).seed_ == two.fit(*data).seed_
    np.testing.assert_array_equal(one.score(*data), two.score(*data))
    first = one.seed_
    assert one.fit(*data).seed_ != first  # the next number
    again, _ = fresh(name, random_state=first)
    np.testing.assert_array_equal(again.fit(*data).score(*data), two.score(*data))


@pytest.mark.parametrize("name", FACES)
def test_a_score_is_the_sum_of_the_rows_by_the_counts(name, fitted):
    face, data = fitted(name)
    counts = np.concatenate(data[-1]) if isinstance(data[-1], list) else data[-1]
    rows = face.score_samples(*data)
    assert rows.ndim == 1
    if not name.startswith("topics"):  # which score a part of each document
        assert face.score(*data) == pytest.approx(rows.sum() / counts.sum())
    parameters = inspect.signature(face.score_samples).parameters
    if "coefficient" in parameters:
        assert parameters["coefficient"].default is False
        np.testing.assert_array_equal(face.score_samples(*data, coefficient=False), rows)


@pytest.mark.parametrize("name", [name for name in FACES if not name.startswith("topics")])
def test_no_argument_is_hidden(name):
    face = type(FACES[name][0])
    methods = [getattr(face, method) for method in dir(face) if not method.startswith("_")]
    hidden = {
        method.__qualname__
        for method in methods
        if inspect.isfunction(method)
        for parameter in inspect.signature(method).parameters.values()
        if parameter.kind is parameter.VAR_KEYWORD
    }
    # scikit-learn's own; and `report`, which hands on what the page of a family takes and refuses the rest
    assert {each.split(".")[-1] for each in hidden} <= {"set_params", "fit_transform", "report"}


def labelled(data):
    """Return the data as tables, rows and columns with names."""
    index = pd.Index([f"row {i}" for i in range(16)], name="place")
    table = pd.DataFrame(ROWS, index=index, columns=NAMES)
    if len(data) == 2:
        counts = pd.DataFrame(data[1], index=index, columns=NAMES)
        return (pd.DataFrame(data[0], index=index, columns=["year"]), counts)
    return ([table[:9], table[9:]],) if isinstance(data[0], list) else (table,)


@pytest.mark.parametrize("name", [name for name in FACES if not name.startswith("topics")])
def test_tables_come_out_where_they_are_asked_for(name):
    face, data = fresh(name)
    tables = labelled(data)
    plain = face.fit(*tables).predict_proba(tables[0])
    named = face.set_output(transform="pandas").predict_proba(tables[0])
    with config_context(transform_output="pandas"):
        by_context = fresh(name)[0].fit(*tables).predict_proba(tables[0])
    plain, named, by_context, given = (
        each if isinstance(each, list) else [each] for each in (plain, named, by_context, tables[0])
    )
    for values, frame, other, table in zip(plain, named, by_context, given, strict=True):
        assert isinstance(values, np.ndarray)
        assert list(frame.columns) == NAMES
        pd.testing.assert_index_equal(frame.index, table.index)
        np.testing.assert_array_equal(frame, values)
        pd.testing.assert_frame_equal(frame, other)
    assert isinstance(as_one(clone(face).fit(*tables).predict_proba(tables[0])), pd.DataFrame)
    back = face.set_output(transform="default").predict_proba(tables[0])
    assert isinstance(as_one(back), np.ndarray)


@pytest.mark.parametrize("name", [name for name in FACES if not name.startswith("topics")])
def test_tables_of_xarray_are_taken_with_their_names(name):
    """Inputs beside counts are of pandas: xarray has one type for all columns."""
    face, data = fresh(name)
    *beside, tables = labelled(data)
    of_xarray = (
        [xr.DataArray(table) for table in tables]
        if isinstance(tables, list)
        else xr.DataArray(tables)
    )
    face.set_output(transform="pandas")
    expected = as_one(clone(face).fit(*beside, tables).predict_proba((*beside, tables)[0]))
    found = as_one(face.fit(*beside, of_xarray).predict_proba((*beside, of_xarray)[0]))
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", [name for name in FACES if not name.startswith("topics")])
def test_arrays_of_xarray_come_out_where_they_are_asked_for(name):
    face, data = fresh(name)
    *beside, tables = labelled(data)
    rows = as_one(beside[0] if beside else tables)
    height = np.arange(float(len(rows)))
    given = xr.DataArray(rows if beside else rows.rename_axis(columns="tree"))
    given = given.assign_coords(height=("place", height), year=1990)
    plain = as_one(face.fit(*beside, tables).predict_proba(rows))
    face.set_output(transform="xarray")
    from_frame, found = as_one(face.predict_proba(rows)), as_one(face.predict_proba(given))
    for array in (from_frame, found):
        assert array.dims[0] == "place"
        np.testing.assert_array_equal(array, plain)
        np.testing.assert_array_equal(array[array.dims[1]], NAMES)
        np.testing.assert_array_equal(array["place"], rows.index)
    if not isinstance(tables, list):  # what is known of rows stays with them
        assert found.dims == ("place", "category" if beside else "tree")
        np.testing.assert_array_equal(found["height"], height)
        assert found["year"] == 1990
    if not name.startswith("regression"):  # there columns go by their names
        unnamed = as_one(face.predict_proba(rows.to_numpy()))
        assert unnamed.dims == face._axes
        assert list(unnamed.coords) == ["category"]


def test_shares_of_topics_are_arrays_of_xarray_too(fitted):
    face, data = fitted("topics")
    face, counts = pickle.loads(pickle.dumps(face)), np.asarray(data[0])
    table = pd.DataFrame(counts, pd.MultiIndex.from_product([["a"], range(len(counts))]))
    shares, sd = face.set_output(transform="xarray").transform(table, return_std=True)
    assert shares.dims == sd.dims == ("document", "topic")
    assert list(shares["topic"].values) == list(face.get_feature_names_out())
    assert list(shares.indexes["document"]) == list(table.index)
    framed = face.set_output(transform="pandas").transform(table, return_std=True)[1]
    np.testing.assert_array_equal(framed, sd)
    pd.testing.assert_index_equal(framed.index, table.index)


def test_tables_of_polars_have_names_of_columns(face, monkeypatch):
    """Polars itself is not needed here: what it is given is looked at."""

    class DataFrame:
        def __init__(self, values, schema, orient):
            self.values, self.schema, self.orient = values, schema, orient

    monkeypatch.setitem(
        sys.modules, "polars", types.SimpleNamespace(DataFrame=DataFrame, Series=str)
    )
    counts = np.array([[3, 0, 2], [0, 5, 1]])
    plain = face.fit(counts).predict_proba(counts)
    table = face.set_output(transform="polars").predict_proba(counts)
    np.testing.assert_array_equal(table.values, plain)
    assert (table.schema, table.orient) == (["0", "1", "2"], "row")


def as_one(result):
    return result[0] if isinstance(result, list) else result


@pytest.mark.parametrize("name", [name for name in FACES if name.startswith(("process", "states"))])
def test_output_is_arrays_or_tables(name):
    with pytest.raises(ValueError, match=r'transform must be "default", .*"xarray" or None; got 3'):
        FACES[name][0].set_output(transform=3)


@pytest.mark.parametrize(
    "name", ["rows", "rows, Dirichlet", "process", "process, raw", "regression"]
)
def test_standard_deviations_are_tables_too(name):
    face, data = fresh(name)
    tables = labelled(data)
    face.fit(*tables).set_output(transform="pandas")
    mean, sd, draws = face.predict_proba(tables[0], return_std=True, return_draws=True, n_draws=16)
    pd.testing.assert_index_equal(sd.index, mean.index)
    assert list(sd.columns) == NAMES
    assert isinstance(draws, np.ndarray)


@pytest.mark.parametrize("name", ["states", "composition", "states, hidden", "unigram"])
def test_results_of_sequences_have_names(name):
    face, data = fresh(name)
    months = pd.period_range("2020-03", periods=9, freq="M", name="month")
    first, second = labelled(data)[0]
    face.fit([first.set_axis(months), second])
    now, ahead = face.filter([first.set_axis(months), second]), face.forecast(3, n_draws=8)
    pd.testing.assert_index_equal(now[0].to_frame().index, months)
    np.testing.assert_array_equal(now[1].to_frame()["mean"], now[1].probabilities)
    frame = ahead[0].to_frame()
    assert list(frame.index.astype(str)) == ["2020-12", "2021-01", "2021-02"]
    assert frame.index.name == "month"
    assert list(frame["upper"].columns) == NAMES
    np.testing.assert_array_equal(frame["lower"], ahead[0].lower)
    assert list(ahead[1].to_frame().index) == [1, 2, 3]  # words do not go on
    as_dataset = ahead[0].to_xarray()
    assert as_dataset["draws"].dims == ("draw", "month", "category")
    np.testing.assert_array_equal(as_dataset["lower"], frame["lower"])
    pd.testing.assert_index_equal(as_dataset.indexes["month"], frame.index)
    assert dict(now[1].to_xarray()["states"].sizes) == {"place": 7, "state": now[1].states.shape[1]}
    if hasattr(face, "smooth"):
        smoothed = face.smooth()[1]
        assert list(smoothed.to_frame().index) == list(second.index)
        np.testing.assert_array_equal(smoothed.to_xarray()["upper"], smoothed.upper)


def test_an_interval_is_a_table(fitted):
    face, _ = fitted("rows")
    found = face.log_share_correlation()
    assert list(found.to_frame().columns.levels[0]) == ["mean", "lower", "upper"]
    pd.testing.assert_frame_equal(found.to_frame()["lower"], found.lower)
    upper = found.to_xarray()["upper"]
    assert upper.dims == ("name", "other_name")
    np.testing.assert_array_equal(upper.to_pandas(), found.upper)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (None, [4, 5]),
        (pd.RangeIndex(4), [4, 5]),
        (pd.Index([1990, 1992, 1994, 1996]), [1998, 2000]),
        (pd.Index([1990, 1992, 1993, 1996]), [1, 2]),
        (pd.Index([4, 3, 2, 1]), [1, 2]),
        (pd.Index(list("abcd")), [1, 2]),
        (
            pd.date_range("2020-01-31", periods=4, freq="ME"),
            list(pd.to_datetime(["2020-05-31", "2020-06-30"])),
        ),
        (pd.DatetimeIndex(["2020-01-01", "2020-01-02", "2020-02-01", "2020-02-09"]), [1, 2]),
        (
            pd.period_range("2019", periods=4, freq="Y"),
            list(pd.period_range("2023", "2024", freq="Y")),
        ),
    ],
)
def test_steps_after_the_last(index, expected):
    assert list(steps_after(index, 4, 2)) == expected


@pytest.mark.parametrize("name", [name for name in FACES if name.startswith("process")])
def test_counts_at_inputs_may_be_y(name, fitted):
    face, (inputs, counts) = fitted(name)
    other, _ = fresh(name)
    other.fit(inputs, y=counts)
    expected = face.score_samples(inputs, counts)
    np.testing.assert_array_equal(other.score_samples(inputs, y=counts), expected)
    assert other.score(inputs, y=counts) == face.score(inputs, counts)
    for wrong, what in (({}, "neither"), ({"X": counts, "y": counts}, "both")):
        with pytest.raises(TypeError, match=f"as X or as y; got {what}"):
            other.fit(inputs, **wrong)


@pytest.mark.parametrize("name", WITHOUT_RUNS)
def test_what_makes_no_run_can_not_be_resumed(name):
    face, data = fresh(name)
    with pytest.raises(ValueError, match="makes no run that could be resumed"):
        face.fit(*data, resume=True)


@pytest.mark.parametrize("name", ["rows", "process", "states", "topics"])
def test_a_run_by_a_generator_is_resumed_with_its_own_seed(name, tmp_path):
    face, data = fresh(name, random_state=np.random.default_rng(1), checkpoint=tmp_path)
    seed = face.fit(*data).seed_
    assert face.fit(*data, resume=True).seed_ == seed


@pytest.mark.parametrize("name", ["rows", "process", "states"])
def test_a_seed_for_groups_that_nobody_asked_for(name, fitted):
    face, _ = fitted(name)
    with pytest.raises(ValueError, match="random_state is of no use where no group is asked for"):
        face.to_arviz(random_state=3)
