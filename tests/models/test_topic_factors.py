"""The variational half of correlated topics: the bound is one, climbs, and is what it says it is."""

import pickle
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, log_expit
from sklearn.exceptions import ConvergenceWarning

from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.inference.factors import flattened
from polystick.inference.mean_field import MeanField
from polystick.inference.stochastic import StochasticVI
from polystick.keys import Key
from polystick.models import topic_shares
from polystick.models.multinomial import RowFactors
from polystick.models.topic_factors import TopicFactor, VariationalTopicModel
from polystick.models.topic_shares import Sticks, Sums
from polystick.models.topic_words import ExpectedWords
from polystick.models.topics import Statistics
from statistics_tools import MAX_Z, z_scores
from topic_tools import (
    JIT,
    PAIR,
    STICKS,
    TREE,
    Factors,
    best_assignments,
    best_psi,
    bound,
    bound_of_log_share,
    correlated_topics,
    hermite,
    log_evidence,
    over_models,
    small_corpus,
    student_points,
)


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


def random_factor(model, rng):
    """Return a factor that nobody would choose."""
    k = model.link.n_dims
    root = rng.normal(size=(k, k))
    normal = NormalInverseWishart(rng.normal(size=k), 3.0, root @ root.T + 4 * np.eye(k), k + 6.0)
    return TopicFactor(
        normal, rng.gamma(1.0, 3.0, size=(model.words.n_words, model.n_topics)) + 0.1
    )


def random_rows(link, n, rng):
    shape = (n, link.n_dims)
    return RowFactors(rng.normal(size=shape), rng.gamma(2.0, size=shape))


# the bound of E log pi


def test_bound_of_expected_log_shares_as_in_the_reference_sheet(rng):
    """Sticks: [log sigma(c_t) + (m_t - c_t) / 2] + sum over j < t of [log sigma(c_j) - (m_j + c_j) / 2]."""
    link = Sticks(Decomposition.sticks(range(5)))
    rows = random_rows(link, 7, rng)
    found = link.expected_log_shares(rows)
    for d, (m, v) in enumerate(zip(*rows)):
        c = np.sqrt(m**2 + v)
        on, past = log_expit(c) + (m - c) / 2, log_expit(c) - (m + c) / 2
        expected = [sum(past[:t]) + (on[t] if t < 4 else 0) for t in range(5)]
        np.testing.assert_allclose(found[d], expected, rtol=1e-12)


@over_models
def test_what_a_step_shares_may_be_sent_to_another_process(model, rng):
    counts, factor = corpus(model, rng), random_factor(model, rng)
    (shard,) = model.shards(counts)
    prior = model.expect(factor)
    sent = pickle.loads(pickle.dumps(prior))
    rows = random_rows(model.link, len(counts), rng)
    here, there = (model.update_rows(p, shard, rows, Key(1)) for p in (prior, sent))
    np.testing.assert_array_equal(here[0].mean, there[0].mean)
    assert here[1].value == there[1].value


@over_models
def test_bound_of_expected_log_shares_on_any_tree(model, rng):
    rows = random_rows(model.link, 5, rng)
    found = model.link.expected_log_shares(rows)
    for d, (m, v) in enumerate(zip(*rows)):
        naive = [bound_of_log_share(model, m, v, t) for t in range(model.n_topics)]
        np.testing.assert_allclose(found[d], naive, rtol=1e-12)


def test_bound_of_expected_log_shares_lies_below_them():
    """The worked case of the sheet: m = 2, v = 4 gives -0.472 for E log sigma(psi) = -0.356."""
    rows = RowFactors(np.array([[2.0], [-1.0], [0.0]]), np.array([[4.0], [0.5], [1e-6]]))
    found = Sticks(Decomposition.sticks([0, 1])).expected_log_shares(rows)
    assert found[0, 0] == pytest.approx(-0.472, abs=5e-4)
    for d, (m, v) in enumerate(zip(rows.mean[:, 0], rows.variance[:, 0])):
        law = stats.norm(m, np.sqrt(v))
        exact = [law.expect(lambda x, side=side: log_expit(side * x)) for side in (1, -1)]
        assert (found[d] <= np.array(exact) + 1e-9).all()
        assert (found[d] > np.array(exact) - 0.2).all()


# the whole bound against its twin


def naive_update(model, factor, counts, rows, n_steps):
    """Do as update_rows, with dense covariances, and return all factors."""
    cov = np.stack([np.diag(v) for v in rows.variance])
    now = Factors(rows.mean, cov, best_assignments(model, factor, rows.mean, cov))
    for _ in range(n_steps):
        mean, cov = best_psi(model, factor, counts, now)
        now = Factors(mean, cov, best_assignments(model, factor, mean, cov))
    return now


