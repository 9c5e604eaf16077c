"""The pictures of figure 3: paths of names, a map, hits beside the paper's, scores against time."""

import numpy as np
import pandas as pd

from polystick import plots
from polystick.paper.name_models import COLUMNS, LAST_YEAR, MODELS
from polystick.paper.parts import Picture
from polystick.paper.time_axis import show_seconds

SHOWN_NAMES, SHOWN_STATES = ("Scott", "Matthew", "Ethan"), ("NY", "TX", "WA")
MAPPED, MAP_YEAR = "Ethan", 2000
BAND = 1.645  # standard deviations on each side: 90 %, were the law normal
COLOURS = dict(zip(MODELS, ("#7F7F7F", plots.COLOURS[1], plots.COLOURS[2], plots.COLOURS[0])))
MARKS = dict(zip(MODELS, ("", "", "s", "o")))


def paths(births, mean, sd):
    """Draw the probabilities (years, states, names) of three names in three states."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6.6), layout="constrained")
    axes, tables = figure.subplots(len(SHOWN_NAMES), 1, sharex=True), []
    shares = births.counts / births.counts.sum(axis=2, keepdims=True)
    for ax, name in zip(axes, SHOWN_NAMES):
        k = births.names.index(name)
        for place, state in enumerate(SHOWN_STATES):
            s, colour = births.states.index(state), plots.COLOURS[place]
            centre, width = mean[:, s, k], BAND * sd[:, s, k]
            lower, upper = np.maximum(centre - width, 0), centre + width
            ax.fill_between(births.years, 100 * lower, 100 * upper, color=colour, alpha=0.25, lw=0)
            ax.plot(births.years, 100 * centre, color=colour, lw=1.5, label=state)
            ax.plot(births.years, 100 * shares[:, s, k], "x", color=colour, ms=4, mew=0.9)
            columns = {"year": births.years, "probability": centre, "lower": lower, "upper": upper}
            table = pd.DataFrame({**columns, "share": shares[:, s, k]})
            table.insert(0, "state", state)
            table.insert(0, "name", name)
            tables.append(table)
        ax.axvline(LAST_YEAR + 0.5, color="0.3", linestyle=":", linewidth=1)
        ax.set(ylabel=f"{name} (%)", ylim=(0, None))
        ax.grid(axis="y", alpha=0.3)
    axes[0].plot([], [], "x", color="0.3", ms=4, label="births")
    axes[0].fill_between([], [], [], color="0.3", alpha=0.25, label="90 % band")
    axes[0].legend(ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    axes[-1].set_xlabel("year")
    caption = (
        f"Share of three names among the {len(births.names)} in New York, Texas and Washington: posterior "
        "mean of SBM-GP with 90 % bands, learned from all births up to 2011 (dotted line); crosses, what "
        "was counted."
    )
    return Picture("names_paths", "Three names in three states", caption, figure, pd.concat(tables))


def chart(births, mean):
    """Draw the map of one name in one year; mean (years, states, names)."""
    from matplotlib.figure import Figure

    t, k = births.years.tolist().index(MAP_YEAR), births.names.index(MAPPED)
    counts = births.counts[t]
    figure = Figure(figsize=(8, 4.8), layout="compressed")
    label = f"{MAPPED} in {MAP_YEAR} (%)"
    plots.category_map(
        pd.DataFrame(births.places, columns=["longitude (°)", "latitude (°)"]),
        mean[t, :, k],
        sizes=counts.sum(axis=1),
        names=births.states,
        label=label,
        ax=figure.subplots(),
    )
    table = pd.DataFrame(births.places, columns=["longitude", "latitude"])
    table.insert(0, "state", births.states)
    table["births"], table["share"] = counts.sum(axis=1), counts[:, k] / counts.sum(axis=1)
    table["probability"] = mean[t, :, k]
    caption = (
        f"Posterior mean of the share of {MAPPED} among the {len(births.names)} names in {MAP_YEAR}, by "
        "SBM-GP from all births; a dot's area is the number of births."
    )
    return Picture("names_map", f"{MAPPED} in {MAP_YEAR}", caption, figure, table)


def hits(summary, printed):
    """Draw hits beside the paper's; summary has model, column, mean and error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.8), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, kind in zip(axes, ("top", "bottom")):
        for shift, column in ((0.14, f"{kind}_2012"), (-0.14, f"{kind}_2013")):
            rows = summary[summary.column == column].set_index("model").loc[list(MODELS)]
            at = np.arange(len(MODELS))[::-1] + shift
            year = column[-4:]
            colour = plots.COLOURS[0] if year == "2012" else plots.COLOURS[5]
            ours = {"color": colour, "fmt": "o", "ms": 5, "capsize": 3}
            ax.errorbar(
                rows["mean"], at, xerr=2 * rows.error, label=f"{year}, ours ± 2 s.e.", **ours
            )
            paper = [printed[model][COLUMNS.index(column)] for model in MODELS]
            looks = {"color": colour, "ms": 8, "mfc": "none", "mew": 1.4}
            ax.plot(paper, at, "D", label=f"{year}, the paper", **looks)
        ax.set(xlabel=f"names right of the {kind} 10", xlim=(0, 10), ylim=(-0.6, len(MODELS) - 0.4))
        ax.set_yticks(np.arange(len(MODELS))[::-1], MODELS)
        ax.grid(axis="x", alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    caption = (
        "How many of a state's ten most and ten least frequent names of 2012 and 2013 each model predicts, "
        "on average over 48 states and samples of births; diamonds, the paper's table."
    )
    table = summary[summary.column.isin(COLUMNS)]
    paper = [printed[m][COLUMNS.index(c)] for m, c in zip(table.model, table.column)]
    return Picture("names_hits", "Names right of ten", caption, figure, table.assign(paper=paper))


def times(curves, ends):
    """Draw the gain over Static against CPU time; ends is model -> gain of the one without sweeps."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    ax = figure.subplots()
    highest = curves.groupby("model").gain.last().idxmax()
    for model, rows in curves.groupby("model", sort=False):
        (line,) = ax.plot(rows.seconds, rows.gain, color=COLOURS[model], lw=1.6, label=model)
        line.set(marker=MARKS[model], markersize=5)
        for row, below in ((rows.iloc[0], True), (rows.iloc[-1], model != highest)):
            text, shift = f"{row.sweeps:.0f} sweeps", (0, -12 if below else 6)
            ax.annotate(text, (row.seconds, row.gain), shift, textcoords="offset points",
                        ha="center", fontsize=7, color="0.3")  # fmt: skip
    for model, gain in ends.items():
        ax.axhline(gain, color=COLOURS[model], linestyle="--", lw=1.4, label=model)
    ax.set(ylabel="gain over Static (nats per birth)")
    ax.margins(x=0.08, y=0.12)
    show_seconds(ax)
    ax.grid(alpha=0.3)
    ax.legend(loc="lower right")
    caption = (
        "Log of the expected probability of a birth of 2012 and 2013, above Static's, against the CPU time "
        "of the fit; each point is a run of one chain that averages over its later half. The Raw GP "
        "(dashed), whose kernel both use, has no sweeps."
    )
    flat = pd.DataFrame([{"model": model, "gain": gain} for model, gain in ends.items()])
    table = pd.concat([curves, flat], ignore_index=True)
    return Picture("names_time", "Score against time", caption, figure, table)
