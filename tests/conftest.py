"""What every test starts from."""

import hashlib
import signal
from pathlib import Path

import pytest

import warm_up

KERNELS = Path(__file__).parents[1] / "src" / "polystick" / "kernels"


def pytest_configure(config):
    """Forget compiled kernels when any kernel or table changed: Numba looks at a kernel's own file only."""
    if hasattr(config, "workerinput"):  # xdist: the controller did it
        return
    sources = sorted([*KERNELS.glob("*.py"), *KERNELS.glob("*.npz")])
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    cache = KERNELS / "__pycache__"
    stamp = cache / "kernels.sha256"
    if not stamp.exists() or stamp.read_text() != digest:
        for path in [*cache.glob("*.nbi"), *cache.glob("*.nbc")]:
            path.unlink()
        cache.mkdir(exist_ok=True)
        stamp.write_text(digest)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    """Compile for all workers before they start, if the whole suite is to run."""
    if warm_up.is_wanted(session.config):
        warm_up.start_if_cold()


def pytest_collection_modifyitems(items):
    """Let what takes longest come first, so that no worker waits for it at the end."""
    items.sort(key=lambda item: item.path.name != "test_docs.py")


@pytest.fixture(autouse=True)
def listens_to_ctrl_c():
    """Undo a shell that starts the suite in the background, deaf to SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
