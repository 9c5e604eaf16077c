"""The public door, as a stranger comes through it: what it lists is there, typed, documented, and fits."""

import inspect
import re
from pathlib import Path

import numba
import numpy as np
import pytest

import polystick
import typed_model
from polystick import modelling
from polystick.modelling import (
    Block,
    Dense,
    Gibbs,
    Grid,
    Key,
    Markov,
    MeanField,
    Noisy,
    Normal,
    NormalInverseWishart,
    Posterior,
    Potential,
    Serial,
    Spectral,
    Splits,
    StochasticVI,
    Threads,
    cut_rows,
    cut_sticks,
    decompose,
    draw_potential,
    expected_potential,
    log_likelihood,
    site_potential,
)
from statistics_tools import MAX_Z, standard_error
from toy_model import Toy, exact_posterior

ROOT, HOUSE = Path(__file__).parents[1], Path(polystick.__file__).parent
needs_jit = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="thousands of sweeps")
EXAMPLE = np.array([[4, 0, 1], [0, 0, 40], [2, 3, 0], [0, 0, 0]])
TREE = decompose("given", n_categories=3)


# ---- the list


def test_all_that_is_listed_is_there_and_has_a_page():
    assert modelling.__all__ == sorted(modelling.__all__)
    page = (ROOT / "docs" / "api.md").read_text()
    section = re.search(r"^## Models of your own$.*?(?=^## )", page, re.M | re.S)[0]
    silent = {name for name in modelling.__all__ if not getattr(modelling, name).__doc__}
    assert silent == {"OrderedMap"}  # the name of a type
    listed = {name for name in modelling.__all__ if re.search(rf"\b{name}\b", section)}
    assert listed == set(modelling.__all__)
    assert polystick.modelling is modelling


def public_functions(thing):
    """Yield a public function itself, or those that a class of ours writes down."""
    members = vars(thing).items() if inspect.isclass(thing) else [(thing.__name__, thing)]
    for name, member in members:
        for wrapper in ("__func__", "fget", "func"):
            member = getattr(member, wrapper, member)
        is_public = name == "__init__" or not name.startswith("_")
        if is_public and inspect.isfunction(member) and is_ours(member):
            yield member


def is_ours(function):
    """Tell whether a function is written down in the house, and not generated."""
    return HOUSE in Path(function.__code__.co_filename).parents


@pytest.mark.parametrize("name", modelling.__all__)
def test_public_signatures_are_typed(name):
    for function in public_functions(getattr(modelling, name)):
        arguments = {*inspect.signature(function).parameters} - {"self", "cls"}
        lacking = {*arguments, "return"} - set(function.__annotations__)
        assert not lacking, f"{function.__qualname__}: {lacking}"


def test_the_package_says_that_it_is_typed():
    assert (HOUSE / "py.typed").is_file()


# ---- the three ways to fill the waist


def test_expected_potentials_climb_to_the_mode():
    normal, splits = (
        Normal(np.array([0.5, -1.0]), np.array([[2.0, 0.6], [0.6, 1.0]])),
        TREE.split(EXAMPLE),
    )
    psi = np.zeros(splits.trials.shape)
    for _ in range(3000):
        psi = normal.moments(expected_potential(splits, np.abs(psi))).mean
    slope = splits.successes - splits.trials / (1 + np.exp(-psi))
    np.testing.assert_allclose(slope - (psi - normal.mean) @ normal.precision, 0.0, atol=1e-9)


def test_a_site_has_the_slope_of_the_likelihood_and_less_curvature():
    splits, psi = TREE.split(EXAMPLE), np.random.default_rng(2).normal(size=(4, 2))
    kappa, omega = site_potential(splits, psi)
    success = 1 / (1 + np.exp(-psi))
    np.testing.assert_allclose(kappa - omega * psi, splits.successes - splits.trials * success)
    curvature = splits.trials * success * (1 - success)
    seen = splits.trials > 0
    assert (omega[seen] < curvature[seen]).all()
    assert (omega[seen] > 0).all()
    assert not omega[~seen].any()
    assert not kappa[~seen].any()


def gibbs(normal, splits, n_sweeps):
    rows = np.arange(len(splits.trials), dtype=np.uint64)
    psi, drawn = np.zeros(splits.trials.shape), []
    for sweep in range(n_sweeps):
        key = Key(4, sweep)
        potential = draw_potential(splits, psi, key.at("omega"), rows)
        psi = normal.draw(potential, key.normals("psi", rows, 2 * psi.shape[1]))
        drawn.append(psi)
    return np.stack(drawn)


def importance(normal, splits, fill, n_points):
    """Return the posterior mean of psi and its error, by weighted draws given a fixed potential."""
    potential = fill(splits)
    noise = np.random.default_rng(9).standard_normal((len(splits.trials), n_points, 2))
    psi, _ = normal.draws(potential, noise)
    each = Splits(*(part[:, None] for part in splits))
    kappa, omega = (part[:, None] for part in potential)
    log_weights = (log_likelihood(each, psi) - kappa * psi + 0.5 * omega * psi**2).sum(axis=2)
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    weights = (weights / weights.sum(axis=1, keepdims=True))[..., None]
    mean = (weights * psi).sum(axis=1)
    return mean, np.sqrt((np.square(weights * (psi - mean[:, None]))).sum(axis=1))


