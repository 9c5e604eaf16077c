"""Kernels of a first fit are compiled by several processes, and the list of them is what fits call."""

import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest

import polystick
from polystick import Gibbs, MultinomialGP, warm_up, warmup
from polystick.inference.progress import compiling
from polystick.warmup.listed import Root, of_models, spelled
from polystick.warmup.pool import compile_in_processes

TOOL = Path(__file__).parents[1] / "tools" / "list_kernels.py"
COLD = """
from polystick import warmup
from polystick.warmup.listed import Root
from polystick.warmup.pool import compile_in_processes
roots = [Root("collapsed.count_words", "i4[1] i4[1] f4[2]"), Root("trees.count_active", "i8[1] " * 6)]
told = []
print(sum(root.is_cached() for root in roots))
print(compile_in_processes(roots, 2, lambda: told.append(1)), len(told))
print(sum(root.is_cached() for root in roots))
"""

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="there is nothing to compile")


@pytest.mark.parametrize(
    "root", sorted({root for roots in of_models().values() for root in roots}, key=str), ids=str
)
def test_types_are_written_as_they_are_read(root):
    assert " ".join(map(spelled, root.signature)) == root.types
    assert root.dispatcher.py_func.__module__ == f"polystick.kernels.{root.name.split('.')[0]}"


def lines_of(name):
    said = subprocess.check_output([sys.executable, TOOL, name], text=True)
    return {line for line in said.splitlines() if "." in line}


@pytest.mark.parametrize(
    "name",
    ["topics", *(pytest.param(n, marks=pytest.mark.slow) for n in warmup.names() if n != "topics")],
)
def test_the_list_is_what_a_fit_calls(name):
    """Run `python tools/list_kernels.py` when this fails."""
    listed = of_models()[name] + of_models().get(f"{name} predictions", ())
    lines = {f"{root.name} {root.types}" for root in listed}
    warm_up(name, progress=False)  # for where kernels compile, their parts are listed too
    assert lines_of(name) == lines


def test_processes_leave_machine_code(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    said = subprocess.check_output([sys.executable, "-c", COLD], text=True)
    assert said.split() == ["0", "True", "2", "2"]


def test_what_fails_to_compile_is_no_end(capfd):
    told = []
    roots = [Root("trees.no_such_kernel", "i8"), Root("trees.count_active", "i8 " * 6)]
    begun = time.perf_counter()
    assert not compile_in_processes(roots, 1, lambda: told.append(1))
    assert len(told) == 2
    assert time.perf_counter() - begun < 60
    assert capfd.readouterr() == ("", "")


def test_a_model_with_another_name_is_refused():
    with pytest.raises(ValueError, match=r"models must be some of topics, .* got 'topic'"):
        warm_up("topic")


def test_who_watches_is_told_how_many(capsys):
    with compiling(True, 3) as tell:
        tell()
        tell()
    assert "compiling 0 of 3, once" in capsys.readouterr().err
    with compiling(False, 3) as tell:
        tell()
    assert capsys.readouterr().err == ""


class Pool(list):
    """What was asked to be compiled."""

    def __call__(self, roots, n_processes, tell):
        self += roots


@pytest.fixture
def cold(monkeypatch):
    """A disk without machine code, and a pool that only listens."""
    pool = Pool()
    monkeypatch.setattr(warmup, "compile_in_processes", pool)
    monkeypatch.setattr(Root, "is_cached", lambda root: False)
    return pool


def test_a_fit_compiles_first_where_a_person_watches(cold, capsys):
    model = MultinomialGP(inference=Gibbs(1, 1, n_chains=1), progress=True)
    model.fit([[0.0], [1.0]], [[3, 1], [1, 3]])
    assert cold == list(of_models()["gp"])
    assert "compiling 0 of" in capsys.readouterr().err


def test_nobody_watches_a_script(cold):
    """A process that nobody asked for would surprise clusters and programs that are no Python."""
    model = MultinomialGP(inference=Gibbs(1, 1, n_chains=1))
    assert model.progress is None
    model.fit([[0.0], [1.0]], [[3, 1], [1, 3]])
    assert cold == []


def test_faces_name_what_is_listed():
    faces = (getattr(polystick, name) for name in polystick.__all__)
    named = {face._listed for face in faces if isinstance(face, type) and hasattr(face, "_listed")}
    assert {f"{name}" for name in named if name} == {
        name for name in warmup.names() if not name.startswith("softmax-")
    }
    softmax = polystick.CorrelatedMultinomial(link="softmax")
    assert softmax._kernels() in warmup.names()
    assert polystick.MultinomialRegression("x", link="softmax")._kernels() in warmup.names()


def test_all_is_compiled_of_fits_and_predictions(cold):
    assert warm_up("lds") == len(cold)
    assert {*of_models()["lds"], *of_models()["lds predictions"]} == set(cold)
    cold.clear()
    warm_up("lds", predictions=False)
    assert cold == list(of_models()["lds"])
