"""Sequences of tokens or of count rows: what comes in, and what it must be like.

A sequence is read as tokens (steps,), -1 where one is missing, or as rows of counts (steps, K) in CSR,
empty where nothing was seen.
"""

import numbers
from typing import NamedTuple

import numpy as np
import scipy.sparse

from polystick.estimators.row_names import labels_of
from polystick.estimators.tables import index_of
from polystick.sparse_tables import check_cells, check_width
from polystick.validation import LARGEST_COUNT, as_frame, category_names

__all__ = ["Read", "as_array", "as_list", "parts_of", "read_sequences"]

MOST_UNLIKE = 3.0  # the ratio of variances between columns and within them, of sequences of tokens
_ENCODE = "number words first, as np.unique(words, return_inverse=True) does"


class Read(NamedTuple):
    """Sequences as models want them."""

    sequences: list  # of tokens (steps,) int64 or counts (steps, K) CSR of int64
    inputs: list | None  # of (steps, m) float64
    categories: np.ndarray  # (K,) names
    labels: np.ndarray | None = None  # of the steps of all sequences, where they have names
    indexes: tuple = ()  # of each sequence: that of a table, or None

    @property
    def step_names(self):
        """The labels of steps as coordinates of a posterior."""
        return {} if self.labels is None else {"step": self.labels}

    @property
    def lengths(self):
        return np.array([sequence.shape[0] for sequence in self.sequences], dtype=np.int64)

    @property
    def totals(self):
        """The number of counts (steps,) of each sequence."""
        return [_totals(sequence) for sequence in self.sequences]

    @property
    def counts(self):
        """How often each category was seen, (K,)."""
        return sum(_counts(sequence, len(self.categories)) for sequence in self.sequences)

    def stretches(self, n):
        """How often each category was seen (n, K) in n stretches of steps, one after another."""
        stops, K = np.cumsum(self.lengths), len(self.categories)
        starts, found = stops - self.lengths, np.zeros((n, K), dtype=np.int64)
        edges = stops[-1] * np.arange(n + 1) // n
        for counts, a, b in zip(found, edges, edges[1:]):
            first, last = np.searchsorted(stops, a, "right"), np.searchsorted(starts, b)
            for i in range(first, last):
                here = slice(max(0, a - starts[i]), b - starts[i])
                counts += _counts(self.sequences[i][here], K)
        return found


def _counts(sequence, n_categories):
    """Return how often each category was seen, (K,)."""
    if sequence.ndim == 1:
        return np.bincount(sequence[sequence >= 0], minlength=n_categories)
    return np.asarray(sequence.sum(axis=0))


def _totals(sequence):
    return sequence.sum(axis=1) if sequence.ndim == 2 else (sequence >= 0).astype(np.int64)


def read_sequences(X, *, lengths=None, n_categories=None, categories=None, shortest=1):
    """Return what a user means by X, one sequence or a list of them.

    lengths      : of the sequences, where X has them one after another; or None
    n_categories : how many there must be; None: the largest token + 1, or the columns
    categories   : the names seen in fit, or None
    shortest     : the least number of steps
    """
    X = as_frame(X)
    if lengths is None and n_categories is None:
        refuse_doubtful(X)
    given = as_list(X) if lengths is None else parts_of(X, lengths)
    given = [as_frame(sequence) for sequence in given]
    if not given:
        raise ValueError("X must have at least one sequence; got an empty list")
    sequences = [_read_one(sequence, i) for i, sequence in enumerate(given)]
    for i, sequence in enumerate(sequences):
        if sequence.shape[0] < shortest:
            raise ValueError(
                f"sequences must have at least {shortest} step{'s'[: shortest > 1]}; sequence {i} "
                f"has {sequence.shape[0]}; leave it out"
            )
    K = _n_categories(sequences, n_categories, in_fit=categories is None)
    names = _names(given, K, categories)
    return Read(sequences, None, names, _step_labels(given), tuple(map(index_of, given)))


def _step_labels(given):
    """Return the labels of the steps of all sequences; where there are several, with their numbers."""
    labels = [labels_of(sequence) for sequence in given]
    if any(each is None for each in labels):
        return None
    if len(labels) == 1:
        return labels[0]
    return np.array([f"{i}, {label}" for i, each in enumerate(labels) for label in each])


# one or many


