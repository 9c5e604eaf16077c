"""Pictures of topics, of correlations and of runs."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from polystick.plots import pairs, paths
from polystick.plots.style import (
    OTHERS,
    POSITIVE,
    as_text,
    fit_labels,
    line_style,
    plain_times,
    size_in_points,
    whole_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["correlation", "shares_over_time", "topic_graph", "topic_sizes", "trace"]


def correlation(matrix: Any, ax: "Axes | None" = None, cluster: bool = True,
                label: str = "correlation of log shares") -> "Axes":  # fmt: skip
    """Draw a correlation matrix (a DataFrame) as a heat map, with what is alike side by side.

    Parameters
    ----------
    matrix : Interval, DataFrame (K, K) or array
        Such as `log_share_correlation` or `topic_correlation` return; of an interval the means are drawn.
    ax : matplotlib axes or None
    cluster : bool
        Whether to bring the rows into the order of a hierarchical clustering; else they stay.
    label : str, what the colours mean

    Returns
    -------
    axes
    """
    matrix = pd.DataFrame(pairs.middle(matrix))
    values = pairs.check_correlation(matrix)
    order = pairs.side_by_side(values) if cluster else np.arange(len(values))
    return pairs.heat_map(matrix.iloc[order, order], label, ax)


def topic_graph(correlation: Any, labels: Any = None, sizes: ArrayLike | None = None, threshold: float = 0.2,
                ax: "Axes | None" = None) -> "Axes":  # fmt: skip
    """Draw topics as a graph whose edges are the correlations beyond a threshold.

    Parameters
    ----------
    correlation : Interval, DataFrame (T, T) or array
        What `topic_correlation` returns; of an interval the means are drawn.
    labels : sequence of T strings, or None for the names of the DataFrame
        A few top words; commas become line breaks, for compact labels find room more easily.
    sizes : (T,) non-negative or None
        The share of each topic, shown as the area of its node.
    threshold : float from 0 to 1, of the absolute value
    ax : matplotlib axes or None

    Returns
    -------
    axes : edges are two line collections, positive (solid) and negative (dashed); nodes a scatter
    """
    frame = pd.DataFrame(pairs.middle(correlation))
    values = pairs.check_correlation(frame)
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold must lie between 0 and 1; got {threshold}")
    strong = np.where(np.abs(values) > threshold, values, 0.0)
    words = pairs.Words(
        f"correlation above {threshold:g}", f"correlation below −{threshold:g}", "share of tokens"
    )
    labels = pairs.check_labels(frame.index if labels is None else labels, len(values))
    return pairs.graph(values, strong, labels, sizes, words, threshold, ax)


def topic_sizes(
    table: pd.DataFrame, ax: "Axes | None" = None, label: str = "share of tokens (%)"
) -> "Axes":
    """Draw the share of each topic (or category) as a dot with its interval, the largest on top.

    Parameters
    ----------
    table : DataFrame with the columns share, lower and upper; its index names the topics
    ax : matplotlib axes or None
    label : str, what the shares are of

    Returns
    -------
    axes
    """
    import matplotlib.pyplot as plt

    table = pd.DataFrame(table)
    if missing := {"share", "lower", "upper"} - set(table.columns):
        raise ValueError(
            f"table must have the columns share, lower and upper; {sorted(missing)} is missing"
        )
    rows = table.sort_values("share", kind="stable")
    share, lower, upper = (rows[name].to_numpy(float) for name in ("share", "lower", "upper"))
    if not (len(rows) and np.all(lower <= upper)):  # a mean of skewed draws can lie outside
        raise ValueError("table must have rows, each with lower <= upper; got others")
    if ax is None:
        height = min(1.2 + 0.25 * len(rows), 9)
        _, ax = plt.subplots(figsize=(7, height), layout="constrained")
    places = np.arange(len(rows))
    ax.hlines(places, 100 * lower, 100 * upper, color=OTHERS, linewidth=2.5)
    ax.plot(100 * share, places, "o", color=POSITIVE, markersize=4)
    size, step = fit_labels(0.9 * size_in_points(ax)[1] / len(rows))
    ax.set_yticks(places[::-step], [as_text(name) for name in rows.index[::-step]], fontsize=size)
    ax.set(xlabel=label, xlim=(0, None), ylim=(-0.7, len(rows) - 0.3))
    ax.grid(axis="x", alpha=0.3)
    return ax


def trace(
    values: Any, burn: int | None = None, label: str | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw a quantity along the sweeps, a line per chain.

    Parameters
    ----------
    values : Posterior, or array (n_draws,) or (n_chains, n_draws)
        Of a posterior, the log likelihood of its draws, or the bound of a variational fit.
    burn : int or None
        The first draws, which are not used, are shaded. The axis is made for the others: it reaches at
        most twice their range beyond them, and a steep start is cut off.
    label : str or None
        What the values are; None: "log likelihood", or "bound".
    ax : matplotlib axes or None

    Returns
    -------
    axes
    """
    import matplotlib.pyplot as plt

    values, what, along = _traced(values)
    label, values = label or what, np.atleast_2d(np.asarray(values, float))
    _check_trace(values, burn)
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
    sweeps = np.arange(1, values.shape[1] + 1)
    for chain, line in enumerate(values):
        ax.plot(sweeps, line, **line_style(chain), linewidth=1, label=f"chain {chain}")
    if burn:
        ax.axvspan(0.5, burn + 0.5, color="0.9", zorder=0, label="burn-in")
        _look_at(ax, values[:, burn:], values)
    if len(values) > 1 or burn:
        ax.legend(fontsize="small", loc="lower right")
    ax.set(xlabel=along, ylabel=label, xlim=(0.5, len(sweeps) + 0.5))
    whole_ticks(ax)
    ax.ticklabel_format(axis="y", useOffset=False)
    return ax


