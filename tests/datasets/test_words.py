"""From text to counts, and a twin of it: scikit-learn's CountVectorizer."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.feature_extraction.text import CountVectorizer

from polystick.datasets import text


@pytest.mark.parametrize(
    ("plain", "tagged"),
    [
        ("about 250 people", "about anumber people"),
        ("in 1987 10 of\n12 men", "in anumber anumber of\nanumber men"),
        ("$10 or 1,000 or 3.5 or 16-year", "$10 or 1,000 or 3.5 or 16-year"),
        ("page 7 ", "page anumber "),
    ],
)
def test_numbers_between_blanks_become_a_word_of_its_own(plain, tagged):
    assert text.tag_numbers(plain) == tagged


def test_words_are_lower_case_in_order_and_without_stop_words():
    found = text.split_words("The Queen's CROQUET-ground, a rose; x 42 and the queen")
    assert found == ["queen", "croquet", "ground", "rose", "42", "queen"]


def test_the_most_frequent_words_and_the_alphabet_where_counts_are_equal():
    texts = [["pig", "pepper", "cat"], ["cat", "ant", "pepper"], ["tea"]]
    assert text.most_frequent(texts).tolist() == ["cat", "pepper", "ant", "pig", "tea"]
    assert text.most_frequent(texts[::-1], 3).tolist() == ["cat", "pepper", "ant"]


@pytest.mark.parametrize("n_words", [0, 3, -1])
def test_more_words_than_there_are(n_words):
    said = f"n_words must be from 1 to 2, or None for all of them; got {n_words}"
    with pytest.raises(ValueError, match=said):
        text.most_frequent([["cat", "pig"]], n_words)
    with pytest.raises(ValueError, match=said):
        text.keep_most_frequent(scipy.sparse.csr_array([[1, 2]]), np.array(["cat", "pig"]), n_words)


def test_words_that_are_not_listed_are_left_out():
    words = np.array(["cat", "pig"])
    sequences = text.encode([["pig", "owl", "cat", "pig"], ["owl"], []], words)
    assert [sequence.tolist() for sequence in sequences] == [[1, 0, 1], [], []]
    counts = text.count(sequences, 2)
    assert counts.toarray().tolist() == [[1, 2], [0, 0], [0, 0]]
    assert counts.dtype == np.int64
    assert counts.has_canonical_format


def test_columns_by_falling_count():
    counts = scipy.sparse.csr_array([[1, 0, 2, 0], [1, 4, 0, 2]])
    words = np.array(["owl", "pig", "cat", "ant"])
    kept, names = text.keep_most_frequent(counts, words)
    assert names.tolist() == ["pig", "ant", "cat", "owl"]
    assert kept.toarray().tolist() == [[0, 0, 2, 1], [4, 2, 0, 1]]
    kept, names = text.keep_most_frequent(counts, words, 2)
    assert kept.toarray().tolist() == [[0, 0], [4, 2]]
    assert names.tolist() == ["pig", "ant"]


def test_counts_are_those_of_scikit_learn():
    rng = np.random.default_rng(3)
    letters = np.array(list("abcdeéAB_19  --.'\n"))
    texts = ["".join(rng.choice(letters, 400)) + " the and" for _ in range(30)]
    vectorizer = CountVectorizer(stop_words="english")
    theirs = vectorizer.fit_transform(texts)
    order = np.argsort(-np.asarray(theirs.sum(axis=0)).ravel(), kind="stable")
    bags = [text.split_words(each) for each in texts]
    words = text.most_frequent(bags)
    assert words.tolist() == vectorizer.get_feature_names_out()[order].tolist()
    counts = text.count(text.encode(bags, words), len(words))
    np.testing.assert_array_equal(counts.toarray(), theirs.toarray()[:, order])
