"""Walking shares: the sweep draws from the law, levels are those of the dense Gaussian, trends are found."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from scipy.special import expit, softmax

from dated_tools import (
    N_SLICES,
    SLICES,
    STEP_PRIOR,
    STEPS,
    TOTALS,
    WALKING,
    cut_and_resume,
    dated_corpus,
    law_of,
    sweep,
)
from joint import Law, first_and_second
from naive_chain import Problem, joint
from polystick.alignment import align
from polystick.conjugate import InverseWishart, NormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.estimators.dynamic_topics import DynamicTopicModel
from polystick.gaussians.normal import Normal
from polystick.inference.execution import Threads
from polystick.inference.files import CheckpointError
from polystick.inference.gibbs import Gibbs
from polystick.inference.moving import moved
from polystick.keys import Key
from polystick.models.topic_factors import assemble
from polystick.models.topic_shares import Sticks, Sums
from polystick.models.topic_words import DirichletWords
from polystick.models.topics import Rows
from polystick.models.walking_shares import WalkingShares
from polystick.population import LearnedScale
from statistics_tools import MAX_Z, z_scores
from topic_tools import JIT, PRIOR, needs_jit

STICKS = Decomposition.sticks([0, 1, 2])


def dynamic_topics(n_words=5, concentration=1.0, shares=WALKING):
    return assemble(DirichletWords(n_words, concentration), shares, Sticks(STICKS))


MODEL = dynamic_topics()


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


# the sweep against the law


def some_words(parameters):
    return [parameters.topics[:2, 0] / parameters.sizes[0]]


LAW = law_of(MODEL, some_words)


@needs_jit
@pytest.mark.parametrize("n_iter", [1500, pytest.param(40_000, marks=pytest.mark.slow)])
def test_geweke(n_iter, rng):
    z = LAW.z(partial(sweep, MODEL), n_iter, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


# a learned scale of the scatter, with moves

SCALE = LearnedScale(np.zeros(2), 0.7, nu=6.0)
SCALED = WalkingShares(N_SLICES, *STEPS, SCALE)


def words_and_scales(parameters):
    return [*some_words(parameters), np.tanh(np.log(parameters.spread) / 4)]


SCALED_LAW = law_of(dynamic_topics(shares=SCALED), words_and_scales)


@needs_jit
@pytest.mark.parametrize("n_iter", [2000, pytest.param(40_000, marks=pytest.mark.slow)])
def test_geweke_with_a_learned_scale(n_iter):
    rng = np.random.default_rng(4)  # a chain that does not start far out, where 2000 sweeps are few
    z = SCALED_LAW.z(partial(sweep, dynamic_topics(shares=SCALED)), n_iter, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


class Tripled(WalkingShares):
    """Each document counts three times for the scatter."""

    def draw_scatter(self, parameters, n, residual, rng):
        return super().draw_scatter(parameters, 3 * n, 3.0 * residual, rng)


class LawOfAMean(WalkingShares):
    """Stretches are decided as if a mean were stretched with cov."""

    def move(self, parameters, gains, stretch, shift, rng):
        return super().move(parameters, gains - np.log(stretch), stretch, shift, rng)


class LevelsLeftBehind(WalkingShares):
    """Documents are shifted without their levels."""

    def move(self, parameters, gains, stretch, shift, rng):
        moved, *done = super().move(parameters, gains, stretch, shift, rng)
        return moved._replace(levels=parameters.levels), *done


class AboutTheFirst(WalkingShares):
    """Documents are stretched about the level of the first slice."""

    def means(self, parameters, given):
        return super().means(parameters, {"slices": 0 * given["slices"]})


class FirstLevelsFree(WalkingShares):
    """Shifts do not hear the law of the first level."""

    def _shifted(self, parameters, gains, stretch, shift, rng):
        wide = replace(self.prior, strength=1e-6)
        free = WalkingShares(self.n_slices, wide, self.step_prior, self.law)
        return WalkingShares._shifted(free, parameters, gains, stretch, shift, rng)


class Deaf(WalkingShares):
    """Shifts do not hear the counts."""

    def _shifted(self, parameters, gains, stretch, shift, rng):
        return super()._shifted(parameters, 0.0 * gains, stretch, shift, rng)


MANY, FEW = np.array([0, 0, 4, 30, 60, 12, 80, 200]), np.array([0, 0, 1, 0, 2, 0, 1, 0])


def only_moves(model, everything, i, rng):
    parameters, rows, counts = everything
    shards = model.shards(counts, slices=SLICES)
    parameters, (rows,) = moved(model, parameters, shards, [rows], Key(7, i))
    return parameters, rows, counts


def summarise_moves(everything):
    p, (psi, tokens), _ = everything
    successes, trials = STICKS.split(tokens[3:])
    surprise = (successes - trials * expit(psi[3:])) / np.sqrt(1 + trials)
    away = np.tanh((psi - p.levels[SLICES]) / np.sqrt(np.diag(p.cov)))
    scales = np.tanh(np.log(np.diag(p.cov)) / 4), np.tanh(np.log(p.spread) / 4)
    told = [np.tanh(surprise), np.round(away, 6).mean(axis=0), *scales]
    return first_and_second([np.tanh(p.levels / 3), *told, np.tanh(psi[[0, 2, 4]] / 4)])


def drift(wrong, n_starts, rng, totals=MANY):
    right = dynamic_topics(shares=SCALED)
    joint = Law(partial(right.simulate, totals, slices=SLICES), summarise_moves)
    twin = dynamic_topics(shares=wrong(N_SLICES, *STEPS, SCALE))
    return joint.drift_z(partial(only_moves, twin), n_starts, 20, rng)


@needs_jit
@pytest.mark.parametrize("n_starts", [600, pytest.param(20_000, marks=pytest.mark.slow)])
def test_moves_keep_the_law(n_starts, rng):
    z = drift(WalkingShares, n_starts, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@needs_jit
@pytest.mark.parametrize(
    ("wrong", "n_starts", "totals"),
    [(LawOfAMean, 900, MANY), (LevelsLeftBehind, 300, MANY), (AboutTheFirst, 300, MANY),
     (Deaf, 300, MANY), (FirstLevelsFree, 300, FEW)],
)  # fmt: skip
def test_wrong_moves_are_caught(wrong, n_starts, totals, rng):
    z = drift(wrong, n_starts, rng, totals)
    assert np.abs(z).max() > MAX_Z, np.abs(z).max()


@needs_jit
def test_geweke_rejects_scales_of_documents_that_count_thrice(rng):
    twin = dynamic_topics(shares=Tripled(N_SLICES, *STEPS, SCALE))
    assert SCALED_LAW.worst_z(partial(sweep, twin), 1500, rng) > MAX_Z


# other sabotage


@dataclass(frozen=True)
class Unmoved:
    """Rows about levels, drawn as if their potential were that of psi less its level."""

    mean: np.ndarray
    normal: Normal

    def draw(self, potential, noise):
        return self.mean + self.normal.draw(potential, noise)


@dataclass(frozen=True)
class ForgottenLevel(WalkingShares):
    """The potential of psi is taken for that of psi less its level."""

    def rows(self, walk, given):
        return Unmoved(walk.mean[given["slices"]], walk.normal)


@dataclass(frozen=True)
class NextSlice(WalkingShares):
    """Documents count for the slice after theirs."""

    def statistics(self, psi, given):
        return super().statistics(psi, {"slices": (given["slices"] + 1) % self.n_slices})


@dataclass(frozen=True)
class ForgottenLevels(WalkingShares):
    """cov is drawn from residuals about 0."""

    def draw(self, parameters, sums, rng):
        law = super().draw(parameters, sums, rng)
        wrong = self.prior.of_cov.posterior(sums.n_rows.sum(), sums.outer)
        return {**law, "cov": wrong.draw(rng)}


@dataclass(frozen=True)
class OneStepTooMany(WalkingShares):
    """The first level counts as a step."""

    def draw(self, parameters, sums, rng):
        law = super().draw(parameters, sums, rng)
        steps = np.diff(law["levels"], axis=0, prepend=0.0)
        wrong = self.step_prior.posterior(len(steps), steps.T @ steps)
        return {**law, "step_cov": wrong.draw(rng)}


@dataclass(frozen=True)
class ExchangedCovariances(WalkingShares):
    """Levels are drawn as if they moved like documents scatter."""

    def draw_levels(self, parameters, sums, rng):
        return super().draw_levels(parameters._replace(step_cov=parameters.cov), sums, rng)


WRONG = {
    ForgottenLevel: 500,
    NextSlice: 1000,
    ForgottenLevels: 700,
    OneStepTooMany: 2500,
    ExchangedCovariances: 1500,
}


@needs_jit
@pytest.mark.parametrize(("wrong", "n_iter"), WRONG.items())
def test_geweke_rejects_a_sabotaged_sweep(wrong, n_iter, rng):
    twin = dynamic_topics(shares=wrong(N_SLICES, *STEPS))
    assert LAW.worst_z(partial(sweep, twin), n_iter, rng) > MAX_Z


# levels against the dense Gaussian


class Fixed:
    """Noise of our choice in place of a generator."""

    def __init__(self, noise):
        self.noise = noise

    def standard_normal(self, shape):
        return self.noise.reshape(shape)


def summed_psi(rng, n=9):
    """Return psi in slices 0 and 2 only, and their sums."""
    slices, psi = rng.choice([0, 2], n), rng.normal(size=(n, 2))
    total = np.array([psi[slices == s].sum(axis=0) for s in range(N_SLICES)])
    return slices, psi, Sums(np.bincount(slices, minlength=N_SLICES), total, psi.T @ psi)


def test_sums_are_by_slice(rng):
    slices, psi, expected = summed_psi(rng)
    found = WALKING.statistics(psi, {"slices": slices})
    for name in ("n_rows", "total", "outer"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12)


def dense_levels(parameters, slices, psi):
    """Return the law of all levels given psi, document by document."""
    k, n_slices = psi.shape[1], N_SLICES
    precision = np.zeros((n_slices, k, k))
    linear = np.zeros((n_slices, k))
    for s, x in zip(slices, psi):
        precision[s] += np.linalg.inv(parameters.cov)
        linear[s] += np.linalg.solve(parameters.cov, x)
    start = PRIOR.scale / (PRIOR.degrees - k - 1) / PRIOR.strength
    walk = (PRIOR.mean, start, np.eye(k), parameters.step_cov, np.zeros(k))
    return joint(Problem(*walk, linear, precision))


def test_levels_are_drawn_from_the_dense_gaussian(rng):
    parameters, _, _ = MODEL.simulate(TOTALS, rng, slices=SLICES)
    slices, psi, statistics = summed_psi(rng)
    truth, size = dense_levels(parameters, slices, psi), N_SLICES * 2
    mean = WALKING.draw_levels(parameters, statistics, Fixed(np.zeros(size)))
    np.testing.assert_allclose(mean, truth.mean, rtol=1e-9)
    unit = [WALKING.draw_levels(parameters, statistics, Fixed(e)) - mean for e in np.eye(size)]
    root = np.array(unit).reshape(size, size)
    np.testing.assert_allclose(root.T @ root, truth.cov.reshape(size, size), rtol=1e-8, atol=1e-12)


def test_simulated_levels_walk(rng):
    """Under a small first covariance and none of the data levels are a walk from the prior mean."""
    n = 4000 if JIT else 500
    levels = np.stack([WALKING.simulate(rng)["levels"] for _ in range(n)])
    start = PRIOR.expected_cov / PRIOR.strength
    first = levels[:, 0] - PRIOR.mean
    z = [z_scores(first, 0.0), z_scores(first[:, :, None] * first[:, None], start).ravel()]
    for s in (1, 2):
        step = levels[:, s] - levels[:, s - 1]
        outer = step[:, :, None] * step[:, None]
        z += [z_scores(step, 0.0), z_scores(outer, STEP_PRIOR.expected_cov).ravel()]
    assert np.abs(np.concatenate(z)).max() < MAX_Z


def test_cov_is_drawn_from_the_inverse_wishart_with_known_mean(rng):
    """The precision has mean degrees * scale^-1, with the rows counted in."""
    x = rng.normal(size=(6, 2)) * [1.0, 2.0]
    law = PRIOR.of_cov.posterior(6, x.T @ x)
    draws = np.stack([np.linalg.inv(law.draw(rng)) for _ in range(3000)])
    truth = (PRIOR.degrees + 6) * np.linalg.inv(PRIOR.scale + x.T @ x)
    assert np.abs(z_scores(draws, truth)).max() < MAX_Z
    one_too_many = truth * (PRIOR.degrees + 7) / (PRIOR.degrees + 6)
    assert np.abs(z_scores(draws, one_too_many)).max() > MAX_Z


def test_residuals_are_about_the_level_of_each_document(rng):
    """What the laws of `draw` are told, in its plainest form."""
    parameters, _, _ = MODEL.simulate(TOTALS, rng, slices=SLICES)
    slices, psi, statistics = summed_psi(rng)
    seen = []

    def spy(prior, n, outer):
        seen.append((prior, n, outer))
        return prior

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InverseWishart, "posterior", spy)
        levels = WALKING.draw(parameters, statistics, rng)["levels"]
    gaps = psi - levels[slices]
    steps = levels[1:] - levels[:-1]
    for (prior, n, outer), (truth, m, rows) in zip(
        seen, [(PRIOR.of_cov, 9, gaps), (STEP_PRIOR, 2, steps)]
    ):
        assert prior is truth
        assert n == m
        np.testing.assert_allclose(outer, rows.T @ rows, rtol=1e-9)


# names


@pytest.mark.parametrize("order", [[1, 2, 0], [0, 2, 1], [2, 1, 0]])
def test_renamed_topics_tell_the_same_of_documents(order, rng):
    parameters, rows, _ = MODEL.simulate(TOTALS, rng, slices=SLICES)
    renamed = MODEL.rename(parameters, np.array(order), Key(3))
    followed = MODEL.link.rename(rows.psi, renamed.move)
    words = [
        MODEL.link.shares(psi) @ MODEL.describe_parameters(p)["topics"]
        for psi, p in ((rows.psi, parameters), (followed, renamed))
    ]
    assert (renamed.topics != parameters.topics).any()
    np.testing.assert_allclose(*words, rtol=1e-6)
    shares = [MODEL.link.shares(p.levels) for p in (parameters, renamed)]
    np.testing.assert_allclose(shares[1], shares[0][:, order], rtol=1e-9)
    np.testing.assert_array_equal(renamed.share, parameters.share[order])


def test_covariances_turn_with_the_sticks(rng):
    """Where topics swap at the last stick, its psi changes its sign and nothing else happens."""
    parameters, _, _ = MODEL.simulate(TOTALS, rng, slices=SLICES)
    renamed = MODEL.rename(parameters, np.array([0, 2, 1]), Key(3))
    turn = np.array([1.0, -1.0])
    np.testing.assert_allclose(renamed.levels, parameters.levels * turn, rtol=1e-9)
    for name in ("cov", "step_cov"):
        cov = getattr(parameters, name)
        sd = np.sqrt(np.diag(cov))
        gap = (getattr(renamed, name) - cov * np.outer(turn, turn)) / np.outer(sd, sd)
        assert np.abs(gap).max() < MAX_Z * np.sqrt(2 / 4096)


# a topic that rises and one that falls


def trend_corpus(rng, n=220, n_words=30):
    """Return counts, slices (n,), topics (3, V) and their shares (8, 3); nobody wrote in the fourth."""
    own = np.repeat(np.eye(3), n_words // 3, axis=1)
    topics = own * rng.gamma(3.0, size=own.shape) + 0.02
    topics /= topics.sum(axis=1, keepdims=True)
    slices = rng.choice([0, 1, 2, 4, 5, 6, 7], n)
    slices[:2] = 0, 7
    trend = np.stack([np.linspace(1.5, -1.5, 8), np.linspace(-1.5, 1.5, 8), np.zeros(8)], axis=1)
    logits = trend[slices] + 0.7 * rng.normal(size=(n, 3))
    counts = rng.multinomial(40, softmax(logits, axis=1) @ topics)
    points = trend + 0.7 * rng.normal(size=(20_000, 1, 3))
    return counts, slices, topics, softmax(points, axis=2).mean(axis=0)


def found_shares(counts, slices, topics):
    """Return mean, lower and upper (8, 3) of the face's shares over time."""
    gibbs = Gibbs(150, 100, n_chains=2)
    model = DynamicTopicModel(3, inference=gibbs, random_state=1, n_jobs=1)
    model.fit(counts, times=2000 + slices)
    assert list(model.times_) == list(range(2000, 2008))
    order = align([topics, model.topics_]).order[1]
    return [frame.to_numpy()[:, order] for frame in model.shares_over_time(n_draws=200)]


