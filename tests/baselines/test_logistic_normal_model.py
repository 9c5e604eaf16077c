"""Logistic-normal topics: the sweep keeps the law, the bound is one, EM climbs, both find topics."""

import warnings
from dataclasses import dataclass, replace
from functools import partial

import numba
import numpy as np
import pytest
from scipy import optimize
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning

import naive_logistic
from joint import Law, first_and_second, one_sweep
from polystick.alignment import align
from polystick.baselines.logistic_normal import logistic_normal_topics
from polystick.conjugate import NormalInverseWishart
from polystick.gaussians.normal import Normal
from polystick.inference.execution import Threads
from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from polystick.keys import Key
from polystick.models.multinomial import RowFactors
from polystick.models.softmax_link import Softmax
from polystick.models.topic_factors import ExpectedPrior, TopicFactor
from polystick.models.topic_shares import ExpectedNormal
from statistics_tools import MAX_Z, z_scores

JIT = not numba.config.DISABLE_JIT
needs_jit = pytest.mark.skipif(not JIT, reason="thousands of sweeps need the compiler")
MEAN = np.array([0.5, -0.5, 0.2])
SCALE = np.array([[6.0, 2.0, 0.0], [2.0, 9.0, -1.0], [0.0, -1.0, 7.0]])
PRIOR = NormalInverseWishart(MEAN, 1.5, SCALE, 13.0)
MODEL = logistic_normal_topics(4, 0.7, PRIOR)
TOTALS = np.array([0, 1, 4, 25])


@pytest.fixture
def rng():
    return np.random.default_rng(2007)


# the sweep against the law


def sweep(model, everything, i, rng):
    parameters, rows, counts = everything
    (shard,) = model.shards(counts)
    parameters, rows = one_sweep(model, parameters, rows, shard, i)
    return parameters, rows, model.simulate_counts(parameters, rows, TOTALS, rng)


def summarise(everything):
    """Use bounded or light-tailed functions, so that their averages have standard errors."""
    parameters, (psi, _), counts = everything
    sd = np.sqrt(np.diag(parameters.cov))
    correlation = (parameters.cov / np.outer(sd, sd))[np.triu_indices(3, 1)]
    topics = MODEL.describe_parameters(parameters)["topics"][:, :2]
    squashed = np.tanh(psi[[0, 2, 3]] / 3)
    shares = counts[3, :2] / TOTALS[3]
    values = [parameters.mean, np.log(sd), correlation, topics[0], topics[:, 0], squashed, shares]
    return first_and_second(values)


JOINT = Law(lambda rng: MODEL.simulate(TOTALS, rng), summarise)


