"""The cases of mixing.py: counts, the estimator that meets them, and what is looked at of its draws.

A case's quantities are named arrays (chain, draw, entries). Bulk ESS goes by ranks, so log pi is as good as
pi; where a table has many cells, those of the rarest splits are looked at and an even share of the others.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from polystick import CorrelatedMultinomial, datasets

MOST, RAREST = 400, 150  # entries of a quantity that are looked at; the rarest ones among them


class Case(NamedTuple):
    """One law, met by Gibbs sampling and, where there is time for it, by NUTS."""

    title: str
    load: Callable  # () -> data of `fit`, a tuple
    estimator: Callable  # (**settings) -> an estimator
    keep: tuple  # variables of the rows to keep
    quantities: Callable  # (fitted estimator, data) -> name -> draws
    n_burn: int
    n_draws: int
    nuts: str | None = None  # its law in mixing_nuts.py
    nuts_warmup: int = 500
    nuts_draws: int = 800


def rarity(successes, trials):
    """Return how slow Pólya-gamma steps of each split are: many trials on one side, few on the other."""
    few = np.minimum(successes, trials - successes) + 0.5
    logit = np.log((trials + 1.0 - few) / few)
    return trials * np.tanh(0.5 * logit) / np.maximum(logit, 1e-9) / few


def looked_at(successes, trials):
    """Return the entries (flat) of a table of splits to look at."""
    order = np.argsort(-np.ravel(rarity(successes, trials)), kind="stable")
    if len(order) <= MOST:
        return np.arange(len(order))
    rest = order[RAREST:]
    even = rest[np.linspace(0, len(rest) - 1, MOST - RAREST).astype(int)]
    return np.sort(np.concatenate([order[:RAREST], even]))


def taken(draws, entries):
    """Return draws (chain, draw, ...) of these flat entries."""
    return np.reshape(draws, (*np.shape(draws)[:2], -1))[..., entries]


# tables


def correlated_effects(rng, n_rows, n_columns, sd, n_factors=3):
    """Return normal effects (n_rows, n_columns), most of whose variance is shared by columns."""
    loadings = rng.standard_normal((n_columns, n_factors))
    loadings /= np.linalg.norm(loadings, axis=1, keepdims=True)
    shared = rng.standard_normal((n_rows, n_factors)) @ loadings.T
    return sd * (0.8 * shared + 0.6 * rng.standard_normal((n_rows, n_columns)))


def simulated(rng, totals, shares, sd):
    logits = np.log(shares) + correlated_effects(rng, len(totals), len(shares), sd)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return rng.multinomial(totals, weights / weights.sum(axis=1, keepdims=True))


def log_uniform(rng, low, high, size):
    return np.exp(rng.uniform(np.log(low), np.log(high), size)).astype(int)


def load_rare():
    rng = np.random.default_rng(1)
    return (simulated(rng, log_uniform(rng, 1e5, 2e6, 26), np.geomspace(0.3, 1e-6, 20), sd=2.2),)


def load_low():
    rng = np.random.default_rng(2)
    shares = np.exp(rng.normal(0.0, 2.0, 20))
    return (simulated(rng, log_uniform(rng, 8, 800, 70), shares, sd=1.2),)


def load_nothing_rare():
    rng = np.random.default_rng(3)
    return (simulated(rng, np.full(94, 250_000), np.geomspace(0.12, 0.035, 16), sd=0.3),)


def load_names():
    years = [1970, 1985, 2000, 2013]
    return (datasets.load_names("M", n_names=20, years=years).to_numpy(),)


# rows


def row_quantities(estimator, data):
    """Return what is looked at of correlated multinomials."""
    posterior, decomposition = estimator.posterior_, estimator.decomposition_
    log_pi = np.log(posterior["probabilities"])
    drawn = {
        "mean": posterior["mean"],
        "cov": posterior["cov"],
        "psi": decomposition.psi_from_log(log_pi),
        "log pi": log_pi,
        "log likelihood": posterior.log_likelihood,
    }
    return of_rows(drawn, data[0], decomposition)


def of_rows(drawn, counts, decomposition):
    """Return the entries that are looked at, of draws of a table's law by whoever made them."""
    totals = counts.sum(axis=1, keepdims=True)
    return {
        "mean": drawn["mean"],
        **spread(drawn["cov"]),
        "psi": taken(drawn["psi"], looked_at(*decomposition.split(counts))),
        "log pi": taken(drawn["log pi"], looked_at(counts, totals)),
        "log likelihood": drawn["log likelihood"][..., None],
    }


def spread(cov):
    """Return log variances and correlations of covariances (chain, draw, k, k)."""
    i, j = np.triu_indices(cov.shape[-1], 1)
    variance = np.diagonal(cov, axis1=2, axis2=3)
    correlation = cov[..., i, j] / np.sqrt(variance[..., i] * variance[..., j])
    return {"log variance": np.log(variance), "correlation": correlation}


def rows(title, load, n_burn, n_draws, **nuts):
    settings = ("probabilities",), row_quantities, n_burn, n_draws
    return Case(title, load, CorrelatedMultinomial, *settings, nuts="rows", **nuts)


CASES: dict[str, Any] = {
    "rare": rows("rows 26 x 20, totals 1e5-2e6, shares down to 1e-6", load_rare, 2000, 8000),
    "names": rows("rows, names 204 x 20", load_names, 1000, 3000),
    "low": rows("rows 70 x 20, totals 8-800", load_low, 2000, 6000),
    "nothing": rows("rows 94 x 16, totals 250,000, nothing rare", load_nothing_rare, 500, 3000),
}
