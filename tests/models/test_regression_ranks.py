"""Simulation-based calibration of the regression: what users read of it, and twins that are found wrong.

Twins must be wrong enough for ranks to tell, and tables such that they can: few groups, for which the prior
of scales matters, and rows with counts, of which noise is seen.
"""

import warnings

import numba
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from joint import ranks, uniform_pvalues
from polystick.decomposition import Decomposition
from polystick.inference.gibbs import Gibbs
from polystick.models.regression import StickRegression
from polystick.models.regression_state import RegressionPrior
from regression_twins import ForgotLine, NoiseNotIntegrated

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(numba.config.DISABLE_JIT, reason="thousands of sweeps need the compiler"),
]
N_GROUPS, N = 3, 36
GROUPS = np.repeat(np.arange(N_GROUPS), N // N_GROUPS)[:, None]
X = np.column_stack([np.ones(N), np.tile([-1.0, -0.3, 0.3, 1.0], N // 4)])
TOTALS = np.full(N, 25)
LOOKS, N_DRAWS, LEAST_P, SURE_P = (80, 160, 250), 49, 1e-4, 1e-6


def model_of(kind=StickRegression):
    mean = np.array([[-0.3, 0.2], [0.2, 0.0]])
    prior = RegressionPrior(mean, np.array([0.8, 0.6]), (N_GROUPS,), "full", 0.7)
    return kind(prior, Decomposition.balanced(3))


def told(model, coefficients, effects, group_cov, noise_cov):
    """Return sds of groups and of noise, an average effect, coefficients and a group, of some draws."""
    line = X @ coefficients + effects[..., GROUPS[:, 0], :]
    higher = line + coefficients[..., None, 1, :]
    change = (model.probabilities(higher) - model.probabilities(line)).mean(axis=-2)
    sd = [np.sqrt(np.diagonal(c, axis1=-2, axis2=-1)) for c in (group_cov, noise_cov)]
    flat = coefficients.reshape(*coefficients.shape[:-2], -1)
    return np.concatenate([*sd, change, flat, effects[..., 0, :]], axis=-1)


def p_values(model):
    """Return p-values of ranks of the truth being uniform; the last is of the log likelihood.

    Looking early ends what is wrong beyond doubt, which a right sweep would be once in a million times.
    """
    right, rng, found = model_of(), np.random.default_rng(18), []
    schedule = Gibbs(N_DRAWS, n_burn=60, thin=6, n_chains=1)
    for seed in range(LOOKS[-1]):
        true, rows, counts = right.simulate(TOTALS, X, GROUPS, rng)
        shards = model.shards(counts, X, GROUPS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            posterior = schedule.run(model, shards, seed=seed)
        names = ("coefficients", "group_effects", "group_cov", "noise_cov")
        coefficients, effects, group_cov, noise_cov = (posterior[name][0] for name in names)
        drawn = told(right, coefficients, effects, group_cov[:, 0], noise_cov)
        truth = told(right, true.coefficients, true.effects, *true.covs)
        value = model._told(shards[0], rows.psi, 0.0 * rows.psi).value
        values = posterior.tree["sample_stats"]["total_log_likelihood"].values[0]
        of_value = ranks(np.array([value]), values[:, None])
        found.append(np.concatenate([ranks(truth, drawn), of_value]))
        if len(found) in LOOKS:
            p = uniform_pvalues(np.array(found), N_DRAWS)
            if p.min() < SURE_P:
                break
    return p


def test_ranks_of_the_truth_are_uniform():
    p = p_values(model_of())
    assert p.min() > LEAST_P, p


def test_a_wrong_sweep_is_found():
    p = p_values(model_of(NoiseNotIntegrated))
    assert p.min() < LEAST_P, np.sort(p)[:4]


def test_noise_about_no_line_is_found_sooner():
    """Psi grows without end, and the run says so."""
    with pytest.raises(FloatingPointError, match="psi of row"):
        p_values(model_of(ForgotLine))
