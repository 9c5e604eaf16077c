import pickle

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from polystick.augmentation import Potential
from polystick.covariances import OnColumns, OwnNoise, Separable, families, unit_sphere
from polystick.covariances.families import choose_family
from polystick.gaussians.process import Dense
from polystick.inference.checkpoint import fingerprint

RNG = np.random.default_rng(0)
PLACES = RNG.normal(size=(7, 2))
GRID = np.array([[t, *place] for t in np.arange(6.0) for place in PLACES])
HOLES = np.delete(GRID, [3, 17, 18, 40], axis=0)
TIMES = np.sort(RNG.uniform(0, 50, 40))[:, None]

YEAR, PLACE = OnColumns(2.0 * Matern(3.0, nu=2.5), 0), OnColumns(RBF([0.8, 1.2]), [1, 2])
SEPARABLE = Separable(YEAR, PLACE)
SERIES = 1.5 * Matern(4.0, nu=1.5)


def potential_at(inputs, n_rows=2, seed=3):
    rng = np.random.default_rng(seed)
    omega = rng.gamma(1.0, size=(n_rows, len(inputs))) * (rng.random((n_rows, len(inputs))) > 0.3)
    return Potential(np.sqrt(omega) * rng.normal(size=omega.shape), omega)


# ---- the choice


def many(n, d=1, seed=4):
    return np.random.default_rng(seed).uniform(0, 9, (n, d))


def grid(n_times, n_places, part=1.0):
    places = many(n_places, 2)
    whole = np.array([[t, *place] for t in range(n_times) for place in places])
    return whole[np.random.default_rng(5).random(len(whole)) < part]


CHOICES = [
    (RBF(), many(40), "dense"),
    (RBF(), many(501), "unstructured"),
    (Matern(nu=2.5), many(300), "dense"),
    (Matern(nu=2.5), many(301), "markov"),
    (Matern(nu=0.5) * 3.0, many(301), "markov"),
    (2.0 * (3.0 * Matern(nu=1.5)), many(301), "markov"),
    (OnColumns(2.0 * Matern(nu=1.5), 1), many(301, 3), "markov"),
    (4.0 * Separable(OnColumns(Matern(nu=1.5), [2])), many(301, 3), "markov"),
    (OnColumns(OnColumns(Matern(nu=1.5), 1), [2, 0]), many(301, 3), "markov"),
    (Matern(nu=1.5), many(301, 2), "dense"),
    (OnColumns(Matern(nu=1.5), [0, 1]), many(301, 2), "dense"),
    (Matern(nu=3.5), many(301), "dense"),
    (Matern(nu=1.5) + WhiteKernel(), many(301), "dense"),
    (2.0 * Matern(nu=1.5) + OwnNoise(), many(301), "markov"),
    (OwnNoise() + OnColumns(Matern(nu=1.5), 1), many(301, 2), "markov"),
    (2.0 * (Matern(nu=1.5) + OwnNoise()), many(301), "dense"),
    (OnColumns(Matern(nu=1.5) + OwnNoise(), 1), many(301, 2), "dense"),
    (Matern(nu=1.5) + OwnNoise(), np.repeat(many(160), 2, axis=0), "dense"),
    (Separable(OnColumns(RBF() + OwnNoise(), 0), PLACE), grid(11, 10), "separable"),
    (Matern(nu=1.5) * RBF(), many(301), "dense"),
    (SEPARABLE, grid(10, 10), "dense"),
    (SEPARABLE, grid(11, 10), "separable"),
    (YEAR * PLACE, grid(11, 10), "separable"),
    (3.0 * (YEAR * 2.0) * PLACE, grid(11, 10), "separable"),
    (SEPARABLE, grid(20, 20, part=0.3), "separable"),
    (SEPARABLE, grid(40, 30, part=0.15), "dense"),
    (SEPARABLE, many(120, 3), "dense"),
    (SEPARABLE, np.vstack([grid(11, 10)] * 2), "dense"),
    (SEPARABLE + WhiteKernel(), grid(11, 10), "dense"),
    (Separable(OnColumns(RBF() + WhiteKernel(), 0), PLACE), grid(11, 10), "dense"),
    (OnColumns(RBF(), 0) * OnColumns(RBF(), [0, 1]), grid(11, 10), "dense"),
    (OnColumns(RBF(), [0, 1]), grid(11, 10), "dense"),
    (YEAR * RBF(), grid(11, 10), "dense"),
]


