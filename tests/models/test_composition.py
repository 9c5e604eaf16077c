"""Compositions: sites, ellipses and sticks leave the law as it is, and would be caught if not."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from dynamics_tools import rows_at
from joint import Law, first_and_second
from polystick.augmentation import Potential, quadratic_potential
from polystick.conjugate import NormalInverseWishart
from polystick.conjugate_dynamics import MatrixNormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.inference.execution import Threads
from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from polystick.keys import Key
from polystick.models import composition_sites as sites_of
from polystick.models.composition import CompositionDynamics
from statistics_tools import MAX_Z

needs_jit = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="thousands of sweeps need the compiler"
)
LARGE = 10**6  # steps: all are one block
SWEEPS = 4  # given the same counts
ONE = [np.array([2, 5000, 0, 800, 40])]
SEVERAL = [np.array([5000, 0, 30]), np.array([700]), np.array([2, 5000])]


def make(walks, heavy, kind=CompositionDynamics):
    """Return a model with rare categories, under a prior with light or heavy tails."""
    k = 2
    degrees = k + 2.0 if heavy else k + 20.0
    scale = np.array([[1.0, 0.4], [0.4, 0.8]]) * (degrees - k - 1)
    drift = np.zeros((k, 0 if walks else 1))
    mean = np.column_stack([np.eye(k) * (1.0 if walks else 0.6), drift])
    return kind(
        Decomposition.sticks(np.arange(k + 1)),
        MatrixNormalInverseWishart(mean, 6.0 * np.eye(mean.shape[1]), scale, degrees),
        NormalInverseWishart([-4.0, 3.0], 1.5, scale[::-1, ::-1], degrees),
        np.zeros((k, 0)),
        np.ones(k),
        has_bias=False,
        has_drift=not walks,
        walks=walks,
    )


def summarise(parameters, states):
    """Return what has moments however heavy the tails are."""
    laws = []
    for cov in (parameters.dynamics_cov, parameters.initial_cov):
        sd = np.sqrt(np.diag(cov))
        laws += [np.log(sd), [cov[0, 1] / sd.prod()]]
    means, steps = np.arcsinh(parameters.initial_mean), np.arcsinh(states)
    return first_and_second([*laws, means, steps])


class Restarted(NamedTuple):
    """Where a chain is, and where it started: at the truth, which is a draw from the posterior."""

    parameters: Any
    states: np.ndarray
    shard: Any
    origin: np.ndarray  # summary of the truth


def simulate(model, totals, rng):
    parameters, rows, counts = model.simulate(totals, rng)
    (shard,) = model.shards(counts, size=LARGE)
    return Restarted(parameters, rows.states, shard, summarise(parameters, rows.states))


def moved(everything):
    """Return by how much a summary has moved since the truth: by nothing on average."""
    return summarise(*everything[:2]) - everything.origin


def restarted(model, totals):
    """Return what a `Law` wants: some sweeps given counts, then everything anew.

    With totals of thousands, new counts would hold psi where it was: no test of a sweep but of patience.
    """

    def resample(everything, i, rng):
        parameters, states, shard, origin = (
            simulate(model, totals, rng) if i % SWEEPS == 0 else everything
        )
        prior, key = model.prepare(parameters), Key(11, i)
        rows, statistics = model.draw_rows(prior, shard, rows_at(model, shard, states), key)
        parameters = model.draw_parameters(parameters, statistics, key)
        return Restarted(parameters, rows.states, shard, origin)

    return resample


CASES = {
    "one walk, light": (True, False, ONE),
    "one walk, heavy": (True, True, ONE),
    "walks, heavy": (True, True, SEVERAL),
    "returns, light": (False, False, SEVERAL),
    "returns, heavy": (False, True, SEVERAL),
}
LAWS = {
    name: Law(lambda rng, m=make(walks, heavy), t=totals: simulate(m, t, rng), moved)
    for name, (walks, heavy, totals) in CASES.items()
}


@needs_jit
@pytest.mark.parametrize("n_iter", [2400, pytest.param(60_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CASES)
def test_geweke(name, n_iter):
    walks, heavy, totals = CASES[name]
    z = LAWS[name].z(restarted(make(walks, heavy), totals), n_iter, np.random.default_rng(14))
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


# sabotage


def without_sites(given):
    """Return what states are drawn given, sites taken for the likelihood."""
    return given._replace(
        lopsided=sites_of.usable(given.lopsided, nowhere(given))[0],
        sites=Potential(np.zeros(0), np.zeros(0)),
    )


def nowhere(given):
    return Potential(*(np.full(len(given.sites.omega), np.nan) for _ in range(2)))


@dataclass(frozen=True)
class SitesForPaths(CompositionDynamics):
    """Paths are drawn as if sites were the likelihood."""

    def turn(self, prior, shard, states, given, key):
        return super().turn(prior, shard, states, without_sites(given), key)


@dataclass(frozen=True)
class SitesForSticks(CompositionDynamics):
    """Sticks are drawn as if sites were the likelihood."""

    def move_sticks(self, prior, shard, states, given, key):
        return super().move_sticks(prior, shard, states, without_sites(given), key)


@dataclass(frozen=True)
class SitesThatFollow(CompositionDynamics):
    """Sites are expanded about where the chain is."""

    def draw_rows(self, prior, shard, rows, key):
        at = shard.lopsided
        centre = rows.states[at.steps, at.nodes]
        kappa, omega = quadratic_potential(at.splits, centre)
        rows = rows._replace(kappa=kappa, omega=omega, centre=centre)
        return super().draw_rows(prior, shard, rows, key)


@dataclass(frozen=True)
class MoreDegrees(CompositionDynamics):
    """Sticks think that Q has more degrees of freedom."""

    def move_sticks(self, prior, shard, states, given, key):
        law = replace(self.dynamics_prior, degrees=self.dynamics_prior.degrees + 8)
        return CompositionDynamics.move_sticks(
            replace(self, dynamics_prior=law), prior, shard, states, given, key
        )


@dataclass(frozen=True)
class NarrowStart(CompositionDynamics):
    """Sticks forget that the mean of first states is not known."""

    def first_law(self, prior, lengths):
        law = super().first_law(prior, lengths)
        return law._replace(wide=0.1 * law.wide)


WRONG = {
    SitesForPaths: "returns, light",
    SitesForSticks: "one walk, light",
    SitesThatFollow: "one walk, light",
    MoreDegrees: "walks, heavy",
    NarrowStart: "one walk, heavy",
}


@needs_jit
@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(
            kind, marks=[pytest.mark.slow] if kind in (SitesForSticks, MoreDegrees) else []
        )
        for kind in WRONG
    ],
    ids=lambda kind: kind.__name__,
)
def test_geweke_rejects_a_sabotaged_sweep(wrong):
    name = WRONG[wrong]
    walks, heavy, totals = CASES[name]
    sweep = restarted(make(walks, heavy, wrong), totals)
    assert LAWS[name].worst_z(sweep, 10_000, np.random.default_rng(3)) > MAX_Z


# parts


def started(walks=True, totals=ONE, seed=5):
    """Return a model, its only block, a prior, rows and a key."""
    model, rng = make(walks, False), np.random.default_rng(seed)
    parameters, rows, counts = model.simulate(totals, rng)
    (shard,) = model.shards(counts, size=LARGE)
    rows = rows_at(model, shard, rows.states)
    assert len(rows.omega) > 1
    return model, shard, model.prepare(parameters), rows, Key(3, 1)


def test_sites_are_matched_while_burning_in_and_then_stay():
    model, shard, prior, rows, key = started()
    assert sites_of.rate_of(5, 100) == sites_of.DAMPING
    assert [sites_of.rate_of(n, 100) for n in (6, 100, 105)] == [0.0, 0.0, 0.0]
    assert sites_of.rate_of(95, 100) == pytest.approx(1 / 9)
    moved = model.draw_rows(prior._replace(rate=0.5), shard, rows, key)[0]
    stayed = model.draw_rows(prior, shard, rows, key)[0]
    assert (moved.omega != rows.omega).any()
    for name in ("kappa", "omega", "centre"):
        np.testing.assert_array_equal(getattr(stayed, name), getattr(rows, name))


def test_matched_sites_have_the_moments_of_one_split():
    """A sequence of one step with one lopsided split: its site must give the tilted moments."""
    model = make(True, False)
    (shard,) = model.shards([np.array([[0, 0, 800]])], size=LARGE)
    key = Key(1, 1)
    parameters = model.initial_parameters([shard], key)
    prior = model.prepare(parameters._replace(rate=np.asarray(0.5)))
    rows = rows_at(model, shard, np.zeros((1, 2)))
    nothing = Potential(np.zeros(2), np.zeros(2))
    for _ in range(200):
        rows = model.match_sites(prior, shard, rows, nothing)
    points = np.linspace(-16.0, 2.0, 900)
    gaps = (
        np.stack(np.meshgrid(points, points, indexing="ij"))
        - parameters.initial_mean[:, None, None]
    )
    precision = np.linalg.inv(parameters.initial_cov)
    log = -0.5 * np.einsum("iab,ij,jab->ab", gaps, precision, gaps)
    log -= 800 * np.logaddexp(0, points)[:, None] + 800 * np.logaddexp(0, points)
    weights = np.exp(log - log.max()) / np.exp(log - log.max()).sum()
    mean = np.array([points @ weights.sum(axis=1), points @ weights.sum(axis=0)])
    np.testing.assert_allclose(rows.centre, mean, rtol=0.02)


def test_softened_sites_keep_their_slope_and_give_way_where_nothing_was_counted():
    *_, shard, _, rows, _ = started()
    sites, lopsided = Potential(rows.kappa, rows.omega), shard.lopsided
    soft = sites_of.softened(lopsided, sites, rows.centre)
    np.testing.assert_allclose(
        soft.kappa - soft.omega * rows.centre, sites.kappa - sites.omega * rows.centre, atol=1e-9
    )
    fewer = np.minimum(lopsided.successes, lopsided.trials - lopsided.successes)
    np.testing.assert_allclose(soft.omega / sites.omega, (fewer + 0.6) / (fewer + 2))


def test_a_site_without_curvature_leaves_its_split_to_omega():
    model, shard, _, rows, key = started()
    omega = rows.omega.copy()
    omega[0] = 1e-310
    given = model._given(
        shard, rows._replace(omega=omega), model.draw_omega(shard, rows.states, key)
    )
    assert len(given.sites.omega) == len(omega) - 1
    assert given.lopsided.starts[-1] == len(omega) - 1
    first = shard.lopsided.at[0]
    assert first not in given.lopsided.at
    drawn = model.draw_omega(shard, rows.states, key)
    assert given.potential.omega[first] == drawn.omega[first]


@pytest.mark.parametrize("walks", [True, False])
def test_a_slice_that_cannot_shrink_is_left_to_omega(walks):
    model, shard, prior, rows, key = started(walks, SEVERAL)
    given = model._given(shard, rows, model.draw_omega(shard, rows.states, key))
    stuck = given.lopsided._replace(trials=np.full_like(given.lopsided.trials, np.nan))
    found = model.turn(prior, shard, rows.states, given._replace(lopsided=stuck), key)
    plain = model.draw_plainly(prior, shard, rows.states, key)
    has_sites = np.repeat(np.diff(given.lopsided.starts) > 0, np.diff(shard.starts))
    np.testing.assert_array_equal(found[has_sites], plain[has_sites])
    assert np.isfinite(found).all()


def test_a_stick_that_finds_no_angle_is_left_to_omega():
    model, shard, prior, rows, key = started()
    given = model._given(shard, rows, model.draw_omega(shard, rows.states, key))
    hits, tries = shard.table
    tries = tries.copy()
    tries[given.lopsided.nodes[0], given.lopsided.steps[0]] = np.nan
    found = model.move_sticks(prior, replace(shard, table=(hits, tries)), rows.states, given, key)
    assert np.isfinite(found).all()
    assert (found != rows.states).all()


def test_chains_start_apart():
    model, shard, *_ = started()
    starts = [model.initial_parameters([shard], Key(1).chain(c)) for c in range(4)]
    sizes = np.log([np.diag(start.dynamics_cov) for start in starts])
    assert (sizes.std(axis=0) > 0.3).all()
    rows = [
        model.initial_rows(model.prepare(start), shard, Key(1).chain(c))
        for c, start in enumerate(starts)
    ]
    assert np.std([r.states for r in rows], axis=0).min() > 0.0


def test_q_stays_where_a_predictor_was_given_it():
    """States of new sequences are drawn given Q, not with it."""
    model, shard, _, rows, key = started()
    described = model.describe_parameters(model.initial_parameters([shard], key))
    predictor = model.predictor(described)
    assert predictor.prior.is_given
    assert predictor.smooth(shard, key, 10).shape == rows.states.shape
    loose = model.draw_rows(predictor.prior._replace(is_given=False), shard, rows, key)[0]
    held = model.draw_rows(predictor.prior, shard, rows, key)[0]
    assert (loose.states != held.states).any()


@needs_jit
@pytest.mark.parametrize("walks", [True, False])
def test_threads_and_resumption_leave_the_bits_alone(walks, tmp_path):
    """In one block, with sites that are matched and then kept."""
    model = make(walks, False)
    counts = model.simulate(SEVERAL, np.random.default_rng(5))[2]
    shards = model.shards(counts)
    assert len(shards) == 1
    assert len(shards[0].lopsided.at)
    short, long = (Gibbs(n, n_burn=20, n_chains=2, keep=("states",)) for n in (3, 8))
    plain = long.run(model, shards, seed=5)
    others = [long.run(model, shards, seed=5, execution=Threads(n)) for n in (2, 4)]
    short.run(model, shards, seed=5, checkpoint=tmp_path / "run", every=0)
    others.append(long.run(model, shards, seed=5, checkpoint=tmp_path / "run", resume=True))
    for other in others:
        for name in plain.names():
            np.testing.assert_array_equal(plain[name], other[name])


def test_compositions_have_no_mean_field():
    """They do not inherit one that would fail in the middle of a run."""
    model = make(walks=True, heavy=False)
    with pytest.raises(TypeError, match=r"CompositionDynamics has no mean field: .*update_rows"):
        MeanField().run(model, model.shards([np.eye(3, dtype=np.int64)[[0, 1, 2]]]), seed=1)
