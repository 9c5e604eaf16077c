"""Killed before any of what it does to its folder, a run goes on by the next command, to the same bits."""

import json

import numba
import numpy as np
import pytest
from click.testing import CliRunner
from crashes import events_of, killed_before

import polystick as ps
from polystick.cli import main

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="minutes without the compiler")
COUNTS = np.random.default_rng(0).poisson([6, 4, 2], (12, 3))
WORDS = np.random.default_rng(1).poisson(0.5, (20, 12))
SHORT = ["--burn", "1", "--chains", "2", "--seed", "3", "--threads", "1", "--min-ess", "0"]
SAVING = ["--checkpoint-every", "1e-9"]


def call(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def command(kind, files, out, *more):
    named = ["--topics", "2"] if kind == "topics" else []
    return ["fit", kind, files / f"{kind}.csv", *named, *SHORT, *SAVING, "--out", out, *more]


def fit_command(kind, files, out, *more):
    assert call(*command(kind, files, out, *more)).exit_code == 0


def estimator(folder, n_draws=4):
    return ps.CorrelatedMultinomial(
        inference=ps.Gibbs(n_draws, 1, n_chains=2),
        random_state=3,
        n_jobs=1,
        checkpoint=folder,
        checkpoint_every=0.0,
    )


def fit(folder, n_draws=4):
    return estimator(folder, n_draws).fit(COUNTS, resume=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for kind, rows in (("multinomial", COUNTS), ("topics", WORDS)):
        header = ",".join(f"w{j}" for j in range(rows.shape[1]))
        lines = [header, *(",".join(map(str, row)) for row in rows)]
        (folder / f"{kind}.csv").write_text("\n".join(lines))
    return folder


def draws(folder):
    tree = ps.Posterior.load(folder / "draws.nc").tree
    return tree["posterior"].to_dataset()


def some(events, share):
    """Return the numbers of the events to be killed before, evenly spaced."""
    return range(0, len(events), max(1, len(events) // share))


def same(left, right):
    for name in left.data_vars:
        np.testing.assert_array_equal(left[name], right[name])


def each_fit_recovers(files, folder, kind, share):
    fit_command(kind, files, folder / "whole", "--draws", "3")
    whole, shown = draws(folder / "whole"), call("show", folder / "whole").output
    events = events_of(folder / "run", fit_command, kind, files, folder / "run", "--draws", "3")
    for number in some(events, share):
        out = folder / f"run{number}"
        assert killed_before(number, out, fit_command, kind, files, out, "--draws", "3")
        told = call("show", out)
        assert told.exit_code in (0, 1)
        assert "Traceback" not in told.output
        ended = not (out / "checkpoint").exists() and "model_sha256" in settings(out)
        if not ended:  # of topics the checkpoint goes at the end, and there is nothing to resume
            done = call(*command(kind, files, out, "--draws", "3", "--resume"))
            assert done.exit_code == 0, (events[number], done.output)
            assert not [*out.rglob("*.tmp"), *out.rglob("polystick-lock")], events[number]
        same(draws(out), whole)
        assert call("show", out).output == shown
    return len(events)


def settings(folder):
    path = folder / "settings.json"
    return json.loads(path.read_text()) if path.exists() else {}


def each_resume_recovers(files, folder, share):
    """A run that is made longer is killed while it goes on."""
    fit_command("multinomial", files, folder / "whole", "--draws", "5")
    whole = draws(folder / "whole")

    def begun(name):
        fit_command("multinomial", files, folder / name, "--draws", "3")
        return folder / name

    longer = ["--draws", "5", "--resume"]
    events = events_of(begun("e"), fit_command, "multinomial", files, folder / "e", *longer)
    for number in some(events, share):
        out = begun(f"run{number}")
        killed_before(number, out, fit_command, "multinomial", files, out, *longer)
        assert call("show", out).exit_code in (0, 1)
        assert call(*command("multinomial", files, out, *longer)).exit_code == 0, events[number]
        same(draws(out), whole)
        assert call("show", out).exit_code == 0
    return len(events)


def each_api_fit_recovers(folder, share):
    whole = fit(folder / "whole").posterior_
    events = events_of(folder / "e", fit, folder / "e")
    for number in some(events, share):
        out = folder / f"run{number}"
        assert killed_before(number, out, fit, out)
        np.testing.assert_array_equal(fit(out).posterior_["cov"], whole["cov"])
        assert not [*out.glob("*.tmp"), *out.glob("*lock")], events[number]
    return len(events)


def save(path, n_draws):
    model = estimator(None, n_draws).fit(COUNTS)
    (model.posterior_ if path.suffix == ".nc" else model).save(path)


def each_save_recovers(folder, name, share):
    """What was there before stays whole until the new file is, and saving again works."""
    load = ps.Posterior.load if name.endswith(".nc") else ps.load
    (folder / "e").mkdir()
    events = events_of(folder / "e", save, folder / "e" / name, 4)
    assert events
    for number in some(events, share):
        (folder / str(number)).mkdir()
        path = folder / str(number) / name
        save(path, 3)
        killed_before(number, path.parent, save, path, 4)
        load(path)
        save(path, 4)
        load(path)
        assert [found.name for found in path.parent.iterdir()] == [name], events[number]
    return len(events)


def test_some_points_of_a_fit(files, tmp_path):
    assert each_fit_recovers(files, tmp_path, "multinomial", 4) > 50


def test_some_points_of_a_fit_of_topics(files, tmp_path):
    assert each_fit_recovers(files, tmp_path, "topics", 3) > 50


def test_some_points_of_a_fit_in_python(tmp_path):
    assert each_api_fit_recovers(tmp_path, 4) > 30


@pytest.mark.parametrize("name", ["draws.nc", "model.polystick"])
def test_points_of_saving(tmp_path, name):
    each_save_recovers(tmp_path, name, 3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["multinomial", "topics"])
def test_all_points_of_a_fit(files, tmp_path, kind):
    print(kind, each_fit_recovers(files, tmp_path, kind, 10**6))


@pytest.mark.slow
def test_all_points_of_a_longer_run(files, tmp_path):
    print("resume", each_resume_recovers(files, tmp_path, 10**6))


@pytest.mark.slow
def test_all_points_of_a_fit_in_python(tmp_path):
    print("python", each_api_fit_recovers(tmp_path, 10**6))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["draws.nc", "model.polystick"])
def test_all_points_of_saving(tmp_path, name):
    print(name, each_save_recovers(tmp_path, name, 10**6))
