"""Folders that a run writes to: one writer at a time, and files that are whole or not there at all.

The writer holds a lock of the operating system (flock) on the file `polystick-lock` and says in it who it
is. The system lets go of the lock when the process ends, however it ends, so a dead one blocks nobody.
Where there is no flock (Windows, some network drives), nothing is locked: keep to one process there.
"""

import contextlib
import io
import os
import socket
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # not POSIX
    fcntl = None  # type: ignore[assignment]

__all__ = ["LOCK", "InUseError", "beside", "one_writer", "whole"]

LOCK = "polystick-lock"


class InUseError(RuntimeError):
    """A folder that another writer holds."""


@contextlib.contextmanager
def one_writer(folder: Path) -> Iterator[None]:
    """Hold a folder, which is made if need be; raise `InUseError` where another writer holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    held = _lock(folder)
    try:
        yield
    finally:
        if held in _HELD:  # not in a child that was forked meanwhile
            (folder / LOCK).unlink(missing_ok=True)
            _let_go(held)


def _lock(folder: Path) -> int:
    """Return the open file of a folder that this process now holds."""
    path = folder / LOCK
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        _HELD.add(file)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(file, 1000, 0).decode(errors="replace").strip()
            _let_go(file)
            raise InUseError(
                f"{folder} is in use by {holder or 'another process'}; wait until that has ended, or give "
                "another folder"
            ) from None
        except OSError:  # a file system without locks
            return file
        if _is_there(path, file):
            os.ftruncate(file, 0)
            os.pwrite(file, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
            return file
        _let_go(file)  # its holder has removed it just now


def _is_there(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


_HELD: set[int] = set()


def _let_go(file: int) -> None:
    _HELD.discard(file)
    os.close(file)


def _let_go_of_all() -> None:
    for file in [*_HELD]:
        _let_go(file)


if hasattr(os, "register_at_fork"):  # else a child that lives longer would go on holding
    os.register_at_fork(after_in_child=_let_go_of_all)


def beside(path: Path) -> Path:
    """Return the name of the temporary file for a path, with nothing there, not even a link."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    return temporary


@contextlib.contextmanager
def whole(path: Path) -> Iterator[io.BufferedRandom]:
    """Open a file that takes the place of path at the end, flushed to disk; or nothing changes."""
    temporary = beside(path)
    try:
        with open(temporary, "x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _flush_folder(path.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)  # on a full disk it takes the last room
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def _flush_folder(folder: Path) -> None:
    if os.name == "nt":  # folders can't be opened there, and are written through
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
