"""What documents can be: texts, lists of words, bags of (id, count) pairs or dicts of words; or counts."""

import numbers
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

__all__ = ["Documents", "count_documents", "documents_of"]

TEXTS, WORDS, BAGS, DICTS = "texts", "lists of words", "lists of (id, count) pairs", "dicts"
_KINDS = (TEXTS, WORDS, BAGS, DICTS)
_EMPTY, _NUMBERS, _NOTHING, _OTHER = "empty lists", "numbers", "nothing", "other things"
_BYTES = "bytes"


class Documents(NamedTuple):
    """Documents that are not counts yet."""

    kind: str
    rows: list


def documents_of(X):
    """Return the documents in X; None where it holds counts, or what only a check of counts can refuse."""
    rows = _listed(X)
    if rows is None:
        return None
    kinds = [_kind_of(row) for row in rows]
    if _BYTES in kinds:
        raise TypeError(
            f"documents must be strings; document {kinds.index(_BYTES)} holds bytes; decode them, as in "
            'text.decode("utf-8")'
        )
    found = [kind for kind in _KINDS if kind in kinds]
    if not found:
        return _without_words(rows, kinds)
    _refuse_others(rows, kinds, found[0])
    _CHECKS[found[0]](rows)
    return Documents(found[0], rows)


def count_documents(X):
    """Return the number of rows of whatever came."""
    _refuse_one_text(X)
    _refuse_unordered(X)
    if getattr(X, "shape", ()):
        return X.shape[0]
    if getattr(X, "shape", None) == () or not hasattr(X, "__len__"):
        raise TypeError(
            f"X must be a table of counts or a list of documents; got {type(X).__name__} {X!r:.30}"
        )
    return len(X)


# what came


def _listed(X):
    """Return X as a list of documents; None where it is a table."""
    _refuse_one_text(X)
    _refuse_unordered(X)
    if isinstance(X, list | tuple):
        return list(X)
    shape = getattr(X, "shape", ())
    if not isinstance(shape, tuple) or len(shape) not in (1, 2):
        return None
    if len(shape) == 2 and shape[1] != 1:
        _refuse_texts_in_tables(X)
        return None
    if not hasattr(X, "__array__"):  # sparse
        return None
    values = np.asarray(X).ravel()
    return values.tolist() if values.dtype.kind in "OUST" else None


def _refuse_one_text(X):
    if isinstance(X, str | bytes):
        raise TypeError(
            "X must be a list of documents; got a single string; put it into a list, as in [text]"
        )


def _refuse_unordered(X):
    """Refuse what can be gone through but once, or in any order: rows must be the same again."""
    if isinstance(X, Mapping):
        raise TypeError(
            "X must be a list of documents; got a mapping; give its values, as in list(X.values())"
        )
    if isinstance(X, Iterator | set | frozenset):
        raise TypeError(
            f"X must be a list of documents; got a {type(X).__name__}; make it a list, as in list(X)"
        )


def _refuse_texts_in_tables(X):
    """Name the column of a table that holds texts."""
    if not isinstance(X, pd.DataFrame):
        return
    for i, dtype in enumerate(X.dtypes):
        if not (pd.api.types.is_object_dtype(dtype) or isinstance(dtype, pd.StringDtype)):
            continue
        column = X.iloc[:, i]
        if (pd.to_numeric(column, errors="coerce").isna() & column.notna()).any():
            name = X.columns[i]
            raise ValueError(
                f"counts must be numbers; column {_short(name)} of the table holds texts; give that "
                f"column alone, as in X[{_short(name)}], or leave it out"
            )


def _kind_of(row):
    if isinstance(row, str):
        return TEXTS
    if isinstance(row, bytes | bytearray):
        return _BYTES
    if isinstance(row, Mapping):
        return DICTS
    if isinstance(row, list | tuple | np.ndarray | set | frozenset):
        return _kind_of_list(row)
    if isinstance(row, numbers.Number) and row == row:
        return _NUMBERS
    return _NOTHING if pd.api.types.is_scalar(row) and pd.isna(row) else _OTHER


def _kind_of_list(row):
    if not len(row):
        return _EMPTY
    first = next(iter(row))
    if isinstance(first, str):
        return WORDS
    if isinstance(first, list | tuple | np.ndarray):
        return BAGS
    return _NUMBERS if isinstance(first, numbers.Number) else _OTHER


def _without_words(rows, kinds):
    """Tell empty documents from rows of counts."""
    if kinds and set(kinds) == {_EMPTY}:
        return Documents(WORDS, rows)
    if _NOTHING in kinds:
        _refuse_nothing(kinds.index(_NOTHING))
    lengths = {len(row) for row in rows if hasattr(row, "__len__")}
    if len(lengths) > 1 and set(kinds) <= {_NUMBERS, _EMPTY}:
        raise ValueError(
            "documents that are lists of numbers must be rows of counts, all of one length; got lengths "
            f"from {min(lengths)} to {max(lengths)}; give (id, count) pairs, or words as strings"
        )
    return None


# what is refused


def _refuse_others(rows, kinds, kind):
    if _NOTHING in kinds:
        _refuse_nothing(kinds.index(_NOTHING))
    lists = () if kind in (TEXTS, DICTS) else (_EMPTY,)
    other = next((i for i, one in enumerate(kinds) if one not in (kind, *lists)), None)
    if other is not None:
        raise TypeError(
            f"documents must be of one kind, such as texts; document {kinds.index(kind)} is "
            f"{_typed(rows[kinds.index(kind)])} and document {other} is {_typed(rows[other])}; make them "
            "all texts, or all lists of words"
        )


def _refuse_nothing(place):
    raise ValueError(
        f"each document must have a text; document {place} is missing (None or NaN); leave it out, or "
        'put the empty text "" in its place'
    )


def _refuse_odd_words(rows):
    for i, row in enumerate(rows):
        odd = [word for word in row if not isinstance(word, str)]
        if odd:
            raise TypeError(
                f"lists of words must hold strings; document {i} has one {_typed(odd[0])}; turn it into a "
                "string, or leave it out"
            )


def _refuse_odd_pairs(rows):
    for i, row in enumerate(rows):
        for pair in row:
            if not _is_pair(pair):
                raise ValueError(
                    "documents that are lists of pairs must hold (id, count), the id a whole number from "
                    f"0; document {i} has another; give such pairs, or dicts of words and counts"
                )


def _is_pair(pair):
    if not isinstance(pair, list | tuple | np.ndarray) or len(pair) != 2:
        return False
    number, count = pair
    whole = isinstance(number, numbers.Real) and float(number).is_integer() and float(number) >= 0
    return whole and isinstance(count, numbers.Real)


def _refuse_odd_counts(rows):
    for i, row in enumerate(rows):
        words = all(isinstance(word, str) for word in row)
        if not words or not all(isinstance(count, numbers.Real) for count in row.values()):
            raise TypeError(
                f"documents that are dicts must have words as keys and counts as values; document {i} "
                "has others; make each word a string and each count a number"
            )


_CHECKS = {
    TEXTS: lambda rows: None,
    WORDS: _refuse_odd_words,
    BAGS: _refuse_odd_pairs,
    DICTS: _refuse_odd_counts,
}


def _typed(thing):
    return "a text" if isinstance(thing, str) else f"of type {type(thing).__name__}"


def _short(name):
    text = repr(name)
    return text if len(text) <= 30 else f"{text[:30]}..."