@pytest.mark.parametrize(("kernel", "inputs", "expected"), CHOICES)
def test_the_kernel_and_the_inputs_choose(kernel, inputs, expected):
    assert choose_family(kernel, inputs).solver_name == expected


# ---- the solvers


FORCED = {
    "unstructured": (SEPARABLE + WhiteKernel(0.3), HOLES),
    "separable": (SEPARABLE, HOLES),
    "separable, with constants": (3.0 * (YEAR * PLACE), HOLES),
    "separable, one factor": (OnColumns(RBF(2.0), 0), TIMES),
    "markov": (SERIES, TIMES),
    "markov, one column": (OnColumns(SERIES, 1), np.hstack([many(40), TIMES[::-1]])),
    "unstructured, own noise": (SEPARABLE + OwnNoise(0.3), HOLES),
    "markov, own noise": (SERIES + OwnNoise(0.3), TIMES),
    "markov, own noise first": (
        OwnNoise(0.4) + OnColumns(SERIES, 1),
        np.hstack([many(40), np.repeat(TIMES[:20], 2, axis=0)]),
    ),
}


@pytest.fixture(params=FORCED)
def family(request):
    kernel, inputs = FORCED[request.param]
    return choose_family(kernel, inputs, solver=request.param.split(",")[0], tolerance=1e-12)


def moved(family):
    return family.theta0 + np.linspace(-0.2, 0.3, len(family.theta0))


def dense_twin(family, theta):
    return Dense(family.kernel.clone_with_theta(theta)(family.inputs))


def test_each_solver_is_that_of_the_dense_covariance(family):
    theta, potential = moved(family), potential_at(family.inputs)
    solver, twin = family.at(theta), dense_twin(family, theta)
    assert solver.size == len(family.inputs)
    np.testing.assert_allclose(solver.mean(potential), twin.mean(potential), rtol=0, atol=1e-8)
    root = solver.unwhiten(np.eye(solver.n_white))
    np.testing.assert_allclose(root.T @ root, twin.cov, rtol=0, atol=1e-8)


def test_each_predictor_is_that_of_the_dense_covariance(family):
    theta, potential = moved(family), potential_at(family.inputs)
    new = (
        family.inputs[::3]
        + np.array([[0.0], [0.4], [-2.0]])[np.arange(len(family.inputs[::3])) % 3]
    )
    kernel = family.kernel.clone_with_theta(theta)
    twin = dense_twin(family, theta).predictor(kernel(new, family.inputs), kernel.diag(new))
    ours = family.predictor(theta, new).collapsed(potential)
    for a, b in zip(ours, twin.collapsed(potential)):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8)
    solver = family.at(theta)
    mean, left = family.predictor(theta, new).given(np.eye(solver.n_white))
    cross = mean.T @ solver.unwhiten(np.eye(solver.n_white))
    np.testing.assert_allclose(cross, kernel(new, family.inputs), rtol=0, atol=1e-7)
    np.testing.assert_allclose(np.sum(mean**2, axis=0) + left, kernel.diag(new), rtol=1e-7)


def test_another_theta_is_another_solver(family):
    potential = potential_at(family.inputs)
    found = family.at(moved(family)).mean(potential)
    assert not np.allclose(found, family.at(family.theta0).mean(potential), atol=1e-4)


class UnitVectors:
    """A generator whose normals show the root of a covariance."""

    def standard_normal(self, shape):
        return np.eye(*shape)


