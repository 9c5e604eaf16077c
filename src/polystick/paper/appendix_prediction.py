"""Appendix B, the claim: predictions given omega vary less from state to state than those given psi.

A process over time with three categories is fitted by many independent runs. What a run predicts from a few
states differs from run to run; the variance of that is the Monte Carlo error of the prediction.
"""

import numpy as np
import pandas as pd

from polystick import Decomposition, Gibbs, MultinomialGP, plots
from polystick.paper.parts import Line, Picture, judged

N_STATES = (1, 4, 16)
TIMES = np.arange(30.0)
UNSEEN = (TIMES >= 12) & (TIMES < 17)  # a gap in the data
NEW = np.arange(0.0, 41.0)  # to ten steps after the last count
AHEAD, BETWEEN = TIMES[-1] < NEW, np.isin(NEW, TIMES[UNSEEN])
KINDS = {True: "collapsed (given ω)", False: "uncollapsed (given ψ)"}
N_RUNS = {False: 30, True: 200}  # by full
N_LINES = 20  # runs drawn
LOOKS = {True: (plots.COLOURS[0], "-"), False: (plots.COLOURS[5], "--")}


def example(n_counts=10, seed=0):
    """Return counts (30, 3) whose probabilities swing, with none in the gap."""
    psi = np.stack([1.2 * np.sin(TIMES / 6) - 0.7, np.cos(TIMES / 8)], axis=1)
    pi = Decomposition.sticks(range(3)).probabilities(psi)
    counts = np.random.default_rng(seed).multinomial(n_counts, pi)
    counts[UNSEEN] = 0
    return counts


def predictions(n_runs, say):
    """Return {collapsed: what each run predicts from each number of states, (runs, numbers, times, 3)}."""
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern

    counts, kernel = example(), ConstantKernel(1.0) * Matern(8.0, nu=2.5)
    inference = Gibbs(n_draws=max(N_STATES), n_burn=20, n_chains=1)
    found: dict[bool, list] = {collapsed: [] for collapsed in KINDS}
    for run in range(n_runs):
        if run % 10 == 0:
            say(f"prediction: run {run + 1} of {n_runs}")
        model = MultinomialGP(kernel, learn=(), mean="zero", decomposition="given",
                              inference=inference, random_state=run, n_jobs=1)  # fmt: skip
        model.fit(TIMES[:, None], counts)
        for collapsed, runs in found.items():
            options = [{"n_draws": n, "collapsed": collapsed} for n in N_STATES]
            runs.append([model.predict_proba(NEW[:, None], **option) for option in options])
    return {collapsed: np.array(runs) for collapsed, runs in found.items()}


def variances(found):
    """Return {collapsed: variance over runs (numbers, times), summed over categories}."""
    return {collapsed: runs.var(axis=0, ddof=1).sum(axis=-1) for collapsed, runs in found.items()}


def ratio(found, number, where):
    """Return how many times the variance grows without collapsing, and the standard error of that.

    The error is the jackknife's: runs are left out one by one.
    """
    runs = {collapsed: each[:, number, where] for collapsed, each in found.items()}
    value, n_runs = _ratio(runs), len(runs[True])
    left = [
        _ratio({c: np.delete(each, i, axis=0) for c, each in runs.items()}) for i in range(n_runs)
    ]
    return value, np.sqrt((n_runs - 1) * np.var(left))


def _ratio(runs):
    spread = {collapsed: each.var(axis=0, ddof=1).sum() for collapsed, each in runs.items()}
    return spread[False] / spread[True]


def run(full, say):
    """Return the picture and its lines."""
    found = predictions(N_RUNS[full], say)
    return _picture(found), lines(found)


