"""Mean field for multinomial dynamics: the bound is exact, climbs, and says when it has collapsed."""

import functools
import warnings
from dataclasses import dataclass, replace

import numba
import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

import naive_dynamics_factors as naive
from dynamics_tools import inputs_for, make_model
from polystick.conjugate import NormalInverseWishart
from polystick.conjugate_dynamics import MatrixNormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.inference.execution import Threads
from polystick.inference.factors import flattened
from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from polystick.keys import Key
from polystick.models import gauge
from polystick.models.chain_sums import added
from polystick.models.dynamics import MultinomialDynamics
from polystick.models.dynamics_factors import LEAST_MOVE
from polystick.models.dynamics_laws import DynamicsFactor, EmissionFactor
from polystick.models.dynamics_state import RowFactors
from statistics_tools import MAX_Z, z_scores

PLAIN = bool(numba.config.DISABLE_JIT)
needs_jit = pytest.mark.skipif(PLAIN, reason="hundreds of sweeps need the compiler")
N_SWEEPS = 6 if PLAIN else 40
TOTALS = [np.array([2, 0, 3, 7]), np.array([1]), np.array([0, 4])]


@dataclass(frozen=True)
class Brief(MultinomialDynamics):
    """Few sweeps to start from."""

    warm_sweeps = 5


PAIR = Decomposition.from_tuples(((0, 3), (1, 2)))
MODELS = {
    "plain": make_model(2, 3, Brief),
    "tree": make_model(2, 3, Brief, tree=PAIR),
    "inputs": make_model(2, 2, Brief, inputs=("states", "emissions"), m=1, drift=True),
}
over_models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@pytest.fixture
def rng():
    return np.random.default_rng(20151207)


def spd(d, rng):
    root = rng.normal(size=(d, d + 2))
    return root @ root.T / d + 0.3 * np.eye(d)


def random_factor(model, rng):
    """Return a factor that nobody would choose."""
    d, (k, e) = model.n_dims, model._centre.shape
    p = model.dynamics_prior.mean.shape[1]
    mean = 0.4 * rng.normal(size=(d, p))
    dynamics = MatrixNormalInverseWishart(mean, 4 * spd(p, rng), spd(d, rng), d + 4.5)
    initial = NormalInverseWishart(rng.normal(size=d), 1.7, spd(d, rng), d + 3.5)
    cov = 0.3 * np.stack([spd(e, rng) for _ in range(k)])
    emission = EmissionFactor(rng.normal(size=(k, e)), cov)
    return DynamicsFactor(dynamics, initial, emission, spd(d, rng))


def data(model, rng, totals=TOTALS):
    inputs = inputs_for(totals, 1) if model.inputs else None
    return model.simulate(totals, rng, inputs)[2], inputs


def sequences_of(model, counts, inputs):
    """Return the twin's sequences, with nothing of q yet."""
    inputs = [np.zeros((len(x), 0)) for x in counts] if inputs is None else inputs
    return [
        naive.Sequence(x, *model.known(u), None, None, np.zeros((len(x), model.n_sticks)))
        for x, u in zip(counts, inputs)
    ]


def with_tilt(model, sequences, shard, rng):
    """Return sequences with a random tilt, and the same as row factors."""
    tilts = [rng.gamma(2.0, size=s.tilt.shape) for s in sequences]
    table = np.concatenate(tilts)
    steps = np.repeat(np.arange(shard.n_steps), np.diff(shard.splits.starts))
    rows = RowFactors(table[steps, shard.splits.nodes])
    return [s._replace(tilt=t) for s, t in zip(sequences, tilts)], rows


# the bound against its twin


@over_models
def test_update_of_rows_and_bound_equal_their_twins(model, rng):
    counts, inputs = data(model, rng)
    factor = random_factor(model, rng)
    (shard,) = model.shards(counts, inputs)
    sequences, rows = with_tilt(model, sequences_of(model, counts, inputs), shard, rng)
    rows, statistics = model.update_rows(model.expect(factor), shard, rows, None)
    twins = [naive.best_states(model, factor, s) for s in sequences]
    twins = [naive.best_omega(model, factor, s) for s in twins]
    expected = naive.bound(model, factor, twins)
    assert model.elbo(factor, statistics) == pytest.approx(expected, rel=1e-10, abs=1e-9)
    table = np.concatenate([s.tilt for s in twins])
    steps = np.repeat(np.arange(shard.n_steps), np.diff(shard.splits.starts))
    np.testing.assert_allclose(rows.tilt, table[steps, shard.splits.nodes], rtol=1e-9)
    check_sums(model, statistics, twins)