def test_prior_draws_at_any_inputs(family):
    theta = moved(family)
    inputs = np.vstack([family.inputs[:4] + 0.3, family.inputs[2:4], family.inputs[:4] + 0.3])
    root = family.prior_draws(theta, inputs, UnitVectors(), 400)
    kernel = family.kernel.clone_with_theta(theta)
    expected = kernel(inputs, inputs)
    if "White" in repr(kernel):
        noise = kernel.diag(inputs)[0] - expected[0, 0]
        expected = expected + noise * np.all(inputs[:, None] == inputs, axis=2)
    np.testing.assert_allclose(root.T @ root, expected, atol=1e-7)
    assert family.prior_draws(theta, inputs, np.random.default_rng(6), 3).shape == (3, 10)


@pytest.mark.parametrize("inputs", [grid(12, 10), grid(14, 12, part=0.8)])
def test_prior_draws_on_a_grid(inputs):
    family = choose_family(SEPARABLE, inputs[:5])
    root = family.prior_draws(family.theta0, inputs, UnitVectors(), 500)
    np.testing.assert_allclose(root.T @ root, SEPARABLE(inputs), atol=1e-7)


def test_white_noise_is_new_at_new_inputs():
    family = choose_family(RBF() + WhiteKernel(0.5), TIMES)
    assert family.at(family.theta0).cov[0, 0] == pytest.approx(1.5)
    predictor = family.predictor(family.theta0, TIMES[:3])
    _, left = predictor.given(np.zeros((1, len(TIMES))))
    assert np.all(left > 0.5)


def test_own_noise_stays_with_its_input():
    family = choose_family(RBF() + OwnNoise(0.5), TIMES)
    new = np.vstack([TIMES[:3], TIMES[:3] + 1e-6])
    _, left = family.predictor(family.theta0, new).given(np.zeros((1, len(TIMES))))
    assert np.all(left[:3] < 1e-7)
    assert np.all(left[3:] > 0.5)


# ---- parameters


def test_parameters_are_those_of_the_kernel():
    kernel = (
        ConstantKernel(2.0, (0.1, 10.0)) * Matern(3.0, "fixed") * OnColumns(RBF([1.0, 4.0]), [0, 2])
    )
    family = choose_family(kernel, many(10, 3))
    np.testing.assert_array_equal(family.theta0, kernel.theta)
    np.testing.assert_allclose(family.theta0, np.log([2.0, 1.0, 4.0]))
    np.testing.assert_allclose(family.bounds[0], np.log([0.1, 10.0]))
    assert family.bounds.shape == (3, 2)
    assert family.names == [
        "k1__k1__constant_value",
        "k2__kernel__length_scale[0]",
        "k2__kernel__length_scale[1]",
    ]


@pytest.mark.parametrize("solver", ["dense", "unstructured", "markov"])
def test_a_kernel_with_nothing_to_learn(solver):
    family = choose_family(Matern(2.0, "fixed", nu=1.5), TIMES, solver)
    assert (family.theta0.shape, family.bounds.shape, family.names) == ((0,), (0, 2), [])
    assert family.at(family.theta0).size == 40
    assert family.predictor(family.theta0, TIMES[:2] + 0.1).collapsed(potential_at(TIMES))[
        0
    ].shape == (2, 2)


def test_the_last_solver_is_kept_but_does_not_travel():
    family = choose_family(SERIES, TIMES)
    solver = family.at(family.theta0)
    assert family.at(family.theta0.copy()) is solver
    other = family.at(family.theta0 + 0.1)
    assert other is not solver
    assert family.at(family.theta0 + 0.1) is other
    copy = pickle.loads(pickle.dumps(family))
    assert "_held" not in vars(copy)
    np.testing.assert_array_equal(copy.at(family.theta0).cov, solver.cov)


