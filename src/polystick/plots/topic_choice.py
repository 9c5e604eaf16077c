"""A picture of how many topics to take."""

from typing import Any

import pandas as pd

from polystick.plots.style import NEGATIVE, POSITIVE

__all__ = ["n_topics"]


def n_topics(table: pd.DataFrame, axes: "Any" = None) -> Any:
    """Draw held-out scores, against the best, and coherence by the number of topics.

    Parameters
    ----------
    table : DataFrame
        What `choose_n_topics` returns.
    axes : two matplotlib axes or None

    Returns
    -------
    two axes: scores above, coherence below
    """
    import matplotlib.pyplot as plt

    table = pd.DataFrame(table)
    if missing := {"gain", "gain_error", "npmi"} - set(table.columns):
        raise ValueError(f"table must be of `choose_n_topics`; {sorted(missing)} is missing")
    if axes is None:
        _, axes = plt.subplots(2, 1, figsize=(6, 5), sharex=True, layout="constrained")
    above, below = axes
    above.errorbar(table.index, table["gain"], 2 * table["gain_error"], fmt="o-", color=POSITIVE,
                   capsize=3, markersize=4)  # fmt: skip
    above.axhline(0.0, color="0.7", linewidth=1, zorder=0)
    above.set_ylabel("score less the best\n(nats per token, ± 2 s.e.)")
    below.plot(table.index, table["npmi"], "o-", color=NEGATIVE, markersize=4)
    below.set(xlabel="number of topics", ylabel="coherence (NPMI)")
    below.set_xticks(table.index if len(table) <= 12 else table.index[:: len(table) // 8])
    for ax in axes:
        ax.grid(axis="y", alpha=0.3)
    return axes
