import itertools

import numba
import numpy as np
import pytest

import naive_filter as naive
from naive_chain import problem
from polystick.gaussians.dynamics import Chain
from polystick.kernels import emissions, sequences

PLAIN = numba.config.DISABLE_JIT
SIZES = [(1, 1), (1, 3), (6, 1), (5, 2), (7, 4), *([] if PLAIN else [(4, 11)])]
TOLERANCE = 1e-10
LENGTHS = [3, 1, 6, 2]


def make(n_steps, d, seed=0, **options):
    rng = np.random.default_rng(seed)
    return problem(n_steps, d, rng, **options), rng.normal(size=(n_steps, d))


def assert_close(found, expected, scale=1.0):
    assert np.shape(found) == np.shape(expected)
    assert np.all(np.abs(found - expected) <= TOLERANCE * (scale + np.abs(expected)))


def assert_moments(found, truth, log_normaliser):
    n_steps = len(truth.mean)
    sd = np.sqrt(np.einsum("sisi->si", truth.cov))
    assert_close(found.mean, truth.mean, sd)
    for s in range(n_steps):
        assert_close(found.cov[s], truth.cov[s, :, s], np.outer(sd[s], sd[s]))
    for s in range(n_steps - 1):
        assert_close(found.cross[s], truth.cov[s + 1, :, s], np.outer(sd[s + 1], sd[s]))
    assert_close(log_normaliser, truth.log_normaliser)


def assert_filtered(found, truth):
    for name in ("predicted", ""):
        mean, cov = (f"{name}_{m}".strip("_") for m in ("mean", "cov"))
        expected = getattr(truth, cov)
        sd = np.sqrt(np.einsum("sii->si", expected))
        assert_close(getattr(found, mean), getattr(truth, mean), sd)
        assert_close(getattr(found, cov), expected, sd[:, :, None] * sd[:, None, :])
    assert_close(found.log_normalisers, truth.log_normalisers)


def assert_draws(draw, truth):
    n_steps, d = truth.mean.shape
    sd = np.sqrt(np.einsum("sisi->si", truth.cov))
    mean = draw(np.zeros((n_steps, d)))
    assert_close(mean, truth.mean, sd)
    units = np.eye(n_steps * d).reshape(-1, n_steps, d)
    root = np.array([(draw(unit) - mean).ravel() for unit in units])
    scale = np.maximum(np.outer(sd, sd), 1e-5 * np.maximum.outer(sd.ravel(), sd.ravel()))
    assert_close(root.T @ root, truth.cov.reshape(len(units), -1), scale)


# ---- the filter


@pytest.mark.parametrize(("n_steps", "d"), SIZES)
@pytest.mark.parametrize("noise_scale", [1.0, 1e-6, 1e4])
def test_the_filter_conditions_on_the_past(n_steps, d, noise_scale):
    p, shifts = make(n_steps, d, noise_scale=noise_scale)
    found = Chain(*p.chain).filter(*p.potential, shifts=shifts)
    assert_filtered(found, naive.filtered(p, shifts))


@pytest.mark.parametrize("missing", [0.0, 1.0])
def test_all_steps_seen_and_none(missing):
    p, shifts = make(6, 3, missing=missing)
    found = Chain(*p.chain).filter(*p.potential, shifts=shifts)
    assert_filtered(found, naive.filtered(p, shifts))
    if missing:
        assert not found.log_normalisers.any()


@pytest.mark.parametrize("dynamics", [np.zeros((3, 3)), np.eye(3), 1.5 * np.eye(3) + 0.1])
def test_any_matrix_is_a_dynamics(dynamics):
    p, shifts = make(6, 3)
    p = p._replace(dynamics=dynamics)
    found = Chain(*p.chain).filter(*p.potential, shifts=shifts)
    assert_filtered(found, naive.filtered(p, shifts))


