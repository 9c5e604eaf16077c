"""Associations between categories: where there are none, where there are, and what they cost.

    python benchmarks/association.py [--seeds N]

Tables of 35 categories (`association_data.py`) whose associations are known. Ours is
``CorrelatedMultinomial(link="softmax").category_association()`` with both laws of the covariance; peers are
in `association_peers.py`. Writes RESULTS_ASSOCIATION.md.
"""

import argparse
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from association_data import COMMON, NULLS, PAIRS, RARE, counts_of, draw_totals, simulated
from association_peers import Told, clr, lasso, sparcc
from run import machine
from sklearn.metrics import roc_auc_score, roc_curve
from timing import undisturbed

from polystick import CorrelatedMultinomial, Gibbs

PATH = Path(__file__).parent / "RESULTS_ASSOCIATION.md"
RUN = Gibbs(n_draws=250, n_burn=300, thin=2, n_chains=1)
CASES = [
    *(("independent", n) for n in (70, 300)),
    ("dirichlet", 300),
    ("plain", 300),
    *((kind, n) for kind in ("block", "factor") for n in (70, 300)),
]
FEW_ROWS, MORE = 70, 4  # tables with few rows differ: four times as many of them
MOST = 2.0  # times the sweep of sticks that one behind a softmax may take


def fitted(counts, seed, inference=RUN, **options):
    options |= {"inference": inference, "random_state": seed, "n_jobs": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one chain is all that is asked for
        return CorrelatedMultinomial(**options).fit(counts)


def ours(covariance, counts, seed):
    model = fitted(counts, seed, link="softmax", covariance=covariance)
    found = model.category_association(level=0.9)
    parts = (found.mean, found.known, found.lower, found.upper)
    return Told(*(part.to_numpy() for part in parts))


def log_shares(counts, seed):
    mean, lower, upper = map(np.asarray, fitted(counts, seed).log_share_correlation(level=0.9))
    return Told(mean, (lower > 0) | (upper < 0), lower, upper)


METHODS = {
    "**softmax, factor** (default)": partial(ours, "factor"),
    "softmax, full": partial(ours, "full"),
    "sticks, `log_share_correlation`": log_shares,
    "CLR(x + 1/2), Fisher's intervals": clr,
    "SparCC, shuffled columns": sparcc,
    "graphical lasso on CLR": lasso,
}


def measure(told, truth):
    """Return what a table of results has of one run."""
    value, known, right = (part[PAIRS] for part in (told.value, told.known, truth))
    if not right.any():
        groups = (COMMON, RARE)
        return {
            "mean": [value[group].mean() for group in groups],
            "known": [known[group].mean() for group in groups],
        }
    is_real = right != 0
    wrong, found, _ = roc_curve(is_real, np.abs(value))
    measured = {
        "auc": roc_auc_score(is_real, np.abs(value)),
        "hits": np.interp(0.1, wrong, found),
        "known": [known[is_real].mean(), known[~is_real].mean()],
    }
    if told.lower is not None:
        lower, upper = told.lower[PAIRS], told.upper[PAIRS]
        measured["covered"] = ((lower <= right) & (right <= upper))[is_real].mean()
        measured["slope"] = (value @ right) / (right @ right)
    return measured


def run(n_seeds):
    """Return (method, kind, n) -> name -> averages over seeds of data, and CPU seconds."""
    results = {}
    for kind, n in CASES:
        for name, method in METHODS.items():
            found, start = [], time.process_time()
            seeds = range(n_seeds * (MORE if n == FEW_ROWS else 1))
            for seed in seeds:
                counts, truth = simulated(kind, n, seed)
                found.append(measure(method(counts, seed), truth))
            results[name, kind, n] = {
                part: np.mean([one[part] for one in found], axis=0) for part in found[0]
            }
            spent = (time.process_time() - start) / len(seeds)
            print(
                kind, n, name, results[name, kind, n], f"{spent:.1f} s", file=sys.stderr, flush=True
            )
    return results


# cost


class Stopwatch:
    """A callback that takes the CPU time of each sweep after the first ones."""

    def __init__(self):
        self.times = []

    def __call__(self, progress):
        if progress.sweep >= 40:
            self.times.append(time.process_time())

    @property
    def seconds(self):
        spent = np.diff(self.times)
        return undisturbed(spent, np.ones(len(spent)), 10) / len(spent)


def sweeps(n=300, k=100, turns=3):
    """Return name -> seconds of a sweep, the least of some runs in turns, on one table."""
    rng = np.random.default_rng(0)
    log_abundance = -6.0 * np.arange(k) / k + rng.normal(size=(n, k))
    counts = counts_of(log_abundance, draw_totals(120, n, rng), rng)
    best = {}
    for _ in range(turns):
        for link in ("stick", "softmax"):
            for covariance in ("full", "factor"):
                watch = Stopwatch()
                inference = Gibbs(60, 40, n_chains=1)
                fitted(counts, 0, inference, link=link, covariance=covariance, progress=watch)
                key = link, covariance
                best[key] = min(best.get(key, np.inf), watch.seconds)
    return best


# the report

DATA = (
    "Simulated tables of 35 categories, {} of each kind with 70 rows and {} with 300; the number is that of "
    "the rows. Ours: one chain of {} + {} sweeps. Pairs are common (both of the first 17 categories) or rare "
    "(both of the others)."
)
NOTHING = """## Where there are none

Mean reported / share of pairs told not to be zero at 90 %: common; rare. They ought to be 0 / at most 0.10. \
The lasso has no level: its share is that of edges."""
SOMETHING = """## Where there are

Area under the ROC curve of the sizes reported / true positives at 10 % false ones. Blocks: five of four \
categories with correlations of 0.7. Factors: two, of ten categories each."""
STRENGTH = "Real pairs: coverage of 90 % intervals / slope of what is reported on the truth (1: not shrunk)."
COST = """## What it costs

A sweep of 300 rows of 100 categories: one thread, CPU time, runs in turns in one process."""


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def grid(results, cases, cell):
    """Return a line for each method and a column for each case, by cell(measured)."""
    head = ["method", *(f"{kind} {n}" for kind, n in cases)]
    rows = [[name, *(cell(results[name, *case]) for case in cases)] for name in METHODS]
    return table(head, rows)


def null_cell(found):
    parts = zip(found["mean"], found["known"])
    return "; ".join(f"{mean:+.2f} / {known:.2f}" for mean, known in parts)


def power_cell(found):
    return f"{found['auc']:.2f} / {found['hits']:.2f}"


def told_cell(found):
    real, wrong = found["known"]
    return f"{real:.2f}; {wrong:.2f}"


def cover_cell(found):
    return f"{found['covered']:.2f} / {found['slope']:.2f}" if "covered" in found else ""


def cost_section(best):
    sticks = min(seconds for (link, _), seconds in best.items() if link == "stick")
    rows = []
    for (link, covariance), seconds in best.items():
        ratio = seconds / sticks
        missed = " **missed**" if link == "softmax" and ratio > MOST else ""
        rows.append([f"{link}, {covariance}", f"{1e3 * seconds:.1f}", f"{ratio:.2f}x{missed}"])
    head = ["law of rows", "ms a sweep", f"against the quicker sticks (softmax: at most {MOST:g}x)"]
    return table(head, rows)


def report(results, best, n_seeds):
    nulls = [case for case in CASES if case[0] in NULLS]
    real = [case for case in CASES if case[0] not in NULLS]
    parts = [
        f"# Associations between categories\n\nWritten by `python benchmarks/association.py`. {machine()}",
        DATA.format(MORE * n_seeds, n_seeds, RUN.n_burn, RUN.n_draws * RUN.thin),
        NOTHING,
        grid(results, nulls, null_cell),
        SOMETHING,
        grid(results, real, power_cell),
        "Share told not to be zero at 90 %: of real pairs; of the others.",
        grid(results, real, told_cell),
        STRENGTH,
        grid(results, real, cover_cell),
        COST,
        cost_section(best),
    ]
    return "\n\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=2)
    n_seeds = parser.parse_args().seeds
    text = report(run(n_seeds), sweeps(), n_seeds)
    print(text)
    PATH.write_text(text + "\n")


if __name__ == "__main__":
    main()
