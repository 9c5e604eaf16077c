"""Gaussian processes behind a softmax: the sweep is right, and would be caught if not."""

from dataclasses import dataclass
from functools import partial

import numba
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp, softmax
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from joint import Law, first_and_second, one_sweep
from polystick.baselines import logistic_normal_process
from polystick.baselines.logistic_normal_process import LogisticNormalProcess, Rows
from polystick.covariances import OnColumns, Separable
from polystick.covariances.families import choose_family
from polystick.inference.execution import Threads
from polystick.inference.gibbs import Gibbs
from polystick.keys import Key
from polystick.models.quadrature import log_binomial_evidence
from statistics_tools import MAX_Z, standard_error, z_scores

PLAIN = bool(numba.config.DISABLE_JIT)
needs_jit = pytest.mark.skipif(PLAIN, reason="thousands of sweeps need the compiler")
INPUTS = np.array([[0.0], [0.4], [1.5], [4.0]])
FAMILY = choose_family(ConstantKernel(1.5) * RBF(1.0), INPUTS)
LEVEL = np.array([0.5, 0.0, -1.0])
MODEL = LogisticNormalProcess(FAMILY, LEVEL)
TOTALS = np.array([6, 0, 2, 15])
PLACES = np.array([[t, x] for t in range(6) for x in (0.0, 0.7, 3.0)])[1:]  # a grid with a hole
KERNEL = Separable(OnColumns(RBF(2.0), 0), OnColumns(RBF(1.0), 1))


@pytest.fixture
def rng():
    return np.random.default_rng(2010)


@pytest.fixture
def on_grid():
    return LogisticNormalProcess(choose_family(KERNEL, PLACES, solver="separable"), LEVEL)


# the sweep against the law


def sweep(model, everything, i, rng):
    parameters, rows, counts = everything
    (shard,) = model.shards(counts)
    parameters, rows = one_sweep(model, parameters, rows, shard, i)
    return parameters, rows, MODEL.simulate_counts(rows, TOTALS, rng)


def summarise(everything):
    _, rows, counts = everything
    shares = counts[[0, 3], :2] / TOTALS[[0, 3], None]
    return first_and_second([rows.f[:, [0, 1, 3]], rows.white[:2, 2], shares])


LAW = Law(lambda rng: MODEL.simulate(TOTALS, rng), summarise)


