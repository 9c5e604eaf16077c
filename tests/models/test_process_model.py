"""Multinomial Gaussian processes: the sweep is right, the bound is a bound, and errors would be caught."""

from dataclasses import dataclass, fields, replace
from functools import cache, partial

import numba
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from joint import Law, first_and_second, one_sweep, ranks, uniform_pvalues
from polystick import augmentation
from polystick.covariances import OnColumns, OwnNoise, Separable
from polystick.covariances.families import choose_family
from polystick.decomposition import Decomposition
from polystick.gaussians.noisy import Noisy
from polystick.inference.execution import Threads
from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from polystick.keys import Key
from polystick.models.process import ProcessCounts
from polystick.models.slice_sampling import slice_sweep
from statistics_tools import MAX_Z, standard_error, z_scores

JIT = not numba.config.DISABLE_JIT
needs_jit = pytest.mark.skipif(not JIT, reason="thousands of sweeps need the compiler")
TOTALS = np.array([0, 1, 3, 8, 30, 2])
LINE = np.array([[0.0], [0.4], [1.0], [1.1], [2.5], [4.0]])
GRID = np.array([[t, p] for t in (0.0, 1.0, 3.0) for p in (0.0, 0.7)])
EVERYTHING = ("kernel", "level", "scale")


def line_model(solver, learn=EVERYTHING, **more):
    kernel = ConstantKernel(1.5, (0.1, 20.0)) * Matern(1.2, (0.1, 20.0), nu=1.5)
    return process(kernel, LINE, solver, learn, **more)


def noisy_model(solver, learn=EVERYTHING, noise=0.6, **more):
    kernel = ConstantKernel(1.5, (0.1, 20.0)) * Matern(1.2, (0.1, 20.0), nu=1.5)
    return process(kernel + OwnNoise(noise, (0.05, 10.0)), LINE, solver, learn, **more)


def tied_model(learn=EVERYTHING, **more):
    """Two length scales that belong together."""
    kernel = Matern([1.2, 0.8], (0.1, 20.0), nu=1.5) + OwnNoise(0.6, (0.05, 10.0))
    correlation = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    return process(kernel, GRID, "dense", learn, prior_correlation=correlation, **more)


def grid_model(solver, learn=EVERYTHING, **more):
    time, place = Matern(2.0, (0.1, 20.0), nu=2.5), RBF(1.0, "fixed")
    kernel = ConstantKernel(1.5, (0.1, 20.0)) * Separable(
        OnColumns(time, [0]), OnColumns(place, [1])
    )
    return process(kernel, GRID, solver, learn, **more)


def process(kernel, inputs, solver, learn, level=(0.3, -0.5), **more):
    family = choose_family(kernel, inputs, solver=solver, tolerance=1e-10)
    level = np.array(level)
    return ProcessCounts(
        family, Decomposition.sticks(range(len(level) + 1)), level, learn, 0.5, **more
    )


MODELS = {
    "dense": lambda: line_model("dense"),
    "unstructured": lambda: line_model("unstructured"),
    "markov": lambda: line_model("markov"),
    "separable": lambda: grid_model("separable"),
    "tied": lambda: tied_model(("kernel",)),
    "noisy dense": lambda: noisy_model("dense"),
    "noisy markov": lambda: noisy_model("markov"),
    "noisy fixed": lambda: noisy_model("markov", ("level",), noise=4.0),
    "fixed": lambda: line_model("dense", ("level", "scale")),  # whose sweeps are cheap
}


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


# the sweep against the law


def sweep(model, everything, i, rng):
    parameters, rows, counts = everything
    (shard,) = model.shards(counts)
    parameters, rows = one_sweep(model, parameters, rows, shard, i)
    psi = model.psi_of(model.prepare(parameters), shard, rows)
    return parameters, rows._replace(psi=psi), model.simulate_counts(psi, TOTALS, rng)


def summarise(everything):
    """Use bounded or light-tailed functions, so that their averages have standard errors."""
    parameters, rows, counts = everything
    squashed = np.tanh(rows.psi[:, [0, 2, 4]] / 3)
    shares = counts[[1, 4], :-1] / TOTALS[[1, 4], None]
    return first_and_second([parameters.next_theta, rows.level, rows.scale, squashed, shares])


@cache
def law_of(name):
    model = MODELS[name]()
    return Law(lambda rng: model.simulate(TOTALS, rng), summarise)


