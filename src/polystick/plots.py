"""Pictures: axes in, axes out. They need matplotlib: pip install polystick[plot]."""

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform


def correlation(matrix, ax=None):
    """Draw a correlation matrix (a DataFrame) as a heat map, with what belongs together side by side.

    Parameters
    ----------
    matrix : DataFrame (K, K)
    ax : matplotlib axes or None

    Returns
    -------
    axes
    """
    import matplotlib.pyplot as plt

    ordered = matrix.iloc[(order := _order(matrix.to_numpy())), order]
    if ax is None:
        side = 3.5 + 0.2 * len(ordered)
        _, ax = plt.subplots(figsize=(side + 1, side), layout="constrained")
    image = ax.imshow(ordered, cmap="RdBu_r", vmin=-1, vmax=1)
    ticks = range(len(ordered))
    ax.set_xticks(ticks, ordered.columns, rotation=90)
    ax.set_yticks(ticks, ordered.index)
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label="correlation of log probabilities")
    return ax


def _order(matrix):
    if len(matrix) < 3:
        return np.arange(len(matrix))
    distance = squareform(np.clip(1 - matrix, 0, 2), checks=False)
    return leaves_list(optimal_leaf_ordering(linkage(distance, "average"), distance))
