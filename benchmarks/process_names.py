"""The names experiment (paper, figure 3): four models predict the boys' names of 2012 and 2013 in 48 states.

    python benchmarks/process_names.py [--seeds N] [--quick]

The 100 most frequent boys' names of 1910-2013; 50 births drawn from each state and year from 1960 to 2011;
kernel Matern 5/2 over years times a squared exponential over places, fitted by the raw GP to each sample
and then used, fixed, by both multinomial GPs. All are scored on all births of 2012 and 2013: log E[pi] of
a birth, and how many of a state's ten most (least) frequent names are among the ten with the highest (lowest)
E[pi]. Needs the shared data (POLYSTICK_DATA); writes RESULTS_NAMES.md.
"""

import argparse
import os
import time
from pathlib import Path

import arviz
import numpy as np
import pandas as pd
from corpora import VARIABLE, MissingDataError
from run import machine
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from polystick import Gibbs, MultinomialGP, scores
from polystick.baselines.process_models import LogisticNormalGP, RawGP, Static
from polystick.covariances import OnColumns, Separable

PATH = Path(__file__).parent / "RESULTS_NAMES.md"
N_NAMES, N_BIRTHS, TRAIN, TEST = 100, 50, range(1960, 2012), (2012, 2013)
LEFT_OUT = ("AK", "HI", "DC")
PAPER = {  # top 10, bottom 10 in 2012; the same in 2013
    "Static": (4.2, 0.7, 4.2, 0.8),
    "Raw GP": (4.9, 0.7, 5.0, 0.8),
    "LNM-GP": (6.7, 4.8, 6.8, 4.6),
    "SBM-GP": (7.3, 4.0, 7.0, 3.9),
}
SBM = Gibbs(n_draws=100, n_burn=50, n_chains=2)
LNM = Gibbs(n_draws=100, n_burn=1000, thin=20, n_chains=2)


def load():
    """Return counts (year, state, name) of 1960-2013 and places (state, 2) as longitude, latitude."""
    folder = Path(os.environ.get(VARIABLE, ""))
    if not (folder / "ssa_names_by_state_full.npz").is_file():
        raise MissingDataError(f"the names experiment needs the folder that {VARIABLE} names")
    stored = np.load(folder / "ssa_names_by_state_full.npz")
    used = (stored["sex"] == 1) & (stored["year"] <= TEST[-1])
    state, year, name, count = (stored[n][used] for n in ("state", "year", "name", "count"))
    totals = np.bincount(name, count)
    top = np.argsort(-totals, kind="stable")[:N_NAMES]
    places = pd.read_csv(folder / "us_state_latlon.csv").set_index("state")
    codes = [code for code in stored["state_codes"] if code not in LEFT_OUT]
    counts = np.zeros((TEST[-1] - TRAIN[0] + 1, len(codes), N_NAMES), dtype=np.int64)
    place_of = _places_in(stored["state_codes"], codes)[state]
    name_of = _places_in(np.arange(len(totals)), top)[name]
    wanted = (place_of >= 0) & (name_of >= 0) & (year >= TRAIN[0])
    where = (year[wanted] - TRAIN[0], place_of[wanted], name_of[wanted])
    np.add.at(counts, where, count[wanted])
    return counts, places.loc[codes, ["lon", "lat"]].to_numpy()


def _places_in(all_of_them, chosen):
    """Return for each of all its place among the chosen, or -1."""
    where = {value: i for i, value in enumerate(np.asarray(chosen).tolist())}
    return np.array([where.get(value, -1) for value in np.asarray(all_of_them).tolist()])


def thinned(counts, rng):
    """Draw N_BIRTHS of each state and year without replacement."""
    flat = counts.reshape(-1, counts.shape[-1])
    drawn = [rng.multivariate_hypergeometric(row, min(N_BIRTHS, row.sum())) for row in flat]
    return np.array(drawn)


def inputs(years, places):
    return np.array([[year, *place] for year in years for place in places])


def start_kernel():
    years = OnColumns(ConstantKernel(1.0) * Matern(30.0, nu=2.5), [0])
    return Separable(years, OnColumns(RBF(5.0), [1, 2]))


def fixed(kernel):
    """Return the kernel with parameters that are not learned."""
    changes = {p.name + "_bounds": "fixed" for p in kernel.hyperparameters}
    return kernel.set_params(**changes)


