"""Pictures of probabilities that change smoothly over time or over places."""

import numpy as np
import pandas as pd

from polystick.plots.style import line_style, plain_times

__all__ = ["category_map", "category_paths"]

LARGEST_DOT, SMALLEST_DOT = 400.0, 25.0  # points squared


def category_paths(times, probabilities, lower=None, upper=None, *, counts=None, counted_at=None,
                   categories=None, labels=None, ax=None):  # fmt: skip
    """Draw probabilities of categories over time, with bands and the shares that were counted.

    Parameters
    ----------
    times : (n,) numbers, dates or pandas periods, ascending
    probabilities : (n, K) between 0 and 1, or a DataFrame
    lower, upper : (n, K) or None, the bands
    counts : (m, K) or None
        What was counted; a dot is the share of a category in a row, and a row without counts has none.
    counted_at : (m,) or None
        The times of the counts, in any order; None: those of the probabilities.
    categories : sequence of names or numbers, or None
        Which to draw, by their labels; None: the six of the largest probability on the whole.
    labels : sequence of K names, or None for the columns of a DataFrame
    ax : matplotlib axes or None

    Returns
    -------
    axes : a line, an area and a set of dots for each category drawn, in the order of `categories`
    """
    import matplotlib.pyplot as plt

    frame = pd.DataFrame(probabilities)
    (times, name), values = plain_times(times), frame.to_numpy(float)
    _check_paths(times, values, lower, upper)
    labels = _check_labels(frame.columns if labels is None else labels, values.shape[1])
    dots_at = times if counted_at is None else plain_times(counted_at)[0]
    shares = None if counts is None else _shares(counts, dots_at, values.shape[1])
    where = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)} if ax is None else {"loc": "best"}
    if ax is None:
        _, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for place, j in enumerate(_chosen(categories, labels, values)):
        style = line_style(place)
        ax.plot(times, 100 * values[:, j], **style, linewidth=1.8, label=labels[j], zorder=3)
        if lower is not None:
            low, high = (100 * np.asarray(side, float)[:, j] for side in (lower, upper))
            ax.fill_between(times, low, high, color=style["color"], alpha=0.2, lw=0, zorder=2)
        if shares is not None:
            ax.plot(dots_at, 100 * shares[:, j], ".", color=style["color"], ms=6, alpha=0.7, mew=0)
    ax.margins(x=0.02)
    ax.set(xlabel=name, ylabel="probability (%)", ylim=(-0.02 * ax.get_ylim()[1], None))
    ax.grid(axis="y", alpha=0.3)
    ax.legend(fontsize="small", **where)
    return ax


def category_map(places, probability, sizes=None, *, names=None, label="probability (%)",
                 limits=None, geographic=True, ax=None):  # fmt: skip
    """Draw the probability of one category at places, as the colour of a dot at each.

    Parameters
    ----------
    places : (n, 2) array or DataFrame
        Longitude and latitude in degrees (east and north are positive), or any two coordinates.
    probability : (n,) between 0 and 1
    sizes : (n,) not negative, or None
        Shown as the area of the dots, such as how much was counted there; none gets so small that its
        colour could not be seen.
    names : sequence of n strings or None
        Written beside the dots.
    label : str, what the colours mean
    limits : (lowest, highest) probability of the colours, or None for those that came; give the same to
        maps that are to be compared
    geographic : bool
        Whether to give a degree of longitude the length it has at the middle latitude.
    ax : matplotlib axes or None

    Returns
    -------
    axes : the dots are a scatter whose array is the probability in per cent
    """
    import matplotlib.pyplot as plt

    frame = pd.DataFrame(places)
    at, values = frame.to_numpy(float), np.asarray(probability, float)
    _check_map(at, values)
    areas = _areas(sizes, len(values))
    low, high = (values.min(), values.max()) if limits is None else limits
    shape = 1 / np.cos(np.radians(at[:, 1].min() / 2 + at[:, 1].max() / 2)) if geographic else None
    if ax is None:
        _, ax = plt.subplots(figsize=(8, _height(at, shape)), layout="compressed")
    looks = {"cmap": "viridis", "vmin": 100 * low, "vmax": 100 * high}
    # small dots on large ones, so that none is hidden
    order = np.argsort(-areas, kind="stable")
    dots = ax.scatter(*at[order].T, s=areas[order], c=100 * values[order], **looks)
    dots.set(edgecolor="0.35", linewidth=0.4)
    for (x, y), area, text in zip(at, areas, [] if names is None else _check_names(names, at)):
        beside = (0.5 * np.sqrt(area) + 1.5, 0)
        looks = {"fontsize": 6.5, "va": "center", "color": "0.25"}
        ax.annotate(text, (x, y), beside, textcoords="offset points", **looks)
    ax.figure.colorbar(dots, ax=ax, shrink=0.8, label=label)
    named = [str(name) for name in frame.columns] if hasattr(places, "columns") else None
    words = named or (["longitude", "latitude"] if geographic else ["", ""])
    ax.set(xlabel=words[0], ylabel=words[1])
    ax.margins(0.08)
    if geographic:
        ax.set_aspect(shape)
    return ax


