"""Kernels compiled by several processes at once, each taking the next when it is done with one."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from polystick.warmup.listed import Root

__all__ = ["compile_in_processes", "serve"]

_CODE = "from polystick.warmup.pool import serve; serve()"


def compile_in_processes(
    roots: Sequence[Root], n_processes: int, tell: Callable[[], object] = lambda: None
) -> bool:
    """Compile kernels and wait, telling of each that is done; say whether all of them are.

    Processes are started anew and not forked: a fork would inherit threads' locks.
    """
    waiting: SimpleQueue[Root] = SimpleQueue()
    for root in roots:
        waiting.put(root)
    done: SimpleQueue[bool] = SimpleQueue()
    with contextlib.ExitStack() as stack:
        for _ in range(min(n_processes, len(roots))):
            worker = stack.enter_context(_started())
            threading.Thread(target=_feed, args=(worker, waiting, done), daemon=True).start()
        results: list[bool] = []
        while len(results) < len(roots):
            results.append(done.get())
            tell()
    return all(results)


def _feed(worker: Any, waiting: SimpleQueue[Root], done: SimpleQueue[bool]) -> None:
    """Hand kernels to a process one by one; those of one that has died count as not compiled."""
    while True:
        try:
            root = waiting.get_nowait()
        except Empty:
            return
        try:
            worker.stdin.write(f"{root.name} {root.types}\n")
            worker.stdin.flush()
            done.put(worker.stdout.readline() == "done\n")
        except (OSError, ValueError):
            done.put(False)


@contextlib.contextmanager
def _started() -> Iterator[Any]:
    """A process that compiles what it is told; Ctrl-C is for us, who stop it."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    worker = subprocess.Popen(
        [sys.executable, "-P", "-c", _CODE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )
    try:
        yield worker
    finally:
        worker.kill()
        worker.communicate()


def serve() -> None:
    """Compile the kernels whose names come by standard input, one to a line."""
    for line in sys.stdin:
        root = Root(*line.rstrip("\n").split(maxsplit=1))
        try:
            root.dispatcher.compile(root.signature)
            said = "done"
        except Exception as error:  # whoever needs it will say it in full
            said = f"failed: {type(error).__name__}"
        print(said, flush=True)
