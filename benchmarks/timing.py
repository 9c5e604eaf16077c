"""How everything here is timed: functions take turns, and the least time of each counts."""

import math
import time

import numpy as np
from threadpoolctl import threadpool_limits

CPU = time.process_time
WALL = time.perf_counter


def in_turns(*functions, clock=CPU, repeats=7, blas=None, rehearsals=1):
    """Return the least seconds of each function.

    repeats : timed calls, of all functions or one number for each; who has had his sits out
    blas : BLAS threads of each function; one unless told
    rehearsals : first calls, which may compile, that are not timed; of all functions or of each
    """
    repeats, rehearsals = (_for_each(n, functions) for n in (repeats, rehearsals))
    best = [math.inf] * len(functions)
    for turn in range(-max(rehearsals), max(repeats)):
        for i, function in enumerate(functions):
            if not -rehearsals[i] <= turn < repeats[i]:
                continue
            with threadpool_limits(blas[i] if blas else 1):
                start = clock()
                function()
                seconds = clock() - start
            best[i] = min(best[i], seconds) if turn >= 0 else math.inf
    return best


def _for_each(number, functions):
    return [number] * len(functions) if isinstance(number, int) else list(number)


def undisturbed(spent, work, n_stretches=25):
    """Return the seconds of a run as if all of it had gone like its quickest stretches, a tenth of them.

    spent, work : (n,) seconds of each step, and what it had to do, in any unit
    """
    stretches = np.array_split(np.arange(len(spent)), n_stretches)
    rates = [spent[i].sum() / work[i].sum() for i in stretches]
    return np.quantile(rates, 0.1) * work.sum()


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
