"""Rows behind a softmax: the sweep is right under each law, and would be caught if it were not."""

from dataclasses import dataclass, fields, replace
from functools import partial

import numba
import numpy as np
import pytest
import scipy.sparse
from scipy import stats
from scipy.special import softmax

from joint import Law, first_and_second, one_sweep, ranks, uniform_pvalues
from polystick import scores
from polystick.association import correlations, double_centred
from polystick.conjugate import NormalInverseWishart
from polystick.gaussians.normal import Normal
from polystick.inference.execution import Threads
from polystick.inference.gibbs import Gibbs
from polystick.kernels import factor_moves, softmax_columns, softmax_rows
from polystick.keys import Key
from polystick.models import softmax_counts
from polystick.models.multinomial import Rows
from polystick.models.softmax_counts import SoftmaxCounts
from polystick.population import LearnedScale, SparseFactors, gammas, sparse_factors
from statistics_tools import MAX_Z

JIT = not numba.config.DISABLE_JIT
needs_jit = pytest.mark.skipif(not JIT, reason="thousands of sweeps need the compiler")
CENTRE = np.array([0.5, -1.0, 0.2, 0.0, -0.5])
TOTALS = np.array([0, 1, 3, 8, 30, 30])
LARGE = np.array([0, 2, 10, 5000, 300, 30])
WISHART = SoftmaxCounts(
    NormalInverseWishart(CENTRE[:4], 1.5, 6 * np.eye(4) + 2.0 * np.eye(4)[::-1], 12.0)
)
LEARNED = SoftmaxCounts(LearnedScale(CENTRE[:4], scale=1.0, nu=6.0))
FREE = SoftmaxCounts(LearnedScale(CENTRE[:4], scale=1.0))
FACTORS = SoftmaxCounts(SparseFactors(CENTRE, 2, scale=0.7, sparsity=0.5, wide=1.0))
HEAVY = SoftmaxCounts(NormalInverseWishart(CENTRE[:4] - 1.0, 0.8, np.eye(4) + 2.0, 6.0))


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


# the sweep against the law


def summarise(everything):
    """Say what shares could tell, in bounded functions: of the law, of contrasts of rows, and of counts."""
    parameters, (psi,), counts = everything
    cov = double_centred(parameters.cov)
    sd = np.sqrt(np.diag(cov))
    i, j = np.triu_indices(len(sd), 1)
    of_law = [
        np.tanh(np.diff(parameters.mean) / 3),
        np.tanh(np.log(sd) / 2),
        (cov[i, j] / (sd[i] * sd[j]))[:3],
    ]
    contrasts = np.diff(psi, axis=1)
    far = np.tanh(
        (contrasts - np.diff(parameters.mean)) / (2 * np.sqrt(contrast_variance(parameters.cov)))
    )
    of_rows = [far.mean(axis=0), (far**2).mean(axis=0), (far[:, :-1] * far[:, 1:]).mean(axis=0)]
    of_rows += [np.tanh(contrasts[[0, 2, -1]] / 3).ravel(), (far[3:] ** 2).mean(axis=0)]
    shares = counts[[1, -1], :-1] / counts[[1, -1]].sum(axis=1, keepdims=True)
    values = np.concatenate([*map(np.ravel, of_law), *of_rows, shares.ravel()])
    return np.concatenate([values, first_and_second(of_law[:2])[len(np.concatenate(of_law[:2])) :]])


def contrast_variance(cov):
    return np.diag(cov)[1:] + np.diag(cov)[:-1] - 2 * np.diag(cov, 1)


def law_of(model, totals):
    return Law(lambda rng: model.simulate(totals, rng), summarise), model


LAWS = {"wishart": law_of(WISHART, TOTALS)}
# where new counts hardly move the state, or the law's tails are so heavy that a chain is long far out
STRONG = {
    "learned, few counts": law_of(LEARNED, TOTALS),
    "factors, few counts": law_of(FACTORS, TOTALS),
    "heavy wishart": law_of(HEAVY, LARGE),
    "learned": law_of(LEARNED, LARGE),
    "learned, nu too": law_of(FREE, LARGE),
    "factors": law_of(FACTORS, LARGE),
}


def sweep(model, everything, i, rng):
    parameters, rows, counts = everything
    (shard,) = model.shards(counts)
    parameters, rows = one_sweep(model, parameters, rows, shard, i)
    return parameters, rows, model.simulate_counts(rows, counts.sum(axis=1), rng)


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


