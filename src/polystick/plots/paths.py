"""What pictures of paths over time share: a line and its band, the shares counted, and what must hold."""

import numpy as np
import pandas as pd

N_SHOWN = 6  # paths, where none are chosen


def own_axes(ax):
    """Return axes, new ones if there are none, and where a legend goes: beside axes of our own."""
    import matplotlib.pyplot as plt

    if ax is not None:
        return ax, {"loc": "best"}
    _, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    return ax, {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}


def draw_path(ax, times, middle, lower, upper, **style):
    """Draw a line, and the band from lower to upper if there is one."""
    ax.plot(times, middle, zorder=3, **style)
    if lower is not None:
        draw_band(ax, times, style["color"], lower, upper)


def draw_band(ax, times, colour, lower, upper, *, edge=0.0):
    """Draw an area, with an edge of some width; where two overlap they get darker."""
    faces = {"facecolor": (colour, 0.2), "edgecolor": (colour, 0.7)}
    ax.fill_between(times, lower, upper, lw=edge, zorder=2, **faces)


def draw_shares(ax, times, shares, colour):
    """Draw what was counted as dots."""
    ax.plot(times, shares, ".", color=colour, ms=6, alpha=0.7, mew=0)


def finish_probabilities(ax, name, where):
    """Write what the axes mean, and make room for dots at 0."""
    ax.margins(x=0.02)
    ax.set(xlabel=name, ylabel="probability (%)", ylim=(-0.02 * ax.get_ylim()[1], None))
    ax.grid(axis="y", alpha=0.3)
    ax.legend(fontsize="small", **where)


def percent(side, column):
    """Return a column of a side of bands in per cent, or None if there are none."""
    return None if side is None else 100 * np.asarray(side, float)[:, column]


def chosen(categories, labels, values):
    """Return the columns to draw."""
    if categories is None:
        return np.argsort(-np.nansum(values, axis=0), kind="stable")[:N_SHOWN]
    known = {label: j for j, label in enumerate(labels)}
    unknown = [name for name in categories if name not in known]
    if unknown:
        raise ValueError(
            f"categories must be among the labels; got {unknown[0]!r}, and the first labels are "
            f"{', '.join(map(str, labels[:5]))}"
        )
    return [known[name] for name in categories]


def counted_shares(counts, counted_at, n_categories):
    """Return the share of each category in rows of counts, NaN where nothing was counted."""
    counts = counts.toarray() if hasattr(counts, "toarray") else pd.DataFrame(counts)
    counts = np.asarray(counts, float)
    if counts.shape != (len(counted_at), n_categories):
        raise ValueError(
            f"counts must have a row for each of the {len(counted_at)} times and {n_categories} "
            f"categories; got shape {counts.shape}; say when they were counted by counted_at"
        )
    totals = counts.sum(axis=1, keepdims=True)
    return np.divide(counts, totals, out=np.full_like(counts, np.nan), where=totals > 0)


def check_labels(labels, n_categories):
    """Return a list of the labels of all categories."""
    labels = list(labels)
    if len(labels) != n_categories:
        raise ValueError(f"labels must name the {n_categories} categories; got {len(labels)}")
    return labels


def check_times(times, values, name):
    """Raise unless there is a row of values for each of the times, which ascend."""
    if times.ndim != 1 or len(times) != len(values) or not values.size:
        raise ValueError(
            f"{name} must have a row for each of the times; got {values.shape} and {times.shape}"
        )
    if not np.all(times[1:] > times[:-1]):
        raise ValueError("times must ascend, each once; got others: sort them first")


def check_bands(values, lower, upper):
    """Raise unless there are both sides of the bands, or none, in the shape of the values."""
    if (lower is None) != (upper is None):
        raise ValueError("bands need both lower and upper; got one of them")
    for side in (lower, upper):
        if side is not None and np.shape(side) != values.shape:
            raise ValueError(f"bands must have the shape {values.shape}; got {np.shape(side)}")


def check_range(values):
    """Raise unless these can be probabilities."""
    if np.any((values < -1e-9) | (values > 1 + 1e-9)):
        raise ValueError(
            f"probabilities must lie between 0 and 1; got {values.min():g} to {values.max():g}; "
            "divide per cent by 100"
        )
