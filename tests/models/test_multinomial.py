"""Correlated multinomials: the sweep is right, the bound is a bound, and both would be caught if not."""

import warnings
from dataclasses import dataclass, replace
from functools import partial

import numba
import numpy as np
import pytest
import scipy.sparse
from scipy import integrate, optimize, stats
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from joint import Law, first_and_second, one_sweep, ranks, uniform_pvalues
from polystick import augmentation, scores
from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from polystick.kernels import exact_cells
from polystick.keys import Key
from polystick.models.multinomial import CorrelatedCounts, Parameters, Rows
from polystick.population import LearnedScale
from statistics_tools import MAX_Z

JIT = not numba.config.DISABLE_JIT
PRIOR = NormalInverseWishart(np.array([0.5, -1.0]), 1.5, np.array([[6.0, 2.0], [2.0, 9.0]]), 12.0)
STICKS = CorrelatedCounts(PRIOR, Decomposition.sticks([0, 1, 2]))
TREE = CorrelatedCounts(
    NormalInverseWishart(np.array([0.5, -1.0, 0.2]), 1.5, 8 * np.eye(3) + 2.0, 13.0),
    Decomposition.balanced(4),
)
HEAVY = CorrelatedCounts(  # tails of cov that a start near the mode would never see
    NormalInverseWishart(np.array([-2.0, -1.5, -2.0]), 0.8, np.eye(3) + 2.0, 5.0),
    Decomposition.sticks(range(4)),
)
LIGHT = CorrelatedCounts(
    NormalInverseWishart(np.array([-2.5, -3.0, -3.0]), 4.0, 40.0 * np.eye(3) + 80.0, 60.0),
    Decomposition.sticks(range(4)),
)
LEARNED = CorrelatedCounts(
    LearnedScale(np.array([-1.0, -0.5, -1.0]), scale=1.0, nu=6.0), Decomposition.sticks(range(4))
)
FREE = CorrelatedCounts(LearnedScale(LEARNED.prior.centre, scale=1.0), Decomposition.balanced(4))
TOTALS = np.array([0, 1, 3, 8, 30])
LARGE = np.array([0, 2, 10, 5000, 300, 30])
needs_jit = pytest.mark.skipif(not JIT, reason="thousands of sweeps need the compiler")


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


# the sweep against the law


def sweep(model, everything, i, rng):
    parameters, rows, counts = everything
    (shard,) = model.shards(counts)
    parameters, rows = one_sweep(model, parameters, rows, shard, i)
    return parameters, rows, model.simulate_counts(rows, counts.sum(axis=1), rng)


def summarise(everything):
    """Use bounded or light-tailed functions, so that their averages have standard errors."""
    (mean, cov, *_), (psi,), counts = everything
    sd = np.sqrt(np.diag(cov))
    correlation = (cov / np.outer(sd, sd))[np.triu_indices(len(sd), 1)]
    squashed = np.tanh(psi[[0, 2, -1]] / 3)
    shares = counts[[1, -1], :-1] / counts[[1, -1]].sum(axis=1, keepdims=True)
    level = np.tanh(mean / 3)
    return first_and_second([level, np.log(sd), correlation, squashed[:, 0], squashed[2], shares])


def summarise_residuals(everything):
    """Say how far rows are from the mean, in its standard deviations: bounded, and averaged over rows."""
    (mean, cov, *_), (psi,), _ = everything
    sd = np.sqrt(np.diag(cov))
    i, j = np.triu_indices(len(sd), 1)
    far = np.tanh((psi - mean) / (2 * sd))
    of_rows = [far.mean(axis=0), (far**2).mean(axis=0), (far[:, i] * far[:, j]).mean(axis=0)]
    large = far[-3:]
    of_rows += [(large**2).mean(axis=0), (large[:, i] * large[:, j]).mean(axis=0)]
    return np.concatenate([np.tanh(mean / 3), np.log(sd), cov[i, j] / (sd[i] * sd[j]), *of_rows])


def law_of(model, totals, summarise=summarise):
    return Law(lambda rng: model.simulate(totals, rng), summarise), model


LAWS = {"sticks": law_of(STICKS, TOTALS), "tree": law_of(TREE, TOTALS)}
STRONG = {
    "heavy tails": law_of(HEAVY, LARGE, summarise_residuals),
    "light tails": law_of(LIGHT, LARGE, summarise_residuals),
    "learned": law_of(LEARNED, LARGE, summarise_residuals),
    "learned, nu too": law_of(FREE, LARGE, summarise_residuals),
}
GIVEN = ("heavy tails", "light tails")  # laws whose scale is not learned