def test_the_kernel_is_a_copy():
    kernel = 1.5 * Matern(4.0, nu=1.5)
    family = choose_family(kernel, TIMES)
    kernel.theta = kernel.theta + 1.0
    np.testing.assert_allclose(family.theta0, np.log([1.5, 4.0]))


def test_fingerprints_tell_families_apart():
    base = {"kernel": 1.5 * OnColumns(Matern(4.0, nu=1.5), 0), "inputs": TIMES, "solver": "markov"}
    same = dict(base, kernel=1.5 * OnColumns(Matern(4, nu=1.5), 0), inputs=TIMES.copy())
    assert fingerprint(choose_family(**base)) == fingerprint(choose_family(**same))
    others = [
        dict(base, kernel=1.5 * OnColumns(Matern(4.0, nu=2.5), 0)),
        dict(base, kernel=1.5 * OnColumns(Matern(4.0 + 1e-12, nu=1.5), 0)),
        dict(base, kernel=1.5 * OnColumns(Matern(4.0, (1.0, 5.0), nu=1.5), 0)),
        dict(base, kernel=1.5 * OnColumns(Matern(4.0, "fixed", nu=1.5), 0)),
        dict(base, kernel=1.5 * Matern(4.0, nu=1.5)),
        dict(base, inputs=TIMES + 1e-9),
        dict(base, solver="dense"),
        dict(base, solver="unstructured"),
        dict(base, solver="unstructured", tolerance=1e-9),
        dict(base, solver="unstructured", max_iterations=7),
    ]
    prints = {fingerprint(choose_family(**given)) for given in [base, *others]}
    assert len(prints) == 1 + len(others)


def test_settings_reach_the_solver():
    for name in ("separable", "unstructured"):
        solver = choose_family(SEPARABLE, HOLES, name, tolerance=1e-5, max_iterations=7).at(
            SEPARABLE.theta
        )
        assert (solver.tolerance, solver.max_iterations) == (1e-5, 7)


# ---- what bad input gets


class Steep(RBF):
    """A kernel of great-circle distance that is not positive definite."""

    def __call__(self, X, Y=None, eval_gradient=False):
        units = (unit_sphere(*np.atleast_2d(A).T, radius=1.0) for A in (X, X if Y is None else Y))
        a, b = units
        angle = np.arccos(np.clip(a @ b.T, -1.0, 1.0))
        return np.exp(-0.5 * (angle / self.length_scale) ** 2)


def around_the_earth():
    rng = np.random.default_rng(7)
    return np.column_stack([rng.uniform(-80, 80, 60), rng.uniform(-180, 180, 60)])


REFUSED = [
    ({"kernel": Steep(1.0), "inputs": around_the_earth()}, "positive definite.*unit_sphere"),
    (
        {"kernel": Steep(1.0), "inputs": around_the_earth(), "solver": "unstructured"},
        "has an eigenvalue of -",
    ),
    ({"kernel": RBF(np.nan), "inputs": TIMES}, "covariances must be finite"),
    (
        {"kernel": OnColumns(RBF(), 3), "inputs": TIMES},
        "columns must be below the number of columns",
    ),
    ({"kernel": RBF(), "inputs": TIMES, "solver": "dens"}, "solver must be 'auto' or one of dense"),
    ({"kernel": RBF(), "inputs": TIMES, "tolerance": 0.0}, "tolerance must be finite and above 0"),
    ({"kernel": RBF(), "inputs": TIMES, "tolerance": 10.0}, "tolerance must be at most 0.01"),
    ({"kernel": RBF(), "inputs": TIMES, "max_iterations": 0}, "max_iterations must be at least 1"),
    (
        {"kernel": Matern([1.0, 2.0], nu=1.5), "inputs": many(400, 1)},
        "number of dimensions as data",
    ),
    (
        {"kernel": RBF(), "inputs": TIMES, "solver": "markov"},
        r"needs a kernel of one column.*for 1 columns",
    ),
    ({"kernel": Matern(nu=1.5), "inputs": many(9, 2), "solver": "markov"}, "OnColumns"),
    ({"kernel": RBF(), "inputs": TIMES, "solver": "separable"}, "needs a product of OnColumns"),
    (
        {
            "kernel": Separable(OnColumns(RBF() + WhiteKernel(), 0), PLACE),
            "inputs": GRID,
            "solver": "separable",
        },
        "without white noise",
    ),
    (
        {"kernel": SEPARABLE, "inputs": np.vstack([GRID, GRID]), "solver": "separable"},
        "in the same cell",
    ),
    (
        {"kernel": SEPARABLE, "inputs": many(120, 3), "solver": "separable"},
        "on one of 120 x 120 cells",
    ),
]


