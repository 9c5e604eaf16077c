"""What pictures share: colours, line styles, and how much room there is for labels."""

import numpy as np

from polystick.printable import printable

# Okabe and Ito (2008): told apart by colour-blind readers too; the yellow is too pale for lines
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#8C6D31"]
POSITIVE, NEGATIVE, OTHERS = "#0072B2", "#D55E00", "#B0B0B0"
LINES = ["-", "--", "-.", ":"]


def line_style(place):
    """Return colour and line style of the line with this number."""
    return {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": LINES[place // len(COLOURS) % len(LINES)],
    }


def size_in_points(ax):
    """Return the width and height of axes in points, in which fonts are measured."""
    extent = ax.get_window_extent()
    return np.array([extent.width, extent.height]) * 72 / ax.figure.dpi


def fit_labels(points):
    """Return the font size of labels that are so many points apart, and which to show: every so-manieth."""
    return float(np.clip(0.85 * points, 5.5, 10)), max(1, int(np.ceil(5.5 / points)))


def as_text(name):
    """Return a name as matplotlib writes it letter by letter: a dollar begins no formula."""
    return printable(name).replace("$", r"\$")


def whole_ticks(ax):
    """Write whole numbers below axes, also where there are few."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(nbins="auto", steps=[1, 2, 5, 10], integer=True))


def plain_times(times):
    """Return times as an array that matplotlib can draw, and what to call them."""
    name = getattr(times, "name", None) or "time"
    times = times.to_timestamp() if hasattr(times, "to_timestamp") else times
    return np.asarray(times), as_text(name)
