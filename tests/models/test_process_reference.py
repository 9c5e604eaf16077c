"""Multinomial Gaussian processes against another sampler: our Gibbs and NumPyro's NUTS meet on a line.

The reference and the script that makes it are in tests/references.
"""

import json
from pathlib import Path

import numba
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from agreement import largest, summarise, z_scores
from polystick.covariances.families import choose_family
from polystick.decomposition import Decomposition
from polystick.inference.gibbs import Gibbs
from polystick.models.process import ProcessCounts
from statistics_tools import MAX_Z

JIT = not numba.config.DISABLE_JIT
REFERENCE = json.loads((Path(__file__).parents[1] / "references" / "process_nuts.json").read_text())
INPUTS = np.array(REFERENCE["inputs"])[:, None]
COUNTS = np.array(REFERENCE["counts"])


def run_gibbs(counts=COUNTS, solver="dense", n_draws=300, smoothness=1.5, prior_sd=None):
    variance, length = np.exp(REFERENCE["theta"]["centre"])
    wide = (1e-4, 1e4)  # so that bounds play no part
    kernel = ConstantKernel(variance, wide) * Matern(length, wide, nu=smoothness)
    model = ProcessCounts(
        choose_family(kernel, INPUTS, solver=solver),
        Decomposition.sticks(range(counts.shape[1])),
        np.array(REFERENCE["level"]),
        ("kernel",),
        prior_sd or REFERENCE["theta"]["sd"],
    )
    settings = Gibbs(n_draws, n_burn=50, n_chains=4, keep=("psi",))
    return model, settings.run(model, model.shards(counts), seed=1)


def z_against_nuts(model, posterior):
    psi = np.asarray(posterior["psi"])[..., REFERENCE["shown"]]
    drawn = {
        "theta": np.asarray(posterior["theta"]),
        "probabilities": model.decomposition.probabilities(np.swapaxes(psi, 2, 3)),
        "log_likelihood": np.asarray(posterior.log_likelihood),
    }
    found = {name: summarise(draws) for name, draws in drawn.items()}
    return z_scores(found, REFERENCE["quantities"])


@pytest.mark.parametrize("solver", ["dense", pytest.param("markov", marks=pytest.mark.slow)])
def test_gibbs_meets_nuts(solver):
    z = z_against_nuts(*run_gibbs(solver=solver, n_draws=300 if JIT else 30))
    assert largest(z) < MAX_Z, z


@pytest.mark.skipif(not JIT, reason="too slow to have power")
@pytest.mark.parametrize("changes", [{"smoothness": 0.5}, {"prior_sd": 1.0}], ids=str)
def test_nuts_rejects_another_law(changes):
    assert largest(z_against_nuts(*run_gibbs(n_draws=250, **changes))) > MAX_Z


@pytest.mark.skipif(not JIT, reason="too slow to have power")
def test_nuts_rejects_other_counts():
    counts = COUNTS.copy()
    counts[:, [0, 1]] = counts[:, [1, 0]]
    assert largest(z_against_nuts(*run_gibbs(counts, n_draws=40))) > MAX_Z


def test_the_reference_has_converged():
    for name, quantity in REFERENCE["quantities"].items():
        assert np.max(quantity["rhat"]) < 1.01, name
        assert np.min(quantity["ess"]) > 1000, name
