"""Sequences and what comes beside them: every form is read, and what is wrong is named."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from polystick import Gibbs, MultinomialLDS
from polystick.estimators.sequence_inputs import check_n_seen, check_totals, read_inputs
from polystick.estimators.sequences import read_sequences
from polystick.models import sequence_blocks

TOKENS = [0, 2, -1, 1]
COUNTS = np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]])


def dense(sequence):
    return sequence.toarray() if scipy.sparse.issparse(sequence) else sequence


# forms


@pytest.mark.parametrize(
    "X",
    [
        TOKENS,
        tuple(TOKENS),
        np.array(TOKENS),
        np.array(TOKENS, dtype=np.int8),
        [0, 2, None, 1],
        [0.0, 2.0, np.nan, 1.0],
        np.array([0, 2, None, 1], dtype=object),
        pd.Series([0, 2, None, 1]),
        pd.Series([0, 2, None, 1], dtype="Int64"),
        pd.Series(TOKENS),
        [TOKENS],
        [np.array(TOKENS)],
        (pd.Series(TOKENS),),
    ],
    ids=str,
)
def test_every_form_of_tokens(X):
    read = read_sequences(X)
    assert len(read.sequences) == 1
    np.testing.assert_array_equal(read.sequences[0], TOKENS)
    assert read.sequences[0].dtype == np.int64
    np.testing.assert_array_equal(read.categories, [0, 1, 2])
    np.testing.assert_array_equal(read.lengths, [4])
    np.testing.assert_array_equal(read.totals[0], [1, 1, 0, 1])
    np.testing.assert_array_equal(read.counts, [1, 1, 1])


@pytest.mark.parametrize(
    "X",
    [
        COUNTS,
        COUNTS.astype(float),
        np.array([[1, 0, 2], [np.nan] * 3, [0, 3, 0]]),
        np.array([[1, 0, 2], [None] * 3, [0, 3, 0]], dtype=object),
        scipy.sparse.csr_array(COUNTS),
        scipy.sparse.csc_matrix(COUNTS),
        scipy.sparse.coo_array(([1, 1, 1, 3], ([0, 0, 0, 2], [0, 2, 2, 1])), shape=(3, 3)),
        pd.DataFrame(COUNTS),
        [COUNTS],
        [COUNTS.tolist()],
        COUNTS[None],
    ],
    ids=lambda X: f"{type(X).__module__}.{type(X).__name__}",
)
def test_every_form_of_counts(X):
    read = read_sequences(X)
    (sequence,) = read.sequences
    assert isinstance(sequence, scipy.sparse.csr_array)
    assert sequence.dtype == np.int64
    assert sequence.has_canonical_format
    np.testing.assert_array_equal(sequence.toarray(), COUNTS)
    np.testing.assert_array_equal(read.totals[0], [3, 0, 3])
    np.testing.assert_array_equal(read.counts, [1, 3, 2])


def test_many_sequences_of_different_lengths_and_kinds():
    read = read_sequences([[1, 0], COUNTS, np.array([2, 2, 1, 0])])
    np.testing.assert_array_equal(read.lengths, [2, 3, 4])
    np.testing.assert_array_equal(read.counts, [3, 5, 4])
    blocks = sequence_blocks.cut(read.sequences)
    np.testing.assert_array_equal(blocks[0].starts, [0, 2, 5, 9])
    np.testing.assert_array_equal(blocks[0].totals, [1, 1, 3, 0, 3, 1, 1, 1, 1])
    lists = read_sequences([[0, 1, 1], [1, 0, 0]])  # tokens, not rows of counts
    assert [sequence.ndim for sequence in lists.sequences] == [1, 1]
    ragged = np.empty(2, dtype=object)
    ragged[:] = [[0, 1], [1, 0, 1]]
    np.testing.assert_array_equal(read_sequences(ragged).lengths, [2, 3])


def test_names_are_those_of_the_columns():
    table = pd.DataFrame(COUNTS, columns=["a", "b", "c"])
    read = read_sequences([table, table])
    assert list(read.categories) == ["a", "b", "c"]
    again = read_sequences(COUNTS, n_categories=3, categories=read.categories)
    assert list(again.categories) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="column 0 of sequence 1 is 'c', not 'a'"):
        read_sequences([table, table[["c", "b", "a"]]])
    with pytest.raises(ValueError, match="column 1 of sequence 0 is 'd', not 'b'"):
        read_sequences(table.rename(columns={"b": "d"}), n_categories=3, categories=read.categories)
    with pytest.raises(ValueError, match="names of categories must differ; sequence 0"):
        read_sequences(pd.DataFrame(COUNTS, columns=["a", "b", "a"]))


def test_more_categories_than_were_seen():
    read = read_sequences([0, 1, 0], n_categories=5)
    assert len(read.categories) == 5
    np.testing.assert_array_equal(read.counts, [2, 1, 0, 0, 0])


def test_reading_changes_nothing_of_what_came():
    for X in (COUNTS.astype(float), scipy.sparse.csr_array(COUNTS), np.array([0.0, np.nan, 1.0])):
        before = dense(X).copy()
        read = read_sequences(X)
        values = read.sequences[0]
        (values.data if scipy.sparse.issparse(values) else values)[:] = 7
        np.testing.assert_array_equal(dense(X), before)


# errors

FITTED = {"n_categories": 3, "categories": np.arange(3)}
WRONG = [
    ([[0, 1], [0, 5, 1]], FITTED, ValueError, "tokens must be 0..2, .*; step 1 of sequence 1 has 5"),
    ([0, 1, -2], {}, ValueError, "-1 where one is missing; step 2 of sequence 0 has -2"),
    ([[0, 1], [0.5, 1]], {}, ValueError, "whole numbers; step 0 of sequence 1 has 0.5"),
    ([0, np.inf], {}, ValueError, "step 1 of sequence 0 has inf"),
    (["a", "b"], {}, TypeError, "tokens of sequence 0 must be whole numbers.*np.unique"),
    ("abba", {}, TypeError, "X must be a sequence .*got str"),
    ({"a": 1}, {}, TypeError, "X must be a sequence .*got dict"),
    (3, {}, TypeError, "X must be an array, a list, CSR or a DataFrame; got int"),
    ([True, False], {}, TypeError, "tokens of sequence 0 must be whole numbers; got bool"),
    ([[0, 1], "ab"], {}, TypeError, "sequence 1 must be tokens or rows of counts; got 'ab'"),
    ([[0, 1], None], {}, TypeError, "sequence 1 must be tokens or rows of counts; got None"),
    ([], {}, ValueError, "at least one sequence; got an empty list"),
    ([[0, 1], []], {}, ValueError, "at least 1 step; sequence 1 has 0"),
    (np.zeros(0), {}, ValueError, "at least 1 step; sequence 0 has 0"),
    (np.zeros((0, 3)), {}, ValueError, "at least 1 step; sequence 0 has 0"),
    ([[0, 1], [1]], {"shortest": 2}, ValueError, "at least 2 steps; sequence 1 has 1; leave it out"),
    (np.zeros((2, 2, 2, 2)), {}, ValueError, "got an array of 4 axes"),
    ([np.zeros((2, 2, 2))], {}, ValueError, "sequence 0 must be tokens .*got 3 axes"),
    ([[[1, 0], [1]]], {}, ValueError, "sequence 0 must have rows of equal length"),
    (-COUNTS, {}, ValueError, "counts must be at least 0; step 0 of sequence 0 has -1"),
    (COUNTS / 2, {}, ValueError, "whole numbers; step 0 of sequence 0 has 0.5"),
    (scipy.sparse.csr_array(COUNTS / 2), {}, ValueError, "whole numbers; step 0 of sequence 0"),
    (np.where(COUNTS == 2, np.inf, COUNTS), {}, ValueError, "finite; step 0 of sequence 0 has inf"),
    (np.where(COUNTS == 3, np.nan, COUNTS), {}, ValueError, "or for none; step 2 of sequence 0"),
    (np.array([["a", "b"]]), {}, TypeError, "counts of sequence 0 must be whole numbers"),
    (COUNTS * 10**9, {}, ValueError, r"at most 1e\+09; step 0 of sequence 0 has 3e\+09"),
    ([COUNTS, COUNTS[:, :2]], {}, ValueError, "the 3 of the others as columns; sequence 1 has 2"),
    (COUNTS[:, :2], FITTED, ValueError, "the 3 categories seen in fit as columns; sequence 0 has 2"),
    (COUNTS, {"n_categories": 4}, ValueError, "the 4 categories asked for as columns; sequence 0 has 3"),
    ([-1, -1], {"n_categories": 3}, ValueError, "nothing but missing steps"),
    (0 * COUNTS, {}, ValueError, "nothing but missing steps"),
    ([0, 0, 0], {}, ValueError, "at least 2 categories; got 1; give n_categories"),
]  # fmt: skip


@pytest.mark.parametrize(("X", "options", "error", "message"), WRONG, ids=lambda v: str(v)[:40])
def test_what_is_wrong_is_named(X, options, error, message):
    with pytest.raises(error, match=message):
        read_sequences(X, **options)


def test_missing_steps_alone_are_fine_after_the_fit():
    assert read_sequences([-1, None], **FITTED).counts.sum() == 0


# inputs


def test_inputs_of_one_and_of_many():
    u = np.arange(6.0).reshape(3, 2)
    for inputs in (u, [u], u.tolist(), [u.tolist()], pd.DataFrame(u), u[None], u.astype(int)):
        (table,) = read_inputs(inputs, [3])
        np.testing.assert_array_equal(table, u)
        assert table.dtype == np.float64
    first, second = read_inputs([u, u[:1]], [3, 1], width=2)
    assert first.shape == (3, 2)
    assert second.shape == (1, 2)
    assert len(read_inputs(np.zeros((4, 3, 2)), [3] * 4)) == 4


@pytest.mark.parametrize(
    ("inputs", "lengths", "options", "error", "message"),
    [
        (np.zeros((4, 2)), [3], {}, ValueError, "those of sequence 0 have 4 rows for 3 steps"),
        (np.zeros((3, 2)), [3, 3], {}, ValueError, "each of the 2 sequences; got 1"),
        ([np.zeros((3, 2)), np.zeros((2, 1))], [3, 2], {}, ValueError,
         "2 columns, like those of the first; those of sequence 1 have 1"),
        (np.zeros((3, 2)), [3], {"width": 3}, ValueError, "3 columns, like those of the fit"),
        (np.zeros(3), [3], {}, ValueError, "two axes.*got shape .3,.; reshape"),
        (np.zeros((3, 0)), [3], {}, ValueError, "two axes"),
        ([[0.0], [np.nan], [1.0]], [3], {}, ValueError, "finite; step 1 of sequence 0 has .nan."),
        (np.full((3, 1), np.inf), [3], {"name": "new_inputs"}, ValueError, "new_inputs must be finite"),
        ([["a"], ["b"]], [2], {}, TypeError, "inputs of sequence 0 must be numbers"),
        (7, [2], {}, TypeError, "inputs of sequence 0 must be an array"),
        ([[1.0, 2.0], [1.0]], [2], {}, ValueError, "inputs of sequence 0 must have rows of equal"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_inputs_is_named(inputs, lengths, options, error, message):
    with pytest.raises(error, match=message):
        read_inputs(inputs, np.array(lengths), **options)


# other numbers


def test_steps_that_were_seen():
    lengths = np.array([4, 6])
    np.testing.assert_array_equal(check_n_seen(3, lengths), [3, 3])
    np.testing.assert_array_equal(check_n_seen([4, 0], lengths), [4, 0])
    for wrong in (1.5, [1, 2, 3], "two", [[1, 2]]):
        with pytest.raises(ValueError, match="integer, or one for each of the 2 sequences"):
            check_n_seen(wrong, lengths)
    with pytest.raises(ValueError, match="got 5 for sequence 0 of 4 steps"):
        check_n_seen(5, lengths)
    with pytest.raises(ValueError, match="got -1 for sequence 1 of 6 steps"):
        check_n_seen([0, -1], lengths)


def test_totals_to_simulate():
    np.testing.assert_array_equal(check_totals(3), [[1, 1, 1]])
    assert [len(total) for total in check_totals([[1, 2], np.array([0, 3, 1])])] == [2, 3]
    with pytest.raises(TypeError, match="n_steps must be an integer"):
        check_totals(2.5)
    for wrong in ([[1.5]], [[-1]], [3], [[]]):
        with pytest.raises(ValueError, match="whole totals"):
            check_totals(wrong)
    with pytest.raises(ValueError, match="at least one sequence"):
        check_totals([])


def test_inputs_and_counts_in_frames_have_the_same_index():
    days = pd.date_range("2020-01-01", periods=3)
    inputs = pd.DataFrame({"dose": [0.1, 0.2, 0.3]}, index=days)
    counts = pd.DataFrame({"a": [1, 2, 3], "b": [3, 2, 1]}, index=days)
    message = (
        r"inputs\[0\] and X\[0\] must have the same index.*use inputs\[0\]\.loc\[X\[0\]\.index\]"
    )
    read_inputs(inputs, [3], beside=counts)
    read_inputs(inputs, [3], beside=[[0, 1, 1]])  # tokens have no index
    for given, beside in ((inputs[::-1], counts), ([inputs[::-1]], [counts])):
        with pytest.raises(ValueError, match=message):
            read_inputs(given, [3], beside=beside)
    model = MultinomialLDS(1, inputs_on="states", inference=Gibbs(2, 2, n_chains=1), random_state=0)
    with pytest.raises(ValueError, match=message):
        model.fit(counts, inputs[::-1])
    model.fit(counts, inputs)
    with pytest.raises(ValueError, match=message):
        model.predict_proba(counts, inputs[::-1])
