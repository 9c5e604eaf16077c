"""Lopsided counts of processes: sites, ellipses and theta with f integrated out keep the law."""

from dataclasses import dataclass, replace
from functools import partial

import numba
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from joint import first_and_second, one_sweep
from polystick import augmentation
from polystick.covariances import OnColumns, Separable
from polystick.covariances.families import choose_family
from polystick.decomposition import Decomposition
from polystick.inference.gibbs import Gibbs
from polystick.keys import Key
from polystick.models import process as process_module
from polystick.models import process_sites, slice_sampling
from polystick.models.process import ProcessCounts
from polystick.models.process_axes import Axes
from polystick.models.process_kernel import centred
from polystick.models.process_sites import Sites
from statistics_tools import MAX_Z, z_scores

JIT = not numba.config.DISABLE_JIT
needs_jit = pytest.mark.skipif(not JIT, reason="thousands of sweeps need the compiler")
TOTALS = np.array([0, 5000, 300, 5000, 20, 1000])
LINE = np.array([[0.0], [0.4], [1.0], [1.1], [2.5], [4.0]])
GRID = np.array([[t, p] for t in (0.0, 1.0, 3.0) for p in (0.0, 0.7)])
N_SWEEPS = 8
CAUGHT = 7.0  # standard errors: there are several looks, and one in a million is beyond 5 by chance
EVERYTHING = ("kernel", "level", "scale")


def make(solver, variance=1.5, learn=EVERYTHING):
    amplitude = ConstantKernel(variance, (0.01 * variance, 100.0 * variance))
    if solver == "separable":
        time, place = Matern(2.0, (0.1, 20.0), nu=2.5), RBF(1.0, "fixed")
        kernel, inputs = amplitude * Separable(OnColumns(time, [0]), OnColumns(place, [1])), GRID
    else:
        kernel, inputs = amplitude * Matern(1.2, (0.1, 20.0), nu=1.5), LINE
    family = choose_family(kernel, inputs, solver=solver, tolerance=1e-10)
    level, sticks = np.array([-3.5, -2.0]), Decomposition.sticks(range(3))
    return ProcessCounts(family, sticks, level, learn, 0.5)


def gaps(model, n, rng):
    """Yield z-scores of what sweeps change in means of everything, drawn anew each time: it must be nothing.

    Going on from what was there before would take thousands of sweeps to come round where totals are large:
    counts and psi hold each other. Anchors are those that the counts give, axes of theta are given.
    """
    learned = Axes(np.asarray(-100.0), model.family.theta0, np.diag([0.16, 0.2]))
    changes = []
    for i in range(n):
        parameters, rows, counts = before = model.simulate(TOTALS, rng)
        (shard,) = model.shards(counts)
        rows = rows._replace(anchor=augmentation.empirical_logit(shard.splits))
        parameters = parameters._replace(**learned._asdict())
        for number in range(N_SWEEPS):
            parameters, rows = one_sweep(model, parameters, rows, shard, N_SWEEPS * i + number)
        rows = rows._replace(psi=model.psi_of(model.prepare(parameters), shard, rows))
        changes.append(summarise((parameters, rows, counts)) - summarise(before))
        if i + 1 in (n, *range(200, n, 100)):
            z = np.mean(changes, axis=0) / (np.std(changes, axis=0) + 1e-300)
            yield np.abs(z * np.sqrt(len(changes))).max()


def summarise(everything):
    parameters, rows, _ = everything
    squashed = np.tanh(rows.psi[:, [0, 1, 4]] / 6)
    return first_and_second([parameters.next_theta, rows.level, rows.scale, squashed])


CASES = {
    "light dense": lambda: make("dense"),
    "heavy dense": lambda: make("dense", 30.0),
    "heavy markov": lambda: make("markov", 30.0),
    "heavy separable": lambda: make("separable", 30.0),
    "heavy unstructured": lambda: make("unstructured", 30.0),
}


@needs_jit
@pytest.mark.parametrize("name", CASES)
def test_lopsided_sweeps_keep_the_law(name):
    found = [*gaps(CASES[name](), 400, np.random.default_rng(1))]
    assert found[-1] < MAX_Z
    assert max(found) < CAUGHT


@pytest.mark.slow
@needs_jit
@pytest.mark.parametrize("name", CASES)
def test_lopsided_sweeps_keep_the_law_long(name):
    *_, z = gaps(CASES[name](), 4000, np.random.default_rng(2))
    assert z < MAX_Z


