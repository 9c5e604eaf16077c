"""One table over all estimators: scikit-learn's contract."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from polystick import (
    CorrelatedMultinomial,
    DirichletMultinomial,
    Gibbs,
    MeanField,
    NormalInverseWishart,
)
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