def _height(at, shape):
    """Return the height in inches of a figure that the map fills."""
    wide, high = np.ptp(at, axis=0)
    if shape is None or wide == 0:
        return 5.0
    return float(np.clip(6.2 * shape * high / wide + 0.8, 3.0, 9.0))


def _chosen(categories, labels, values):
    """Return the columns to draw."""
    if categories is None:
        return np.argsort(-np.nansum(values, axis=0), kind="stable")[:6]
    known = {label: j for j, label in enumerate(labels)}
    unknown = [name for name in categories if name not in known]
    if unknown:
        raise ValueError(
            f"categories must be among the labels; got {unknown[0]!r}, and the first labels are "
            f"{', '.join(map(str, labels[:5]))}"
        )
    return [known[name] for name in categories]


def _shares(counts, counted_at, n_categories):
    counts = np.asarray(pd.DataFrame(counts), float)
    if counts.shape != (len(counted_at), n_categories):
        raise ValueError(
            f"counts must have a row for each of the {len(counted_at)} times and {n_categories} "
            f"categories; got shape {counts.shape}; say when they were counted by counted_at"
        )
    totals = counts.sum(axis=1, keepdims=True)
    return np.divide(counts, totals, out=np.full_like(counts, np.nan), where=totals > 0)


def _areas(sizes, n_places):
    if sizes is None:
        return np.full(n_places, LARGEST_DOT / 3)
    sizes = np.asarray(sizes, float)
    if sizes.shape != (n_places,) or not (np.all(sizes >= 0) and 0 < sizes.max() < np.inf):
        raise ValueError(
            f"sizes must be {n_places} finite numbers, not negative nor all zero; got {sizes}"
        )
    return np.maximum(LARGEST_DOT * sizes / sizes.max(), SMALLEST_DOT)


def _check_labels(labels, n_categories):
    labels = list(labels)
    if len(labels) != n_categories:
        raise ValueError(f"labels must name the {n_categories} categories; got {len(labels)}")
    return labels


def _check_names(names, at):
    names = [str(name) for name in names]
    if len(names) != len(at):
        raise ValueError(f"names must be {len(at)}, one for each place; got {len(names)}")
    return names


def _check_paths(times, values, lower, upper):
    if times.ndim != 1 or len(times) != len(values) or not values.size:
        raise ValueError(
            "probabilities must have a row for each of the times; got "
            f"{values.shape} and {times.shape}"
        )
    if not np.all(times[1:] > times[:-1]):
        raise ValueError("times must ascend, each once; got others: sort them first")
    _check_range(values)
    if (lower is None) != (upper is None):
        raise ValueError("bands need both lower and upper; got one of them")
    for side in (lower, upper):
        if side is not None and np.shape(side) != values.shape:
            raise ValueError(f"bands must have the shape {values.shape}; got {np.shape(side)}")


def _check_map(at, values):
    if at.ndim != 2 or at.shape[1] != 2 or not len(at) or not np.isfinite(at).all():
        raise ValueError(
            f"places must be finite, with two columns, not empty; got shape {at.shape}"
        )
    if values.shape != (len(at),):
        raise ValueError(
            f"probability must be {len(at)} numbers, one for each place; got shape {values.shape}; "
            "choose the column of one category"
        )
    _check_range(values)


def _check_range(values):
    if np.any((values < -1e-9) | (values > 1 + 1e-9)):
        raise ValueError(
            f"probabilities must lie between 0 and 1; got {values.min():g} to {values.max():g}; "
            "divide per cent by 100"
        )
