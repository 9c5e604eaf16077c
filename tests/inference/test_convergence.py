"""A run that has not converged says so, in one sentence; one that has says nothing."""

import re
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from polystick.inference.convergence import NOTHING, Verdict, Worst, limit_of_many
from polystick.inference.diagnostics import rhat_of_moments
from polystick.inference.execution import Threads
from polystick.inference.gibbs import Gibbs
from polystick.inference.posterior import Posterior
from polystick.inference.progress import Monitor, is_watched
from toy_model import Parameters, Toy

X = np.random.default_rng(5).normal(1.0, 1.4, size=37)
UNTIL = Gibbs(50, 20, n_chains=4, min_ess=400, max_draws=3000)


@dataclass(frozen=True)
class Slow(Toy):
    """Theta hardly moves."""

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        drawn = super().draw_parameters(parameters, statistics, key).theta
        return Parameters(0.995 * parameters.theta + 0.005 * drawn)


@dataclass(frozen=True)
class Labelled(Toy):
    """Each chain has a sign of its own for what it tells of the rows; chain 0 is the likeliest."""

    has_labels: ClassVar = True
    identified: ClassVar = ()

    def initial_parameters(self, shards, key):
        return Parameters(np.array([float(key.at("sign") % 2)]))

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        return parameters

    def log_likelihood(self, statistics):
        return statistics.value + 100 * statistics.total

    def describe_rows(self, shard, rows):
        return {"level": rows.z}


def run(gibbs, model=Toy(), **options):
    return gibbs.run(model, model.shards(X), seed=3, **options)


