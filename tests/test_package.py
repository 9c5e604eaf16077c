"""The package from outside: what it exports, how fast it imports, what its command line says."""

import re
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from click.testing import CliRunner

import polystick
from polystick.cli import main

ROOT = Path(__file__).parents[1]


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_every_public_name_can_be_had():
    for name in polystick.__all__:
        assert getattr(polystick, name) is not None
    assert set(polystick.__all__) <= set(dir(polystick))
    with pytest.raises(AttributeError, match="no attribute 'Gibs'"):
        polystick.Gibs  # noqa: B018


def test_every_baseline_can_be_had():
    for name in polystick.baselines.__all__:
        face = getattr(polystick.baselines, name)
        assert getattr(polystick, name, face) is face
    assert set(polystick.baselines.__all__) <= set(dir(polystick.baselines))
    with pytest.raises(AttributeError, match="baselines' has no attribute 'RawPG'"):
        polystick.baselines.RawPG  # noqa: B018


def test_what_methods_return_and_raise_can_be_had_by_name():
    """Each public name is on the page of references."""
    page = (ROOT / "docs" / "api.md").read_text()
    told = {part for word in re.findall(r"[\w.]+", page) for part in word.split(".")}
    assert {*polystick.__all__, *polystick.baselines.__all__} <= told


def faces():
    names = sorted({*polystick.__all__, *polystick.baselines.__all__})
    found = (getattr(polystick, name, None) or getattr(polystick.baselines, name) for name in names)
    return [face for face in found if isinstance(face, type) and hasattr(face, "fit")]


@pytest.mark.parametrize("face", faces(), ids=lambda face: face.__name__)
def test_the_reference_says_what_each_method_returns(face):
    page = (ROOT / "docs" / "api.md").read_text()
    table = page.partition("### What methods return")[2].partition("```{eval-rst}")[0]
    told = set(re.findall(r"\w+", " ".join(re.findall(r"^\| (.*?) \|", table, re.M))))
    methods = {name for name, method in vars_of(face) if callable(method)}
    assert methods <= told
    assert all((getattr(face, name).__doc__ or "").strip() for name in methods)


def vars_of(face):
    """Return what a class has from us, and not from scikit-learn; names without an underscore."""
    ours = [each for each in face.__mro__ if each.__module__.startswith("polystick.")]
    return [(n, m) for each in ours for n, m in vars(each).items() if not n.startswith("_")]


def test_import_compiles_nothing_and_loads_little():
    code = """
import sys
import polystick
heavy = {"numba", "scipy", "sklearn", "xarray", "matplotlib", "arviz", "pandas"} & set(sys.modules)
print(sorted(heavy))
from polystick import CorrelatedMultinomial
print(sorted({"matplotlib", "arviz", "xarray.core.datatree"} & set(sys.modules)))
from polystick.kernels import gaussian, polyagamma, streams, trees
compiled = [f for m in (gaussian, polyagamma, streams, trees) for f in vars(m).values()
            if getattr(f, "signatures", None)]
print(compiled)
"""
    assert run_python(code).split("\n")[:3] == ["[]", "[]", "[]"]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="the cache belongs to the compiler")
def test_kernels_fall_back_where_the_disk_is_read_only():
    code = """
import warnings
import numba.core.dispatcher as dispatcher
def refuse(self):
    raise RuntimeError("cannot cache function 'f': no locator available for file 'x'")
dispatcher.Dispatcher.enable_caching = refuse
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from polystick.kernels import kernel
    f = kernel(lambda x: x + 1)
    g = kernel(lambda x: x + 2)
print(f(1), g(1), len(caught), str(caught[0].message).split(",")[0])
"""
    assert run_python(code).startswith("2 3 1 compiled kernels are not cached on disk")


def test_versions_are_pinned_and_name_no_host():
    pins = (ROOT / "constraints.txt").read_text()
    assert "://" not in pins
    for line in pins.strip().split("\n"):
        assert re.match(r"^[A-Za-z0-9_.\-\[\]]+==[^ ]+( ; .*)?$", line), line


def test_help_and_version():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output
    assert polystick.__version__ in CliRunner().invoke(main, ["--version"]).output