def shares_over_time(shares: Any, lower: ArrayLike | None = None, upper: ArrayLike | None = None, *,
                     times: Any = None, labels: Any = None, n_shown: int = 8, stacked: bool = False,
                     ax: "Axes | None" = None) -> "Axes":  # fmt: skip
    """Draw the shares of topics over time, as lines with bands or as stacked areas.

    Parameters
    ----------
    shares : Interval, DataFrame (n_times, T) or array, between 0 and 1
        Such as the model's own `shares_over_time` returns, bands and all; NaN leaves a gap in a line.
    lower, upper : (n_times, T) or None, the bands
    times : (n_times,) numbers, dates or pandas periods, ascending; None for the index of a DataFrame
    labels : sequence of T strings, or None for the columns of a DataFrame
    n_shown : int
        The topics, the largest on the whole, that get a colour and a name; the others are thin grey
        lines, or one grey area.
    stacked : bool
    ax : matplotlib axes or None

    Returns
    -------
    axes
    """
    if pairs.middle(shares) is not shares:
        if not stacked:
            lower, upper = shares.lower, shares.upper
        shares = shares.mean
    frame = pd.DataFrame(shares)
    times, name = plain_times(frame.index if times is None else times)
    shares = frame.to_numpy(float)
    _check_times(times, shares, lower, upper, stacked)
    labels = pairs.check_labels(frame.columns if labels is None else labels, shares.shape[1])
    ax, where = paths.own_axes(ax)
    order = np.argsort(-np.nansum(shares, axis=0), kind="stable")
    shown, others = order[:n_shown], order[n_shown:]
    if stacked:
        _draw_areas(ax, times, shares, labels, shown, others)
    else:
        _draw_lines(ax, times, shares, lower, upper, labels, shown)
        for j in others:
            label = f"{len(others)} others" if j == others[0] else None
            ax.plot(times, 100 * shares[:, j], color=OTHERS, lw=0.6, zorder=1, label=label)
    ax.margins(x=0 if stacked else 0.02)
    ax.set(xlabel=name, ylabel="share of tokens (%)", ylim=(0, 100 if stacked else None))
    ax.legend(reverse=stacked, fontsize="small", **where)  # from top to bottom as areas are
    return ax


def _draw_lines(ax, times, shares, lower, upper, labels, shown):
    for place, j in enumerate(shown):
        style = line_style(place) | ({"marker": "."} if len(times) <= 40 else {})
        band = (paths.percent(side, j) for side in (lower, upper))
        paths.draw_path(
            ax, times, 100 * shares[:, j], *band, lw=1.6, label=as_text(labels[j]), **style
        )


def _draw_areas(ax, times, shares, labels, shown, others):
    areas, names = [shares[:, j] for j in shown[::-1]], [as_text(labels[j]) for j in shown[::-1]]
    colours = [line_style(place)["color"] for place in range(len(shown))][::-1]
    if len(others):
        areas, names = [shares[:, others].sum(axis=1), *areas], [f"{len(others)} others", *names]
        colours = [OTHERS, *colours]
    ax.stackplot(times, 100 * np.array(areas), labels=names, colors=colours, ec="white", lw=0.4)


def _look_at(ax, kept, values):
    """Let the axis reach over the kept values, and over others not farther off than twice their range."""
    low, high = np.min(kept), np.max(kept)
    reach = 2 * (high - low)
    bottom, top = max(np.min(values), low - reach), min(np.max(values), high + reach)
    if bottom < top:
        ax.set_ylim(bottom - 0.05 * (top - bottom), top + 0.05 * (top - bottom))


def _check_times(times, shares, lower, upper, stacked):
    if times.ndim != 1 or len(times) != len(shares) or not shares.size:
        raise ValueError(
            f"shares must have a row for each of the times; got {shares.shape} and {times.shape}"
        )
    if not np.all(times[1:] > times[:-1]):
        raise ValueError(
            "times must ascend, each once; got others: sort them and group what is equal"
        )
    if (lower is None) != (upper is None) or (stacked and lower is not None):
        raise ValueError("bands need both lower and upper, and lines: stacked areas have none")
    paths.check_bands(shares, lower, upper)


def _traced(values):
    """Return what to draw, what it is, and along what."""
    tree = getattr(values, "tree", None)
    if tree is None:
        return values, "log likelihood", "sweep"
    if "sample_stats" in tree.children:
        return values.log_likelihood, "log likelihood", "draw"
    return tree["optimisation"]["elbo"].values, "bound", "sweep"


def _check_trace(values, burn):
    if values.ndim != 2 or not values.size:
        raise ValueError(
            f"values must have shape (n_chains, n_draws), not empty; got {values.shape}"
        )
    if not np.all(np.isfinite(values)):
        raise ValueError("values must be finite; got NaN or infinity: leave such draws out")
    n = values.shape[1]
    if burn is not None and not 0 <= burn < n:
        raise ValueError(f"burn must be at least 0 and below the number of draws, {n}; got {burn}")
