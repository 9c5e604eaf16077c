"""Associations held against a null: what may be found where nothing is, and what must be where something is.

Corpora whose topics are independent but for sharing their documents, or have four pairs that go together or
against each other; and the judge, with its limits.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import softmax

MOST_MEAN = 0.08  # in size, of pairs of nothing: rare and common ones apart
MOST_FALSE = {"all": 0.08, "rare": 0.12, "common": 0.15}  # of those, with intervals off zero
MOST_MISSED = 1  # of the planted pairs of a corpus, which are four
PLANTED = 0.8


class Corpus(NamedTuple):
    """Documents, and where they come from."""

    counts: np.ndarray  # (n, V)
    topics: np.ndarray  # (T, V)
    truth: np.ndarray  # (T, T) correlations of log abundances
    shares: np.ndarray  # (T,) on average


def corpus(kind, seed, *, n=300, n_topics=16, n_words=300, concentration=0.05):
    """Return documents of 60 to 150 tokens; kind: "independent", "dirichlet" or "pairs"."""
    rng, truth = np.random.default_rng(seed), np.eye(n_topics)
    topics = rng.dirichlet(np.full(n_words, concentration), size=n_topics)
    level = -0.1 * np.arange(n_topics)
    if kind == "dirichlet":
        shares = rng.dirichlet(8.0 * softmax(level), size=n)
    else:
        if kind == "pairs":
            for number, (i, j) in enumerate(rng.permutation(n_topics)[:8].reshape(4, 2)):
                truth[i, j] = truth[j, i] = PLANTED * (-1) ** number
        sd = rng.uniform(1.0, 1.4, n_topics)
        cov = truth * np.outer(sd, sd)
        shares = softmax(level + rng.multivariate_normal(np.zeros(n_topics), cov, size=n), axis=1)
    counts = rng.multinomial(rng.integers(60, 151, n), shares @ topics)
    return Corpus(counts, topics, truth, shares.mean(axis=0))


class Judged(NamedTuple):
    """What one output says of pairs of nothing (mean, whether it is off zero), and what it found."""

    zeros: dict  # "all", "rare", "common" -> (mean (p,), off (p,))
    n_found: int
    n_planted: int


def judge(found, truth, shares):
    """Return what intervals (mean, lower, upper), each (T, T), say of this truth."""
    mean, lower, upper = (np.asarray(part) for part in found)
    i, j = np.triu_indices(len(truth), 1)
    is_common = np.argsort(np.argsort(-shares)) < len(truth) // 2
    mean, off, right = mean[i, j], ((lower > 0) | (upper < 0))[i, j], truth[i, j]
    kinds = {
        "all": right == 0,
        "rare": (right == 0) & ~is_common[i] & ~is_common[j],
        "common": (right == 0) & is_common[i] & is_common[j],
    }
    hits = off & (np.sign(mean) == np.sign(right)) & (right != 0)
    zeros = {name: (mean[chosen], off[chosen]) for name, chosen in kinds.items()}
    return Judged(zeros, int(hits.sum()), int((right != 0).sum()))


def faults(judged):
    """Return what is wrong with outputs for corpora of one kind, pooled; an empty list where they pass."""
    told = []
    for name, limit in MOST_FALSE.items():
        means, offs = (np.concatenate(parts) for parts in zip(*[one.zeros[name] for one in judged]))
        if offs.mean() > limit:
            told.append(f"{name}: zero is excluded in {offs.mean():.3f}")
        if name != "all" and abs(means.mean()) > MOST_MEAN:
            told.append(f"{name}: {means.mean():+.3f} on average")
    told += [f"{one.n_found} of {one.n_planted} are found" for one in judged
             if one.n_found < one.n_planted - MOST_MISSED]  # fmt: skip
    return told
