"""What every test starts from."""

import signal

import pytest

import warm_up


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
