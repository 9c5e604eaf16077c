import concurrent.futures

import numpy as np
import pytest

from naive_gaussian import Potential
from naive_process import affine, condition, matern, posterior_of_draws, potentials, predict
from polystick.gaussians import conjugate_gradients, spectral, spectral_prediction
from polystick.gaussians.kronecker import marginals, outer
from polystick.gaussians.process import Dense, NotConverged
from polystick.gaussians.spectral import Grid, Spectral

R, NEW = 3, 4
SHAPES = [(9,), (4, 5), (3, 2, 4)]
LARGEST = [1, 50, 50_000]
TIGHT = 1e-12


def points(n, seed):
    """Make inputs that are not too close to each other."""
    rng = np.random.default_rng(seed)
    return np.linspace(0.0, 0.6 * n, n)[:, None] + rng.uniform(0.0, 0.3, (n, 1))


def factors(shape):
    return tuple(1.3 * matern(points(n, seed), 2.0) for seed, n in enumerate(shape))


def kron(matrices):
    product = np.ones((1, 1))
    for matrix in matrices:
        product = np.kron(product, matrix)
    return product


def some_cells(shape, holes, seed=5):
    """Choose cells in any order."""
    order = np.random.default_rng(seed).permutation(np.prod(shape))
    return order[: len(order) - len(order) // 4] if holes else order


def grid(shape, holes=True, tolerance=TIGHT):
    return Grid(factors(shape), some_cells(shape, holes), tolerance)


def cov_of(solver):
    return kron(solver.covs)[np.ix_(solver.cells, solver.cells)]


def close(ours, expected, tolerance=1e-8):
    limit = tolerance * np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(ours, expected, rtol=0.0, atol=limit)


def both_bases(monkeypatch):
    """Yield twice: with the common basis for all rows, and with each row's own."""
    for threshold in (np.inf, -1.0):
        monkeypatch.setattr(spectral, "UNEVEN", threshold)
        yield threshold


def assert_posterior(solver, cov, potential):
    ours, expected = posterior_of_draws(solver, potential), condition(cov, potential)
    close(ours.mean, expected.mean)
    close(solver.mean(potential), expected.mean)
    for row, naive in zip(ours.cov, expected.cov):
        close(row, naive)


@pytest.mark.parametrize("largest", LARGEST)
@pytest.mark.parametrize("holes", [False, True], ids=["whole", "holes"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_draws_on_a_grid_are_affine_with_the_posterior_moments(shape, holes, largest, monkeypatch):
    solver = grid(shape, holes)
    potential = potentials(R, solver.size, np.random.default_rng(1), largest=largest)
    for _ in both_bases(monkeypatch):
        assert_posterior(solver, cov_of(solver), potential)


@pytest.mark.parametrize("largest", LARGEST)
def test_draws_of_any_covariance_are_affine_with_the_posterior_moments(largest):
    cov = cov_of(grid((4, 5)))
    potential = potentials(R, len(cov), np.random.default_rng(2), largest=largest)
    assert_posterior(Spectral(cov, TIGHT), cov, potential)


@pytest.mark.parametrize("name", ["kappa", "omega"])
def test_the_comparison_sees_a_wrong_program(name):
    """A potential that is off by a millionth must fail."""
    solver = grid((4, 5))
    potential = potentials(R, solver.size, np.random.default_rng(3))
    wrong = potential._replace(**{name: (1 + 1e-6) * getattr(potential, name)})
    expected = condition(cov_of(solver), potential).mean
    close(solver.mean(potential), expected)
    with pytest.raises(AssertionError):
        close(solver.mean(wrong), expected)


def test_with_the_same_noise_they_draw_the_same():
    solver = grid((4, 5), holes=False)
    cov, order = cov_of(solver), np.argsort(solver.cells)
    potential = potentials(R, 20, np.random.default_rng(4))
    noise = np.random.default_rng(5).normal(size=(R, 2, 20))
    on_grid = np.concatenate([noise[:, 0][:, order], noise[:, 1]], axis=1)
    expected = Dense(cov).draw(potential, noise.reshape(R, 40)).white
    close(Spectral(cov, TIGHT).draw(potential, noise.reshape(R, 40)).white, expected)
    close(solver.draw(potential, on_grid).white[:, solver.cells], expected)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_unwhiten_is_the_symmetric_root(shape):
    solver = grid(shape)
    root = Dense(kron(solver.covs)).root
    white = np.random.default_rng(6).normal(size=(R, solver.n_white))
    close(solver.unwhiten(white), (white @ root)[:, solver.cells])


def test_white_draws_on_the_whole_grid_have_their_own_posterior():
    """In the holes and where C has no variance too: N(R kappa, .) with precision I + R Omega R."""
    singular = np.tile(matern(points(2, 0), 1.0), (2, 2))
    solver = Grid((singular, *factors((5,))), some_cells((4, 5), True), TIGHT)
    potential = potentials(R, solver.size, np.random.default_rng(7))
    root = Dense(kron(solver.covs)).root
    assert np.linalg.matrix_rank(root, tol=1e-6) == 10
    mean, units = affine(solver, potential)
    kappa, omega = (solver.fill(a).reshape(R, -1) for a in potential)
    for i in range(R):
        cov = np.linalg.inv(np.eye(20) + root @ (omega[i][:, None] * root))
        close(mean[i], cov @ root @ kappa[i])
        close(units[i].T @ units[i], cov)


def by_place(rng, shape=(12, 10), r=6):
    """Make counts that differ by place over four orders of magnitude."""
    scale = np.exp(rng.uniform(np.log(5.0), np.log(5e4), shape[1]))
    trials = np.broadcast_to(scale.astype(int), (r, *shape)).reshape(r, -1)
    psi = rng.normal(size=trials.shape)
    success = rng.binomial(trials, 1 / (1 + np.exp(-psi)))
    return Potential(success - trials / 2, trials * np.tanh(psi / 2) / (2 * psi))


def test_the_tolerance_is_an_error_in_standard_deviations():
    rng = np.random.default_rng(8)
    potential, covs = by_place(rng), factors((12, 10))
    noise = rng.normal(size=(6, 240))
    root = Dense(kron(covs)).root
    exact = Grid(covs, np.arange(120), 1e-13).draw(potential, noise).white
    for tolerance in (1e-3, 1e-5, 1e-8):
        error = Grid(covs, np.arange(120), tolerance).draw(potential, noise).white - exact
        for e, omega in zip(error, potential.omega):
            norm = e @ e + omega @ (root @ e) ** 2
            assert np.sqrt(norm / 120) < 5 * tolerance


def test_own_bases_pay_where_counts_differ_by_orders_of_magnitude(monkeypatch):
    potential, covs = by_place(np.random.default_rng(9)), factors((12, 10))
    solver, noise = Grid(covs, np.arange(120)), np.random.default_rng(10).normal(size=(6, 240))
    chosen = solver.draw(potential, noise).n_iterations
    plain, turned = (solver.draw(potential, noise).n_iterations for _ in both_bases(monkeypatch))
    assert chosen == turned < plain / 2


def test_rows_of_both_kinds_share_a_batch(monkeypatch):
    rng, covs = np.random.default_rng(11), factors((12, 10))
    potential = by_place(rng)
    potential.omega[::2] = potential.omega[::2].mean()
    assert list(spectral._uneven(potential.omega.reshape(6, 12, 10))) == [False, True] * 3
    solver, noise = Grid(covs, np.arange(120), TIGHT), rng.normal(size=(6, 240))
    drawn = solver.draw(potential, noise).white
    for _ in both_bases(monkeypatch):
        close(solver.draw(potential, noise).white, drawn)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_row_of_a_grid_draws_the_same_bits_in_any_company(size, monkeypatch):
    monkeypatch.setattr(spectral, "BATCH", 400)
    potential, covs = by_place(np.random.default_rng(12), r=7), factors((12, 10))
    potential.omega[::2] = potential.omega[::2].mean()
    solver, noise = Grid(covs, np.arange(120)), np.random.default_rng(13).normal(size=(7, 240))
    pieces = [
        solver.draw(Potential(*(a[i : i + size] for a in potential)), noise[i : i + size]).white
        for i in range(0, 7, size)
    ]
    np.testing.assert_array_equal(np.concatenate(pieces), solver.draw(potential, noise).white)


@pytest.mark.parametrize("make", [lambda c: Grid(c, np.arange(120)), lambda c: Spectral(kron(c))])
def test_threads_draw_the_same_bits(make):
    potential = by_place(np.random.default_rng(14))
    noise, solver = np.random.default_rng(15).normal(size=(6, 240)), make(factors((12, 10)))
    expected = solver.draw(potential, noise).white
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda _: make(factors((12, 10))).draw(potential, noise), range(4)):
            np.testing.assert_array_equal(found.white, expected)


@pytest.mark.parametrize("name", ["draw", "mean", "collapsed"])
def test_what_does_not_converge_is_an_error(name, monkeypatch):
    potential, covs = by_place(np.random.default_rng(16)), factors((12, 10))
    monkeypatch.setattr(spectral_prediction, "ITERATIONS", 0.0)
    for solver in (
        Grid(covs, np.arange(120), max_iterations=2),
        Spectral(kron(covs), max_iterations=2),
    ):
        run = {
            "draw": lambda s=solver: s.draw(potential, np.zeros((6, 240))),
            "mean": lambda s=solver: s.mean(potential),
            "collapsed": lambda s=solver: s.predictor(kron(covs), np.ones(120)).collapsed(
                potential
            ),
        }[name]
        with pytest.raises(NotConverged, match=r"within 2 iterations; 6 of 6.*residual is .*try"):
            run()


def test_a_tolerance_out_of_reach_is_an_error():
    covs, potential = factors((12, 10)), by_place(np.random.default_rng(17))
    with pytest.raises(NotConverged):
        Grid(covs, np.arange(120), 1e-30, max_iterations=60).mean(potential)


@pytest.mark.parametrize("name", ["kappa", "omega"])
@pytest.mark.parametrize("make", [lambda c: Grid(c, np.arange(120)), lambda c: Spectral(kron(c))])
def test_not_a_number_stays_what_it_is_and_where_it_is(make, name):
    potential, solver = by_place(np.random.default_rng(18)), make(factors((12, 10)))
    getattr(potential, name)[2, 3] = np.nan
    bad = np.isnan(solver.mean(potential)).any(axis=1)
    assert list(bad) == [False, False, True, False, False, False]


def guess_badly(system, b, *_):
    return np.full_like(b, np.nan)


def guess_wildly(system, b, *_):
    return 1e6 * np.random.default_rng(0).normal(size=b.shape).astype(b.dtype)


@pytest.mark.parametrize("guess", [guess_badly, guess_wildly])
def test_a_bad_guess_costs_time_only(guess, monkeypatch):
    potential, cov = by_place(np.random.default_rng(28)), kron(factors((12, 10)))
    noise, solver = np.random.default_rng(29).normal(size=(6, 240)), Spectral(cov, TIGHT)
    expected = solver.draw(potential, noise)
    monkeypatch.setattr(conjugate_gradients, "attempt", guess)
    found = solver.draw(potential, noise)
    close(found.white, expected.white)
    assert found.n_iterations > expected.n_iterations


def test_no_rows():
    empty = np.empty((0, 15))
    for solver in (grid((4, 5)), Spectral(cov_of(grid((4, 5))))):
        noise = np.empty((0, solver.noise_size))
        drawn = solver.draw(Potential(empty, empty), noise)
        assert drawn.white.shape == (0, solver.n_white)
        assert solver.unwhiten(drawn.white).shape == (0, 15)
        assert solver.dual(empty, solver.weights(empty)).variance.shape == (0, 15)


def product_weights(solver, rng):
    """Make weights that are products, one row of them 0."""
    omega = potentials(R, solver.size, rng).omega
    weights = solver.weights(omega)
    assert not weights[R // 2].any()
    return omega, weights


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_weights_are_the_product_with_the_marginals_of_omega(shape):
    solver = grid(shape, holes=False)
    omega, weights = product_weights(solver, np.random.default_rng(19))
    sums = marginals(solver.fill(omega))
    for i in (0, R - 1):
        expected = kron([s[i][None] for s in sums])[0] / omega[i].sum() ** (len(shape) - 1)
        close(weights[i], expected[solver.cells], 1e-7)
    close(solver.weights(weights), weights)


def test_weights_of_a_product_seen_through_holes_are_near_it():
    solver, rng = grid((12, 10)), np.random.default_rng(27)
    product = outer([rng.gamma(2.0, size=(R, n)) for n in solver.shape])
    weights = solver.weights(solver.read(product))
    assert np.abs(np.log(weights / solver.read(product))).max() < np.log(2.0)
    solver.factors_of(weights)  # they are a product


@pytest.mark.parametrize("holes", [False, True], ids=["whole", "holes"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_dual_is_that_of_the_whole_grid(shape, holes):
    """With holes too: their weights and variances belong to q, and their part to its log_det."""
    solver, rng = grid(shape, holes), np.random.default_rng(20)
    _, weights = product_weights(solver, rng)
    linear = rng.normal(size=(R, solver.size))
    ours = solver.dual(linear, weights)
    parts = solver.factors_of(weights)
    everywhere = np.array([kron([p[i][None] for p in parts])[0] for i in range(R)])
    close(everywhere[:, solver.cells], weights)
    whole = Dense(kron(solver.covs)).dual(solver.fill(linear).reshape(R, -1), everywhere)
    close(ours.mean, whole.mean[:, solver.cells])
    close(ours.variance, whole.variance[:, solver.cells])
    bound = np.sum(weights * ours.variance, axis=1) - ours.log_det
    close(bound, np.sum(everywhere * whole.variance, axis=1) - whole.log_det)


def test_the_dual_of_any_covariance_is_the_dense_one():
    cov, rng = cov_of(grid((4, 5))), np.random.default_rng(21)
    linear, weights = rng.normal(size=(R, len(cov))), potentials(R, len(cov), rng).omega
    solver = Spectral(cov)
    assert solver.weights(weights) is weights
    for ours, expected in zip(solver.dual(linear, weights), Dense(cov).dual(linear, weights)):
        np.testing.assert_array_equal(ours, expected)


def test_weights_that_are_no_product_are_refused():
    solver = grid((4, 5))
    omega = potentials(R, solver.size, np.random.default_rng(22)).omega
    with pytest.raises(ValueError, match=r"product over the factors.*try weights"):
        solver.dual(np.zeros(omega.shape), omega)


def new_inputs(shape):
    """Return covariances of new inputs with the lines of each factor, and their variances."""
    crosses = []
    for seed, n in enumerate(shape):
        both = np.vstack([points(n, seed), np.random.default_rng(9 + seed).uniform(0, 3, (NEW, 1))])
        crosses.append(1.3 * matern(both, 2.0)[n:, :n])
    return tuple(crosses), np.full(NEW, 1.3 ** len(shape))


def cross_of(solver, crosses):
    rows = [kron([cross[i][None] for cross in crosses])[0] for i in range(NEW)]
    return np.array(rows)[:, solver.cells]


@pytest.mark.parametrize("largest", LARGEST)
@pytest.mark.parametrize("direct", [False, True], ids=["iterated", "direct"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_collapsed_prediction(shape, direct, largest, monkeypatch):
    monkeypatch.setattr(spectral_prediction, "ITERATIONS", np.inf if direct else 0.0)
    solver, (crosses, variance) = grid(shape), new_inputs(shape)
    potential = potentials(R, solver.size, np.random.default_rng(23), largest=largest)
    cov, cross = cov_of(solver), cross_of(solver, crosses)
    expected = predict(cov, potential, cross, variance)
    for ours in (
        solver.predictor(crosses, variance).collapsed(potential),
        Spectral(cov, TIGHT).predictor(cross, variance).collapsed(potential),
    ):
        close(ours[0], expected[0])
        np.testing.assert_allclose(ours[1], expected[1], rtol=1e-8)


def test_the_default_tolerance_gives_variances_to_that_tolerance(monkeypatch):
    monkeypatch.setattr(spectral_prediction, "ITERATIONS", 0.0)
    solver, (crosses, variance) = grid((4, 5), tolerance=1e-8), new_inputs((4, 5))
    potential = potentials(R, solver.size, np.random.default_rng(24), largest=50_000)
    _, ours = solver.predictor(crosses, variance).collapsed(potential)
    _, expected = predict(cov_of(solver), potential, cross_of(solver, crosses), variance)
    np.testing.assert_allclose(ours, expected, rtol=1e-7)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_prediction_given_the_values_on_the_whole_grid(shape):
    solver, (crosses, variance) = grid(shape), new_inputs(shape)
    whole = Dense(kron(solver.covs))
    cross = cross_of(Grid(solver.covs, np.arange(whole.size)), crosses)
    white = np.random.default_rng(25).normal(size=(R, solver.n_white))
    ours = solver.predictor(crosses, variance).given(white)
    for one, other in zip(ours, whole.predictor(cross, variance).given(white)):
        close(one, other)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_dual_prediction(shape):
    solver, (crosses, variance) = grid(shape, holes=False), new_inputs(shape)
    rng = np.random.default_rng(26)
    _, weights = product_weights(solver, rng)
    linear, cov, cross = (
        rng.normal(size=(R, solver.size)),
        cov_of(solver),
        cross_of(solver, crosses),
    )
    expected = Dense(cov).predictor(cross, variance).dual(linear, weights)
    for predictor in (
        solver.predictor(crosses, variance),
        solver.predictor(cross, variance),  # no holes: one array will do
        Spectral(cov).predictor(cross, variance),
    ):
        for ours, other in zip(predictor.dual(linear, weights), expected):
            close(ours, other)


def test_one_array_of_covariances_will_not_do_where_there_are_holes():
    solver, (crosses, variance) = grid((4, 5)), new_inputs((4, 5))
    with pytest.raises(ValueError, match="tuple"):
        solver.predictor(cross_of(solver, crosses), variance)


def test_direct_variances_are_for_few_active_inputs_and_many_new_ones():
    predictor = grid((4, 5)).predictor(*new_inputs((4, 5)))
    assert predictor._prefers_dense(3)
    large = Grid((np.eye(50), np.eye(60)), np.arange(3000))
    few = large.predictor((np.eye(50)[:2], np.eye(60)[:2]), np.ones(2))
    assert few._prefers_dense(100)
    assert not few._prefers_dense(3000)
