"""No file can crash, hang or fool a reader: what is not counts gets one sentence."""

import resource
from pathlib import Path

import numba
import odd_files
import pytest
from click.testing import CliRunner

from polystick.cli import main

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="minutes without the compiler")
SHORT = ["--draws", "1", "--burn", "0", "--chains", "1", "--threads", "1"]
MOST_BYTES = 2**30  # more than any of these files is worth

# what may be odd, but is counts all the same
FINE = {
    ".npz pickled vocabulary",  # which is left out
    ".mtx a symmetric matrix",
    ".mtx cells without values",
    ".csv the largest count",
    ".csv truths",
    ".csv lines that end in CR",
    ".jsonl a field twice",
    ".jsonl NUL",
    ".parquet truths",
    ".parquet columns that pandas does not find",
    ".parquet a schema that is no JSON",
}

SAYS = {
    ".csv in UTF-16": "it is text in UTF-16",
    ".csv in UTF-16 that does not say so": "it is text in UTF-16",
    ".csv of Excel": "it is an Excel workbook",
    ".csv packed": "let its name end in .gz",
    ".csv with semicolons": "its first line has semicolons",
    ".csv with tabs": "its first line has tabs",
    ".csv a number beyond all": "row 1 has 99999999999999999999",
    ".jsonl NaN and null": "line 1 has null, or NaN",
    ".npz objects alone": "arrays of objects only",
}


@pytest.fixture
def little_memory():
    """Take away the memory that a false header would ask for."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def fit(kind, path, out):
    more = ["--states", "1"] if kind == "lds" else []
    return CliRunner().invoke(main, ["fit", kind, str(path), *SHORT, *more, "--out", str(out)])


def test_hostile_files_get_a_sentence(tmp_path, little_memory):
    files = odd_files.write_all(tmp_path)
    assert len(files) >= 190
    fitted = set()
    for number, (name, path) in enumerate(files.items()):
        kinds = ["multinomial"] + ["lds"] * ("tokens" in name or "jsonl" in name)
        for kind in kinds:
            out = tmp_path / f"{kind}{number}"
            done = fit(kind, path, out)
            if done.exit_code == 0:
                fitted.add(name)
                continue
            assert isinstance(done.exception, SystemExit), (name, done.exception)
            assert done.exit_code == 1, name
            assert done.stderr.startswith("Error: "), name
            assert done.stderr.count("\n") == 1, (name, done.stderr)
            assert SAYS.get(name, "") in done.stderr, (name, done.stderr)
            assert "MemoryError" not in done.stderr, name
            assert "Unable to allocate" not in done.stderr, name
            assert not out.exists(), name
    assert fitted == FINE
    assert not (tmp_path / odd_files.PWNED).exists()
