import pickle

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    Product,
    RationalQuadratic,
    WhiteKernel,
)

from polystick.covariances import OnColumns, OwnNoise, Separable, unit_sphere

X = np.random.default_rng(0).normal(size=(8, 4))
Y = np.random.default_rng(1).normal(size=(5, 4))

KERNELS = {
    "one column": lambda: OnColumns(Matern(0.7, nu=1.5), 2),
    "some columns": lambda: OnColumns(RBF([0.5, 1.5]), [3, 0]),
    "a sum": lambda: OnColumns(2.0 * Matern(0.7, nu=2.5) + WhiteKernel(0.1), (1,)),
    "own noise": lambda: RBF(0.5) + OwnNoise(0.3),
    "own noise of a column": lambda: OnColumns(Matern(0.7) * OwnNoise(0.3), (1,)),
    "own noise, fixed": lambda: OwnNoise(0.3, "fixed") * RBF(0.5),
    "of itself": lambda: OnColumns(OnColumns(RBF(0.3), 1), [0, 3]),
    "not stationary": lambda: OnColumns(DotProduct(0.4), [1, 2]),
    "partly fixed": lambda: OnColumns(ConstantKernel(3.0, "fixed") * RBF(0.6, (0.1, 9.0)), 0),
    "fixed": lambda: OnColumns(RBF(0.6, "fixed"), 0),
    "separable": lambda: Separable(
        OnColumns(2.0 * Matern(0.7, nu=2.5), 0), OnColumns(RBF([1.0, 2.0]), [1, 3])
    ),
    "three factors": lambda: Separable(
        OnColumns(RBF(0.9), 0), OnColumns(RationalQuadratic(0.5), 2), OnColumns(Matern(1.1), [1])
    ),
    "one factor": lambda: Separable(OnColumns(RBF(0.9), 2)),
    "separable, partly fixed": lambda: Separable(
        OnColumns(Matern(0.7, "fixed", nu=2.5), 0), OnColumns(RBF(1.0, (0.2, 4.0)), 1)
    ),
    "in a product": lambda: (
        1.5 * Separable(OnColumns(RBF(0.9), 0), OnColumns(RBF(0.4), 1)) + WhiteKernel(0.2)
    ),
}


def plain(kernel, A, B=None):
    """Evaluate a kernel by hand: columns chosen, factors multiplied."""
    if isinstance(kernel, Separable):
        return np.prod([plain(k, A, B) for k in kernel.kernels], axis=0)
    if isinstance(kernel, OnColumns):
        columns = np.ravel(kernel.columns)
        return plain(kernel.kernel, A[:, columns], None if B is None else B[:, columns])
    return kernel(A, B)


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]()


def test_values_are_those_of_the_columns(kernel):
    np.testing.assert_allclose(kernel(X), plain(kernel, X), rtol=1e-14)
    np.testing.assert_allclose(kernel(X, Y), plain(kernel, X, Y), rtol=1e-14)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-14)
    np.testing.assert_array_equal(kernel(X.tolist()), kernel(X))


def test_other_columns_do_not_matter():
    moved = X.copy()
    moved[:, [0, 1, 3]] += 5.0
    kernel = OnColumns(RBF(), 2)
    np.testing.assert_array_equal(kernel(moved), kernel(X))
    moved[0, 2] += 1.0
    assert not np.allclose(kernel(moved), kernel(X))


def test_gradients_are_those_of_finite_differences(kernel):
    cov, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_allclose(cov, kernel(X), rtol=1e-14)
    assert gradient.shape == (8, 8, kernel.n_dims)
    if kernel.n_dims:
        flat = approx_fprime(
            kernel.theta, lambda t: kernel.clone_with_theta(t)(X).ravel(), epsilon=1e-7
        )
        np.testing.assert_allclose(gradient.reshape(64, -1), flat.reshape(64, -1), atol=2e-6)


def test_theta_comes_back(kernel):
    theta = kernel.theta + np.linspace(0.1, 0.3, kernel.n_dims)
    moved = kernel.clone_with_theta(theta)
    np.testing.assert_allclose(moved.theta, theta, rtol=1e-14)
    assert (moved == kernel) == (kernel.n_dims == 0)
    assert kernel.bounds.size == 2 * kernel.n_dims
    free = [h for h in kernel.hyperparameters if not h.fixed]
    assert sum(h.n_elements for h in free) == kernel.n_dims
    values = kernel.get_params()
    written = [np.log(np.ravel(values[h.name])) for h in free]
    np.testing.assert_array_equal(np.concatenate([[], *written]), kernel.theta)
    limits = [np.reshape(np.log(h.bounds), (-1, 2)) for h in free]
    np.testing.assert_array_equal(
        np.vstack([np.zeros((0, 2)), *limits]).ravel(), kernel.bounds.ravel()
    )


def test_copies_are_equal_and_independent(kernel):
    before = kernel(X)
    for copy in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        assert copy == kernel
        if kernel.n_dims:
            copy.theta = copy.theta + 1.0
            assert copy != kernel
    np.testing.assert_array_equal(kernel(X), before)


def test_kernels_that_differ_are_not_equal():
    base = OnColumns(RBF(0.5), 1)
    assert base == OnColumns(RBF(0.5), [1])
    for other in (OnColumns(RBF(0.5), 2), OnColumns(RBF(0.5), [1, 2]), OnColumns(Matern(0.5), 1)):
        assert base != other
    assert base != RBF(0.5)
    other = OnColumns(RBF(), 0)
    assert Separable(base, other) != Separable(other, base)
    assert Separable(base, other) != Separable(base)
    assert Separable(base, other) != Product(base, other)


