"""The command line as a process: exit codes, Ctrl-C, a kill and what comes after it."""

import json
import re
import signal
import socket
import subprocess
import sys
import time

import numba
import numpy as np
import pytest
from click.testing import CliRunner

from polystick import Posterior
from polystick.cli import main

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="minutes without the compiler")
OPTIONS = ["--draws", "60", "--burn", "5", "--chains", "2", "--seed", "1"]
CLI = [sys.executable, "-m", "polystick"]
# a checkpoint after each sweep, not each minute, and slow sweeps so that one can be stopped in time
HASTY = """
import time
from polystick.inference import checkpoint
def due(self):
    time.sleep(0.05)
    return True
checkpoint.Checkpoint.due = due
from polystick.cli import main
main()
"""


def call(*arguments, code=0):
    done = subprocess.run(
        [*CLI, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def here(*arguments, code=0):
    """Do the same without a process of its own, which would load everything again."""
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    path = tmp_path_factory.mktemp("counts") / "counts.csv"
    rows = np.random.default_rng(0).poisson([6, 4, 2], (12, 3))
    path.write_text("\n".join(["a,b,c", *(",".join(map(str, row)) for row in rows)]))
    return path


@pytest.fixture(scope="module")
def whole(counts):
    """A run that was never stopped."""
    folder = counts.parent / "whole"
    here("fit", "multinomial", counts, "--out", folder, *OPTIONS)
    return folder


def start_and_stop(counts, folder, number, meanwhile=lambda process: None):
    """Send a signal once there is a checkpoint; return the exit code and what was said."""
    command = [sys.executable, "-c", HASTY, "fit", "multinomial", counts, "--out", folder, *OPTIONS]
    process = subprocess.Popen(map(str, command), stderr=subprocess.PIPE, text=True)
    try:
        saved = folder / "checkpoint" / "polystick-manifest.json"
        end = time.monotonic() + 240
        while not (saved.exists() and json.loads(saved.read_text())["sweep"] > 8):
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < end
            time.sleep(0.02)
        meanwhile(process)
        process.send_signal(number)
        said = process.communicate(timeout=120)[1]
    finally:
        process.kill()
        process.wait()
    return process.returncode, said


def draws(folder):
    return Posterior.load(folder / "draws.nc")["cov"]


def test_a_killed_fit_resumes_to_the_same_bits(counts, whole, tmp_path):
    code, _ = start_and_stop(counts, tmp_path / "run", signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert not (tmp_path / "run" / "draws.nc").exists()
    assert "has not ended" in here("show", tmp_path / "run", code=1).stderr
    here("fit", "multinomial", counts, "--out", tmp_path / "run", "--resume")
    np.testing.assert_array_equal(draws(tmp_path / "run"), draws(whole))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_ends_a_run_leaves_what_there_is(counts, whole, tmp_path, number):
    def try_too(process):
        told = here("fit", "multinomial", counts, "--out", tmp_path / "run", "--resume", code=1)
        assert f"in use by process {process.pid} on {socket.gethostname()}" in told.stderr

    code, said = start_and_stop(counts, tmp_path / "run", number, try_too)
    assert code == 1
    assert "Traceback" not in said
    assert "go on with --resume" in said
    kept = draws(tmp_path / "run")
    sweeps = int(re.search(r"stopped after (\d+) sweeps", said)[1])
    assert kept.shape[1] == sweeps - 5 < 60  # none is lost
    np.testing.assert_array_equal(kept, draws(whole)[:, : kept.shape[1]])


def test_exit_codes_and_streams(counts, whole, tmp_path):
    scored = call("score", whole, counts, "--json")
    assert json.loads(scored.stdout)["rows"] == 12
    assert scored.stderr == ""
    missing = call("fit", "multinomial", tmp_path / "none.csv", "--out", tmp_path / "r", code=1)
    assert missing.stdout == ""
    assert missing.stderr.startswith("Error: ")
    assert "No such command 'guess'" in call("fit", "guess", code=2).stderr


def test_help_loads_little():
    code = """
import sys
from polystick.cli import main
try:
    main(["--help"])
except SystemExit:
    print(sorted({"numpy", "pandas", "numba", "sklearn", "matplotlib"} & set(sys.modules)))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.endswith("[]\n")
    assert all(
        name in told.stdout for name in ("demo", "fit", "plot", "reproduce", "score", "show")
    )