@needs_jit
@pytest.mark.parametrize("name", MODELS)
def test_sweep_keeps_the_law(name, rng):
    n_iter = 1200 if name in ("dense", "fixed", "noisy fixed") else 400
    assert np.abs(law_of(name).z(partial(sweep, MODELS[name]()), n_iter, rng)).max() < MAX_Z


@pytest.mark.slow
@needs_jit
@pytest.mark.parametrize("name", MODELS)
def test_sweep_keeps_the_law_long(name, rng):
    assert np.abs(law_of(name).z(partial(sweep, MODELS[name]()), 4000, rng)).max() < MAX_Z


@dataclass(frozen=True)
class FlatKernel(ProcessCounts):
    """Sabotage: the prior of theta is forgotten in its draw."""

    def log_prior(self, theta):
        return min(0.0, super().log_prior(theta) + 100.0)


@dataclass(frozen=True)
class NoNoise(ProcessCounts):
    """Sabotage: half of the noise of a draw is forgotten."""

    def draw_rows(self, prior, shard, rows, key):
        return super().draw_rows(prior._replace(solver=_Quiet(prior.solver)), shard, rows, key)


class _Quiet:
    def __init__(self, solver):
        self.solver = solver

    def __getattr__(self, name):
        return getattr(self.solver, name)

    def draw(self, potential, noise):
        return self.solver.draw(potential, self._quiet(noise))

    def draws(self, potential, noises):
        return self.solver.draws(potential, self._quiet(noises))

    def _quiet(self, noise):
        quiet = noise.copy()
        quiet[..., noise.shape[-1] // 2 :] = 0
        return quiet


@dataclass(frozen=True)
class TimidLevels(ProcessCounts):
    """Sabotage: level and scale are drawn with a quarter of their noise."""

    def level_regression(self, *given):
        return [16.0 * part for part in super().level_regression(*given)]


@dataclass(frozen=True)
class DeafNoise(ProcessCounts):
    """Sabotage: noise of an input's own hears nothing of what was counted there."""

    def draw_rows(self, prior, shard, rows, key):
        solver = _Deaf(prior.solver.smooth, prior.solver.variance)
        return super().draw_rows(prior._replace(solver=solver), shard, rows, key)


class _Deaf(Noisy):
    def white_noise(self, potential, g, rest):
        return rest


@dataclass(frozen=True)
class SmoothTakesAll(ProcessCounts):
    """Sabotage: the smooth part is drawn as if there were no noise beside it."""

    def draw_rows(self, prior, shard, rows, key):
        solver = _Greedy(prior.solver.smooth, prior.solver.variance)
        return super().draw_rows(prior._replace(solver=solver), shard, rows, key)


class _Greedy(Noisy):
    def of_smooth(self, potential):
        return potential


@dataclass(frozen=True)
class LooseTie(ProcessCounts):
    """Sabotage: theta is drawn as if its parameters had nothing to do with each other."""

    def log_prior(self, theta):
        return replace(self, prior_correlation=None)._plain(theta)

    def _plain(self, theta):
        return super().log_prior(theta)


def sabotaged(model, twin):
    return twin(**{field.name: getattr(model, field.name) for field in fields(model)})


@needs_jit
@pytest.mark.parametrize("twin", [FlatKernel, NoNoise, TimidLevels])
def test_a_wrong_sweep_is_caught(twin, rng):
    name = "dense" if twin is FlatKernel else "fixed"
    wrong = sabotaged(MODELS[name](), twin)
    assert law_of(name).worst_z(partial(sweep, wrong), 1500, rng) > MAX_Z


@pytest.mark.slow
@needs_jit
def test_a_loose_tie_is_caught(rng):
    wrong = sabotaged(MODELS["tied"](), LooseTie)
    assert law_of("tied").worst_z(partial(sweep, wrong), 1500, rng) > MAX_Z


@needs_jit
@pytest.mark.parametrize("twin", [DeafNoise, SmoothTakesAll])
def test_wrong_noise_is_caught(twin, rng):
    wrong = sabotaged(MODELS["noisy fixed"](), twin)
    assert law_of("noisy fixed").worst_z(partial(sweep, wrong), 3000, rng) > MAX_Z


def rank_pvalues(model, inferring, n_simulations, rng, n_draws=19):
    """Return p-values of the ranks of what `model` simulates among the draws that `inferring` makes."""
    gibbs, found = Gibbs(n_draws, 40, thin=15, n_chains=1, keep=("psi", "mean", "scale")), []
    for i in range(n_simulations):
        parameters, rows, counts = model.simulate(TOTALS, rng)
        posterior = gibbs.run(inferring, inferring.shards(counts), seed=i)
        truth = {**rows._asdict(), "theta": parameters.theta, "mean": rows.level}
        drawn = {name: np.asarray(posterior[name])[0] for name in ("theta", "mean", "scale")}
        drawn["psi"] = np.asarray(posterior["psi"])[0][:, :, [0, 4]]
        truth["psi"] = truth["psi"][:, [0, 4]]
        found.append(np.concatenate([ranks(truth[n], d).ravel() for n, d in drawn.items()]))
    return uniform_pvalues(np.array(found), n_draws)


@pytest.mark.slow
@needs_jit
@pytest.mark.parametrize("name", ["dense", "separable"])
def test_calibration(name, rng):
    model = MODELS[name]()
    assert rank_pvalues(model, model, 100, rng).min() > 1e-4


@pytest.mark.slow
@needs_jit
def test_a_wrong_sweep_is_not_calibrated(rng):
    right = line_model("dense")
    assert rank_pvalues(right, sabotaged(right, TimidLevels), 100, rng).min() < 1e-4


# parts


def test_slices_keep_a_known_law(rng):
    """A correlated Gaussian, cut off at one side."""
    precision = np.linalg.inv([[1.0, 0.6], [0.6, 1.0]])

    def log_density(x):
        return -0.5 * x @ precision @ x if x[0] < 0.5 else -np.inf

    draws, point = [], np.zeros(2)
    for _ in range(6000 if JIT else 2000):
        point = slice_sweep(log_density, point, 1.0, rng)
        draws.append(point)
    below = stats.norm.cdf(0.5)
    mean = -stats.norm.pdf(0.5) / below
    z = z_scores(np.array(draws), np.array([mean, 0.6 * mean]))
    assert np.abs(z).max() < MAX_Z
    assert np.max(draws, axis=0)[0] < 0.5


def test_the_prior_of_tied_parameters(rng):
    model = tied_model()
    cov = 0.25 * model.prior_correlation
    points = [model._simulate_theta(rng) for _ in range(400)]
    truth = stats.multivariate_normal(model.family.theta0, cov)
    found = np.array([model.log_prior(theta) for theta in points])
    np.testing.assert_allclose(found - found[0], truth.logpdf(points) - truth.logpdf(points[0]))
    white = (points - model.family.theta0) @ np.linalg.inv(np.linalg.cholesky(cov)).T
    assert stats.kstest(white.ravel(), "norm").pvalue > 1e-5
    assert model.log_prior(model.family.theta0 + 10.0) == -np.inf


def test_the_prior_of_tied_parameters_within_narrow_bounds(rng):
    """In turns it is drawn as it is where draws happen to be inside; where none would be it ends."""
    kernel = Matern([1.2, 0.8], (0.7, 1.5), nu=1.5) + OwnNoise(0.6, (0.5, 0.9))
    tied = tied_model().prior_correlation
    model = process(kernel, GRID, "dense", ("kernel",), prior_correlation=tied)
    low, high = model.family.bounds.T
    ours = np.array([model._simulate_in_turns(rng, 0.5) for _ in range(60)])
    tries = rng.multivariate_normal(model.family.theta0, 0.25 * tied, 20_000)
    inside = tries[((tries >= low) & (tries <= high)).all(axis=1)]
    for moments in (lambda x: x, np.square, lambda x: x * np.roll(x, 1, axis=1)):
        a, b = moments(ours - low), moments(inside - low)
        error = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
        assert np.abs((a.mean(axis=0) - b.mean(axis=0)) / error).max() < MAX_Z
    hopeless = replace(model, prior_sd=1e30)._simulate_theta(rng)
    assert ((hopeless >= low) & (hopeless <= high)).all()


def test_empty_inputs_follow_the_prior_and_cost_no_counts(rng):
    model = line_model("dense", ())
    counts = np.zeros((len(LINE), 3), int)
    posterior = Gibbs(600 if JIT else 100, 0, n_chains=1, keep=("white",)).run(
        model, model.shards(counts), seed=1
    )
    white = np.asarray(posterior["white"])[0].reshape(-1, 2 * len(LINE))
    assert np.abs(z_scores(white, 0.0)).max() < MAX_Z
    assert np.abs(z_scores(white**2, 1.0)).max() < MAX_Z


def test_blocks_and_threads_do_not_change_the_bits(rng):
    kernel = ConstantKernel(1.0) * Matern(1.0, nu=1.5)
    model = process(kernel, LINE, "dense", EVERYTHING, level=np.zeros(30))
    counts = rng.multinomial(TOTALS, np.full(31, 1 / 31))
    assert len(model.shards(counts)) > 2
    runs = [
        Gibbs(4, 2, n_chains=2, keep=("psi",)).run(
            model, model.shards(counts), seed=3, execution=execution
        )
        for execution in (None, Threads(2), Threads(4))
    ]
    for other in runs[1:]:
        for name in ("theta", "psi"):
            np.testing.assert_array_equal(other[name], runs[0][name])


@pytest.mark.parametrize("build", [line_model, noisy_model])
def test_solvers_agree_on_the_posterior(build, rng):
    """Without learning, all solvers sample one law: compare the means of psi."""
    counts = rng.multinomial(5 * TOTALS, [0.2, 0.3, 0.5])
    found = {}
    for name in ("dense", "unstructured", "markov"):
        model = build(name, ())
        gibbs = Gibbs(1500 if JIT else 150, 50, n_chains=2, keep=("psi",))
        found[name] = np.asarray(gibbs.run(model, model.shards(counts), seed=4)["psi"])
    expected = found.pop("dense").reshape(-1, 2 * len(LINE))
    for draws in found.values():
        draws = draws.reshape(-1, 2 * len(LINE))
        gap = z_scores(draws, expected.mean(axis=0), standard_error(expected))
        assert np.abs(gap).max() < MAX_Z


# mean field


def bounds(posterior):
    return posterior.tree["optimisation"]["elbo"].values


@pytest.mark.parametrize("learn", [(), EVERYTHING], ids=["fixed", "learned"])
@pytest.mark.parametrize(
    "name", ["dense", "unstructured", "markov", "separable", "noisy dense", "noisy markov"]
)
def test_the_bound_never_falls(name, learn, rng):
    build = grid_model if name == "separable" else line_model
    build = noisy_model if name.startswith("noisy") else build
    model = build(name.split()[-1], learn)
    counts = rng.multinomial(20 * TOTALS, [0.2, 0.3, 0.5])
    posterior = MeanField(1e-8, 400, n_draws=1).run(model, model.shards(counts), seed=1)
    bound = bounds(posterior)
    assert len(bound) > 3
    assert np.diff(bound).min() > -1e-7 * abs(bound[-1])
    assert bound[-1] - bound[0] > 0.1


@pytest.mark.parametrize("solver", ["dense", "markov"])
def test_strong_counts_do_not_hold_theta(solver):
    """The search finds where the bound is highest; with `linear` held fixed it would creep."""
    inputs = np.linspace(0, 10, 20)[:, None]
    share = expit(np.sin(inputs[:, 0]))
    counts = np.random.default_rng(3).multinomial(50_000, np.column_stack([share, 1 - share]))

    def bound(length, learn):
        kernel = Matern(length, (0.1, 50.0), nu=2.5)
        model = replace(process(kernel, inputs, solver, learn, level=[0.0]), prior_sd=100.0)
        posterior = MeanField(1e-4, 60, n_draws=1).run(model, model.shards(counts), seed=1)
        return bounds(posterior)[-1]

    fixed = [bound(length, ()) for length in np.geomspace(0.5, 20.0, 12)]
    assert bound(0.5, ("kernel",)) > max(fixed) - 0.01
    assert max(fixed) - fixed[0] > 10.0


def test_the_bound_lies_below_the_evidence(rng):
    """One input, one stick: the evidence is an integral. At N = 1 the bound is close."""
    model = process(ConstantKernel(2.0) * Matern(1.0, nu=0.5), np.zeros((1, 1)), "dense", (),
                    level=[0.4])  # fmt: skip
    law = stats.norm(0.4, np.sqrt(2.0))
    for yes, no in ((1, 0), (30, 12)):
        shards = model.shards(np.array([[yes, no]]))
        posterior = MeanField(1e-10, 200, n_draws=1).run(model, shards, seed=1)
        bound = bounds(posterior)[-1]
        likelihood = partial(lambda s, n, x: stats.binom.pmf(s, n, expit(x)), yes, yes + no)
        evidence = np.log(law.expect(likelihood, lb=-15, ub=15))
        assert evidence - 0.2 < bound < evidence


def test_the_dual_form_is_the_optimum(rng):
    """At the optimum of the dense bound, weights are E[omega] and the mean solves its equation."""
    model = line_model("dense", ())
    counts = rng.multinomial(TOTALS, [0.2, 0.3, 0.5])
    (shard,) = model.shards(counts)
    solver = model.expect(model.initial_factor([shard], Key(1)))
    rows = model.initial_row_factors(solver, shard)
    for _ in range(300):
        rows, statistics = model.update_rows(solver, shard, rows, None)
    dual = solver.dual(rows.linear, rows.weights)
    mean = rows.level[:, None] + dual.mean
    omega = augmentation.expected_potential(shard.splits, np.sqrt(mean**2 + dual.variance)).omega
    np.testing.assert_allclose(rows.weights, omega, rtol=1e-6, atol=1e-9)
    worse = [
        model._bounds(shard, changed, solver.dual(changed.linear, changed.weights)).sum()
        for changed in (
            rows._replace(weights=1.3 * rows.weights),
            rows._replace(linear=0.9 * rows.linear),
        )
    ]
    assert max(worse) < statistics.value - shard.log_coefficient


@needs_jit
def test_mean_field_meets_gibbs(rng):
    model = line_model("dense", ())
    counts = rng.multinomial(10 * TOTALS, [0.2, 0.3, 0.5])
    shards = model.shards(counts)
    q = MeanField(1e-8, n_draws=1).run(model, shards, seed=1)
    draws = np.asarray(
        Gibbs(4000, 100, n_chains=1, keep=("psi",)).run(model, shards, seed=1)["psi"]
    )[0]
    mean, sd = (np.asarray(part) for part in q.running("psi"))
    assert np.abs(mean - draws.mean(axis=0)).max() < 0.25 * draws.std(axis=0).max()
    assert (sd / draws.std(axis=0)).min() > 0.6
    assert (sd / draws.std(axis=0)).max() < 1.05


# new inputs


def test_collapsed_and_uncollapsed_predictions_agree(rng):
    """Averaged over the posterior both are E[psi*] and its variance."""
    model = line_model("dense", ())
    counts = rng.multinomial(3 * TOTALS, [0.2, 0.3, 0.5])
    shards, new = model.shards(counts), np.array([[0.7], [3.0], [9.0]])
    n_draws, every = (3000, 4) if JIT else (150, 1)  # collapsed ones are dear, and vary little
    posterior = Gibbs(n_draws, 50, n_chains=1, keep=("white", "mean", "scale")).run(
        model, shards, seed=2
    )
    predictor = model.family.predictor(model.family.theta0, new)
    both = {True: [], False: []}
    names = ("theta", "white", "mean", "scale")
    chain = {name: np.asarray(posterior[name])[0] for name in names}
    for i in range(n_draws):
        draw = {name: values[i] for name, values in chain.items()}
        both[False].append(model.latent(draw, predictor, None, Key(1, i)))
        if i % every == 0:
            both[True].append(model.latent(draw, predictor, shards, Key(1, i)))
    means = {
        how: np.array([mean for mean, _ in found]).reshape(len(found), -1)
        for how, found in both.items()
    }
    gap = z_scores(means[True], means[False].mean(axis=0), standard_error(means[False]))
    assert np.abs(gap).max() < MAX_Z
    spread = [
        means[how].var(axis=0) + np.mean([v for _, v in found], axis=0).ravel()
        for how, found in both.items()
    ]
    np.testing.assert_allclose(*spread, rtol=0.2)
    assert (means[True].var(axis=0) < means[False].var(axis=0)).all()  # what appendix B promises


def test_far_away_is_the_prior(rng):
    model = line_model("dense", ())
    counts = rng.multinomial(TOTALS, [0.2, 0.3, 0.5])
    shards = model.shards(counts)
    q = MeanField(n_draws=1).run(model, shards, seed=1)
    factor = {n: np.asarray(q.running(n)[0]) for n in ("linear", "weights", "mean", "scale")}
    predictor = model.family.predictor(model.family.theta0, np.array([[1000.0]]))
    mean, variance = model.latent_of_factor(factor, predictor)
    np.testing.assert_allclose(mean[:, 0], model.level, atol=1e-8)
    np.testing.assert_allclose(variance, 1.5, rtol=1e-8)