@needs_jit
def test_trends_are_found(rng):
    counts, slices, topics, truth = trend_corpus(rng)
    found, lower, upper = found_shares(counts, slices, topics)
    for t in (0, 1):
        assert np.corrcoef(found[:, t], truth[:, t])[0, 1] > 0.97
    assert np.abs(found - truth).max() < 0.12
    inside = (lower < truth) & (truth < upper)
    assert inside.mean() > 0.75, inside
    widths = (upper - lower).mean(axis=1)
    assert widths[3] > max(widths[2], widths[4]), "the empty year must be the least certain"


@needs_jit
def test_trends_are_not_found_where_there_are_none(rng):
    """The same documents with the time stamps of others."""
    counts, slices, topics, truth = trend_corpus(rng)
    slices[2:] = rng.permutation(slices[2:])
    found, lower, upper = found_shares(counts, slices, topics)
    assert np.abs(found - truth).max() > 0.3
    assert ((lower < truth) & (truth < upper)).mean() < 0.6
    assert np.ptp(found, axis=0).max() < 0.5 * np.ptp(truth, axis=0).max()


# bits


MODEL_IN_BITS = dynamic_topics(20, 0.1, WalkingShares(4, *STEPS))
SHORT = Gibbs(4, 8, n_chains=2, keep=("proportions",)) if JIT else Gibbs(2, 2, n_chains=1)
NAMES = ("levels", "cov", "step_cov", "topics", "share")