@pytest.mark.parametrize(("given", "said"), REFUSED)
def test_bad_input_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        choose_family(**given)


def test_a_kernel_that_is_none():
    with pytest.raises(TypeError, match="kernel must be one of scikit-learn's"):
        choose_family("rbf", TIMES)


def test_the_chord_is_positive_definite_where_the_great_circle_is_not():
    choose_family(RBF(1.0), unit_sphere(*around_the_earth().T, radius=1.0))


def test_nearly_singular_is_no_error():
    """Rounding makes small negative eigenvalues, which are none."""
    inputs = np.linspace(0, 1, 200)[:, None]
    eigenvalues = np.linalg.eigvalsh(RBF(5.0)(inputs))
    assert eigenvalues[0] < 0.0
    assert choose_family(RBF(5.0), inputs).solver_name == "dense"


def test_a_small_negative_eigenvalue_is_looked_at_twice():
    """Judged by the largest eigenvalue, not by the largest variance."""

    class Dented(RBF):
        dent = 0.0

        def __call__(self, X, Y=None, eval_gradient=False):
            return super().__call__(X, Y) - self.dent * np.eye(len(X))

    inputs = np.linspace(0, 1, 200)[:, None]
    Dented.dent = 1e-6  # the largest eigenvalue is near 200
    choose_family(Dented(5.0), inputs)
    Dented.dent = 1e-5
    with pytest.raises(ValueError, match="positive definite"):
        choose_family(Dented(5.0), inputs)


@pytest.mark.parametrize("solver", ["auto", "dense", "unstructured"])
def test_a_covariance_too_large_for_memory(monkeypatch, solver):
    monkeypatch.setattr(families, "_available_memory", lambda: 30e6)
    choose_family(RBF(), many(900), solver)
    with pytest.raises(
        ValueError, match=r"of 1000 inputs needs about 0\.024 GB.*0\.03 GB are.*Separable"
    ):
        choose_family(RBF(), many(1000), solver)
    assert choose_family(SERIES, many(5000)).solver_name == "markov"


def test_a_covariance_too_large_for_anyone():
    with pytest.raises(ValueError, match=r"of 20001 inputs needs about 9\.6 GB"):
        choose_family(RBF(), np.arange(20_001.0)[:, None])


def test_a_factor_too_large(monkeypatch):
    monkeypatch.setattr(families, "_available_memory", lambda: 1e4)
    with pytest.raises(ValueError, match="of 30 values of a factor"):
        choose_family(SEPARABLE, grid(5, 30), "separable")


def test_memory_is_what_the_system_and_the_cgroup_tell(monkeypatch, tmp_path):
    assert 1e6 < families._available_memory() < 1e16
    for name, value in {"max": 7000, "current": 3000}.items():
        (tmp_path / f"memory.{name}").write_text(f"{value}\n")
    assert families._cgroup_memory(tmp_path) == 4000
    (tmp_path / "memory.max").write_text("max\n")
    assert families._read_memory(lambda: families._cgroup_memory(tmp_path)) == np.inf
    assert families._read_memory(lambda: families._cgroup_memory(tmp_path / "none")) == np.inf
