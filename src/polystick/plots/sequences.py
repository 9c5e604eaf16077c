"""Pictures of sequences: the states behind them, probabilities at their steps, and what may come."""

from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from polystick.plots import paths
from polystick.plots.process import category_paths
from polystick.plots.style import as_text, line_style, plain_times, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["forecast_fan", "probability_paths", "state_trajectories"]

HALF = (0.25, 0.75)  # the quantiles of the inner band of a fan


def state_trajectories(result: Any, *, times: ArrayLike | None = None, dimensions: Any = None,
                       level: float = 0.9, ax: "Axes | None" = None) -> "Axes":  # fmt: skip
    """Draw the states of a sequence over its steps, with bands.

    A state may be turned as a whole without any change of what it says of the counts. So look at when
    the lines move and how many do, not at which is which.

    Parameters
    ----------
    result : Smoothed or Filtered, one of those that `smooth` and `filter` return
    times : (steps,) numbers, dates or pandas periods, ascending; None: the index of the sequence's own table,
        or the numbers of the steps, from 0
    dimensions : sequence of int or None
        Which to draw; None: the six that move most.
    level : float
        Probability of the bands, from the standard deviations, as if states were normal.
    ax : matplotlib axes or None

    Returns
    -------
    axes : a line and an area for each dimension drawn, in the order of `dimensions`
    """
    states, spread = _states(result)
    times, name = plain_times(_own_times(result, len(states)) if times is None else times)
    paths.check_times(times, states, "states")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1; got {level}")
    reach = NormalDist().inv_cdf(0.5 + level / 2) * spread
    ax, where = paths.own_axes(ax)
    for place, j in enumerate(_dimensions(dimensions, states)):
        style, middle = line_style(place), states[:, j]
        band = middle - reach[:, j], middle + reach[:, j]
        paths.draw_path(ax, times, middle, *band, lw=1.6, label=f"state {j}", **style)
    ax.margins(x=0.02)
    ax.set(xlabel=name, ylabel="state")
    ax.grid(axis="y", alpha=0.3)
    ax.legend(fontsize="small", **where)
    return ax


def probability_paths(result: Any, *, times: ArrayLike | None = None, counts: ArrayLike | None = None,
                      counted_at: ArrayLike | None = None, categories: Sequence[Any] | None = None,
                      labels: Any = None, ax: "Axes | None" = None) -> "Axes":  # fmt: skip
    """Draw the probabilities of categories at the steps of a sequence, with bands where there are some.

    Parameters
    ----------
    result : Smoothed, Filtered or Forecast, or an array (steps, K)
        Of one sequence; an array is one that `predict_proba` returns.
    times : (steps,) numbers, dates or pandas periods, ascending; None: the index of the sequence's own table,
        or the numbers of the steps, from 0
    counts : (m, K) array, CSR or DataFrame, or None
        What was counted, such as ``model.sequences_[0]``; shares are dots.
    counted_at : (m,) or None
        The times of the counts; None: those of the probabilities.
    categories : sequence of names or numbers, or None
        Which to draw, by their labels; None: the six of the largest probability on the whole.
    labels : sequence of K names, or None for those of the result, or numbers
    ax : matplotlib axes or None

    Returns
    -------
    axes : as of `category_paths`
    """
    values, lower, upper = _probabilities(result)
    return category_paths(
        _own_times(result, len(values)) if times is None else times, values, lower, upper,
        counts=counts, counted_at=counted_at, categories=categories,
        labels=_own_labels(result) if labels is None else labels, ax=ax,
    )  # fmt: skip


def forecast_fan(forecast: Any, history: Any = None, *, times: Any = None, counts: Any = None,
                 counted_at: Any = None, categories: Sequence[Any] | None = None, labels: Any = None,
                 ax: "Axes | None" = None) -> "Axes":  # fmt: skip
    """Draw the fan of what may come, after the probabilities up to the last step if there is a history.

    Parameters
    ----------
    forecast : Forecast
        Of one sequence. The outer band is that of its own level, and the inner one holds the middle half of
        its draws.
    history : Smoothed or Filtered, or an array (steps, K), or None
        Of the same sequence.
    times : (steps + new steps,), ascending, or None
        Of all steps, those of the forecast too; None: the index that the sequence's table had and goes on
        with, or the numbers of the steps, from 0.
    counts : (m, K) array, CSR or DataFrame, or None
        What was counted, shown as dots; with what came later than the history, if that is known.
    counted_at : (m,) or None
        The times of the counts; None: the first m.
    categories, labels, ax : as in `probability_paths`
        Where no categories are chosen, they are the six largest in history and forecast.

    Returns
    -------
    axes : for each category drawn a line and an area of the history, dots, a dashed line and two areas of the
        forecast; a grey line at the end of the history
    """
    ahead = _forecast(forecast, history)
    past = None if history is None else _probabilities(history)
    split = 0 if past is None else len(past[0])
    values = ahead[0] if past is None else np.vstack([past[0], ahead[0]])
    times = _times_of_fan(forecast, history, split) if times is None else times
    plain, name = plain_times(times)
    paths.check_times(plain, values, "history and forecast together" if split else "forecast")
    labels = _own_labels(forecast) if labels is None else labels
    labels = paths.check_labels(
        range(values.shape[1]) if labels is None else labels, values.shape[1]
    )
    columns = paths.chosen(categories, labels, values)
    if counts is not None and counted_at is None:
        counted_at = times[: counts.shape[0] if hasattr(counts, "shape") else len(counts)]
    ax, where = paths.own_axes(ax)
    shown = [labels[j] for j in columns]
    if past is None:
        _draw_counts(ax, counts, counted_at, columns, values.shape[1])
    else:
        category_paths(
            times[:split], *past, counts=counts, counted_at=counted_at, categories=shown,
            labels=labels, ax=ax,
        )  # fmt: skip
    for place, j in enumerate(columns):
        label = as_text(shown[place]) if past is None else None
        _draw_fan(ax, plain, past, ahead, j, line_style(place)["color"], label)
    if split:
        ax.axvline(plain[split - 1], color="0.6", lw=1, zorder=1)
    ax.autoscale(axis="y")
    paths.finish_probabilities(ax, name, where)
    if plain.dtype.kind in "iu":
        whole_ticks(ax)
    return ax


