"""The Pólya-gamma distribution PG(b, z): exact draws, moments, density and distribution function.

PG(b, z) is the law of sum_k g_k / (2 pi^2 ((k - 1/2)^2 + z^2 / (4 pi^2))), k = 1, 2, ..., with
independent g_k ~ Gamma(b, 1). Its Laplace transform is E exp(-s omega) = cosh^b(z/2) /
cosh^b(sqrt(z^2/4 + s/2)). It depends on the absolute value of z only (Polson, Scott and Windle
2013).

`draw`, `mean`, `var`, `logpdf` and `cdf` broadcast like NumPy's functions. `draw_ragged` is for the inside
of the library: it takes a key and the ids of rows, and checks nothing.
"""

import numbers
from typing import Any

import numpy as np

from polystick.kernels import polyagamma as kernels
from polystick.kernels import polyagamma_density as density
from polystick.kernels.buffers import as_buffer

__all__ = ["cdf", "draw", "draw_ragged", "logpdf", "mean", "var"]

MAX_TRIALS = 10**9
GROUP = 64  # consecutive elements that share a stream in `draw`; one per element costs 3 ns more
TINY = 1e-300  # tanh(TINY) / TINY is 1


def draw(b: Any, z: Any, *, seed: int | None = None, size: Any = None) -> Any:
    """Draw from PG(b, z), exactly.

    Parameters
    ----------
    b : array_like of int
        Number of trials, from 0 to 10**9. Floats with whole values will do. PG(0, z) is 0.
    z : array_like of float
        Tilt, any real number. Infinity gives 0 and NaN gives NaN.
    seed : int or None
        A non-negative whole number, for draws that can be repeated, or None for fresh entropy.
    size : int or tuple of int, optional
        Shape of the result, to which b and z are broadcast. By default their common shape.

    Returns
    -------
    float or ndarray
        A float if b and z are scalars and size is None.

    Notes
    -----
    Elements are drawn in C order. Each 64 consecutive ones share a random stream, so an array that
    begins like another gives draws that begin like its draws.
    """
    b, z = _check_trials(b), _check_real(z, "z")
    shape = np.broadcast_shapes(b.shape, z.shape) if size is None else size
    b, z = _broadcast(b, shape), _broadcast(z, shape)
    starts = np.append(np.arange(0, b.size, GROUP), b.size)
    groups = np.arange(len(starts) - 1, dtype=np.uint64)
    out = draw_ragged(_make_key(seed), groups, starts, b.ravel(), z.ravel())
    return float(out[0]) if size is None and not shape else out.reshape(shape)


def draw_ragged(
    key: np.uint64, rows: np.ndarray, starts: np.ndarray, b: np.ndarray, z: np.ndarray
) -> np.ndarray:
    """Draw PG(b, z) for flat arrays, entries starts[i] : starts[i + 1] from the stream of rows[i].

    key    : 64 bits
    rows   : (n,) ids
    starts : (n + 1,) where each row begins, and the end
    b, z   : (starts[-1],)
    """
    out = np.empty(len(b))
    kernels.draw_ragged(
        np.uint64(key),
        as_buffer(rows, np.uint64),
        as_buffer(starts, np.int64),
        as_buffer(b, np.int64),
        as_buffer(z, np.float64),
        out,
    )
    return out


def mean(b: Any, z: Any) -> Any:
    """Return the mean, b tanh(z/2) / (2 z), for any real b and z."""
    half = np.maximum(0.5 * np.abs(z), TINY)
    return 0.25 * np.asarray(b) * (np.tanh(half) / half)


def var(b: Any, z: Any) -> Any:
    """Return the variance, b (sinh z - z) / (4 z^3 cosh^2(z/2)), for any real b and z."""
    z = np.abs(np.asarray(z, float))
    near, far = _var_near_zero(np.minimum(z, 2.0)), _var_far(np.maximum(z, 2.0))
    return np.asarray(b) * np.where(z < 2.0, near, far)


