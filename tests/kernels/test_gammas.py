"""Laws of gammas, topics and Dirichlet rows."""

import numba
import numpy as np
import pytest
from scipy import special, stats

from polystick.kernels import gammas, kernel
from polystick.kernels.streams import open_stream
from statistics_tools import MAX_Z, MIN_P, chi_square_pvalue, ks_pvalue, z_scores

PLAIN = bool(numba.config.DISABLE_JIT)
N_WORDS = 60 if PLAIN else 20_000
N_TOPICS = 50
WRONG = 1.5 if PLAIN else 1.1  # a shape this many times too large must be seen
KEY = np.uint64(0xC0FFEE)
SMALLEST_SHORT = np.finfo(np.float32).tiny
CONCENTRATIONS = [1e-4, 1e-3, 0.01, 0.05, 0.1, 0.5, 0.51, 1.0, 3.0]


@kernel
def fill(key, shape, out):
    for i in range(out.shape[0]):
        s0, s1 = open_stream(key, np.uint64(i))
        for j in range(out.shape[1]):
            out[i, j], s0, s1 = gammas.gamma(shape, s0, s1)


@kernel
def fill_logs(key, shape, out):
    for i in range(out.shape[0]):
        s0, s1 = open_stream(key, np.uint64(i))
        for j in range(out.shape[1]):
            out[i, j], s0, s1 = gammas.log_gamma(shape, s0, s1)


def law_pvalue(draws, shape, floor):
    """Return a p-value of Gamma(shape) raised to floor: of the atom at the floor and of the rest."""
    floor *= 1.0001  # the inverse is good to a few 1e-6 of x
    atom = special.gammainc(shape, floor)
    above = draws[draws > floor]
    p = stats.binomtest(draws.size - above.size, draws.size, max(atom, 1e-30)).pvalue
    if above.size < 100:
        return p
    law = lambda x: (special.gammainc(shape, x) - atom) / (1 - atom)
    return min(p, ks_pvalue(above, law))


@pytest.mark.parametrize("shape", [0.01, 0.3, 0.999, 1.0, 1.5, 7.0, 400.0])
def test_gamma_has_its_law(shape):
    draws = np.empty((N_WORDS, 10))
    fill(KEY, shape, draws)
    floor = np.finfo(float).tiny
    assert draws.min() >= floor
    assert law_pvalue(draws, shape, floor) > MIN_P
    assert law_pvalue(draws, shape * WRONG, floor) < MIN_P


def test_tiny_shapes_are_raised_to_the_smallest_number():
    draws = np.empty((N_WORDS, 10))
    fill(KEY, 1e-5, draws)
    assert law_pvalue(draws, 1e-5, np.finfo(float).tiny) > MIN_P
    fill(KEY, 1e-300, draws)
    assert (draws == np.finfo(float).tiny).all()


def test_logarithms_of_tiny_gammas_have_their_law():
    logs = np.empty((N_WORDS, 10))
    shape = 1e-6  # x^shape is uniform to within 1e-5 below x = 1
    fill_logs(KEY, shape, logs)
    assert ks_pvalue(np.exp(shape * logs), lambda u: np.clip(u, 0, 1)) > MIN_P
    assert ks_pvalue(np.exp(shape * WRONG * logs), lambda u: np.clip(u, 0, 1)) < MIN_P


def cumulative_error(concentration, n_nodes):
    """Return the largest |F(x(u)) - u| of the inverse where x <= 1."""
    polynomial = np.empty(n_nodes, np.float32)
    gammas.fit_inverse(concentration, polynomial)
    u = np.linspace(1e-4, 1.0, 20_001) * special.gammainc(concentration, 1.0)
    y = np.exp((np.log(u) + special.gammaln(concentration + 1.0)) / concentration)
    u, y = u[y > 1e-300], y[y > 1e-300]
    x = y * np.polyval(polynomial.astype(float), y)
    return np.abs(special.gammainc(concentration, x) - u).max()


@pytest.mark.parametrize("concentration", [1e-3, 0.01, 0.05, 0.1, 0.2, 0.35, 0.5])
def test_the_inverse_is_as_good_as_it_says(concentration):
    assert cumulative_error(concentration, gammas.N_NODES) < 2e-7


def test_fewer_nodes_would_not_do():
    assert cumulative_error(0.1, gammas.N_NODES - 3) > 2e-6


def draw_topics(counts, concentration, first=0, key=KEY):
    topics = np.full(counts.shape, np.nan, np.float32)
    sums = np.full(N_TOPICS, np.nan)
    gammas.draw_topics(key, first, counts, concentration, topics, sums)
    return topics, sums


def constant_counts(count, n_words=N_WORDS):
    counts = np.zeros((n_words, 56), np.int32)
    counts[:, :N_TOPICS] = count
    return counts


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_topics_without_tokens_have_their_law(concentration):
    topics, _ = draw_topics(constant_counts(0), concentration)
    draws = topics[:, :N_TOPICS].astype(float)
    assert law_pvalue(draws, concentration, SMALLEST_SHORT) > MIN_P
    if concentration >= 0.01:  # of smaller ones hardly a draw is above the floor
        assert law_pvalue(draws, concentration * WRONG, SMALLEST_SHORT) < MIN_P


