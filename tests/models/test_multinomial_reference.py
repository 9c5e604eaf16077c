"""Correlated multinomials against another sampler: our Gibbs and NumPyro's NUTS meet on small data.

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
from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.inference.gibbs import Gibbs
from polystick.models.multinomial import CorrelatedCounts
from statistics_tools import MAX_Z

JIT = not numba.config.DISABLE_JIT
FOLDER = Path(__file__).parents[1] / "references"
REFERENCE = json.loads((FOLDER / "multinomial_nuts.json").read_text())
COUNTS = np.array(REFERENCE["counts"])


def run_gibbs(counts=COUNTS, n_draws=3000, **changes):
    """Return the posterior under the reference's prior with some of its numbers changed."""
    prior = NormalInverseWishart(**{**REFERENCE["prior"], **changes})
    model = CorrelatedCounts(prior, Decomposition.sticks(range(counts.shape[1])))
    settings = Gibbs(n_draws, n_burn=100, n_chains=4, keep=("probabilities",))
    return settings.run(model, model.shards(counts), seed=1)


def quantities(posterior):
    """Return name -> draws (chain, draw, ...) of what the reference records."""
    cov = posterior["cov"]
    variance = np.diagonal(cov, axis1=2, axis2=3)
    i, j = np.triu_indices(cov.shape[-1], 1)
    return {
        "mean": posterior["mean"],
        "log_variance": np.log(variance),
        "correlation": cov[..., i, j] / np.sqrt(variance[..., i] * variance[..., j]),
        "probabilities": posterior["probabilities"][:, :, REFERENCE["rows"]],
        "log_likelihood": posterior.log_likelihood,
    }


def z_against_nuts(posterior):
    found = {name: summarise(draws) for name, draws in quantities(posterior).items()}
    return z_scores(found, REFERENCE["quantities"])


def test_gibbs_meets_nuts():
    z = z_against_nuts(run_gibbs(n_draws=3000 if JIT else 300))
    assert largest(z) < MAX_Z, z


@pytest.mark.skipif(not JIT, reason="too slow to have power")
@pytest.mark.parametrize("changes", [{"degrees": 11.0}, {"strength": 1.6}], ids=str)
def test_nuts_rejects_another_prior(changes):
    assert largest(z_against_nuts(run_gibbs(n_draws=1000, **changes))) > MAX_Z


@pytest.mark.skipif(not JIT, reason="too slow to have power")
def test_nuts_rejects_one_more_count():
    counts = COUNTS.copy()
    counts[1, 0] += 1
    assert largest(z_against_nuts(run_gibbs(counts, n_draws=1000))) > MAX_Z


def test_the_reference_has_converged():
    for name, quantity in REFERENCE["quantities"].items():
        assert np.max(quantity["rhat"]) < 1.01, name
        assert np.min(quantity["ess"]) > 4000, name


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("numpyro") is None, reason="make .venv/.reference")
def test_the_script_still_makes_the_reference(tmp_path):
    """Run it in its own process, as JAX sets global options and warns in those that fork."""
    script, out = FOLDER / "make_multinomial_reference.py", tmp_path / "short.json"
    sizes = ["--n_draws=1000", "--n_warmup=800", "--seed=1"]
    subprocess.run([sys.executable, script, *sizes, f"--out={out}"], check=True)
    short = json.loads(out.read_text())
    for part in ("counts", "prior", "rows"):
        assert short[part] == REFERENCE[part]
    z = z_scores(short["quantities"], REFERENCE["quantities"])
    assert largest(z) < MAX_Z, z
