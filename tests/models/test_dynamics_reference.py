"""Multinomial dynamics against another sampler: our Gibbs and NumPyro's NUTS meet on twenty steps.

The reference and the script that makes it are in tests/references. What is compared does not change when the
states change their sign.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numba
import numpy as np
import pytest

from agreement import largest, summarise, z_scores
from polystick.conjugate import NormalInverseWishart
from polystick.conjugate_dynamics import MatrixNormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.inference.gibbs import Gibbs
from polystick.models.dynamics import MultinomialDynamics
from statistics_tools import MAX_Z

needs_jit = pytest.mark.skipif(
    numba.config.DISABLE_JIT,
    reason="sixty sweeps, all there is time for, are not yet from the posterior",
)
FILE = Path(__file__).parents[1] / "references" / "dynamics_nuts.json"
REFERENCE = json.loads(FILE.read_text())
COUNTS = np.array(REFERENCE["counts"])
N_STICKS = COUNTS.shape[1] - 1


def make_model(kind=MultinomialDynamics, *, has_bias=True, scales=None, **of_dynamics):
    prior = REFERENCE["prior"]
    dynamics = prior["dynamics"] | of_dynamics
    mean, strength, scale = (np.full((1, 1), dynamics[w]) for w in ("mean", "strength", "scale"))
    initial = prior["initial"]
    level, scales = np.array(prior["level"])[:, None], np.array(scales or prior["scales"])
    return kind(
        Decomposition.sticks(range(N_STICKS + 1)),
        MatrixNormalInverseWishart(mean, strength, scale, dynamics["degrees"]),
        NormalInverseWishart(
            np.full(1, initial["mean"]),
            initial["strength"],
            np.full((1, 1), initial["scale"]),
            initial["degrees"],
        ),
        level[:, : int(has_bias)],
        scales[: 1 + has_bias],
        has_bias=has_bias,
    )


def z_against_nuts(model, n_draws, counts=COUNTS):
    settings = Gibbs(n_draws, n_burn=50, n_chains=4, keep=("states",))
    drawn = quantities(settings.run(model, model.shards([counts]), seed=1))
    found = {name: summarise(draws) for name, draws in drawn.items()}
    return z_scores(found, {name: REFERENCE["quantities"][name] for name in found})


def quantities(posterior):
    """Return what the reference records, by its names, with axes (chain, draw, ...)."""
    e, states = (np.asarray(posterior[name])[..., 0] for name in ("emission", "states"))
    A, Q, first = (
        np.asarray(posterior[name])[..., 0, 0]
        for name in ("dynamics", "dynamics_cov", "initial_cov")
    )
    parts = states[..., REFERENCE["shown"], None] * e[..., None, :]
    outer = e[..., :, None] * e[..., None, :]
    above = np.triu_indices(N_STICKS)
    said = {
        "parts": parts,
        "dynamics": A,
        "noise": Q[..., None] * outer[..., above[0], above[1]],
        "log_variances": np.log(np.stack([Q, first], axis=-1)),
        "log_likelihood": np.asarray(posterior.log_likelihood),
    }
    psi = parts
    if "emission_bias" in posterior.names():
        said["bias"] = np.asarray(posterior["emission_bias"])
        psi = parts + said["bias"][..., None, :]
    said["probabilities"] = Decomposition.sticks(range(N_STICKS + 1)).probabilities(psi)
    return said


@needs_jit
@pytest.mark.parametrize("n_draws", [1200, pytest.param(12_000, marks=pytest.mark.slow)])
def test_gibbs_meets_nuts(n_draws):
    z = z_against_nuts(make_model(), n_draws)
    assert largest(z) < MAX_Z, z


@needs_jit
@pytest.mark.parametrize(
    "changes",
    [{"strength": 20.0}, {"scale": 10.0}, {"scales": [4.0, 0.7]}, {"has_bias": False}],
    ids=str,
)
def test_nuts_rejects_another_law(changes):
    assert largest(z_against_nuts(make_model(**changes), 300)) > MAX_Z


@dataclass(frozen=True)
class NoBias(MultinomialDynamics):
    """States are drawn as if psi had no bias."""

    def draw_states(self, prior, shard, potential, key):
        return super().draw_states(prior, replace(shard, known=0 * shard.known), potential, key)


@dataclass(frozen=True)
class BoldStretch(MultinomialDynamics):
    """The scale of the states is drawn without the emission's share in its law."""

    def draw_stretch(self, parameters, rng):
        return super().draw_stretch(parameters, rng) * np.sqrt(1 + self.n_sticks / 3)


@needs_jit
@pytest.mark.parametrize("kind", [NoBias, BoldStretch])
def test_nuts_rejects_a_wrong_sweep(kind):
    assert largest(z_against_nuts(make_model(kind), 150)) > MAX_Z


@needs_jit
def test_nuts_rejects_other_counts():
    assert largest(z_against_nuts(make_model(), 100, COUNTS[::-1].copy())) > MAX_Z


def test_the_reference_has_converged():
    for name, quantity in REFERENCE["quantities"].items():
        assert np.max(quantity["rhat"]) < 1.01, name
        assert np.min(quantity["ess"]) > 1000, name
