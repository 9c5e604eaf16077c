"""Runs of topic models: killed and resumed, from the command of a user."""

import numba
import numpy as np
import pytest

from polystick import (
    LDA,
    CorrelatedTopicModel,
    DynamicTopicModel,
    Gibbs,
    LogisticNormalTopicModel,
    MeanField,
    StochasticVI,
)
from victims import kill_after

JIT = not numba.config.DISABLE_JIT
SHORT = Gibbs(n_draws=8, n_burn=8, n_chains=2)
COUNTS = np.random.default_rng(7).poisson(0.8, (300, 20))
TIMES = np.random.default_rng(8).integers(1990, 1996, 300)
MODELS = {
    "sticks": (CorrelatedTopicModel, {"inference": SHORT}),
    "tree of words": (CorrelatedTopicModel, {"inference": SHORT, "word_tree": "similar"}),
    "mean field": (CorrelatedTopicModel, {"inference": MeanField(1e-9, max_sweeps=16, n_draws=8)}),
    "stochastic": (CorrelatedTopicModel, {"inference": StochasticVI(50, n_passes=3, n_draws=8)}),
    "dynamic": (DynamicTopicModel, {"inference": SHORT}),
    "dynamic on a tree": (DynamicTopicModel, {"inference": SHORT, "word_tree": "balanced"}),
    "evolving": (DynamicTopicModel, {"inference": SHORT, "evolving": True}),
    "lda": (LDA, {"inference": SHORT}),
    "softmax": (LogisticNormalTopicModel, {"inference": SHORT}),
}


def fit(name, folder=None, *, progress=False):
    """Fit, and go on with a run that a folder holds."""
    kind, own = MODELS[name]
    model = kind(4, random_state=5, n_jobs=1, checkpoint=folder, progress=progress, **own)
    place = {"times": TIMES} if kind is DynamicTopicModel else {}
    return model.fit(COUNTS, resume=folder is not None, **place)


@pytest.mark.skipif(not JIT, reason="minutes without the compiler")
@pytest.mark.filterwarnings("ignore:mean field did not converge")
@pytest.mark.parametrize("name", MODELS)
def test_kill_9_and_resume(name, tmp_path):
    expected = fit(name)
    for sweep in (4, 11):  # in the burn-in, and after it
        kill_after(sweep, fit, name, tmp_path / "run")
    resumed = fit(name, tmp_path / "run")
    for variable in expected.posterior_.names():
        np.testing.assert_array_equal(resumed.posterior_[variable], expected.posterior_[variable])
    np.testing.assert_array_equal(
        resumed.posterior_.running("proportions"), expected.posterior_.running("proportions")
    )
