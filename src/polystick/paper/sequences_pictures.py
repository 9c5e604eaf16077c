"""The pictures of figure 4: bars for each model and data set, and scores against time."""

import numpy as np

from polystick.paper.parts import Picture
from polystick.paper.sequences_tasks import FITTED, MODELS, UNIGRAM, ZERO
from polystick.plots.style import COLOURS

COLOUR_OF = dict(zip(MODELS, (*COLOURS[:5], "#A0A0A0")))
MARKERS = dict(zip(FITTED, "osD^v"))
GREY = "0.45"
HEIGHT = 0.38  # of a bar; rows are 1 apart
UNITS = {
    "DNA": "the last 10 symbols",
    "AP": "the last 10 words of 20 articles",
    "Alice": "the last 100 words",
}
NEVER = "not run (quick)"


def bars(table, what_is_held_out):
    """Return the picture of gains over the training frequencies, from the table of `sequences.bars_table`."""
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(table.task))
    figure = Figure(figsize=(8, 6.6), layout="constrained")
    axes = figure.subplots(2, 2, sharey=True).ravel()
    for ax, task in zip(axes, tasks):
        _draw_bars(ax, table[table.task == task].set_index("model"))
        ax.set_title(f"{task}: {what_is_held_out[task]}", fontsize=10)
    axes[0].invert_yaxis()  # shared: the first model on top
    figure.supxlabel("nats per held-out token, over the training frequencies", fontsize=10)
    _explain(figure)
    caption = (
        "Gains over a multinomial at the training frequencies, the paper's zero, which is not smoothed. Full "
        "bars: one step ahead; pale bars: all held-out tokens of a sequence jointly, as the paper has it. "
        "Black: one standard error over seeds either way (in the last panel over pieces). Grey: 95 % "
        "bootstrap interval over held-out tokens (AP: articles), one step ahead. Dashed: the smoothed "
        "unigram, which knows no order of tokens: what does not pass it has found no dynamics of use."
    )
    title = "Predictive log likelihood of models of sequences"
    return Picture("figure4_bars", title, caption, figure, table)


def _draw_bars(ax, mine):
    for row, name in enumerate(MODELS):
        if name not in mine.index:
            ax.text(0, row, f" {NEVER}", va="center", fontsize=8, color="0.35")
            continue
        line, colour = mine.loc[name], COLOUR_OF[name]
        places = row - HEIGHT / 2, row + HEIGHT / 2
        ax.barh(places[0], line.one_step_over_zero, HEIGHT, color=colour)
        ax.barh(places[1], line.joint_over_zero, HEIGHT, color=colour, alpha=0.4)
        ax.hlines(places[0], line.lower_over_zero, line.upper_over_zero, color=GREY, linewidth=1.2)
        for place, kind in zip(places, ("one_step", "joint")):
            value, error = line[f"{kind}_over_zero"], line[f"{kind}_over_zero_se"]
            ax.errorbar(
                value, place, xerr=np.nan_to_num(error), color="k", capsize=2, linewidth=1.4
            )
    ax.axvline(0, color="0.2", linewidth=0.8)
    ax.axvline(mine.loc[UNIGRAM].one_step_over_zero, color="0.2", linewidth=1, linestyle="--")
    ax.set_yticks(range(len(MODELS)), labels=[name.replace(", ", ",\n") for name in MODELS])
    ax.locator_params(axis="x", nbins=5)
    ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)


def _explain(figure):
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(color="0.3", label="one step ahead"),
        Patch(color="0.3", alpha=0.4, label="jointly"),
        Line2D([], [], color="k", linewidth=1.8, label="± s.e. over seeds"),
        Line2D([], [], color=GREY, linewidth=1.2, label="95 % over tokens"),
        Line2D([], [], color="0.2", linestyle="--", label="smoothed unigram"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=5, fontsize=8, frameon=False)


def against_time(table, unigram_gain):
    """Return the picture of scores against CPU seconds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    ax = figure.subplots()
    for name, mine in table.groupby("model", sort=False):
        (line,) = ax.plot(mine.cpu_seconds, mine.one_step_over_zero, label=name, markersize=5)
        line.set(color=COLOUR_OF[name], marker=MARKERS[name])
    ax.axhline(unigram_gain, color="0.2", linewidth=1, linestyle="--", label="smoothed unigram")
    ax.axhline(0, color="0.2", linewidth=0.8, label=ZERO.lower())
    ax.set(
        xscale="log",
        xlabel="CPU seconds of sampling, one thread",
        ylabel="nats per held-out word, one step ahead",
        title=f"{table.task.iloc[0]}: score against time",
    )
    ax.grid(color="0.9")
    ax.set_axisbelow(True)
    ax.legend(fontsize=9)
    caption = (
        "Each point is a fit of its own that forgets the first half of its sweeps, one chain and one seed; "
        "seconds are those of sampling, without compilation and scoring. Gains are over the training "
        "frequencies. The paper's panel shows Alice, where a sweep of LNM-LDS takes seconds."
    )
    return Picture("figure4_time", "Score against time", caption, figure, table)
