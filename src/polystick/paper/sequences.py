"""Figure 4: models of sequences on amino acids, news articles and Alice in Wonderland (section 5)."""

import time

import numpy as np
import pandas as pd

from polystick.paper import sequences_lines, sequences_pictures
from polystick.paper.parts import Part
from polystick.paper.sequences_tasks import (
    BALANCED,
    HMM,
    LNM,
    RAW,
    SBM,
    UNIGRAM,
    ZERO,
    Plan,
    difference,
    load_pieces,
    load_tasks,
    score_against_time,
    score_all,
    score_pieces,
    summarise,
)

LONGER = "DNA, longer"
# sweeps of each chain, posterior draws scored, seeds; by full
PLANS = {
    False: {
        "DNA": {name: Plan(200, 16, 2) for name in (SBM, BALANCED, HMM, RAW)}
        | {LNM: Plan(100, 16, 2)},
        "AP": {name: Plan(200, 16, 2) for name in (SBM, BALANCED, HMM, RAW)}
        | {LNM: Plan(16, 4, 2)},
        "Alice": {
            SBM: Plan(60, 8, 2),
            BALANCED: Plan(150, 16, 2),
            HMM: Plan(300, 16, 2),
            RAW: Plan(60, 16, 2),
        },
    },
    True: {
        "DNA": {name: Plan(1000, 32, 5) for name in (SBM, BALANCED, HMM, RAW)}
        | {LNM: Plan(500, 32, 5)},
        "AP": {name: Plan(400, 32, 5) for name in (SBM, BALANCED, HMM, RAW)}
        | {LNM: Plan(100, 16, 5)},
        "Alice": {name: Plan(300, 16, 5) for name in (SBM, BALANCED, HMM, RAW)}
        | {LNM: Plan(20, 4, 2)},
    },
}
N_PIECES = {False: 4, True: 10}
PIECE_PLANS = {  # a seed for each piece
    False: {name: Plan(150, 8, 1) for name in (SBM, BALANCED, HMM, RAW)} | {LNM: Plan(60, 8, 1)},
    True: {name: Plan(500, 16, 1) for name in (SBM, BALANCED, HMM, RAW)} | {LNM: Plan(200, 16, 1)},
}
SWEEPS = {  # of the fits whose score is set against time
    False: {SBM: (2, 6, 20, 60, 200), HMM: (2, 10, 50, 250, 1000), LNM: (2, 6, 20, 60)},
    True: {
        SBM: (2, 4, 10, 20, 50, 100, 200, 500),
        HMM: (2, 10, 30, 100, 300, 1000, 3000),
        LNM: (2, 4, 10, 20, 50, 100, 250),
    },
}
SCORED = {False: {SBM: 8, HMM: 16, LNM: 4}, True: {SBM: 16, HMM: 32, LNM: 8}}


def run(full, say):
    """Fit and score all models, and draw what the paper draws."""
    start = time.perf_counter()
    tasks = load_tasks()
    found = [score_all(task, PLANS[full][task.name], say) for task in tasks]
    pieces = score_pieces(load_pieces(N_PIECES[full]), PIECE_PLANS[full], say)
    units = pd.concat([each for _, each in found], ignore_index=True)
    table = bars_table(pd.concat([*(s for s, _ in found), pieces], ignore_index=True), units)
    articles = tasks[1]
    curve = score_against_time(articles, SWEEPS[full], SCORED[full], say)
    say("drawing")
    pictures = [
        sequences_pictures.bars(table, _held_out(tasks, N_PIECES[full])),
        sequences_pictures.against_time(curve, sequences_lines.gain_of(table, "AP", UNIGRAM)),
    ]
    results = sequences_lines.Results(table, units, curve, {t.name: t.n_new for t in tasks})
    lines, reading = sequences_lines.lines(results), sequences_lines.reading(results)
    title = "Figure 4: models of sequences with multinomial observations"
    seconds = time.perf_counter() - start
    return Part("sequences", title, _settings(full), pictures, lines, reading, seconds)


def bars_table(scores, units):
    """Return gains with standard errors over seeds and intervals over held-out tokens.

    Columns <kind>_over_<baseline> are means over seeds, <kind> one of one_step and joint; lower and upper
    are of one_step, as wide as with the first seed, and NaN where pieces take the place of seeds.
    """
    table = summarise(scores)
    for base, short in ((ZERO, "zero"), (UNIGRAM, "unigram")):
        widths = np.array([_interval(units, *row, base) for row in zip(table.task, table.model)])
        middle = table[f"one_step_over_{short}"].to_numpy()[:, None]
        table[[f"lower_over_{short}", f"upper_over_{short}"]] = middle + widths
    return table


def _interval(units, task, name, base):
    """Return how far the 95 % interval over held-out units reaches, to the left (negative) and right."""
    if task not in set(units.task):
        return np.nan, np.nan
    found = difference(units, task, name, base)
    return found.lower - found.estimate, found.upper - found.estimate


def _held_out(tasks, n_pieces):
    named = {task.name: sequences_pictures.UNITS.get(task.name, "") for task in tasks}
    return named | {LONGER: f"{n_pieces} × 300 symbols"}


def _settings(full):
    plans = PLANS[full]
    return {
        "data": "DNA: 682 amino acids of chromosome 22, the last 10 held out (not the paper's stretch, which "
        "is not known); AP: 20 random articles, 200 words, the last 10 of each; Alice: the first 4000 of the "
        "1000 most frequent words, the last 100",
        "AP": "one model of all 20 articles jointly; the paper fits one for each article",
        "states": "10 dimensions; the HMM has 10 states",
        "priors": "emission of SBM-LDS: standard deviation 0.1 (DNA), 1, 1; of LNM-LDS: variance 0.1, 1, 1; "
        "HMM: Dirichlet mass 1, 10, 10 over all categories, 1 for each transition; all biases are learned, "
        "about the training frequencies (the paper fixes them)",
        "sweeps in each of two chains, half forgotten": "; ".join(
            f"{task}: " + _each(plan, "n_sweeps") for task, plan in plans.items()
        )
        + " (the paper's code: 1000, 200, 300 for all models, one chain)",
        "posterior draws scored": "; ".join(
            f"{task}: " + _each(plan, "n_scored") for task, plan in plans.items()
        ),
        "seeds": "; ".join(f"{task}: " + _each(plan, "n_seeds") for task, plan in plans.items()),
        "LNM-LDS": "particle Gibbs with ancestor sampling, 100 particles, the bias in its likelihood"
        + ("" if full else "; left out on Alice, where a sweep takes seconds"),
        "score": "log of the average over posterior draws of the probability of a held-out token given all "
        "before it (one step ahead), or of all held-out tokens of a sequence (jointly); 200 particles "
        "(LNM-LDS 500)",
        "bootstrap": "over held-out tokens (AP: articles), first seed; it gives the width of "
        "intervals about means over seeds",
        "DNA, longer": f"{N_PIECES[full]} pieces of 982 symbols: 682 to learn from, 300 scored; sweeps "
        + _each(PIECE_PLANS[full], "n_sweeps"),
    }


def _each(plans, field):
    """Return such as '200 (LNM-LDS 20)'."""
    values = {name: getattr(plan, field) for name, plan in plans.items()}
    usual = max(set(values.values()), key=list(values.values()).count)
    others = [f"{name} {value}" for name, value in values.items() if value != usual]
    return f"{usual}" + (f" ({', '.join(others)})" if others else "")