def parts_of(X, lengths):
    """Return the sequences of these lengths that X has one after another, as hmmlearn wants them."""
    sizes = np.asarray(lengths)
    whole = as_list(X)
    if len(whole) != 1:
        raise ValueError(
            f"X must have all sequences one after another where lengths are given; got {len(whole)} arrays; "
            "leave lengths out"
        )
    n_steps = whole[0].shape[0] if hasattr(whole[0], "shape") else len(whole[0])
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or sizes.min(initial=0) < 0:
        raise ValueError(f"lengths must be whole numbers of steps; got {lengths!r}")
    if sizes.sum() != n_steps:
        raise ValueError(
            f"lengths must add up to the {n_steps} steps of X; they add up to {sizes.sum()}"
        )
    if scipy.sparse.issparse(whole[0]):
        whole = [scipy.sparse.csr_array(whole[0])]
    stops = np.cumsum(sizes).tolist()
    cuts = [slice(stop - size, stop) for stop, size in zip(stops, sizes.tolist())]
    return [whole[0].iloc[cut] if hasattr(whole[0], "iloc") else whole[0][cut] for cut in cuts]


def refuse_doubtful(X):
    """Raise where a table of whole numbers is as likely to hold a sequence of tokens in each row.

    Then all numbers up to the largest are there, columns are alike, and rows add up to anything.
    """
    if scipy.sparse.issparse(X) or hasattr(X, "columns") or not hasattr(X, "__array__"):
        return
    array = np.asarray(X)
    if array.ndim != 2 or array.dtype.kind not in "iu" or min(array.shape) < 2:
        return
    seen, totals = np.unique(array[array >= 0]), array.sum(axis=1)
    if len(seen) < 2 or len(seen) <= seen[-1] or len(np.unique(totals[totals > 0])) < 2:
        return
    if _are_alike(array[:, array.min(axis=0) < array.max(axis=0)]):
        n, m = array.shape
        raise ValueError(
            f"X must say what its ({n}, {m}) whole numbers are: give list(X) where each row is a sequence "
            f"of {m} tokens, or [X] where each row counts {m} categories at a step"
        )


def _are_alike(columns):
    """Tell whether the variance between columns (n, m) is about what that within them would make it."""
    n, m = columns.shape
    between = n * columns.mean(axis=0).var() * m / max(1, m - 1)
    return between <= MOST_UNLIKE * columns.var(axis=0).mean() * n / (n - 1)


def as_list(X):
    """Return a list of sequences, each still as it came."""
    if isinstance(X, str | bytes | dict | set | frozenset):
        raise TypeError(
            "X must be a sequence (tokens, or rows of counts) or a list of sequences; got "
            f"{type(X).__name__}; {_ENCODE}"
        )
    if scipy.sparse.issparse(X) or hasattr(X, "columns"):
        return [X]
    if isinstance(X, list | tuple):
        return [X] if X and all(map(_is_scalar, X)) else list(X)
    array = as_array(X, "X")
    if array.ndim == 1:
        nested = array.dtype == object and len(array) and not all(map(_is_scalar, array))
        return list(array) if nested else [X]
    if array.ndim in (2, 3):
        return [array] if array.ndim == 2 else list(X if hasattr(X, "dims") else array)
    raise ValueError(
        f"X must be a sequence or a list of sequences; got an array of {array.ndim} axes"
    )


def _is_scalar(value):
    return not isinstance(value, list | tuple) and np.ndim(value) == 0


def as_array(value, what):
    """Return a value as an array, saying what it was for where it is none."""
    if not hasattr(value, "__array__") and not isinstance(value, list | tuple):
        raise TypeError(
            f"{what} must be an array, a list, CSR or a DataFrame; got {type(value).__name__}"
        )
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{what} must have rows of equal length; got others") from None


# one sequence


def _read_one(sequence, i):
    if scipy.sparse.issparse(sequence):
        if sequence.ndim != 2:
            raise ValueError(f"sequence {i} must have two axes where it is sparse; got one")
        check_cells(sequence, f"sequence {i}")
        return _read_counts(scipy.sparse.coo_array(sequence), i)
    if isinstance(sequence, str | bytes | numbers.Number) or sequence is None:
        raise TypeError(
            f"sequence {i} must be tokens or rows of counts; got {sequence!r}; {_ENCODE}"
        )
    array = as_array(sequence, f"sequence {i}")
    if array.ndim == 1:
        return _read_tokens(array, i)
    if array.ndim == 2 and array.shape[1] == 1:
        return _read_tokens(array[:, 0], i)
    if array.ndim == 2:
        numbers_ = _as_numbers(array, i, "counts")
        return _read_counts(_without_missing(numbers_, i), i)
    raise ValueError(
        f"sequence {i} must be tokens (one axis) or rows of counts (two); got {array.ndim} axes"
    )


def _as_numbers(array, i, what):
    """Return floats, NaN where nothing is known, or whole numbers as they are."""
    if array.dtype.kind in "iu":
        return array
    if array.size == 0:  # whatever it holds none of
        return np.zeros(array.shape)
    if array.dtype.kind == "O":
        array = np.array([_nan_for_none(value) for value in array.ravel()]).reshape(array.shape)
    if array.dtype.kind in "iuf":
        return array
    raise TypeError(
        f"{what} of sequence {i} must be whole numbers; got {array.dtype.name} such as "
        f"{array.flat[0]!r}; {_ENCODE}"
    )


