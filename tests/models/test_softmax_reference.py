"""Rows behind a softmax whose covariance learns its scale: our sweep and NumPyro's NUTS.

NUTS was given contrasts alone, whose law it has in closed form; ours draws levels as well, and forgets them.
The reference and the script that makes it are in tests/references.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from agreement import largest, summarise, z_scores
from polystick.inference.gibbs import Gibbs
from polystick.models.softmax_counts import SoftmaxCounts
from polystick.population import LearnedScale
from statistics_tools import MAX_Z

JIT = not numba.config.DISABLE_JIT
FOLDER = Path(__file__).parents[1] / "references"
REFERENCE = json.loads((FOLDER / "softmax_nuts.json").read_text())
COUNTS = np.array(REFERENCE["counts"])
LAW = LearnedScale(np.zeros(COUNTS.shape[1]), REFERENCE["law"]["scale"], REFERENCE["law"]["nu"])
LARGEST_Z = 4.0  # of the means; 184 of them are within it with probability 0.99


def fit(law=LAW, n_draws=4000):
    model = SoftmaxCounts(law)
    gibbs = Gibbs(n_draws, 500, thin=3, n_chains=4, keep=("probabilities",))
    return gibbs.run(model, model.shards(COUNTS), seed=0)


def quantities(posterior):
    """Return name -> draws (chain, draw, ...) of what the reference records."""
    cov = posterior["cov"]
    variance = np.diagonal(cov, axis1=2, axis2=3)
    i, j = np.triu_indices(cov.shape[-1], 1)
    return {
        "mean": posterior["mean"],
        "log_variance": np.log(variance),
        "correlation": cov[..., i, j] / np.sqrt(variance[..., i] * variance[..., j]),
        "log_probabilities": np.log(posterior["probabilities"]),
        "log_likelihood": posterior.log_likelihood,
    }


def z_against_nuts(posterior):
    """Return name -> differences of means in combined standard errors."""
    found = {name: summarise(draws) for name, draws in quantities(posterior).items()}
    z = z_scores(found, REFERENCE["quantities"])
    return {name: values for name, values in z.items() if name.startswith("mean of ")}


def test_the_reference_is_of_this_law():
    assert (REFERENCE["law"]["shape"], REFERENCE["law"]["rate"]) == (LAW.SHAPE, LAW.RATE)


def test_the_reference_has_converged():
    for name, quantity in REFERENCE["quantities"].items():
        assert np.max(quantity["rhat"]) < 1.01, name
        assert np.min(quantity["ess"]) > 1000, name


@pytest.mark.slow
@pytest.mark.skipif(not JIT, reason="too slow")
def test_the_run_meets_nuts():
    z = z_against_nuts(fit())
    assert largest(z) < LARGEST_Z, {name: np.abs(values).max() for name, values in z.items()}


@pytest.mark.slow
@pytest.mark.skipif(not JIT, reason="too slow")
def test_nuts_rejects_another_law():
    law = LearnedScale(LAW.centre, scale=0.3, nu=LAW.nu)
    assert largest(z_against_nuts(fit(law))) > MAX_Z


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("numpyro") is None, reason="make .venv/.reference")
def test_the_script_still_makes_the_reference(tmp_path):
    """Run it in its own process, as JAX sets global options and warns in those that fork."""
    script, out = FOLDER / "make_softmax_reference.py", tmp_path / "short.json"
    sizes = ["--n_draws=1500", "--n_warmup=1000", "--seed=1"]
    subprocess.run([sys.executable, script, *sizes, f"--out={out}"], check=True)
    short = json.loads(out.read_text())
    for part in ("counts", "law"):
        assert short[part] == REFERENCE[part]
    z = z_scores(short["quantities"], REFERENCE["quantities"])
    assert largest(z) < MAX_Z, z