@pytest.mark.parametrize("concentration", [0.01, 0.05, 0.5, 3.0])
@pytest.mark.parametrize("count", [1, 7, 300])
def test_topics_with_tokens_have_their_law(count, concentration):
    topics, _ = draw_topics(constant_counts(count, N_WORDS // 5), concentration)
    draws, shape = topics[:, :N_TOPICS].astype(float), count + concentration
    assert law_pvalue(draws, shape, SMALLEST_SHORT) > MIN_P
    assert law_pvalue(draws, shape * WRONG, SMALLEST_SHORT) < MIN_P


@pytest.mark.parametrize("concentration", [0.05, 0.1, 0.5])
def test_the_tail_beyond_one_has_its_law(concentration):
    topics, _ = draw_topics(constant_counts(0), concentration)
    draws = topics[:, :N_TOPICS].astype(float).ravel()
    below = special.gammainc(concentration, 1.0)
    beyond = draws[draws > 1.0]
    error = np.sqrt(draws.size * below * (1 - below))
    assert abs(beyond.size - draws.size * (1 - below)) < MAX_Z * error
    law = lambda x: (special.gammainc(concentration, x) - below) / (1 - below)
    assert ks_pvalue(beyond, law) > MIN_P
    if not PLAIN:
        assert ks_pvalue(1.0 + 1.5 * (beyond - 1.0), law) < MIN_P


def mixed_counts():
    counts = constant_counts(0, 40)
    counts[:, :N_TOPICS] = np.random.default_rng(0).poisson(0.7, (40, N_TOPICS))
    return counts


def test_neighbours_are_independent():
    # Two uniforms are cut from each 64 bits.
    topics, _ = draw_topics(constant_counts(0), 0.1)
    u = special.gammainc(0.1, topics[:, :N_TOPICS].astype(float)) - 0.5
    products = u[:, 1:] * u[:, :-1]
    assert np.abs(z_scores(products, 0.0)).max() < MAX_Z
    shared = np.repeat(u[:, ::2], 2, axis=1)
    assert np.abs(z_scores(shared[:, 1:] * shared[:, :-1], 0.0)).max() > MAX_Z


@pytest.mark.parametrize("concentration", [1e-4, 0.05, 1.0])
def test_sums_padding_and_floor(concentration):
    topics, sums = draw_topics(mixed_counts(), concentration)
    np.testing.assert_allclose(sums, topics[:, :N_TOPICS].sum(0, dtype=float), rtol=1e-13)
    assert (topics[:, N_TOPICS:] == 0).all()
    assert (topics[:, :N_TOPICS] >= SMALLEST_SHORT).all()


@pytest.mark.parametrize("concentration", [0.05, 1.0])
def test_topics_do_not_depend_on_blocks(concentration):
    counts = mixed_counts()
    whole, _ = draw_topics(counts, concentration, first=100)
    for start, stop in [(0, 13), (13, 40)]:
        part, _ = draw_topics(counts[start:stop], concentration, first=100 + start)
        np.testing.assert_array_equal(part, whole[start:stop])
    other, _ = draw_topics(counts, concentration, first=101)
    assert (other != whole)[:, :N_TOPICS].mean() > 0.9


# ---- Dirichlet rows


def draw_rows(concentration, n):
    table = np.tile(np.asarray(concentration, float), (n, 1))
    out = np.full(table.shape, np.nan)
    gammas.draw_dirichlet_rows(KEY, np.arange(n, dtype=np.uint64), table, out)
    np.testing.assert_allclose(out.sum(1), 1.0, rtol=1e-12)
    return out


def marginal_pvalue(pi, a):
    """Return the least p-value of the marginals, which are betas."""
    rest = a.sum() - a
    columns = range(len(a))
    return min(
        ks_pvalue(pi[:, i], lambda x, i=i: special.betainc(a[i], rest[i], x)) for i in columns
    )


def test_dirichlet_rows_have_their_law():
    a = np.array([0.2, 1.0, 3.5, 0.7])
    pi = draw_rows(a, 10 * N_WORDS)
    assert np.abs(z_scores(pi, a / a.sum())).max() < MAX_Z
    assert marginal_pvalue(pi, a) > MIN_P
    assert marginal_pvalue(pi, 2.0 * a) < MIN_P


def test_dirichlet_rows_of_tiny_shapes_are_corners_in_proportion():
    a = np.array([1.0, 2.0, 3.0]) * 1e-6
    pi = draw_rows(a, 10 * N_WORDS)
    assert np.isfinite(pi).all()
    winners = np.bincount(pi.argmax(1), minlength=3)
    assert chi_square_pvalue(winners, 10 * N_WORDS * a / a.sum()) > MIN_P
    assert chi_square_pvalue(winners, np.full(3, 10 * N_WORDS / 3)) < MIN_P


def test_dirichlet_rows_survive_the_tiniest_shapes():
    assert np.isfinite(draw_rows([1e-300, 1e-300, 1e-290], 20)).all()


def test_dirichlet_rows_do_not_depend_on_blocks():
    a = np.array([0.2, 1.0, 3.5])
    np.testing.assert_array_equal(draw_rows(a, 12)[:5], draw_rows(a, 5))


@pytest.mark.skipif(PLAIN, reason="nothing is compiled")
def test_one_signature_each():
    draw_topics(mixed_counts(), 0.05)
    draw_rows([1.0, 2.0], 3)
    assert len(gammas.draw_topics.signatures) == 1
    assert len(gammas.draw_dirichlet_rows.signatures) == 1
