"""Pictures of what covariates do to probabilities."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from polystick.plots import paths
from polystick.plots.style import COLOURS, as_text, fit_labels, line_style, size_in_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["effect_curves", "effects"]

NEEDED = {"estimate", "lower", "upper"}
MARKERS = "osD^vPX*"
APART = 0.6  # of the room of a category, that its dots share


def effects(table: pd.DataFrame, ax: "Axes | None" = None, sort: bool = True) -> "Axes":
    """Draw changes of probabilities as dots with intervals.

    Parameters
    ----------
    table : DataFrame
        What `effects`, `contrasts` or `group_effects` of a model return: rows are categories, or what is
        compared and categories; then each comparison has its colour.
    ax : matplotlib axes or None
    sort : bool
        Whether the category that gains most (in the first comparison) is at the top; else they stay in order.

    Returns
    -------
    axes : a container of error bars for each comparison
    """
    import matplotlib.pyplot as plt

    tables = _parts(table)
    names = list(next(iter(tables.values())).index)
    if sort:
        first = next(iter(tables.values()))["estimate"]
        names = list(first.sort_values(kind="stable").index[::-1])
    if ax is None:
        _, ax = plt.subplots(figsize=(6, float(np.clip(0.3 * len(names) + 1, 2.5, 11))),
                             layout="constrained")  # fmt: skip
    ax.axvline(0.0, color="0.6", linewidth=1, zorder=0)
    for place, (what, part) in enumerate(tables.items()):
        part = part.loc[names]
        shift = APART * ((place + 0.5) / len(tables) - 0.5)
        middle = 100 * part["estimate"].to_numpy()
        sides = 100 * np.stack([part["estimate"] - part["lower"], part["upper"] - part["estimate"]])
        ax.errorbar(middle, np.arange(len(names)) + shift, xerr=np.maximum(sides, 0.0),
                    fmt=MARKERS[place % len(MARKERS)], markersize=4, elinewidth=1.4,
                    color=COLOURS[place % len(COLOURS)], label=as_text(what))  # fmt: skip
    ax.set_ylim(len(names) - 0.5, -0.5)
    size, every = fit_labels(size_in_points(ax)[1] / len(names))
    ax.set_yticks(
        range(0, len(names), every), [as_text(name) for name in names[::every]], fontsize=size
    )
    ax.set_xlabel("change of probability (percentage points)")
    ax.grid(axis="x", alpha=0.3)
    if len(tables) > 1:
        title = as_text(table.index.names[0] or "")
        ax.legend(title=title, frameon=False, loc="best")
    return ax


def effect_curves(
    table: pd.DataFrame, categories: Sequence[Any] | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw probabilities along a covariate, with bands; levels of a factor are dots with intervals.

    Parameters
    ----------
    table : DataFrame
        What `effect_curves` of a model returns.
    categories : sequence of names, or None
        Which to draw; None: the six of the largest probability.
    ax : matplotlib axes or None

    Returns
    -------
    axes : a line and an area for each category drawn, or a container of error bars
    """
    _need(table)
    if table.index.nlevels != 2:
        raise ValueError(
            "table must have rows (value, category), as `effect_curves` returns it; got another index"
        )
    wide = {side: table[side].unstack(level=1) for side in ("estimate", "lower", "upper")}
    order = list(dict.fromkeys(table.index.get_level_values(1)))
    shown = list(dict.fromkeys(table.index.get_level_values(0)))
    values, lower, upper = (part.loc[shown, order].to_numpy(float) for part in wide.values())
    labels = [str(name) for name in order]
    ax, where = paths.own_axes(ax)
    chosen = paths.chosen(categories, labels, values)
    is_number = all(
        isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in shown
    )
    at = np.array(shown, dtype=float) if is_number else np.arange(len(shown))
    for place, j in enumerate(chosen):
        middle, low, high = (100 * part[:, j] for part in (values, lower, upper))
        style = line_style(place)
        if is_number and len(shown) > 2:
            paths.draw_path(ax, at, middle, low, high, lw=1.8, label=as_text(labels[j]), **style)
            continue
        shift = (
            APART * ((place + 0.5) / len(chosen) - 0.5) * (np.ptp(at) / len(at) if is_number else 1)
        )
        sides = np.maximum([middle - low, high - middle], 0.0)
        ax.errorbar(at + shift, middle, yerr=sides, fmt=MARKERS[place % len(MARKERS)], capsize=2,
                    color=style["color"], label=as_text(labels[j]))  # fmt: skip
    paths.finish_probabilities(ax, as_text(table.index.names[0] or ""), where)
    if not is_number or len(shown) <= 2:
        ax.set_xticks(at, [as_text(v) for v in shown])
    return ax


def _parts(table):
    """Return comparison -> table by category."""
    _need(table)
    if table.index.nlevels == 1:
        return {"": table}
    flat = table.index.droplevel(-1)
    keys = [", ".join(map(str, key)) if isinstance(key, tuple) else key for key in flat]
    found: dict = {}
    for key in dict.fromkeys(keys):
        found[key] = table[[k == key for k in keys]].droplevel(list(range(table.index.nlevels - 1)))
    return found


def _need(table):
    missing = NEEDED - set(getattr(table, "columns", ()))
    if not isinstance(table, pd.DataFrame) or missing or not len(table):
        raise ValueError(
            "table must have columns estimate, lower and upper, as `effects` returns it; got "
            f"{type(table).__name__}" + (f" without {sorted(missing)[0]}" if missing else "")
        )
