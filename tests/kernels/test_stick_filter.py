"""Particles behind sticks: as their twin, true to quadrature, the same however sequences are mapped."""

import itertools

import numba
import numpy as np
import pytest

import naive_stick_filter as naive
from polystick.kernels import stick_filter, stick_proposal
from statistics_tools import MAX_Z, z_scores

PLAIN = bool(numba.config.DISABLE_JIT)
KEY = np.uint64(20150612)


@pytest.fixture
def rng():
    return np.random.default_rng(2015)


def ids(n):
    return np.arange(n, dtype=np.uint64) * np.uint64(13)


def problem(rng, n_dims=2, n_sticks=5, n_steps=7, most=1, n_known=1):
    """Return (law, splits, emission, known); at the fourth step nothing is seen."""
    law = (
        0.5 * rng.normal(size=(n_dims, n_dims)),
        rng.normal(size=(n_steps, n_dims)),
        rng.normal(size=n_dims),
        np.eye(n_dims) + 0.3 * np.tri(n_dims),
    )
    widths = rng.integers(1, n_sticks + 1, n_steps)
    widths[3:4] = 0
    nodes = np.concatenate([np.sort(rng.permutation(n_sticks)[:width]) for width in widths])
    trials = rng.integers(1, most + 1, len(nodes))
    counts = (
        rng.binomial(trials, 0.6).astype(float),
        trials.astype(float),
    )  # as the library has them
    splits = np.append(0, np.cumsum(widths)), nodes, *counts
    return (
        law,
        splits,
        rng.normal(size=(n_sticks, n_dims + n_known)),
        rng.normal(size=(n_steps, n_known)),
    )


def empty_outputs(n, n_steps, d, m, shows=True):
    shown = n_steps if shows else 0
    shapes = (n_steps,), (n_steps, d), (n_steps, d, d), (n, d, m), (shown, d, m), (shown, d, m)
    return stick_filter.Found(*(np.full(shape, np.nan) for shape in shapes))


def empty_kept(n_sequences, d, n):
    """Return where filters stand before any step."""
    return stick_filter.Kept(
        np.zeros(n_sequences, np.int64), np.zeros((n_sequences, 2), np.uint64),
        np.empty((n_sequences, d, n)), np.empty((n_sequences, 2, n)), np.empty((n_sequences, d)),
        np.empty(n_sequences),
    )  # fmt: skip


def run(law, splits, emission, known, n=10, starts=None, *, rows=None, m=None, key=KEY, shows=True,
        kept=None, offsets=None):  # fmt: skip
    starts = np.array([0, len(law[1])] if starts is None else starts)
    rows = ids(len(starts) - 1) if rows is None else rows
    out = empty_outputs(len(rows), len(law[1]), len(law[2]), m or n, shows)
    offsets = np.zeros(len(splits[1])) if offsets is None else offsets
    law, splits = stick_filter.Law(*law), stick_filter.Splits(*splits, offsets)
    kept = empty_kept(0, len(law.start), n) if kept is None else kept
    stick_filter.filter_sequences(key, rows, starts, law, splits, emission, known, n, out, kept)
    return naive.Filtered(*out)


def test_what_is_known_may_be_an_offset(rng):
    law, splits, emission, known = problem(rng)
    d = len(law[2])
    steps = np.repeat(np.arange(len(known)), np.diff(splits[0]))
    offsets = np.sum(emission[splits[1], d:] * known[steps], axis=1)
    told = run(law, splits, emission, known)
    found = run(law, splits, emission, np.zeros_like(known), offsets=offsets)
    np.testing.assert_allclose(found.values, told.values, rtol=1e-9)


def part(a, b, law, splits, emission, known):
    """Return the problem of the steps a .. b."""
    starts, *active = splits
    law = law[0], law[1][a:b].copy(), law[2], law[3]
    active = (array[starts[a] : starts[b]].copy() for array in active)
    return law, (starts[a : b + 1] - starts[a], *active), emission, known[a:b].copy()


# the twin


@pytest.mark.parametrize("n_dims", [1, 2, 5])
@pytest.mark.parametrize("most", [1, 3, 500])
def test_all_equals_what_the_twin_finds(n_dims, most, rng):
    for repeat in range(3):
        given = problem(rng, n_dims, most=most, n_known=repeat)
        n, m, key = (11, 11, 4)[repeat], (11, 3, 9)[repeat], KEY + np.uint64(repeat)
        found = run(*given, n, m=m, key=key, rows=ids(2)[1:])
        expected = naive.filter_sequence(key, ids(2)[1], *given, n, m)
        for name, value in found._asdict().items():
            truth = getattr(expected, name)
            value = value[0] if name == "after" else value
            np.testing.assert_allclose(value, truth, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("cuts", [(0, 3, 7), (0, 1, 2, 3, 4, 5, 6, 7), (0, 0, 7, 7)])
def test_a_filter_goes_on_with_the_same_bits(cuts, rng):
    given = problem(rng, 2, most=3)
    whole, kept = run(*given, 30, m=9), empty_kept(1, 2, 30)
    for a, b in itertools.pairwise(cuts):
        found = run(*part(a, b, *given), 30, m=9, kept=kept)
        for name in ("values", "means", "covs", "predicted", "current"):
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name)[a:b])
    np.testing.assert_array_equal(found.after, whole.after)
    assert kept.numbers == [7]


