"""What would crash, hang or ask for all memory gets a sentence, through the API as through files."""

import functools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from polystick import (
    CorrelatedMultinomial,
    CorrelatedTopicModel,
    DynamicMultinomial,
    DynamicTopicModel,
    Gibbs,
    MeanField,
    MultinomialGP,
    MultinomialHMM,
    MultinomialLDS,
    StochasticVI,
)
from polystick.models.blocks import evenly
from polystick.sparse_tables import check_cells

COUNTS = np.random.default_rng(0).multinomial(20, [0.2] * 5, size=12)
OPTIONS = {"inference": Gibbs(2, 1, n_chains=1), "random_state": 1, "n_jobs": 1}
LDS, HMM = (functools.partial(kind, 2, **OPTIONS) for kind in (MultinomialLDS, MultinomialHMM))


# sparse matrices


def broken(make, **changes):
    """A sparse matrix of which parts were changed behind its back."""
    matrix = make(COUNTS.astype(float))
    for name, (place, value) in changes.items():
        part = getattr(matrix, name).copy()
        part[place] = value
        setattr(matrix, name, part)
    return matrix


CSR, CSC, BSR = scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.bsr_array


def coo(axis, value):
    matrix = scipy.sparse.coo_array(COUNTS.astype(float))
    coords = [part.copy() for part in matrix.coords]
    coords[axis][3] = value
    matrix.coords = tuple(coords)
    return matrix


def lil(value):
    matrix = scipy.sparse.lil_array(COUNTS)
    matrix.rows[2][1] = value
    return matrix


