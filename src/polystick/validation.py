"""The front door: what a user hands in is checked here, once. Each error says what must hold, what came,
and what to try.

Counts are non-negative and finite. Gibbs sampling needs whole numbers, for a Pólya-gamma draw counts
trials; mean field takes any non-negative weights.
"""

import contextlib
import numbers
import secrets

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data

LARGEST_COUNT = 10**9  # per row: what a Pólya-gamma draw is made for


def check_integer(name, value, *, at_least):
    """Raise unless the value is a whole number of at least `at_least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer; got {value!r}")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}; got {value}")


def check_positive(name, value):
    """Raise unless the value is a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number; got {value!r}")
    if not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be finite and above 0; got {value}")


def check_seed(seed):
    """Return the seed as an int; None draws one from the system's entropy."""
    if seed is None:
        return secrets.randbits(128)
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral):
        raise TypeError(
            f"random_state must be an integer or None; got {seed!r}; a generator has a hidden state, "
            "and a run could not be repeated from it"
        )
    if seed < 0:
        raise ValueError(f"random_state must not be negative; got {seed}")
    return int(seed)


@contextlib.contextmanager
def all_or_nothing(estimator):
    """Give an estimator its attributes back if a fit fails."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def check_counts(estimator, X, *, reset, whole):
    """Return X as counts (n, K), dense or CSR, for an estimator that remembers names and width.

    reset : True in fit, False afterwards
    whole : whether the counts must be whole numbers; then they come out as int64, else as float64
    """
    X = _read(estimator, X, reset)
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
    try:
        return validate_data(
            estimator, X, reset=reset, accept_sparse="csr", dtype=(np.float64, np.int64)
        )
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(
            f"counts must be numbers; got text ({error}); count words first, for example with "
            "sklearn.feature_extraction.text.CountVectorizer"
        ) from error


def _check_values(estimator, values, whole):
    if values.size and values.min() < 0:
        name = type(estimator).__name__
        raise ValueError(
            f"Negative values in data passed to {name}: counts must be at least 0; got {values.min()}"
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


def check_inference(inference):
    """Raise unless this is a schedule such as Gibbs() or MeanField()."""
    if isinstance(inference, type) or not hasattr(inference, "needs_whole_counts"):
        raise TypeError(f"inference must be Gibbs(...), MeanField(...) or None; got {inference!r}")
    return inference


def check_prior(prior, n_sticks):
    """Raise unless the prior is a normal-inverse-Wishart law of the right size."""
    if not hasattr(type(prior), "expected_cov"):
        raise TypeError(f"prior must be a NormalInverseWishart or None; got {prior!r}")
    if len(prior.mean) != n_sticks:
        raise ValueError(
            f"prior must have one entry for each of the {n_sticks} splits of {n_sticks + 1} categories; "
            f"got {len(prior.mean)}"
        )
    return prior


def check_running(n_jobs, progress):
    """Raise unless these can say how a run is run."""
    if n_jobs is not None:
        check_integer("n_jobs", n_jobs, at_least=1)
    if not (isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"progress must be True, False or a function; got {progress!r}")
