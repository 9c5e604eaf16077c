"""The page's own model: right, the same bits anywhere, and made of nothing but the public door."""

import ast
from dataclasses import replace

import numba
import numpy as np
import pandas as pd
import pytest

from joint import Law, first_and_second
from own_models import example, source
from polystick.modelling import Decomposition, Estimator, Gibbs, Key, Serial, Threads
from statistics_tools import MAX_Z

needs_jit = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="thousands of sweeps")
PAGE = example("class CAR")
CAR, Parameters, Rows = PAGE["CAR"], PAGE["Parameters"], PAGE["Rows"]
W = np.array([[0, 1, 0, 0], [1, 0, 1, 1], [0, 1, 0, 0], [0, 1, 0, 0]], float)
Q = np.diag(W.sum(axis=1)) - 0.6 * W
TREE = Decomposition.sticks([1, 0, 2])
TOTALS = np.array([1, 0, 3, 2])
MODEL = CAR(TREE, Q)
COUNTS = np.random.default_rng(5).multinomial(TOTALS, [0.5, 0.3, 0.2])


# ---- the law and its sweep


def simulate(rng):
    """Draw parameters, rows and counts from the law, as the page writes it."""
    tau, level = rng.gamma(1.0, 1.0, 2), rng.normal(0.0, np.sqrt(10.0), 2)
    psi = [rng.multivariate_normal(np.full(4, a), np.linalg.inv(t * Q)) for a, t in zip(level, tau)]
    return Parameters(level, tau), np.array(psi), new_counts(np.array(psi), rng)


def new_counts(psi, rng):
    return rng.multinomial(TOTALS, TREE.probabilities(psi.T))


def summarise(everything):
    """Return moments of what is bounded or has light tails, as psi over all tau has not."""
    parameters, psi, counts = everything
    return first_and_second(
        [np.tanh(parameters.level / 4), np.log(parameters.tau), np.tanh(psi), counts]
    )


def resample(model):
    def sweep(everything, i, rng):
        parameters, psi, counts = everything
        prior, key, parts = model.prepare(parameters), Key(7, i), []
        for shard in model.shards(counts):
            j = int(shard.rows[0])
            parts.append(model.draw_rows(prior, shard, Rows(psi[j : j + 1]), key))
        psi = np.concatenate([rows.psi for rows, _ in parts])
        total = type(parts[0][1])(*map(sum, zip(*(statistics for _, statistics in parts))))
        return model.draw_parameters(parameters, total, key), psi, new_counts(psi, rng)

    return sweep


class FlatCAR(CAR):
    """Forgets that psi is drawn about its level."""

    def prepare(self, parameters):
        return super().prepare(parameters._replace(level=0.0 * parameters.level))


class DoubtingCAR(CAR):
    """Counts half of the sites when it learns how alike they are."""

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        half = CAR(self.decomposition, self.Q[:2, :2])
        tau = half.draw_parameters(parameters, statistics, key).tau
        return super().draw_parameters(parameters, statistics, key)._replace(tau=tau)


LAW = Law(simulate, summarise)


@needs_jit
def test_the_sweep_leaves_the_law_as_it_is():
    z = LAW.z(resample(MODEL), 6000, np.random.default_rng(8))
    assert np.abs(z).max() < MAX_Z


@needs_jit
@pytest.mark.parametrize("wrong", [FlatCAR, DoubtingCAR])
def test_a_sabotaged_sweep_does_not(wrong):
    assert LAW.worst_z(resample(wrong(TREE, Q)), 6000, np.random.default_rng(8)) > MAX_Z


# ---- for free


def digest(posterior):
    return [posterior[name] for name in ("level", "tau", "psi")]


RUN = Gibbs(n_draws=12, n_burn=6, n_chains=2, keep=("psi",))


def run(settings=RUN, execution=None, **more):
    return digest(settings.run(MODEL, MODEL.shards(COUNTS), seed=3, execution=execution, **more))


@pytest.mark.parametrize("execution", [Serial(), Threads(2), Threads(4)])
def test_any_number_of_threads_gives_the_same_bits(execution):
    for one, other in zip(run(), run(execution=execution)):
        np.testing.assert_array_equal(one, other)


