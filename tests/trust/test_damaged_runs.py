"""Whatever happens to a byte of a checkpoint or of a run folder is seen, or harms nothing."""

import random
import shutil

import numba
import numpy as np
import pytest
from click.testing import CliRunner

from polystick import CheckpointError, CorrelatedMultinomial, Gibbs
from polystick.cli import main

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="minutes without the compiler")
COUNTS = np.random.default_rng(0).poisson([6, 4, 2], (12, 3))


def flip(content, rng):
    changed = bytearray(content)
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def overwrite(content, rng):
    place = rng.randrange(len(content))
    size = len(content[place : place + 64])
    return (
        content[:place] + rng.choice([bytes(size), rng.randbytes(size)]) + content[place + size :]
    )


DAMAGE = [
    flip,
    flip,
    overwrite,
    lambda content, rng: content[: rng.randrange(len(content))],
    lambda content, rng: content + rng.randbytes(rng.randrange(1, 50)),
    lambda content, rng: b"",
    lambda content, rng: rng.choice([b"null", b"[]", b"{}", b"3", b"[" * 100_000, b"\xff\xfe"]),
    lambda content, rng: None,  # removed
]


def damage(folder, names, rng):
    """Harm one file; return which and how."""
    path, change = folder / rng.choice(names), rng.choice(DAMAGE)
    content = change(path.read_bytes(), rng)
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    return path.name


def files_in(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint") / "whole"
    return folder, fit(folder)


def fit(folder):
    model = CorrelatedMultinomial(
        inference=Gibbs(6, 2, n_chains=2),
        random_state=3,
        n_jobs=1,
        checkpoint=folder,
        checkpoint_every=0.0,
    )
    return model.fit(COUNTS, resume=True).posterior_["cov"]


def outcome(folder):
    """Return the draws, or what was said instead."""
    try:
        return fit(folder)
    except CheckpointError as error:
        return str(error)


def damaged_checkpoints(checkpoint, tmp_path, n):
    """Return how many damages were refused; others leave the bits as they are, and all leave the files."""
    whole, draws = checkpoint
    rng, refused = random.Random(n), 0
    names = sorted(files_in(whole))
    for number in range(n):
        folder = tmp_path / str(number)
        shutil.copytree(whole, folder)
        name = damage(folder, names, rng)
        before = files_in(folder)
        said = outcome(folder)
        if isinstance(said, str):
            refused += 1
            assert "\n" not in said, name
            assert files_in(folder) == before, name
        else:
            np.testing.assert_array_equal(said, draws)
        shutil.rmtree(folder)
    return refused


def call(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    lines = ["a,b,c", *(",".join(map(str, row)) for row in COUNTS)]
    (folder / "counts.csv").write_text("\n".join(lines))
    command = ["fit", "multinomial", folder / "counts.csv", "--draws", "4", "--burn", "2"]
    command += ["--chains", "2", "--threads", "1", "--min-ess", "0", "--out"]
    assert call(*command, folder / "whole").exit_code == 0
    return folder / "whole", command


def damaged_runs(run, tmp_path, n):
    """Return how many damages `show` refused; where it does not, it shows the same."""
    whole, command = run
    shown = call("show", whole).output
    rng, refused = random.Random(n), 0
    names = [*sorted(set(files_in(whole)) - {"draws.nc"}), "settings.json", "categories.json"]
    for number in range(n):
        folder = tmp_path / str(number)
        shutil.copytree(whole, folder)
        name = damage(folder, names, rng)
        told = call("show", folder)
        if told.exit_code == 0:
            assert told.output == shown, name
        else:
            refused += 1
            assert isinstance(told.exception, SystemExit), (name, told.exception)
            assert told.output.count("\n") == 1, (name, told.output)
        again = call(*command, folder, "--resume")
        assert again.exit_code == 0 or isinstance(again.exception, SystemExit), name
        if again.exit_code == 0:
            assert call("show", folder).output == shown, name
        shutil.rmtree(folder)
    return refused


def test_damaged_checkpoints_are_seen(checkpoint, tmp_path):
    assert damaged_checkpoints(checkpoint, tmp_path, 40) > 30


def test_damaged_runs_are_seen(run, tmp_path):
    assert damaged_runs(run, tmp_path, 16) > 10


@pytest.mark.slow
def test_many_damaged_checkpoints_are_seen(checkpoint, tmp_path):
    assert damaged_checkpoints(checkpoint, tmp_path, 400) > 300


@pytest.mark.slow
def test_many_damaged_runs_are_seen(run, tmp_path):
    assert damaged_runs(run, tmp_path, 240) > 180