def test_the_filter_ends_where_the_smoother_does():
    p, shifts = make(9, 4)
    chain = Chain(*p.chain)
    found = chain.filter(*p.potential, shifts=shifts)
    smoothed = chain.moments(*p.potential, shifts=shifts)
    assert_close(found.mean[-1], smoothed.mean[-1])
    assert_close(found.cov[-1], smoothed.cov[-1])
    assert_close(found.log_normalisers.sum(), smoothed.log_normaliser)


# ---- shifts


@pytest.mark.parametrize(("n_steps", "d"), SIZES)
def test_shifts_move_draws_and_moments(n_steps, d):
    p, shifts = make(n_steps, d)
    chain, truth = Chain(*p.chain), naive.shifted_joint(p, shifts)
    found = chain.moments(*p.potential, shifts=shifts)
    assert_moments(found, truth, found.log_normaliser)
    assert_draws(lambda noise: chain.draw(*p.potential, noise, shifts=shifts), truth)


def test_the_first_shift_is_not_read():
    p, shifts = make(5, 2)
    other = shifts.copy()
    other[0] = np.nan
    for name in ("moments", "filter"):
        run = getattr(Chain(*p.chain), name)
        for a, b in zip(run(*p.potential, shifts=shifts), run(*p.potential, shifts=other)):
            np.testing.assert_array_equal(a, b)


def test_equal_shifts_are_a_bias():
    p, _ = make(6, 3)
    by_shift = Chain(*p.chain[:4]).moments(*p.potential, shifts=np.tile(p.bias, (6, 1)))
    for a, b in zip(by_shift, Chain(*p.chain).moments(*p.potential)):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


# ---- several sequences


def ragged(d=3):
    p, shifts = make(sum(LENGTHS), d)
    starts = np.concatenate([[0], np.cumsum(LENGTHS)])
    parts = []
    for a, b in itertools.pairwise(starts):
        own = p._replace(linear=p.linear[a:b], precision=p.precision[a:b])
        parts.append((own, shifts[a:b], slice(a, b)))
    return p, shifts, starts, parts


@pytest.mark.parametrize("d", [1, 3])
def test_sequences_are_independent(d):
    p, shifts, starts, parts = ragged(d)
    chain = Chain(*p.chain)
    found = chain.moments(*p.potential, shifts=shifts, starts=starts)
    at = 0
    assert found.cross.shape == (sum(LENGTHS) - len(LENGTHS), d, d)
    for i, (own, own_shifts, s) in enumerate(parts):
        end = at + s.stop - s.start - 1
        own_found = found._replace(mean=found.mean[s], cov=found.cov[s], cross=found.cross[at:end])
        truth = naive.shifted_joint(own, own_shifts)
        assert_moments(own_found, truth, found.log_normaliser[i])
        at = end


def test_sequences_have_the_bits_they_have_alone():
    p, shifts, starts, parts = ragged()
    chain, noise = Chain(*p.chain), np.random.default_rng(1).normal(size=shifts.shape)
    states = chain.draw(*p.potential, noise, shifts=shifts, starts=starts)
    found = chain.filter(*p.potential, shifts=shifts, starts=starts)
    for own, own_shifts, s in parts:
        alone = chain.draw(*own.potential, noise[s], shifts=own_shifts)
        np.testing.assert_array_equal(states[s], alone)
        own_filter = chain.filter(*own.potential, shifts=own_shifts)
        for a, b in zip(found, own_filter):
            np.testing.assert_array_equal(a[s], b)


def test_sequences_that_run_into_each_other_are_seen():
    p, shifts, starts, _ = ragged()
    chain = Chain(*p.chain)
    right = chain.moments(*p.potential, shifts=shifts, starts=starts)
    wrong = chain.moments(*p.potential, shifts=shifts)
    assert np.abs(right.mean - wrong.mean).max() > 1e-3


# ---- potentials that come whitened, from sticks


