"""Correlated topics on ever larger synthetic corpora: CPU time per document, and memory.

    python benchmarks/topic_scale.py [N ...]

Documents have 100 tokens each, of 10,000 words, from 50 correlated topics. Each corpus and schedule has a
process of its own, which makes the corpus, fits it by the face on one thread and says how much memory it
held at most. The warm start, whose cost is bounded, is in a column of its own.
"""

import json
import os
import resource
import subprocess
import sys
import time

import corpora
import numpy as np
import topic_report

from polystick import CorrelatedTopicModel, Gibbs, StochasticVI

SIZES = (2_000, 20_000, 200_000)
N_TOPICS = 50
MOST_GIGABYTES, MOST_GROWTH = 4.0, 1.25  # of a process; of the cost per document, from the smallest
COLUMNS = (
    "schedule",
    "documents",
    "µs per document and pass",
    "against the smallest",
    "peak memory",
    "start",
    "whole fit",
)


def make_inference(name, n):
    """Return a short schedule; small corpora are gone through more often, for steadier times."""
    more = max(1, 20_000 // n)
    if name == "Gibbs":
        return Gibbs(n_draws=3 * more, n_burn=2, n_chains=1)
    return StochasticVI(n_passes=more, n_draws=8)


def measure(name, n):
    """Fit one corpus in this process and return what it took."""
    fit(make_inference(name, 20_000), corpora.synthetic(600, n_words=500))  # compiles
    inference, counts = make_inference(name, n), corpora.synthetic(n)
    ticks, whole = fit(inference, counts)
    forgotten = getattr(inference, "n_burn", 1)
    tick = float(np.median(np.diff(ticks)[forgotten - 1 :]))
    per_pass = len(ticks) / inference.n_passes if name == "SVI" else 1
    return {
        "schedule": name,
        "n": n,
        "micros": 1e6 * tick * per_pass / n,
        "start": ticks[0] - tick,
        "whole": whole,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def fit(inference, counts):
    """Return the CPU seconds after which each step ended, and those of the whole fit."""
    start, ticks = time.process_time(), []
    CorrelatedTopicModel(
        N_TOPICS,
        inference=inference,
        random_state=0,
        n_jobs=1,
        progress=lambda _: ticks.append(time.process_time() - start),
    ).fit(counts)
    return ticks, time.process_time() - start


def in_process(name, n):
    """Measure in a fresh process, so that its memory is its own."""
    command = [sys.executable, __file__, "--measure", name, str(n)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def run(sizes=SIZES):
    """Return one record per schedule and size."""
    found = []
    for name in ("Gibbs", "SVI"):
        of_schedule = [in_process(name, n) for n in sizes]
        found += [
            {**line, "growth": line["micros"] / of_schedule[0]["micros"]} for line in of_schedule
        ]
    return found


def table(lines):
    """Return a section of the report."""
    rows = [f"## {__doc__.splitlines()[0]}", "", _row(COLUMNS), _row("---" for _ in COLUMNS)]
    for line in lines:
        growth = f"{line['growth']:.2f}{_missed(line['growth'], MOST_GROWTH)}"
        memory = f"{line['gigabytes']:.2f} GB{_missed(line['gigabytes'], MOST_GIGABYTES)}"
        times = (f"{line[name]:.1f} s" for name in ("start", "whole"))
        cells = (
            line["schedule"],
            f"{line['n']:,}",
            f"{line['micros']:.1f}",
            growth,
            memory,
            *times,
        )
        rows.append(_row(cells))
    rows += [
        "",
        f"To reach: at most {MOST_GIGABYTES:g} GB, and a cost per document that does not grow "
        f"(at most {MOST_GROWTH:g} times that of the smallest corpus).",
    ]
    return "\n".join(rows)


def _row(cells):
    return f"| {' | '.join(cells)} |"


def _missed(value, most):
    return " **missed**" if value > most else ""


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
    else:
        print(topic_report.write(table(run(tuple(map(int, sys.argv[1:])) or SIZES))))
