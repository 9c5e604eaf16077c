"""Regressions against another sampler: our Gibbs and NumPyro's NUTS meet on small data, behind both links.

The reference and the script that makes it are in tests/references.
"""

import json
from pathlib import Path

import numba
import numpy as np
import pytest

from agreement import largest, summarise, z_scores
from polystick.decomposition import Decomposition
from polystick.inference.gibbs import Gibbs
from polystick.models.regression import StickRegression
from polystick.models.regression_state import RegressionPrior
from polystick.models.softmax_regression import SoftmaxRegression
from statistics_tools import MAX_Z

FOLDER = Path(__file__).parents[1] / "references"
REFERENCE = json.loads((FOLDER / "regression_nuts.json").read_text())
LINKS = ("stick", "softmax")
COUNTS = np.array(REFERENCE["counts"])
X = np.column_stack([np.ones(len(COUNTS)), REFERENCE["slope"]])
GROUPS = np.array(REFERENCE["groups"])[:, None]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
needs_jit = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="too slow to have power")


def run_gibbs(link, n_draws, counts=COUNTS, **changes):
    """Return the posterior under the reference's prior with some of its numbers changed."""
    told = {**REFERENCE["prior"], **changes}
    k = counts.shape[1] - (link == "stick")
    scale = np.array([told["intercept_sd"], told["slope_sd"]])
    prior = RegressionPrior(np.zeros((2, k)), scale, (5,), "full", told["spread"])
    tree = Decomposition.sticks(range(counts.shape[1]))
    model = StickRegression(prior, tree) if link == "stick" else SoftmaxRegression(prior)
    settings = Gibbs(n_draws, n_burn=200, n_chains=4, keep=("probabilities",))
    return settings.run(model, model.shards(counts, X, GROUPS), seed=1)


def quantities(posterior):
    """Return name -> draws (chain, draw, ...) of what the reference records."""
    of_noise = posterior["noise_cov"]
    variances = [
        np.diagonal(cov, axis1=2, axis2=3) for cov in (posterior["group_cov"][:, :, 0], of_noise)
    ]
    return {
        "coefficients": posterior["coefficients"],
        "log_sd_of_groups": 0.5 * np.log(variances[0]),
        "log_sd_of_noise": 0.5 * np.log(variances[1]),
        "correlation": of_noise[..., 0, 1] / np.sqrt(variances[1][..., 0] * variances[1][..., 1]),
        "probabilities": posterior["probabilities"][:, :, REFERENCE["rows"]],
    }


def z_against_nuts(link, *args, **changes):
    posterior = run_gibbs(link, *args, **changes)
    found = {name: summarise(draws) for name, draws in quantities(posterior).items()}
    return z_scores(found, REFERENCE[link]["quantities"])


@needs_jit
@pytest.mark.parametrize(
    "link",
    ["stick", pytest.param("softmax", marks=pytest.mark.slow)],  # a third of a minute
)
def test_gibbs_meets_nuts(link):
    z = z_against_nuts(link, 2000)
    assert largest(z) < MAX_Z, z


@needs_jit
@pytest.mark.parametrize("changes", [{"spread": 1.1}, {"slope_sd": 0.7}], ids=str)
def test_nuts_rejects_another_prior(changes):
    assert largest(z_against_nuts("stick", 1500, **changes)) > MAX_Z


@pytest.mark.parametrize("link", LINKS)
def test_the_reference_has_converged(link):
    for name, quantity in REFERENCE[link]["quantities"].items():
        assert np.max(quantity["rhat"]) < 1.01, name
        assert np.min(quantity["ess"]) > 1500, name
