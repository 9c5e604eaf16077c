"""The mean-field schedule, on a model whose fixed point is known."""

import os
import signal

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from polystick.inference.execution import Threads
from polystick.inference.mean_field import MeanField
from toy_model import Toy, exact_posterior

X = np.random.default_rng(5).normal(1.0, 1.4, size=37)


def run(settings=MeanField(tolerance=1e-12, n_draws=5), model=Toy(), **options):
    return settings.run(model, model.shards(X), seed=11, **options)


def test_finds_the_mean_and_climbs():
    posterior = run()
    assert posterior.factor.mean == pytest.approx(exact_posterior(X)[0], abs=1e-6)
    elbo = posterior.tree["optimisation"]["elbo"].values
    assert (np.diff(elbo) > -1e-9).all()
    assert posterior.tree.attrs["converged"] == 1


def test_bits_do_not_depend_on_threads():
    assert run(execution=Threads(3)).factor == run().factor


def test_the_tolerance_is_for_each_row():
    """Ten copies of the data gain ten times as much a sweep, and stop as early."""
    settings = MeanField(tolerance=1e-4, n_draws=1)
    once = settings.run(Toy(), Toy().shards(X), seed=1)
    tenfold = settings.run(Toy(), Toy().shards(np.tile(X, 10)), seed=1)
    assert abs(once.tree.attrs["n_sweeps"] - tenfold.tree.attrs["n_sweeps"]) <= 1


def test_stops_with_a_warning():
    with pytest.warns(
        ConvergenceWarning, match="did not converge after 2 sweeps; raise max_sweeps"
    ):
        posterior = run(MeanField(tolerance=1e-12, max_sweeps=2))
    assert posterior.tree.attrs["converged"] == 0
    assert "not converged" in posterior.summary()


def test_progress_and_ctrl_c():
    seen = []

    def tell(progress):
        seen.append(progress.value)
        if progress.sweep == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(RuntimeWarning, match="interrupted after sweep 3; the factors of 3 sweeps"):
        posterior = run(progress=tell)
    np.testing.assert_array_equal(posterior.tree["optimisation"]["elbo"].values, seen)


def test_ctrl_c_leaves_a_checkpoint(tmp_path):
    def tell(progress):
        if progress.sweep == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(RuntimeWarning, match="interrupted"):
        run(progress=tell, checkpoint=tmp_path / "run", every=1e9)
    assert run(checkpoint=tmp_path / "run", resume=True).factor == run().factor


def test_a_bound_that_is_not_finite_stops():
    class Broken(Toy):
        def elbo(self, factor, statistics):
            return np.nan

    with pytest.raises(FloatingPointError, match="bound is not finite after sweep 1"):
        run(model=Broken())
