"""What every test starts from."""

import signal

import pytest


@pytest.fixture(autouse=True)
def listens_to_ctrl_c():
    """Undo a shell that starts the suite in the background, deaf to SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
