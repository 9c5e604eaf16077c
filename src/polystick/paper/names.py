"""Figure 3: Gaussian processes over years and states predict the names of boys (section 4)."""

import time
from typing import NamedTuple

import numpy as np
import pandas as pd

from polystick import Gibbs
from polystick.paper import name_lines, name_models, name_pictures
from polystick.paper.name_models import COLUMNS, LAST_YEAR, TEST
from polystick.paper.parts import Part

N_TIES = 20  # random orders of names that tie
FIRST_YEAR = 1960


class Settings(NamedTuple):
    """How large the experiment is."""

    first_year: int  # of training
    n_births: int  # drawn of each state and year
    n_samples: int
    sticks: Gibbs
    softmax: Gibbs
    sticks_sweeps: tuple[int, ...]  # of the runs in the curves
    softmax_sweeps: tuple[int, ...]
    whole: Gibbs  # of the run on all births

    def described(self):
        sticks, softmax, whole = (self.sticks, self.softmax, self.whole)
        return {
            "data": f"SSA boys' names, 100 names, 48 states, {self.first_year}-{LAST_YEAR} to "
            f"learn from (the paper: {FIRST_YEAR}-{LAST_YEAR}), {TEST[0]} and {TEST[1]} to predict",
            "names": "the 100 most frequent of 1910-2013, in this order, as the paper's code has it",
            "samples": f"{self.n_samples} samples of {self.n_births} births per state and year (the "
            "paper: one)",
            "kernel": "Matern 5/2 over years times squared exponential over places, learned by the Raw GP "
            "of each sample and then fixed, as the paper's code does",
            "SBM-GP": f"{sticks.n_chains} chains, {sticks.n_burn} + {sticks.n_draws * sticks.thin} sweeps "
            "(the paper's code: 20 in all)",
            "LNM-GP": f"{softmax.n_chains} chains, {softmax.n_burn} + {softmax.n_draws * softmax.thin} "
            "sweeps (the paper's code: 200 in all)",
            "paths and map": f"SBM-GP from all births of {FIRST_YEAR}-{LAST_YEAR}, {whole.n_burn} + "
            f"{whole.n_draws * whole.thin} sweeps",
        }


QUICK = Settings(
    first_year=1990,
    n_births=50,
    n_samples=3,
    sticks=Gibbs(n_draws=64, n_burn=30, n_chains=2),
    softmax=Gibbs(n_draws=50, n_burn=250, thin=5, n_chains=2),
    sticks_sweeps=(2, 4, 8, 16, 32, 64),
    softmax_sweeps=(8, 16, 32, 64, 128, 256, 512),
    whole=Gibbs(n_draws=20, n_burn=30, n_chains=2),
)
FULL = Settings(
    first_year=FIRST_YEAR,
    n_births=50,
    n_samples=5,
    sticks=Gibbs(n_draws=100, n_burn=50, n_chains=2),
    softmax=Gibbs(n_draws=100, n_burn=500, thin=10, n_chains=2),
    sticks_sweeps=(2, 4, 8, 16, 32, 64, 128),
    softmax_sweeps=(8, 16, 32, 64, 128, 256, 512, 1024),
    whole=Gibbs(n_draws=100, n_burn=100, n_chains=2),
)


def run(full, say, settings=None):
    """Fit the four models to samples of births, and one to all of them."""
    start = time.perf_counter()
    settings = settings or (FULL if full else QUICK)
    births = name_models.load(settings.first_year)
    benches = [_bench(births, settings, seed) for seed in range(settings.n_samples)]
    trials = _trials(benches, settings, say)
    curves = _curves(benches[0], settings, say)
    say("learning from all births")
    whole, mean, sd = _whole(settings)
    summary = name_lines.summarise(trials)
    pictures = [
        name_pictures.paths(whole, mean, sd),
        name_pictures.chart(whole, mean),
        name_pictures.hits(summary, name_lines.PRINTED),
        name_pictures.times(curves, _flat(trials)),
    ]
    lines = [
        *name_lines.table_lines(summary, trials),
        *name_lines.claim_lines(trials, curves),
        *name_lines.path_lines(whole, mean, sd),
    ]
    title = "Figure 3: names by year and state"
    seconds = time.perf_counter() - start
    reading = name_lines.reading(trials, curves)
    return Part("names", title, settings.described(), pictures, lines, reading, seconds)