@needs_jit
@pytest.mark.parametrize("n_iter", [2500, pytest.param(60_000, marks=pytest.mark.slow)])
def test_geweke(n_iter, rng):
    z = JOINT.z(partial(sweep, MODEL), n_iter, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@dataclass(frozen=True)
class NextTopic(Softmax):
    """The counts of topic t are those of topic t + 1."""

    def draw(self, law, ids, counts, psi, key):
        return super().draw(law, ids, np.roll(counts, -1, axis=1), psi, key)


@dataclass(frozen=True)
class OneStream(Softmax):
    """Documents share their random numbers."""

    def draw(self, law, ids, counts, psi, key):
        return super().draw(law, np.zeros_like(ids), counts, psi, key)


@needs_jit
@pytest.mark.parametrize("wrong", [NextTopic, OneStream])
def test_geweke_rejects_a_sabotaged_sweep(wrong, rng):
    assert JOINT.worst_z(partial(sweep, replace(MODEL, link=wrong(3))), 2500, rng) > MAX_Z


def test_a_new_order_of_topics_is_but_new_labels(rng):
    parameters, rows, _ = MODEL.simulate(TOTALS, rng)
    order = np.array([2, 0, 1])
    renamed = MODEL.rename(parameters, order, Key(0))
    described, before = map(MODEL.describe_parameters, (renamed, parameters))
    np.testing.assert_array_equal(described["topics"], before["topics"][order])
    psi = MODEL.link.rename(rows.psi, renamed.move)
    np.testing.assert_array_equal(psi, rows.psi[:, order])
    old, new = (Normal(p.mean, p.cov).log_density(x) for p, x in
                ((parameters, rows.psi), (renamed, psi)))  # fmt: skip
    np.testing.assert_allclose(new, old, rtol=1e-10)


def test_the_link_and_back(rng):
    psi = rng.normal(size=(5, 3))
    pi = MODEL.link.shares(psi)
    np.testing.assert_allclose(pi.sum(axis=1), 1.0)
    back = MODEL.link.psi(np.log(pi))
    np.testing.assert_allclose(MODEL.link.shares(back), pi)
    np.testing.assert_allclose(back.mean(axis=1), MEAN.mean())


def test_population_follows_the_law():
    described = {"mean": np.array([0.3, -0.4, 0.1]), "cov": SCALE / 10}
    log_pi = MODEL.log_population(described, 4096)
    ratio = log_pi[:, 0] - log_pi[:, 1]
    np.testing.assert_allclose(np.exp(log_pi).sum(axis=1), 1.0)
    assert ratio.mean() == pytest.approx(0.7, abs=0.01)
    assert ratio.var() == pytest.approx((6 + 9 - 4) / 10, rel=0.02)


# one document under given parameters: quadrature

TOPICS = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
LAW = np.array([0.3, -0.2]), np.array([[1.5, 0.5], [0.5, 0.8]])
DOCUMENTS = np.array([[3, 1, 0], [0, 0, 9], [20, 5, 14], [0, 0, 0]])
TWO = logistic_normal_topics(3, 0.1, NormalInverseWishart.weak(np.zeros(2), np.ones(2)))


def quadrature(counts, n_points=80):
    """Return the log evidence of a document and its expected shares of topics."""
    x, w = np.polynomial.hermite_e.hermegauss(n_points)
    noise = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    weight = np.outer(w, w).ravel() / w.sum() ** 2
    pi = softmax(LAW[0] + noise @ np.linalg.cholesky(LAW[1]).T, axis=1)
    likelihood = weight * np.exp(np.log(pi @ TOPICS) @ counts)
    return np.log(likelihood.sum()), likelihood @ pi / likelihood.sum()


def given_law(cov=LAW[1]):
    """Return what local steps of EM share, at given parameters."""
    constant = -0.5 * np.linalg.slogdet(cov)[1]
    law = ExpectedNormal(Normal(LAW[0], cov), constant)
    return ExpectedPrior(law, lambda vocabulary: TOPICS.T[vocabulary])


def climb(prior, counts, n_sweeps=30):
    (shard,) = TWO.shards(np.atleast_2d(counts))
    rows = TWO.initial_row_factors(prior, shard)
    for _ in range(n_sweeps):
        rows, statistics = TWO.update_rows(prior, shard, rows, None)
    return shard, rows, statistics


def best_bound(counts):
    """Maximise the bound by another program, with the topics of tokens at their best."""

    def negative(x):
        location, variance = x[:2], np.exp(x[2:])
        words = counts @ np.log(np.exp(location) @ TOPICS)
        totals = np.array([counts.sum(), 0.0])
        rest = naive_logistic.bound(totals, np.linalg.inv(LAW[1]), LAW[0], location, variance)
        return -(words + rest - totals @ location)

    return -optimize.minimize(negative, np.zeros(4), method="BFGS").fun


@pytest.mark.parametrize("counts", DOCUMENTS)
def test_bound_lies_below_the_evidence(counts):
    """It is loose, by design: the log of a mean of exponentials stands for a mean of logs."""
    evidence, _ = quadrature(counts)
    bound = climb(given_law(), counts)[2].value
    assert bound < evidence + 1e-9
    assert bound == pytest.approx(best_bound(counts), abs=1e-5)


def test_bound_of_an_empty_document_is_exact_for_independent_topics():
    """Catches a lost constant: the evidence is 1, and q can be the prior."""
    cov = np.diag([1.5, 0.8])
    assert climb(given_law(cov), DOCUMENTS[3])[2].value == pytest.approx(0.0, abs=1e-8)


def test_bound_nears_the_evidence_where_topics_hardly_vary():
    """Catches lost terms of the words: with cov near 0 nothing is left to approximate."""
    cov = 1e-6 * np.eye(2)
    expected = np.log(softmax(LAW[0]) @ TOPICS) @ DOCUMENTS[2]
    assert climb(given_law(cov), DOCUMENTS[2])[2].value == pytest.approx(expected, abs=1e-3)


def test_described_rows_follow_their_factors():
    shard, rows, _ = climb(given_law(), DOCUMENTS)
    drawn = TWO.draw_described_rows(given_law(), shard, rows, 1024)["proportions"]
    assert drawn.shape == (1024, 4, 2)
    gap = np.log(drawn[..., 0]) - np.log(drawn[..., 1])
    np.testing.assert_allclose(gap.mean(axis=0), rows.mean[:, 0] - rows.mean[:, 1], atol=0.02)
    np.testing.assert_allclose(gap.var(axis=0), rows.variance.sum(axis=1), rtol=0.02)


def test_documents_climb_the_same_in_any_company():
    prior = given_law()
    together = climb(prior, DOCUMENTS, 2)[1]
    for i, counts in enumerate(DOCUMENTS):
        alone = climb(prior, counts, 2)[1]
        np.testing.assert_array_equal(alone.mean[0], together.mean[i])
        np.testing.assert_array_equal(alone.variance[0], together.variance[i])


@pytest.mark.parametrize("counts", DOCUMENTS)
def test_folding_gives_the_posterior_of_the_shares(counts):
    """Many copies of one document, each with a stream of its own."""
    n = 4000 if JIT else 60
    described = {"mean": LAW[0], "cov": LAW[1], "topics": TOPICS}
    prior = TWO.fold_prior(described)
    (shard,) = TWO.shards(np.tile(counts, (n, 1)), size=n)
    rows = TWO.prior_rows(prior, shard, Key(1))
    for i in range(30 if JIT else 10):
        rows = TWO.fold(prior, shard, rows, Key(1, i))
    _, expected = quadrature(counts)
    assert np.abs(z_scores(TWO.proportions_of(rows)[:, 0], expected[0])).max() < MAX_Z


# variational EM


def bound_trace(model, counts, n_sweeps):
    settings = MeanField(tolerance=1e-13, max_sweeps=n_sweeps, n_draws=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = settings.run(model, model.shards(counts), seed=0)
    return posterior.tree["optimisation"]["elbo"].values


def corpus(rng):
    n = 200 if JIT else 12
    totals = np.concatenate([[0, 1], rng.integers(0, 60 if JIT else 15, n)])
    return MODEL.simulate(totals, rng)[2]


def test_em_never_lowers_the_bound(rng):
    trace = bound_trace(MODEL, corpus(rng), 60 if JIT else 15)
    assert (np.diff(trace) > -1e-9 * np.abs(trace[1:])).all()
    assert len(trace) > 10
    assert trace[-1] > trace[0]


@pytest.mark.parametrize("part", ["mean", "cov", "topics"])
def test_no_other_parameters_are_better_for_these_documents(part, rng):
    """The M step is the top of the bound plus the log prior, the documents' factors held."""
    (shard,) = MODEL.shards(corpus(rng), size=1000)
    n_topics = MODEL.n_topics
    factor = TopicFactor(PRIOR, rng.gamma(1.0, size=(4, n_topics)) + 0.7)
    prior = MODEL.expect(factor)
    rows, statistics = MODEL.update_rows(
        prior, shard, MODEL.initial_row_factors(prior, shard), None
    )
    best = MODEL.update_factor(factor, statistics)

    def objective(factor):
        """Hold q(z) too: its share of the bound is sum of expected counts times log topics."""
        prior = MODEL.expect(factor)
        words = statistics.words.table() * np.log(prior.words(np.arange(4)))
        documents = MODEL.link.bound_but_for_words(prior.law, shard, rows)
        return MODEL.elbo(factor, statistics._replace(value=words.sum() + documents))

    top = objective(best)
    for by in (0.999, 1.001):
        normal, topics = best.shares, best.topics
        if part == "topics":
            topics = topics * by ** rng.integers(0, 2, topics.shape)
        mean = normal.mean * (by if part == "mean" else 1.0)
        scale = normal.scale * (by if part == "cov" else 1.0)
        moved = NormalInverseWishart(mean, normal.strength, scale, normal.degrees)
        assert objective(TopicFactor(moved, topics)) < top
    assert objective(factor) < top


def test_em_draws_its_mode(rng):
    """What is recorded of parameters is where EM ended; no word has probability 0."""
    counts = corpus(rng)
    counts[:, 3] = 0
    posterior = MeanField(max_sweeps=1000, n_draws=3).run(MODEL, MODEL.shards(counts), seed=0)
    draws = posterior.flat("topics")
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_allclose(draws[0].sum(axis=1), 1.0, rtol=1e-5)
    assert (draws > 0).all()
    assert posterior.flat("share")[0].sum() == pytest.approx(1.0)


# both on a corpus


def test_bits_are_the_same_on_any_number_of_threads(rng):
    counts = corpus(rng)
    n_draws = 5 if JIT else 1
    for inference in (Gibbs(n_draws, 2, n_chains=2), MeanField(tolerance=50.0, n_draws=1)):
        runs = [
            inference.run(MODEL, MODEL.shards(counts, 4), seed=3, execution=execution)
            for execution in (None, Threads(2), Threads(3))
        ]
        for run in runs[1:]:
            np.testing.assert_array_equal(run["topics"], runs[0]["topics"])
            np.testing.assert_array_equal(run["cov"], runs[0]["cov"])


@needs_jit
@pytest.mark.parametrize("inference", [Gibbs(100, 400, n_chains=1), MeanField(n_draws=2)])
def test_topics_and_their_correlations_are_found(inference, rng):
    """Three topics with words of their own, 0.9 apart; the first two keep company."""
    n, own = 250, 8
    topics = np.full((3, 3 * own), 0.1 / (3 * own))
    for t in range(3):
        topics[t, t * own : (t + 1) * own] += 0.9 / own
    cov = np.array([[1.0, 0.8, -0.8], [0.8, 1.0, -0.8], [-0.8, -0.8, 1.0]]) * 1.5
    psi = rng.multivariate_normal(np.zeros(3), cov, size=n)
    counts = rng.multinomial(80, softmax(psi, axis=1) @ topics)
    prior = NormalInverseWishart.weak(np.zeros(3), np.ones(3))
    model = logistic_normal_topics(3 * own, 0.05, prior)
    posterior = inference.run(model, model.shards(counts), seed=1)
    found = posterior.flat("topics").mean(axis=0)
    (_, order), _ = align(np.stack([topics, found]).astype(np.float32))
    assert 0.5 * np.abs(found[order] - topics).sum(axis=1).max() < 0.15
    described = {name: posterior.flat(name)[-1] for name in ("mean", "cov")}
    log_pi = model.log_population(described)[:, order]
    expected = np.corrcoef(log_softmax(psi, axis=1), rowvar=False)
    correlation = np.corrcoef(log_pi, rowvar=False)
    assert (np.sign(correlation) == np.sign(expected)).all()
    pi = posterior.running("proportions")[0][:, order]
    assert np.corrcoef(pi.ravel(), softmax(psi, axis=1).ravel())[0, 1] > 0.97


def test_state_in_state_out(rng):
    """No step writes into the state it is given."""
    parameters, rows, counts = MODEL.simulate(TOTALS, rng)
    (shard,) = MODEL.shards(counts)
    before = rows.psi.copy()
    MODEL.draw_rows(MODEL.prepare(parameters), shard, rows, Key(1))
    np.testing.assert_array_equal(rows.psi, before)
    prior = MODEL.expect(TopicFactor(PRIOR, np.ones((4, 3))))
    factors = RowFactors(np.zeros((4, 3)), np.ones((4, 3)))
    MODEL.update_rows(prior, shard, factors, None)
    np.testing.assert_array_equal(factors.mean, 0.0)
    np.testing.assert_array_equal(factors.variance, 1.0)
