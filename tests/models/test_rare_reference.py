"""Rare categories and large totals: a run of the default length under a given prior, and NumPyro's NUTS.

Pólya-gamma steps are tiny there, so chains that make no others look as if they had converged where they
started. The reference and the script that makes it are in tests/references.
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
from polystick import CorrelatedMultinomial, Gibbs
from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import Decomposition
from statistics_tools import MAX_Z

JIT = not numba.config.DISABLE_JIT
FOLDER = Path(__file__).parents[1] / "references"
REFERENCE = json.loads((FOLDER / "rare_nuts.json").read_text())
COUNTS = np.array(REFERENCE["counts"])
LARGEST_Z = 4.0  # of the means; 145 of them are within it with probability 0.99


PRIOR = NormalInverseWishart(**REFERENCE["prior"])


def fit(counts=COUNTS, prior=PRIOR):
    """Return a run of the default length that keeps draws of probabilities."""
    inference = Gibbs(keep=("probabilities",))
    return CorrelatedMultinomial(inference=inference, prior=prior, random_state=0).fit(counts)


def quantities(fitted):
    """Return name -> draws (chain, draw, ...) of what the reference records."""
    posterior = fitted.posterior_
    cov = posterior["cov"]
    variance = np.diagonal(cov, axis1=2, axis2=3)
    i, j = np.triu_indices(cov.shape[-1], 1)
    return {
        "mean": posterior["mean"],
        "log_variance": np.log(variance),
        "correlation": cov[..., i, j] / np.sqrt(variance[..., i] * variance[..., j]),
        "log_probabilities": np.log(posterior["probabilities"])[..., REFERENCE["order"]],
        "log_likelihood": posterior.log_likelihood,
    }


def z_against_nuts(fitted):
    """Return name -> differences of means in combined standard errors."""
    found = {name: summarise(draws) for name, draws in quantities(fitted).items()}
    z = z_scores(found, REFERENCE["quantities"])
    return {name: values for name, values in z.items() if name.startswith("mean of ")}


def test_the_reference_is_of_the_weak_prior():
    model = CorrelatedMultinomial(inference=Gibbs(1, 0, n_chains=1), prior=PRIOR, random_state=0)
    model.fit(COUNTS)
    sticks = Decomposition.sticks(REFERENCE["order"])
    np.testing.assert_array_equal(model.decomposition_.children, sticks.children)
    weak = NormalInverseWishart.weak(*sticks.dirichlet_moments(1.0))
    for name, value in REFERENCE["prior"].items():
        np.testing.assert_allclose(getattr(weak, name), value, err_msg=name)


def test_the_reference_has_converged():
    for name, quantity in REFERENCE["quantities"].items():
        assert np.max(quantity["rhat"]) < 1.01, name
        assert np.min(quantity["ess"]) > 1000, name


@pytest.mark.slow
@pytest.mark.skipif(not JIT, reason="too slow")
def test_a_run_of_the_default_length_meets_nuts():
    z = z_against_nuts(fit())
    assert largest(z) < LARGEST_Z, {name: np.abs(values).max() for name, values in z.items()}


@pytest.mark.slow
@pytest.mark.skipif(not JIT, reason="too slow")
def test_nuts_rejects_another_prior():
    prior = NormalInverseWishart(**{**REFERENCE["prior"], "degrees": 12.0})
    assert largest(z_against_nuts(fit(prior=prior))) > MAX_Z


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("numpyro") is None, reason="make .venv/.reference")
def test_the_script_still_makes_the_reference(tmp_path):
    """Run it in its own process, as JAX sets global options and warns in those that fork."""
    script, out = FOLDER / "make_rare_reference.py", tmp_path / "short.json"
    sizes = ["--n_draws=1500", "--n_warmup=1000", "--seed=1"]
    subprocess.run([sys.executable, script, *sizes, f"--out={out}"], check=True)
    short = json.loads(out.read_text())
    for part in ("counts", "order", "prior"):
        assert short[part] == REFERENCE[part]
    z = z_scores(short["quantities"], REFERENCE["quantities"])
    assert largest(z) < MAX_Z, z