@needs_jit
def test_sites_and_draws_meet():
    normal, splits = Normal(np.zeros(2), np.array([[2.0, 0.6], [0.6, 1.0]])), TREE.split(EXAMPLE)
    drawn = gibbs(normal, splits, 6000)[200:]
    psi = drawn.mean(axis=0)
    mean, error = importance(normal, splits, lambda s: site_potential(s, psi), 20_000)
    error = np.hypot(error, standard_error(drawn))
    assert np.abs((mean - psi) / error).max() < MAX_Z
    forgetful = Splits(splits.successes, splits.trials + (splits.trials > 0))
    mean, other = importance(normal, forgetful, lambda s: site_potential(s, psi), 20_000)
    assert np.abs((mean - psi) / np.hypot(error, other)).max() > MAX_Z


# ---- blocks


def test_solvers_are_normals_with_a_covariance():
    times, rng = np.array([0.0, 0.4, 1.0, 2.5]), np.random.default_rng(1)
    cov = 1.5 * np.exp(-np.abs(times[:, None] - times) / 1.2)
    potential = Potential(rng.normal(size=(2, 4)), rng.gamma(1.0, size=(2, 4)))
    expected = Normal(np.zeros(4), cov).moments(potential).mean
    small, other = cov[:2, :2], np.array([[1.0, 0.3], [0.3, 2.0]])
    solvers = [Dense(cov), Spectral(cov), Markov(times, 1.5, 1.2, 0.5)]
    for solver in solvers:
        np.testing.assert_allclose(solver.mean(potential), expected, atol=1e-7)
        white = solver.draw(potential, np.zeros((2, solver.noise_size))).white
        np.testing.assert_allclose(solver.unwhiten(white), expected, atol=1e-7)
    whole = Normal(np.zeros(4), np.kron(small, other)).moments(potential).mean
    np.testing.assert_allclose(Grid((small, other), np.arange(4)).mean(potential), whole, atol=1e-7)
    noisy = Normal(np.zeros(4), cov + 0.7 * np.eye(4)).moments(potential).mean
    np.testing.assert_allclose(Noisy(Dense(cov), 0.7).mean(potential), noisy, atol=1e-7)


def test_counts_are_cut_by_rows_and_by_sticks():
    by_rows, by_sticks = cut_rows(TREE, EXAMPLE, size=3), cut_sticks(TREE, EXAMPLE)
    assert [block.rows.tolist() for block in by_rows] == [[0, 1, 2], [3]]
    assert [block.rows.tolist() for block in by_sticks] == [[0], [1]]
    whole = TREE.split(EXAMPLE)
    for part, expected in enumerate(whole):
        np.testing.assert_array_equal(np.concatenate([b.splits[part] for b in by_rows]), expected)
        np.testing.assert_array_equal(
            np.concatenate([b.splits[part] for b in by_sticks]).T, expected
        )
    assert isinstance(by_rows[0], Block)
    totals = [sum(b.log_coefficient for b in blocks) for blocks in (by_rows, by_sticks)]
    np.testing.assert_allclose(totals, np.log(5 * 10))  # 5! / (4! 1!) and 5! / (2! 3!)


def test_priors_learn_from_sums():
    prior = NormalInverseWishart.weak(np.zeros(2), 1.0)
    x = np.random.default_rng(0).normal(3.0, 2.0, (4000, 2))
    law = prior.posterior(len(x), x.sum(axis=0), x.T @ x)
    np.testing.assert_allclose(law.mean, x.mean(axis=0), rtol=1e-3)
    np.testing.assert_allclose(law.expected_cov, np.cov(x.T), atol=0.02)


# ---- schedules on a model that the house does not know


X = np.random.default_rng(3).normal(1.0, 1.0, 30)


@pytest.mark.parametrize("execution", [Serial(), Threads(2)])
def test_all_schedules_run_a_strangers_model(execution):
    model, (mean, variance) = Toy(), exact_posterior(X)
    shards = model.shards(X)
    drawn = Gibbs(800, 50, n_chains=2).run(model, shards, seed=1, execution=execution)
    theta = drawn.flat("theta")[:, 0]
    assert abs(theta.mean() - mean) / standard_error(theta) < MAX_Z
    spread = np.square(theta - mean)
    assert abs(spread.mean() - variance) / standard_error(spread) < MAX_Z
    factor = MeanField(tolerance=1e-9).run(model, shards, seed=1, execution=execution).factor
    np.testing.assert_allclose(factor.mean, mean, atol=1e-3)
    batches = StochasticVI(batch_size=8, n_passes=50)
    stochastic = batches.run(model, shards, seed=1, execution=execution).factor
    assert abs(stochastic.mean - mean) < 5 * np.sqrt(variance)


def test_the_typed_model_runs():
    posterior = typed_model.run(EXAMPLE, TREE)
    assert posterior["mean"].shape == (2, 20, 2)
    assert posterior.running("psi")[0].shape == (4, 2)


def test_a_posterior_of_draws_from_elsewhere():
    rng = np.random.default_rng(0)
    groups = {
        "posterior": {"tau": rng.gamma(2.0, size=(2, 50, 3))},
        "sample_stats": {"total_log_likelihood": rng.normal(size=(2, 50))},
    }
    posterior = Posterior.build(groups, {"tau": ("stick",)}, attrs={"inference": "gibbs"})
    assert posterior.names() == ["tau"]
    assert posterior.flat("tau").shape == (100, 3)
    assert posterior.verdict().n_chains == 2
    assert "2 chains x 50 draws" in posterior.summary()