@needs_jit
@pytest.mark.parametrize("n_iter", [6000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_geweke(n_iter, rng):
    z = LAW.z(partial(sweep, MODEL), n_iter, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@dataclass(frozen=True)
class OtherPrior(LogisticNormalProcess):
    """The ellipse goes through a draw of another covariance."""

    def prepare(self, parameters):
        return self.family.at(np.log([1.5, 0.3]))


@dataclass(frozen=True)
class ForgottenLevel(LogisticNormalProcess):
    """The sweep thinks that all categories are alike."""

    def draw_rows(self, prior, shard, rows, key):
        return LogisticNormalProcess(self.family, np.zeros(3)).draw_rows(prior, shard, rows, key)


@dataclass(frozen=True)
class LazyWhite(LogisticNormalProcess):
    """White values go half the way that f goes."""

    def draw_rows(self, prior, shard, rows, key):
        moved, statistics = super().draw_rows(prior, shard, rows, key)
        return Rows(0.5 * (rows.white + moved.white), moved.f), statistics


@needs_jit
@pytest.mark.parametrize("wrong", [OtherPrior, ForgottenLevel, LazyWhite])
def test_geweke_rejects_a_sabotaged_sweep(wrong, rng):
    assert LAW.worst_z(partial(sweep, wrong(FAMILY, LEVEL)), 4000, rng) > MAX_Z


def test_chain_agrees_with_weighted_draws_of_the_prior(rng):
    """Given counts, without any Markov chain: many draws of the prior, weighted by the likelihood."""
    counts = np.array([[2, 1, 0], [0, 0, 0], [0, 1, 0], [1, 0, 2]])
    n_draws, n_prior = (600, 20_000) if PLAIN else (20_000, 200_000)
    f = rng.standard_normal((n_prior, 3, 4)) @ MODEL.solver.root
    pi = softmax(LEVEL[:, None] + f, axis=1)
    weights = np.prod(pi**counts.T, axis=(1, 2))
    (shard,) = MODEL.shards(counts)
    rows, seen = MODEL.initial_rows(MODEL.solver, shard, Key(3)), []
    for i in range(1, n_draws):
        rows, _ = MODEL.draw_rows(MODEL.solver, shard, rows, Key(3, i))
        seen.append(MODEL.describe_rows(shard, rows)["probabilities"])
    mean = np.average(pi, axis=0, weights=weights)
    spread = weights[:, None, None] / weights.mean() * (pi - mean)
    error = np.hypot(standard_error(np.array(seen)), spread.std(axis=0) / np.sqrt(n_prior))
    assert np.abs((np.mean(seen, axis=0) - mean) / error).max() < MAX_Z


def test_f_and_white_stay_together(on_grid, rng):
    _, rows, counts = on_grid.simulate(np.full(17, 30), rng)
    (shard,) = on_grid.shards(counts)
    for i in range(5 if PLAIN else 300):
        rows, _ = on_grid.draw_rows(on_grid.solver, shard, rows, Key(1, i))
    np.testing.assert_allclose(rows.f, on_grid.solver.unwhiten(rows.white), atol=1e-12)


def test_log_likelihood_is_the_multinomial_one(rng):
    _, rows, counts = MODEL.simulate(TOTALS, rng)
    (shard,) = MODEL.shards(counts)
    rows, statistics = MODEL.draw_rows(MODEL.solver, shard, rows, Key(1))
    expected = stats.multinomial.logpmf(counts, TOTALS, softmax(LEVEL + rows.f.T, axis=1)).sum()
    assert MODEL.log_likelihood(statistics) == pytest.approx(expected)


def test_a_sweep_leaves_its_input_alone(rng):
    parameters, rows, counts = MODEL.simulate(TOTALS, rng)
    (shard,) = MODEL.shards(counts)
    before = [part.copy() for part in rows]
    fresh, _ = MODEL.draw_rows(MODEL.prepare(parameters), shard, rows, Key(1))
    for part, old, new in zip(rows, before, fresh):
        np.testing.assert_array_equal(part, old)
        assert (new != old).any()


@pytest.mark.parametrize("n_trials", [0, 1, 50, 50_000])
def test_a_chain_starts_near_its_posterior(n_trials, on_grid, rng):
    """The likelihood at the start is that of the truth, up to what values that fit may add or lose."""
    _, truth, counts = on_grid.simulate(np.full(17, n_trials), rng)
    (shard,) = on_grid.shards(counts)
    start = on_grid.initial_rows(on_grid.solver, shard, Key(5))
    other = on_grid.initial_rows(on_grid.solver, shard, Key(6))
    assert (start.f != other.f).any()
    gap = on_grid._log_likelihood(shard, start.f) - on_grid._log_likelihood(shard, truth.f)
    assert abs(gap) < truth.f.size


def test_a_start_survives_a_level_beyond_reason():
    model = LogisticNormalProcess(FAMILY, np.array([0.0, -1000.0, 900.0]))
    (shard,) = model.shards(np.array([[5, 0, 0], [0, 3, 0], [0, 0, 0], [1, 1, 1]]))
    assert np.isfinite(model.initial_rows(model.solver, shard, Key(5)).f).all()


# chains


def run(model, counts, n_draws=4, n_burn=2, n_chains=2, **options):
    keep = ("white", "probabilities")
    settings = Gibbs(n_draws, n_burn, n_chains=n_chains, keep=keep)
    return settings.run(model, model.shards(counts), seed=5, **options)


def test_bits_depend_neither_on_threads_nor_on_other_chains(on_grid, rng):
    *_, counts = on_grid.simulate(np.full(17, 20), rng)
    runs = [
        run(on_grid, counts, n_chains=1),
        run(on_grid, counts, n_chains=3),
        run(on_grid, counts, n_chains=3, execution=Threads(2)),
    ]
    for name in ("white", "probabilities", "n_looks"):
        np.testing.assert_array_equal(runs[0][name][0], runs[1][name][0])
        np.testing.assert_array_equal(runs[1][name], runs[2][name])
    assert (runs[1]["white"][0] != runs[1]["white"][1]).all()


def test_a_run_goes_on_from_its_checkpoint(on_grid, rng, tmp_path):
    *_, counts = on_grid.simulate(np.full(17, 20), rng)
    whole = run(on_grid, counts, 5)
    run(on_grid, counts, 2, checkpoint=tmp_path)
    resumed = run(on_grid, counts, 5, checkpoint=tmp_path, resume=True)
    for name in ("white", "probabilities", "n_looks"):
        np.testing.assert_array_equal(whole[name], resumed[name])


# new inputs


class Given:
    """A predictor that says the same whatever came before."""

    def __init__(self, mean, variance):
        self.mean, self.variance = np.asarray(mean, float), np.asarray(variance, float)

    def given(self, white):
        return self.mean, self.variance


def test_prediction_at_inputs_of_the_fit_is_what_was_drawn(rng):
    _, rows, _ = MODEL.simulate(TOTALS, rng)
    predictor = FAMILY.predictor(FAMILY.theta0, INPUTS)
    pi = MODEL.predict(rows.white, predictor, rng.standard_normal((2, 1, 3)))
    expected = MODEL.describe_rows(None, rows)["probabilities"].T
    np.testing.assert_allclose(pi, np.broadcast_to(expected, pi.shape), atol=1e-6)


def test_prediction_is_the_conditional_law(rng):
    """Draws of the prior at old and new inputs: what is new, given what is old, must look the same."""
    new = np.array([[0.8], [3.0]])
    both = choose_family(FAMILY.kernel, np.concatenate([INPUTS, new]))
    n = 20_000
    f = rng.standard_normal((n, 6)) @ both.at(both.theta0).root
    white = np.linalg.solve(MODEL.solver.root, f[:, :4].T).T
    mean, variance = FAMILY.predictor(FAMILY.theta0, new).given(white)
    gap = f[:, 4:] - mean
    assert np.abs(z_scores(gap, 0.0)).max() < MAX_Z
    assert np.abs(z_scores(gap**2, variance)).max() < MAX_Z
    assert np.abs(z_scores(gap * mean, 0.0)).max() < MAX_Z


COUNTS = np.array([[3, 0], [400, 20], [0, 0], [0, 50_000], [7, 7]])


@pytest.mark.parametrize("variance", [0.0, 0.1, 4.0])
def test_weights_of_two_categories_average_to_quadrature(variance, rng):
    """With two categories the difference of the logits is N(., 2 variance), and a stick."""
    model = LogisticNormalProcess(FAMILY, np.array([0.3, -0.2]))
    mean = rng.normal(size=(2, 5))
    predictor = Given(mean, np.full(5, variance))
    points = rng.standard_normal((4000, 2))
    log_weights = model.log_weights(None, predictor, COUNTS, points)
    expected = log_binomial_evidence(
        COUNTS[:, 0], COUNTS.sum(axis=1), 0.5 + mean[0] - mean[1], 2 * variance
    )
    ratios = np.exp(log_weights - expected)
    error = np.maximum(ratios.std(axis=0) / np.sqrt(len(points)), 1e-6)
    assert np.abs((ratios.mean(axis=0) - 1.0) / error).max() < MAX_Z
    assert (ratios.std(axis=0) < 1.5).all()  # about the mode few points will do


def test_weights_of_three_categories_average_to_the_prior_s_average(rng):
    mean, variance = rng.normal(size=(3, 2)), np.array([0.5, 2.0])
    counts = np.array([[2, 0, 1], [0, 4, 0]])
    points = rng.standard_normal((20_000, 3))
    weights = np.exp(MODEL.log_weights(None, Given(mean, variance), counts, points))
    psi = LEVEL + mean.T + np.sqrt(variance)[:, None] * rng.standard_normal((200_000, 2, 3))
    plain = np.prod(softmax(psi, axis=-1) ** counts, axis=-1)
    error = plain.std(axis=0) / np.sqrt(len(plain))
    assert np.abs(z_scores(weights, plain.mean(axis=0), error)).max() < MAX_Z


@pytest.mark.parametrize("n_trials", [1, 100, 10**6])
@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 20.0])
def test_mode_has_no_slope(n_trials, scale, rng):
    counts = rng.multinomial(n_trials, rng.dirichlet(np.full(6, 0.3), size=8))
    centre, scales = rng.normal(size=(8, 6)), np.full((8, 1), scale)
    mode = logistic_normal_process._find_mode(counts, centre, scales)
    psi = centre + scales * mode
    pi = np.exp(psi - logsumexp(psi, axis=1, keepdims=True))
    slope = scales * (counts - n_trials * pi) - mode
    curvature = 1.0 + scales**2 * n_trials * pi
    assert (np.abs(slope) / np.sqrt(curvature)).max() < 1e-3
