"""Long: how often intervals of average effects hold the truth, and how well lopsided tables mix."""

import numpy as np
import pandas as pd
import pytest

from polystick import Gibbs, MultinomialRegression, decompose
from polystick.models.normal_points import standard_normal_points

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
N, K, G = 100, 4, 10
TREE = decompose("given", n_categories=K)
ROOT = np.linalg.cholesky(0.3**2 * (0.5 * np.eye(K - 1) + 0.5))
POINTS = standard_normal_points(256, K - 1) @ ROOT.T
CHANGES = {"x": 1.0, "z": (0, 1)}


def one_table(rng, link):
    """Return covariates, counts and the true average effects: column -> (K,)."""
    k = K - 1 if link == "stick" else K
    frame = pd.DataFrame(
        {"x": rng.standard_normal(N), "z": rng.integers(0, 2, N), "g": rng.integers(0, G, N)}
    )
    b, u = 0.5 * rng.standard_normal((3, k)), 0.4 * rng.standard_normal((G, k))

    def shares(x, z, e):
        line = np.column_stack([np.ones(N), x, z]) @ b + u[frame["g"]]
        if link == "stick":
            return TREE.probabilities(line + e)
        eta = np.exp(line + np.pad(e, ((0, 0), (0, 1)) if np.ndim(e) == 2 else ((0, 1),)))
        return eta / eta.sum(axis=1, keepdims=True)

    def average(x, z):
        return np.mean([shares(x, z, point).mean(axis=0) for point in POINTS], axis=0)

    x, z = frame["x"].to_numpy(), frame["z"].to_numpy()
    truth = {"x": average(x + 1, z) - average(x, z), "z": average(x, 1 + 0 * z) - average(x, 0 * z)}
    pi = shares(x, z, rng.standard_normal((N, K - 1)) @ ROOT.T)
    counts = rng.multinomial(rng.poisson(30, N) + 1, pi)
    return frame, counts, truth


def coverage(n_tables, truth_is, seed=5):
    """Return the share of 90 % intervals that hold the truth, for each table."""
    rng, shares = np.random.default_rng(seed), []
    schedule = Gibbs(n_draws=400, n_burn=150, n_chains=1)
    for i in range(n_tables):
        frame, counts, truth = one_table(rng, truth_is)
        model = MultinomialRegression(
            "x + z", groups="g", decomposition="given", inference=schedule, random_state=i, n_jobs=1
        ).fit(frame, counts)
        inside = []
        for column, change in CHANGES.items():
            found = model.effects(column, change, n_draws=400)
            inside.append((found["lower"] <= truth[column]) & (truth[column] <= found["upper"]))
        shares.append(np.mean(inside))
    return np.array(shares)


def test_intervals_of_average_effects_hold_the_truth():
    """Of 40 tables of the model's own law, counts of about 30 a row; some minutes."""
    shares = coverage(40, "stick")
    error = shares.std(ddof=1) / np.sqrt(len(shares))
    print(f"coverage {shares.mean():.3f} +- {error:.3f}")
    assert abs(shares.mean() - 0.9) < 3 * error
    assert 0.85 < shares.mean() < 0.95


@pytest.mark.parametrize("tree", ["frequency", "balanced"])
def test_lopsided_tables_mix(tree):
    """Two fifths of the cells are zeros, totals go from 20 to 8000."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.standard_normal((120, 2)), columns=["x", "z"])
    level = np.array([5, 4, 2, 0, -1, -3, -5, -6.0])
    psi = level + frame.to_numpy() @ rng.normal(0, 0.6, (2, 8)) + rng.normal(0, 0.8, (120, 8))
    pi = np.exp(psi) / np.exp(psi).sum(axis=1, keepdims=True)
    counts = rng.multinomial(np.exp(rng.uniform(3, 9, 120)).astype(int), pi)
    schedule = Gibbs(n_draws=1000, n_burn=400, n_chains=2)
    model = MultinomialRegression(decomposition=tree, inference=schedule, random_state=0, n_jobs=1)
    found = model.fit(frame, counts).posterior_.diagnostics()
    worth = {name: each.ess / 2000 for name, each in found.items()}
    print(tree, {name: round(value, 3) for name, value in worth.items()})
    assert min(worth["coefficients"], worth["probabilities"]) > 0.08
    assert worth["noise_cov"] > 0.02
