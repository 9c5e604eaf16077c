"""The command line says whether a run has converged, and ends it when it has."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from polystick import Posterior
from polystick.cli import main
from polystick.commands.models import defaults_of
from polystick.commands.options import settle_length

COUNTS = np.random.default_rng(0).poisson([60, 40, 20], (12, 3))


def call(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "wide.csv"
    pd.DataFrame(COUNTS, columns=["ash", "beech", "cedar"]).to_csv(path, index=False)
    return path


def test_a_short_run_says_so_in_words_and_as_json(file, tmp_path):
    options = ["--draws", 5, "--burn", 2, "--chains", 2]
    said = call("fit", "multinomial", file, "--out", tmp_path / "a", *options)
    assert "Note: the chains have not converged: " in said.stderr
    assert ".py:" not in said.stderr  # no line of ours
    fitted = call("fit", "multinomial", file, "--out", tmp_path / "b", *options, "--json")
    shown = call("show", tmp_path / "b", "--json")
    for result in map(json.loads, (fitted.stdout, shown.stdout)):
        assert result["converged"] is False
        assert result["ess"]["value"] < 400
        assert result["rhat"]["of"]
        assert result["trouble"].startswith("the chains have not converged: ")
    assert "Note: the chains have not converged" in call("show", tmp_path / "a").stderr


def test_a_run_ends_when_it_is_done(file, tmp_path):
    options = ["--min-ess", 100, "--draws", 20, "--burn", 20, "--max-draws", 3000, "--chains", 4]
    said = call("fit", "multinomial", file, "--out", tmp_path / "run", *options, "--json")
    result = json.loads(said.stdout)
    n_draws = Posterior.load(tmp_path / "run" / "draws.nc")["mean"].shape[1]
    assert 20 <= n_draws < 3000
    assert result["ess"]["value"] >= 100
    assert result["converged"] is True  # by what was asked of it
    shown = call("show", tmp_path / "run")
    assert "not converged" not in shown.stderr
    again = ["fit", "multinomial", file, "--out", tmp_path / "run", "--resume", "--json"]
    assert json.loads(call(*again).stdout)["sweeps"] == result["sweeps"]


def test_a_softmax_runs_until_its_chains_agree():
    stick, softmax = (defaults_of("multinomial", {"link": link}) for link in (None, "softmax"))
    assert length(stick) == (1000, 0, None)
    assert length(softmax) == (1000, 200, 4000)
    assert length(softmax, draws=50) == (50, 0, None)


def test_mean_field_tells_whether_it_converged(file, tmp_path):
    said = call("fit", "multinomial", file, "--out", tmp_path / "run", "--mean-field", "--json")
    assert json.loads(said.stdout)["converged"] is True


def length(defaults, **given):
    given = {"draws": None, "min_ess": None, "max_draws": None, **given}
    chosen = {name: value for name, value in given.items() if value is not None}
    found = settle_length(given, {**defaults, **chosen})
    return found["draws"], found["min_ess"], found["max_draws"]


def test_one_rule_for_the_length():
    until = {"draws": 250, "min_ess": 400, "max_draws": 1000}
    fixed = {"draws": 1000, "min_ess": 0, "max_draws": None}
    assert length(until) == (250, 400, 1000)
    assert length(until, draws=30) == (30, 0, None)
    assert length(until, draws=30, min_ess=50) == (30, 50, 1000)
    assert length(until, min_ess=50, max_draws=70) == (250, 50, 70)
    assert length(fixed) == (1000, 0, None)
    assert length(fixed, min_ess=400) == (1000, 400, 10000)
    with pytest.raises(ValueError, match="--max-draws must come with --min-ess"):
        length(fixed, max_draws=10)
