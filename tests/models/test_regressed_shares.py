"""The regression of shares on covariates keeps its law, wrong ones do not, and it follows its topics."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from joint import Law, first_and_second, one_sweep
from polystick.conjugate_dynamics import MatrixNormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.inference.gibbs import Gibbs
from polystick.inference.moving import moved
from polystick.keys import Key
from polystick.models import topic_moves
from polystick.models.regressed_shares import RegressedShares
from polystick.models.topic_factors import assemble
from polystick.models.topic_shares import NormalShares, Sticks, Sums
from polystick.models.topic_words import DirichletWords
from polystick.population import LearnedScale
from statistics_tools import MAX_Z
from topic_tools import JIT, needs_jit

CENTRE = np.array([0.3, -0.4])
COVARIATES = np.column_stack(
    [np.linspace(-1.5, 1.5, 10), np.tile([1.0, -1.0], 5), np.linspace(-1, 1, 10) ** 3]
)
TERMS = np.array([0, 1, 1])
TOTALS = np.array([0, 0, 4, 8, 1, 12, 8, 12, 60, 40])
LINK = Sticks(Decomposition.balanced(3))
TREE = Sticks(Decomposition.balanced(6))


def shares_of(kind=RegressedShares, nu=None):
    return kind(LearnedScale(CENTRE, 0.7, nu), TERMS, np.cov(COVARIATES, rowvar=False))


def model_of(shares, link=LINK):
    return assemble(DirichletWords(5, 1.0), shares, link)


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


# the joint law


def summarise(everything):
    """Use bounded or light-tailed functions of all there is."""
    p, (psi, _), counts = everything
    scatter = np.sqrt(np.diag(p.cov))
    slopes = [np.tanh(p.coefficients / 2), np.tanh(p.coefficients / scatter)]
    scales = [np.tanh(np.log(p.shrinkage) / 3), np.tanh(np.log(p.spread) / 4)]
    law = [np.tanh(p.mean / 2), np.tanh(np.log(scatter)), np.log(float(p.nu)) / 5, *scales]
    away = psi - p.mean - COVARIATES @ p.coefficients
    rows = np.tanh(away / scatter)
    moments = [rows.mean(axis=0), np.square(rows).mean(axis=0), np.tanh(psi[[0, 5, 8]] / 3)]
    fit = np.tanh(COVARIATES[:, :2].T @ away / (3 * scatter))
    words = counts[[3, 5, 8, 9], :2] / TOTALS[[3, 5, 8, 9], None]
    return first_and_second([*law, *slopes, *moments, fit, words.mean(axis=0)])


def sweep_only(model, everything, i, rng):
    parameters, rows, counts = everything
    (shard,) = model.shards(counts, covariates=COVARIATES)
    return *one_sweep(model, parameters, rows, shard, i), counts


def drift(wrong, n_starts, rng, nu=None):
    """Return z-scores of sweeps of `wrong` from draws of the right law."""
    law = Law(
        partial(model_of(shares_of(nu=nu)).simulate, TOTALS, covariates=COVARIATES), summarise
    )
    return law.drift_z(partial(sweep_only, model_of(wrong)), n_starts, 4, rng)


@needs_jit
@pytest.mark.parametrize("n_starts", [600, pytest.param(10_000, marks=pytest.mark.slow)])
def test_sweeps_keep_the_law(n_starts, rng):
    z = drift(shares_of(), n_starts, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


class OtherDocuments(RegressedShares):
    """Covariates are those of other documents."""

    def statistics(self, psi, given):
        return super().statistics(psi, {"covariates": given["covariates"][::-1]})


class CoefficientsLeftBehind(RegressedShares):
    """A stick that is stretched leaves its coefficients where they are."""

    def move(self, parameters, gains, stretch, shift, rng):
        moved, *done = super().move(parameters, gains, stretch, shift, rng)
        return moved._replace(coefficients=parameters.coefficients), *done


class DeafShrinkage(RegressedShares):
    """Shrinkage is drawn from its prior."""

    def _draw_shrinkage(self, standard, rng):
        return super()._draw_shrinkage(0.0 * standard, rng) * 0.5


class NoShrinkage(RegressedShares):
    """Coefficients have no prior, almost."""

    def _told(self, parameters, sums):
        return super()._told(parameters._replace(shrinkage=1e-3 * parameters.shrinkage), sums)


class OwnNoise(RegressedShares):
    """Noise of the weights is that of one scale for all sticks."""

    def draw(self, parameters, sums, rng):
        drawn = super().draw(parameters, sums, rng)
        noise = 0.3 * rng.standard_normal(drawn["coefficients"].shape)
        return {**drawn, "coefficients": drawn["coefficients"] + noise}


class CovarianceOfPsi(RegressedShares):
    """The covariance is drawn about the mean, as if covariates explained nothing."""

    def _told(self, parameters, sums):
        told = super()._told(parameters, sums)
        n, total = sums.n_rows[0, 0], sums.total[0]
        return told._replace(squares=sums.outer - np.outer(total, total) / n)


@needs_jit
@pytest.mark.parametrize(
    "wrong",
    [OtherDocuments, DeafShrinkage, NoShrinkage, OwnNoise, CovarianceOfPsi],
)
def test_wrong_sweeps_are_caught(wrong, rng):
    z = drift(shares_of(wrong), 400, rng)
    assert np.abs(z).max() > MAX_Z, np.abs(z).max()


def moves_only(model, everything, i, rng):
    """Move scales in one step, levels in the next; nothing else."""
    parameters, rows, counts = everything
    shards = model.shards(counts, covariates=COVARIATES)
    parameters, (rows,) = moved(model, parameters, shards, [rows], Key(7, i))
    return parameters, rows, counts


def summarise_standard(everything):
    """Use what moves touch; no right move changes how far documents are from their line in its scatter."""
    p, (psi, _), _ = everything
    scatter = np.sqrt(np.diag(p.cov))
    away = (psi - p.mean - COVARIATES @ p.coefficients) / scatter
    slopes = np.tanh(p.coefficients / scatter)
    found = [np.tanh(p.mean), np.tanh(np.log(scatter)), np.tanh(p.coefficients), np.tanh(psi[8:])]
    still = [np.round(np.tanh(away), 6).mean(axis=0), np.round(slopes, 6).ravel()]
    return first_and_second([*found, *still])


def drift_of_moves(wrong, n_starts, rng):
    simulate = partial(model_of(shares_of()).simulate, TOTALS, covariates=COVARIATES)
    law = Law(simulate, summarise_standard)
    return law.drift_z(partial(moves_only, model_of(wrong)), n_starts, 10, rng)


@needs_jit
@pytest.mark.parametrize("n_starts", [600, pytest.param(10_000, marks=pytest.mark.slow)])
def test_moves_keep_the_law(n_starts, rng):
    z = drift_of_moves(shares_of(), n_starts, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@needs_jit
def test_wrong_moves_are_caught(rng):
    z = drift_of_moves(shares_of(CoefficientsLeftBehind), 400, rng)
    assert np.abs(z).max() > MAX_Z, np.abs(z).max()


# given psi


def test_without_covariates_that_matter_it_is_the_normal_law(rng):
    """With coefficients held at 0 documents tell of mean and cov what they tell `NormalShares`."""
    shares = shares_of(nu=4.0)
    parameters = model_of(shares).simulate(TOTALS, rng, covariates=COVARIATES)[0]
    tight = parameters._replace(shrinkage=np.full(2, 1e12))
    psi = rng.standard_normal((10, 2))
    told = shares._told(tight, shares.statistics(psi, {"covariates": COVARIATES}))
    prior = shares.law.given(tight)
    found = prior.posterior(len(psi), psi.sum(axis=0), psi.T @ psi)
    np.testing.assert_allclose(told.mean[0], found.mean, rtol=1e-6)
    np.testing.assert_allclose(told.mean[1:], 0.0, atol=1e-10)
    np.testing.assert_allclose(told.squares, found.scale - prior.scale, rtol=1e-6)


def test_what_documents_tell_is_the_conjugate_law(rng):
    """The weights and cov have the matrix normal inverse Wishart law of a linear system."""
    shares = shares_of(nu=4.0)
    parameters = model_of(shares).simulate(TOTALS, rng, covariates=COVARIATES)[0]
    psi = 5.0 + rng.standard_normal((10, 2))
    told = shares._told(parameters, shares.statistics(psi, {"covariates": COVARIATES}))
    strength = np.diag([float(parameters.strength), *parameters.shrinkage[TERMS]])
    mean = np.zeros((2, 4))
    mean[:, 0] = CENTRE
    scale = shares.law.given(parameters).scale
    x = np.column_stack([np.ones(10), COVARIATES])
    prior = MatrixNormalInverseWishart(mean, strength, scale, 5.0)
    found = prior.posterior(10, x.T @ x, psi.T @ x, psi.T @ psi)
    np.testing.assert_allclose(told.mean, found.mean.T)
    np.testing.assert_allclose(told.root.T @ told.root, found.strength)
    np.testing.assert_allclose(told.squares + scale, found.scale)


def test_effects_come_out_of_many_rows(rng):
    """With psi at hand, the regression is that which made it."""
    shares = shares_of()
    x = rng.standard_normal((4000, 3))
    slopes = np.array([[1.0, -0.5], [0.0, 2.0], [0.3, 0.0]])
    psi = np.array([0.5, -1.0]) + x @ slopes + 0.5 * rng.standard_normal((4000, 2))
    sums = shares.statistics(psi, {"covariates": x})
    drawn = model_of(shares).simulate(TOTALS, rng, covariates=COVARIATES)[0]
    for _ in range(3):
        drawn = drawn._replace(**shares.draw(drawn, sums, rng))
    error = np.sqrt(np.diag(drawn.cov) / 4000)
    assert np.abs((drawn.coefficients - slopes) / error).max() < 5
    np.testing.assert_allclose(np.diag(drawn.cov), 0.25, rtol=0.15)
    average = shares.average(drawn)[1]
    inside = drawn.cov + drawn.coefficients.T @ shares.covariates_cov @ drawn.coefficients
    np.testing.assert_allclose(average, inside)


def test_sums_of_blocks_add_up(rng):
    shares, psi = shares_of(), rng.standard_normal((10, 2))
    whole = shares.statistics(psi, {"covariates": COVARIATES})
    parts = [
        shares.statistics(psi[i], {"covariates": COVARIATES[i]}) for i in (slice(4), slice(4, 10))
    ]
    summed = parts[0] + parts[1]
    assert isinstance(summed, Sums)
    for name in ("n_rows", "total", "outer"):
        np.testing.assert_allclose(getattr(summed, name), getattr(whole, name), atol=1e-12)


# moves and names


def test_a_stretch_leaves_documents_where_they_are_about_their_line(rng):
    """What it proposes keeps (psi - line) / scatter, so that only counts and scales can judge it."""
    shares = shares_of()
    parameters, rows, _ = model_of(shares).simulate(TOTALS, rng, covariates=COVARIATES)
    stretch, never = np.array([1.3, 0.8]), np.zeros(2)
    gains = np.full(2, 1e6)  # whatever the law says, take it
    moved, *done = shares.move(parameters, gains, stretch, never, rng)
    np.testing.assert_array_equal(done[0], stretch)
    psi = topic_moves.moved(rows.psi, parameters.mean, *done)
    standard = [
        (at - p.mean - COVARIATES @ p.coefficients) @ np.linalg.inv(np.linalg.cholesky(p.cov)).T
        for at, p in ((rows.psi, parameters), (psi, moved))
    ]
    np.testing.assert_allclose(*standard)


def test_renamed_topics_take_their_effects_along(rng):
    """Shares that documents are expected to have are those of before, under the new names, nearly."""
    law = LearnedScale(TREE.decomposition.dirichlet_moments(1.0)[0], 1.0)
    x = rng.standard_normal((50, 2))
    shares = RegressedShares(law, np.array([0, 1]), np.eye(2))
    model = model_of(shares, TREE)
    drawn = model.simulate(np.zeros(50, int), rng, covariates=x)[0]
    slopes = rng.normal(scale=0.8, size=(2, 5))
    drawn = drawn._replace(coefficients=slopes, cov=0.5 * np.eye(5), precision=2.0 * np.eye(5))
    order = np.array([3, 0, 5, 1, 2, 4])
    renamed = drawn._replace(**shares.rename(drawn, order, TREE, Key(1)))
    before, after = (
        model.expected_shares({n: getattr(p, n) for n in shares.told}, covariates=x)
        for p in (drawn, renamed)
    )
    gap = after - before[:, order]
    assert np.sqrt(np.mean(gap**2)) < 0.35 * before.std(axis=0).mean()
    stayed = drawn._replace(coefficients=0 * slopes)
    flat = model.expected_shares({n: getattr(stayed, n) for n in shares.told}, covariates=x)
    assert np.mean(gap**2) < 0.15 * np.mean((flat - before) ** 2)


def test_documents_of_two_chains_agree_on_effects(rng):
    """Chains that found topics in another order tell of the same effects after they agreed on names."""
    x = np.where(np.arange(200) % 2, 1.0, -1.0)[:, None]
    own = np.repeat(np.eye(4), 10, axis=1) + 0.02
    own /= own.sum(axis=1, keepdims=True)
    weights = np.exp(np.outer(x[:, 0], [0.8, -0.8, 0.0, 0.0]) + 0.5 * rng.standard_normal((200, 4)))
    weights /= weights.sum(axis=1, keepdims=True)
    counts = rng.multinomial(40 if JIT else 5, weights @ own)
    link = Sticks(Decomposition.balanced(4))
    law = LearnedScale(link.decomposition.dirichlet_moments(1.0)[0], 1.0)
    shares = RegressedShares(law, np.array([0]), np.ones((1, 1)))
    model = assemble(DirichletWords(40, 0.1), shares, link)
    short = Gibbs(*((60, 60) if JIT else (1, 1)), n_chains=2)
    posterior = short.run(model, model.shards(counts, covariates=x), seed=4)
    assert posterior["coefficients"].shape[2:] == (1, 3)
    if not JIT:
        return
    effects = []
    for chain in range(2):
        means = {name: posterior[name][chain].mean(axis=0) for name in shares.told}
        low, high = model.expected_shares(means, covariates=np.array([[-1.0], [1.0]]))
        effects.append(high - low)
    np.testing.assert_allclose(*effects, atol=0.05)
    truth = weights[1::2].mean(axis=0) - weights[::2].mean(axis=0)
    words = posterior["topics"][0].mean(axis=0).reshape(4, 4, 10).sum(axis=2)
    np.testing.assert_allclose(effects[0][words.argmax(axis=0)], truth, atol=0.08)


def test_a_regression_has_no_mean_field_and_says_so():
    assert not hasattr(model_of(shares_of()), "expect")
    assert hasattr(model_of(NormalShares(LearnedScale(CENTRE))), "expect")
    assert replace(shares_of(), terms=np.array([0, 1, 2])).n_terms == 3