BROKEN = {
    "far": broken(CSR, indices=(3, 10**6)),
    "farther": broken(CSR, indices=(3, 10**9)),
    "negative": broken(CSR, indices=(3, -1)),
    "just outside": broken(CSR, indices=(3, 5)),
    "ends beyond": broken(CSR, indptr=(-1, 10**6)),
    "end in the middle": broken(CSR, indptr=(3, 10**6)),
    "ends that fall": broken(CSR, indptr=(3, 0)),
    "negative end": broken(CSR, indptr=(3, -5)),
    "late begin": broken(CSR, indptr=(0, 1)),
    "csc": broken(CSC, indices=(3, 12)),
    "bsr": broken(BSR, indices=(0, 99)),
    "coo row": coo(0, 12),
    "coo column": coo(1, -1),
    "lil": lil(5),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize(
    "fit",
    [
        lambda X: CorrelatedTopicModel(2, inference=MeanField(max_sweeps=2)).fit(X),
        lambda X: CorrelatedMultinomial(**OPTIONS).fit(X),
        lambda X: MultinomialGP(**OPTIONS).fit(np.arange(12.0)[:, None], X),
        lambda X: LDS().fit(X),
        lambda X: LDS().fit([COUNTS, X]),
    ],
    ids=["topics", "multinomial", "gp", "lds", "lists"],
)
def test_indices_are_inside(name, fit):
    with pytest.raises(ValueError, match=r"must have indices inside its shape \(12, 5\); "):
        fit(BROKEN[name])


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
def test_matrices_that_are_whole_pass(kind):
    matrix = scipy.sparse.coo_array(COUNTS).asformat(kind)
    before = matrix.toarray()
    check_cells(matrix)
    np.testing.assert_array_equal(matrix.toarray(), before)


def test_sparse_inputs_are_told_whatever_their_format():
    for kind in ("csr", "dok", "lil", "dia"):
        places = scipy.sparse.coo_array(np.ones((len(COUNTS), 1))).asformat(kind)
        with pytest.raises(ValueError, match="inputs must be dense"):
            MultinomialGP(**OPTIONS).fit(places, COUNTS)


def test_tables_of_nothing_are_told():
    for nothing in (np.zeros((3, 0), dtype="U3"), np.zeros((0, 3), dtype=object)):
        with pytest.raises(ValueError, match="must"):
            DynamicMultinomial(**OPTIONS).fit([nothing])
    with pytest.raises(ValueError, match="at least 2 categories"):
        CorrelatedMultinomial(**OPTIONS).fit(pd.DataFrame(index=range(3)))


# sizes


@pytest.mark.parametrize("face", [LDS, HMM, functools.partial(DynamicMultinomial, **OPTIONS)])
def test_a_token_is_not_a_size(face):
    with pytest.raises(ValueError, match=r"at most 1e\+07 categories; got 1000000001; number"):
        face().fit([[0, 1, 10**9]])
    with pytest.raises(ValueError, match=r"at most 1e\+07 categories; got 1000000000; number"):
        face().set_params(n_categories=10**9).fit([[0, 1, 1]])


def test_an_id_of_a_word_is_not_a_size():
    with pytest.raises(ValueError, match=r"at most 1e\+07 categories"):
        CorrelatedTopicModel(2, **OPTIONS).fit([[(0, 1), (10**9, 2)], [(1, 1)]])


def test_a_width_is_not_a_size():
    wide = scipy.sparse.csr_array((3, 10**9), dtype=int)
    with pytest.raises(ValueError, match=r"at most 1e\+07 categories"):
        CorrelatedMultinomial(**OPTIONS).fit(wide)


def test_documents_whose_words_would_not_fit():
    long = np.array([[10**9 - 3, 1, 1, 1]] * 4)
    with pytest.raises(ValueError, match=r"at most 1e\+08 words .* document 0 has 1000000000"):
        CorrelatedTopicModel(2, **OPTIONS).fit(long)
    quick = MeanField(max_sweeps=2, n_draws=2)
    with pytest.warns(ConvergenceWarning):
        CorrelatedTopicModel(2, inference=quick, random_state=1).fit(long)


@pytest.mark.parametrize(
    ("times", "freq"), [([0, 10**9], "Y"), (pd.to_datetime(["1700-01-01", "2200-01-01"]), "D")]
)
def test_time_is_not_a_size(times, freq):
    with pytest.raises(ValueError, match="times must span at most 100000 slices"):
        DynamicTopicModel(2, freq=freq, **OPTIONS).fit(COUNTS[:2], times=times)


@pytest.mark.parametrize("size", [1e101, 1e200, 1.7e308])
def test_inputs_whose_squares_are_no_numbers(size):
    places = np.linspace(0.0, size, 12)[:, None]
    with pytest.raises(ValueError, match=r"inputs must lie between -1e\+100 and 1e\+100; row 11"):
        MultinomialGP(**OPTIONS).fit(places, COUNTS[:, :3])


@pytest.mark.parametrize("size", [1e-300, 1e100])
def test_inputs_of_any_other_size(size):
    places = np.linspace(0.0, size, 12)[:, None]
    model = MultinomialGP(**OPTIONS).fit(places, COUNTS[:, :3])
    assert np.isfinite(model.predict_proba(places)).all()


# shapes


@pytest.mark.parametrize("X", [np.array(3), 3, None, object()])
def test_documents_that_are_none(X):
    with pytest.raises(TypeError, match="X must be a table of counts or a list of documents; got"):
        DynamicTopicModel(2, **OPTIONS).fit(X, times=[1, 2])


@pytest.mark.parametrize("times", [np.array(3), 3, "1999", object()])
def test_times_that_are_none(times):
    with pytest.raises(TypeError, match=r"times must hold a time stamp for each document: .*got"):
        DynamicTopicModel(2, **OPTIONS).fit(COUNTS, times=times)


NO_ROWS = [np.array(3), np.zeros((0, 3)), [], [[], []], [np.zeros((0, 3), int)], None, 3]


@pytest.mark.parametrize("X", NO_ROWS, ids=repr)
@pytest.mark.parametrize("face", [LDS, HMM, functools.partial(DynamicMultinomial, **OPTIONS)])
def test_sequences_without_steps(face, X):
    with pytest.raises((ValueError, TypeError), match=r"^(X|sequences|sequence 0) must (be|have) "):
        face().fit(X)


@pytest.mark.parametrize("n", [2, 3, 5, 7, 9])
def test_batches_of_one(n):
    rows = np.random.default_rng(n).poisson(2, (n, 6)) + 1
    settings = StochasticVI(batch_size=1, n_passes=1, n_draws=2)
    model = CorrelatedTopicModel(2, inference=settings, random_state=1, n_jobs=1).fit(rows)
    assert model.n_iter_ == n


@pytest.mark.parametrize("work", [[], [1], [1, 1, 1], [100, 1, 1], [1, 1, 100], [1] * 9])
@pytest.mark.parametrize("size", [1, 2, 8])
def test_blocks_are_never_empty(work, size):
    parts = evenly(np.array(work), size)
    assert [i for part in parts for i in range(len(work))[part]] == [*range(len(work))]
    assert all(part.stop > part.start for part in parts) or not work
