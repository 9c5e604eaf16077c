"""The warm-up runs once for each state of the kernels, and only before workers of the whole suite."""

import subprocess
import sys
from types import SimpleNamespace

import numba
import pytest

import warm_up


def config(n_workers=2, arguments=(str(warm_up.TESTS),), keyword="", collectonly=False, **more):
    option = SimpleNamespace(numprocesses=n_workers, keyword=keyword, collectonly=collectonly)
    return SimpleNamespace(option=option, args=list(arguments), **more)


def test_it_is_for_workers_of_the_whole_suite(monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    assert warm_up.is_wanted(config())
    assert not warm_up.is_wanted(config(n_workers=0))
    assert not warm_up.is_wanted(config(n_workers=None))
    assert not warm_up.is_wanted(config(arguments=[str(warm_up.TESTS / "test_keys.py")]))
    assert not warm_up.is_wanted(config(keyword="geweke"))
    assert not warm_up.is_wanted(config(collectonly=True))
    assert not warm_up.is_wanted(config(workerinput={}))
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert not warm_up.is_wanted(config())


STARTED = ["first fits", *warm_up.SHARES]


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Return the shares that are started, in place of starting them; their exit codes are 0 or as told."""
    names, codes = [], {}

    def start(command, env):
        assert command[:2] == [sys.executable, warm_up.__file__]
        names.append(command[2])
        return SimpleNamespace(wait=lambda: codes.get(command[2], 0))

    monkeypatch.setattr(warm_up, "KERNELS", tmp_path)
    monkeypatch.setattr(warm_up, "warm_up", lambda: names.append("first fits"))
    monkeypatch.setattr(subprocess, "Popen", start)
    (tmp_path / "one.py").write_text("1")
    return SimpleNamespace(names=names, codes=codes, kernel=tmp_path / "one.py")


def test_it_runs_again_when_a_kernel_changed(started):
    warm_up.start_if_cold()
    assert started.names == STARTED
    warm_up.start_if_cold()
    assert started.names == STARTED
    started.kernel.write_text("2")
    warm_up.start_if_cold()
    assert started.names == 2 * STARTED
    assert len(list((started.kernel.parent / "__pycache__").iterdir())) == 1


def test_a_share_that_failed_leaves_no_stamp(started):
    started.codes["sequences"] = 1
    warm_up.start_if_cold()
    warm_up.start_if_cold()
    assert started.names == 2 * STARTED