def check_sums(model, statistics, twins):
    d = model.n_dims
    pairs = [naive.moments(model, s) for s in twins]
    yx = sum(zz[t, :, t - 1] for z, zz in pairs for t in range(1, len(z)))
    yy = sum(zz[t, :, t] for z, zz in pairs for t in range(1, len(z)))
    xx = sum(zz[t, :, t] for z, zz in pairs for t in range(len(z) - 1))
    outer = sum(zz[0, :, 0] for _, zz in pairs)
    tight = {"rtol": 1e-9, "atol": 1e-11}
    np.testing.assert_allclose(statistics.pairs.yx[:, :d], yx, **tight)
    np.testing.assert_allclose(statistics.pairs.yy, yy, **tight)
    np.testing.assert_allclose(statistics.pairs.xx[:d, :d], xx, **tight)
    np.testing.assert_allclose(statistics.first.outer, outer, **tight)
    assert (statistics.pairs.n, statistics.first.n) == (4, 3)


@over_models
def test_no_other_factor_of_the_parameters_is_better(model, rng):
    """The twin's bound, all else held fixed: at the update it is highest, in any direction."""
    counts, inputs = data(model, rng)
    old = random_factor(model, rng)
    (shard,) = model.shards(counts, inputs)
    sequences, rows = with_tilt(model, sequences_of(model, counts, inputs), shard, rng)
    _, statistics = model.update_rows(model.expect(old), shard, rows, None)
    twins = [naive.best_omega(model, old, naive.best_states(model, old, s)) for s in sequences]
    best = model.laws_given(statistics, statistics.moves)
    top = naive.bound(model, best, twins)
    assert top > naive.bound(model, old, twins)
    for _ in range(5):
        assert naive.bound(model, nearby(best, rng), twins) < top


def nearby(factor, rng, by=1e-2):
    def change(law, *names):
        moved = {}
        for name in names:
            value = np.asarray(getattr(law, name))
            noise = by * rng.normal(size=value.shape)
            symmetric = value.ndim > 1 and name != "mean"
            moved[name] = value + (0.5 * (noise + noise.swapaxes(-1, -2)) if symmetric else noise)
        return replace(law, **moved)

    return DynamicsFactor(
        change(factor.dynamics, "mean", "strength", "scale", "degrees"),
        change(factor.initial, "mean", "strength", "scale", "degrees"),
        replace(change(factor.emission, "mean"), cov=factor.emission.cov * (1 + by * rng.normal())),
        factor.moves,
    )


@over_models
def test_the_best_scale_is_best(model, rng):
    """Of the parameters and the states together; psi, and so the likelihood, stay."""
    factor = random_factor(model, rng)
    counts, inputs = data(model, rng)
    d, twins = model.n_dims, []
    for s in sequences_of(model, counts, inputs):
        twins.append(naive.best_omega(model, factor, naive.best_states(model, factor, s)))

    def value(c):
        scaled = [s._replace(mean=c * s.mean, cov=c * c * s.cov) for s in twins]
        return naive.bound(model, factor.rescaled(c), scaled)

    best = gauge.best_scale(model, factor)
    assert abs(best - 1) > 0.01
    assert value(best) > max(value(1.0), value(best * 1.01), value(best / 1.01))
    psi = [naive.psi_moments(model, factor, s) for s in twins]
    moved = factor.rescaled(1.7)
    again = [
        naive.psi_moments(model, moved, s._replace(mean=1.7 * s.mean, cov=1.7**2 * s.cov))
        for s in twins
    ]
    for old, new in zip(psi, again):
        np.testing.assert_allclose(new, old, rtol=1e-10, atol=1e-12)
    assert d == 2


def test_priors_that_do_not_stretch_leave_the_scale(rng):
    model = MODELS["plain"]
    off = replace(model, initial_prior=replace(model.initial_prior, mean=np.ones(2)))
    assert gauge.best_scale(off, random_factor(off, rng)) == 1.0


