"""Some cells of rows, drawn together given the others: against dense algebra, in any company."""

import numba
import numpy as np
import pytest

from polystick.kernels import simd, some_cells

PLAIN = bool(numba.config.DISABLE_JIT)
FORMS = ["scalar"] if PLAIN else ["scalar", "simd"]
N, K = 11, 9


class Problem:
    def __init__(self, rng, n=N, k=K):
        root = rng.normal(size=(k, k + 3))
        self.precision = root @ root.T + 0.2 * np.eye(k)
        self.linear, self.psi = rng.normal(size=k), rng.normal(size=(n, k))
        self.joint = rng.random((n, k)) < rng.random((n, 1))
        self.joint[0], self.joint[-1] = True, False
        size = self.joint.sum()
        self.kappa, self.omega = 5 * rng.normal(size=size), rng.gamma(0.5, 8.0, size)
        self.noise = rng.normal(size=size)
        self.starts = np.concatenate([[0], np.cumsum(self.joint.sum(axis=1))])
        self.columns = np.nonzero(self.joint)[1]
        self.order = np.flatnonzero(self.joint.any(axis=1))

    def draw(self, form, order=None, noise=None):
        psi, order = self.psi.copy(), self.order if order is None else order
        getattr(some_cells, f"draw_in_place_{form}")(
            self.precision, self.linear, self.kappa, self.omega, self.starts, self.columns, order,
            self.noise if noise is None else noise, psi,
        )  # fmt: skip
        return psi

    def expected(self, row):
        """Return mean and covariance of the cells of a row by dense algebra."""
        own, part = self.joint[row], slice(self.starts[row], self.starts[row + 1])
        cov = np.linalg.inv(self.precision[np.ix_(own, own)] + np.diag(self.omega[part]))
        pull = self.precision[np.ix_(own, ~own)] @ self.psi[row, ~own]
        return cov @ (self.linear[own] + self.kappa[part] - pull), cov


@pytest.fixture
def problem():
    return Problem(np.random.default_rng(5))


@pytest.mark.parametrize("form", FORMS)
def test_draws_equal_dense_algebra(form, problem):
    means = problem.draw(form, noise=np.zeros_like(problem.noise))
    np.testing.assert_array_equal(means[~problem.joint], problem.psi[~problem.joint])
    for row in problem.order:
        mean, cov = problem.expected(row)
        own, first = problem.joint[row], problem.starts[row]
        np.testing.assert_allclose(means[row, own], mean, rtol=1e-9, atol=1e-10)
        response = []
        for i in range(len(mean)):
            noise = np.zeros_like(problem.noise)
            noise[first + i] = 1.0
            response.append(problem.draw(form, noise=noise)[row, own] - mean)
        np.testing.assert_allclose(np.transpose(response) @ response, cov, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_a_row_draws_the_same_in_any_company(form, problem):
    whole = problem.draw(form)
    for order in (problem.order[::-1].copy(), problem.order[:1], problem.order[3:5]):
        np.testing.assert_array_equal(problem.draw(form, order)[order], whole[order])


@pytest.mark.skipif(not simd.ENABLED, reason="there is only the scalar kernel")
@pytest.mark.parametrize(("n", "k"), [(1, 1), (6, 2), (9, 30)])
def test_twins_agree(n, k):
    problem = Problem(np.random.default_rng(n + k), n, k)
    np.testing.assert_allclose(problem.draw("simd"), problem.draw("scalar"), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_a_failed_factor_leaves_nan_in_its_row_alone(form, problem):
    problem.omega[problem.starts[2]] = -1e6
    with np.errstate(invalid="ignore"):
        try:
            psi = problem.draw(form)
        except ValueError:  # the root of a negative number, where plain Python runs the kernels
            assert PLAIN
            return
    assert problem.joint[2].any()
    assert np.isnan(psi[2]).any()
    assert np.isfinite(np.delete(psi, 2, axis=0)).all()