def corpus(model, rng, n=6):
    counts = model.simulate(rng.integers(0, 12, n), rng)[2]
    counts[[0, -1]] = 0
    return counts


@over_models
def test_update_of_rows_and_value_equal_their_twins(model, rng, monkeypatch):
    monkeypatch.setattr(topic_shares, "LOCAL_CHANGE", 0.0)
    counts, factor = corpus(model, rng), random_factor(model, rng)
    rows = random_rows(model.link, len(counts), rng)
    (shard,) = model.shards(counts)
    updated, statistics = model.update_rows(model.expect(factor), shard, rows, None)
    twin = naive_update(model, factor, counts, rows, topic_shares.LOCAL_STEPS)
    tight = {"rtol": 1e-9, "atol": 1e-11}
    np.testing.assert_allclose(updated.mean, twin.mean, **tight)
    np.testing.assert_allclose(updated.variance, np.diagonal(twin.cov, axis1=1, axis2=2), **tight)
    outer = np.einsum("di,dj->ij", twin.mean, twin.mean) + twin.cov.sum(axis=0)
    np.testing.assert_allclose(statistics.shares.outer, outer, **tight)
    np.testing.assert_allclose(statistics.shares.total, twin.mean.sum(axis=0), **tight)
    words = np.einsum("dv,dvt->vt", counts, twin.topic)
    np.testing.assert_allclose(statistics.words.table(), words, **tight)
    found, naive = model.elbo(factor, statistics), bound(model, factor, counts, twin)
    assert found == pytest.approx(naive, rel=1e-10)


@over_models
def test_no_single_update_lowers_the_bound(model, rng):
    """q(z), q(psi) and the factor in turns; the twin's bound holds all else fixed."""
    counts, factor = corpus(model, rng), random_factor(model, rng)
    rows = random_rows(model.link, len(counts), rng)
    cov = np.stack([np.diag(v) for v in rows.variance])
    shape = (len(counts), model.words.n_words)
    now = Factors(rows.mean, cov, rng.dirichlet(np.ones(model.n_topics), size=shape))
    trace = [bound(model, factor, counts, now)]
    for _ in range(3):
        now = now._replace(topic=best_assignments(model, factor, now.mean, now.cov))
        trace.append(bound(model, factor, counts, now))
        now = Factors(*best_psi(model, factor, counts, now), now.topic)
        trace.append(bound(model, factor, counts, now))
        factor = model.update_factor(factor, statistics_of(model, counts, now))
        trace.append(bound(model, factor, counts, now))
    assert (np.diff(trace) > -1e-9 * np.abs(trace[1:])).all(), np.diff(trace)


def statistics_of(model, counts, factors):
    outer = np.einsum("di,dj->ij", factors.mean, factors.mean) + factors.cov.sum(axis=0)
    every = np.arange(model.words.n_words, dtype=np.int32)
    words = np.einsum("dv,dvt->vt", counts, factors.topic)
    table = ExpectedWords(model.words.n_words, every, words)
    return Statistics(Sums(len(counts), factors.mean.sum(axis=0), outer), table, 0.0)


# the bound climbs


