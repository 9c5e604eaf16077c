"""Processes that are killed just before the n-th thing they do to a folder: open, rename, remove, mkdir."""

import os
import signal
import sys
import warnings

from victims import SERVER

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"}


def killed_before(number, folder, run, *arguments):
    """Run in a process of its own that is killed there; tell whether it was, or ended before."""
    victim = SERVER.Process(target=_run, args=(number, str(folder), None, run, arguments))
    victim.start()
    victim.join()
    assert victim.exitcode in (0, -signal.SIGKILL), victim.exitcode
    return victim.exitcode == -signal.SIGKILL


def events_of(folder, run, *arguments):
    """Return what a run does to a folder, as (event, name of the file)."""
    ours, theirs = SERVER.Pipe(duplex=False)
    watched = SERVER.Process(target=_run, args=(None, str(folder), theirs, run, arguments))
    watched.start()
    theirs.close()
    found = ours.recv()
    watched.join()
    ours.close()
    return found


def _run(number, folder, connection, run, arguments):
    seen = []

    def watch(event, details):
        if event not in EVENTS or not isinstance(details[0], str | os.PathLike | bytes):
            return
        path = os.fsdecode(details[0])
        if path.startswith(folder):
            if len(seen) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            seen.append((event, os.path.basename(path)))

    warnings.simplefilter("ignore")
    sys.addaudithook(watch)
    run(*arguments)
    if connection is not None:
        connection.send([*seen])
