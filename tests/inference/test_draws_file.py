"""Files of draws that were made to do harm, with checksums that fit."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from polystick.inference.gibbs import Gibbs
from polystick.inference.posterior import Posterior
from toy_model import Toy

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def posterior():
    shards = Toy().shards(np.arange(9.0))
    return Gibbs(6, 2, n_chains=2).run(Toy(), shards, seed=1)


def signed(path):
    """Put the line with the checksum at the end, as `save` does."""
    line = f"\npolystick sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}\n"
    with open(path, "ab") as file:
        file.write(line.encode())
    return path


@pytest.fixture
def hostile(posterior, tmp_path):
    """Return what makes a file of draws to which something was done."""

    def make(change):
        path = tmp_path / "draws.nc"
        posterior.tree.to_netcdf(path, engine="h5netcdf")
        with h5py.File(path, "r+") as file:
            change(file["posterior"])
        return signed(path)

    return make


def read_elsewhere(group):
    group["more"] = h5py.ExternalLink("/etc/passwd", "/")


def keep_elsewhere(group):
    external = [("/etc/passwd", 0, 800)]
    group.create_dataset("more", (100,), "f8", external=external)


def point_elsewhere(group):
    layout = h5py.VirtualLayout((100,), "f8")
    layout[:] = h5py.VirtualSource("/etc/passwd", "a", (100,))
    group.create_virtual_dataset("more", layout)


def link(group):
    group["more"] = h5py.SoftLink("/posterior")


def claim_terabytes(group):
    group.create_dataset("more", (2**40,), "f8", chunks=(2**20,), compression="gzip")


def claim_more_than_there_is(group):
    group.create_dataset("more", (2**40,), "f8")


def pack_strangely(group):
    group.create_dataset("more", data=np.zeros(9), compression="lzf")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (read_elsewhere, "more is a link"),
        (link, "more is a link"),
        (keep_elsewhere, "more is in another file"),
        (point_elsewhere, "more is in another file"),
        (claim_terabytes, "more claims 8796093022208 bytes and has 0"),
        (claim_more_than_there_is, "more claims 8796093022208 bytes and has 0"),
        (pack_strangely, "more is packed in an unknown way"),
    ],
)
def test_hostile_files_get_a_sentence(hostile, change, message):
    with pytest.raises(ValueError, match=rf"must be a file that Posterior\.save wrote.*{message}"):
        Posterior.load(hostile(change))


def test_a_file_without_harm_is_read(hostile, posterior):
    loaded = Posterior.load(hostile(lambda group: None))
    assert loaded.tree.identical(posterior.tree)
    packed = hostile(lambda group: group.create_dataset("m", data=np.zeros(10**6), compression=9))
    with pytest.raises(ValueError, match=r"takes? \d+ bytes, more than max_bytes=1000"):
        Posterior.load(packed, max_bytes=1000)


def test_what_is_no_netcdf_gets_a_sentence(tmp_path):
    path = tmp_path / "draws.nc"
    for content in (b"", b"\x80\x04K\x01.", b"\x89HDF\r\n\x1a\n" + bytes(500)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"must be a file that Posterior\.save wrote"):
            Posterior.load(signed(path))


def test_damage_and_truncation_are_told_before_the_file_is_parsed(posterior, tmp_path, monkeypatch):
    path = posterior.save(tmp_path / "draws.nc")
    whole = path.read_bytes()
    monkeypatch.setattr(h5py, "File", None)
    for wrong, message in (
        (whole[:-1], "it has no checksum at its end"),
        (whole[:-200], "it has no checksum at its end"),
        (whole[:5000] + b"?" + whole[5001:], "its checksum does not fit"),
        (whole.replace(b"sha256 ", b"sha256 0")[:-2] + b"\n", "no checksum|does not fit"),
    ):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match=message):
            Posterior.load(path)


def test_the_line_at_the_end_disturbs_no_other_program(posterior, tmp_path):
    with h5py.File(posterior.save(tmp_path / "draws.nc")) as file:
        theta = file["posterior"]["theta"][:]
    np.testing.assert_array_equal(theta, posterior["theta"])


FULL = """
import resource, signal, sys
from polystick.inference.gibbs import Gibbs
from toy_model import Toy
import numpy as np
posterior = Gibbs(6, 2, n_chains=2).run(Toy(), Toy().shards(np.arange(9.0)), seed=1)
posterior.save(sys.argv[1])  # what is imported for it has been
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    posterior.save(sys.argv[1])
except OSError as error:
    print("told:", error)
"""


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="room can't be asked for")
def test_a_disk_without_room_is_told_before_hdf5_writes(tmp_path):
    """HDF5 can't give up a file that it can't write: it says so many times, and brings the process down."""
    path = tmp_path / "draws.nc"
    here = os.pathsep.join(entry for entry in [str(TESTS), *sys.path] if entry)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FULL, path],
        env={**os.environ, "PYTHONPATH": here},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("told: [Errno 27] File too large")
    assert not done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["draws.nc"]
    Posterior.load(path)  # what was there before
