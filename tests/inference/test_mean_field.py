"""The mean-field schedule, on a model whose fixed point is known."""

import os
import signal
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from polystick.conjugate import NormalInverseWishart
from polystick.inference.execution import Threads
from polystick.inference.factors import flattened, rebuilt
from polystick.inference.mean_field import MeanField
from toy_model import Factor, NestedToy, Toy, exact_posterior

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


@pytest.mark.parametrize("trouble", [None, "the states stand still"])
def test_what_the_model_finds_wrong_is_said(trouble, recwarn):
    seen = []

    class Diagnosing(Toy):
        def diagnose(self, factor):
            seen.append(factor)
            return trouble

    posterior = run(model=Diagnosing())
    assert seen == [posterior.factor]
    expected = [] if trouble is None else [(ConvergenceWarning, trouble)]
    assert [(w.category, str(w.message)) for w in recwarn] == expected


class Steps(NamedTuple):
    """Two steps for each row."""

    rows: np.ndarray
    x: np.ndarray
    steps: np.ndarray


class SteppedToy(Toy):
    """What is described is of steps, with numbers that say which."""

    def shards(self, x, ids=None):
        found = super().shards(x, ids)
        return [Steps(*s, np.sort(np.concatenate([2 * s.rows, 2 * s.rows + 1]))) for s in found]

    def draw_described_rows(self, prior, shard, rows, n_draws=64):
        return {"level": np.stack([shard.steps - 1.0, shard.steps + 1.0])}


def test_moments_of_steps_are_kept_in_their_order():
    model = SteppedToy()
    shards = model.shards(X)
    posterior = MeanField(n_draws=1).run(model, shards[::-1], seed=11)
    mean, sd = posterior.running("level")
    np.testing.assert_array_equal(mean, np.arange(2 * len(X)))
    np.testing.assert_array_equal(sd, np.ones(2 * len(X)))


def test_the_tolerance_is_for_each_step_of_sequences():
    gains = np.diff(run(model=SteppedToy()).tree["optimisation"]["elbo"].values)
    for model, n in ((Toy(), len(X)), (SteppedToy(), 2 * len(X))):
        posterior = run(MeanField(tolerance=1e-6, n_draws=1), model)
        first_small = np.flatnonzero(gains < 1e-6 * n)[0] + 2
        assert posterior.tree.attrs["n_sweeps"] == first_small


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


# factors of several laws


@dataclass(frozen=True)
class Several:
    normal: NormalInverseWishart
    level: Factor
    table: np.ndarray
    n_seen: int


def test_factors_of_several_laws_are_saved_by_dotted_names():
    normal = NormalInverseWishart(np.arange(2.0), 3.0, np.eye(2) + 0.1, 5.5)
    factor = Several(normal, Factor(0.3, 0.2), np.arange(6.0).reshape(2, 3), 7)
    arrays = flattened(factor)
    assert {"factor.normal.scale", "factor.level.mean", "factor.table", "factor.n_seen"} < {*arrays}
    other = Several(NormalInverseWishart.weak([0, 0], 1), Factor(), np.zeros((2, 3)), 0)
    found = rebuilt(other, arrays)
    assert isinstance(found.normal, NormalInverseWishart)
    assert found.level == factor.level
    assert found.n_seen == 7
    for name, value in flattened(found).items():
        np.testing.assert_array_equal(value, arrays[name], strict=True)


def test_a_factor_of_several_laws_resumes(tmp_path):
    def stop(progress):
        if progress.sweep == 4:
            raise RuntimeError("pulled the plug")

    model, folder = NestedToy(), tmp_path / "run"
    with pytest.raises(RuntimeError):
        run(model=model, checkpoint=folder, every=0.0, progress=stop)
    resumed, whole = run(model=model, checkpoint=folder, resume=True), run(model=model)
    assert flattened(resumed.factor) == flattened(whole.factor)
    assert resumed.factor.law == run().factor


def test_the_start_sees_the_data_and_the_seed():
    seen = []

    class Looking(Toy):
        def initial_factor(self, shards, key):
            seen.append((sum(len(shard.rows) for shard in shards), key))
            return Factor(mean=key.generator("start").standard_normal())

    one, three = run(model=Looking()), run(model=Looking(), execution=Threads(3))
    assert seen == [(len(X), (11, 0))] * 2
    assert one.factor == three.factor
    first, cold = (p.tree["optimisation"]["elbo"].values[0] for p in (one, run()))
    assert first != cold


# draws


class Describing(Toy):
    """What is recorded is what the model says: an array, a number and a table."""

    def describe_parameters(self, parameters):
        theta = parameters.theta
        return {"theta": theta, "height": float(theta[0]), "table": np.tile(theta, (50, 20))}


def test_draws_are_what_the_model_describes():
    posterior = run(model=Describing())
    assert posterior["height"].shape == (1, 5)
    assert posterior["table"].shape == (1, 5, 50, 20)
    np.testing.assert_array_equal(posterior["height"], posterior["theta"][..., 0])
    np.testing.assert_array_equal(posterior["theta"], run()["theta"])


@pytest.mark.parametrize(
    ("max_bytes", "n_draws"), [(2**30, 1000), (4 * 100 * 1002 * 8, 100), (100_000, 32)]
)
def test_as_many_draws_as_fit(max_bytes, n_draws):
    settings = MeanField(tolerance=1e-12, max_bytes=max_bytes)
    posterior = run(settings, Describing())
    assert posterior["height"].shape == (1, n_draws)
    assert posterior.tree["posterior"].sizes["draw"] == n_draws


def test_bad_numbers_of_draws():
    for wrong, error in ((0, ValueError), (2.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match="n_draws must be"):
            MeanField(n_draws=wrong)