def test_what_is_shown_changes_nothing_else(rng):
    given = problem(rng)
    shown, bare = run(*given, 20, m=5), run(*given, 20, m=5, shows=False)
    for name in ("values", "means", "covs", "after"):
        np.testing.assert_array_equal(getattr(shown, name), getattr(bare, name))


def test_chain_proposes_where_a_step_tells_little(rng):
    """With rows near 0 every step does: equal to a filter that never guides."""
    law, splits, emission, known = problem(rng)
    emission[:, :2] *= 1e-2
    given = law, splits, emission, known
    expected = naive.filter_sequence(KEY, ids(1)[0], *given, 20, 20, never_guides=True)
    np.testing.assert_allclose(run(*given, 20).values, expected.values, rtol=1e-9)


@pytest.mark.parametrize("n_sticks", [1, 4, 1100])
def test_weights_are_likelihoods(n_sticks, rng):
    """Single trials, several and none; over several products; far out, where exponentials overflow."""
    for size in (0.1, 3.0, 1e3):
        trials = rng.integers(0, 4, n_sticks) if n_sticks < 1000 else np.ones(n_sticks, int)
        sticks = (
            size * rng.normal(size=(n_sticks, 5)),
            rng.normal(size=n_sticks),
            rng.binomial(trials, 0.5).astype(float),
            trials.astype(float),
        )
        particles, found = rng.normal(size=(5, 9)), np.zeros(9)
        stick_proposal.weigh_in_place(n_sticks, sticks, particles, found, np.empty(9), np.empty(9))
        expected = naive.Sticks(*sticks).log_likelihood(particles)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11 * size)


def test_logarithms_are_exact_to_rounding(rng):
    e = np.concatenate([rng.uniform(size=300), 10.0 ** -rng.uniform(0, 300, 100), [0.0, 1.0]])
    found = np.array([stick_proposal.log1p_unit(value) for value in e])
    np.testing.assert_allclose(found, np.log1p(e), rtol=1e-15)


def test_expansion_far_from_the_mode_ends_at_the_mode(rng):
    """A whole step of Newton's would overshoot by far, since saturated sticks seem to tell nothing."""
    sticks = np.array([[1.0, 0.2], [0.3, -1.0]]), np.array([-12.0, 9.0]), np.array([250.0, 100.0])
    sticks, linear, factor = (*sticks, np.array([500.0, 500.0])), np.empty(2), np.empty((2, 2))
    stick_proposal.find_proposal(2, sticks, np.zeros(2), linear, factor, np.empty(2))
    J = np.triu(factor).T @ np.triu(factor)
    mode = np.linalg.solve(J, linear)
    gradient, precision = naive.Sticks(*sticks).expand(mode)
    rest = np.linalg.solve(np.eye(2) + precision, gradient - mode)
    assert np.abs(rest).max() < 0.1 / np.sqrt(np.diag(precision)).max()
    assert np.linalg.slogdet(J)[1] == pytest.approx(
        np.linalg.slogdet(np.eye(2) + precision)[1], abs=0.1
    )


# quadrature in one dimension: single tokens, a step of none, rows of hundreds of counts

LAW = (
    np.array([[0.9]]),
    np.array([[0.0], [0.3], [0.0], [-0.5], [0.0], [1.0]]),
    np.array([0.5]),
    np.array([[1.5]]),
)
EMISSION = np.array([[1.2, -0.5], [-0.8, 0.3], [2.0, 0.0]])
KNOWN = np.array([[1.0], [1.0], [0.5], [1.0], [-1.0], [1.0]])
SPLITS = (
    np.array([0, 1, 4, 4, 7, 9, 12]),
    np.array([0, 0, 1, 2, 0, 1, 2, 0, 1, 0, 1, 2]),
    np.array([1.0, 210, 220, 30, 0, 0, 1, 480, 2, 0, 1, 1]),
    np.array([1.0, 500, 290, 70, 1, 1, 1, 500, 20, 2, 2, 1]),
)
GIVEN = LAW, SPLITS, EMISSION, KNOWN


@pytest.fixture(scope="module")
def truth():
    return naive.filter_on_grid(*GIVEN, np.linspace(-12, 12, 2401))


