"""Tests of whole samplers: Geweke's joint distribution test and simulation-based calibration.

Tolerances are in standard errors or p-values, never a hand-picked `atol`; they live in statistics_tools.
"""

import numpy as np
from scipy import stats

from polystick.keys import Key
from statistics_tools import standard_error


def geweke_z(simulate, resample, summarise, n_iter, rng):
    """Geweke (2004): two ways to draw from the joint law of everything must agree in their means.

    simulate(rng) -> everything                  independent draws from the law
    resample(everything, i, rng) -> everything   a sweep given the data, then new data given the state
    summarise(everything) -> vector
    """
    direct = np.stack([summarise(simulate(rng)) for _ in range(n_iter)])
    everything = simulate(rng)
    successive = np.empty_like(direct)
    for i in range(n_iter):
        everything = resample(everything, i, rng)
        successive[i] = summarise(everything)
    gap = successive.mean(axis=0) - direct.mean(axis=0)
    error = np.hypot(standard_error(direct), standard_error(successive))
    with np.errstate(divide="ignore"):  # what never varies has no error: any gap is infinitely many
        return np.where(gap == 0, 0.0, gap) / np.where(gap == 0, 1.0, error)


def one_sweep(model, parameters, rows, shard, i):
    """Return parameters and rows after sweep number i, given the counts of one block."""
    key = Key(7, i)
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