def logpdf(x: Any, b: Any, z: Any) -> Any:
    """Return the logarithm of the density, for real b >= 1; -inf where x is not in the support."""
    return _evaluate(density.fill_log_density, x, b, z, below=-np.inf, above=-np.inf)


def cdf(x: Any, b: Any, z: Any) -> Any:
    """Return the probability of a value up to x, for real b >= 1.

    The absolute error is below 1e-10 for b up to 1e4 and abs z up to 1e3, most often near 1e-14.
    """
    return _evaluate(density.fill_probability, x, b, z, below=0.0, above=1.0)


def _var_near_zero(z):
    """Use (sinh z - z) / z^3 = sum_k z^(2k) / (2k + 3)!, without cancellation."""
    w = z * z
    total = np.zeros_like(w)
    for k in range(12, 0, -1):
        total = (1.0 + total) * w / ((2 * k + 2) * (2 * k + 3))
    return (1.0 + total) / (24.0 * np.cosh(0.5 * z) ** 2)


def _var_far(z):
    half = 0.5 * z
    decay = np.exp(-z)
    squared_sech = 4.0 * decay / (1.0 + decay) ** 2
    return (np.tanh(half) - np.minimum(half, 1e3) * squared_sech) / half / half / half / 16.0


def _evaluate(fill, x, b, z, below, above):
    """Apply a kernel where 0 < x < inf and z is finite; z = inf is a point mass at 0."""
    x, z = _check_real(x, "x"), np.abs(_check_real(z, "z"))
    b = _check_real(b, "b")
    _require(np.all((b >= 1.0) | np.isnan(b)), "b must be at least 1", b)
    x, b, z = np.broadcast_arrays(x, b, z)
    out = np.where((x < 0.0) | ((x == 0.0) & (z < np.inf)), below, above)
    out = np.where(np.isnan(x) | np.isnan(b) | np.isnan(z), np.nan, out)
    inside = (x > 0.0) & (x < np.inf) & (z < np.inf) & (b < np.inf)
    values = np.empty(np.count_nonzero(inside))
    fill(x[inside], b[inside], z[inside], values)
    out[inside] = values
    return out if out.ndim else float(out)


def _make_key(seed):
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral | None):
        kind = type(seed).__name__
        raise TypeError(
            f"seed must be a non-negative int or None; got {kind} {seed!r}; "
            "pass int(generator.integers(2**63)) to derive one from a NumPy generator"
        )
    if seed is not None and seed < 0:
        raise ValueError(f"seed must be a non-negative int or None; got {seed}; try {-seed}")
    entropy = None if seed is None else int(seed)
    return np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0]


def _check_real(values, name):
    try:
        return np.asarray(values, float)
    except (TypeError, ValueError) as error:
        kind = type(values).__name__
        raise TypeError(f"{name} must be a real number or an array of them; got {kind}") from error


def _check_trials(b):
    """Return int64, the same array where it is one: checks must cost little beside 14 ns a draw."""
    if isinstance(b, np.ndarray) and b.dtype.kind in "iu" and _are_trials(b):
        return b.astype(np.int64, copy=False)
    b = _check_real(b, "b")
    with np.errstate(invalid="ignore"):  # what can't be cast is refused below
        whole = b.astype(np.int64)
    _require(
        _are_trials(b) and np.all(whole == b),
        f"b must be whole numbers from 0 to {MAX_TRIALS:,}",
        b,
        "; use mean and var for other b",
    )
    return whole


def _are_trials(b):
    return not b.size or (b.min() >= 0 and b.max() <= MAX_TRIALS)


def _broadcast(array, shape):
    """Return the array itself where it has the shape: a view that can't be written to is copied later."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def _require(holds, sentence, values, advice=""):
    if not holds:
        raise ValueError(
            f"{sentence}; got values from {np.min(values)} to {np.max(values)}{advice}"
        )