def test_parameters_are_set_by_name():
    kernel = KERNELS["separable"]()
    assert kernel.set_params() == KERNELS["separable"]()
    kernel.set_params(k1__kernel__k2__length_scale=9.0, k2__columns=[1, 2])
    assert kernel.kernels[0].kernel.k2.length_scale == 9.0
    assert kernel.kernels[1].columns == [1, 2]
    kernel.set_params(k2=OnColumns(RBF(4.0), 3))
    assert kernel == Separable(OnColumns(2.0 * Matern(9.0, nu=2.5), 0), OnColumns(RBF(4.0), 3))
    assert set(kernel.get_params(deep=False)) == {"k1", "k2"}
    single = OnColumns(RBF(1.0), 0).set_params(columns=2, kernel__length_scale=3.0)
    assert single == OnColumns(RBF(3.0), 2)
    with pytest.raises(ValueError, match="Invalid parameter"):
        kernel.set_params(k3=OnColumns(RBF(), 2))
    with pytest.raises(ValueError, match="column 0 is in more than one"):
        KERNELS["separable"]().set_params(k2__columns=[0, 2])


def test_what_is_stationary():
    assert KERNELS["some columns"]().is_stationary()
    assert not KERNELS["not stationary"]().is_stationary()
    assert KERNELS["separable"]().is_stationary()
    assert not Separable(OnColumns(RBF(), 0), OnColumns(DotProduct(), 1)).is_stationary()
    assert OnColumns(RBF(), 0).requires_vector_input


def test_repr_says_what_it_is():
    kernel = Separable(OnColumns(RBF(0.5), 1), OnColumns(RBF(2.0), [0, 2]))
    factors = "OnColumns(RBF(length_scale=0.5), 1), OnColumns(RBF(length_scale=2), [0, 2])"
    assert repr(kernel) == f"Separable({factors})"


def test_scikit_learn_fits_them():
    rng = np.random.default_rng(2)
    Z = rng.uniform(0, 4, (60, 3))
    y = np.sin(2 * Z[:, 0]) * np.cos(Z[:, 2])
    fixed = {"length_scale_bounds": (0.1, 10.0)}
    ours = 1.0 * Separable(OnColumns(RBF(1.0, **fixed), 0), OnColumns(RBF(1.0, **fixed), 2))
    ours = ours + WhiteKernel(1e-4, "fixed")
    fit = GaussianProcessRegressor(ours).fit(Z, y)
    theirs = 1.0 * RBF([1.0, 1.0], **fixed) + WhiteKernel(1e-4, "fixed")
    peer = GaussianProcessRegressor(theirs).fit(Z[:, [0, 2]], y)
    np.testing.assert_allclose(fit.kernel_.theta, peer.kernel_.theta, atol=1e-3)
    np.testing.assert_allclose(
        fit.predict(Z[:5] + 0.1), peer.predict(Z[:5, [0, 2]] + 0.1), atol=1e-3
    )


# ---- places


def test_places_have_the_distances_of_the_earth():
    berlin, paris, sydney = unit_sphere([52.52, 48.857, -33.87], [13.405, 2.352, 151.21])
    assert abs(np.linalg.norm(berlin - paris) / 877.5 - 1.0) < 0.005
    chord = np.linalg.norm(berlin - sydney)
    assert abs(2 * 6371.0 * np.arcsin(chord / (2 * 6371.0)) / 16_090.0 - 1.0) < 0.005
    pole = unit_sphere(90.0, [0.0, 77.0], radius=1.0)
    np.testing.assert_allclose(pole, [[0, 0, 1], [0, 0, 1]], atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(unit_sphere([1, -20], [3, 300]), axis=1), 6371.0)


@pytest.mark.parametrize(
    ("latitude", "longitude", "said"),
    [
        (120.0, 10.0, "latitude must be in degrees, from -90 to 90; got 120.0"),
        (10.0, -400.0, "longitude must be in degrees, from -360 to 360; got -400.0"),
        ([10.0, np.nan], [0.0, 0.0], "got nan"),
    ],
)
def test_places_off_the_earth(latitude, longitude, said):
    with pytest.raises(ValueError, match=said):
        unit_sphere(latitude, longitude)


# ---- what bad input gets


@pytest.mark.parametrize(
    ("columns", "error", "said"),
    [
        (4, ValueError, "below the number of columns of the inputs, 4; got 4"),
        ([0, -1], ValueError, "from 0 and differ"),
        ([1, 1], ValueError, "from 0 and differ"),
        ([], TypeError, "an integer or some of them"),
        ("year", TypeError, "an integer or some of them; got 'year'"),
        ([[0, 1]], TypeError, "an integer or some of them"),
    ],
)
def test_columns_that_are_none(columns, error, said):
    with pytest.raises(error, match=said):
        OnColumns(RBF(), columns)(X)


def test_factors_that_are_none():
    with pytest.raises(TypeError, match="at least one kernel"):
        Separable()
    with pytest.raises(TypeError, match=r"must be OnColumns; got RBF\(length_scale=1\)"):
        Separable(OnColumns(RBF(), 0), RBF())
    with pytest.raises(ValueError, match="column 1 is in more than one"):
        Separable(OnColumns(RBF(), [0, 1]), OnColumns(RBF(), [1, 2]))
