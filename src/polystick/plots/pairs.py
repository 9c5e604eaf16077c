"""What pictures of pairs share: a heat map, and a graph."""

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform

from polystick import layout
from polystick.plots.style import NEGATIVE, POSITIVE, as_text, fit_labels, size_in_points


class Words(NamedTuple):
    """The legend of a graph."""

    positive: str
    negative: str
    size: str


def heat_map(frame, label, ax):
    """Draw a DataFrame (K, K) between -1 and 1; what is missing stays grey."""
    import matplotlib.pyplot as plt

    if ax is None:
        side = min(3.5 + 0.2 * len(frame), 8.5)
        _, ax = plt.subplots(figsize=(side + 1, side), layout="constrained")
    colours = plt.get_cmap("RdBu_r").with_extremes(bad="0.92")
    image = ax.imshow(frame, cmap=colours, vmin=-1, vmax=1)
    # labels beside the picture take up to a third of it
    size, step = fit_labels(0.7 * min(size_in_points(ax)) / len(frame))
    ticks = range(0, len(frame), step)
    ax.set_xticks(
        ticks, [as_text(name) for name in frame.columns[::step]], rotation=90, fontsize=size
    )
    ax.set_yticks(ticks, [as_text(name) for name in frame.index[::step]], fontsize=size)
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label=label)
    return ax


def graph(values, strong, labels, sizes, words, threshold, ax):
    """Draw nodes, those that are alike close by, and an edge where `strong` (K, K) is not zero."""
    import matplotlib.pyplot as plt
    from matplotlib.patheffects import withStroke

    given, sizes = sizes, _check_sizes(sizes, len(values))
    if ax is None:
        figure, ax = plt.subplots(figsize=(8, 8) if len(values) > 12 else (6, 6))
        figure.subplots_adjust(left=0.02, right=0.98, bottom=0.02, top=0.98)
    texts = ["\n".join(part.strip() for part in as_text(label).split(",")) for label in labels]
    font = float(np.clip(11 - len(values) / 12, 6, 10))
    room = size_in_points(ax) - [0, 30]  # the legend is below
    diameters = np.sqrt(sizes / sizes.max()) * 0.5 * np.sqrt(room.prod() / len(values))
    at = layout.place(values, np.maximum(strong, 0)) * room
    at = layout.separate(at, np.maximum(_text_boxes(texts, font), diameters[:, None]), room)
    ax.set(xlim=(0, room[0]), ylim=(-30, room[1]), xticks=[], yticks=[], frame_on=False)
    _draw_edges(ax, at, strong, words, threshold)
    area = None if given is None else f"area: {words.size}"
    ax.scatter(*at.T, s=diameters**2, color="#D9D9D9", edgecolor="white", zorder=2, label=area)
    looks = {"ha": "center", "va": "center", "fontsize": font, "linespacing": 1.0, "zorder": 3}
    halo = [withStroke(linewidth=2, foreground="white", alpha=0.8)]
    for (x, y), text in zip(at, texts):
        ax.text(x, y, text, path_effects=halo, **looks)
    marker = {"markerscale": min(1, 9 / diameters.max())}
    ax.legend(
        loc="lower center", ncols=3, fontsize="small", frameon=False, borderaxespad=0, **marker
    )
    return ax


def side_by_side(matrix):
    """Return the order of a hierarchical clustering of correlations (K, K)."""
    if len(matrix) < 3:
        return np.arange(len(matrix))
    distance = squareform(np.clip(1 - matrix, 0, 2), checks=False)
    return leaves_list(optimal_leaf_ordering(linkage(distance, "average"), distance))


def middle(result):
    """Return the means of an `Interval`, and anything else as it is."""
    return result.mean if isinstance(result, tuple) and hasattr(result, "mean") else result


def check_correlation(frame):
    """Return the values of a DataFrame of correlations, or raise."""
    values = frame.to_numpy(float)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not values.size:
        raise ValueError(f"a correlation matrix must be square, not empty; got {values.shape}")
    if not (np.all(np.abs(values) <= 1 + 1e-6) and np.allclose(values, values.T, atol=1e-6)):
        raise ValueError(
            "a correlation matrix must be symmetric and lie between -1 and 1; got another: divide a "
            "covariance by its standard deviations"
        )
    return values


def check_labels(labels, n_nodes, what="topics"):
    """Return labels as strings, or raise."""
    labels = [str(label) for label in labels]
    if len(labels) != n_nodes:
        raise ValueError(f"labels must name the {n_nodes} {what}; got {len(labels)}")
    return labels


def _draw_edges(ax, at, strong, words, threshold):
    from matplotlib.collections import LineCollection

    first, second = np.triu_indices(len(at), 1)
    for sign, colour, style in ((1, POSITIVE, "solid"), (-1, NEGATIVE, "dashed")):
        weights = sign * strong[first, second]
        i, j, weights = first[weights > 0], second[weights > 0], weights[weights > 0]
        widths = 0.6 + 2.5 * (weights - threshold) / max(1 - threshold, 1e-9)
        looks = {"colors": colour, "linestyles": style, "alpha": 0.75 if sign > 0 else 0.5}
        segments = list(np.stack([at[i], at[j]], axis=1))
        ax.add_collection(LineCollection(segments, linewidths=widths, zorder=1, **looks))
        name = f"{words.positive if sign > 0 else words.negative} ({len(i)})"
        ax.plot([], [], color=colour, linestyle=style, linewidth=2, label=name)


def _text_boxes(texts, font):
    lines = [text.split("\n") for text in texts]
    widths = [0.62 * font * max(map(len, line)) + 6 for line in lines]
    return np.column_stack([widths, [1.15 * font * len(line) + 6 for line in lines]])


def _check_sizes(sizes, n_nodes):
    sizes = np.ones(n_nodes) if sizes is None else np.asarray(sizes, float)
    if sizes.shape != (n_nodes,) or not (np.all(sizes >= 0) and 0 < sizes.sum() < np.inf):
        raise ValueError(
            f"sizes must be {n_nodes} finite shares, not negative nor all zero; got {sizes}"
        )
    return sizes
