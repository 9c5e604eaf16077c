"""The front door: what a user hands in is checked here, once. Each error says what must hold, what came,
and what to try.

Counts are non-negative and finite. Gibbs sampling needs whole numbers, for a Pólya-gamma draw counts
trials; mean field takes any non-negative weights.
"""

import contextlib
import numbers
import os
import secrets
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data

from polystick.sparse_tables import check_cells, check_width

LARGEST_COUNT = 10**9  # per row: what a Pólya-gamma draw is made for


def check_integer(name: str, value: object, *, at_least: int) -> None:
    """Raise unless the value is a whole number of at least `at_least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer; got {value!r}")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}; got {value}")


def check_positive(name: str, value: object) -> None:
    """Raise unless the value is a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number; got {value!r}")
    if not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be finite and above 0; got {value}")


def check_seed(seed: object) -> int:
    """Return the seed as an int; None draws one from the system's entropy, and a generator gives its next."""
    if seed is None:
        return secrets.randbits(128)
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**63))
    if isinstance(seed, np.random.RandomState):
        return int(seed.randint(2**63, dtype=np.uint64))
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral):
        raise TypeError(
            f"random_state must be an integer, a RandomState, a Generator or None; got {seed!r}"
        )
    if seed < 0:
        raise ValueError(f"random_state must not be negative; got {seed}")
    return int(seed)


def warn_user(message: str, category: type[Warning] = RuntimeWarning) -> None:
    """Warn about the line of the user's program that called into this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("polystick."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextlib.contextmanager
def all_or_nothing(estimator: object) -> Iterator[None]:
    """Give an estimator its attributes back if a fit fails."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def as_frame(X: Any) -> Any:
    """Return an array of xarray as pandas has it, with its names of rows and columns; others as they are."""
    is_labelled = type(X).__module__.startswith("xarray.") and getattr(X, "ndim", None) in (1, 2)
    return X.to_pandas() if is_labelled else X


def check_counts(estimator: Any, X: Any, *, reset: bool, whole: bool) -> Any:
    """Return X as counts (n, K), dense or CSR, for an estimator that remembers names and width.

    reset : True in fit, False afterwards
    whole : whether the counts must be whole numbers; then they come out as int64, else as float64
    """
    X = _read(estimator, as_frame(X), reset)
    if X.shape[1] < 2:
        raise ValueError(
            "counts must have at least 2 categories (columns); got n_features=1; "
            "add the counts of everything else as a second column"
        )
    values = X.data if scipy.sparse.issparse(X) else X
    _check_values(estimator, values, whole)
    _check_totals(X)
    return _canonical(X, np.int64 if whole else np.float64)


def _read(estimator, X, reset):
    if scipy.sparse.issparse(X):
        check_cells(X)
        check_width(X.shape[-1])
    _refuse_doubled_names(X)
    try:
        return validate_data(
            estimator, X, reset=reset, accept_sparse="csr", dtype=(np.float64, np.int64)
        )
    except ValueError as error:
        advice = next((text for sign, text in _ADVICE.items() if sign in str(error)), None)
        if advice is None:
            raise
        raise ValueError(f"{advice[0]}; got {what_came(X, error)}; {advice[1]}") from error


def what_came(X, error):
    """Say what was wrong: where a number is not finite, or scikit-learn's first sentence."""
    said = " ".join(str(error).split("\n\n")[0].split()).rstrip(".")
    for word in ("NaN", "infinity"):
        if f"contains {word}" in said:
            return f"{word} in row {_first_row_not_finite(X)}"
    if "could not convert string" in said:  # the string can be a whole text
        said = said if len(said) <= 60 else f"{said[:60]}..."
    return repr(said)


def _first_row_not_finite(X):
    import pandas as pd

    if scipy.sparse.issparse(X):
        X = scipy.sparse.coo_array(X)
        return X.coords[0][~np.isfinite(X.data)].min()
    values = pd.DataFrame(X).to_numpy(np.float64, na_value=np.nan)
    return int((~np.isfinite(values)).any(axis=1).argmax())


