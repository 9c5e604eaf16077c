import numba
import numpy as np
import pytest

import naive_filter as naive
from polystick.kernels import emissions as kernels

PLAIN = numba.config.DISABLE_JIT
CASES = [
    (1, 1, 1, 1),
    (5, 3, 1, 0),
    (8, 7, 3, 1),
    (9, 6, 2, 3),
    *([] if PLAIN else [(40, 30, 10, 1)]),
]
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def make(n_steps, n_sticks, d, n_known, **options):
    return naive.emission(n_steps, n_sticks, d, n_known, np.random.default_rng(7), **options)


def packed(vectors):
    n, width = vectors.shape
    products = np.empty((n, width * (width + 1) // 2))
    kernels.pack_products(vectors, products)
    return products


def pull_back(e, d, rows=None, row_products=None):
    rows = e.rows if rows is None else rows
    row_products = packed(rows) if row_products is None else row_products
    n_steps, known = len(e.steps), np.ascontiguousarray(e.steps[:, d:])
    out = np.empty((n_steps, d)), np.empty((n_steps, d, d)), np.empty(n_steps)
    kernels.pull_back(*e.sticks, rows, row_products, known, *out)
    return out


def gather(e):
    n, width = e.rows.shape
    products = packed(e.steps)
    linear, precision = np.full((n, width), np.nan), np.full((n, products.shape[1]), np.nan)
    kernels.gather(*e.sticks, e.steps, products, linear, precision)
    return linear, precision


# ---- psi


@pytest.mark.parametrize("case", CASES)
def test_psi_of_the_active_sticks(case):
    e = make(*case)
    psi = np.empty(len(e.nodes))
    kernels.multiply_active(e.starts, e.nodes, e.rows, e.steps, psi)
    which = np.repeat(np.arange(len(e.steps)), np.diff(e.starts))
    np.testing.assert_allclose(psi, (e.steps @ e.rows.T)[which, e.nodes], **CLOSE)


def test_second_moments_of_psi_are_products_of_packed_matrices():
    e = make(6, 5, 2, 1)
    rng = np.random.default_rng(1)
    roots = rng.normal(size=(5, 3, 3)), rng.normal(size=(6, 3, 3))
    row, step = (x @ x.swapaxes(1, 2) for x in roots)
    upper = np.triu_indices(3)
    twice = np.where(upper[0] == upper[1], 1.0, 2.0)
    found = np.empty(len(e.nodes))
    row_products, step_products = (np.ascontiguousarray(x[:, *upper]) for x in (row, step))
    kernels.multiply_active(e.starts, e.nodes, row_products, step_products * twice, found)
    which = np.repeat(np.arange(6), np.diff(e.starts))
    expected = np.einsum("aij,aij->a", row[e.nodes], step[which])
    np.testing.assert_allclose(found, expected, **CLOSE)


# ---- potentials of the states


@pytest.mark.parametrize("case", CASES)
def test_the_potential_is_that_of_the_sticks_at_any_states(case):
    e, d = make(*case), case[2]
    linear, precision, constant = pull_back(e, d)
    for seed in range(4):
        z = np.random.default_rng(seed).normal(size=(len(e.steps), d))
        quadratic = np.einsum("si,sij,sj->s", z, precision, z)
        found = np.sum(linear * z, axis=1) - 0.5 * quadratic + constant
        np.testing.assert_allclose(found, naive.log_potential(e, z), rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(precision, precision.swapaxes(1, 2))


def test_steps_without_sticks_have_no_potential():
    e = make(8, 7, 3, 1)
    for found in pull_back(e, 3):
        assert not found[np.diff(e.starts) == 0].any()


def test_pulling_through_emission_times_root_whitens():
    e, root = make(8, 7, 3, 1), np.random.default_rng(2).normal(size=(3, 3))
    linear, precision, constant = pull_back(e, 3)
    white = np.concatenate([e.rows[:, :3] @ root, e.rows[:, 3:]], axis=1)
    found = pull_back(e, 3, white)
    np.testing.assert_allclose(found[0], linear @ root, **CLOSE)
    np.testing.assert_allclose(found[1], root.T @ precision @ root, **CLOSE)
    np.testing.assert_allclose(found[2], constant, **CLOSE)


def test_moments_of_rows_give_the_expected_potential():
    """The mean over two rows of each stick is the potential of the mean of their products."""
    e, other = make(8, 7, 3, 2), np.random.default_rng(3).normal(size=(7, 5))
    pairs = [pull_back(e, 3, rows) for rows in (e.rows, other)]
    mean, products = 0.5 * (e.rows + other), 0.5 * (packed(e.rows) + packed(other))
    for found, first, second in zip(pull_back(e, 3, mean, products), *pairs):
        np.testing.assert_allclose(found, 0.5 * (first + second), **CLOSE)


def test_a_wrong_bias_is_seen():
    e = make(8, 7, 3, 1)
    wrong = e._replace(rows=e.rows * np.array([1.0, 1.0, 1.0, 1.0 + 1e-8]))
    z = np.ones((8, 3))
    assert np.abs(naive.log_potential(e, z) - naive.log_potential(wrong, z)).max() > 1e-10


# ---- rows


@pytest.mark.parametrize("case", CASES)
def test_the_sums_of_each_stick(case):
    e = make(*case)
    width = e.rows.shape[1]
    linear, precision = gather(e)
    expected_linear, expected_precision = naive.row_sums(e)
    np.testing.assert_allclose(linear, expected_linear, **CLOSE)
    upper = np.triu_indices(width)
    np.testing.assert_allclose(precision, expected_precision[:, *upper], **CLOSE)


@pytest.mark.parametrize("case", CASES)
def test_draws_of_rows_are_affine_in_the_noise(case):
    e, rng = make(*case), np.random.default_rng(4)
    n, width = e.rows.shape
    root = rng.normal(size=(width, width + 2))
    prior_precision, prior_linear = root @ root.T, rng.normal(size=(n, width))
    linear, precision = gather(e)

    def draw(noise):
        rows = np.empty((n, width))
        kernels.draw_rows(prior_precision, prior_linear, linear, precision, noise, rows)
        return rows

    h, J = naive.row_sums(e)
    h, J = h + prior_linear, J + prior_precision
    mean = draw(np.zeros((n, width)))
    np.testing.assert_allclose(
        mean, np.linalg.solve(J, h[:, :, None])[:, :, 0], rtol=1e-9, atol=1e-10
    )
    units = [np.tile(unit, (n, 1)) for unit in np.eye(width)]
    roots = np.stack([draw(unit) - mean for unit in units], axis=2)
    cov = np.linalg.inv(J)
    np.testing.assert_allclose(roots @ roots.swapaxes(1, 2), cov, rtol=1e-9, atol=1e-10)


def test_a_stick_that_is_never_active_is_drawn_from_its_prior():
    e = make(8, 7, 3, 1)
    linear, precision = gather(e)
    assert not linear[3].any()
    rows = np.empty((7, 4))
    kernels.draw_rows(
        4.0 * np.eye(4), np.full((7, 4), 2.0), linear, precision, np.ones((7, 4)), rows
    )
    np.testing.assert_allclose(rows[3], 0.5 + 0.5)


# ---- manners


def test_inputs_are_left_alone():
    e = make(8, 7, 3, 1)
    before = [a.copy() for a in e]
    pull_back(e, 3)
    gather(e)
    for a, b in zip(e, before):
        np.testing.assert_array_equal(a, b)


@pytest.mark.skipif(PLAIN, reason="needs the compiler")
def test_one_signature_per_kernel():
    for case in CASES:
        e = make(*case)
        pull_back(e, case[2])
        gather(e)
        kernels.multiply_active(e.starts, e.nodes, e.rows, e.steps, np.empty(len(e.nodes)))
    test_a_stick_that_is_never_active_is_drawn_from_its_prior()  # whichever tests this worker has
    for name in ("pack_products", "multiply_active", "pull_back", "gather", "draw_rows"):
        assert len(getattr(kernels, name).signatures) == 1