def copies(n, given=GIVEN):
    """Return n copies of one sequence as a problem, and where they start."""
    (dynamics, bias, start, spread), (starts, *active), emission, known = given
    n_steps, size = len(bias), starts[-1]
    firsts = (np.arange(n)[:, None] * size + starts[:-1]).ravel()
    splits = np.append(firsts, n * size), *(np.tile(array, n) for array in active)
    law = dynamics, np.tile(bias, (n, 1)), start, spread
    return (law, splits, emission, np.tile(known, (n, 1))), np.arange(n + 1) * n_steps


def estimates(n, n_particles):
    given, starts = copies(n)
    return run(*given, n_particles, starts, shows=False).values.reshape(n, -1)


def test_evidence_is_estimated_without_bias(truth):
    values = estimates(60 if PLAIN else 20_000, 10)
    assert (
        np.abs(
            z_scores(np.exp(np.cumsum(values - truth.values, axis=1))[:, [0, 1, 3, 4, 5]], 1.0)
        ).max()
        < MAX_Z
    )
    np.testing.assert_array_equal(values[:, 2], 0.0)


def test_guided_particles_see_what_those_of_the_chain_miss():
    guided = estimates(20, 100).sum(axis=1)
    chain = [naive.filter_sequence(KEY, row, *GIVEN, 100, 1, never_guides=True) for row in ids(20)]
    assert 3.0 * guided.std() < np.std([filtered.values.sum() for filtered in chain])


@pytest.mark.parametrize("wrong", ["ratio", "forgets"])
def test_sabotaged_weights_are_rejected(wrong, truth):
    runs = [naive.filter_sequence(KEY, row, *GIVEN, 10, 1, wrong=wrong) for row in ids(400)]
    values = np.array([filtered.values for filtered in runs])
    assert np.abs(z_scores(np.exp(np.sum(values - truth.values, axis=1)), 1.0)) > MAX_Z


def test_moments_and_particles_follow_the_filter(truth):
    """Few copies with many particles: their bias is small beside the spread of the copies."""
    n, m = (6, 100) if PLAIN else (60, 2000)
    given, starts = copies(n)
    found = run(*given, m, starts)
    moments = np.stack([found.means[:, 0], found.covs[:, 0, 0]], axis=1).reshape(n, -1, 2)
    assert np.abs(z_scores(moments, truth.current)).max() < MAX_Z
    for particles, expected in ((found.predicted, truth.predicted), (found.current, truth.current)):
        mean, variance = particles[:, 0].mean(axis=1), particles[:, 0].var(axis=1)
        moments = np.stack([mean, variance], axis=1).reshape(n, -1, 2)
        assert np.abs(z_scores(moments, expected)).max() < MAX_Z
    assert abs(z_scores(found.after[:, 0].mean(axis=1), truth.current[-1, 0])) < MAX_Z


# sequences


def test_sequences_do_not_touch_each_other(rng):
    given, starts = problem(rng, n_steps=9, most=3), [0, 4, 4, 5, 9]
    whole = run(*given, starts=starts)
    parts = [
        run(*part(a, b, *given), starts=[0, b - a], rows=ids(4)[i : i + 1])
        for i, (a, b) in enumerate(itertools.pairwise(starts))
    ]
    for name, value in whole._asdict().items():
        pieces = [getattr(piece, name) for piece in parts]
        np.testing.assert_array_equal(value, np.concatenate(pieces), err_msg=name)
    assert np.isfinite(whole.after).all()
    assert (whole.values != run(*given, starts=starts, key=KEY + np.uint64(1)).values).any()


def test_to_show_particles_changes_nothing_else(rng):
    given = problem(rng, most=3)
    shown, quiet, few = run(*given), run(*given, shows=False), run(*given, m=2)
    assert quiet.predicted.size == quiet.current.size == 0
    for name in ("values", "means", "covs"):
        np.testing.assert_array_equal(getattr(shown, name), getattr(quiet, name))
        np.testing.assert_array_equal(getattr(shown, name), getattr(few, name))


def test_steps_without_counts_tell_nothing(rng):
    """Nothing active, or no trials of what is active; then particles follow the chain."""
    law, (starts, nodes, successes, trials), emission, known = problem(rng, 1, n_steps=4)
    nothing = starts, nodes, 0 * successes, 0 * trials
    n = 200 if PLAIN else 2000
    found = run(law, nothing, emission, known, n)
    np.testing.assert_array_equal(found.values, 0.0)
    mean, variance = law[2], law[3] @ law[3].T
    for t in range(4):
        if t > 0:
            mean, variance = law[0] @ mean + law[1][t], law[0] @ variance @ law[0].T + 1.0
        for particles in (found.predicted[t], found.current[t]):
            assert np.abs(z_scores(particles[0], mean)).max() < MAX_Z
            assert np.abs(z_scores((particles[0] - mean) ** 2, variance[0])).max() < MAX_Z


@pytest.mark.skipif(PLAIN, reason="needs the compiler")
def test_one_signature(rng):
    test_sequences_do_not_touch_each_other(rng)
    assert len(stick_filter.filter_sequences.signatures) == 1
