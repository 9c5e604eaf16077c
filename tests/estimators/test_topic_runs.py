"""Runs of topic models: killed and resumed, from the command of a user."""

import os
import signal
import subprocess
import sys
import time

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
    "evolving": (DynamicTopicModel, {"inference": SHORT, "evolving": True}),
    "lda": (LDA, {"inference": SHORT}),
    "softmax": (LogisticNormalTopicModel, {"inference": SHORT}),
}
VICTIM = """
import sys, time
sys.path[:0] = sys.argv[2:3]
from test_topic_runs import fit
def report(progress):
    print(progress.sweep, flush=True)
    time.sleep(0.02)
fit(sys.argv[3], checkpoint=sys.argv[1], progress=report, resume=True, every=0.0)
"""


def fit(name, *, resume=False, every=60.0, **settings):
    kind, own = MODELS[name]
    model = kind(4, random_state=5, n_jobs=1, **own, **settings)
    if every == 0.0:
        from polystick.inference import checkpoint

        checkpoint.Checkpoint.due = lambda self: True
    place = {"times": TIMES} if kind is DynamicTopicModel else {}
    return model.fit(COUNTS, resume=resume, **place)


@pytest.mark.skipif(not JIT, reason="minutes without the compiler")
@pytest.mark.filterwarnings("ignore:mean field did not converge")
@pytest.mark.parametrize("name", MODELS)
def test_kill_9_and_resume(name, tmp_path):
    expected = fit(name)
    command = [sys.executable, "-W", "ignore", "-c", VICTIM, str(tmp_path / "run")]
    command += [os.path.dirname(__file__), name]
    for sweep in (b"4\n", b"11\n"):  # in the burn-in, and after it
        with subprocess.Popen(command, stdout=subprocess.PIPE) as victim:
            while victim.stdout.readline() != sweep:
                assert victim.poll() is None
            time.sleep(0.005)
            victim.send_signal(signal.SIGKILL)
        assert victim.returncode == -signal.SIGKILL
    resumed = fit(name, checkpoint=tmp_path / "run", resume=True)
    for variable in expected.posterior_.names():
        np.testing.assert_array_equal(resumed.posterior_[variable], expected.posterior_[variable])
    np.testing.assert_array_equal(
        resumed.posterior_.running("proportions"), expected.posterior_.running("proportions")
    )