def trace_of(model, shards, n_sweeps, seed=0):
    settings = MeanField(tolerance=1e-15, max_sweeps=n_sweeps, n_draws=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = settings.run(model, shards, seed=seed)
    return posterior.tree["optimisation"]["elbo"].values


def climbs(trace):
    assert len(trace) > 3
    return (np.diff(trace) > -1e-9 * np.abs(trace[1:])).all()


def same_parts(kind, model):
    """Return a model of another class."""
    return kind(model.words, model.shares, model.link, model.approximation)


@dataclass(frozen=True)
class RandomStart(VariationalTopicModel):
    def initial_factor(self, shards, key):
        return random_factor(self, key.generator("start"))


N_SWEEPS = 30 if JIT else 6
LARGE = small_corpus(400, 30, 6, 80) if JIT else small_corpus(20, 6, 3, 12)


@pytest.mark.parametrize("kind", [None, RandomStart])
def test_elbo_never_falls(kind):
    model, counts = LARGE
    model = model if kind is None else same_parts(kind, model)
    trace = trace_of(model, model.shards(counts), N_SWEEPS)
    assert climbs(trace), np.diff(trace).min()
    assert trace[-1] > trace[0]


def test_elbo_never_falls_on_a_tree(rng):
    counts = TREE.simulate(rng.integers(0, 40, 300 if JIT else 15), rng)[2]
    assert climbs(trace_of(TREE, TREE.shards(counts), N_SWEEPS))


def test_weights_need_not_be_whole(rng):
    model, counts = small_corpus()
    half, whole = (trace_of(model, model.shards(x), 8) for x in (counts * 0.5, counts * 1.0))
    assert climbs(half)
    assert half[-1] > whole[-1]


@dataclass(frozen=True)
class WrongKappa(Sticks):
    """kappa = successes - trials."""

    def _expected_potential(self, counts, rows):
        splits, potential = (
            self.decomposition.split(counts),
            super()._expected_potential(counts, rows),
        )
        return potential._replace(kappa=potential.kappa - 0.5 * splits.trials)


@dataclass(frozen=True)
class ForgottenVariance(Sticks):
    """tilt = |E psi|."""

    def _expected_potential(self, counts, rows):
        return super()._expected_potential(counts, rows._replace(variance=0 * rows.variance))

    def expected_log_shares(self, rows):
        return super().expected_log_shares(rows._replace(variance=0 * rows.variance))


@dataclass(frozen=True)
class LostPrior(VariationalTopicModel):
    """q(topics) is the counts' posterior under another concentration than the bound's."""

    def update_factor(self, factor, statistics):
        found = super().update_factor(factor, statistics)
        return replace(found, topics=found.topics + 1.0)


def test_the_bound_of_a_sabotaged_ascent_falls():
    model, counts = LARGE
    wrong_link = replace(model, link=WrongKappa(model.link.decomposition))
    for bad in (wrong_link, same_parts(LostPrior, model)):
        trace = trace_of(bad, bad.shards(counts), N_SWEEPS)
        assert np.diff(trace).min() < -1e-6 * np.abs(trace[-1]), bad


# the bound is below the evidence


SURE = NormalInverseWishart(
    np.array([0.4, -0.3]), 1e6, 1e7 * np.array([[1.0, 0.4], [0.4, 2.0]]), 1e7
)
THREE = correlated_topics(3, 0.7, SURE, Decomposition.sticks([0, 1, 2]))  # mean and cov are known
TINY = {
    "two topics": (PAIR, [1, 0, 2, 0]),
    "one token": (PAIR, [0, 1, 0, 0]),
    "three topics": (THREE, [2, 0, 1]),
    "four tokens": (THREE, [2, 1, 1]),
}


def evidence_of(model, counts):
    if model.n_topics == 2:
        return log_evidence(model, counts, *student_points(model))
    points, weights = hermite(40, 2)
    prior = model.shares.law
    root = np.linalg.cholesky(prior.scale / prior.degrees)
    return log_evidence(model, counts, model.link.shares(prior.mean + points @ root.T), weights)


@pytest.mark.parametrize("name", TINY)
def test_elbo_lies_below_the_evidence(name):
    model, counts = TINY[name]
    shards = model.shards(np.array([counts]))
    best = max(trace_of(model, shards, 100, seed)[-1] for seed in range(2))
    evidence = evidence_of(model, counts)
    assert best < evidence + 1e-7
    assert evidence - best < 0.6 * sum(counts)


def test_a_bound_with_too_small_a_tilt_is_none(rng):
    """Negative control: the bound of E log pi lies above it, and the ELBO above its twin."""
    wrong = ForgottenVariance(Decomposition.sticks([0, 1]))
    rows = RowFactors(np.array([[2.0]]), np.array([[4.0]]))
    exact = stats.norm(2.0, 2.0).expect(log_expit)
    assert wrong.expected_log_shares(rows)[0, 0] > exact + 0.1
    model, counts = LARGE
    right, wrong = (
        replace(model, link=kind(model.link.decomposition)) for kind in (Sticks, ForgottenVariance)
    )
    shards, factor = model.shards(counts), random_factor(model, rng)
    values = []
    for kind in (right, wrong):
        prior = kind.expect(factor)
        rows = kind.initial_row_factors(prior, shards[0])
        values.append(kind.update_rows(prior, shards[0], rows, None)[1].value)
    assert values[1] > values[0] + 1e-3 * abs(values[0])


# stochastic


class Whole(StochasticVI):
    def rate(self, step):
        return 1.0


@pytest.mark.parametrize("n", [1, 3, 6])
def test_one_full_batch_at_rate_one_is_mean_field(n):
    model, counts = small_corpus(70, 10) if JIT else small_corpus()
    shards = model.shards(counts, size=len(counts) // 3)
    whole = Whole(batch_size=10**6, n_passes=n, n_draws=1).run(model, shards, seed=2)
    with pytest.warns(ConvergenceWarning):
        field = MeanField(1e-15, max_sweeps=n, n_draws=1).run(model, shards, seed=2)
    found, expected = (p.tree["optimisation"]["elbo"].values for p in (whole, field))
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    arrays = flattened(field.factor)
    assert set(arrays) >= {"factor.topics", "factor.shares.scale"}
    for name, value in flattened(whole.factor).items():
        np.testing.assert_allclose(value, arrays[name], rtol=1e-10, atol=1e-12)


def test_scaled_statistics_are_those_of_a_corpus_many_times_over(rng):
    counts, factor = corpus(TREE, rng), random_factor(TREE, rng)
    prior = TREE.expect(factor)

    def statistics(counts):
        (shard,) = TREE.shards(counts)
        return TREE.update_rows(prior, shard, TREE.initial_row_factors(prior, shard), None)[1]

    scaled, thrice = TREE.scale(statistics(counts), 3.0), statistics(np.tile(counts, (3, 1)))
    for name in ("n_rows", "total", "outer"):
        found, expected = (getattr(s.shares, name) for s in (scaled, thrice))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(scaled.value, thrice.value, rtol=1e-12)
    np.testing.assert_allclose(scaled.words.table(), thrice.words.table(), rtol=1e-12)
    assert TREE.elbo(factor, scaled) == pytest.approx(TREE.elbo(factor, thrice), rel=1e-12)


def natural(factor):
    """Return the natural parameters, up to constants."""
    m, r, scale, nu = (getattr(factor.shares, n) for n in ("mean", "strength", "scale", "degrees"))
    return [r, r * m, scale + r * np.outer(m, m), nu, factor.topics]


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_blend_lies_between_in_natural_parameters(rate, rng):
    left, right = random_factor(TREE, rng), random_factor(TREE, rng)
    found = natural(TREE.blend(left, right, rate))
    for value, a, b in zip(found, natural(left), natural(right)):
        np.testing.assert_allclose(value, (1 - rate) * a + rate * b, rtol=1e-12)


def test_sums_over_blocks_are_those_of_one(rng):
    model, counts = small_corpus()
    factor = random_factor(model, rng)
    prior = model.expect(factor)

    def total(size):
        found = [
            model.update_rows(prior, s, model.initial_row_factors(prior, s), None)[1]
            for s in model.shards(counts, size)
        ]
        parts = list(zip(*found))
        return [sum(part[1:], start=part[0]) for part in parts]

    one, many = total(64), total(9)
    np.testing.assert_allclose(
        one[1].table(), many[1].table(), rtol=2e-2
    )  # blocks stop by themselves
    assert many[2] == pytest.approx(one[2], rel=1e-3)


# draws from the factors


def test_draws_follow_the_factor(rng):
    factor, n = random_factor(STICKS, rng), 1500
    drawn = [
        STICKS.describe_parameters(STICKS.draw_from_factor(factor, Key(2, i))) for i in range(n)
    ]
    mean, topics = (np.stack([d[name] for d in drawn]) for name in ("mean", "topics"))
    cov = np.stack([d["cov"] for d in drawn])
    shape = factor.topics / factor.topics.sum(axis=0)
    z = [z_scores(mean, factor.shares.mean), z_scores(topics, shape.T).ravel()]
    z += [z_scores(cov, factor.shares.expected_cov).ravel()]
    assert np.abs(np.concatenate(z)).max() < MAX_Z
    tokens = factor.topics.sum(axis=0) - 5 * STICKS.words.concentration
    np.testing.assert_allclose(drawn[0]["share"], tokens / tokens.sum())


def test_described_rows_follow_their_factors(rng):
    """T = 2: mean and sd of the share under q(psi) = N(m, v), by quadrature."""
    factor = random_factor(PAIR, rng)
    (shard,) = PAIR.shards(np.array([[3, 4, 0, 0], [0, 0, 0, 0], [30, 0, 1, 1], [0, 9, 0, 0]]))
    prior = PAIR.expect(factor)
    rows = PAIR.initial_row_factors(prior, shard)
    for _ in range(100):
        rows, _ = PAIR.update_rows(prior, shard, rows, None)
    drawn = PAIR.draw_described_rows(prior, shard, rows, 1024)["proportions"][:, :, 1]
    assert drawn.shape == (1024, 4)
    for i, (m, v) in enumerate(zip(rows.mean[:, 0], rows.variance[:, 0])):
        law = stats.norm(m, np.sqrt(v))
        mean, square = (law.expect(lambda x, p=p: expit(x) ** p) for p in (1, 2))
        assert drawn[:, i].mean() == pytest.approx(mean, abs=0.003)
        assert drawn[:, i].std() == pytest.approx(np.sqrt(square - mean**2), abs=0.003)