def fit_all(z, x, seed, quick):
    """Yield name, fitted model and CPU seconds."""
    raw = yield from _fitted("Raw GP", RawGP(start_kernel(), decomposition="given"), z, x)
    yield from _fitted("Static", Static(), z, x)
    kernel = fixed(raw.kernel_)
    sbm, lnm = (SBM, LNM) if not quick else (Gibbs(10, 5, n_chains=2), Gibbs(10, 50, n_chains=2))
    sticks = MultinomialGP(kernel, decomposition="given", inference=sbm, random_state=seed)
    yield from _fitted("SBM-GP", sticks, z, x)
    softmax = LogisticNormalGP(kernel, inference=lnm, random_state=seed)
    yield from _fitted("LNM-GP", softmax, z, x)


def _fitted(name, model, z, x):
    start = time.process_time()
    model.fit(z, x)
    yield name, model, time.process_time() - start
    return model


def judge(model, z, truth):
    """Return the score and the hits: of the top and the bottom ten, in each year, averaged over states."""
    expected = model.predict_proba(z)
    hits = []
    for first in (-1, 1):
        guess, right = (
            np.argsort(first * a, axis=1, kind="stable")[:, :10] for a in (expected, truth)
        )
        common = [len({*g} & {*r}) for g, r in zip(guess.tolist(), right.tolist())]
        hits.append(np.reshape(common, (len(TEST), -1)).mean(axis=1))
    return [scores.expected_log_score(expected, truth), *np.transpose(hits).ravel()]


def effective(model):
    """Return the effective draws of the log likelihood, and R-hat; nothing for point estimates."""
    if not hasattr(model, "posterior_"):
        return None, None
    draws = np.asarray(model.posterior_.log_likelihood)
    return float(arviz.ess(draws)), float(arviz.rhat(draws))


def run(n_seeds, quick):
    """Return a table with a line for each model and seed."""
    counts, places = load()
    n_train = len(TRAIN)
    z, z_new = inputs(TRAIN, places), inputs(TEST, places)
    truth = counts[n_train:].reshape(-1, counts.shape[-1])
    lines = []
    for seed in range(n_seeds):
        x = thinned(counts[:n_train], np.random.default_rng(seed))
        for name, model, seconds in fit_all(z, x, seed, quick):
            ess, rhat = effective(model)
            found = judge(model, z_new, truth)
            lines.append([name, seed, *found, seconds, ess, rhat])
            print(*lines[-1], flush=True)
            if name == "Raw GP":
                print(model.kernel_, flush=True)
    columns = [
        "model",
        "seed",
        "score",
        "top12",
        "bottom12",
        "top13",
        "bottom13",
        "cpu",
        "ess",
        "rhat",
    ]
    return pd.DataFrame(lines, columns=columns)


def report(table):
    """Return the table in Markdown: means and standard errors over samples, and the paper's numbers."""
    static = table[table.model == "Static"].set_index("seed").score
    table = table.assign(gain=table.score - table.seed.map(static))
    shown = ("gain", "top12", "bottom12", "top13", "bottom13", "cpu", "ess", "rhat")
    rows = [
        "| model | nats per birth over Static | top 10 2012 | bottom 10 2012 | top 10 2013 | "
        "bottom 10 2013 | CPU s | ESS | R-hat |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, paper in PAPER.items():
        found = table[table.model == name][list(shown)].astype(float)
        mean, error = found.mean(), found.std() / np.sqrt(len(found))
        cells = [f"{mean.gain:+.3f} ({error.gain:.3f})"]
        for column, value in zip(shown[1:5], paper):
            cells.append(f"{mean[column]:.2f} ({error[column]:.2f}); {value}")
        cells += [f"{mean.cpu:.0f}", *("" if np.isnan(v) else f"{v:.3g}" for v in mean[-2:])]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    table = run(given.seeds, given.quick)
    text = report(table)
    print(text)
    if not given.quick:
        head = (
            f"# Names by state and year\n\nWritten by `python benchmarks/process_names.py`. {machine()}\n\n"
            f"Means over {given.seeds} samples of births with standard errors in brackets; after the "
            "semicolon what the paper says of its one sample. ESS and R-hat are of the log likelihood.\n\n"
        )
        PATH.write_text(f"{head}{text}\n")


if __name__ == "__main__":
    main()
