"""The topic model that the faces make by default, with seeds and without: calibrated, and the same bits.

Its parts are a balanced tree of topics, a learned scale with its moves, and words that may have seeds.
"""

from functools import partial

import numpy as np
import pytest

from joint import ranks, uniform_pvalues
from polystick import CorrelatedTopicModel, Gibbs
from polystick.inference.execution import Serial, Threads
from polystick.inference.moving import moved
from polystick.keys import Key
from polystick.models import warm_start
from polystick.models.seeded_words import Seed, SeededWords
from polystick.models.topic_factors import assemble
from polystick.models.topic_words import DirichletWords
from polystick.population import LearnedScale
from topic_tools import JIT, needs_jit, small_corpus

N_TOPICS, N_WORDS = 4, 5
TOTALS = np.array([0, 2, 5, 10, 20, 40, 40, 40])
SEEDS = (Seed(0, 0, 4.0), Seed(1, 0, 2.0), Seed(2, 2, 5.0))


def default_model(seeds=(), n_words=N_WORDS, concentration=0.5, n_topics=N_TOPICS):
    """Return what the face makes of its defaults, but for the concentration."""
    counts = np.ones((1, n_words))
    face = CorrelatedTopicModel(n_topics, topic_concentration=concentration)
    face.words_ = np.arange(n_words)
    plain = face._make_model(counts)
    if not seeds:
        return plain
    words = SeededWords(DirichletWords(n_words, concentration), n_topics, seeds)
    return assemble(words, plain.shares, plain.link)


MODELS = {"plain": default_model(), "seeded": default_model(SEEDS)}
over_models = pytest.mark.parametrize("name", MODELS)


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


def test_the_face_still_makes_these_parts():
    model = default_model()
    assert isinstance(model.shares.law, LearnedScale)
    assert model.shares.law.nu is None
    assert model._moves
    assert not model.link.has_order


# calibration


def told(topics, shares, mean, cov, counts):
    """Return what has a meaning under any labels of the topics, draw by draw.

    topics (..., T, V), shares (..., n, T), mean (..., k), cov (..., k, k)
    """
    words = shares @ topics
    variances = np.diagonal(cov, axis1=-2, axis2=-1)
    sizes = np.sort(topics.sum(axis=-2), axis=-1)
    found = [
        np.square(topics).sum(axis=(-1, -2)),
        sizes[..., -1],
        words[..., 3, 0],
        words[..., 6, 1],
        np.square(shares).sum(axis=-1).sum(axis=-1),
        shares[..., 0, :].max(axis=-1),
        np.log(variances).sum(axis=-1),
        np.square(mean).sum(axis=-1),
        np.sum(counts * np.log(words), axis=(-1, -2)),
    ]
    return np.stack(found, axis=-1)


def sbc(model, n_simulations, rng, n_draws=19, thin=100, n_burn=300):
    """Return p-values of ranks being uniform.

    So few documents leave the law of psi open: an independent draw of its variances and mean takes 100 to 250
    sweeps.
    """
    found = []
    for seed in range(n_simulations):
        parameters, rows, counts = model.simulate(TOTALS, rng)
        truth, shares = model.describe_parameters(parameters), model.link.shares(rows.psi)
        gibbs = Gibbs(n_draws, n_burn, thin=thin, n_chains=1, keep=("proportions",))
        p = gibbs.run(model, model.shards(counts, 4), seed=seed)
        drawn = [p[name][0] for name in ("topics", "proportions", "mean", "cov")]
        true = told(truth["topics"], shares, truth["mean"], truth["cov"], counts)
        found.append(ranks(true, told(*drawn, counts)))
    return uniform_pvalues(np.array(found), n_draws)


@pytest.fixture
def quick_start(monkeypatch):
    """Where a chain starts is forgotten in its burn-in."""
    monkeypatch.setattr(warm_start, "MOST_STARTS", 1)
    monkeypatch.setattr(warm_start, "N_SWEEPS", 20)
    monkeypatch.setattr(warm_start, "N_TRIAL", 20)


calibration = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
patient = pytest.mark.timeout(3600)


@pytest.mark.slow
@needs_jit
@calibration
@patient
@over_models
def test_sbc(name, rng, quick_start):
    """Few simulations, with no twin that they catch; those of the parts are caught by Geweke and drift."""
    p = sbc(MODELS[name], 80, rng)
    assert p.min() > 1e-4, p


# bits


class Backwards(Serial):
    """The last block first."""

    def map(self, function, items):
        return iter([function(item) for item in reversed(list(items))][::-1])


def corpus():
    shape = (600, 12, 5, 1100) if JIT else (20, 2, 3, 520)
    counts = small_corpus(*shape)[1]
    seeds = (Seed(3, 1, 30.0), Seed(7, 0, 10.0))
    return default_model(seeds, counts.shape[1], 0.05, shape[2]), counts


RUN = Gibbs(6, 8, n_chains=2) if JIT else Gibbs(1, 1, n_chains=1)


def same(left, right):
    for name in ("mean", "cov", "topics", "share"):
        np.testing.assert_array_equal(left[name], right[name])
    np.testing.assert_array_equal(left.running("proportions"), right.running("proportions"))


@pytest.mark.parametrize("execution", [Threads(2), Threads(4), Backwards()][: 3 if JIT else 1])
def test_threads_and_the_order_of_blocks_leave_the_bits(execution):
    model, counts = corpus()
    shards = model.shards(counts, 256 if JIT else 8)
    assert len(shards) > 2
    same(RUN.run(model, shards, seed=3, execution=execution), RUN.run(model, shards, seed=3))


@needs_jit
def test_moves_are_accepted_in_these_runs():
    """Else the tests of bits would not be of them."""
    model, counts = corpus()
    shards = model.shards(counts, 256)
    parameters = model.initial_parameters(shards, Key(3))
    prior = model.prepare(parameters)
    rows = [model.initial_rows(prior, shard, Key(3)) for shard in shards]
    tried = [moved(model, parameters, shards, rows, Key(3, i))[0] for i in range(1, 9)]
    assert any((each.mean != parameters.mean).any() for each in tried)
    assert any((each.cov != parameters.cov).any() for each in tried)


PLUG = "pulled the plug"


@pytest.mark.parametrize("sweep", [3, 8, 10] if JIT else [1])
def test_a_run_that_was_cut_goes_on_in_the_same_bits(tmp_path, sweep):
    model, counts = corpus()
    run = partial(RUN.run, model, model.shards(counts, 256), seed=9, every=0.0)

    def tell(progress):
        if progress.sweep == sweep:
            raise RuntimeError(PLUG)

    with pytest.raises(RuntimeError, match=PLUG):
        run(checkpoint=tmp_path, progress=tell)
    same(run(checkpoint=tmp_path, resume=True), run())