def test_these_counts_are_lopsided():
    model = CASES["heavy dense"]()
    shares = []
    for seed in range(20):
        counts = model.simulate(TOTALS, np.random.default_rng(seed))[2]
        (shard,) = model.shards(counts)
        shares.append(shard.lopsided[:, TOTALS > 100].mean())
    assert np.mean(shares) > 0.5


class WrongSites(Sites):
    """Sabotage: what the sites lack is weighed with some successes too many."""

    def angles(self, *given):
        return Sites.angles(self._replace(linear=self.linear + 1.5), *given)


def use_wrong_sites(monkeypatch):
    monkeypatch.setattr(process_module, "Sites", WrongSites)


def forget_sites(monkeypatch):
    """Sabotage: a draw about the sites is taken as if they were the likelihood."""
    monkeypatch.setattr(
        process_sites.Sites, "angles", lambda self, rows, *_: np.full(len(rows), 0.5 * np.pi)
    )


class _NoNormaliser:
    def __init__(self, conditional):
        self.conditional = conditional

    def __getattr__(self, name):
        return getattr(self.conditional, name)

    @property
    def log_normaliser(self):
        return 0.0 * self.conditional.log_normaliser


def forget_normaliser(monkeypatch):
    """Sabotage: theta moves as if its covariance had no say but through f."""
    from polystick.gaussians.process import Dense

    right = Dense.conditional
    monkeypatch.setattr(Dense, "conditional", lambda self, given: _NoNormaliser(right(self, given)))


def forget_base(monkeypatch):
    """Sabotage: what the ellipses of theta are about is taken as a part of its law."""
    from polystick.models import process_axes

    def step(log_density, point, centre, root, rng):
        def biased(at):
            return log_density(at) - 2.0 * np.sum(np.linalg.solve(root, at - centre) ** 2)

        return slice_sampling.ellipse_step(biased, point, centre, root, rng)

    monkeypatch.setattr(process_axes, "ellipse_step", step)


@needs_jit
@pytest.mark.parametrize(
    ("name", "sabotage"),
    [
        ("light dense", use_wrong_sites),
        ("light dense", forget_base),
        ("heavy dense", use_wrong_sites),
        ("heavy dense", forget_sites),
        ("heavy dense", forget_normaliser),
        ("heavy dense", forget_base),
    ],
)
def test_a_wrong_move_is_caught(name, sabotage, monkeypatch):
    sabotage(monkeypatch)
    found = gaps(CASES[name](), 1500, np.random.default_rng(3))
    assert any(z > CAUGHT for z in found)


# parts


@pytest.mark.parametrize("solver", ["dense", "markov", "separable"])
def test_what_is_left_of_white_and_back(solver):
    """`rest` undoes `white`; the mean and the covariance are those of draws; so is the normaliser."""
    rng = np.random.default_rng(4)
    found = {}
    for variance in (0.7, 2.0):
        model = make(solver, variance)
        gaussian = model.family.at(model.family.theta0)
        omega = gaussian.weights(rng.uniform(0.5, 40.0, (2, 6)) if not found else found["omega"])
        found.setdefault("omega", omega)
        kappa = found.setdefault("kappa", rng.normal(size=(2, 6)))
        potential = process_sites.Potential(kappa, omega)
        conditional = gaussian.conditional(potential)
        rest = rng.normal(size=(2, gaussian.n_white))
        white = conditional.white(rest)
        np.testing.assert_allclose(conditional.rest(white), rest, atol=1e-9)
        np.testing.assert_allclose(conditional.values(rest), gaussian.unwhiten(white), atol=1e-9)
        zero = conditional.values(np.zeros_like(rest))
        np.testing.assert_allclose(zero, gaussian.mean(potential), atol=1e-8)
        units = np.eye(gaussian.n_white)
        cov = np.zeros((6, 6))
        for unit in units:
            away = conditional.values(np.tile(unit, (2, 1)))[0] - zero[0]
            cov += np.outer(away, away)
        prior = model.family.kernel(model.family.inputs)
        expected = np.linalg.inv(np.linalg.inv(prior) + np.diag(omega[0]))
        np.testing.assert_allclose(cov, expected, atol=1e-8)
        a = np.eye(6) + prior * omega[0]
        normaliser = 0.5 * (kappa[0] @ expected @ kappa[0] - np.linalg.slogdet(a)[1])
        np.testing.assert_allclose(conditional.log_normaliser[0], normaliser, rtol=1e-9)