def same(left, right):
    for name in NAMES:
        np.testing.assert_array_equal(left[name], right[name])
    np.testing.assert_array_equal(left.running("proportions"), right.running("proportions"))
    np.testing.assert_array_equal(left.log_likelihood, right.log_likelihood)


def test_threads_leave_the_bits():
    counts, slices = dated_corpus(300 if JIT else 12, 20, 4)
    shards = MODEL_IN_BITS.shards(counts, 128 if JIT else 5, slices=slices)
    assert len(shards) == 4
    serial = SHORT.run(MODEL_IN_BITS, shards, seed=3)
    for n in (1, 2, 4) if JIT else (2,):
        same(SHORT.run(MODEL_IN_BITS, shards, seed=3, execution=Threads(n)), serial)


@pytest.mark.parametrize("sweep", [1, 3, 5, 9, 11] if JIT else [1, 3])
def test_a_run_that_was_cut_goes_on_in_the_same_bits(tmp_path, sweep):
    counts, slices = dated_corpus(30 if JIT else 12, 20, 4)
    shards = MODEL_IN_BITS.shards(counts, slices=slices)
    same(*cut_and_resume(SHORT, MODEL_IN_BITS, shards, tmp_path, sweep))


def test_a_checkpoint_knows_the_time_stamps(tmp_path):
    counts, slices = dated_corpus(30 if JIT else 12, 20, 4)
    runs = [
        lambda moved=moved, **options: SHORT.run(
            MODEL_IN_BITS,
            MODEL_IN_BITS.shards(counts, slices=moved),
            seed=5,
            checkpoint=tmp_path,
            **options,
        )
        for moved in (slices, np.roll(slices, 1))
    ]
    runs[0]()
    with pytest.raises(CheckpointError):
        runs[1](resume=True)


