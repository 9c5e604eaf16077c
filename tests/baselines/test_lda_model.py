"""Latent Dirichlet allocation: the sweep is right, and would be caught if not."""

import itertools
from dataclasses import dataclass, replace
from functools import partial

import numba
import numpy as np
import pytest
from scipy.special import gammaln

from joint import Law, first_and_second, one_sweep
from polystick.alignment import align
from polystick.baselines.lda import DirichletTopics
from polystick.inference.execution import Threads
from polystick.inference.gibbs import Gibbs
from polystick.inference.moving import moved
from polystick.keys import Key
from polystick.models import documents, folding, warm_start
from statistics_tools import MAX_Z, z_scores

JIT = not numba.config.DISABLE_JIT
needs_jit = pytest.mark.skipif(not JIT, reason="so many sweeps need the compiler")
ALPHA = np.array([0.2, 0.5, 1.0])
MODEL = DirichletTopics(3, 5, 0.15, ALPHA)
TOTALS = np.array([0, 1, 2, 4, 6])


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


# the sweep against the law


def sweep(model, everything, i, rng):
    parameters, rows, counts = everything[:3]
    (shard,) = model.shards(counts)
    parameters = parameters._replace(totals=np.zeros(model.n_topics))  # the words are new
    parameters, rows = one_sweep(model, parameters, rows, shard, i)
    seen = look(model, parameters, rows, counts)
    document = np.repeat(np.arange(len(TOTALS)), TOTALS)
    rows, counts = model.simulate_counts(document, rows.assignments, seen[0], len(TOTALS), rng)
    return parameters, rows, counts, summarise(seen)


def simulate(rng):
    everything = MODEL.simulate(TOTALS, rng)
    return *everything, summarise(look(MODEL, *everything))


def look(model, parameters, rows, counts):
    """Return topics and shares as recorded, assignments and the counts they are given."""
    (shard,) = model.shards(counts)
    topics = model.describe_parameters(parameters)["topics"].astype(float)
    return topics, model.describe_rows(shard, rows)["proportions"], rows.assignments, counts


def summarise(seen):
    topics, shares, assignments, counts = seen
    sizes = np.bincount(assignments, minlength=3) / TOTALS.sum()
    same = np.mean(assignments[-TOTALS[-1] :, None] == assignments[-TOTALS[-1] :])
    words = [counts[-2:, 0] / TOTALS[-2:], np.square(counts.sum(axis=0) / TOTALS.sum()).sum()]
    products = [shares[-1, 2] * topics[2, 0], shares[-1, 0] * topics[0, 0]]
    spread = [np.square(sizes).sum(), np.sum(sizes == 0), sizes[:2], same]
    return first_and_second(
        [topics[:2, :2], shares[0, :1], shares[-1, :2], *words, *spread, products]
    )


LAW = Law(simulate, lambda everything: everything[-1])


