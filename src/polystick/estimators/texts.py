"""Whatever documents are, as counts of words under the names that a fit knows."""

import copy
import warnings
from typing import NamedTuple

import numpy as np
import scipy.sparse

from polystick.estimators.corpora import begin_with, corpus_of
from polystick.estimators.document_kinds import BAGS, DICTS, TEXTS, WORDS, documents_of
from polystick.sparse_tables import check_width
from polystick.texts import check_vectorizer, fit_vectorizer
from polystick.validation import category_names, check_counts, warn_user

__all__ = ["NO_WORDS", "counted", "counted_first", "itself"]


class Counted(NamedTuple):
    """Counts of a fit, and what later documents are read by."""

    counts: object  # (n, V): a matrix, an array or a table
    words: np.ndarray | None  # (V,) names; None where only a table may say
    vectorizer: object | None
    are_ours: bool  # whether the counts were made here


def itself(thing):
    """Return what came: words that are words already."""
    return thing


# in fit


def counted_first(face, X, *, whole):
    """Return counts (n, V) of the documents of a fit as CSR, and let the face remember their words."""
    check_vectorizer(face.vectorizer)
    corpus = corpus_of(X)
    if corpus is not None:
        return begin_with(face, corpus, whole)
    documents = documents_of(X)
    given = _fitted_one(face.vectorizer)
    found = (
        _as_given(X, given)
        if documents is None
        else _MAKE[documents.kind](face, documents.rows, given)
    )
    counts = _checked(face, found.counts, reset=True, whole=whole)
    face.words_ = _words(found, counts.shape[1])
    face.vectorizer_ = found.vectorizer
    if found.are_ours and found.words is not None:
        face.feature_names_in_ = np.asarray(found.words, dtype=object)
    return counts


def _fitted_one(vectorizer):
    """Return a copy of a vectorizer that was fitted already; None for any other."""
    return copy.deepcopy(vectorizer) if hasattr(vectorizer, "vocabulary_") else None


def _as_given(X, given):
    words = None if given is None else _names(given)
    return Counted(X, words, given, are_ours=False)


def _of_texts(face, rows, given):
    vectorizer, counts = _fit_or_take(face.vectorizer, given, rows)
    return _made(counts, _names(vectorizer), vectorizer)


def _of_words(face, rows, given):
    from sklearn.feature_extraction.text import CountVectorizer

    if not any(len(row) for row in rows):
        raise ValueError(NO_WORDS)
    chosen = CountVectorizer(analyzer=itself) if face.vectorizer is None else face.vectorizer
    vectorizer, counts = _fit_or_take(_for_words(chosen), given and _for_words(given), rows)
    return _made(counts, _names(vectorizer), vectorizer)


def _fit_or_take(vectorizer, given, rows):
    return fit_vectorizer(vectorizer, rows) if given is None else (given, given.transform(rows))


def _of_dicts(face, rows, given):
    _refuse_idle(face.vectorizer, given, DICTS)
    words = _names(given) if given else np.array(sorted({w for row in rows for w in row}), object)
    return _made(_from_dicts(rows, words), words, given)


def _of_bags(face, rows, given):
    _refuse_idle(face.vectorizer, given, BAGS)
    if given is not None:
        words = _names(given)
        return _made(_from_bags(rows, len(words)), words, given)
    n_words = 1 + max((int(i) for row in rows for i, _ in row), default=0)
    check_width(n_words)
    return _made(_from_bags(rows, n_words), None, None)


def _made(counts, words, vectorizer):
    if not counts.nnz:
        raise ValueError(NO_WORDS)
    return Counted(counts, words, vectorizer, are_ours=True)


_MAKE = {TEXTS: _of_texts, WORDS: _of_words, DICTS: _of_dicts, BAGS: _of_bags}
LONGEST_DOCUMENT = 10**8
NO_WORDS = (
    "documents must have words; got none in any of them; look at how they were read, or give texts"
)


def _refuse_idle(vectorizer, given, kind):
    if vectorizer is not None and given is None:
        raise TypeError(
            f"a vectorizer must be fitted to name the words of {kind}; got one that is not; fit it first, "
            "or leave it out"
        )


def _words(found, n_words):
    if found.words is None or hasattr(found.counts, "columns"):
        return category_names(found.counts, n_words)
    if len(found.words) != n_words:
        raise ValueError(
            f"a vectorizer that was fitted must know the words of the counts; it knows {len(found.words)} "
            f"and the counts have {n_words} columns; give the texts, or that which made the counts"
        )
    return np.asarray(found.words, dtype=object)


# afterwards


