"""Coherence by hand, and by an obvious twin."""

from math import log

import numpy as np
import pytest
import scipy.sparse

from polystick import coherence

# words a, b, c, d, e, f: a in documents 0, 1, 2; b in 0, 1; c in 2, 3; d in all; e in none; f in 3
CORPUS = np.array(
    [
        [2, 1, 0, 1, 0, 0],
        [1, 5, 0, 1, 0, 0],
        [1, 0, 1, 1, 0, 0],
        [0, 0, 3, 1, 0, 4],
    ]
)
A, B, C, D, E, F = range(6)


def test_umass_by_hand():
    # D(a, b) = 2, D(a, c) = 1, D(b, c) = 0
    found = coherence.umass([[A, B, C], [C, B, A]], CORPUS)
    np.testing.assert_allclose(found[0], (log(3 / 3) + log(2 / 3) + log(1 / 2)) / 3)
    np.testing.assert_allclose(found[1], (log(1 / 2) + log(2 / 2) + log(3 / 2)) / 3)
    halved = coherence.umass([[A, B]], CORPUS, smoothing=0.5)
    np.testing.assert_allclose(halved, [log(2.5 / 3)])


def test_npmi_by_hand():
    pairs = [[A, B], [B, C], [A, D], [C, F]]
    together_a_b = log((2 / 4) / (3 / 4 * 2 / 4)) / -log(2 / 4)
    together_c_f = log((1 / 4) / (2 / 4 * 1 / 4)) / -log(1 / 4)
    expected = [together_a_b, -1, 0, together_c_f]
    np.testing.assert_allclose(coherence.npmi(pairs, CORPUS), expected, atol=1e-15)
    inseparable = np.array([[1, 1], [1, 1], [0, 0]])
    np.testing.assert_allclose(coherence.npmi([[0, 1]], inseparable), [1])
    np.testing.assert_array_equal(coherence.npmi([[0, 1]], inseparable[:2]), [0])  # in all


def test_words_that_never_occur_are_left_out():
    for score in (coherence.umass, coherence.npmi):
        found = score([[A, E, B], [E, B, A], [B, A, E]], CORPUS)
        np.testing.assert_array_equal(found, score([[A, B], [B, A], [B, A]], CORPUS))
        assert np.isnan(score([[E, A]], CORPUS)).all()


def twin(kind, words, corpus):
    documents = [{v for v in range(corpus.shape[1]) if row[v] > 0} for row in corpus]
    n, values = len(documents), []

    def having(*some):
        return sum(all(v in document for v in some) for document in documents)

    for m in range(1, len(words)):
        for l in range(m):
            v, w = words[l], words[m]
            if not (having(v) and having(w)):
                continue
            if kind == "umass":
                values.append(log((having(v, w) + 1) / having(v)))
            elif having(v, w) == 0:
                values.append(-1.0)
            else:
                p = having(v, w) / n
                values.append(log(p * n * n / (having(v) * having(w))) / -log(p))
    return np.mean(values)


@pytest.mark.parametrize("kind", ["umass", "npmi"])
@pytest.mark.parametrize(
    "form", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.coo_array]
)
def test_twin(kind, form):
    rng = np.random.default_rng(2)
    corpus = rng.poisson(rng.gamma(0.3, 1.0, (40, 25)))
    corpus[:, 3] = 0
    corpus[7] = 0
    topics = np.array([rng.permutation(25)[:6] for _ in range(9)])
    assert (topics == 3).any()
    expected = [twin(kind, words, corpus) for words in topics]
    found = getattr(coherence, kind)(topics, form(corpus))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_stored_zero_is_no_word():
    stored = scipy.sparse.csr_array(CORPUS)
    stored[[0], [A]] = 0
    assert stored.nnz == np.count_nonzero(CORPUS)
    dense = stored.toarray()
    for score in (coherence.umass, coherence.npmi):
        np.testing.assert_array_equal(score([[A, B, C]], stored), score([[A, B, C]], dense))
    assert stored.nnz == np.count_nonzero(CORPUS)  # the user's matrix is left alone


def test_diversity():
    assert coherence.diversity([[0, 1], [2, 3]]) == 1
    assert coherence.diversity([[0, 1], [1, 0]]) == 0.5
    assert coherence.diversity([[0, 1, 2], [2, 3, 4]]) == 5 / 6


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([[0, 6]], "0 to 5; got 0 to 6"),
        ([[-1, 2]], "got -1 to 2"),
        ([[0.0, 1.0]], "must be integers"),
        ([["war", "peace"]], "not names"),
        ([0, 1], "must be integers"),
        ([[0], [1]], "n_top at least 2"),
        (np.zeros((0, 3), int), "must be integers"),
        ([[2, 2]], "one word twice"),
    ],
)
def test_bad_words(words, message):
    for score in (coherence.umass, coherence.npmi):
        with pytest.raises(ValueError, match=message):
            score(words, CORPUS)


def test_bad_reference():
    with pytest.raises(ValueError, match="must not be negative or NaN"):
        coherence.npmi([[0, 1]], -CORPUS)
    with pytest.raises(ValueError, match="must not be negative or NaN"):
        coherence.npmi([[0, 1]], np.where(CORPUS > 2, np.nan, CORPUS))
    with pytest.raises(ValueError, match="smoothing must be finite and above 0; got 0"):
        coherence.umass([[0, 1]], CORPUS, smoothing=0)
