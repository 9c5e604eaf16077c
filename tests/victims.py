"""Runs in processes of their own, to be killed.

They are forked from a server that has imported all that they need, which takes longer than they live. That
server runs nothing, and belongs to the tests of this process.
"""

import multiprocessing
import signal
import time
import warnings

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    ["pytest", "sklearn.utils.estimator_checks", "polystick.inference.stochastic"]
    + [f"polystick.estimators.{name}" for name in ("multinomial", "dynamic_topics", "process")]
    + ["polystick.baselines.topic_models"]
)


def start(run, *arguments):
    """Start run(*arguments, progress=...), which saves after each sweep; return it and its last words."""
    mine, theirs = SERVER.Pipe(duplex=False)
    victim = SERVER.Process(target=_tell, args=(theirs, run, arguments))
    victim.start()
    theirs.close()
    return victim, mine


def kill_after(sweep, run, *arguments):
    """Start a run and kill it, as by `kill -9`, just after a sweep."""
    victim, told = start(run, *arguments)
    while told.recv() != sweep:  # EOFError: it ended
        pass
    time.sleep(0.005)
    victim.kill()
    victim.join()
    told.close()
    assert victim.exitcode == -signal.SIGKILL


def _tell(connection, run, arguments):
    from polystick.inference.checkpoint import Checkpoint

    def progress(at):
        connection.send(at.sweep)
        time.sleep(0.02)

    warnings.simplefilter("ignore")
    Checkpoint.due = lambda self: True  # in this process, which has nothing else to do
    run(*arguments, progress=progress)
