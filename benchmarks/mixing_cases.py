"""The cases of mixing.py: data, the estimator that meets them, and what is looked at of its draws.

Bulk ESS goes by ranks, so log pi is as good as pi. Where a table has many cells, those of the rarest splits
are looked at and an even share of the others.

The tables rare, low, process and grid were chosen among a few so that 17a151f was about as slow on them as it
was seen to be on real data: part of a gain there may be regression to the mean. rare2 and low2 were not; nor
were the others.
"""

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from corpora import VARIABLE, MissingDataError, load_ap
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from polystick import (
    CorrelatedMultinomial,
    CorrelatedTopicModel,
    DynamicMultinomial,
    MultinomialGP,
    MultinomialLDS,
    NormalInverseWishart,
    datasets,
    decompose,
)
from polystick.covariances import OnColumns, Separable

MOST, RAREST = 400, 150  # entries of a quantity that are looked at; the rarest ones among them
SYSTEM_STEPS = 40  # of a sequence, whose probabilities are looked at


class Case(NamedTuple):
    """One law, met by Gibbs sampling and, where there is time for it, by NUTS."""

    title: str
    load: Callable  # () -> what `fit` is given, counts last
    estimator: Callable  # (**settings) -> an estimator
    drawn: Callable  # (fitted estimator) -> name -> draws (chain, draw, ...)
    keep: tuple  # variables of the rows to keep for that
    n_burn: int
    n_draws: int
    nuts: str | None = None  # its law in mixing_nuts.py
    nuts_warmup: int = 500
    nuts_draws: int = 800
    nuts_depth: int = 10


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


def load_rare(seed=1, sd=2.2):
    """Return rows like those of a microbiome: what is rare in most rows blooms in a few."""
    rng = np.random.default_rng(seed)
    return (simulated(rng, log_uniform(rng, 1e5, 2e6, 26), np.geomspace(0.3, 1e-6, 20), sd=sd),)


def load_rare_and_large():
    """Return the table of tests/references/make_rare_reference.py."""
    path = Path(__file__).parents[1] / "tests" / "references" / "rare_nuts.json"
    return (np.array(json.loads(path.read_text())["counts"]),)


def load_low(seed=2, spread=2.0):
    rng = np.random.default_rng(seed)
    shares = np.exp(rng.normal(0.0, spread, 20))
    return (simulated(rng, log_uniform(rng, 8, 800, 70), shares, sd=1.2),)


def load_nothing_rare():
    rng = np.random.default_rng(3)
    return (simulated(rng, np.full(94, 250_000), np.geomspace(0.12, 0.035, 16), sd=0.3),)


def load_names():
    years = [1970, 1985, 2000, 2013]
    return (datasets.load_names("M", n_names=20, years=years).to_numpy(),)


# over time and place


def read(file):
    """Return the arrays of a shared file."""
    path = Path(os.environ.get(VARIABLE, "")) / file
    if not path.is_file():
        raise MissingDataError(f"it needs {file} in the folder that {VARIABLE} names")
    return np.load(path)


def boys_of_california(first_year):
    """Return counts up to 2013 of the 8 most frequent names and of 2 that are seldom there.

    Of the names without boys in 75 to 85 % of the years those are the two with the most boys.
    """
    stored = read("ssa_names_by_state_full.npz")
    state, sex, year = (stored[name] for name in ("state", "sex", "year"))
    used = (stored["state_codes"][state] == "CA") & (sex == 1)
    used &= (year >= first_year) & (year <= 2013)
    table = np.zeros((2014 - first_year, len(stored["names"])), np.int64)
    table[year[used] - first_year, stored["name"][used]] = stored["count"][used]
    order = np.argsort(-table.sum(axis=0), kind="stable")
    absent = (table[:, order] == 0).mean(axis=0)
    seldom = order[(absent >= 0.75) & (absent <= 0.85)]
    return table[:, [*order[:8], *seldom[:2]]]


def load_walk():
    return (boys_of_california(1910),)


def load_process():
    """Return years (54, 1) and counts."""
    return np.arange(1960.0, 2014.0)[:, None], boys_of_california(1960)


def load_grid():
    """Return (year, latitude, longitude) and ten names, frequent to rare: 51 states in 18 years."""
    table = datasets.load_names("M", n_names=300, years=range(1962, 2014, 3)).iloc[:, ::30]
    years, states = (table.index.get_level_values(name) for name in ("year", "state"))
    places = datasets.load_state_centres().loc[states].to_numpy()
    return np.column_stack([years.to_numpy(float), places]), table.to_numpy()


def grid_kernel():
    years = OnColumns(ConstantKernel(1.0) * Matern(15.0, nu=2.5), [0])
    return Separable(years, OnColumns(RBF(8.0), [1, 2]))


def load_dna():
    return ([read("dna_lds_682.npz")["tokens"].astype(np.int64)],)


def load_documents():
    return (load_ap()[0][:600],)


# what is drawn


def of_rows(estimator):
    posterior = estimator.posterior_
    psi = estimator.decomposition_.psi_from_log(np.log(posterior["probabilities"]))
    return {"mean": posterior["mean"], "cov": posterior["cov"], "psi": psi}


def of_walk(estimator):
    return {"cov": estimator.posterior_["dynamics_cov"], "psi": estimator.posterior_["states"]}


def of_process(estimator):
    posterior = estimator.posterior_
    return {"theta": posterior["theta"], "psi": np.swapaxes(posterior["psi"], 2, 3)}