def lines(found):
    """Return the ratios of variances, beside what the appendix claims."""
    places = {"ten steps ahead": AHEAD, "in the gap": BETWEEN}
    made = []
    for number in (0, len(N_STATES) - 1):
        for place, where in places.items():
            value, error = ratio(found, number, where)
            states = f"{N_STATES[number]} state" + "s" * (N_STATES[number] > 1)
            made.append(
                Line(
                    f"Variance of predicted probabilities from {states}, {place}: given psi / given omega",
                    "substantial gains",
                    f"{value:.1f}",
                    f"{error:.1f}",
                    judged(value - 2 * error > 1),
                    "So many times the states are needed for the same Monte Carlo error. An example of ours: "
                    "the paper has none.",
                )
            )
    gap = found[True][:, -1] - found[False][:, -1]
    z = np.abs(gap.mean(axis=0) / (gap.std(axis=0, ddof=1) / np.sqrt(len(gap)))).max()
    made.append(
        Line(
            "Mean of both predictions over all runs (largest z-score of the difference)",
            "the same integral",
            f"{z:.2f}",
            f"{len(gap)} independent runs, {gap[0].size} probabilities",
            judged(z < 5),
            "Both are right; they differ in their variance only.",
        )
    )
    return made


def _picture(found):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6.4), layout="constrained")
    axes = figure.subplot_mosaic("ab;cc", height_ratios=(1.3, 1))
    axes["b"].sharey(axes["a"])
    for place, collapsed in zip("ab", KINDS):
        _draw_runs(axes[place], found, collapsed)
    axes["a"].set_ylabel("probability of category 1 (%)")
    axes["a"].legend(loc="upper right", fontsize="small")
    _draw_variances(axes["c"], variances(found))
    caption = (
        f"Above: what each of {N_LINES} runs predicts from a single posterior state, and the mean over all "
        "runs (black); dots are the shares counted, none in the grey gap nor after the dotted line. Below: "
        "the variance over runs of the prediction, at equal numbers of states, averaged over the ten steps "
        "ahead."
    )
    title = "Collapsed against uncollapsed prediction"
    return Picture("appendix_prediction", title, caption, figure, _table(found))


def _draw_runs(ax, found, collapsed):
    shown = 100 * found[collapsed][:N_LINES, 0, :, 0]
    mean = 100 * found[collapsed][:, -1, :, 0].mean(axis=0)
    ax.axvspan(*TIMES[UNSEEN][[0, -1]], color="0.9", zorder=0)
    ax.axvline(TIMES[-1] + 0.5, color="0.4", linestyle=":", zorder=1)
    (first, *_) = ax.plot(NEW, shown.T, color=LOOKS[collapsed][0], linewidth=0.9, alpha=0.6)
    first.set_label("one state each")
    ax.plot(NEW, mean, color="black", linewidth=1.8, label="mean of all runs")
    ax.plot(
        TIMES[~UNSEEN], 100 * _shares(), ".", color="0.35", markersize=6, label="counted", zorder=1
    )
    ax.set(title=KINDS[collapsed], xlabel="time (steps)", ylim=(0, 100))


def _draw_variances(ax, spread):
    for collapsed, each in spread.items():
        colour, line = LOOKS[collapsed]
        ahead = each[:, AHEAD].mean(axis=1)
        ax.plot(N_STATES, ahead, line, marker="o", color=colour, label=KINDS[collapsed])
    ax.set(xscale="log", yscale="log", xlabel="number of posterior states")
    ax.set_ylabel("variance of the prediction\n(sum over categories)")
    ax.set_xticks(N_STATES, labels=map(str, N_STATES))
    ax.minorticks_off()
    ax.grid(alpha=0.3)
    ax.legend(loc="upper right", fontsize="small")


def _shares():
    counts = example()[~UNSEEN]
    return counts[:, 0] / counts.sum(axis=1)


def _table(found):
    """Return what is drawn: runs from one state, means and variances, and the counts."""
    pieces = [pd.DataFrame({"what": "counted", "time": TIMES[~UNSEEN], "value": _shares()})]
    for collapsed, spread in variances(found).items():
        kind = "collapsed" if collapsed else "uncollapsed"
        runs = found[collapsed]
        each = [
            (f"probability of category 1, run {i}", 1, runs[i, 0, :, 0]) for i in range(len(runs))
        ]
        each.append(("mean of all runs", N_STATES[-1], runs[:, -1, :, 0].mean(axis=0)))
        each += [("variance over runs", n, row) for n, row in zip(N_STATES, spread)]
        for what, n_states, value in each:
            columns = {
                "what": what,
                "kind": kind,
                "n_states": n_states,
                "time": NEW,
                "value": value,
            }
            pieces.append(pd.DataFrame(columns))
    return pd.concat(pieces, ignore_index=True)
