"""One writer for a folder, whatever became of the last; files that are whole or not there."""

import multiprocessing
import os
import signal
import socket

import pytest

from polystick import folders
from polystick.folders import LOCK, InUseError, one_writer, whole

CHILD = multiprocessing.get_context("forkserver")


def hold(folder, connection):
    with one_writer(folder):
        connection.send(os.getpid())
        connection.recv()


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder."""
    ours, theirs = CHILD.Pipe()
    process = CHILD.Process(target=hold, args=(tmp_path, theirs))
    process.start()
    theirs.close()
    assert ours.recv() == process.pid
    yield process
    process.kill()
    process.join()
    ours.close()


def test_the_second_writer_is_told_who_the_first_is(holder, tmp_path):
    with (
        pytest.raises(InUseError) as told,
        one_writer(tmp_path),
    ):
        pass
    assert f"process {holder.pid} on {socket.gethostname()}" in str(told.value)
    assert str(tmp_path) in str(told.value)


def test_the_dead_hold_nothing(holder, tmp_path):
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    assert (tmp_path / LOCK).exists()
    with one_writer(tmp_path):
        assert f"process {os.getpid()} " in (tmp_path / LOCK).read_text()
    assert not (tmp_path / LOCK).exists()


def test_a_fork_does_not_hold_what_its_parent_held(tmp_path):
    with one_writer(tmp_path):
        wait, go = os.pipe()
        child = os.fork()
        if child == 0:  # pragma: no cover
            os.close(go)
            os.read(wait, 1)
            os._exit(0)
    try:
        with one_writer(tmp_path):
            pass
    finally:
        os.close(go)
        os.close(wait)
        os.waitpid(child, 0)


def test_a_holder_that_goes_while_another_asks(tmp_path, monkeypatch):
    """The file that was locked may have been removed since it was opened: then it is no lock."""
    flock, seen = folders.fcntl.flock, []

    def removed_meanwhile(file, how):
        flock(file, how)
        if not seen:
            (tmp_path / LOCK).unlink()
        seen.append(file)

    monkeypatch.setattr(folders.fcntl, "flock", removed_meanwhile)
    with one_writer(tmp_path):
        assert len(seen) == 2
        assert (tmp_path / LOCK).exists()


def test_a_lock_is_no_link_to_follow(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / LOCK).symlink_to(tmp_path / "precious")
    with pytest.raises(OSError), one_writer(tmp_path):
        pass
    assert (tmp_path / "precious").read_text() == "mine"


def test_without_locks_there_are_none(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "fcntl", None)
    with one_writer(tmp_path), one_writer(tmp_path):
        assert not (tmp_path / LOCK).exists()


def test_a_file_is_whole_or_as_it_was(tmp_path):
    path = tmp_path / "file"
    with whole(path) as file:
        file.write(b"first")
    with pytest.raises(TypeError), whole(path) as file:
        file.write("no bytes")
    assert path.read_bytes() == b"first"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_file_is_not_written_through_a_link(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "file.tmp").symlink_to(tmp_path / "precious")
    with whole(tmp_path / "file") as file:
        file.write(b"new")
    assert (tmp_path / "precious").read_text() == "mine"
    assert (tmp_path / "file").read_text() == "new"
