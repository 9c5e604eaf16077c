"""The Gibbs schedule, on a model whose posterior is known."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from polystick.inference.gibbs import Gibbs
from statistics_tools import MAX_Z, z_scores
from toy_model import Toy, exact_posterior

X = np.random.default_rng(5).normal(1.0, 1.4, size=37)
SHORT = Gibbs(n_draws=20, n_burn=5, n_chains=3)


def run(gibbs=SHORT, model=Toy(), x=X, seed=11, **options):
    return gibbs.run(model, model.shards(x), seed=seed, **options)


def test_finds_the_posterior():
    posterior = run(Gibbs(3000, 50, n_chains=1))
    mean, variance = exact_posterior(X)
    chain = posterior["theta"][0]
    z = z_scores(np.concatenate([chain, (chain - mean) ** 2], axis=1), np.array([mean, variance]))
    assert np.abs(z).max() < MAX_Z


def test_a_wrong_model_is_told_apart():
    posterior = run(Gibbs(3000, 50, n_chains=1), Toy(noise=1.2))
    mean, variance = exact_posterior(X)
    chain = posterior["theta"][0]
    z = z_scores((chain - mean) ** 2, np.array([variance]))
    assert np.abs(z).max() > MAX_Z


def test_axes_and_running_moments():
    posterior = run(Gibbs(n_draws=20, n_burn=5, thin=2, n_chains=3, keep=("level",)))
    assert posterior["theta"].shape == (3, 20, 1)
    assert posterior["level"].shape == (3, 20, 37)
    assert posterior.log_likelihood.shape == (3, 20)
    mean, sd = posterior.running("level")
    np.testing.assert_allclose(mean, posterior.flat("level").mean(0))
    np.testing.assert_allclose(sd, posterior.flat("level").std(0, ddof=1))
    assert posterior.tree["posterior"]["level"].dims == ("chain", "draw", "row")
    assert posterior.tree.attrs["n_sweeps"] == 45


def test_chains_differ_and_seeds_differ():
    theta = run()["theta"]
    assert not np.array_equal(theta[0], theta[1])
    assert not np.array_equal(theta, run(seed=12)["theta"])
    np.testing.assert_array_equal(theta, run()["theta"])


def test_thinning_keeps_every_other_sweep():
    full, thinned = run(Gibbs(20, 4, n_chains=1)), run(Gibbs(10, 4, thin=2, n_chains=1))
    np.testing.assert_array_equal(full["theta"][:, 1::2], thinned["theta"])


def test_large_variables_are_thinned_and_have_running_moments():
    full = run(Gibbs(20, 5, n_chains=2, keep=("level",)))
    small = run(Gibbs(20, 5, n_chains=2, keep=("level",), max_bytes=20 * 2 * 37 * 8 // 3))
    np.testing.assert_array_equal(small["level"], full["level"][:, ::4])
    np.testing.assert_allclose(small.running("level")[0], full.flat("level").mean(0))
    theta, level = small.together(["theta", "level"])
    np.testing.assert_array_equal(theta, full["theta"][:, ::4].reshape(-1, 1))
    assert len(level) == len(theta) == 10


def test_the_least_memory_still_keeps_the_log_likelihood():
    posterior = run(Gibbs(20, 5, n_chains=2, max_bytes=1))
    assert posterior.log_likelihood.shape == (2, 20)
    assert posterior["theta"].shape == (2, 1, 1)
    assert "worst R-hat" in posterior.summary()


def test_spread_takes_whole_draws():
    posterior = run()
    picked = posterior.spread(["theta"], 7)
    assert len(picked) == 7
    assert {float(theta[0]) for (theta,) in picked} <= set(posterior.flat("theta").ravel())


@pytest.mark.parametrize("n_draws", range(1, 21))
@pytest.mark.parametrize("stride", [1, 2, 4, 8, 16])
def test_draws_of_one_sweep_are_paired(n_draws, stride):
    """Whatever was thinned: theta and the rows of a pair come from the same draw."""
    full = run(Gibbs(n_draws, 1, n_chains=2, keep=("level",)))
    size = -(-n_draws * 2 * 37 * 8 // stride)
    thinned = run(Gibbs(n_draws, 1, n_chains=2, keep=("level",), max_bytes=size))
    theta, level = thinned.together(["theta", "level"])
    all_theta = full.flat("theta").ravel()
    for one, rows in zip(theta.ravel(), level):
        (where,) = np.flatnonzero(all_theta == one)
        np.testing.assert_array_equal(full.flat("level")[where], rows)


def test_parameters_that_cannot_be_drawn_are_named():
    class Broken(Toy):
        def draw_parameters(self, parameters, statistics, key, ordered_map=map):
            raise np.linalg.LinAlgError("not positive definite")

    with pytest.raises(
        FloatingPointError, match=r"could not be drawn in sweep 1 of chain 0 \(not pos"
    ):
        run(model=Broken())


def test_a_state_that_is_not_finite_is_named():
    with pytest.raises(
        FloatingPointError, match=r"z of row 30 is not finite after sweep 3 of chain 0"
    ):
        run(model=Toy(poison=30))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_draws": 0}, "n_draws must be at least 1; got 0"),
        ({"n_burn": -1}, "n_burn must be at least 0; got -1"),
        ({"thin": 0}, "thin must be at least 1"),
        ({"n_chains": 0}, "n_chains must be at least 1"),
        ({"max_bytes": 0}, "max_bytes must be at least 1"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(ValueError, match=message):
        Gibbs(**settings)


def test_settings_of_the_wrong_kind():
    with pytest.raises(TypeError, match=r"n_draws must be an integer; got 10\.5"):
        Gibbs(n_draws=10.5)


@pytest.mark.parametrize("keep", ["level", None])
def test_keep_must_be_a_tuple(keep):
    with pytest.raises(TypeError, match="keep must be a tuple of names"):
        Gibbs(keep=keep)


def test_unknown_variables_to_keep_are_named_before_the_run():
    with pytest.raises(ValueError, match=r"keep must name variables of the rows \(level, square\)"):
        run(Gibbs(5, 5, keep=("levle",)))


# progress and interruption


def test_progress_is_told_after_each_sweep():
    seen = []
    run(progress=seen.append)
    assert [p.sweep for p in seen] == list(range(1, 26))
    assert all(p.total == 25 and np.isfinite(p.value) and p.seconds >= 0 for p in seen)


def test_bar_and_silence(capsys):
    run(progress=True)
    assert "25/25" in capsys.readouterr().err
    run(progress=False)
    assert capsys.readouterr() == ("", "")


def interrupt_at(sweep, *numbers):
    def tell(progress):
        if progress.sweep == sweep:
            for number in numbers or (signal.SIGINT,):
                os.kill(os.getpid(), number)

    return tell


def test_ctrl_c_keeps_what_was_drawn():
    with pytest.warns(
        RuntimeWarning, match="interrupted after sweep 12; the 7 draws of each chain"
    ):
        cut = run(progress=interrupt_at(12))
    np.testing.assert_array_equal(cut["theta"], run()["theta"][:, :7])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_schedulers_end_a_run_as_ctrl_c_does(number):
    """They send a signal, some send it twice; what the signal meant before, it means again."""
    before = signal.signal(number, signal.SIG_DFL)  # under nohup a hang-up is ignored
    try:
        with pytest.warns(RuntimeWarning, match="interrupted after sweep 12; the 7 draws of each"):
            cut = run(progress=interrupt_at(12, number, number))
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
    np.testing.assert_array_equal(cut["theta"], run()["theta"][:, :7])


def test_a_second_ctrl_c_stops_at_once():
    with pytest.raises(KeyboardInterrupt):
        run(progress=interrupt_at(12, signal.SIGINT, signal.SIGINT))


def test_signals_are_for_the_main_thread():
    with ThreadPoolExecutor(1) as other:
        found = other.submit(run, progress=lambda at: handlers.append(signal.getsignal(15)))
        handlers = []
        found.result()
    assert {*handlers} == {signal.getsignal(signal.SIGTERM)}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_run_in_the_background_stays_deaf(number):
    before = signal.signal(number, signal.SIG_IGN)
    assert run(progress=interrupt_at(12, number))["theta"].shape[1] == 20
    assert signal.signal(number, before) is signal.SIG_IGN


def test_ctrl_c_in_burn_in_stops():
    with pytest.raises(KeyboardInterrupt, match="after sweep 2, before there was anything to keep"):
        run(progress=interrupt_at(2))


def test_ctrl_c_leaves_a_checkpoint_to_resume(tmp_path):
    with pytest.warns(RuntimeWarning, match="interrupted"):
        run(progress=interrupt_at(12), checkpoint=tmp_path / "run", every=1e9)
    resumed = run(checkpoint=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(resumed["theta"], run()["theta"])


def test_runs_outside_the_main_thread():
    found = []
    worker = threading.Thread(target=lambda: found.append(run()))
    worker.start()
    worker.join()
    np.testing.assert_array_equal(found[0]["theta"], run()["theta"])
