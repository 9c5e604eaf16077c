"""Noise of each input's own, in information form, is that of the dense covariance."""

import numpy as np
import pytest

from naive_process import matern
from polystick.augmentation import Potential
from polystick.gaussians.noisy import Noisy
from polystick.gaussians.process import Dense

M, VARIANCE = 7, 0.4
RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(M, 2))
OMEGA = RNG.gamma(1.0, 2.0, (3, M)) * (RNG.random((3, M)) > 0.3)
POTENTIAL = Potential(RNG.normal(size=(3, M)), OMEGA)  # pulls also where nothing weighs
NEW = np.vstack([INPUTS[[4, 1]], RNG.normal(size=(3, 2))])
SEEN = np.array([4, 1, -1, -1, -1])


def solvers():
    smooth = Dense(matern(INPUTS, 1.0))
    return Noisy(smooth, VARIANCE), Dense(smooth.cov + VARIANCE * np.eye(M))


def predictors():
    both = np.vstack([INPUTS, NEW])
    whole = matern(both, 1.0)
    cross, variance = whole[M:, :M], np.diag(whole)[M:]
    noisy, twin = solvers()
    own = VARIANCE * (SEEN[:, None] == np.arange(M))
    ours = noisy.predictor(noisy.smooth.predictor(cross, variance), SEEN)
    return ours, twin.predictor(cross + own, variance + VARIANCE)


def close(ours, expected):
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-10)


def moments(solver):
    """Return the mean of f and its covariance, from draws without noise and from unit vectors."""
    noise = np.vstack([np.zeros(solver.noise_size), np.eye(solver.noise_size)])
    noises = np.repeat(noise[:, None], len(OMEGA), axis=1)
    drawn = solver.draws(POTENTIAL, noises).white
    f = np.array([solver.unwhiten(white) for white in drawn])
    away = f[1:] - f[0]
    return f[0], np.einsum("nrm,nrl->rml", away, away)


def test_a_draw_has_the_moments_of_the_dense_one():
    noisy, twin = solvers()
    for ours, expected in zip(moments(noisy), moments(twin)):
        close(ours, expected)
    close(noisy.mean(POTENTIAL), twin.mean(POTENTIAL))
    root = noisy.unwhiten(np.eye(noisy.n_white))
    close(root.T @ root, twin.cov)


def test_one_draw_is_the_first_of_several():
    noisy, _ = solvers()
    noise = RNG.normal(size=(3, noisy.noise_size))
    close(noisy.draw(POTENTIAL, noise).white, noisy.draws(POTENTIAL, noise[None]).white[0])


def test_dual():
    noisy, twin = solvers()
    for ours, expected in zip(*(s.dual(POTENTIAL.kappa, OMEGA) for s in (noisy, twin))):
        close(ours, expected)


def test_conditional():
    noisy, twin = (solver.conditional(POTENTIAL) for solver in solvers())
    close(noisy.log_normaliser, twin.log_normaliser)
    nothing = np.zeros((3, 2 * M))
    close(noisy.values(nothing), solvers()[1].mean(POTENTIAL))
    rest = RNG.normal(size=nothing.shape)
    close(noisy.rest(noisy.white(rest)), rest)
    units = np.array([noisy.values(np.tile(e, (3, 1))) for e in np.eye(2 * M)])
    away = units - noisy.values(nothing)
    close(np.einsum("nrm,nrl->rml", away, away), moments(solvers()[1])[1])


@pytest.mark.parametrize("what", ["collapsed", "dual"])
def test_prediction(what):
    given = {"collapsed": (POTENTIAL,), "dual": (POTENTIAL.kappa, OMEGA)}[what]
    for ours, expected in zip(*(getattr(p, what)(*given) for p in predictors())):
        close(ours, expected)


def test_prediction_given_the_values():
    ours, twin = predictors()
    noisy, _ = solvers()
    white = RNG.normal(size=(2, noisy.n_white))
    mean, left = ours.given(white)
    f = noisy.unwhiten(white)
    close(mean[:, :2], f[:, SEEN[:2]])
    close(left[:2], 0.0)
    assert np.all(left[2:] > VARIANCE)
    root, cross = noisy.unwhiten(np.eye(noisy.n_white)), twin.cross
    close(ours.given(np.eye(noisy.n_white))[0].T @ root, cross)


def test_no_noise_is_the_solver_itself():
    smooth = solvers()[0].smooth
    close(Noisy(smooth, 0.0).mean(POTENTIAL), smooth.mean(POTENTIAL))
