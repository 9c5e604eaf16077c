"""How everything here is timed: functions take turns, and the least time of each counts."""

import math
import time

from threadpoolctl import threadpool_limits

CPU = time.process_time
WALL = time.perf_counter


def in_turns(*functions, clock=CPU, repeats=7, blas=None):
    """Return the least seconds of each function; the first call of each, which may compile, is not timed.

    blas : BLAS threads of each function; one unless told
    """
    best = [math.inf] * len(functions)
    for turn in range(repeats + 1):
        for i, function in enumerate(functions):
            with threadpool_limits(blas[i] if blas else 1):
                start = clock()
                function()
                seconds = clock() - start
            best[i] = min(best[i], seconds) if turn else math.inf
    return best


def record(case, ours, peer, target=None, *, unit="ms"):
    """Return a line of the report; times come in seconds."""
    scale = {"ms": 1e3, "ns": 1e9}[unit]
    return {
        "case": case,
        "ours": f"{scale * ours:.4g} {unit}",
        "peer": f"{scale * peer:.4g} {unit}",
        "ratio": peer / ours,
        "target": target,
    }
