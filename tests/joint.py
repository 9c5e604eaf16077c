"""Tests of whole samplers: Geweke's joint distribution test and simulation-based calibration.

Tolerances are in standard errors or p-values, never a hand-picked `atol`; they live in statistics_tools.
"""

import numpy as np
from scipy import stats

from polystick.inference.moving import moved, moves
from polystick.keys import Key
from statistics_tools import SURE_Z, standard_error

FIRST_LOOK = 150  # sweeps; fewer make too few batches for a standard error
N_DIRECT = 3000  # draws that wrong sweeps share; they are cheap, and the more there are the sooner it is sure


class Law:
    """Geweke (2004): two ways to draw from the joint law of everything must agree in their means.

    simulate(rng) -> everything                  independent draws from the law
    summarise(everything) -> vector
    resample(everything, i, rng) -> everything   a sweep given the data, then new data given the state

    Independent draws are made once, and shared by all the sweeps that are held against them.
    """

    def __init__(self, simulate, summarise, seed=2004):
        self.simulate, self.summarise = simulate, summarise
        self.rng, self.drawn = np.random.default_rng(seed), []

    def direct(self, n):
        """Return summaries (n, ...) of independent draws: the same ones, whoever asked before."""
        while len(self.drawn) < n:
            self.drawn.append(self.summarise(self.simulate(self.rng)))
        return np.stack(self.drawn[:n])

    def z(self, resample, n_iter, rng):
        """Return z-scores of the means over n_iter sweeps of what is thought right."""
        *early, z = self._looks(resample, n_iter, n_iter, rng)
        worst = np.array([np.abs(scores).max() for scores in early])
        assert (worst < SURE_Z).all(), f"`worst_z` would call it wrong too early: {worst}"
        return z

    def worst_z(self, resample, n_iter, rng):
        """Return the greatest |z| over n_iter sweeps of what is thought wrong, or over fewer if these do.

        Looking early lets no right sweep be called wrong: the limit is far beyond the one that holds after
        all sweeps, errors are at least those of independent draws, and `z` looks at right sweeps as often.
        """
        for z in self._looks(resample, n_iter, max(n_iter, N_DIRECT), rng):
            worst = np.abs(z).max()
            if worst > SURE_Z:
                break
        return worst

    def drift_z(self, sweep, n_starts, n_sweeps, rng):
        """Return z-scores of what sweeps change on average, from starts that have the law already.

        sweep(everything, i, rng) -> everything      given the same data

        Where data are so strong that new data hardly move, `z` would take for ever; here all starts are
        independent, and what each is before is held against what it is after.
        """
        changes = []
        for start in range(n_starts):
            everything = self.simulate(rng)
            before = self.summarise(everything)
            for i in range(n_sweeps):
                everything = sweep(everything, start * n_sweeps + i, rng)
            changes.append(self.summarise(everything) - before)
        changes = np.stack(changes)
        error = changes.std(axis=0, ddof=1) / np.sqrt(n_starts)
        moved = error > 0
        return changes.mean(axis=0)[moved] / error[moved]

    def _looks(self, resample, n_iter, n_direct, rng):
        """Yield z-scores again and again, at last those after n_iter sweeps."""
        direct, everything, seen = self.direct(n_direct), self.simulate(rng), []
        for n in looks_up_to(n_iter):
            for i in range(len(seen), n):
                everything = resample(everything, i, rng)
                seen.append(self.summarise(everything))
            yield gap_in_errors(np.stack(seen), direct, early=n < n_iter)


def looks_up_to(n_iter):
    """Return after how many sweeps to look: the last time after all."""
    sizes = [FIRST_LOOK]
    while sizes[-1] * 1.3 < n_iter:
        sizes.append(int(sizes[-1] * 1.3))
    return [n for n in sizes if n < n_iter] + [n_iter]


def gap_in_errors(successive, direct, early=False):
    """Return the gaps of the means in standard errors."""
    some = direct[
        0
    ]  # means are of what is away from it: those of a constant would not be the constant
    gap = (successive - some).mean(axis=0) - (direct - some).mean(axis=0)
    rounding = 1e-13 * np.abs(direct).max(axis=0)  # of what would be constant, and has no error
    gap[np.abs(gap) < rounding] = 0.0
    error = standard_error(successive)
    if early:  # few batches may look alike by chance
        error = np.maximum(error, direct.std(axis=0) / np.sqrt(len(successive)))
    error = np.hypot(standard_error(direct), error)
    with np.errstate(divide="ignore"):  # what never varies has no error: any gap is infinitely many
        return np.where(gap == 0, 0.0, gap) / np.where(gap == 0, 1.0, error)


def one_sweep(model, parameters, rows, shard, i):
    """Return parameters and rows after sweep number i, given the counts of one block."""
    key = Key(7, i)
    if moves(model):
        parameters, (rows,) = moved(model, parameters, [shard], [rows], key)
    rows, statistics = model.draw_rows(model.prepare(parameters), shard, rows, key)
    return model.draw_parameters(parameters, statistics, key), rows


def first_and_second(values):
    """Return the entries, their squares and all their products: first, second and cross moments."""
    values = np.concatenate([np.ravel(v) for v in values])
    i, j = np.triu_indices(len(values))
    return np.concatenate([values, values[i] * values[j]])


def ranks(truth, draws):
    """Return how many of the draws (draw, ...) lie below the truth (...), ties broken at random by none."""
    return (draws < truth).sum(axis=0)


def uniform_pvalues(ranks, n_draws, n_bins=10):
    """Return chi-square p-values of ranks (simulation, quantity) being uniform on 0..n_draws."""
    assert (n_draws + 1) % n_bins == 0, "bins must hold equally many ranks"
    bins = ranks * n_bins // (n_draws + 1)
    tables = [np.bincount(column, minlength=n_bins) for column in bins.T]
    return np.array([stats.chisquare(table).pvalue for table in tables])
