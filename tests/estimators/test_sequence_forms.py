"""The forms that others give sequences: columns with lengths, batches of tokens."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from polystick import Gibbs, MultinomialLDS
from polystick.baselines.sequence_models import MultinomialHMM, SmoothedUnigram
from polystick.estimators.sequences import read_sequences

RUN = {"inference": Gibbs(3, 3, n_chains=1), "random_state": 0, "n_jobs": 1}
TOKENS = np.array([0, 1, 2, 2, 1, 0, 0, 1, 2])
LENGTHS = [4, 2, 3]
PARTS = np.split(TOKENS, [4, 6])


def tokens_of(read):
    return [sequence.tolist() for sequence in read.sequences]


def test_a_column_is_tokens():
    expected = tokens_of(read_sequences(TOKENS))
    for X in (TOKENS[:, None], [TOKENS[:, None]], pd.DataFrame({"word": TOKENS})):
        assert tokens_of(read_sequences(X)) == expected


def test_columns_with_lengths_are_sequences():
    expected = [part.tolist() for part in PARTS]
    for X in (TOKENS, TOKENS[:, None], TOKENS.tolist(), pd.Series(TOKENS)):
        for lengths in (LENGTHS, tuple(LENGTHS), np.array(LENGTHS)):
            assert tokens_of(read_sequences(X, lengths=lengths)) == expected
    counts = np.eye(3, dtype=int)[TOKENS]
    for X in (counts, scipy.sparse.coo_array(counts), pd.DataFrame(counts, columns=list("abc"))):
        read = read_sequences(X, lengths=LENGTHS)
        for found, part in zip(read.sequences, PARTS):
            np.testing.assert_array_equal(found.toarray(), np.eye(3)[part])


def test_an_index_is_cut_with_its_sequence():
    days = pd.date_range("2026-01-01", periods=9)
    read = read_sequences(pd.Series(TOKENS, days), lengths=LENGTHS)
    assert [list(index) for index in read.indexes] == [
        list(days[:4]),
        list(days[4:6]),
        list(days[6:]),
    ]


@pytest.mark.parametrize(
    "face", [MultinomialHMM(2, **RUN), MultinomialLDS(1, **RUN)], ids=["hmm", "lds"]
)
def test_all_methods_take_lengths(face):
    face.fit(TOKENS[:, None], lengths=LENGTHS)
    column, whole = {"X": TOKENS[:, None], "lengths": LENGTHS}, {"X": PARTS}
    assert face.score(**column) == face.score(**whole)
    np.testing.assert_array_equal(face.score_samples(**column), face.score_samples(**whole))
    for name in ("predict_proba", "score_steps"):
        for one, other in zip(getattr(face, name)(**column), getattr(face, name)(**whole)):
            np.testing.assert_array_equal(one, other)
    methods = [face.filter, face.smooth]
    methods += [lambda **given: face.forecast(2, n_draws=8, **given)]
    for method in methods:
        for one, other in zip(method(**column), method(**whole)):
            np.testing.assert_array_equal(
                *(getattr(x, "probabilities", getattr(x, "lower", None)) for x in (one, other))
            )
    if hasattr(face, "decode"):
        for one, other in zip(face.decode(**column), face.decode(**whole)):
            np.testing.assert_array_equal(one.states, other.states)
        assert len(face.state_probabilities(**column)) == 3


def test_inputs_are_cut_like_their_sequences():
    inputs = np.random.default_rng(0).normal(size=(9, 2))
    face = MultinomialLDS(1, inputs_on="emissions", **RUN).fit(TOKENS, inputs, lengths=LENGTHS)
    parts = np.split(inputs, [4, 6])
    for one, other in zip(face.read_.inputs, parts):
        np.testing.assert_array_equal(one, other)
    assert face.score(TOKENS, inputs, lengths=LENGTHS) == face.score(PARTS, parts)


@pytest.mark.parametrize(
    ("X", "lengths", "message"),
    [
        (TOKENS, [4, 2], "lengths must add up to the 9 steps of X; they add up to 6"),
        (TOKENS, [4.0, 5.0], "lengths must be whole numbers of steps"),
        (TOKENS, [-1, 10], "lengths must be whole numbers of steps"),
        (TOKENS, 9, "lengths must be whole numbers of steps"),
        (PARTS, LENGTHS, "one after another where lengths are given; got 3 arrays"),
    ],
)
def test_lengths_that_are_refused(X, lengths, message):
    with pytest.raises(ValueError, match=message):
        SmoothedUnigram().fit(X, lengths=lengths)


# a table of whole numbers


def markov(n, n_steps, K, rng):
    tokens = np.empty((n, n_steps), int)
    tokens[:, 0] = rng.integers(K, size=n)
    for t in range(1, n_steps):
        stays = rng.random(n) < 0.8
        tokens[:, t] = np.where(stays, tokens[:, t - 1], rng.integers(K, size=n))
    return tokens


@pytest.mark.parametrize(
    ("n", "n_steps", "K"), [(20, 50, 6), (3, 200, 4), (500, 20, 2), (40, 40, 26)]
)
def test_a_batch_of_tokens_is_not_read_as_counts(n, n_steps, K):
    for seed in range(5):
        tokens = markov(n, n_steps, K, np.random.default_rng(seed))
        message = rf"what its \({n}, {n_steps}\) whole numbers are: give list\(X\) .* or \[X\]"
        with pytest.raises(ValueError, match=message):
            read_sequences(tokens)
        assert tokens_of(read_sequences(list(tokens))) == tokens.tolist()
        assert read_sequences([tokens]).sequences[0].shape == (n, n_steps)
        tokens[:, 0] = 0  # all begin alike
        with pytest.raises(ValueError, match=message):
            read_sequences(tokens)


@pytest.mark.parametrize("total", [3, 40, 3000])
def test_counts_of_unlike_categories_are_not_doubted(total):
    """Few or many, of equal or of other totals, as long as categories differ in frequency."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        for K, n_steps in ((3, 100), (50, 200)):
            shares = 1.0 / np.arange(1, K + 1)
            shares /= shares.sum()
            equal = rng.multinomial(total, shares, n_steps)
            assert read_sequences(equal).sequences[0].shape == (n_steps, K)
            other = rng.multinomial(rng.poisson(total, n_steps) + 1, shares)
            assert read_sequences(other).sequences[0].shape == (n_steps, K)


