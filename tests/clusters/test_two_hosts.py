"""Workers on two hosts, which are network namespaces of their own: root only."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from topic_tools import JIT

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not JIT, reason="workers would interpret kernels"),
    pytest.mark.skipif(
        getattr(os, "geteuid", lambda: 1)() != 0 or shutil.which("ip") is None,
        reason="network namespaces need root and iproute2",
    ),
]
SCRIPT = Path(__file__).parent / "two_hosts.py"
QUIET = {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False", "OMP_NUM_THREADS": "1"}


class Hosts:
    """Three hosts on a switch, which is a namespace too: nothing of it is seen from outside."""

    def __init__(self, stack):
        self._stack, self._name = stack, f"polystick{os.getpid()}"
        self.switch = self._namespace("switch")
        ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", self.switch, "link", "set", "bridge", "up")
        self.names = [self._host(number) for number in range(3)]

    def _namespace(self, what):
        name = f"{self._name}-{what}"
        ip("netns", "add", name)
        self._stack.callback(ip, "netns", "del", name)
        return name

    def _host(self, number):
        name, port = self._namespace(number), f"port{number}"
        ip("-n", self.switch, "link", "add", port, "type", "veth", "peer", "eth0", "netns", name)
        ip("-n", self.switch, "link", "set", port, "master", "bridge", "up")
        ip("-n", name, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            ip("-n", name, "link", "set", device, "up")
        return name

    def address(self, number):
        return f"10.77.0.{10 + number}"

    def at(self, number, *command):
        """Return a command that runs at a host."""
        return ["ip", "netns", "exec", self.names[number], *map(str, command)]

    def start(self, number, *command):
        process = subprocess.Popen(
            self.at(number, *command),
            env={**os.environ, **QUIET},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._stack.callback(process.wait, 30)
        self._stack.callback(process.kill)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=30)


@pytest.fixture
def hosts(tmp_path):
    with contextlib.ExitStack() as stack:
        try:
            found = Hosts(stack)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error.stderr}")
        start = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", 8786]
        found.start(0, *start, "--host", found.address(0), "--no-dashboard")
        for number in (1, 2):
            found.start(
                number, sys.executable, "-m", "distributed.cli.dask_worker", address(found),
                "--host", found.address(number), "--nthreads", 1, "--no-dashboard", "--no-nanny",
                "--local-directory", tmp_path / f"worker{number}",
            )  # fmt: skip
        yield found


def address(hosts):
    return f"tcp://{hosts.address(0)}:8786"


def fit(hosts, store, cut_at=-1):
    cut = ["ip", "-n", hosts.switch, "link", "set", "port2", "down"]
    done = subprocess.run(
        hosts.at(0, sys.executable, SCRIPT, address(hosts), store, cut_at, *hosts.names[1:], *cut),
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, **QUIET},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_what_crosses_is_the_prior_and_the_tables(hosts, tmp_path):
    told = fit(hosts, tmp_path / "store")
    assert told["same"]
    for received, sent in told["crossed"]:
        assert received + sent <= 1.1 * (told["prior"] + told["tables"] + 4e5)
        assert received > told["prior"]  # the count counts
        assert sent > 0.5 * told["tables"]


def test_a_host_that_is_cut_off_costs_less_than_a_minute(hosts, tmp_path):
    begun = time.monotonic()
    told = fit(hosts, tmp_path / "store", cut_at=4)
    assert told["same"]
    assert 5.0 < told["slowest"] < 60.0, time.monotonic() - begun