def test_potentials_pulled_back_through_emission_times_root():
    n_steps, d = 8, 3
    p, shifts = make(n_steps, d)
    e = naive.emission(n_steps, 6, d, 1, np.random.default_rng(5))
    chain, known = Chain(*p.chain), np.ones((n_steps, 1))

    def pull(rows):
        products = np.empty((len(rows), 10))
        emissions.pack_products(rows, products)
        out = np.empty((n_steps, d)), np.empty((n_steps, d, d)), np.empty(n_steps)
        emissions.pull_back(*e.sticks, rows, products, known, *out)
        return out[:2]

    linear, precision = pull(e.rows)
    truth = naive.shifted_joint(p._replace(linear=linear, precision=precision), shifts)
    rows = np.concatenate([e.rows[:, :d] @ chain.root, e.rows[:, d:]], axis=1)
    found = chain.white.moments_in_place(*pull(rows), shifts=shifts)
    assert_moments(found, truth, found.log_normaliser)
    draw = lambda noise: chain.white.draw_in_place(*pull(rows), noise, shifts=shifts)
    assert_draws(draw, truth)
    filtered = chain.white.filter(*pull(rows), shifts=shifts)
    p = p._replace(linear=linear, precision=precision)
    assert_filtered(filtered, naive.filtered(p, shifts))


# ---- after the last step


def test_forecasts_are_steps_without_potentials():
    p, shifts = make(8, 3)
    cut = naive.cut(p, 8, 5)
    truth, chain = naive.shifted_joint(cut, shifts), Chain(*p.chain)
    last = chain.filter(*(a[:5] for a in cut.potential), shifts=shifts[:5])
    means, covs = chain.forecast(last.mean[-1], last.cov[-1], 3, shifts=shifts[5:])
    assert_close(means, truth.mean[5:])
    for s in range(3):
        assert_close(covs[s], truth.cov[5 + s, :, 5 + s])


def test_extensions_are_affine_in_the_noise():
    p, shifts = make(3, 2)
    chain, first = Chain(*p.chain), np.random.default_rng(1).normal(size=(4, 2))
    zeros = np.zeros((4, 3, 2))
    means, covs = chain.forecast(first[2], np.zeros((2, 2)), 3, shifts=shifts)
    assert_close(chain.extend(first, zeros, shifts=shifts)[2], means)
    units = np.eye(6).reshape(6, 3, 2)
    roots = chain.extend(np.zeros((6, 2)), units) - chain.extend(np.zeros((6, 2)), 0 * units)
    for s in range(3):
        assert_close(roots[:, s].T @ roots[:, s], covs[s])


# ---- manners


def test_inputs_are_left_alone():
    p, shifts = make(6, 3)
    before = [a.copy() for a in (*p, shifts)]
    chain = Chain(*p.chain)
    chain.filter(*p.potential, shifts=shifts)
    chain.white.filter(*p.potential, shifts=shifts)
    chain.moments(*p.potential, shifts=shifts)
    for a, b in zip((*p, shifts), before):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("wrong", ["shifts", "dynamics", "linear"])
def test_a_wrong_filter_is_seen(wrong):
    p, shifts = make(6, 3)
    truth = naive.filtered(p, shifts)
    if wrong == "shifts":
        shifts = np.roll(shifts, 1, axis=0)
    else:
        p = p._replace(**{wrong: getattr(p, wrong) * (1 + 1e-8)})
    with pytest.raises(AssertionError):
        assert_filtered(Chain(*p.chain).filter(*p.potential, shifts=shifts), truth)


@pytest.mark.skipif(PLAIN, reason="needs the compiler")
def test_one_signature_per_kernel():
    for n_steps, d in SIZES:
        p, shifts = make(n_steps, d)
        Chain(*p.chain).moments(*p.potential)
        Chain(*p.chain).filter(*p.potential, shifts=shifts)
    for name in ("pass_back_in_place", "draw_forward", "moments_forward", "filter_forward"):
        assert len(getattr(sequences, name).signatures) == 1
