"""A logarithmic axis of seconds that can be read, however short it is."""

import numpy as np


def show_seconds(ax):
    """Make the x axis logarithmic, with plain numbers at 1, 2 and 5 or, if it is long, at 1 alone."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax.set(xscale="log", xlabel="CPU time (s)")
    decades = np.ptp(np.log10(ax.get_xlim()))
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2 else (1,)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
