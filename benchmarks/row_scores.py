"""Held-out rows: correlated multinomials by link and covariance, beside models without correlations.

    python benchmarks/row_scores.py [TABLE ...]        for example: names10 words60

A third of the rows, at random, is scored by models fitted to the others: log likelihood per count, in nats.
Independent sticks are K - 1 correlated multinomials of two categories each, the sticks by frequency, so every
logit has its own learned mean and variance. Without names of tables, writes RESULTS_ROWS.md.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from association_data import counts_of, draw_totals
from run import machine

from polystick import CorrelatedMultinomial, DirichletMultinomial, Gibbs, datasets

PATH = Path(__file__).parent / "RESULTS_ROWS.md"
RUN = Gibbs(n_draws=250, n_burn=250, n_chains=1)
YEARS = (1970, 1985, 2000, 2013)
BASE = "Dirichlet"
INDEPENDENT = "independent sticks"
CORRELATED = {
    "sticks, full (default)": {},
    "sticks, factor": {"covariance": "factor"},
    "softmax, full": {"link": "softmax", "covariance": "full"},
    "softmax, factor": {"link": "softmax", "covariance": "factor"},
}


# tables


def names(k):
    return datasets.load_names("M", n_names=k, years=YEARS).to_numpy()


def words(k):
    """Count the most frequent words of the addresses of each year."""
    addresses = datasets.load_state_of_the_union()
    top = np.argsort(-np.asarray(addresses.counts.sum(axis=0)).ravel(), kind="stable")[:k]
    counts = addresses.counts[:, top].toarray()
    return np.array(
        [counts[addresses.years == year].sum(axis=0) for year in np.unique(addresses.years)]
    )


def shares(k):
    falling = np.exp(-6.0 * np.arange(k) / k)
    return falling / falling.sum()


def by_factors(k, n, median, seed):
    """Draw rows from three factors that move a third of the categories each, and noise."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(0, 0.9, (3, k)) * (np.argsort(rng.random((3, k)), axis=1) < k // 3)
    log_abundance = np.log(shares(k)) + rng.normal(size=(n, 3)) @ loadings
    log_abundance += 0.6 * rng.normal(size=(n, k))
    return counts_of(log_abundance, draw_totals(median, n, rng), rng)


def by_dirichlet(k, n, seed):
    rng = np.random.default_rng(seed)
    return rng.multinomial(draw_totals(120, n, rng), rng.dirichlet(60 * shares(k), n))


TABLES = {
    "names10": ("boys' names by state, K = 10", lambda: names(10)),
    "names40": ("boys' names by state, K = 40", lambda: names(40)),
    "names129": ("boys' names by state, K = 129", lambda: names(129)),
    "factors35": ("simulated factors, K = 35", lambda: by_factors(35, 150, 120, 0)),
    "factors130": ("simulated factors, K = 130", lambda: by_factors(130, 208, 300, 1)),
    "dirichlet35": ("simulated Dirichlet, K = 35", lambda: by_dirichlet(35, 150, 2)),
    "words60": ("State of the Union by year, K = 60", lambda: words(60)),
}


# models


def independent_sticks(train, test):
    """Return the log probability of each test row under a model of its own for each stick."""
    order = np.argsort(-train.sum(axis=0), kind="stable")
    values = np.zeros(len(test))
    for i in range(len(order) - 1):
        pair, held_out = (
            np.column_stack([x[:, order[i]], x[:, order[i + 1 :]].sum(axis=1)])
            for x in (train, test)
        )
        values += correlated(pair, held_out, {})
    return values


def correlated(train, test, options):
    model = CorrelatedMultinomial(inference=RUN, random_state=0, n_jobs=1, **options).fit(train)
    return model.score_samples(test)


def dirichlet(train, test):
    return DirichletMultinomial(random_state=0).fit(train).score_samples(test)


def scored(train, test):
    """Yield name, log probabilities of the test rows, CPU seconds, and what was warned of the scores."""
    yield BASE, *_timed(dirichlet, train, test)
    yield INDEPENDENT, *_timed(independent_sticks, train, test)
    for name, options in CORRELATED.items():
        yield name, *_timed(correlated, train, test, options)


def _timed(function, *arguments):
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values = function(*arguments)
    said = {str(one.message) for one in caught if "effective draws" in str(one.message)}
    said = {
        message.split(" rest on")[0].removeprefix("the scores of ")
        for message in said
        if "rest on" in message
    }
    return values, time.process_time() - start, sorted(said)


def split(counts):
    """Return two thirds of the rows that have any count, and the others."""
    counts = counts[counts.sum(axis=1) > 0]
    order = np.random.default_rng(5).permutation(len(counts))
    cut = 2 * len(counts) // 3
    return counts[order[:cut]], counts[order[cut:]]


def run(table):
    """Return cells of a table's line, and remarks."""
    title, load = TABLES[table]
    train, test = split(load())
    n = test.sum()
    cells, remarks = [], []
    for name, values, seconds, said in scored(train, test):
        if name == BASE:
            base, cell = values, f"{values.sum() / n:.4f}"
        else:
            gain = 1e3 * (values - base)
            error = gain.std(ddof=1) * np.sqrt(len(gain)) / n
            cell = f"{gain.sum() / n:+.2f} ({error:.2f})"
        cells.append(cell)
        remarks += [
            f"{title}, {name}: scores of {one} rest on fewer than 5 effective draws."
            for one in said
        ]
        print(table, name, cell, f"{seconds:.0f} s", *said, file=sys.stderr, flush=True)
    return [f"{title}, {len(train)} + {len(test)} rows", *cells], remarks


# the report

SETTING = (
    "Log likelihood per count of a third of the rows, given the others: of `DirichletMultinomial` in nats, "
    "and what others gain on it in thousandths of nats, with paired standard errors over rows. One chain of "
    "{} + {} sweeps. Independent sticks: each split has a mean and a variance of its own, which are learned."
)


def report(found):
    head = ["table", BASE, INDEPENDENT, *CORRELATED]
    lines = [head, ["---"] * len(head), *(cells for cells, _ in found)]
    remarks = [remark for _, said in found for remark in said]
    parts = [
        f"# Held-out rows\n\nWritten by `python benchmarks/row_scores.py`. {machine()}",
        SETTING.format(RUN.n_burn, RUN.n_draws),
        "\n".join(f"| {' | '.join(line)} |" for line in lines),
        *remarks,
    ]
    return "\n\n".join(parts)


def main(chosen):
    text = report([run(table) for table in chosen or TABLES])
    print(text)
    if not chosen:
        PATH.write_text(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
