"""Inputs are checked once, and rows with the same inputs are one."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator

from polystick.estimators.inputs import Categories, check_inputs, check_table, merge, merge_inputs


class Face(BaseEstimator):
    """Remembers what scikit-learn wants to be remembered."""


PLACES = pd.DataFrame({"year": [2000, 2001, 2000], "height": [0.5, 1.5, 2.5]})


def test_any_container_gives_the_same():
    expected = PLACES.to_numpy(float)
    for kind in (
        np.asarray,
        pd.DataFrame,
        lambda Z: np.asarray(Z, order="F"),
        pd.DataFrame.convert_dtypes,
    ):
        found = check_inputs(Face(), kind(PLACES), reset=True)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == np.float64
        assert found.flags.c_contiguous
    np.testing.assert_array_equal(check_inputs(Face(), expected.tolist(), reset=True), expected)
    booleans = check_inputs(Face(), np.array([[True], [False]]), reset=True)
    np.testing.assert_array_equal(booleans, [[1.0], [0.0]])


def test_what_came_is_left_as_it_was():
    given = np.array([[-0.0, 1.0]])
    found = check_inputs(Face(), given, reset=True)
    found[:] = 7.0
    assert np.signbit(given[0, 0])


BAD = [
    ([1.0, 2.0], r"two axes.*got shape \(2,\); reshape a single column with np\.reshape\(Z, \(-1, 1\)\)"),
    (pd.Series([1.0, 2.0]), r"two axes.*got shape \(2,\); reshape"),
    (np.zeros((2, 2, 2)), r"two axes.*got shape \(2, 2, 2\)"),
    (3.0, r"two axes.*got shape \(\)"),
    ([[1.0], [1.0, 2.0]], "rows of equal length"),
    ([[1.0], [np.nan]], "inputs must be finite; got .*NaN.*; leave out rows whose place or time"),
    ([[1.0], [np.inf]], "inputs must be finite; got .*infinity"),
    ([["Ohio"], ["Utah"]], "inputs must be numbers; got .*; give places as coordinates"),
    (pd.DataFrame({"state": ["OH", "UT"]}), "inputs must be numbers; got .*OH"),
    (np.array([["2000-01-01"]], "datetime64[D]"), "must be numbers; got datetime64.*count years or days"),
    (pd.DataFrame({"day": pd.to_datetime(["2000-01-01"])}), "must be numbers; got datetime64"),
    (np.array([[pd.Timestamp("2000-01-01")]], object), "inputs must be numbers; got .*Timestamp"),
    (np.empty((0, 2)), "inputs must have at least one row; got .*0 sample"),
    (scipy.sparse.csr_array([[1.0], [2.0]]), r"inputs must be dense; got .*; use Z\.toarray\(\)"),
    (pd.DataFrame([[1, 2]], columns=["x", "x"]), "names of inputs must differ; got 'x' twice"),
]  # fmt: skip


@pytest.mark.parametrize(("Z", "message"), BAD, ids=range(len(BAD)))
def test_bad_inputs(Z, message):
    with pytest.raises(ValueError, match=message):
        check_inputs(Face(), Z, reset=True)


def test_the_columns_of_the_fit_are_asked_for():
    face = Face()
    check_inputs(face, PLACES, reset=True)
    assert list(face.feature_names_in_) == ["year", "height"]
    check_inputs(face, PLACES[:1], reset=False)
    for form in (np.asarray, np.ndarray.tolist, pd.DataFrame):
        with pytest.raises(
            ValueError, match="inputs must have the 2 columns seen in fit; got 3; select"
        ):
            check_inputs(face, form(np.zeros((4, 3))), reset=False)
    with pytest.raises(
        ValueError, match="columns seen in fit; got 'The feature names should match"
    ):
        check_inputs(face, PLACES[["height", "year"]], reset=False)


def test_counts_have_names_and_a_width_of_their_own():
    face, categories = Face(), Categories()
    counts = pd.DataFrame({"a": [1, 0, 2], "b": [0, 0, 3]})
    inputs, found = check_table(face, categories, PLACES, counts, reset=True, whole=True)
    np.testing.assert_array_equal(inputs, PLACES)
    np.testing.assert_array_equal(found, counts)
    assert list(categories.names) == ["a", "b"]
    assert list(face.feature_names_in_) == ["year", "height"]
    sparse = check_table(
        Face(), categories, PLACES, scipy.sparse.csr_array(counts), reset=True, whole=True
    )
    with pytest.raises(
        ValueError, match="categories seen in fit; got 'X has 3 features, but Categories"
    ):
        categories.check(np.zeros((2, 3)), reset=False, whole=True)
    np.testing.assert_array_equal(sparse[1], counts)
    assert isinstance(sparse[1], np.ndarray)


def test_inputs_and_counts_have_equally_many_rows():
    with pytest.raises(ValueError, match=r"equally many rows.*got 3 inputs and 2 rows of counts"):
        check_table(Face(), Categories(), PLACES, [[1, 2], [3, 4]], reset=True, whole=True)


GAPS = np.array([[1.0, 2.0], [3.0, np.nan]])


@pytest.mark.parametrize(
    "kind",
    [
        np.asarray,
        np.ndarray.tolist,
        scipy.sparse.csr_array,
        lambda a: pd.DataFrame(a, columns=["a", "b"]),
        lambda a: pd.DataFrame(a, columns=["a", "b"]).convert_dtypes(),
        lambda a: a.astype(object),
    ],
)
def test_nan_is_told_in_our_own_words(kind):
    with pytest.raises(ValueError, match="must be finite") as counted:
        Categories().check(kind(GAPS), reset=True, whole=True)
    assert str(counted.value) == (
        "counts must be finite; got NaN in row 1; put 0 where nothing was counted, or leave the row out"
    )
    if kind is not scipy.sparse.csr_array:
        with pytest.raises(ValueError, match="must be finite") as put_in:
            check_inputs(Face(), kind(GAPS), reset=True)
        assert str(put_in.value) == (
            "inputs must be finite; got NaN in row 1; leave out rows whose place or time is not known"
        )


TIMES, COUNTS = np.array([[-0.5, 1.0], [0.0, 2.0], [1.5, 2.0]]), np.array([[3, 4], [0, 2], [5, 1]])


def table(Z, X, whole=True):
    return check_table(Face(), Categories(), Z, X, reset=True, whole=whole)


@pytest.mark.parametrize(
    ("Z", "X", "rest"),
    [
        (COUNTS, TIMES, "if they are differences"),
        (COUNTS, TIMES + 1, "round them, or use inference=MeanField"),
        (COUNTS, [[2001], [2002], [2003]], "add the counts of everything else"),
        (scipy.sparse.csr_array(COUNTS), TIMES, r"use Z\.toarray"),
        (pd.DataFrame(COUNTS), pd.DataFrame(TIMES), "if they are differences"),
    ],
)
def test_swapped_inputs_and_counts_are_told(Z, X, rest):
    order = r"inputs come first and counts second, as in fit\(Z, X\): swap them .*; otherwise "
    with pytest.raises(ValueError, match=order + rest):
        table(Z, X)


@pytest.mark.parametrize(
    ("Z", "X"),
    [
        (TIMES, COUNTS + 0.5),
        (TIMES, -COUNTS),
        (COUNTS, GAPS),
        (COUNTS, [["a", "b"]] * 3),
        (COUNTS[:, :1], TIMES),
    ],
)
def test_other_errors_do_not_speak_of_swapping(Z, X):
    with pytest.raises(ValueError, match="counts must be") as caught:
        table(Z, X)
    assert "swap" not in str(caught.value)


def frames(left, right):
    return pd.DataFrame(TIMES, index=left), pd.DataFrame(COUNTS, index=right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (["a", "b", "c"], ["a", "b", "c"]),
        ([0, 1, 2], ["a", "b", "c"]),  # numbers from 0 name nothing
        (["a", "b", "c"], [0, 1, 2]),
        ([0, 1, 2], [4, 7, 9]),
        ([0, 1, 2], pd.MultiIndex.from_product([["x"], [1, 2, 3]])),
        ([1.0, 2.0, 3.0], [1, 2, 3]),
    ],
)
def test_rows_of_two_frames_may_be_named_by_one_of_them(left, right):
    Z, X = frames(left, right)
    np.testing.assert_array_equal(table(Z, X)[0], TIMES)
    np.testing.assert_array_equal(table(Z.to_numpy(), X)[1], COUNTS)


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        (["a", "b", "c"], ["a", "c", "b"], r"got 'b' and 'c' in row 1; use Z\.loc\[X\.index\], or reset"),
        ([0, 1, 2], [2, 0, 1], r"got 0 and 2 in row 0; use Z\.loc\[X\.index\]"),
        (["a", "b", "c"], ["a", "b", "d"], "got 'c' and 'd' in row 2; select the same rows of both"),
        ([5, 6, 7], [6, 7, 8], "got 5 and 6 in row 0; select the same rows of both"),
        (["a", "a", "b"], ["b", "a", "a"], "got 'a' and 'b' in row 0; select the same rows of both"),
        (["a", 1, "b"], [1, "a", "b"], r"use Z\.loc"),
    ],
)  # fmt: skip
def test_rows_of_two_frames_must_not_be_named_differently(left, right, message):
    Z, X = frames(left, right)
    with pytest.raises(ValueError, match=r"Z and X must have the same index.*" + message):
        table(Z, X)
    table(Z.reset_index(drop=True), X.reset_index(drop=True))


def test_repeated_inputs_are_merged_whatever_their_order():
    rng = np.random.default_rng(0)
    inputs = rng.integers(0, 3, (40, 2)) / 7.0
    counts = rng.integers(0, 5, (40, 3))
    merged = merge(inputs, counts)
    assert merged.counts.dtype == counts.dtype
    np.testing.assert_array_equal(merged.inputs[merged.place_of], inputs)
    assert len({tuple(row) for row in merged.inputs.tolist()}) == len(merged.inputs) < 40
    for place, total in zip(merged.inputs, merged.counts):
        np.testing.assert_array_equal(total, counts[(inputs == place).all(axis=1)].sum(axis=0))
    order = rng.permutation(40)
    again = merge(inputs[order], counts[order])
    np.testing.assert_array_equal(again.inputs, merged.inputs)
    np.testing.assert_array_equal(again.counts, merged.counts)
    np.testing.assert_array_equal(again.place_of, merged.place_of[order])
    np.testing.assert_array_equal(np.lexsort(merged.inputs.T[::-1]), np.arange(len(merged.inputs)))


def test_zero_has_no_sign():
    inputs = check_inputs(Face(), [[-0.0, 1.0], [0.0, 1.0]], reset=True)
    places, index = merge_inputs(inputs)
    assert places.tolist() == [[0.0, 1.0]]
    assert index.tolist() == [0, 0]


def test_merged_counts_may_be_too_large():
    inputs, counts = (
        np.array([[1.0], [2.0], [2.0]]),
        np.array([[1, 2], [6 * 10**8, 0], [0, 5 * 10**8]]),
    )
    with pytest.raises(
        ValueError, match=r"at most 1e\+09; those at \[2\.0\] have 1\.1e\+09; divide"
    ):
        merge(inputs, counts)
