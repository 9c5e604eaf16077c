"""Effective draws of multinomial Gaussian processes: sticks with Polya-gamma against softmax with slices.

Names size as in process_solvers.py: the same simulated counts, kernel and levels for both. Each chain runs
for a while, then sweeps are timed (CPU, one thread) and probabilities of the ten first categories at ten
inputs are kept. The second line compares seconds per effective draw, in the median of these hundred.
"""

import time

import arviz
import numpy as np
from process_solvers import DEGREES, N_CATEGORIES, NAMES, SMOOTHNESS, YEARS, covariances, simulate
from sklearn.gaussian_process.kernels import RBF, Matern
from threadpoolctl import threadpool_limits
from timing import record
from topic_sweep import Chain

from polystick.baselines.logistic_normal_process import LogisticNormalProcess
from polystick.covariances import OnColumns, Separable
from polystick.covariances.families import choose_family
from polystick.decomposition import Decomposition
from polystick.gaussians.spectral import Grid
from polystick.inference.execution import Serial
from polystick.models.process import ProcessCounts

N_BURN, N_SWEEPS = {"sticks": 50, "softmax": 400}, {"sticks": 250, "softmax": 1000}
N_SHOWN = 10


def make_counts():
    """Return inputs (M, 3), year and place, and counts (M, K), simulated from sticks."""
    n_places, n_years = NAMES
    places = np.random.default_rng(0).uniform((25.0, -125.0), (49.0, -67.0), (n_places, 2))
    grid = Grid(covariances(*NAMES), np.arange(n_places * n_years))
    _, _, splits = simulate(grid, np.random.default_rng(1))
    last = splits.trials[-1] - splits.successes[-1]
    counts = np.concatenate([splits.successes, last[None]]).T
    inputs = np.array([[year, *place] for place in places for year in range(n_years)])
    return inputs, counts


def models(inputs, counts):
    """Return name -> model and what turns its rows into probabilities (M, K)."""
    years, places = OnColumns(Matern(YEARS, nu=SMOOTHNESS), [0]), OnColumns(RBF(DEGREES), [1, 2])
    family = choose_family(Separable(years, places), inputs)
    share = (counts.sum(axis=0) + 1.0) / (counts.sum() + N_CATEGORIES)
    sticks = Decomposition.sticks(range(N_CATEGORIES))
    process = ProcessCounts(family, sticks, sticks.psi(share))
    softmax = LogisticNormalProcess(family, np.log(share))
    return {
        "sticks": (process, lambda rows, where: sticks.probabilities(rows.psi.T[where])),
        "softmax": (softmax, lambda rows, where: softmax.probabilities(rows.f.T[where])),
    }


def timed(name, model, probabilities, counts):
    """Return seconds per sweep and the median effective draws per second."""
    chain = Chain(model, counts, Serial(), n_burn=0)
    where = np.linspace(0, len(counts) - 1, N_SHOWN).astype(int)
    chain.sweep(N_BURN[name])
    kept, seconds = [], 0.0
    for _ in range(N_SWEEPS[name]):
        start = time.process_time()
        chain.sweep()
        seconds += time.process_time() - start
        rows = _joined(chain.rows())
        kept.append(probabilities(rows, where)[:, :N_SHOWN])
    draws = np.reshape(kept, (1, len(kept), -1))
    ess = [float(arviz.ess(draws[..., i])) for i in range(draws.shape[2])]
    return seconds / len(kept), np.median(ess) / seconds


def _joined(blocks):
    """Return the rows of all blocks as one."""
    return type(blocks[0])(*(np.concatenate(parts) for parts in zip(*blocks)))


def run():
    """Return one record per case."""
    inputs, counts = make_counts()
    with threadpool_limits(1):
        found = {n: timed(n, *both, counts) for n, both in models(inputs, counts).items()}
    (ours, rate), (theirs, their_rate) = found["sticks"], found["softmax"]
    case = f"SBM-GP vs LNM-GP, M={len(counts)}, K={N_CATEGORIES}"
    return [
        record(f"{case}: sweep", ours, theirs),
        record(f"{case}: effective draw", 1 / rate, 1 / their_rate),
    ]


if __name__ == "__main__":
    for line in run():
        print(line, flush=True)