def test_a_run_that_is_resumed_gives_the_same_bits(tmp_path):
    run(replace(RUN, n_draws=5), checkpoint=tmp_path / "car")
    for one, other in zip(run(), run(checkpoint=tmp_path / "car", resume=True)):
        np.testing.assert_array_equal(one, other)


def test_it_is_diagnosed():
    posterior = RUN.run(MODEL, MODEL.shards(COUNTS), seed=3)
    assert set(posterior.diagnostics()) == {"level", "tau", "psi", "log_likelihood"}
    assert not posterior.verdict().converged


# ---- its face


def test_the_face_predicts_what_the_draws_say():
    face = Estimator(MODEL, inference=replace(RUN, keep=()), random_state=3, n_jobs=2).fit(COUNTS)
    psi = run()[2].reshape(-1, 2, 4)
    pi = TREE.probabilities(np.moveaxis(psi, 1, 2))
    mean, sd = face.predict_proba(return_std=True)
    np.testing.assert_allclose(mean, pi.mean(axis=0))
    np.testing.assert_allclose(sd, pi.std(axis=0))
    np.testing.assert_allclose(mean.sum(axis=1), 1.0)
    new = np.array([[1, 0, 2], [0, 0, 0], [4, 1, 0], [0, 3, 0]])
    each = (new * np.log(pi)).sum(axis=2)
    expected = np.log(np.exp(each).mean(axis=0))
    np.testing.assert_allclose(face.score_samples(new), expected)
    np.testing.assert_allclose(face.score(new), expected.sum() / new.sum())
    coefficients = face.score_samples(new, coefficient=True) - expected
    np.testing.assert_allclose(coefficients, np.log([3, 1, 5, 1]), atol=1e-12)
    assert (face.predict_counts(TOTALS, n_draws=7).sum(axis=2) == TOTALS).all()
    assert len(face.probability_draws(7)) == 7


def test_the_face_goes_on_with_a_checkpoint_and_its_seed(tmp_path):
    short = replace(RUN, n_draws=5)
    first = Estimator(MODEL, inference=short, checkpoint=tmp_path / "car").fit(COUNTS)
    second = Estimator(MODEL, inference=RUN, checkpoint=tmp_path / "car").fit(COUNTS, resume=True)
    assert second.seed_ == first.seed_
    np.testing.assert_array_equal(second.posterior_["psi"][:, :5], first.posterior_["psi"])


def test_the_face_is_one_of_all_faces():
    """Settings of the schedule, generators as seeds and tables, as every model has them."""
    table = pd.DataFrame(COUNTS, index=list("wxyz"), columns=["ash", "birch", "cedar"])
    face = Estimator(MODEL, inference=RUN, random_state=np.random.default_rng(0))
    face.set_params(inference__n_draws=8).set_output(transform="pandas").fit(table)
    assert face.posterior_["psi"].shape[:2] == (2, 8)
    pi = face.predict_proba()
    assert (list(pi.index), list(pi.columns)) == (list("wxyz"), ["ash", "birch", "cedar"])


def test_the_face_refuses_what_it_can_not_do():
    with pytest.raises(TypeError, match="inference must be Gibbs"):
        Estimator(MODEL, inference="gibbs").fit(COUNTS)
    with pytest.raises(TypeError, match="object has no face: kept, shards, probabilities missing"):
        Estimator(object()).fit(COUNTS)
    with pytest.raises(TypeError, match="Half has no Gibbs sampler: `draw_rows` is missing"):
        Estimator(type("Half", (CAR,), {"draw_rows": None})(TREE, Q)).fit(COUNTS)
    face = Estimator(MODEL, inference=RUN, random_state=3).fit(COUNTS)
    with pytest.raises(ValueError, match="of the 4 rows seen in fit; got 3"):
        face.score(COUNTS[:3])
    with pytest.raises(ValueError, match="categories seen in fit"):
        face.score(COUNTS[:, :2])


# ---- and nothing else


def test_the_model_needs_nothing_but_the_public_door():
    modules = set()
    for node in ast.walk(ast.parse(source("class CAR"))):
        if isinstance(node, ast.ImportFrom):
            modules.add(node.module)
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    assert modules == {"dataclasses", "typing", "numpy", "polystick.modelling"}