@needs_jit
@pytest.mark.parametrize("n_iter", [5000, pytest.param(60_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", LAWS)
def test_geweke(name, n_iter, rng):
    law, model = LAWS[name]
    z = law.z(partial(sweep, model), n_iter, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


def sweep_only(model, everything, i, rng):
    parameters, rows, counts = everything
    (shard,) = model.shards(counts)
    return *one_sweep(model, parameters, rows, shard, i), counts


def rows_only(model, everything, i, rng):
    parameters, rows, counts = everything
    (shard,) = model.shards(counts)
    return parameters, model.draw_rows(model.prepare(parameters), shard, rows, Key(7, i))[0], counts


def together_only(model, everything, i, rng):
    parameters, rows, counts = everything
    parameters, (rows,) = model.move_together(parameters, model.shards(counts), [rows], Key(7, i))
    return parameters, rows, counts


def cells_only(model, everything, i, rng):
    parameters, rows, counts = everything
    shards = model.shards(counts)
    parameters, (rows,) = model._redraw_open_cells(parameters, shards, [rows], Key(7, i))
    return parameters, rows, counts


@needs_jit
@pytest.mark.parametrize("n_starts", [600, pytest.param(6000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("move", [sweep_only, rows_only, together_only])
@pytest.mark.parametrize("name", STRONG)
def test_moves_keep_the_law_where_totals_are_large(name, move, n_starts, rng):
    law, model = STRONG[name]
    z = law.drift_z(partial(move, model), n_starts, 4, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@dataclass(frozen=True)
class WrongKappa(CorrelatedCounts):
    """kappa = successes - (trials + 1) / 2."""

    def draw_rows(self, prior, shard, rows, key):
        splits = shard.splits
        kappa, omega = augmentation.draw_potential(splits, rows.psi, key.at("omega"), shard.rows)
        potential = augmentation.Potential(np.where(splits.trials > 0, kappa - 0.5, 0.0), omega)
        psi = prior.draw(potential, key.normals("psi", shard.rows, 2 * self.n_sticks))
        statistics = super().draw_rows(prior, shard, rows, key)[1]
        return Rows(psi), statistics._replace(total=psi.sum(0), outer=psi.T @ psi)


@dataclass(frozen=True)
class ForgottenTilt(CorrelatedCounts):
    """omega ~ PG(trials, 0)."""

    def draw_rows(self, prior, shard, rows, key):
        return super().draw_rows(prior, shard, Rows(np.zeros_like(rows.psi)), key)


@dataclass(frozen=True)
class TwiceCounted(CorrelatedCounts):
    """The global step counts each row twice."""

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        doubled = type(statistics)(*(2 * part for part in statistics))
        return super().draw_parameters(parameters, doubled, key)


@dataclass(frozen=True)
class SharedNoise(CorrelatedCounts):
    """The noise of psi is that of the first row, for all rows."""

    def draw_rows(self, prior, shard, rows, key):
        same = shard._replace(rows=np.zeros_like(shard.rows))
        return super().draw_rows(prior, same, rows, key)


@dataclass(frozen=True)
class DeafCells(CorrelatedCounts):
    """Cells that are drawn together hear of the others of their row as if those were at their mean."""

    def draw_rows(self, prior, shard, rows, key):
        heard = np.where(shard.exact, prior.mean, rows.psi)
        rows, statistics = super().draw_rows(prior, shard, Rows(heard), key)
        return rows, statistics


@dataclass(frozen=True)
class StiffLaw(CorrelatedCounts):
    """Weak sticks are redrawn as if the law had a third more degrees."""

    def move_together(self, parameters, shards, rows, key, ordered_map=map):
        stiff = replace(self, prior=replace(self.prior, degrees=self.prior.degrees * 1.3))
        return CorrelatedCounts.move_together(stiff, parameters, shards, rows, key)


@dataclass(frozen=True)
class StudentTooSure(CorrelatedCounts):
    """Open cells are redrawn as if there were twice as many rows."""

    def _redraw_open_cells(self, parameters, shards, rows, key):
        sure = replace(
            self, prior=replace(self.prior, degrees=self.prior.degrees + len(rows[0].psi))
        )
        _, rows = CorrelatedCounts._redraw_open_cells(sure, parameters, shards, rows, key)
        psi = rows[0].psi
        law = self.prior.posterior(len(psi), psi.sum(axis=0), psi.T @ psi)
        return law.draw(key.generator("right again")), rows


@dataclass(frozen=True)
class StaleLaw(CorrelatedCounts):
    """Mean and cov stay where they were when open cells were drawn without them."""

    def _redraw_open_cells(self, parameters, shards, rows, key):
        return parameters, super()._redraw_open_cells(parameters, shards, rows, key)[1]


@dataclass(frozen=True)
class SureSplits(CorrelatedCounts):
    """Lopsided splits are drawn as if the law were three times as sure of them."""

    def draw_rows(self, prior, shard, rows, key):
        none = shard._replace(exact=np.zeros_like(shard.exact))
        rows, statistics = super().draw_rows(prior, none, rows, key)
        sure = 3.0 * prior.precision
        exact_cells.redraw_rows_in_place(
            key.at("lopsided"),
            shard.rows,
            *shard.splits,
            shard.exact,
            prior.mean[None],
            sure,
            rows.psi,
        )
        outer = rows.psi.T @ rows.psi
        return rows, statistics._replace(total=rows.psi.sum(axis=0), outer=outer)


@needs_jit
@pytest.mark.parametrize(
    ("wrong", "move", "name"),
    [
        *((StiffLaw, together_only, name) for name in GIVEN),
        *((SureSplits, rows_only, name) for name in GIVEN),
        *((DeafCells, rows_only, name) for name in GIVEN),
        (StudentTooSure, cells_only, "heavy tails"),  # light ones hardly ask for the degrees
        (StaleLaw, cells_only, "heavy tails"),
    ],
)
def test_a_sabotaged_move_loses_the_law(wrong, move, name, rng):
    law, model = STRONG[name]
    twin = wrong(model.prior, model.decomposition)
    z = law.drift_z(partial(move, twin), 600, 4, rng)
    assert np.abs(z).max() > MAX_Z, np.abs(z).max()


@dataclass(frozen=True)
class FreeScales(CorrelatedCounts):
    """Scales of sticks move as if they had hardly a law of their own."""

    def _move_scales(self, parameters, shards, rows, key):
        free = replace(self, prior=replace(self.prior, scale=3.0 * self.prior.scale))
        return CorrelatedCounts._move_scales(free, parameters, shards, rows, key)


@dataclass(frozen=True)
class ForgottenMean(CorrelatedCounts):
    """The law of the mean is forgotten where scales of sticks move."""

    def _move_scales(self, parameters, shards, rows, key):
        weightless = parameters._replace(strength=np.array(0.0))
        moved, rows = super()._move_scales(weightless, shards, rows, key)
        return moved._replace(strength=parameters.strength), rows


def scales_only(model, everything, i, rng):
    parameters, rows, counts = everything
    shards = model.shards(counts)
    parameters, (rows,) = model._move_scales(parameters, shards, [rows], Key(7, i))
    return parameters, rows, counts


@needs_jit
@pytest.mark.parametrize("wrong", [FreeScales, ForgottenMean])
def test_sabotaged_scales_lose_the_law(wrong, rng):
    law, model = STRONG["learned"]
    twin = wrong(model.prior, model.decomposition)
    assert np.abs(law.drift_z(partial(scales_only, twin), 1500, 6, rng)).max() > MAX_Z


@needs_jit
@pytest.mark.parametrize("wrong", [WrongKappa, ForgottenTilt, TwiceCounted, SharedNoise])
def test_geweke_rejects_a_sabotaged_sweep(wrong, rng):
    law, twin = LAWS["sticks"][0], wrong(PRIOR, STICKS.decomposition)
    assert law.worst_z(partial(sweep, twin), 5000, rng) > MAX_Z


# calibration


def sbc(model, n_simulations, rng, n_draws=99):
    found = []
    for seed in range(n_simulations):
        parameters, rows, counts = model.simulate(TOTALS, rng)
        gibbs = Gibbs(n_draws, n_burn=50, thin=6, n_chains=1, keep=("probabilities",))
        posterior = gibbs.run(model, model.shards(counts), seed=seed)
        truth = model.decomposition.probabilities(rows.psi)[[0, 2, 4]]
        pi = posterior["probabilities"][0][:, [0, 2, 4]]
        pairs = [(parameters.mean, posterior["mean"][0]), (truth, pi)]
        pairs.append((np.diag(parameters.cov), np.diagonal(posterior["cov"][0], axis1=1, axis2=2)))
        found.append(np.concatenate([ranks(t, d).ravel() for t, d in pairs]))
    return uniform_pvalues(np.array(found), n_draws)


@pytest.mark.slow
@pytest.mark.parametrize("model", [STICKS, TREE], ids=["sticks", "tree"])
def test_sbc(model, rng):
    p = sbc(model, 600, rng)
    assert p.min() > 1e-4, p


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [WrongKappa, TwiceCounted])
def test_sbc_rejects_a_sabotaged_sweep(wrong, rng):
    p = sbc(wrong(PRIOR, STICKS.decomposition), 600, rng)
    assert p.min() < 1e-4, p


def test_sbc_machine_rejects_wrong_ranks(rng):
    n = 2000
    right = rng.integers(0, 100, size=(n, 1))
    narrow = rng.binomial(99, 0.5, size=(n, 1))
    assert uniform_pvalues(right, 99).min() > 1e-4
    assert uniform_pvalues(narrow, 99).min() < 1e-4


# bounds


def bound_trace(model, counts, n_sweeps):
    shards = model.shards(counts)
    settings = MeanField(tolerance=1e-13, max_sweeps=n_sweeps, n_draws=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = settings.run(model, shards, seed=0)
    return posterior.tree["optimisation"]["elbo"].values


@pytest.mark.parametrize("model", [STICKS, TREE], ids=["sticks", "tree"])
def test_elbo_never_falls(model, rng):
    totals = np.concatenate([TOTALS, rng.integers(0, 200, 300)])
    _, _, counts = model.simulate(totals, rng)
    trace = bound_trace(model, counts, 60)
    assert (np.diff(trace) > -1e-9 * np.abs(trace[1:])).all()
    assert len(trace) > 10
    assert trace[-1] > trace[0]


def evidence_of_one_row(prior, successes, trials):
    """p(x) for K = 2 by quadrature: psi is Student's t when mean and cov are integrated out."""
    degrees = prior.degrees  # k = 1: psi ~ t with degrees, scale^2 = Psi (1 + 1/strength) / degrees
    scale = np.sqrt(prior.scale[0, 0] * (1 + 1 / prior.strength) / degrees)
    law = stats.t(degrees, prior.mean[0], scale)
    integrand = lambda psi: (
        law.pdf(psi) * stats.binom.pmf(successes, trials, 1 / (1 + np.exp(-psi)))
    )
    return integrate.quad(integrand, -60, 60, limit=500)[0]


COUNTS = [(3, 4), (0, 0), (0, 9), (40, 2)]


def bound_of_one_row(certainty, counts):
    scale = np.array([[2.0 * certainty]])
    prior = NormalInverseWishart(np.array([0.4]), certainty / 4, scale, certainty)
    model = CorrelatedCounts(prior, Decomposition.sticks([0, 1]))
    return prior, bound_trace(model, np.array([counts]), 300)[-1]


@pytest.mark.parametrize("counts", COUNTS)
def test_elbo_lies_below_the_evidence(counts):
    prior, bound = bound_of_one_row(8.0, counts)
    evidence = np.log(evidence_of_one_row(prior, counts[0], sum(counts)))
    assert bound < evidence + 1e-9
    assert evidence - bound < 0.6


def best_tangent_bound(counts, mean, variance):
    """Maximise over c the Gaussian integral of the tangent bound on the likelihood, in closed form."""
    successes, trials = counts[0], sum(counts)

    def negative(c):
        omega = trials * np.tanh(c / 2) / (2 * c)
        precision, linear = 1 / variance + omega, mean / variance + successes - trials / 2
        gaussian = linear**2 / precision - mean**2 / variance - np.log(precision * variance)
        return -(0.5 * gaussian + 0.5 * omega * c**2 - trials * np.log(2 * np.cosh(c / 2)))

    found = optimize.minimize_scalar(negative, bounds=(1e-6, 30), method="bounded")
    return scores.log_coefficients(np.array([counts]))[0] - found.fun


@pytest.mark.parametrize("counts", COUNTS)
def test_elbo_is_the_tangent_bound_where_parameters_are_known(counts):
    """Catches a lost constant: the exact optimum is known."""
    _, bound = bound_of_one_row(1e7, counts)
    assert abs(bound - best_tangent_bound(counts, 0.4, 2.0)) < 1e-5


def test_described_rows_follow_their_factors():
    """K = 2: mean and sd of pi under q(psi) = N(m, v), by quadrature."""
    model = CorrelatedCounts(
        NormalInverseWishart(np.array([0.4]), 2.0, np.array([[9.0]]), 8.0),
        Decomposition.sticks([0, 1]),
    )
    shards = model.shards(np.array([[3, 4], [0, 9], [30, 1], [0, 0]]))
    prior, rows = model.expect(model.prior), model.initial_row_factors(None, shards[0])
    for _ in range(100):
        rows, _ = model.update_rows(prior, shards[0], rows, None)
    drawn = model.draw_described_rows(prior, shards[0], rows, 1024)["probabilities"][:, :, 0]
    for i, (m, v) in enumerate(zip(rows.mean[:, 0], rows.variance[:, 0])):
        law = stats.norm(m, np.sqrt(v))
        mean, square = (law.expect(lambda x, p=p: expit(x) ** p) for p in (1, 2))
        assert drawn[:, i].mean() == pytest.approx(mean, abs=0.002)
        assert drawn[:, i].std() == pytest.approx(np.sqrt(square - mean**2), abs=0.002)


# agreement and identities


def test_mean_field_meets_gibbs_where_counts_are_plenty(rng):
    _, _, counts = STICKS.simulate(np.full(150, 400), rng)
    shards = STICKS.shards(counts)
    gibbs = Gibbs(300 if JIT else 20, 100 if JIT else 10, n_chains=2).run(STICKS, shards, seed=1)
    field = MeanField().run(STICKS, shards, seed=1)
    sd = gibbs.flat("mean").std(axis=0)
    assert (np.abs(gibbs.flat("mean").mean(0) - field.flat("mean").mean(0)) < sd).all()
    gap = np.abs(gibbs.running("probabilities")[0] - field.running("probabilities")[0])
    assert gap.max() < 0.02


def test_sparse_counts_give_the_bits_of_dense_ones(rng):
    _, _, counts = TREE.simulate(rng.integers(0, 6, 300), rng)
    runs = [
        Gibbs(5, 2, n_chains=1).run(TREE, TREE.shards(x), seed=3)
        for x in (counts, scipy.sparse.csr_array(counts))
    ]
    np.testing.assert_array_equal(runs[0]["cov"], runs[1]["cov"])


ONE_STICK = CorrelatedCounts(
    NormalInverseWishart(np.array([0.0]), 1.0, np.eye(1), 5.0), Decomposition.sticks([0, 1])
)
FEW_ROWS = np.array([[3, 4], [0, 0], [0, 30], [500, 3]])


def integral(function, counts, mean, variance):
    """Integrate function(psi) p(x | psi) N(psi | mean, variance) over psi."""

    def integrand(psi):
        pi = 1 / (1 + np.exp(-psi))
        likelihood = stats.binom.pmf(counts[0], sum(counts), pi)
        return function(pi) * likelihood * stats.norm.pdf(psi, mean, np.sqrt(variance))

    return integrate.quad(integrand, -14, 14, points=[-6, -3, 0, 3, 6], limit=400)[0]


def test_proposals_give_the_evidence_and_the_posterior_of_rows():
    """Over two priors: the weights average to the mixture's evidence, and weight its posterior."""
    laws = [(0.7, 2.5), (-0.5, 0.8)]
    priors = [ONE_STICK.prepare(Parameters(np.array([m]), np.array([[v]]))) for m, v in laws]
    (shard,) = ONE_STICK.shards(FEW_ROWS)
    psi, log_weights = ONE_STICK.propose_rows(priors, shard, 256)
    weights = np.exp(log_weights)
    pi = 1 / (1 + np.exp(-psi[:, :, 0]))
    for i, counts in enumerate(FEW_ROWS):
        evidence = np.mean([integral(np.ones_like, counts, *law) for law in laws])
        mean = np.mean([integral(lambda p: p, counts, *law) for law in laws]) / evidence
        coefficient = np.exp(scores.log_coefficients(FEW_ROWS)[i])
        assert weights[i].mean() * coefficient == pytest.approx(evidence, rel=0.01)
        assert np.average(pi[i], weights=weights[i]) == pytest.approx(mean, rel=0.01)


def test_proposals_of_many_sticks_are_worth_most_of_their_number(rng):
    """Laplace's approximation fits: with K = 40 the weights stay even."""
    k = 39
    model = CorrelatedCounts(
        NormalInverseWishart.weak(np.full(k, -2.0), np.full(k, 1.0)),
        Decomposition.sticks(range(k + 1)),
    )
    law = Parameters(np.full(k, -2.0), 0.5 * np.eye(k) + 0.5)
    psi = rng.multivariate_normal(*law, size=20)
    counts = model.simulate_counts(Rows(psi), np.repeat([0, 5, 50, 5000], 5), rng)
    (shard,) = model.shards(counts)
    _, log_weights = model.propose_rows([model.prepare(law)], shard, 128)
    assert scores.effective_draws(log_weights, axis=1).min() > 32
