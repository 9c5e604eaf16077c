"""Runs of multinomial Gaussian processes: threads, kills and seeds."""

import numba
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from polystick import Gibbs, MeanField, MultinomialGP
from victims import kill_after

JIT = not numba.config.DISABLE_JIT
SHORT = Gibbs(n_draws=6, n_burn=4, n_chains=2)
KERNEL = ConstantKernel(1.5) * Matern(3.0, nu=2.5)
Z = np.random.default_rng(1).uniform(0, 10, (20, 1))
X = np.random.default_rng(2).multinomial(30, np.arange(1, 18) / 153, 20)  # two blocks of sticks
RUNS = {
    "gibbs": {"inference": SHORT, "learn": ("kernel", "mean", "scale")},
    "mean field": {"inference": MeanField(1e-12, max_sweeps=9)},
}


def run(name, folder=None, **settings):
    """Fit, and go on with a run that a folder holds."""
    model = MultinomialGP(KERNEL, random_state=5, checkpoint=folder, **RUNS[name], **settings)
    return model.fit(Z, X, resume=folder is not None)


def everything(model):
    """Return all that a fit and its predictions say."""
    posterior = [model.posterior_[name] for name in model.posterior_.names()]
    posterior += model.posterior_.running("psi")
    predicted = model.predict_proba(Z, return_std=True, return_draws=True, n_draws=5)
    return [*posterior, *predicted, model.score_samples(Z, X), model.sample_prior(Z, 3)]


def same(left, right):
    for one, other in zip(everything(left), everything(right), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.filterwarnings("ignore:mean field did not converge")
@pytest.mark.parametrize("name", RUNS)
def test_same_bits_on_any_number_of_threads(name):
    alone = run(name, n_jobs=1)
    for n_jobs in (2, None):
        same(run(name, n_jobs=n_jobs), alone)


@pytest.mark.skipif(not JIT, reason="minutes without the compiler")
@pytest.mark.filterwarnings("ignore:mean field did not converge")
@pytest.mark.parametrize("name", RUNS)
def test_kill_9_and_resume(name, tmp_path):
    for sweep in (3, 7)[name == "mean field" :]:  # in the burn-in, and after it
        kill_after(sweep, run, name, tmp_path / "run")
    same(run(name, tmp_path / "run"), run(name))


def test_resuming_without_a_seed_takes_the_one_of_the_run(tmp_path):
    settings = {"inference": SHORT, "checkpoint": tmp_path / "run"}
    first = MultinomialGP(KERNEL, **settings).fit(Z, X)
    again = MultinomialGP(KERNEL, **settings).fit(Z, X, resume=True)
    assert again.seed_ == first.seed_
    np.testing.assert_array_equal(again.posterior_["theta"], first.posterior_["theta"])
    with pytest.raises(RuntimeError, match="another run: it differs in model"):
        MultinomialGP(RBF(2.0), **settings).fit(Z, X, resume=True)
    with pytest.raises(RuntimeError, match="another run: it differs in data"):
        MultinomialGP(KERNEL, **settings, mean="zero").fit(Z, X // 2, resume=True)


def test_a_fresh_seed_is_kept():
    quick = Gibbs(2, 0, n_chains=1)
    model = MultinomialGP(KERNEL, inference=quick).fit(Z, X)
    again = MultinomialGP(KERNEL, inference=quick, random_state=model.seed_).fit(Z, X)
    np.testing.assert_array_equal(model.posterior_["white"], again.posterior_["white"])
    assert model.seed_ != MultinomialGP(KERNEL, inference=quick).fit(Z, X).seed_