@pytest.mark.parametrize("solver", ["dense", "markov", "separable", "unstructured"])
def test_draws_share_a_potential(solver):
    rng = np.random.default_rng(5)
    model = make(solver)
    gaussian = model.family.at(model.family.theta0)
    potential = process_sites.Potential(rng.normal(size=(2, 6)), rng.uniform(0.0, 9.0, (2, 6)))
    noises = rng.normal(size=(3, 2, gaussian.noise_size))
    together = gaussian.draws(potential, noises).white
    for noise, white in zip(noises, together):
        np.testing.assert_allclose(gaussian.draw(potential, noise).white, white, atol=1e-7)


def test_a_stick_without_a_point_is_drawn_given_omega(monkeypatch):
    """An ellipse that finds nothing leaves the plain step, not a chain that stands still."""
    model = make("dense")
    counts = model.simulate(TOTALS, np.random.default_rng(6))[2]
    (shard,) = model.shards(counts)
    assert shard.lopsided.any()
    monkeypatch.setattr(Sites, "angles", lambda self, rows, *_: np.zeros(len(rows)))
    parameters = model.initial_parameters([shard], Key(1))
    prior = model.prepare(parameters)
    before = model.initial_rows(prior, shard, Key(1))
    after, _ = model.draw_rows(prior, shard, before, Key(1, 1))
    moved = np.abs(after.white - before.white).max(axis=1)
    assert (moved > 0).all()
    assert np.isfinite(after.psi).all()


def test_sites_without_curvature_are_left_to_omega():
    model = make("dense")
    (shard,) = model.shards(np.tile([0, 0, 10**6], (6, 1)))
    assert shard.lopsided.all()
    anchor = np.full(shard.trials.shape, -1e300)
    anchor[0, 0] = np.nan
    sites = Sites.at(shard, anchor, np.ones(anchor.shape))
    assert not sites.held[0, 0]
    potential = sites.complete(shard, np.full(anchor.shape, -9.0), Key(1))
    assert np.isfinite(potential.kappa).all()
    assert potential.omega[0, 0] > 1e4  # drawn
    assert (potential.omega >= 0).all()


def stubborn(point):
    return 0.0 if (point == 0).all() else -np.inf


def test_slices_that_can_not_shrink_end():
    rng, calls = np.random.default_rng(7), []

    def log_density(point):
        calls.append(1)
        return stubborn(point)

    assert (slice_sampling.slice_sweep(log_density, np.zeros(2), 1.0, rng) == 0).all()
    assert (
        slice_sampling.ellipse_step(log_density, np.zeros(2), np.ones(2), np.eye(2), rng) == 0
    ).all()
    assert len(calls) < 1000
    assert (slice_sampling.slice_sweep(lambda x: np.nan, np.zeros(1), 1.0, rng) == 0).all()


@pytest.mark.parametrize("wrong", [False, True])
def test_ellipses_keep_a_known_law(wrong):
    """A skewed law, and a base that is off; the wrong twin forgets the base."""
    rng = np.random.default_rng(8)
    centre, root = np.array([0.5, -1.0]), np.array([[1.2, 0.0], [0.3, 0.8]])

    def log_density(x):
        skewed = x[0] - np.exp(x[0]) - 0.5 * (x[1] - x[0]) ** 2
        return skewed - wrong * 0.5 * np.sum(np.linalg.solve(root, x - centre) ** 2)

    point, draws = np.zeros(2), []
    for _ in range(8000):
        point = slice_sampling.ellipse_step(log_density, point, centre, root, rng)
        draws.append([np.exp(point[0]), point[1] - point[0], (point[1] - point[0]) ** 2])
    z = np.abs(z_scores(np.array(draws), np.array([1.0, 0.0, 1.0]))).max()
    assert z > MAX_Z if wrong else z < MAX_Z


def test_axes_learn_the_spread_of_theta_and_stop():
    rng, axes = np.random.default_rng(9), Axes.first(np.zeros(2), 1.0)
    cov = np.array([[0.04, 0.03], [0.03, 0.09]])
    for sweep_number in range(1, 401):
        theta = rng.multivariate_normal([1.0, -2.0], cov) + (sweep_number < 60) * 5.0
        axes = axes.learn(theta, sweep_number, 400)
        assert (axes.weight > 0) == (sweep_number < 400)
    np.testing.assert_allclose(axes.centre, [1.0, -2.0], atol=0.1)
    np.testing.assert_allclose(axes.spread, cov, atol=0.03)