def test_a_table_of_another_width_hears_of_lists():
    face = SmoothedUnigram(n_categories=6)
    tokens = np.random.default_rng(0).integers(6, size=(10, 30))
    with pytest.raises(
        ValueError, match=r"has 30; where each row is a sequence of tokens, give list\(X\)"
    ):
        face.fit(tokens)
    face.fit(list(tokens))
    with pytest.raises(
        ValueError, match=r"seen in fit as columns; sequence 0 has 30; where each row"
    ):
        face.score(tokens)


@pytest.mark.parametrize("n", [1, 3, 10])
def test_stretches_go_over_the_ends_of_sequences(n):
    rng = np.random.default_rng(n)
    lengths = (3, 1, 40, 7, 2)
    tokens = [rng.integers(-1, 6, length) for length in lengths]
    counts = [rng.integers(0, 5, (length, 6)) for length in lengths]
    whole, table = np.concatenate(tokens), np.concatenate(counts)
    edges = len(whole) * np.arange(n + 1) // n
    of_tokens = read_sequences(tokens, n_categories=6).stretches(n)
    of_counts = read_sequences(counts).stretches(n)
    for i, (a, b) in enumerate(itertools.pairwise(edges)):
        seen = whole[a:b][whole[a:b] >= 0]
        np.testing.assert_array_equal(of_tokens[i], np.bincount(seen, minlength=6))
        np.testing.assert_array_equal(of_counts[i], table[a:b].sum(axis=0))