# the bound climbs


def climb(model, shards, n_sweeps=N_SWEEPS, seed=0, **options):
    settings = MeanField(tolerance=1e-15, max_sweeps=n_sweeps, n_draws=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return settings.run(model, shards, seed=seed, **options)


def trace_of(posterior):
    return posterior.tree["optimisation"]["elbo"].values


def climbs(trace):
    return (np.diff(trace) > -1e-10 * np.abs(trace[1:])).all()


LONGER = [np.full(8 if PLAIN else 60, 4), np.array([3]), np.array([2, 0, 0, 6])]


class RandomStart(Brief):
    def initial_factor(self, shards, key):
        return random_factor(self, key.generator("start"))


@pytest.mark.parametrize("kind", [Brief, RandomStart])
@over_models
def test_elbo_never_falls(model, kind, rng):
    model = kind(**vars(model))
    counts, inputs = data(model, rng, LONGER)
    trace = trace_of(climb(model, model.shards(counts, inputs, size=6)))
    assert climbs(trace), np.diff(trace).min()
    assert trace[-1] > trace[0] + 0.1


@dataclass(frozen=True)
class ForgottenExcess(RandomStart):
    """A and B are taken as known in q(states)."""

    def _add_excess_in_place(self, prior, shard, linear, precision):
        return 0.0


@dataclass(frozen=True)
class KnownRows(RandomStart):
    """q(states) takes the emission as known."""

    def expect(self, factor):
        sure = replace(factor.emission, cov=0 * factor.emission.cov)
        return super().expect(replace(factor, emission=sure))


@dataclass(frozen=True)
class KnownStates(RandomStart):
    """What follows takes the states as better known than they are."""

    def state_moments(self, prior, shard, potential):
        moments, constant = super().state_moments(prior, shard, potential)
        halves = {"cov": 0.5 * moments.cov, "cross": 0.5 * moments.cross}
        return moments._replace(**halves), constant


@needs_jit
@pytest.mark.parametrize("wrong", [ForgottenExcess, KnownRows, KnownStates])
def test_a_wrong_update_is_seen(wrong, rng):
    """The bound of a sabotaged ascent falls, or is not the twin's."""
    model = wrong(**vars(MODELS["plain"]))
    counts, inputs = data(model, rng, LONGER)
    fell = not climbs(trace_of(climb(model, model.shards(counts, inputs), 100)))
    factor = random_factor(model, rng)
    (shard,) = model.shards(counts, inputs)
    sequences, rows = with_tilt(model, sequences_of(model, counts, inputs), shard, rng)
    _, statistics = model.update_rows(model.expect(factor), shard, rows, None)
    twins = [naive.best_states(model, factor, s) for s in sequences]
    twins = [naive.best_omega(model, factor, s) for s in twins]
    gap = model.elbo(factor, statistics) - naive.bound(model, factor, twins)
    assert fell or abs(gap) > 1e-3, (fell, gap)


# the bound is one of the evidence


def log_evidence(model, counts, rng, n_draws=200_000):
    """Return log p(x) of one sequence and its standard error, by draws from the prior; D = 1."""
    dynamics, initial = model.dynamics_prior, model.initial_prior

    def noise(law):
        return law.scale[0, 0] / rng.chisquare(law.degrees, n_draws)

    def normal(mean, variance=1.0):
        return mean + np.sqrt(variance) * rng.standard_normal(n_draws)

    Q, cov = noise(dynamics), noise(initial)
    A = normal(dynamics.mean[0, 0], Q / dynamics.strength[0, 0])
    z = normal(normal(initial.mean[0], cov / initial.strength), cov)
    rows = model._centre + model.scales * rng.standard_normal((n_draws, *model._centre.shape))
    values = np.full(n_draws, model.shards([counts])[0].log_coefficient)
    for x in counts:
        psi = rows[:, :, 0] * z[:, None] + rows[:, :, 1]
        values += model.decomposition.log_probabilities(psi) @ x
        z = normal(A * z, Q)
    weights = np.exp(values - values.max())
    error = weights.std() / weights.mean() / np.sqrt(n_draws)
    return logsumexp(values) - np.log(n_draws), error


def sure(model):
    """Return the model with known dynamics behind states that hardly matter: the bound is tight."""
    dynamics = MatrixNormalInverseWishart([[0.3]], [[1e4]], [[1e4]], 1e4)
    initial = NormalInverseWishart([0.0], 1e4, [[1e4]], 1e4)
    scales = np.array([1e-3, 0.6])
    return replace(model, dynamics_prior=dynamics, initial_prior=initial, scales=scales)


@needs_jit
@pytest.mark.parametrize("n_sticks", [1, 2])
def test_the_bound_lies_below_the_evidence(n_sticks, rng):
    plain = make_model(1, n_sticks, Brief)
    counts = np.array([[3, 1, 0], [0, 4, 1], [5, 0, 0]])[:, : n_sticks + 1]
    for model, gap in ((plain, 2.5), (sure(plain), 0.1)):
        bound = trace_of(climb(model, model.shards([counts]), 100))[-1]
        evidence, error = log_evidence(model, counts, rng)
        assert error < 0.04
        assert evidence - gap < bound < evidence + MAX_Z * error, (bound, evidence, error)


# bits


@needs_jit
def test_threads_and_resumption_leave_the_bits_alone(rng, tmp_path):
    model = MODELS["tree"]
    counts, _ = data(model, rng, [np.full(n, 3) for n in (20, 3, 40)])
    shards = model.shards(counts, size=8)

    def stop(progress):
        if progress.sweep == 4:
            raise RuntimeError("pulled the plug")

    plain, threads = climb(model, shards, 9), climb(model, shards, 9, execution=Threads(3))
    with pytest.raises(RuntimeError):
        climb(model, shards, 9, checkpoint=tmp_path / "run", every=0.0, progress=stop)
    resumed = climb(model, shards, 9, checkpoint=tmp_path / "run", resume=True)
    for other in (threads, resumed):
        for name, value in flattened(plain.factor).items():
            np.testing.assert_array_equal(value, flattened(other.factor)[name])
        np.testing.assert_array_equal(trace_of(plain), trace_of(other))


@over_models
def test_sums_over_blocks_are_those_of_one(model, rng):
    counts, inputs = data(model, rng, [np.full(n, 3) for n in (7, 1, 5, 2)])
    factor = random_factor(model, rng)
    prior = model.expect(factor)

    def total(size):
        shards = model.shards(counts, inputs, size=size)
        found = [
            model.update_rows(prior, s, model.initial_row_factors(prior, s), None)[1]
            for s in shards
        ]
        whole = functools.reduce(added, found)
        return len(found), (*whole.pairs, *whole.first, *whole[2:])

    (one, left), (many, right) = total(100), total(3)
    assert (one, many) == (1, 3)
    for a, b in zip(left, right):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


# what is recorded


def test_draws_follow_the_factor(rng):
    model, n = MODELS["inputs"], 1500
    factor = random_factor(model, rng)
    drawn = [model.draw_from_factor(factor, Key(2, i)) for i in range(n)]
    emission = np.stack([p.emission for p in drawn])
    precision = np.stack([np.linalg.inv(p.dynamics_cov) for p in drawn])
    z = [
        z_scores(emission, factor.emission.mean),
        z_scores(np.stack([p.coefficients for p in drawn]), factor.dynamics.mean),
        z_scores(np.stack([p.initial_mean for p in drawn]), factor.initial.mean),
        z_scores(precision, factor.dynamics.expected_precision),
    ]
    away = emission - factor.emission.mean
    z.append(z_scores(np.einsum("nki,nkj->nkij", away, away), factor.emission.cov))
    assert max(np.abs(part).max() for part in z) < MAX_Z
    assert float(drawn[0].stretch) == 1.0


def test_moments_of_states_are_kept_step_by_step(rng):
    """In the order of the steps, whatever the order of the blocks."""
    model = MODELS["plain"]
    counts, _ = data(model, rng, [np.full(n, 3) for n in (5, 1, 4)])
    shards = model.shards(counts, size=2)
    assert len(shards) > 1
    kept = climb(model, shards[::-1], 3)
    prior, expected = model.expect(kept.factor), []
    for sequence in sequences_of(model, counts, None):
        (shard,) = model.shards([sequence.counts])
        rows = RowFactors(np.zeros(len(shard.splits.nodes)))
        for _ in range(60):
            rows, _ = model.update_rows(prior, shard, rows, None)
        expected.append(model.draw_described_rows(prior, shard, rows)["states"])
    low, high = np.concatenate(expected, axis=1)
    mean, sd = kept.running("states")
    assert mean.shape == (10, 2)
    gap = np.abs(mean - (low + high) / 2).max()
    assert gap < 0.2 * np.abs(mean).max()
    assert gap < 0.2 * np.abs(mean[::-1] - (low + high) / 2).max()
    np.testing.assert_allclose(sd, (high - low) / 2, rtol=0.2)


@needs_jit
def test_probabilities_are_those_of_gibbs(rng):
    """Posterior means at each step, on a balanced tree."""
    model = make_model(1, 3, Brief, tree=Decomposition.balanced(4))
    counts = model.simulate([np.full(60, 15)], rng)[2]
    shards = model.shards(counts)
    gibbs = Gibbs(300, n_burn=200, n_chains=2, keep=("states",)).run(model, shards, seed=3)
    parts = (gibbs[name] for name in ("states", "emission", "emission_bias"))
    z, e, f = (part.reshape(-1, *part.shape[2:]) for part in parts)
    psi = np.einsum("ntd,nkd->ntk", z, e) + f[:, None]
    pi = model.decomposition.probabilities(psi.reshape(-1, 3)).reshape(*psi.shape[:2], 4)
    found, draws = climb(model, shards, 100), []
    mean, sd = found.running("states")
    for i in range(400):
        a = model.draw_from_factor(found.factor, Key(1, i)).emission
        z = mean + sd * rng.standard_normal(mean.shape)
        draws.append(model.decomposition.probabilities(np.column_stack([z, np.ones(60)]) @ a.T))
    gap = np.mean(draws, axis=0) - pi.mean(axis=0)
    assert np.abs(gap).mean() < 0.01
    static = np.concatenate(counts).mean(axis=0) / 15
    assert np.abs(static - pi.mean(axis=0)).mean() > 3 * np.abs(gap).mean()


# collapse


def wave(n_steps, by, rng):
    """Return tokens of four categories that follow a slow wave as far as told."""
    psi = by * np.sin(np.arange(n_steps) / 10.0)[:, None] * np.array([1, -1, 1]) - 1.0
    pi = Decomposition.balanced(4).probabilities(psi)
    return [np.array([rng.choice(4, p=p) for p in pi])]


def loose_model():
    dynamics = MatrixNormalInverseWishart(np.zeros((2, 2)), np.eye(2), np.eye(2), 4.0)
    initial = NormalInverseWishart(np.zeros(2), 1.0, np.eye(2), 4.0)
    tree, scales = Decomposition.balanced(4), np.array([1.0, 1.0, 1.5])
    return MultinomialDynamics(tree, dynamics, initial, np.zeros((3, 1)), scales)


@needs_jit
def test_it_says_when_states_are_not_used(rng):
    """Counts with dynamics, and counts without."""
    model, settings = loose_model(), MeanField(n_draws=1)
    used = settings.run(model, model.shards(wave(300, 3.0, rng)), seed=0)
    assert model.diagnose(used.factor) is None
    with pytest.warns(ConvergenceWarning, match="makes no use of the states"):
        unused = settings.run(model, model.shards(wave(300, 0.0, rng)), seed=0)
    assert used.factor.largest_move > 10 * LEAST_MOVE
    assert unused.factor.largest_move < 0.1 * LEAST_MOVE


def test_the_largest_move_is_that_of_psi(rng):
    """Over the steps, of E[e]' E[z]; and it does not depend on the scale of states."""
    model = MODELS["plain"]
    counts, inputs = data(model, rng, LONGER)
    (shard,) = model.shards(counts, inputs)
    prior = model.expect(random_factor(model, rng))
    rows = model.initial_row_factors(prior, shard)
    _, statistics = model.update_rows(prior, shard, rows, None)
    factor = model.laws_given(statistics, statistics.moves)
    states = model.draw_described_rows(prior, shard, rows)["states"].mean(axis=0)
    expected = (states @ factor.emission.mean[:, :2].T).std(axis=0).max()
    assert factor.largest_move == pytest.approx(expected, rel=1e-6)
    assert factor.rescaled(3.0).largest_move == pytest.approx(expected, rel=1e-6)