def test_chains_start_apart_and_anchors_stand_once_sweeps_count():
    model = make("dense")
    counts = model.simulate(TOTALS, np.random.default_rng(10))[2]
    shards = model.shards(counts)
    starts = np.array([model.initial_parameters(shards, Key(1).chain(c)).theta for c in range(40)])
    low, high = model.family.bounds.T
    assert ((starts > low) & (starts < high)).all()
    assert (starts.std(axis=0) > 0.2).all()
    run = process_runs(model, shards)
    assert (run[:3] != run[1:4]).any(axis=(1, 2)).all()
    assert (run[4:] == run[4]).all()


def process_runs(model, shards, n_burn=4, n=8):
    """Return the anchors after each sweep of one chain."""
    (shard,), key = shards, Key(1)
    parameters, anchors = model.initial_parameters(shards, key), []
    rows = model.initial_rows(model.prepare(parameters), shard, key)
    for number in range(1, n + 1):
        key = Key(1, number)
        rows, statistics = model.draw_rows(model.prepare(parameters), shard, rows, key)
        settle = partial(model.settle, n_burn=n_burn)
        step = settle if number <= n_burn else model.draw_parameters
        parameters = step(parameters, statistics, key)
        anchors.append(rows.anchor)
    return np.array(anchors)


@needs_jit
def test_absent_categories_mix():
    """Names that are absent for years: each probability has hundreds of effective draws."""
    years = np.arange(30.0)[:, None]
    share = 1.0 / (1.0 + np.exp(14.0 - 0.5 * years[:, 0]))
    shares = np.column_stack([0.6 - 0.5 * share, 0.4 - 0.5 * share, share])
    counts = np.random.default_rng(11).multinomial(
        20_000, shares / shares.sum(axis=1, keepdims=True)
    )
    kernel = ConstantKernel(4.0, (0.01, 1e3)) * Matern(8.0, (0.5, 100.0), nu=2.5)
    family = choose_family(kernel, years, solver="dense")
    sticks = Decomposition.sticks([0, 1, 2])
    model = ProcessCounts(family, sticks, sticks.psi(counts.sum(axis=0) + 1.0), ("kernel",), 1.0)
    assert (counts[:, 2] == 0).mean() > 0.2
    posterior = Gibbs(300, 200, n_chains=4, keep=("psi",)).run(model, model.shards(counts), seed=1)
    from polystick.inference import diagnostics

    psi = np.asarray(posterior["psi"]).reshape(4, 300, -1)
    assert diagnostics.bulk_ess(psi).min() > 200
    assert diagnostics.rhat(psi).max() < 1.05


@dataclass(frozen=True)
class Plain(ProcessCounts):
    """The same with omega in all cells, as a second opinion."""

    def shards(self, counts, size=None):
        return [
            s._replace(lopsided=np.zeros_like(s.lopsided)) for s in super().shards(counts, size)
        ]


@needs_jit
def test_sites_and_omega_agree():
    """On counts that are mildly lopsided, where omega mixes too."""
    model = make("dense", learn=())
    plain = Plain(model.family, model.decomposition, model.level, (), 0.5)
    counts = np.array([[2, 10, 88], [1, 4, 45], [3, 5, 30], [1, 2, 60], [4, 6, 50], [2, 5, 60]])
    assert model.shards(counts)[0].lopsided.any()
    gibbs = Gibbs(2500, 100, n_chains=2, keep=("psi",))
    means = []
    for one in (model, plain):
        psi = np.asarray(gibbs.run(one, one.shards(counts), seed=1)["psi"]).reshape(5000, -1)
        means.append((psi.mean(axis=0), psi.std(axis=0), psi))
    gap = (means[0][0] - means[1][0]) / means[1][1]
    assert np.abs(gap).max() < 0.25
    np.testing.assert_allclose(means[0][1], means[1][1], rtol=0.15)


def test_potentials_are_of_f():
    potential = process_sites.Potential(np.array([[2.0]]), np.array([[3.0]]))
    level, scale = np.array([0.5]), np.array([2.0])
    moved = centred(potential, level, scale)
    for f in (-1.0, 0.0, 0.7):
        psi = level + scale * f
        whole = potential.kappa * psi - 0.5 * potential.omega * psi**2
        part = moved.kappa * f - 0.5 * moved.omega * f**2
        start = potential.kappa * level - 0.5 * potential.omega * level**2
        np.testing.assert_allclose(whole - start, part)


def test_replacing_learn_keeps_the_law_fixed():
    """Without learning nothing of theta moves, whatever the sites do."""
    model = replace(make("dense"), learn=())
    counts = model.simulate(TOTALS, np.random.default_rng(12))[2]
    posterior = Gibbs(5, 3, n_chains=2).run(model, model.shards(counts), seed=1)
    assert (np.asarray(posterior["theta"]) == model.family.theta0).all()
