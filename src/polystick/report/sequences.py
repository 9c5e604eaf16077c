"""The page of sequences: probabilities of the steps, what comes next, states and regimes."""

import numpy as np
import pandas as pd

from polystick.report import panels

__all__ = ["first_table", "tell"]

_LEVEL = 0.9
_MOST = 40  # categories
_MOST_STEPS = 400
_BEFORE = 40  # steps that a forecast is shown after
_FAN = (0.5, 0.8, 0.95)
_TIMES_SD = 1.645
_TOP = 8  # categories of a state


def tell(model, n_steps=20):
    """Return the page of a model of sequences; the first sequence of the fit is shown.

    n_steps : of the forecast
    """
    told = _steps(model)
    shown = panels.largest(told["mean"].mean(axis=0), _MOST)
    part = {name: _columns(told[name], shown) for name in ("mean", "lower", "upper")}
    average = told["mean"].mean(axis=0)[shown]
    index = panels.index("All categories", average, note="Average over the steps shown.")
    sections = [
        panels.section("Categories", index, _probabilities(told["index"], part)),
        panels.section("What comes next", _forecast(model, told["index"], part, shown, n_steps)),
        panels.section("States", *_states(model, told)),
    ]
    lengths = [sequence.shape[0] for sequence in model.sequences_]
    subtitle = panels.of_how_many(len(model.categories_), len(shown), "categories")
    subtitle += f"; sequences: {len(lengths)}, steps: {sum(lengths)}"
    return panels.page("category", model.categories_[shown], subtitle, index, sections)


def first_table(model):
    """Return (title, header, rows) of the sequences of the fit."""
    lengths = [sequence.shape[0] for sequence in model.sequences_]
    rows = [
        ("sequences", len(lengths)),
        ("steps", sum(lengths)),
        ("categories", len(model.categories_)),
    ]
    return "what was learned from", ("", ""), rows


def _columns(values, shown):
    return None if values is None else values[:, shown]


# steps


def _steps(model) -> dict:
    """Return the last steps of the first sequence: mean, lower, upper (steps, K), states, index."""
    if hasattr(model, "smooth"):
        found = model.smooth()[0]
        parts = {"mean": found.probabilities, "lower": found.lower, "upper": found.upper}
        states = {"states": found.states, "sd": found.states_sd}
        index = found.index
    else:
        found = model.filter(model.sequences_[:1])[0]
        parts = {"mean": found.probabilities, "lower": None, "upper": None}
        states, index = {"states": None, "sd": None}, found.index
    n = len(parts["mean"])
    index = pd.RangeIndex(n) if index is None else index
    last = slice(max(0, n - _MOST_STEPS), n)
    cut = {name: None if value is None else value[last] for name, value in (parts | states).items()}
    return {**cut, "index": index[last]}


def _probabilities(index, part):
    smoothed = part["lower"] is not None
    note = (
        "Given the whole sequence; bands hold 90 %."
        if smoothed
        else "Each step given those before it and itself."
    )
    return panels.lines(
        "Probabilities over time", index, part["mean"].T,
        lower=part["lower"].T if smoothed else None, upper=part["upper"].T if smoothed else None,
        items=list(range(part["mean"].shape[1])), percent=True, double=True, x_label="step", note=note,
    )  # fmt: skip


def _forecast(model, index, part, shown, n_steps):
    """Return the fan of what comes after the last step, behind the last that were seen."""
    found = model.forecast(n_steps)[0]
    draws = np.asarray(found.draws)[:, :, shown]
    before = part["mean"][-_BEFORE:].T
    x = np.arange(-before.shape[1] + 1, n_steps + 1)
    gap = np.full(before.shape, np.nan)
    fan = []
    for level in _FAN:
        ends = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        lower, upper = (np.concatenate([gap, end.T], axis=1) for end in ends)
        fan.append({"lower": panels.short(lower), "upper": panels.short(upper)})
    y = np.concatenate([before, draws.mean(axis=0).T], axis=1)
    return panels.lines(
        "Forecast", x, y, items=list(range(len(shown))), fan=fan, split=0.5, percent=True, wide=True,
        x_label="steps after the last", note="Bands hold 50, 80 and 95 % of the paths that were drawn.",
    )  # fmt: skip


# states


def _states(model, told):
    """Return the panels of states: those of a linear system, or regimes."""
    names = model.posterior_.names() if hasattr(model, "posterior_") else []
    if told["states"] is not None and "dynamics" in names:
        return [_paths_of_states(told), _modes(model)]
    if "emission" in names and "transition" in names:
        return [_regimes(model, told), _emissions(model), _transitions(model)]
    return []


def _paths_of_states(told):
    mean, sd = told["states"].T, told["sd"].T
    return panels.lines(
        "States", told["index"], mean, lower=mean - _TIMES_SD * sd, upper=mean + _TIMES_SD * sd,
        names=[f"state {i + 1}" for i in range(len(mean))], double=True, x_label="step",
        note="Means with bands of 90 %. States may be turned and stretched: only what they do to "
        "probabilities is known.",
    )  # fmt: skip


def _modes(model):
    """Return the table of how quickly the system forgets, in each regime where there are several."""
    sizes = -np.sort(-np.abs(np.linalg.eigvals(model.posterior_.flat("dynamics"))), axis=-1)
    regimes = {} if sizes.ndim == 2 else {"regime": np.indices(sizes.shape[1:])[0].ravel()}
    sizes = sizes.reshape(len(sizes), -1)
    lower, upper = np.quantile(sizes, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    mean = sizes.mean(axis=0)
    parts = {**regimes, "size of the eigenvalue": mean, "lower": lower, "upper": upper}
    lives = [f"{np.log(0.5) / np.log(size):.3g}" if 0 < size < 1 else "for ever" for size in mean]
    note = "After a half-life half of a state's deviation is left; 90 % intervals."
    return panels.table(
        "How long states last", pd.DataFrame({**parts, "half-life (steps)": lives}), note=note
    )


def _regimes(model, told):
    """Return the panel of the probability of each state at each step."""
    occupancy = model.posterior_.running("occupancy")[0]
    n = model.sequences_[0].shape[0]
    part = occupancy[max(0, n - _MOST_STEPS) : n].T
    return panels.lines(
        "Regimes", told["index"], part, names=[f"state {i}" for i in range(len(part))],
        percent=True, double=True, x_label="step", note="Probability of each state at each step.",
    )  # fmt: skip


def _emissions(model):
    """Return the table of the likeliest categories of each state."""
    mean = _best(model, "emission")
    best = np.argsort(-mean, axis=1, kind="stable")[:, :_TOP]
    told = [
        ", ".join(f"{model.categories_[k]} {mean[s, k]:.0%}" for k in row)
        for s, row in enumerate(best)
    ]
    frame = pd.DataFrame({"state": [f"state {s}" for s in range(len(told))], "likeliest": told})
    return panels.table("What each state says", frame)


def _transitions(model):
    mean = _best(model, "transition")
    frame = pd.DataFrame(mean, columns=[f"to {s}" for s in range(len(mean))])
    frame.insert(0, "from", [f"state {s}" for s in range(len(mean))])
    return panels.table("From state to state", frame, note="Posterior mean probabilities.")


def _best(model, name):
    posterior = model.posterior_
    return posterior[name][posterior.best_chain].mean(axis=0)