def _bench(births, settings, seed):
    counts = name_models.thinned(births.train, settings.n_births, seed)
    return name_models.Bench(births, counts, seed)


def _trials(benches, settings, say):
    """Return a row for each model and sample: score, gain over Static, hits."""
    rows = []
    for bench in benches:
        fits = [lambda b=bench: b.raw, bench.static]
        fits += [lambda b=bench: b.sticks(settings.sticks)]
        fits += [lambda b=bench: b.softmax(settings.softmax)]
        for fit in fits:
            trial = fit()
            say(
                f"sample {bench.seed + 1} of {len(benches)}: {trial.name}, {trial.seconds:.0f} s of CPU"
            )
            rows.append({"sample": bench.seed, **_judged(trial, bench)})
    table = pd.DataFrame(rows)
    static = table[table.model == "Static"].set_index("sample").score
    return table.assign(gain=table.score - table["sample"].map(static))


def _judged(trial, bench):
    births = bench.births
    expected = name_models.predict(trial.model, births.inputs(TEST))
    row = {"model": trial.name, "seconds": trial.seconds, "sweeps": trial.sweeps}
    row["score"] = name_models.score(expected, births)
    row |= dict(zip(COLUMNS, name_models.mean_hits(expected, births)))
    if trial.name in ("Static", "Raw GP"):
        rng = np.random.default_rng(bench.seed)
        orders = [name_models.mean_hits(expected, births, rng) for _ in range(N_TIES)]
        row["random_ties"] = np.mean(orders, axis=0)[COLUMNS.index("bottom_2012")]
    elif trial.model.posterior_.log_likelihood.shape[0] > 1:  # not a run of the curves
        row["per_second"] = _effective(trial.model) / trial.seconds
    return row


def _effective(model):
    """Return the effective draws of the log likelihood, NaN without ArviZ, which counts them."""
    try:
        return float(np.min(model.posterior_.diagnostics()["log_likelihood"][1]))
    except ImportError:
        return np.nan


def _curves(bench, settings, say):
    """Return a row for each run of more and more sweeps."""
    static = _judged(bench.static(), bench)["score"]
    kinds = (bench.sticks, settings.sticks_sweeps), (bench.softmax, settings.softmax_sweeps)
    rows = []
    for fit, all_sweeps in kinds:
        fit(name_models.later_half(2))  # compiles
        for n_sweeps in all_sweeps:
            rows.append(_judged(fit(name_models.later_half(n_sweeps)), bench))
        say(f"{rows[-1]['model']}: {len(all_sweeps)} runs of up to {all_sweeps[-1]} sweeps")
    table = pd.DataFrame(rows)
    return table.assign(gain=table.score - static)


def _whole(settings):
    """Return all births, and posterior means and standard deviations (years, states, names).

    They are NaN where no picture and no line looks.
    """
    births = name_models.load(FIRST_YEAR)
    counts = births.train.reshape(-1, len(births.names))
    model = name_models.Bench(births, counts, seed=0).sticks(settings.whole).model
    wanted = np.isin(births.years, (*TEST, name_pictures.MAP_YEAR))[:, None]
    wanted = wanted | np.isin(births.states, name_pictures.SHOWN_STATES)
    inputs = births.inputs(births.years)[wanted.ravel()]
    mean, sd = np.full((2, *births.counts.shape), np.nan)
    mean[wanted], sd[wanted] = name_models.predict(model, inputs, return_std=True)
    return births, mean, sd


def _flat(trials):
    return {"Raw GP": trials[(trials.model == "Raw GP") & (trials["sample"] == 0)].gain.item()}