def of_system(estimator):
    """Return biases, and psi of some steps: states themselves may be turned."""
    posterior = estimator.posterior_
    bias, states = posterior["emission_bias"], posterior["states"]
    steps = np.linspace(0, states.shape[2] - 1, SYSTEM_STEPS).astype(int)
    emission = np.swapaxes(posterior["emission"], 2, 3)
    return {"bias": bias, "psi": states[:, :, steps] @ emission + bias[:, :, None]}


def of_topics(estimator):
    return {}


# what is looked at


def quantities(drawn, log_likelihood, decomposition, counts=None):
    """Return name -> draws (chain, draw, entries) of those entries that are looked at.

    counts : (n, K), which tell what is rare; None: all cells are alike
    """
    found = {}
    for name, draws in drawn.items():
        if name == "cov":
            found |= spread(draws)
        elif name == "psi":
            found |= cells(draws, decomposition, counts)
        else:
            found[name] = draws
    return found | {"log likelihood": log_likelihood[..., None]}


def spread(cov):
    """Return log variances and correlations of covariances (chain, draw, k, k)."""
    i, j = np.triu_indices(cov.shape[-1], 1)
    variance = np.diagonal(cov, axis1=2, axis2=3)
    correlation = cov[..., i, j] / np.sqrt(variance[..., i] * variance[..., j])
    return {"log variance": np.log(variance), "correlation": correlation}


def cells(psi, decomposition, counts):
    """Return some cells of psi (chain, draw, n, k) and of the log probabilities."""
    log_pi = decomposition.log_probabilities(psi)
    if counts is None:
        orders = [np.arange(part[0, 0].size) for part in (psi, log_pi)]
    else:
        totals = counts.sum(axis=1, keepdims=True)
        orders = [rarest_first(*decomposition.split(counts)), rarest_first(counts, totals)]
    return {
        name: part.reshape(*part.shape[:2], -1)[..., looked_at(order)]
        for name, part, order in zip(("psi", "log pi"), (psi, log_pi), orders)
    }


def rarest_first(successes, trials):
    """Return cells by how slow Pólya-gamma steps are: many trials on one side, few on the other."""
    few = np.minimum(successes, trials - successes) + 0.5
    logit = np.maximum(np.log((trials + 1.0 - few) / few), 1e-9)
    slowness = trials * np.tanh(0.5 * logit) / logit / few
    return np.argsort(-np.ravel(slowness), kind="stable")


def looked_at(order):
    """Return the first cells and an even share of the others, MOST in all."""
    if len(order) <= MOST:
        return order
    others = order[RAREST:]
    return np.r_[order[:RAREST], others[:: -(-len(others) // (MOST - RAREST))]]


# all of them


def rows_of_one_law(load, **settings):
    """Return an estimator with the prior that was the default at 17a151f: gains are those of the sampler."""
    (counts,) = load()
    tree = decompose("frequency", n_categories=counts.shape[1], weights=counts.sum(axis=0))
    prior = NormalInverseWishart.weak(*tree.dirichlet_moments(1.0))
    return CorrelatedMultinomial(prior=prior, **settings)


def process_of_one_law(**settings):
    """Return an estimator with the kernel that was the default at 17a151f."""
    scale = load_process()[0].std()
    bounds = 1e-2 * scale, 1e2 * scale
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * Matern(scale, bounds, nu=2.5)
    return MultinomialGP(kernel, solver="dense", **settings)


def rows(title, load, n_burn, n_draws, **nuts):
    settings = partial(rows_of_one_law, load), of_rows, ("probabilities",), n_burn, n_draws
    return Case(title, load, *settings, nuts="rows", **nuts)


CASES = {
    "rare": rows("rows 26 x 20, totals 1e5-2e6, shares down to 1e-6", load_rare, 2000, 8000, nuts_draws=2000),
    "rare5": rows("rows 26 x 5, three near 1e-6", load_rare_and_large, 2000, 8000, nuts_draws=2000),
    "names": rows("rows, names 204 x 20", load_names, 1000, 3000),
    "low": rows("rows 70 x 20, totals 8-800", load_low, 2000, 6000),
    "rare2": rows(
        "rows 26 x 20 as rare, but milder and another seed", partial(load_rare, 101, 1.5), 1000, 4000,
    ),
    "low2": rows(
        "rows 70 x 20 as low, but milder and another seed", partial(load_low, 102, 1.5), 1000, 4000,
    ),
    "nothing": rows("rows 94 x 16, totals 250,000, nothing rare", load_nothing_rare, 500, 3000),
    "walk": Case(
        "DynamicMultinomial, boys of California 1910-2013, K = 10, two names absent in 80 % of the years",
        load_walk, DynamicMultinomial, of_walk, (), 1500, 6000,
        nuts="walk", nuts_warmup=500, nuts_draws=1500,
    ),
    "process": Case(
        "MultinomialGP, boys of California in 54 years, K = 10, dense, kernel learned",
        load_process, process_of_one_law, of_process, ("psi",), 500, 2000,
        nuts="process", nuts_warmup=250, nuts_draws=250, nuts_depth=9,
    ),
    "grid": Case(
        "MultinomialGP, 51 states x 18 years, K = 10, separable kernel that is learned",
        load_grid, partial(MultinomialGP, grid_kernel()), of_process, ("psi",), 500, 2000,
    ),
    "system": Case(
        "MultinomialLDS, DNA, K = 22, 10 states",
        load_dna, partial(MultinomialLDS, 10, n_categories=22), of_system, (), 300, 1500,
    ),
    "topics": Case(
        "CorrelatedTopicModel, AP, 600 documents, 10 topics",
        load_documents, partial(CorrelatedTopicModel, 10), of_topics, (), 300, 700,
    ),
}  # fmt: skip