def counted(face, X, *, whole):
    """Return counts (n, V) of documents as CSR, for a face that has been fitted."""
    if corpus_of(X) is not None:
        raise TypeError(
            "this takes counts in memory; got a corpus in parts: give one part of it, such as corpus.part(0)"
        )
    documents = documents_of(X)
    if documents is None:
        return _checked(face, X, reset=False, whole=whole)
    found = _AGAIN[documents.kind](face, documents.rows)
    with warnings.catch_warnings():  # their columns are in the order of the names
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        counts = _checked(face, found, reset=False, whole=whole)
    _tell_of_strange(documents.rows, counts)
    return counts


def _texts_again(face, rows):
    vectorizer = face.vectorizer_
    if vectorizer is None or getattr(vectorizer, "analyzer", None) is itself:
        came = "counts" if vectorizer is None else "lists of words"
        raise TypeError(
            f"new documents must be like those of the fit, which had {came}; got texts; give {came}, or "
            "fit the model on texts"
        )
    return vectorizer.transform(rows)


def _words_again(face, rows):
    if face.vectorizer_ is not None:
        return _for_words(face.vectorizer_).transform(rows)
    return _from_dicts([_bag(row) for row in rows], _known(face, WORDS))


def _dicts_again(face, rows):
    return _from_dicts(rows, _known(face, DICTS))


def _bags_again(face, rows):
    beyond = sum(i >= face.n_features_in_ for row in rows for i, _ in row)
    if beyond:
        warn_user(
            f"{beyond} pairs whose id is not below {face.n_features_in_}, the number of words in fit, are "
            "ignored"
        )
    return _from_bags(rows, face.n_features_in_)


_AGAIN = {TEXTS: _texts_again, WORDS: _words_again, DICTS: _dicts_again, BAGS: _bags_again}


def _known(face, kind):
    if not all(isinstance(word, str) for word in face.words_):
        raise TypeError(
            f"new documents must be like those of the fit, which had no words; got {kind}; give counts, or "
            "fit the model on words"
        )
    return face.words_


def _tell_of_strange(rows, counts):
    """Warn of documents that have words, but none that the fit knows."""
    has_words = np.array([bool(row.strip() if isinstance(row, str) else len(row)) for row in rows])
    strange = int((has_words & (np.diff(counts.indptr) == 0)).sum())
    if strange:
        warn_user(
            f"{strange} of {len(rows)} documents have no word that the fit knows: they count as empty"
        )


def _checked(face, X, *, reset, whole):
    """Return checked counts as CSR; of weights say where they may come from."""
    try:
        counts = scipy.sparse.csr_array(check_counts(face, X, reset=reset, whole=whole))
    except ValueError as error:
        if "must be whole numbers" not in str(error):
            raise
        raise ValueError(f"{error}; words must be counted, not weighed as TF-IDF does") from error
    if whole:
        _refuse_long(counts)
    return counts


def _refuse_long(counts):
    """A topic is drawn for each word, so a sweep takes memory for each."""
    lengths = np.asarray(counts.sum(axis=1))
    if lengths.max(initial=0) > LONGEST_DOCUMENT:
        raise ValueError(
            f"documents must have at most {LONGEST_DOCUMENT:.0e} words where topics are drawn for each; "
            f"document {lengths.argmax()} has {lengths.max()}; divide counts by a common factor, or use "
            "inference=MeanField()"
        )


# counting


def _for_words(vectorizer):
    """Return a vectorizer for lists of words: that given, but for how it finds words in a text."""
    names = ("analyzer", "tokenizer")
    if any(callable(getattr(vectorizer, name, None)) for name in names):
        return vectorizer
    known = vectorizer.get_params()
    changes = {
        "tokenizer": itself,
        "preprocessor": itself,
        "token_pattern": None,
        "lowercase": False,
    }
    return copy.copy(vectorizer).set_params(**{k: v for k, v in changes.items() if k in known})


def _names(vectorizer):
    return vectorizer.get_feature_names_out()


def _bag(words):
    found: dict = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return found


def _from_dicts(rows, words):
    """Return counts (n, V) of dicts of words; words that have no column are left out."""
    place = {word: k for k, word in enumerate(words)}
    return _from_bags([[(place.get(w, -1), c) for w, c in row.items()] for row in rows], len(words))


def _from_bags(rows, n_words):
    """Return counts (n, V) of lists of (id, count); ids that have no column are left out."""
    numbers = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    cells = np.array([pair for row in rows for pair in row], dtype=np.float64).reshape(-1, 2)
    ids = cells[:, 0].astype(np.int64)
    known = (ids >= 0) & (ids < n_words)
    where = (numbers[known], ids[known])
    return scipy.sparse.coo_array((cells[known, 1], where), (len(rows), n_words)).tocsr()