def _draw_fan(ax, times, past, ahead, column, colour, label):
    """Draw the forecast of a category, from the last step of the history if there is one."""
    mean, lower, upper, inner = ahead
    first = -len(mean)
    joined = [
        new if past is None else np.vstack([old[-1:], new])
        for old, new in zip(past or ahead, (mean, lower, upper))
        if old is not None
    ]
    middle, *band = (100 * side[:, column] for side in joined)
    ax.plot(times[-len(middle) :], middle, "--", color=colour, lw=1.8, zorder=3, label=label)
    if not band:  # the history has none to go on from
        band = [paths.percent(side, column) for side in (lower, upper)]
    paths.draw_band(ax, times[-len(band[0]) :], colour, *band, edge=0.7)
    paths.draw_band(ax, times[first:], colour, *(100 * inner[:, :, column]))


def _draw_counts(ax, counts, counted_at, columns, n_categories):
    """Draw what was counted, where there is no history to draw it with."""
    if counts is None:
        return
    shares = paths.counted_shares(counts, counted_at, n_categories)
    for place, j in enumerate(columns):
        colour = line_style(place)["color"]
        paths.draw_shares(ax, plain_times(counted_at)[0], 100 * shares[:, j], colour)


def _steps(n):
    return pd.RangeIndex(n, name="step")


def _own_labels(result):
    """Return the names of the categories that a result has, or None."""
    return getattr(result, "categories", None)


def _own_times(result, n):
    """Return the index of a result where a line can be drawn over it, or the numbers of the steps."""
    index = getattr(result, "index", None)
    if index is None or not _ascends(index):
        return _steps(n)
    return index.rename("step") if index.equals(_steps(n)) and index.name is None else index


def _times_of_fan(forecast, history, n_seen):
    """Return the times of all steps: those that both parts have, or numbers."""
    n_new, ahead = len(forecast.mean), forecast.index
    if history is None:
        times = _own_times(forecast, n_new)
        return times if times.name or times.dtype.kind != "i" else times.rename("step")
    before = _own_times(history, n_seen)
    if ahead is not None and ahead.name in (None, before.name):
        both = before.append(ahead.rename(before.name))
        if _ascends(both):
            return both
    return _steps(n_seen + n_new)


def _ascends(index):
    """Tell whether these are numbers, dates or periods, each later than the one before."""
    if not isinstance(index, pd.Index) or index.inferred_type in ("string", "mixed"):
        return False
    return bool(index.is_monotonic_increasing and index.is_unique)


def _one(result):
    """Raise if what came is a list."""
    if isinstance(result, list):
        raise TypeError(
            f"a picture shows one sequence; got a list of {len(result)}: choose one, as result[0]"
        )
    return result


def _states(result):
    if not hasattr(_one(result), "states_sd"):
        raise TypeError(
            "states are shown of what smooth() or filter() returns for one sequence; got "
            f"{type(result).__name__}"
        )
    states, spread = np.asarray(result.states, float), np.asarray(result.states_sd, float)
    if states.ndim != 2 or not states.size:
        raise ValueError(
            f"states must have steps and dimensions; got shape {states.shape}: there is nothing to show"
        )
    paths.check_bands(states, spread, spread)
    return states, spread


def _dimensions(dimensions, states):
    """Return the columns of states to draw."""
    n = states.shape[1]
    if dimensions is None:
        return np.sort(np.argsort(-states.std(axis=0), kind="stable")[: paths.N_SHOWN])
    wrong = [j for j in dimensions if j not in range(n)]
    if wrong:
        raise ValueError(f"dimensions must be among 0..{n - 1}; got {wrong[0]!r}")
    return list(dimensions)


def _probabilities(result):
    """Return probabilities (steps, K) and the sides of their bands, or None twice."""
    if hasattr(_one(result), "draws"):
        return result.mean, result.lower, result.upper
    values = np.asarray(getattr(result, "probabilities", result), float)
    if values.ndim != 2:
        raise ValueError(f"probabilities must be (steps, categories); got shape {values.shape}")
    return values, getattr(result, "lower", None), getattr(result, "upper", None)


def _forecast(forecast, history):
    """Return its mean, the sides of its outer band, and those of the inner one."""
    if not hasattr(_one(forecast), "draws"):
        raise TypeError(
            "forecast must be what forecast() returns for one sequence; got "
            f"{type(forecast).__name__}"
        )
    K = forecast.mean.shape[1] if history is None else _probabilities(history)[0].shape[1]
    if forecast.mean.shape[1] != K:
        raise ValueError(
            f"history and forecast must be of the same categories; got {K} and "
            f"{forecast.mean.shape[1]}"
        )
    inner = np.quantile(forecast.draws, HALF, axis=0)
    return forecast.mean, forecast.lower, forecast.upper, inner
