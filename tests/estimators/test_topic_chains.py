"""What is told of documents speaks of the chain that the tables speak of."""

import numba
import numpy as np
import pytest

from polystick import CorrelatedTopicModel, Gibbs
from polystick.alignment import align


def corpus():
    """Return documents of twenty topics, for which twelve are too few: each chain merges others."""
    rng = np.random.default_rng(0)
    topics = np.kron(np.eye(20), np.ones(10)) + 0.02
    shares = rng.dirichlet(np.full(20, 0.15), 120)
    mixed = shares @ (topics / topics.sum(axis=1, keepdims=True))
    return rng.multinomial(400, mixed / mixed.sum(axis=1, keepdims=True))


def agreement(one, other):
    return np.corrcoef(one.ravel(), other.ravel())[0, 1]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="minutes without the compiler")
def test_shares_from_the_run_are_those_of_transform():
    counts = corpus()
    inference = Gibbs(100, 100, n_chains=2, keep=("proportions",))
    model = CorrelatedTopicModel(12, inference=inference, random_state=4).fit(counts)
    posterior, best = model.posterior_, model.posterior_.best_chain
    found = align(posterior["topics"].mean(axis=1)[[best, 1 - best]])
    assert found.similarity[1].min() < 0.7  # the chains are in different modes
    folded, told = model.transform(counts), posterior.running("proportions")[0]
    assert agreement(told, folded) > 0.99
    pooled = posterior["proportions"].mean(axis=(0, 1))  # as it was: two vocabularies in one
    assert agreement(pooled, folded) < 0.97
    other = (pooled.argmax(axis=1) != folded.argmax(axis=1)).mean()
    assert (told.argmax(axis=1) != folded.argmax(axis=1)).mean() < 0.02 < other
