"""Compiled kernels on disk: what is found again, what never is, what is thrown away.

A toy stands for the library: a package `polystick` with our own `kernel` and two kernels in two files.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import polystick.kernels
from polystick.kernels.cache import N_OTHERS, PREFIX, _make

HOME = Path(polystick.kernels.__file__).parent
CALLER = """
from pathlib import Path
import numba
import numpy as np
from polystick.kernels import kernel
from polystick.kernels.helper import helper

plain = numba.njit(cache=True)
TABLE = np.load(Path(__file__).with_name("table.npz"))["table"]

@{decorator}
def caller(x):
    return helper(x) + TABLE[0]
"""
HELPER = """
from polystick.kernels import kernel

@kernel
def helper(x):
    return x + {term}
"""
RUN = """
from polystick.kernels.caller import caller
print(caller(1.0), sum(caller.stats.cache_hits.values()), sum(caller.stats.cache_misses.values()))
"""

pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="the cache belongs to the compiler"
)


@pytest.fixture
def toy(tmp_path):
    home = tmp_path / "polystick" / "kernels"
    home.mkdir(parents=True)
    (tmp_path / "polystick" / "__init__.py").touch()
    for name in ("__init__.py", "cache.py"):
        shutil.copy(HOME / name, home / name)
    write(home)
    return home


def write(home, decorator="kernel", term=1.0, table=0.0):
    (home / "caller.py").write_text(CALLER.format(decorator=decorator))
    (home / "helper.py").write_text(HELPER.format(term=term))
    np.savez(home / "table.npz", table=np.array([table]))


def run(home, code=RUN, **environment):
    """Run code in a new process; return the numbers that it prints."""
    inherited = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-B", "-c", code],
        env=inherited | {"PYTHONPATH": str(home.parents[1])} | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.split()]


def folders(path):
    return sorted(path.glob(f"**/{PREFIX}*"))


def test_a_kernel_is_compiled_anew_when_a_helper_or_a_table_changed(toy):
    assert run(toy) == [2.0, 0, 1]
    write(toy, term=2.0)
    assert run(toy) == [3.0, 0, 1]
    write(toy, term=2.0, table=5.0)
    assert run(toy) == [8.0, 0, 1]
    write(toy)
    assert run(toy) == [2.0, 1, 0]  # what did not change is found again


def test_a_kernel_is_compiled_anew_where_another_twin_is_called(toy):
    write(toy, term="(1.0 if SIMD else 3.0)")
    helper = toy / "helper.py"
    helper.write_text(helper.read_text().replace("import kernel", "import SIMD, kernel"))
    assert run(toy, POLYSTICK_SIMD="1") == [2.0, 0, 1]
    assert run(toy, POLYSTICK_SIMD="0") == [4.0, 0, 1]
    assert run(toy, POLYSTICK_SIMD="1") == [2.0, 1, 0]
    assert run(toy, POLYSTICK_SIMD="0") == [4.0, 1, 0]


def test_a_plain_cache_would_run_old_code(toy):
    write(toy, "plain")
    assert run(toy) == [2.0, 0, 1]
    write(toy, "plain", term=2.0, table=5.0)
    assert run(toy) == [2.0, 1, 0], "Numba sees it by itself now: is our folder still needed?"


def test_old_folders_are_thrown_away(tmp_path):
    for day in range(N_OTHERS + 3):
        old = tmp_path / f"{PREFIX}{day}"
        old.mkdir()
        (old / "kernel.nbi").touch()
        os.utime(old, (day, day))
    (tmp_path / "of somebody else").mkdir()
    _make(tmp_path / f"{PREFIX}new")
    kept = [f"{PREFIX}{day}" for day in range(3, N_OTHERS + 3)]
    assert {path.name for path in tmp_path.iterdir()} == {*kept, f"{PREFIX}new", "of somebody else"}
    _make(tmp_path / kept[0])  # is there already
    assert len(folders(tmp_path)) == N_OTHERS + 1


def test_the_place_is_the_one_that_the_user_asks_for(toy, tmp_path):
    place = tmp_path / "place"
    assert run(toy, NUMBA_CACHE_DIR=str(place)) == [2.0, 0, 1]
    assert folders(toy) == []
    assert len(folders(place)) == 1
    write(toy, term=2.0)
    assert run(toy, NUMBA_CACHE_DIR=str(place)) == [3.0, 0, 1]


def test_a_folder_that_goes_away_is_made_again(toy):
    code = """
import pathlib, shutil
from polystick.kernels.caller import caller
caller(1.0)
shutil.rmtree(caller.stats.cache_path)
caller(1)
print(len(list(pathlib.Path(caller.stats.cache_path).glob("*.nbc"))))
"""
    assert run(toy, code) == [2]  # the caller and the helper, for the second kind of number


RENAMED = """
class Renamed(caching.FunctionCache):
    def __init__(self, function):
        super().__init__(function)
        self._files = self.__dict__.pop("_cache_file")
numba.core.dispatcher.FunctionCache = Renamed
"""


@pytest.mark.parametrize("change", [RENAMED, "caching.Cache.cache_path = None"])
def test_an_unknown_numba_has_no_cache_and_one_warning(toy, change):
    code = f"""
import warnings
import numba.core.dispatcher
from numba.core import caching
{change}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from polystick.kernels.caller import caller
message = str(caught[0].message)
print(caller(1.0), len(caught), message.count("not cached"), message.count("constraints.txt"))
"""
    assert run(toy, code) == [2.0, 1, 1, 1]
    assert folders(toy) == []
