"""Run folders and files of counts that somebody made to do harm: nothing runs, and a sentence says so."""

import json
import pickle
import shutil

import numpy as np
import pandas as pd
import pytest
from test_texts_of_commands import call

from hostile_models import Bomb, sha256
from polystick import baselines
from polystick.commands import runs

COUNTS = pd.DataFrame(np.random.default_rng(0).poisson([6, 4, 2], (12, 3)), columns=["a", "b", "c"])
SHORT = ["--draws", "4", "--burn", "2", "--chains", "2", "--threads", "1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    COUNTS.to_csv(folder / "counts.csv", index=False)
    call("fit", "multinomial", folder / "counts.csv", *SHORT, "--out", folder / "run")
    return folder / "run"


@pytest.fixture
def copy(run, tmp_path):
    return shutil.copytree(run, tmp_path / "copy")


def with_model(folder, content):
    """Put a model in a folder whose settings say that it is the right one."""
    (folder / "model.polystick").write_bytes(content)
    settings = json.loads((folder / "settings.json").read_text())
    del settings["checksum"]
    settings["model_sha256"] = sha256(content)
    settings["checksum"] = runs._checksum(settings)
    (folder / "settings.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize("command", ["show", "plot", "score"])
def test_a_pickle_of_an_earlier_version_is_not_read(copy, tmp_path, command):
    sign = tmp_path / "sign"
    (copy / "model.polystick").unlink()
    (copy / "model.pickle").write_bytes(pickle.dumps(Bomb(sign)))
    more = {"plot": ["--out", tmp_path / "pictures"], "score": [copy.parent / "none.csv"]}
    told = call(command, copy, *more.get(command, []), code=1).stderr
    assert (
        "is a pickle" in told or "and a pickle, which can run programs, so it is not read" in told
    )
    assert not sign.exists()


def test_a_pickle_in_the_place_of_the_model_is_not_read(copy, tmp_path):
    sign = tmp_path / "sign"
    with_model(copy, pickle.dumps(Bomb(sign)))
    assert "must be a file that a model's save wrote" in call("show", copy, code=1).stderr
    assert not sign.exists()
    pickle.loads((copy / "model.polystick").read_bytes())
    assert sign.exists()  # so it would have worked


def test_another_model_is_refused(copy, tmp_path):
    other = baselines.DirichletMultinomial(random_state=0).fit(COUNTS)
    with_model(copy, other.save(tmp_path / "other").read_bytes())
    told = call("show", copy, code=1).stderr
    assert "must hold the model of a run of 'multinomial'; it holds a DirichletMultinomial" in told


def test_a_resumed_run_leaves_no_pickle(copy, run, tmp_path):
    (copy / "model.pickle").write_bytes(b"old")
    counts = run.parent / "counts.csv"
    call("fit", "multinomial", counts, *SHORT, "--out", copy, "--resume")
    assert not (copy / "model.pickle").exists()
    assert call("show", copy).stdout == call("show", run).stdout


def test_arrays_that_hold_objects_are_not_opened(tmp_path):
    sign, path = tmp_path / "sign", tmp_path / "counts.npz"
    np.savez(path, counts=np.array([[Bomb(sign)]], dtype=object))
    call("fit", "multinomial", path, "--out", tmp_path / "run", code=1)
    assert not sign.exists()
    with np.load(path, allow_pickle=True) as arrays:
        arrays["counts"]
    assert sign.exists()


@pytest.mark.parametrize("option", ["topics --prevalence", "regression --formula"])
def test_formulas_that_a_folder_could_not_hold_are_refused_before_the_fit(tmp_path, option):
    pytest.importorskip("formulaic")
    COUNTS.assign(year=range(12)).to_csv(tmp_path / "counts.csv", index=False)
    kind, name = option.split()
    ignore = ["--ignore", "year"] if kind == "topics" else []
    told = call("fit", kind, tmp_path / "counts.csv", *ignore, name, "I(year.clip(0, 3))",
                "--out", tmp_path / "run", code=1).stderr  # fmt: skip
    assert "only have columns, numbers, arithmetic and the functions of formulaic" in " ".join(
        told.split()
    )
    assert not (tmp_path / "run").exists()
