import numpy as np
import pytest

from naive_gaussian import Potential
from naive_process import (
    condition,
    invert,
    matern,
    posterior_of_draws,
    potentials,
    predict,
)
from polystick.gaussians.process import Dense, Eigenbasis

R, M, NEW = 3, 12, 5
LARGEST = [1, 50, 50_000]


def inputs(n, seed=0):
    return np.random.default_rng(seed).uniform(0.0, 4.0, (n, 2))


def singular():
    """Make a covariance of rank 6 at 12 inputs, each of which is there twice."""
    return np.tile(matern(inputs(6), 1.0), (2, 2))


def close(ours, expected, tolerance=1e-10):
    np.testing.assert_allclose(ours, expected, rtol=0.0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("largest", LARGEST)
def test_draws_are_affine_with_the_posterior_moments(largest):
    cov = matern(inputs(M), 1.0)
    potential = potentials(R, M, np.random.default_rng(1), largest=largest)
    ours, expected = posterior_of_draws(Dense(cov), potential), invert(cov, potential)
    close(ours.mean, expected.mean)
    for row, naive in zip(ours.cov, expected.cov):
        close(row, naive)
    close(Dense(cov).mean(potential), expected.mean)


@pytest.mark.parametrize("largest", LARGEST)
def test_a_singular_covariance_is_no_special_case(largest):
    potential = potentials(R, M, np.random.default_rng(2), largest=largest)
    assert len(Eigenbasis.of(singular()).roots) == M // 2
    ours, expected = (
        posterior_of_draws(Dense(singular()), potential),
        condition(singular(), potential),
    )
    close(ours.mean, expected.mean, 1e-9)
    for row, naive in zip(ours.cov, expected.cov):
        close(row, naive, 1e-9)


def test_the_twins_agree():
    cov, potential = matern(inputs(M), 1.0), potentials(R, M, np.random.default_rng(3))
    for one, other in zip(invert(cov, potential), condition(cov, potential)):
        close(one, other)


def test_a_pull_where_nothing_weighs_counts():
    cov, rng = matern(inputs(M), 1.0), np.random.default_rng(4)
    potential = potentials(R, M, rng)
    potential = potential._replace(kappa=rng.normal(size=(R, M)))
    assert np.any(potential.omega == 0)
    close(Dense(cov).mean(potential), invert(cov, potential).mean)


def test_whitened_draws_keep_the_noise_where_the_covariance_has_no_variance():
    potential, rng = potentials(R, M, np.random.default_rng(5)), np.random.default_rng(6)
    solver, noise = Dense(singular()), rng.normal(size=(R, 2 * M))
    null = np.hstack([np.eye(6), -np.eye(6)])  # differences of an input and its double
    white = solver.draw(potential, noise).white
    close(white @ null.T, noise[:, :M] @ null.T)
    assert np.abs(white - noise[:, :M]).max() > 0.1


def test_the_root_is_symmetric():
    solver = Dense(matern(inputs(M), 1.0))
    close(solver.root, solver.root.T)
    close(solver.root @ solver.root, solver.cov)
    assert np.linalg.eigvalsh(solver.root).min() > 0


def dual_twin(cov, linear, weights):
    covs = condition(cov, Potential(linear, weights)).cov
    dets = [np.linalg.slogdet(np.eye(len(cov)) + cov * row)[1] for row in weights]
    return linear @ cov, np.diagonal(covs, axis1=1, axis2=2), np.array(dets)


@pytest.mark.parametrize("cov", [matern(inputs(M), 1.0), singular()], ids=["regular", "singular"])
def test_dual(cov):
    rng = np.random.default_rng(7)
    linear, weights = rng.normal(size=(R, M)), potentials(R, M, rng).omega
    solver = Dense(cov)
    assert solver.weights(weights) is weights
    for ours, expected in zip(solver.dual(linear, weights), dual_twin(cov, linear, weights)):
        close(ours, expected)


def old_and_new():
    """Split a covariance at M + NEW inputs."""
    cov = matern(inputs(M + NEW), 1.0)
    return cov[:M, :M], cov[M:, :M], np.diag(cov)[M:]


@pytest.mark.parametrize("largest", LARGEST)
def test_collapsed_prediction(largest):
    cov, cross, variance = old_and_new()
    potential = potentials(R, M, np.random.default_rng(8), largest=largest)
    ours = Dense(cov).predictor(cross, variance).collapsed(potential)
    for one, other in zip(ours, predict(cov, potential, cross, variance)):
        close(one, other)


def test_prediction_given_the_values():
    cov, cross, variance = old_and_new()
    solver, white = Dense(cov), np.random.default_rng(9).normal(size=(R, M))
    mean, left = solver.predictor(cross, variance).given(white)
    back = cross @ np.linalg.inv(cov)
    close(mean, solver.unwhiten(white) @ back.T)
    close(left, variance - np.sum(back * cross, axis=1))


def test_given_and_collapsed_agree_by_the_law_of_total_variance():
    cov, cross, variance = old_and_new()
    solver, potential = Dense(cov), potentials(R, M, np.random.default_rng(10))
    predictor = solver.predictor(cross, variance)
    mean, total = predictor.collapsed(potential)
    back = cross @ np.linalg.inv(cov)
    drawn = posterior_of_draws(solver, potential)
    close(mean, drawn.mean @ back.T)
    _, left = predictor.given(np.zeros((R, M)))
    close(total, left + np.einsum("ni,rij,nj->rn", back, drawn.cov, back))


def test_dual_prediction():
    cov, cross, variance = old_and_new()
    rng = np.random.default_rng(11)
    linear, weights = rng.normal(size=(R, M)), potentials(R, M, rng).omega
    mean, spread = Dense(cov).predictor(cross, variance).dual(linear, weights)
    close(mean, linear @ cross.T)
    close(spread, predict(cov, Potential(linear, weights), cross, variance)[1])


def test_an_old_input_is_predicted_as_it_is():
    potential = potentials(R, M, np.random.default_rng(12))
    for cov in (matern(inputs(M), 1.0), singular()):
        solver = Dense(cov)
        mean, variance = solver.predictor(cov, np.diag(cov)).collapsed(potential)
        expected = condition(cov, potential)
        close(mean, expected.mean, 1e-9)
        close(variance, np.diagonal(expected.cov, axis1=1, axis2=2), 1e-9)
        white = np.random.default_rng(13).normal(size=(R, M))
        mean, left = solver.predictor(cov, np.diag(cov)).given(white)
        close(mean, solver.unwhiten(white), 1e-7)
        assert left.max() < 1e-9


def test_a_row_draws_the_same_in_any_company():
    solver, potential = Dense(matern(inputs(M), 1.0)), potentials(R, M, np.random.default_rng(14))
    noise = np.random.default_rng(15).normal(size=(R, 2 * M))
    alone = [
        solver.draw(Potential(*(a[i : i + 1] for a in potential)), noise[i : i + 1]).white[0]
        for i in range(R)
    ]
    close(np.array(alone), solver.draw(potential, noise).white, 1e-13)


def test_an_indefinite_covariance_gives_nan_not_an_error():
    solver = Dense(np.array([[1.0, 20.0], [20.0, 1.0]]))
    assert np.isnan(solver.mean(Potential(np.ones((1, 2)), np.ones((1, 2))))).all()


def test_no_rows():
    solver, empty = Dense(matern(inputs(4), 1.0)), np.empty((0, 4))
    assert solver.draw(Potential(empty, empty), np.empty((0, 8))).white.shape == (0, 4)
    assert solver.dual(empty, empty).variance.shape == (0, 4)
    mean, variance = solver.predictor(np.ones((3, 4)), np.ones(3)).dual(empty, empty)
    assert mean.shape == variance.shape == (0, 3)