_ADVICE = {  # what scikit-learn says -> what must hold, what to try
    "could not convert string": (
        "counts must be numbers",
        "count words first, for example with sklearn.feature_extraction.text.CountVectorizer",
    ),
    "NaN": ("counts must be finite", "put 0 where nothing was counted, or leave the row out"),
    "infinity": ("counts must be finite", "put 0 where nothing was counted, or leave the row out"),
    "0 sample(s)": ("counts must have at least one row", "look at how the rows were selected"),
    "at least one array or dtype": (
        "counts must have at least 2 categories (columns)",
        "look at how the columns were selected",
    ),
    "feature names should match": (
        "counts must have the categories seen in fit",
        "select the columns of the fit, in their order",
    ),
    "features, but": (
        "counts must have the categories seen in fit",
        "select the columns of the fit",
    ),
}


def _refuse_doubled_names(X):
    names = getattr(X, "columns", None)
    if names is not None and len(set(names)) < len(names):
        doubled = next(name for i, name in enumerate(names) if name in list(names[:i]))
        raise ValueError(
            f"the names of categories must differ; got {doubled!r} twice; add those columns up, or "
            "rename one"
        )


def category_names(X: Any, n_categories: int) -> np.ndarray:
    """Return the labels of the columns, or their numbers."""
    X = as_frame(X)
    if not hasattr(X, "columns"):
        return np.arange(n_categories)
    labels = np.empty(n_categories, dtype=object)
    labels[:] = list(X.columns)
    return labels


def _check_values(estimator, values, whole):
    if values.size and values.min() < 0:
        raise ValueError(  # the first words are scikit-learn's
            f"Negative values in data passed to {type(estimator).__name__}: counts must be at least 0; "
            f"got {values.min():g}; if they are differences, model what they are differences of"
        )
    if whole and values.dtype.kind == "f" and (values != np.floor(values)).any():
        fraction = values[values != np.floor(values)].flat[0]
        raise ValueError(
            f"counts must be whole numbers for Gibbs sampling; got {fraction}; round them, or use "
            "inference=MeanField(), which takes weights"
        )


def _canonical(X, dtype):
    if not scipy.sparse.issparse(X):
        return np.ascontiguousarray(X, dtype=dtype)
    X = scipy.sparse.csr_array(X, dtype=dtype, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _check_totals(counts):
    totals = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
    if totals.size and totals.max() > LARGEST_COUNT:
        row = int(totals.argmax())
        raise ValueError(
            f"the counts of a row must add up to at most {LARGEST_COUNT:.0e}; row {row} has "
            f"{totals[row]:.6g}; divide the counts by a common factor"
        )


def check_inference(inference: Any) -> Any:
    """Raise unless this is a schedule such as Gibbs() or MeanField()."""
    if isinstance(inference, type) or not hasattr(inference, "needs_whole_counts"):
        raise TypeError(
            f"inference must be Gibbs(...), MeanField(...), StochasticVI(...) or None; got {inference!r}"
        )
    return inference


def check_prior(prior, n_sticks, per="split"):
    """Raise unless the prior is a normal-inverse-Wishart law, or one of learned scales, of the right size."""
    centre = getattr(prior, "mean" if hasattr(type(prior), "expected_cov") else "centre", None)
    if centre is None:
        raise TypeError(f"prior must be a NormalInverseWishart or None; got {prior!r}")
    if len(centre) != n_sticks:
        each = f"splits of {n_sticks + 1} categories" if per == "split" else f"{per}s"
        raise ValueError(
            f"prior must have one entry for each of the {n_sticks} {each}; got {len(centre)}"
        )
    return prior


def check_running(n_jobs: object, progress: object, checkpoint: object, every: object) -> None:
    """Raise unless these can say how a run is run."""
    if n_jobs is not None:
        check_integer("n_jobs", n_jobs, at_least=-(2**31))
        if n_jobs == 0:
            raise ValueError(
                "n_jobs must not be 0; give the number of threads, or None for all cores"
            )
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"progress must be True, False, None or a function; got {progress!r}")
    if checkpoint is not None and not isinstance(checkpoint, str | os.PathLike):
        raise TypeError(f"checkpoint must be the path of a folder, or None; got {checkpoint!r}")
    if checkpoint is not None and not os.fspath(checkpoint):
        raise ValueError("checkpoint must be the path of a folder; got an empty string")
    if isinstance(every, bool) or not isinstance(every, numbers.Real):
        raise TypeError(f"checkpoint_every must be a number of seconds; got {every!r}")
    if not 0 <= float(every) < np.inf:
        raise ValueError(f"checkpoint_every must be finite and at least 0 seconds; got {every}")


def check_level(level):
    """Raise unless this is a probability between 0 and 1."""
    check_positive("level", level)
    if level >= 1:
        raise ValueError(f"level must be a probability below 1, such as 0.9; got {level}")