def told(gibbs, model=Toy(), **options):
    """Return the posterior and the warnings of a run."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = run(gibbs, model, **options)
    return posterior, [w for w in caught if issubclass(w.category, ConvergenceWarning)]


def test_a_run_that_converged_says_nothing():
    posterior, warned = told(Gibbs(1000, 100, n_chains=4))
    assert not warned
    assert posterior.verdict().converged
    assert posterior.verdict().trouble() is None


def test_a_run_that_did_not_says_what_and_what_to_do():
    posterior, warned = told(Gibbs(1000, 100, n_chains=4), Slow())
    assert len(warned) == 1
    sentence = str(warned[0].message)
    assert re.match(r"the chains have not converged: R-hat of theta \(one 0\) is \d\.", sentence)
    assert "effective draws of 400 wanted" in sentence
    assert re.search(r"Gibbs\(n_draws=\d+\), or until done: Gibbs\(min_ess=400\)", sentence)
    assert warned[0].filename == __file__
    assert not posterior.verdict().converged


def test_too_few_draws_do_not_pass_for_converged():
    _, warned = told(Gibbs(3, 1, n_chains=2))
    assert "3 draws of each chain are too few to tell" in str(warned[0].message)
    _, warned = told(Gibbs(30, 1, n_chains=1))
    assert "effective draws of 400 wanted" in str(warned[0].message)
    assert "n_chains=4" in str(warned[0].message)


def test_rows_that_nobody_watches_are_seen():
    """Chains that disagree about one row only, of which no draw is kept."""

    @dataclass(frozen=True)
    class Stuck(Toy):
        def initial_rows(self, prior, shard, key):
            rows = super().initial_rows(prior, shard, key)
            return rows._replace(z=rows.z + 9 * key.normals("apart", shard.rows, 1)[:, 0])

        def draw_rows(self, prior, shard, rows, key):
            new, statistics = super().draw_rows(prior, shard, rows, key)
            stuck = rows.z + 0.01 * (new.z - shard.x)
            return new._replace(z=np.where(shard.rows == 7, stuck, new.z)), statistics

    posterior, warned = told(Gibbs(1000, 100, n_chains=4), Stuck())
    assert "level (row 7)" in str(warned[0].message)
    rhat = posterior.tree["running"]["level_rhat"].values
    assert rhat.shape == (37,)
    assert rhat.argmax() == 7
    assert np.delete(rhat, 7).max() < 1.01


def test_names_that_mean_nothing_across_chains_are_left_out():
    @dataclass(frozen=True)
    class Unidentified(Slow):
        identified: ClassVar = ()

    posterior, _ = told(Gibbs(1000, 100, n_chains=4), Unidentified())
    assert list(posterior.diagnostics()) == ["log_likelihood"]


def test_running_moments_speak_of_the_likeliest_chain():
    model = Labelled()
    posterior, _ = told(Gibbs(200, 10, n_chains=2, keep=("level",)), model)
    best = posterior.log_likelihood.mean(axis=1).argmax()
    mean, sd = posterior.running("level")
    np.testing.assert_allclose(mean, posterior["level"][best].mean(axis=0))
    np.testing.assert_allclose(sd, posterior["level"][best].std(axis=0, ddof=1))


# runs that end when they are done


def test_a_run_ends_when_it_has_enough_effective_draws():
    posterior, warned = told(UNTIL)
    n_draws = posterior["theta"].shape[1]
    assert not warned
    assert 100 <= n_draws < 3000
    assert posterior.verdict().ess.value >= 400
    before = run(Gibbs(int(n_draws / 1.3), 20, n_chains=4)).verdict()
    assert not before.converged


def test_a_run_that_is_never_done_stops_at_the_most_and_says_so():
    most = Gibbs(20, 10, n_chains=2, min_ess=400, max_draws=100)
    posterior, warned = told(most, Slow())
    assert posterior["theta"].shape[1] == 100
    assert len(warned) == 1


def test_looks_are_at_numbers_that_no_clock_changes():
    looks = [n for n in range(1, 101) if Gibbs(10, min_ess=1, max_draws=100).is_look(n)]
    assert looks == [10, 12, 15, 18, 22, 27, 33, 41, 51, 63, 78, 97, 100]
    assert [n for n in range(1, 20) if Gibbs(10, min_ess=1, max_draws=5).is_look(n)] == [5]


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_same_bits_on_any_number_of_threads(n_threads):
    expected, found = run(UNTIL), run(UNTIL, execution=Threads(n_threads))
    assert found.tree.identical(expected.tree)


@pytest.mark.parametrize("stop_at", [30, 70, 71, 150])
def test_a_run_that_is_killed_ends_where_it_would_have(stop_at, tmp_path):
    """The progress callback raises in the middle: what a kill leaves is the last checkpoint."""

    def stop(progress):
        if progress.sweep == stop_at:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        run(UNTIL, checkpoint=tmp_path, every=0.0, progress=stop)
    resumed = run(UNTIL, checkpoint=tmp_path, resume=True)
    assert resumed.tree.identical(run(UNTIL).tree)


def test_a_run_that_ended_is_not_made_longer(tmp_path):
    ended = run(UNTIL, checkpoint=tmp_path)
    again = run(UNTIL, checkpoint=tmp_path, resume=True)
    assert again.tree.identical(ended.tree)


def test_progress_says_how_far_it_is():
    seen = []
    run(UNTIL, progress=seen.append)
    assert seen[0].reached is None
    assert re.match(r"ESS \d+ of 400, R-hat 1\.\d\d \(\w+\)", seen[-1].reached)


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="max_draws must come with min_ess"):
        Gibbs(max_draws=100)
    with pytest.raises(ValueError, match="min_ess must be at least 1"):
        Gibbs(min_ess=0)


# the verdict itself


def verdict(rhat, ess, **more):
    given = {"lag": NOTHING, "names": ("a",), "rhat_limit": 1.01, "min_ess": 400, "n_chains": 4}
    given |= {"n_draws": 1000, "advice": "", **more}
    return Verdict(Worst(rhat, "a"), Worst(ess, "b"), **given)


def test_the_bounds_of_a_verdict():
    assert verdict(1.0099, 400).converged
    assert not verdict(1.0101, 400).converged
    assert not verdict(1.0, 399).converged
    assert verdict(1.04, 400, rhat_limit=1.05).converged
    assert verdict(np.nan, np.nan).converged  # nothing varies


def test_the_lag_is_told_where_it_matters():
    slow = Worst(59000.0, "psi (row 3, stick b)")
    said = verdict(1.3, 4, lag=slow)
    assert (
        "an independent draw of psi (row 3, stick b) takes about 5.9e+04 sweeps" in said.trouble()
    )
    assert "5.9e+04" in said.line()
    assert "sweeps" not in verdict(1.3, 4, lag=Worst(1.2, "psi")).line()


def test_advice_of_the_model_comes_first():
    assert verdict(1.3, 4, advice="try this").trouble().endswith("; try this")


def test_the_largest_of_many_may_be_larger():
    """Of draws that are worth 400 in all, the largest R-hat of many stays below the limit."""
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((4, 100, 20000))
    means, variances = draws.mean(axis=1), draws.var(axis=1, ddof=1)
    largest = rhat_of_moments(means, variances, 100).max()
    allowed = limit_of_many(20000, 4, 1.01)
    assert 1.01 < largest < allowed < 1.1
    assert limit_of_many(1, 4, 1.05) == 1.05


def test_a_verdict_survives_the_file(tmp_path):
    posterior, _ = told(Gibbs(100, 10, n_chains=2), Slow())
    loaded = Posterior.load(posterior.save(tmp_path / "draws.nc"))
    assert loaded.verdict() == posterior.verdict()


# progress


class Terminal:
    def __init__(self, is_one):
        self.is_one, self.written = is_one, ""

    def isatty(self):
        return self.is_one

    def write(self, text):
        self.written += text

    def flush(self):
        pass


def test_a_bar_is_shown_where_a_person_watches(monkeypatch):
    monkeypatch.setattr("sys.stderr", Terminal(True))
    assert is_watched(None)
    assert not is_watched(False)
    monkeypatch.setattr("sys.stderr", Terminal(False))
    assert not is_watched(None)
    assert is_watched(True)
    monkeypatch.setattr("sys.stderr", None)  # pythonw
    assert not is_watched(None)


def test_a_quick_run_shows_no_bar(monkeypatch):
    terminal = Terminal(True)
    monkeypatch.setattr("sys.stderr", terminal)
    with Monitor(None, 10) as monitor:
        for sweep in range(1, 11):
            monitor.update(sweep, 0.0)
    assert "sweep" not in terminal.written