@needs_jit
@pytest.mark.parametrize("n_iter", [4000, pytest.param(40_000, marks=pytest.mark.slow)])
def test_geweke(n_iter, rng):
    z = LAW.z(partial(sweep, MODEL), n_iter, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


# a token that is not taken out is caught with the kernel: it changes the law here by too little


@dataclass(frozen=True)
class DoubledAlpha(DirichletTopics):
    """The sweep believes in twice the alpha."""

    def prepare(self, parameters):
        return super().prepare(parameters)._replace(alpha=2 * parameters.alpha)


@dataclass(frozen=True)
class OtherConcentration(DirichletTopics):
    """The sweep believes in smoother topics."""

    def draw_rows(self, prior, shard, rows, key):
        return replace(MODEL, concentration=1.0).draw_rows(prior, shard, rows, key)


@dataclass(frozen=True)
class ForgottenWords(DirichletTopics):
    """Topics are drawn from their prior."""

    def describe_parameters(self, parameters):
        nothing = np.zeros_like(parameters.word_topics)
        return super().describe_parameters(parameters._replace(word_topics=nothing))


@dataclass(frozen=True)
class StaleWords(DirichletTopics):
    """Topics are drawn given the counts of the sweep before."""

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        fresh = super().draw_parameters(parameters, statistics, key)
        return fresh._replace(word_topics=parameters.word_topics, move=parameters.move)


@needs_jit
@pytest.mark.parametrize("wrong", [DoubledAlpha, OtherConcentration, ForgottenWords, StaleWords])
def test_geweke_rejects_a_sabotaged_sweep(wrong, rng):
    assert LAW.worst_z(partial(sweep, wrong(3, 5, 0.15, ALPHA)), 3000, rng) > MAX_Z


def test_simulated_state_fits_its_counts(rng):
    parameters, rows, counts = MODEL.simulate(np.array([5, 0, 9]), rng)
    (shard,) = MODEL.shards(counts)
    np.testing.assert_array_equal(counts.sum(axis=1), [5, 0, 9])
    np.testing.assert_array_equal(parameters.word_topics.sum(axis=1), counts.sum(axis=0))
    again = warm_start.assigned(shard, rows.assignments, 3, 5)
    np.testing.assert_array_equal(parameters.word_topics, again.word_topics)


# chains


def corpus(rng, n=300, n_tokens=50):
    """Return topics (4, 32), shares (n, 4) and counts."""
    topics = np.repeat(np.eye(4), 8, axis=1) * rng.gamma(2.0, size=(4, 32)) + 0.02
    topics /= topics.sum(axis=1, keepdims=True)
    shares = rng.dirichlet([0.2, 0.4, 0.6, 0.8], n)
    return topics, shares, rng.multinomial(n_tokens, shares @ topics)


def test_known_topics_shares_and_alpha_are_found(rng):
    n_burn, n = (150, 300) if JIT else (30, 40)
    topics, shares, counts = corpus(rng, n)
    model = DirichletTopics(4, 32, 0.1)
    posterior = Gibbs(20, n_burn, n_chains=2).run(model, model.shards(counts), seed=1)
    for chain in posterior["topics"].mean(axis=1):
        order, similarity = align([topics, chain])
        assert similarity[1].min() > (0.97 if JIT else 0.9)
    np.testing.assert_allclose(posterior["topics"].sum(axis=-1), 1.0, rtol=1e-5)
    found = posterior.running("proportions")[0][:, order[1]]
    assert np.corrcoef(found.ravel(), shares.ravel())[0, 1] > 0.95
    alpha = posterior["alpha"][-1, -1, order[1]]
    assert (np.diff(alpha) > 0).all() or not JIT
    assert (posterior["alpha"] == posterior["alpha"][:, :1]).all()  # learned while burning in only


def test_chains_have_common_labels(rng):
    _, _, counts = corpus(rng, 300 if JIT else 40)
    model = DirichletTopics(4, 32, 0.1)
    n_burn = 60 if JIT else 20
    posterior = Gibbs(10, n_burn, n_chains=3).run(model, model.shards(counts), seed=1)
    means = posterior["topics"].mean(axis=1)
    order, _ = align(means)
    np.testing.assert_array_equal(order, np.tile(np.arange(4), (3, 1)))
    assert np.abs(posterior["share"].mean(axis=1).std(axis=0)).max() < 0.05


def test_alpha_that_is_given_stays(rng):
    _, _, counts = corpus(rng, 20)
    for alpha in (0.3, [0.1, 0.2, 0.3, 0.4]):
        model = DirichletTopics(4, 32, 0.1, alpha)
        posterior = Gibbs(3, 12, n_chains=1).run(model, model.shards(counts), seed=1)
        np.testing.assert_array_equal(posterior["alpha"][0], np.broadcast_to(alpha, (3, 4)))


def test_bits_depend_neither_on_threads_nor_on_other_chains(rng):
    _, _, counts = corpus(rng, 40 if JIT else 10)
    model = DirichletTopics(4, 32, 0.1)
    settings = [(1, None), (3, None), (3, Threads(2))]
    runs = [
        Gibbs(3, 0, n_chains=n, keep=("proportions",)).run(
            model, model.shards(counts), seed=5, execution=threads
        )
        for n, threads in settings
    ]
    for name in ("topics", "share", "proportions"):
        np.testing.assert_array_equal(runs[0][name][0], runs[1][name][0])
        np.testing.assert_array_equal(runs[1][name], runs[2][name])
    assert not np.array_equal(runs[1]["topics"][0], runs[1]["topics"][1])


def test_a_run_goes_on_from_its_checkpoint(rng, tmp_path):
    _, _, counts = corpus(rng, 20)
    model = DirichletTopics(4, 32, 0.1)
    shards = model.shards(counts)
    whole = Gibbs(4, 6, n_chains=2).run(model, shards, seed=5)
    Gibbs(2, 6, n_chains=2).run(model, shards, seed=5, checkpoint=tmp_path)
    resumed = Gibbs(4, 6, n_chains=2).run(model, shards, seed=5, checkpoint=tmp_path, resume=True)
    for name in ("topics", "share", "alpha"):
        np.testing.assert_array_equal(whole[name], resumed[name])
    for left, right in zip(whole.running("proportions"), resumed.running("proportions")):
        np.testing.assert_array_equal(left, right)


def test_renamed_topics_go_on_as_they_would_have(rng):
    parameters, rows, counts = MODEL.simulate(np.full(30, 20), rng)
    shards = MODEL.shards(counts)
    new = np.array([2, 0, 1])  # topic t is now new[t]
    old = np.argsort(new)
    wide = np.concatenate([old, np.arange(3, 8)])
    twin = parameters._replace(
        alpha=parameters.alpha[old],
        word_topics=parameters.word_topics[:, wide],
        totals=parameters.totals[old],
    )
    first, second = MODEL.agree([parameters, twin], Key(0))
    for name in ("alpha", "word_topics"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    renamed = rows._replace(assignments=new[rows.assignments].astype(np.int32))
    second, (renamed,) = moved(MODEL, second, shards, [renamed], Key(3, 1))
    np.testing.assert_array_equal(second.move, np.arange(3))
    expected, _ = MODEL.draw_rows(MODEL.prepare(first), shards[0], rows, Key(3, 1))
    found, statistics = MODEL.draw_rows(MODEL.prepare(second), shards[0], renamed, Key(3, 1))
    np.testing.assert_array_equal(found.assignments, expected.assignments)
    after = MODEL.draw_parameters(second, statistics, Key(3, 1))
    np.testing.assert_array_equal(after.move, np.arange(3))


def test_a_sweep_leaves_its_input_alone(rng):
    parameters, rows, counts = MODEL.simulate(np.full(30, 20), rng)
    (shard,) = MODEL.shards(counts)
    before = rows.assignments.copy()
    fresh, statistics = MODEL.draw_rows(MODEL.prepare(parameters), shard, rows, Key(3, 1))
    np.testing.assert_array_equal(rows.assignments, before)
    assert not np.array_equal(fresh.assignments, before)
    assert statistics.value < 0


def test_counts_that_are_carried_along_are_those_of_the_assignments(rng):
    parameters, rows, counts = MODEL.simulate(np.full(30, 20), rng)
    (shard,) = MODEL.shards(counts)
    for sweep in range(1, 4):
        rows, statistics = MODEL.draw_rows(MODEL.prepare(parameters), shard, rows, Key(3, sweep))
        parameters = MODEL.draw_parameters(parameters, statistics, Key(3, sweep))
    state = warm_start.assigned(shard, rows.assignments, MODEL.n_topics, MODEL.n_words)
    np.testing.assert_array_equal(parameters.word_topics, state.word_topics)
    np.testing.assert_array_equal(parameters.totals, state.totals)


def test_a_corpus_without_words_runs():
    model = DirichletTopics(3, 5, 0.1)
    posterior = Gibbs(2, 5, n_chains=1).run(model, model.shards(np.zeros((4, 5), int)), seed=0)
    assert np.isfinite(posterior["topics"]).all()


# new documents under fixed topics


TOPICS = np.array([[6, 2, 1, 1, 0], [1, 1, 1, 6, 1], [0.2, 5.0, 3.0, 1.0, 0.8]]) / 10
WORDS = np.array([2, 0, 1, 1, 0])
N_TWINS = 20_000 if JIT else 300


def exact_document(counts):
    """Return p(words) and the mean of the shares given the words, over all assignments."""
    tokens, probability, shares = np.repeat(np.arange(5), counts), 0.0, 0.0
    for topics in itertools.product(range(3), repeat=len(tokens)):
        table = np.bincount(topics, minlength=3)
        log_prior = (gammaln(table + ALPHA) - gammaln(ALPHA)).sum()
        log_prior += gammaln(ALPHA.sum()) - gammaln(ALPHA.sum() + len(tokens))
        weight = np.exp(log_prior) * np.prod(TOPICS[list(topics), tokens])
        probability += weight
        shares = shares + weight * (table + ALPHA) / (len(tokens) + ALPHA.sum())
    return probability, shares / probability


@pytest.fixture
def twins():
    """Many copies of one document, as a block."""
    (block,) = MODEL.shards(np.tile(WORDS, (N_TWINS, 1)), N_TWINS)
    return block


@pytest.fixture
def fold_prior():
    return MODEL.fold_prior({"alpha": ALPHA, "topics": TOPICS})


def test_folding_keeps_the_law_of_the_shares(twins, fold_prior):
    rows = MODEL.initial_rows(fold_prior, twins, Key(1))
    np.testing.assert_allclose(rows.proportions[7], 1.0 / len(ALPHA))
    for i in range(12):
        rows = MODEL.fold(fold_prior, twins, rows, Key(2, i))
    _, expected = exact_document(WORDS)
    assert np.abs(z_scores(MODEL.proportions_of(rows), expected)).max() < MAX_Z


def test_shares_without_words_follow_the_prior(twins, fold_prior):
    shares = MODEL.prior_rows(fold_prior, twins, Key(1)).proportions
    total = ALPHA.sum()
    second = ALPHA * (ALPHA + 1) / (total * (total + 1))
    assert np.abs(z_scores(shares, ALPHA / total)).max() < MAX_Z
    assert np.abs(z_scores(shares**2, second)).max() < MAX_Z


def test_annealed_weights_average_to_the_probability_of_the_words(twins, fold_prior):
    weights = np.exp(folding.annealed_log_weights(MODEL, [fold_prior], twins, 3, n_stages=4))[0]
    probability, _ = exact_document(WORDS)
    assert abs(z_scores(weights, probability)) < MAX_Z


def test_likelihood_is_that_of_the_means_given_assignments(rng):
    """With many tokens in each document the order of the sweep hardly matters."""
    parameters, rows, counts = MODEL.simulate(np.full(50, 200 if JIT else 40), rng)
    (shard,) = MODEL.shards(counts)
    rows, statistics = MODEL.draw_rows(MODEL.prepare(parameters), shard, rows, Key(3, 1))
    shares = warm_start.count_documents(shard, rows.assignments, 3) + ALPHA
    topics = statistics.word_topics[:, :3].T + MODEL.concentration
    prior = MODEL.fold_prior({"alpha": ALPHA, "topics": topics / topics.sum(axis=1)[:, None]})
    (block,) = documents.cut(counts, len(counts))
    expected = folding.log_probabilities(
        MODEL, block, shares / shares.sum(axis=1)[:, None], prior
    ).sum()
    assert MODEL.log_likelihood(statistics) == pytest.approx(expected, rel=0.01)
