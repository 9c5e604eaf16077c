"""Pictures of probabilities that change smoothly over time or over places."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from polystick.plots import paths
from polystick.plots.style import as_text, line_style, plain_times

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["category_map", "category_paths"]

LARGEST_DOT, SMALLEST_DOT = 400.0, 25.0  # points squared


def category_paths(times: Any, probabilities: Any, lower: ArrayLike | None = None,
                   upper: ArrayLike | None = None, *, counts: Any = None, counted_at: Any = None,
                   categories: Sequence[Any] | None = None, labels: Any = None,
                   ax: "Axes | None" = None) -> "Axes":  # fmt: skip
    """Draw probabilities of categories over time, with bands and the shares that were counted.

    Parameters
    ----------
    times : (n,) numbers, dates or pandas periods, ascending
    probabilities : (n, K) between 0 and 1, or a DataFrame
    lower, upper : (n, K) or None, the bands
    counts : (m, K) array, CSR or DataFrame, or None
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
    frame = pd.DataFrame(probabilities)
    (times, name), values = plain_times(times), frame.to_numpy(float)
    paths.check_times(times, values, "probabilities")
    paths.check_range(values)
    paths.check_bands(values, lower, upper)
    labels = paths.check_labels(frame.columns if labels is None else labels, values.shape[1])
    dots_at = times if counted_at is None else plain_times(counted_at)[0]
    shares = None if counts is None else paths.counted_shares(counts, dots_at, values.shape[1])
    ax, where = paths.own_axes(ax)
    for place, j in enumerate(paths.chosen(categories, labels, values)):
        style, band = line_style(place), (paths.percent(side, j) for side in (lower, upper))
        paths.draw_path(
            ax, times, 100 * values[:, j], *band, lw=1.8, label=as_text(labels[j]), **style
        )
        if shares is not None:
            paths.draw_shares(ax, dots_at, 100 * shares[:, j], style["color"])
    paths.finish_probabilities(ax, name, where)
    return ax


def category_map(places: Any, probability: Any, sizes: Any = None, *, names: Sequence[str] | None = None,
                 label: str = "probability (%)", limits: tuple[float, float] | None = None,
                 geographic: bool = True, ax: Any = None) -> "Axes":  # fmt: skip
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
    named = [as_text(name) for name in frame.columns] if hasattr(places, "columns") else None
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


def _areas(sizes, n_places):
    if sizes is None:
        return np.full(n_places, LARGEST_DOT / 3)
    sizes = np.asarray(sizes, float)
    if sizes.shape != (n_places,) or not (np.all(sizes >= 0) and 0 < sizes.max() < np.inf):
        raise ValueError(
            f"sizes must be {n_places} finite numbers, not negative nor all zero; got {sizes}"
        )
    return np.maximum(LARGEST_DOT * sizes / sizes.max(), SMALLEST_DOT)


def _check_names(names, at):
    names = [as_text(name) for name in names]
    if len(names) != len(at):
        raise ValueError(f"names must be {len(at)}, one for each place; got {len(names)}")
    return names


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
    paths.check_range(values)
