"""Pictures of which categories go together: only what is known."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from polystick.plots import pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["association", "association_graph"]


def association(association: Any, ax: Any = None, cluster: bool = True) -> "Axes":
    """Draw the associations that are known not to be zero as a heat map; all others stay grey.

    Parameters
    ----------
    association : Association
        What `category_association` or `topic_association` returns.
    ax : matplotlib axes or None
    cluster : bool
        Whether to bring categories that go together side by side, and those without any association to the
        end; else they stay in the order of the columns.

    Returns
    -------
    axes
    """
    found = _known(association)
    values, order = found.to_numpy(), np.arange(len(found))
    if cluster:
        some = np.flatnonzero(values.any(axis=1))
        of_some = some[pairs.side_by_side(values[np.ix_(some, some)])]
        order = np.concatenate([of_some, np.setdiff1d(order, some)])
    shown = found.where(found != 0).iloc[order, order]
    label = f"association of log abundances\ngrey: not known ({association.level:.0%} interval)"
    ax = pairs.heat_map(shown, label, ax)
    ax.axline((0, 0), slope=1, color="0.75", linewidth=0.8)
    return ax


def association_graph(association: Any, labels: Any = None, sizes: ArrayLike | None = None,
                      threshold: float = 0.0, ax: "Axes | None" = None) -> "Axes":  # fmt: skip
    """Draw categories as a graph whose edges are the associations that are known not to be zero.

    Parameters
    ----------
    association : Association
        What `category_association` or `topic_association` returns.
    labels : sequence of K strings, or None for the names of the categories
        Commas become line breaks.
    sizes : (K,) non-negative, or None
        The share of each category, shown as the area of its node. A Series is matched by its index, so the
        column `share` of `summary()` will do.
    threshold : float from 0 to 1
        Where too many are known: draw only those whose size is beyond it.
    ax : matplotlib axes or None

    Returns
    -------
    axes : edges are two line collections, positive (solid) and negative (dashed); nodes a scatter
    """
    found = _known(association)
    names = pairs.check_labels(found.index if labels is None else labels, len(found), "categories")
    if isinstance(sizes, pd.Series):
        sizes = sizes.reindex(found.index)
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold must lie between 0 and 1; got {threshold}")
    values = found.to_numpy()
    strong = np.where(np.abs(values) > threshold, values, 0.0)
    beyond = (f", above {threshold:g}", f", below −{threshold:g}") if threshold else ("", "")
    words = pairs.Words(f"go together{beyond[0]}", f"go against each other{beyond[1]}", "share")
    return pairs.graph(values + np.eye(len(values)), strong, names, sizes, words, threshold, ax)


def _known(association):
    """Return the means that are known not to be zero, and 0 for all others and for the diagonal."""
    pairs.check_correlation(association.mean)
    return association.mean.where(association.known & ~np.eye(len(association.mean), dtype=bool), 0)