def _nan_for_none(value):
    return np.nan if value is None or type(value).__name__ in ("NAType", "NaTType") else value


def _read_tokens(array, i):
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    values = _as_numbers(array, i, "tokens")
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), -1.0, values)
    _refuse(i, np.flatnonzero(~(np.abs(values) < 2**31)), values, "tokens must be below 2**31")
    _refuse(i, np.flatnonzero(values != np.rint(values)), values, "tokens must be whole numbers")
    below = "tokens must be 0, 1, ..., or -1 where one is missing"
    _refuse(i, np.flatnonzero(values < -1), values, below)
    return values.astype(np.int64)


def _refuse(i, places, values, what):
    """Raise if there are any places, naming the first."""
    if len(places):
        step = int(places[0])
        raise ValueError(f"{what}; step {step} of sequence {i} has {values[step]}")


def _without_missing(counts, i):
    """Return a sparse table in which rows of NaN are empty."""
    if counts.dtype.kind == "f":
        unknown = np.isnan(counts)
        partly = np.flatnonzero(unknown.any(axis=1) & ~unknown.all(axis=1))
        if len(partly):
            raise ValueError(
                f"counts must be known for all categories of a step, or for none; step {partly[0]} "
                f"of sequence {i} has some NaN; put 0 for what was not seen"
            )
        counts = np.where(unknown, 0.0, counts)
    return scipy.sparse.coo_array(counts)


def _read_counts(table, i):
    """Return CSR of int64 from COO of anything."""
    if table.data.dtype.kind not in "iufb":
        raise TypeError(f"counts of sequence {i} must be numbers; got {table.data.dtype.name}")
    data, steps = table.data, table.coords[0]
    for wrong, what in (
        (~np.isfinite(data), "counts must be finite"),
        (data < 0, "counts must be at least 0"),
        (data != np.floor(data), "counts must be whole numbers"),
    ):
        if wrong.any():
            place = np.flatnonzero(wrong)[0]
            raise ValueError(f"{what}; step {steps[place]} of sequence {i} has {data[place]}")
    totals = np.bincount(steps, data.astype(np.float64), minlength=table.shape[0])
    if totals.max(initial=0) > LARGEST_COUNT:
        step = int(totals.argmax())
        raise ValueError(
            f"the counts of a step must add up to at most {LARGEST_COUNT:.0e}; step {step} of "
            f"sequence {i} has {totals[step]:.6g}; divide the counts by a common factor"
        )
    counts = scipy.sparse.csr_array(table, dtype=np.int64, copy=True)
    counts.sum_duplicates()
    counts.eliminate_zeros()
    return counts


# categories


def _n_categories(sequences, expected, in_fit):
    """Return K, which all sequences must agree with."""
    widths = [s.shape[1] for s in sequences if s.ndim == 2]
    largest = max((int(s.max(initial=-1)) for s in sequences if s.ndim == 1), default=-1)
    K = expected if expected is not None else (widths[0] if widths else largest + 1)
    check_width(K)
    seen = "asked for" if in_fit else "seen in fit"
    for i, sequence in enumerate(sequences):
        if sequence.ndim == 2 and sequence.shape[1] != K:
            of = f"{K} categories {seen}" if expected is not None else f"{K} of the others"
            raise ValueError(
                f"counts must have the {of} as columns; sequence {i} has {sequence.shape[1]}; where each "
                "row is a sequence of tokens, give list(X)"
            )
        if sequence.ndim == 1:
            beyond = np.flatnonzero(sequence >= K)
            _refuse(i, beyond, sequence, f"tokens must be 0..{K - 1}, of the {K} categories")
    if in_fit and largest < 0 and not any(s.nnz for s in sequences if s.ndim == 2):
        raise ValueError("X must show something to learn from; got nothing but missing steps")
    if K < 2:
        raise ValueError(
            f"there must be at least 2 categories; got {K}; give n_categories, or add the counts "
            "of everything else as a second column"
        )
    return K


def _names(given, n_categories, expected):
    """Return the names of the categories, which tables must agree on."""
    names = expected
    for i, sequence in enumerate(given):
        if not hasattr(sequence, "columns") or len(sequence.columns) == 1:
            continue
        here = category_names(sequence, n_categories)
        if len(set(here)) < len(here):
            raise ValueError(f"the names of categories must differ; sequence {i} has some twice")
        if names is not None and list(names) != list(here) and names.dtype == object:
            wrong = next(k for k in range(n_categories) if names[k] != here[k])
            raise ValueError(
                f"tables must have the same categories in the same order; column {wrong} of "
                f"sequence {i} is {here[wrong]!r}, not {names[wrong]!r}; select columns by name"
            )
        names = here if names is None else names
    return np.arange(n_categories) if names is None else names