# corpora at the edge


def test_documents_without_words_scatter_about_their_level(rng):
    n = 4000 if JIT else 400
    parameters, _, _ = MODEL.simulate(TOTALS, rng, slices=SLICES)
    slices = rng.integers(0, N_SLICES, n)
    (shard,) = MODEL.shards(np.zeros((n, 5), int), n, slices=slices)
    start = Rows(rng.normal(size=(n, 2)), np.zeros((n, 3), np.int32))
    (psi, _), statistics = MODEL.draw_rows(MODEL.prepare(parameters), shard, start, Key(1))
    assert statistics.value == 0
    np.testing.assert_array_equal(statistics.shares.n_rows, np.bincount(slices))
    centred = psi - parameters.levels[slices]
    squares = centred[:, :, None] * centred[:, None]
    z = np.append(z_scores(centred, 0.0), z_scores(squares, parameters.cov).ravel())
    assert np.abs(z).max() < MAX_Z


@pytest.mark.parametrize("used", [[1, 2], [0, 2], [0, 1], [1], []], ids=str)
def test_empty_slices_anywhere(used):
    """Even where there are documents, but none with words."""
    counts, slices = dated_corpus(12, 6, 3)
    slices = np.array(used)[np.arange(12) % len(used)] if used else slices
    counts = counts if used else np.zeros_like(counts)
    counts[[0, -1]] = 0
    model = dynamic_topics(6, 0.1)
    posterior = SHORT.run(model, model.shards(counts, slices=slices), seed=1)
    assert posterior["levels"].shape[2:] == (3, 2)
    assert np.isfinite(posterior["levels"]).all()
    np.testing.assert_allclose(posterior.running("proportions")[0].sum(axis=1), 1.0)


def test_one_slice_only():
    counts, _ = dated_corpus(12, 6, 3)
    model = DynamicTopicModel(3, inference=SHORT, random_state=0, n_jobs=1)
    model.fit(counts, times=["2000-01-01"] * 12)
    assert model.shares_over_time().mean.shape == (1, 3)


def test_two_topics_have_one_stick():
    counts, slices = dated_corpus(12, 6, 3)
    prior = NormalInverseWishart.weak([0.0], 1.0)
    link, shares = Sticks(Decomposition.sticks([0, 1])), WalkingShares(3, prior, prior.of_cov)
    model = assemble(DirichletWords(6, 0.1), shares, link)
    posterior = SHORT.run(model, model.shards(counts, slices=slices), seed=1)
    assert posterior["step_cov"].shape[2:] == (1, 1)
