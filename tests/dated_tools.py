"""Small models of documents with time stamps, and what their joint tests look at."""

import numpy as np
import pytest

from joint import Law, first_and_second, one_sweep
from polystick.conjugate import InverseWishart
from polystick.models.walking_shares import WalkingShares
from topic_tools import JIT, PRIOR

STEP_PRIOR = InverseWishart(np.array([[3.0, 1.0], [1.0, 2.0]]), 10.0)
STEPS = (PRIOR, STEP_PRIOR)
LONGEST = 30 if JIT else 4  # tokens of a document
N_SLICES = 3
SLICES = np.array([0, 2, 0, 2, 2, 0, 0, 2])  # nobody wrote in slice 1
TOTALS = np.array([0, 0, 4, 8, 1, 12, 8, 12])
WALKING = WalkingShares(N_SLICES, *STEPS)


def sweep(model, everything, i, rng):
    """Draw everything given the words, then the words given everything."""
    parameters, rows, counts = everything
    (shard,) = model.shards(counts, slices=SLICES)
    parameters, rows = one_sweep(model, parameters, rows, shard, i)
    return parameters, rows, model.simulate_counts(parameters, rows, TOTALS, rng, slices=SLICES)


def law_of(model, more):
    """Return the law of moments; `more` gives further light-tailed values of the parameters."""
    simulate = lambda rng: model.simulate(TOTALS, rng, slices=SLICES)
    return Law(simulate, lambda everything: summarise(everything, more))


def summarise(everything, more):
    parameters, (psi, _), counts = everything
    first, steps = parameters.levels[0], np.diff(parameters.levels, axis=0)
    values = [first, steps, *logs(parameters.cov), *logs(parameters.step_cov)]
    values += [np.tanh(psi[[0, 1, 5, 7]] / 3), counts[[5, 7], :2].ravel() / 12]
    return first_and_second([*values, counts[:, 0].mean(), *more(parameters)])


def logs(cov):
    """Return log standard deviations and the correlation."""
    sd = np.sqrt(np.diag(cov))
    return np.log(sd), cov[0, 1] / (sd[0] * sd[1])


def dated_corpus(n, n_words, n_slices, seed=3):
    """Return counts (n, V) of documents of all lengths, and a slice (n,) of each: the second has none."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.2), 3)
    counts = rng.multinomial(rng.integers(0, LONGEST, n), rng.dirichlet([1.0] * 3, n) @ topics)
    return counts, rng.choice(np.delete(np.arange(n_slices), 1), n)


def cut_and_resume(gibbs, model, shards, folder, sweep):
    """Return a run that broke off after a sweep and went on, and one that did not."""

    def tell(progress):
        if progress.sweep == sweep:
            raise RuntimeError("pulled the plug")

    def run(name, **options):
        return gibbs.run(model, shards, seed=5, checkpoint=folder / name, every=0.0, **options)

    with pytest.raises(RuntimeError, match="pulled the plug"):
        run("cut", progress=tell)
    return run("cut", resume=True), run("whole")
