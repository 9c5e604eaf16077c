"""Inputs beside counts: where (when, at what place) each row was counted.

Inputs Z (n, d) are numbers; what scikit-learn remembers of a fit (width, names of columns) is theirs. The
counts have `Categories` of their own. Rows with the same inputs tell of the same probabilities, so their
counts are added.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from polystick.validation import LARGEST_COUNT, category_names, check_counts, what_came

__all__ = [
    "Categories",
    "Merged",
    "check_inputs",
    "check_table",
    "counts_of",
    "merge",
    "merge_inputs",
    "refuse_other_index",
]

LARGEST_INPUT = 1e100


class Merged(NamedTuple):
    """Inputs that all differ, with what was counted at each."""

    inputs: np.ndarray  # (M, d)
    counts: np.ndarray  # (M, K)
    place_of: np.ndarray  # (n,) the merged input of each row


class Categories(BaseEstimator):
    """What a fit has to remember of its counts: their width and their names."""

    def check(self, X, *, reset, whole):
        """Return X as dense counts (n, K); see `validation.check_counts`."""
        counts = check_counts(self, X, reset=reset, whole=whole)
        if reset:
            self.names = category_names(X, counts.shape[1])
        return counts.toarray() if scipy.sparse.issparse(counts) else counts


def check_table(estimator, categories, Z, X, *, reset, whole):
    """Return inputs (n, d) and counts (n, K) of the same rows."""
    try:
        inputs = check_inputs(estimator, Z, reset=reset)
        counts = categories.check(X, reset=reset, whole=whole)
    except ValueError as error:
        if not _looks_like_counts(Z) or not _looks_like_inputs(X):
            raise
        what, _, advice = str(error).rpartition("; ")
        raise ValueError(
            f"{what}; inputs come first and counts second, as in fit(Z, X): swap them if the first are "
            f"the counts; otherwise {advice}"
        ) from error
    if len(inputs) != len(counts):
        raise ValueError(
            "Z and X must have equally many rows, inputs and counts of the same; got "
            f"{len(inputs)} inputs and {len(counts)} rows of counts; select the same rows of both"
        )
    refuse_other_index(Z, X, "Z", "X")
    return inputs, counts


def counts_of(X, y):
    """Return the counts, which came as X or as y."""
    if (X is None) == (y is None):
        raise TypeError(
            "counts must be given beside the inputs Z, as X or as y; got "
            + ("neither" if X is None else "both: leave one out")
        )
    return y if X is None else X


def refuse_other_index(one, other, name, other_name):
    """Raise if two DataFrames of equal length name their rows differently: rows belong together by place.

    A default index (0, 1, 2, ...) names nothing, so it goes with any other, unless that has the same numbers
    in another order: then one of the two was sorted or shuffled.
    """
    left, right = (getattr(frame, "index", None) for frame in (one, other))
    if not (isinstance(left, pd.Index) and isinstance(right, pd.Index)) or left.equals(right):
        return
    turned = Counter(left) == Counter(right)
    default = pd.RangeIndex(len(left))
    if not turned and (left.equals(default) or right.equals(default)):
        return
    labels = list(zip(left.tolist(), right.tolist()))
    place = next((i for i, (a, b) in enumerate(labels) if a != b), 0)
    can_turn = turned and left.is_unique
    advice = f"use {name}.loc[{other_name}.index]" if can_turn else "select the same rows of both"
    raise ValueError(
        f"{name} and {other_name} must have the same index, for rows belong together by their place; got "
        f"{labels[place][0]!r} and {labels[place][1]!r} in row {place}; {advice}, or "
        "reset_index(drop=True) where the order is right"
    )


def _looks_like_counts(table):
    """Whether these are several columns of whole numbers, none negative."""
    if scipy.sparse.issparse(table):  # whose places may be wrong: only the numbers are looked at
        values = np.asarray(list(table.values()) if table.format == "dok" else table.data)
        return values.dtype.kind in "iuf" and table.shape[1] > 1 and not _has_no_count(values)
    values = _numbers(table)
    return values is not None and values.shape[1] > 1 and not _has_no_count(values)


def _looks_like_inputs(table):
    """Whether these are numbers that are no counts: one column, negative ones or fractions."""
    values = _numbers(table)
    return values is not None and (values.shape[1] == 1 or _has_no_count(values))


def _has_no_count(values):
    return bool(((values < 0) | (values != np.floor(values))).any())


def _numbers(table):
    """Return finite numbers (n, d), or None where there are others."""
    try:
        if scipy.sparse.issparse(table):
            return None  # inputs are dense, and counts that are sparse have been looked at
        values = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return values if values.ndim == 2 and np.isfinite(values).all() else None


def check_inputs(estimator, Z, *, reset):
    """Return Z as inputs (n, d), for an estimator that remembers names and width.

    reset : True in fit, False afterwards
    """
    _refuse_shape(Z)
    _refuse_dates(Z)
    _refuse_doubled_names(Z)
    if not reset:
        _refuse_width(estimator, Z)
    try:
        inputs = validate_data(estimator, Z, reset=reset, dtype=np.float64)
    except (TypeError, ValueError) as error:
        advice = next((text for sign, text in _ADVICE.items() if sign in str(error)), None)
        if advice is None:
            raise
        raise ValueError(f"{advice[0]}; got {what_came(Z, error)}; {advice[1]}") from error
    _refuse_far(inputs)
    return np.ascontiguousarray(inputs) + 0.0  # -0 is 0


def _refuse_far(inputs):
    """Squares of inputs must be numbers."""
    if np.abs(inputs).max(initial=0.0) > LARGEST_INPUT:
        row = int(np.abs(inputs).max(axis=1).argmax())
        raise ValueError(
            f"inputs must lie between -{LARGEST_INPUT:.0e} and {LARGEST_INPUT:.0e}; row {row} has "
            f"{inputs[row][np.abs(inputs[row]).argmax()]:.6g}; give them in larger units"
        )


_NUMBERS = ("inputs must be numbers", "give places as coordinates and times as years or days")
_FINITE = ("inputs must be finite", "leave out rows whose place or time is not known")
_ADVICE = {  # what scikit-learn says -> what must hold, what to try
    "could not convert string": _NUMBERS,
    "float() argument must be": _NUMBERS,
    "NaN": _FINITE,
    "infinity": _FINITE,
    "Sparse data": ("inputs must be dense", "use Z.toarray()"),
    "0 sample(s)": ("inputs must have at least one row", "look at how the rows were selected"),
    "at least one array or dtype": (
        "inputs must have at least one column",
        "look at how the columns were selected",
    ),
    "feature names should match": (
        "inputs must have the columns seen in fit",
        "select the columns of the fit, in their order",
    ),
}


def _refuse_shape(Z):
    try:
        shape = Z.shape if hasattr(Z, "shape") else np.shape(Z)
    except ValueError:
        raise ValueError("inputs must have rows of equal length; got others") from None
    if len(shape) != 2:
        raise ValueError(
            "inputs must have two axes, a row for each row of counts and a column for each "
            f"coordinate; got shape {shape}; reshape a single column with np.reshape(Z, (-1, 1))"
        )


def _refuse_dates(Z):
    types = Z.dtypes if hasattr(Z, "dtypes") else [getattr(Z, "dtype", None)]
    for dtype in types:
        if getattr(dtype, "kind", None) in ("m", "M"):
            raise ValueError(
                f"inputs must be numbers; got {dtype}; count years or days from some date, for "
                "length scales have a unit"
            )


def _refuse_doubled_names(Z):
    names = list(getattr(Z, "columns", []))
    if len(set(names)) < len(names):
        doubled = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"the names of inputs must differ; got {doubled!r} twice; rename one")


def _refuse_width(estimator, Z):
    width = Z.shape[1] if hasattr(Z, "shape") else np.shape(Z)[1]
    expected = estimator.n_features_in_
    if width != expected:
        raise ValueError(
            f"inputs must have the {expected} columns seen in fit; got {width}; select the columns "
            "of the fit"
        )


def merge(inputs, counts):
    """Add up the counts of rows with the same inputs.

    Inputs come out in lexicographic order, so that the order of the rows does not matter.
    """
    places, index = merge_inputs(inputs)
    total = np.zeros((len(places), counts.shape[1]), counts.dtype)
    np.add.at(total, index, counts)
    largest = total.sum(axis=1, dtype=np.float64)
    if largest.max() > LARGEST_COUNT:
        place = int(largest.argmax())
        raise ValueError(
            f"the counts of one input must add up to at most {LARGEST_COUNT:.0e}; those at "
            f"{places[place].tolist()} have {largest[place]:.6g}; divide the counts by a common factor"
        )
    return Merged(places, total, index)


def merge_inputs(inputs):
    """Return the inputs that differ (M, d), in lexicographic order, and the place of each row in them."""
    places, index = np.unique(inputs, axis=0, return_inverse=True)
    return places, index.reshape(-1)
