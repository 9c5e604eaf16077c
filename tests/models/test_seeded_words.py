"""Topics with seeds: the law, its mean field, and names that stay."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import digamma, gammaln

from joint import Law, first_and_second, one_sweep
from polystick import CorrelatedTopicModel, DynamicTopicModel, Gibbs, MeanField, StochasticVI
from polystick.models.seeded_words import Seed, SeededWords, largest_first, matched, settled
from polystick.models.topic_factors import assemble
from polystick.models.topic_words import DirichletWords
from statistics_tools import MAX_Z
from topic_tools import STICKS, TOTALS, needs_jit

SEEDS = (Seed(0, 1, 2.5), Seed(3, 1, 1.0), Seed(2, 0, 1.5))
WORDS = SeededWords(STICKS.words, 3, SEEDS)


def model_of(words):
    return assemble(words, STICKS.shares, STICKS.link)


def sweep(model, everything, i, rng):
    parameters, rows, counts = everything
    (shard,) = model.shards(counts)
    parameters, rows = one_sweep(model, parameters, rows, shard, i)
    return parameters, rows, model.simulate_counts(parameters, rows, TOTALS, rng)


def summarise(everything):
    parameters, _, counts = everything
    topics = WORDS.describe(parameters)["topics"]
    return first_and_second(
        [
            parameters.mean,
            topics[1, [0, 3]],
            topics[0, [0, 2]],
            topics[2, :1],
            counts[5, :3] / TOTALS[5],
        ]
    )


LAW = Law(lambda rng: model_of(WORDS).simulate(TOTALS, rng), summarise)


@dataclass(frozen=True)
class Forgetful(SeededWords):
    """Draws know nothing of the seeds."""

    def draw(self, parameters, counts, key, ordered_map):
        return self.flat.draw(parameters, counts, key, ordered_map)


@dataclass(frozen=True)
class Stale(SeededWords):
    """Seeds go into topics, not into their sizes."""

    def draw(self, parameters, counts, key, ordered_map):
        drawn = super().draw(parameters, counts, key, ordered_map)
        return {**drawn, "sizes": self.flat.draw(parameters, counts, key, ordered_map)["sizes"]}


@needs_jit
def test_geweke():
    z = LAW.z(partial(sweep, model_of(WORDS)), 2000, np.random.default_rng(1))
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@needs_jit
@pytest.mark.parametrize("wrong", [Forgetful, Stale])
def test_wrong_sweeps_are_caught(wrong):
    words = wrong(STICKS.words, 3, SEEDS)
    assert LAW.worst_z(partial(sweep, model_of(words)), 2000, np.random.default_rng(1)) > MAX_Z


def test_the_divergence_is_that_of_dirichlet_laws():
    factor = np.random.default_rng(0).gamma(2.0, size=(5, 3))
    prior, total = 1.0 + WORDS.weights, 0.0
    for q, p in zip(factor.T, prior.T):
        total += gammaln(q.sum()) - gammaln(q).sum() - gammaln(p.sum()) + gammaln(p).sum()
        total += (q - p) @ (digamma(q) - digamma(q.sum()))
    assert WORDS.divergence(factor) == pytest.approx(total)
    counts = np.arange(15.0).reshape(5, 3)
    np.testing.assert_allclose(WORDS.factor(counts), counts + prior)
    np.testing.assert_allclose(WORDS.tokens(WORDS.factor(counts)), counts.sum(axis=0))


def test_topics_with_seeds_keep_their_names():
    assert largest_first(WORDS, np.array([1.0, 2.0, 9.0])).tolist() == [0, 1, 2]
    one = SeededWords(DirichletWords(5, 1.0), 4, (Seed(0, 1, 2.0),))
    assert largest_first(one, np.array([1.0, 2.0, 9.0, 5.0])).tolist() == [2, 1, 3, 0]
    assert largest_first(STICKS.words, np.array([1.0, 2.0, 9.0])).tolist() == [2, 1, 0]
    chains = [np.eye(4) + 0.01, (np.eye(4) + 0.01)[[2, 1, 3, 0]]]
    assert matched(one, chains)[1].tolist() == [3, 1, 0, 2]
    counts = np.zeros((5, 4))
    counts[0, 3], counts[1, 0], counts[2, 1], counts[3, 2] = 8, 30, 20, 10
    assert settled(one, counts).tolist() == [0, 3, 1, 2]


# the faces


def corpus(n=80):
    """Return documents of three topics, of four words each."""
    rng = np.random.default_rng(2)
    topics = np.kron(np.eye(3), np.ones(4)) / 4
    counts = rng.multinomial(40, rng.dirichlet([0.3] * 3, n) @ topics)
    return pd.DataFrame(counts, columns=list("abcdefghijkl"))


@needs_jit
@pytest.mark.parametrize(
    "inference", [Gibbs(10, 30, n_chains=2), MeanField(1e-4), StochasticVI(20, n_draws=8)]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_seeds_say_which_topic_is_which(inference, seed):
    seeds = {"last": ["i", "j"], 0: ["e"]}
    face = CorrelatedTopicModel(3, seed_words=seeds, inference=inference, random_state=seed)
    model = face.fit(corpus())
    assert list(model.topic_labels_) == [0, "last", 2]
    assert set(model.topics(4).loc["last", 1:]) == set("ijkl")
    assert set(model.topics(4).loc[0, 1:]) == set("efgh")
    for chain in model.posterior_["topics"].mean(axis=1):
        assert set(np.argsort(-chain[1])[:4]) == {8, 9, 10, 11}


@needs_jit
def test_dynamic_topics_have_seeds():
    face = DynamicTopicModel(
        3, seed_words={2: ["a"]}, inference=Gibbs(6, 20, n_chains=1), random_state=0
    )
    model = face.fit(corpus(), times=np.repeat([0, 1], 40))
    assert set(model.topics(4).loc[2, 1:]) == set("abcd")
    with pytest.raises(ValueError, match="seed_words need a Dirichlet prior"):
        face.set_params(evolving=True).fit(corpus(), times=np.repeat([0, 1], 40))


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ({0: ["zebra"]}, "must be in the vocabulary; 'zebra' is not"),
        ({0: [12]}, "must be in the vocabulary; '12' is not"),
        ({7: ["a"]}, "labels or 0 to 2"),
        ({0: "abc"}, "a list of words"),
        ({0: []}, "a list of words"),
        (["a"], "must be a mapping"),
        ({name: ["a"] for name in "wxyz"}, "no more topics than n_topics=3; got 4"),
    ],
)
def test_bad_seeds_are_refused(seeds, message):
    with pytest.raises((ValueError, TypeError), match=message):
        CorrelatedTopicModel(3, seed_words=seeds, inference=Gibbs(2, 2, n_chains=1)).fit(corpus(8))
    with pytest.raises(ValueError, match="seed_weight"):
        CorrelatedTopicModel(3, seed_words={0: ["a"]}, seed_weight=-1.0).fit(corpus(8))