N_SWEEPS = {"wishart": 2000, "factors": 2500}


@needs_jit
@pytest.mark.parametrize("times", [1, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", LAWS)
def test_geweke(name, times, rng):
    law, model = LAWS[name]
    z = law.z(partial(sweep, model), times * N_SWEEPS[name], rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


MOVES = [(name, move) for name in STRONG for move in (sweep_only, rows_only)]


@needs_jit
@pytest.mark.parametrize("n_starts", [400, pytest.param(6000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "move"), [*MOVES, ("factors", together_only)])
def test_moves_keep_the_law_from_starts_that_have_it(name, move, n_starts, rng):
    law, model = STRONG[name]
    z = law.drift_z(partial(move, model), n_starts, 4, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


# sabotage


@dataclass(frozen=True)
class TwiceCounted(SoftmaxCounts):
    """The global step counts each row twice."""

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        doubled = type(statistics)(*(2 * part for part in statistics))
        return super().draw_parameters(parameters, doubled, key)


@dataclass(frozen=True)
class SureOfOne(SoftmaxCounts):
    """The first category of each row is drawn once more, as if the law were twice as sure of it."""

    def draw_rows(self, prior, shard, rows, key):
        rows, statistics = super().draw_rows(prior, shard, rows, key)
        sure = 2.0 * prior.precision
        psi = rows.psi.copy()
        softmax_rows.redraw_rows_in_place(
            key.at("again"), shard.rows, shard.counts, shard.totals, prior.mean[None], sure, psi
        )
        rows.psi[:, 0] += (psi - rows.psi)[:, 0] - (psi - rows.psi)[:, 1:].mean(axis=1)
        return rows, statistics._replace(total=rows.psi.sum(axis=0), outer=rows.psi.T @ rows.psi)


@dataclass(frozen=True)
class SharedNoise(SoftmaxCounts):
    """All rows are drawn from the stream of the first."""

    def draw_rows(self, prior, shard, rows, key):
        return super().draw_rows(prior, shard._replace(rows=np.zeros_like(shard.rows)), rows, key)


@dataclass(frozen=True)
class OldLevels(SoftmaxCounts):
    """Rows keep their levels when those of the law were drawn anew, and columns move from there."""

    def move_together(self, parameters, shards, rows, key, ordered_map=map):
        right, softmax_counts._new_levels = softmax_counts._new_levels, lambda p, psi, *_: psi + 0.0
        try:
            return super().move_together(parameters, shards, rows, key)
        finally:
            softmax_counts._new_levels = right


@dataclass(frozen=True)
class WrongColumns(SoftmaxCounts):
    """Columns move as if noise were a third as wide, and the mean three times as sure."""

    def move_together(self, parameters, shards, rows, key, ordered_map=map):
        wrong = replace(self.law, scale=self.law.scale / 3, wide=self.law.wide / 3)
        return SoftmaxCounts(wrong).move_together(parameters, shards, rows, key)


@dataclass(frozen=True, eq=False)
class WrongShape(LearnedScale):
    """The shape of the scales is off by a half."""

    def redraw_scales(self, parameters, rng):
        k, drawn = len(self.centre), super().redraw_scales(parameters, rng)
        rate = self.nu * np.diag(parameters.precision) + self.scale**-2.0
        spread = gammas.inverse_gamma(0.5 * (self.nu + k) + 0.5, rate, rng)
        return drawn._replace(spread=spread)


@dataclass(frozen=True, eq=False)
class WrongNoise(SparseFactors):
    """The noise has shape n / 2, not (n + 1) / 2."""

    def redraw(self, parameters, n, total, outer, rng):
        right = sparse_factors.inverse_gamma_within
        less = lambda ends, shape, *rest: right(
            ends, shape - 0.5 * (ends is sparse_factors.NOISE), *rest
        )
        sparse_factors.inverse_gamma_within = less
        try:
            return super().redraw(parameters, n, total, outer, rng)
        finally:
            sparse_factors.inverse_gamma_within = right


@dataclass(frozen=True, eq=False)
class ForgottenLoadings(SparseFactors):
    """Factors lean on each other as if loadings had hardly a law of their own."""

    def _move_factors(self, p, gram, cross, rng):
        weights, (centre, known) = self.weights(p)
        weights[:, 0], centre[:, 0] = 0.0, self.centre - p.mean
        key = rng.integers(2**64, dtype=np.uint64)
        factor_moves.move_in_place(key, gram, cross, weights, centre, 0.1 * known)


def wrong_law(kind, model):
    return SoftmaxCounts(
        kind(**{field.name: getattr(model.law, field.name) for field in fields(kind)})
    )


WRONG = [
    ("wishart", SureOfOne(WISHART.law)),
    ("wishart", SharedNoise(WISHART.law)),
]


def name_of(model):
    return type(model.law if type(model) is SoftmaxCounts else model).__name__


@needs_jit
@pytest.mark.parametrize(
    ("name", "wrong"), WRONG, ids=lambda x: x if isinstance(x, str) else name_of(x)
)
def test_geweke_rejects_a_sabotaged_sweep(name, wrong, rng):
    assert LAWS[name][0].worst_z(partial(sweep, wrong), 6000, rng) > MAX_Z


@needs_jit
def test_old_levels_lose_the_law(rng):
    """They are old from the second sweep on, and the further the wider the law of levels is."""
    wide = SoftmaxCounts(replace(FACTORS.law, wide=10.0))
    law, _ = law_of(wide, TOTALS)
    right, wrong = (
        np.abs(law.drift_z(partial(sweep_only, model), 400, 6, rng)).max()
        for model in (wide, OldLevels(wide.law))
    )
    assert right < MAX_Z < wrong


@needs_jit
@pytest.mark.parametrize(
    ("name", "wrong", "move", "n_starts"),
    [
        ("heavy wishart", SureOfOne(HEAVY.law), rows_only, 400),
        ("learned", TwiceCounted(LEARNED.law), sweep_only, 400),
        ("learned, few counts", wrong_law(WrongShape, LEARNED), sweep_only, 1200),
        ("factors", WrongColumns(FACTORS.law), together_only, 500),
        ("factors, few counts", wrong_law(WrongNoise, FACTORS), sweep_only, 1200),
        ("factors, few counts", wrong_law(ForgottenLoadings, FACTORS), sweep_only, 1200),
    ],
)
def test_a_sabotaged_move_loses_the_law(name, wrong, move, n_starts, rng):
    z = STRONG[name][0].drift_z(partial(move, wrong), n_starts, 4, rng)
    assert np.abs(z).max() > MAX_Z, np.abs(z).max()


# calibration


def sbc(model, n_simulations, rng, thin, n_draws=99):
    """Return p-values of ranks. Under the full law some tables mix slowly, and need the more thinning."""
    found = []
    for seed in range(n_simulations):
        parameters, rows, counts = model.simulate(TOTALS, rng)
        gibbs = Gibbs(n_draws, n_burn=300, thin=thin, n_chains=1, keep=("probabilities",))
        posterior = gibbs.run(model, model.shards(counts), seed=seed)
        truth = model.describe_parameters(parameters)
        variances = np.diagonal(posterior["cov"][0], axis1=1, axis2=2)
        pairs = [(truth["mean"], posterior["mean"][0]), (np.diag(truth["cov"]), variances)]
        pairs.append(
            (model.probabilities(rows.psi)[[0, 2, 4]], posterior["probabilities"][0][:, [0, 2, 4]])
        )
        found.append(np.concatenate([ranks(t, d).ravel() for t, d in pairs]))
    return uniform_pvalues(np.array(found), n_draws)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("model", "thin"), [(LEARNED, 40), (FACTORS, 6)], ids=["learned", "factors"]
)
def test_sbc(model, thin, rng):
    p = sbc(model, 200, rng, thin)
    assert p.min() > 1e-4, p


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "wrong", [SureOfOne(LEARNED.law), TwiceCounted(FACTORS.law)], ids=["learned", "factors"]
)
def test_sbc_rejects_a_sabotaged_sweep(wrong, rng):
    assert sbc(wrong, 200, rng, 6).min() < 1e-4


# identities


def table(rng, n=150, k=6):
    psi = -0.6 * np.arange(k) + rng.normal(size=(n, k))
    return rng.multinomial(rng.integers(0, 60, n), softmax(psi, axis=1))


def short_run(model, counts, size=512, n_draws=5, **options):
    gibbs = Gibbs(n_draws, 3, n_chains=1, keep=("probabilities",))
    with np.errstate(all="raise", under="ignore"):
        return gibbs.run(model, model.shards(counts, size), seed=3, **options)


MODELS = {
    "wishart": SoftmaxCounts(NormalInverseWishart.weak(np.zeros(6), np.ones(6))),
    "learned": SoftmaxCounts(LearnedScale(np.zeros(6))),
    "factors": SoftmaxCounts(SparseFactors(np.zeros(6))),
}
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@quiet
@pytest.mark.parametrize("name", MODELS)
def test_sparse_counts_and_any_number_of_threads_give_the_same_bits(name, rng):
    model, counts = MODELS[name], table(rng)
    one = short_run(model, counts, size=64)
    runs = [short_run(model, scipy.sparse.csr_array(counts), size=64)]
    runs += [short_run(model, counts, size=64, execution=Threads(n)) for n in (2, 4)]
    runs += [short_run(model, np.asfortranarray(counts), size=64)]
    for run in runs:
        for part in ("mean", "cov", "probabilities"):
            np.testing.assert_array_equal(run[part], one[part])


def pull_the_plug(progress):
    if progress.sweep == 5:
        raise RuntimeError("pulled the plug")


@quiet
@pytest.mark.parametrize("name", MODELS)
def test_a_resumed_run_gives_the_same_bits(name, rng, tmp_path):
    model, counts = MODELS[name], table(rng, 20)
    run = partial(short_run, model, counts, checkpoint=tmp_path / "run", every=0.0)
    with pytest.raises(RuntimeError, match="pulled the plug"):
        run(progress=pull_the_plug)
    resumed, whole = run(resume=True), short_run(model, counts)
    for part in ("mean", "cov", "probabilities"):
        np.testing.assert_array_equal(resumed[part], whole[part])


EXTREMES = {
    "two categories": np.array([[3, 40], [0, 7]]),
    "one row": np.array([[3, 0, 1, 20, 0, 2]]),
    "no counts": np.zeros((4, 5), dtype=int),
    "empty categories": np.pad(np.full((6, 2), 9), ((0, 0), (0, 5))),
    "each row in one category": 10**6 * np.eye(6, dtype=int),
    "no row differs": np.tile([10**6, 1, 0, 5, 100, 3], (30, 1)),
}


@quiet
@pytest.mark.parametrize("law", [LearnedScale, SparseFactors])
@pytest.mark.parametrize("name", EXTREMES)
def test_extreme_tables_are_fitted(name, law):
    counts = EXTREMES[name]
    found = short_run(
        SoftmaxCounts(law(np.zeros(counts.shape[1]))), counts, n_draws=40 if JIT else 3
    )
    assert all(np.isfinite(found[part]).all() for part in ("mean", "cov", "probabilities"))
    assert found["cov"][0].std(axis=0).min() > 0.0


def test_one_signature_for_all_kinds_of_counts(rng):
    for kind in (np.int64, np.int32, np.uint16):
        short_state(MODELS["factors"], table(rng, 10).astype(kind))
    if JIT:
        assert len(softmax_rows.redraw_rows_in_place.signatures) == 1
        assert len(softmax_columns.move_in_place.signatures) == 1


def short_state(model, counts):
    """Return parameters and rows after one sweep from a start."""
    (shard,) = model.shards(counts)
    parameters = model.initial_parameters([shard], Key(1))
    rows = model.initial_rows(model.prepare(parameters), shard, Key(1))
    return one_sweep(model, parameters, rows, shard, 1)


@needs_jit
@quiet
@pytest.mark.parametrize(
    "name", [*map(partial(pytest.param, marks=pytest.mark.slow), ("wishart", "learned")), "factors"]
)
def test_no_category_comes_first(name, rng):
    """In another order of the columns, and cut otherwise, posterior means agree within Monte Carlo error."""
    model, counts = MODELS[name], table(rng, 60)
    order = np.array([3, 0, 5, 1, 4, 2])
    gibbs = Gibbs(50, 100, thin=3, n_chains=8, keep=("probabilities",))
    runs = [
        gibbs.run(model, model.shards(counts), seed=1),
        gibbs.run(model, model.shards(counts[:, order], 17), seed=2),
    ]
    back = np.argsort(order)
    first, second = chain_means(runs[0], np.arange(6)), chain_means(runs[1], back)
    error = np.sqrt((first.var(axis=0, ddof=1) + second.var(axis=0, ddof=1)) / len(first))
    z = (first.mean(axis=0) - second.mean(axis=0)) / error
    limit = stats.t(7).isf(1e-4 / len(z))
    assert np.abs(z).max() < limit, np.sort(np.abs(z))[-5:]


def chain_means(posterior, order):
    """Return means of each chain: probabilities of some rows, log variances and associations."""
    cov = posterior["cov"][:, :, order][:, :, :, order]
    i, j = np.triu_indices(len(order), 1)
    parts = [
        posterior["probabilities"][:, :, [0, 7, 30]][..., order].mean(axis=1),
        np.log(np.diagonal(cov, axis1=2, axis2=3)).mean(axis=1),
        correlations(cov)[..., i, j].mean(axis=1),
    ]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


# rows given the population


def normal(mean, cov):
    return Normal(np.array(mean, dtype=float), np.array(cov, dtype=float))


FEW_ROWS = np.array([[3, 4, 0], [0, 0, 0], [0, 30, 2], [500, 3, 0]])
PRIORS = [
    normal([0.7, 0.0, -0.5], [[1.5, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 0.6]]),
    normal([-0.3, 0.2, 0.0], 0.5 * np.eye(3) + 0.3),
]


def integrals(counts, prior):
    """Return p(x) and E[pi | x] p(x) by a grid over two contrasts, without the coefficient."""
    contrasts = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
    axis = np.linspace(-12.0, 12.0, 301)
    y = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    density = stats.multivariate_normal(
        contrasts @ prior.mean, contrasts @ prior.cov @ contrasts.T
    ).pdf(y)
    log_pi = np.column_stack([y, np.zeros(len(y))])
    log_pi -= np.logaddexp.reduce(log_pi, axis=1)[:, None]
    weight = density * np.exp(log_pi @ counts) * (axis[1] - axis[0]) ** 2
    return weight.sum(), weight @ np.exp(log_pi)


def test_proposals_give_the_evidence_and_the_posterior_of_rows():
    """Over two priors: the weights average to the mixture's evidence, and weight its posterior."""
    model = SoftmaxCounts(LearnedScale(np.zeros(3)))
    (shard,) = model.shards(FEW_ROWS)
    psi, log_weights = model.propose_rows(PRIORS, shard, 1024)
    weights, pi = np.exp(log_weights), softmax(psi, axis=2)
    for i, counts in enumerate(FEW_ROWS):
        found = [integrals(counts, prior) for prior in PRIORS]
        evidence = np.mean([part[0] for part in found])
        mean = np.mean([part[1] for part in found], axis=0) / evidence
        assert weights[i].mean() == pytest.approx(evidence, rel=0.01)
        np.testing.assert_allclose(np.average(pi[i], axis=0, weights=weights[i]), mean, rtol=0.02)


def test_proposals_know_nothing_of_the_level():
    """Priors that differ by levels of mean and covariance give the same evidence."""
    model = SoftmaxCounts(LearnedScale(np.zeros(3)))
    (shard,) = model.shards(FEW_ROWS)
    tilt = np.array([0.4, -0.1, 0.2])
    moved = normal(PRIORS[0].mean + 3.0, PRIORS[0].cov + tilt[:, None] + tilt + 1.0)
    first, second = (model.propose_rows([p], shard, 2048)[1] for p in (PRIORS[0], moved))
    np.testing.assert_allclose(np.exp(first).mean(axis=1), np.exp(second).mean(axis=1), rtol=0.02)


def test_proposals_of_many_categories_are_worth_most_of_their_number(rng):
    """Laplace's approximation fits: with K = 40 the weights stay even."""
    k = 40
    model, prior = (
        SoftmaxCounts(LearnedScale(np.zeros(k))),
        normal(-0.08 * np.arange(k), 0.5 * np.eye(k) + 0.5),
    )
    psi = rng.multivariate_normal(prior.mean, prior.cov, size=20)
    counts = model.simulate_counts(Rows(psi), np.repeat([0, 5, 50, 5000], 5), rng)
    (shard,) = model.shards(counts)
    _, log_weights = model.propose_rows([prior], shard, 128)
    assert scores.effective_draws(log_weights, axis=1).min() > 32


def test_the_population_that_is_told_has_the_law_of_shares(rng):
    """Mean and covariance lose their level on the way; shares do not see it."""
    model = MODELS["factors"]
    parameters = model.law.start(rng)
    told = model.population_type(**model.describe_parameters(parameters))
    shares = np.exp(model.log_population(told, 4096))
    noise = rng.standard_normal((200_000, 6)) @ np.linalg.cholesky(parameters.cov).T
    direct = softmax(parameters.mean + noise, axis=1)
    assert np.abs(shares.mean(axis=0) - direct.mean(axis=0)).max() < 0.01
    assert np.abs(np.cov(shares.T) - np.cov(direct.T)).max() < 0.005
