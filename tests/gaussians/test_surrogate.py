"""Surrogate data: the split of w is undone exactly, and what is left of w is standard normal."""

import numpy as np
import pytest

from polystick.gaussians.process import Dense
from polystick.gaussians.spectral import Grid, Spectral
from polystick.gaussians.surrogate import Surrogate


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


def squared_exponential(x, length):
    return np.exp(-0.5 * np.square((x[:, None] - x) / length))


def solvers(length):
    x, y = np.array([0.0, 0.5, 1.3, 2.0]), np.array([0.0, 1.0, 3.0])
    grid = (squared_exponential(x, length), squared_exponential(y, length) + 0.1)
    whole = np.kron(*grid)
    cells = np.array([0, 1, 2, 4, 5, 7, 8, 9, 11])
    return {"dense": Dense(whole), "spectral": Spectral(whole), "grid": Grid(grid, cells)}


@pytest.mark.parametrize("name", ["dense", "spectral", "grid"])
def test_the_split_is_undone(name, rng):
    spectrum = solvers(1.0)[name].spectrum
    white, noise = rng.normal(size=(2, 3, 12))
    surrogate = Surrogate.of(spectrum, white, np.array([0.1, 3.0, 500.0]), noise)
    np.testing.assert_allclose(surrogate.white(spectrum)[0], white, atol=1e-9)


@pytest.mark.parametrize("name", ["dense", "spectral", "grid"])
def test_density_of_the_data(name, rng):
    """Up to a constant that does not know the covariance: compare two covariances."""
    weight = np.array([0.3, 40.0])
    found, expected = [], []
    surrogate = Surrogate(*rng.normal(size=(2, 2, 12)), weight)
    for length in (0.7, 1.6):
        found.append(surrogate.white(solvers(length)[name].spectrum)[1])
        cov = solvers(length)["dense"].cov
        covs = [cov + np.eye(12) / w for w in weight]
        expected.append(
            [
                -0.5 * (np.linalg.slogdet(c)[1] + g @ np.linalg.solve(c, g))
                for c, g in zip(covs, surrogate.data)
            ]
        )
    np.testing.assert_allclose(np.diff(found, axis=0), np.diff(expected, axis=0), rtol=1e-8)


def test_the_map_has_the_right_volume(rng):
    """(white, noise) and (data, rest) differ by a rotation: that is why no Jacobian is needed.

    Given g, rest is standard normal if and only if p(white) p(g | white) = p(g) p(rest) |d rest / d white|,
    with a volume that does not depend on where white is. Check by numbers, and that f stays close to g.
    """
    spectrum, weight = solvers(1.0)["dense"].spectrum, np.array([25.0])
    white = rng.normal(size=(1, 12))
    root = solvers(1.0)["dense"].root
    data = Surrogate.of(spectrum, white, weight, rng.normal(size=(1, 12))).data

    def log_joint(w):
        return -0.5 * np.sum(w**2) - 0.5 * weight[0] * np.sum((data - w @ root) ** 2)

    def log_split(w):
        noise = (data - w @ root) * np.sqrt(weight[0])
        rest = Surrogate.of(spectrum, w, weight, noise).rest
        return -0.5 * np.sum(rest**2)

    other = rng.normal(size=(1, 12))
    assert log_joint(white) - log_joint(other) == pytest.approx(log_split(white) - log_split(other))


def test_f_stays_near_strong_data(rng):
    white = rng.normal(size=(1, 12))
    first, second = (solvers(length)["dense"] for length in (1.0, 1.4))
    strong = Surrogate.of(first.spectrum, white, np.array([1e4]), rng.normal(size=(1, 12)))
    moved = second.unwhiten(strong.white(second.spectrum)[0])
    held = second.unwhiten(white)
    f = first.unwhiten(white)
    assert np.abs(moved - f).max() < 0.2 * np.abs(held - f).max()
