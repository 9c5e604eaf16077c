"""Run every benchmark and write RESULTS.md beside this file.

    python benchmarks/run.py [NAME ...]        for example: polyagamma_draws

Ours and the peer take turns in one process and the least time of each counts, so the ratios hold on a
noisy machine; two-thread lines are wall times and need two idle cores. The topic sweeps need the shared
data (POLYSTICK_DATA), and so do those of sequences; topic_scores.py, topic_scale.py and mixing.py take long
and have reports of their own. Where a peer is not installed its cases are left out, with a sentence.
"""

import importlib.metadata
import os
import platform
import sys
from pathlib import Path

import corpora
import diagnostics
import dynamics_chain
import dynamics_sweep
import gaussian_rows
import multinomial_sweep
import polyagamma_draws
import process_mixing
import process_solvers
import sequence_baselines
import topic_sweep

import polystick

HERE = Path(__file__).parent
MODULES = (
    polyagamma_draws,
    gaussian_rows,
    multinomial_sweep,
    topic_sweep,
    process_solvers,
    process_mixing,
    dynamics_chain,
    dynamics_sweep,
    sequence_baselines,
    diagnostics,
)
PEERS = (
    "numpy", "scipy", "numba", "polyagamma", "tomotopy", "scikit-learn", "jax", "numpyro", "dynamax",
    "hmmlearn", "particles",
)  # fmt: skip


def section(module):
    """Return a section of the report; what lacks its data says so."""
    title = module.__doc__.split("\n")[0]
    try:
        return f"## {title}\n\n{table(module.run())}"
    except corpora.MissingDataError as error:
        return f"## {title}\n\nSkipped: {error}."


def table(lines):
    """Return records as a table, and sentences below it."""
    sentences = [line for line in lines if isinstance(line, str)]
    records = [line for line in lines if not isinstance(line, str)]
    return "\n\n".join(([_table(records)] if records else []) + sentences)


def _table(lines):
    rows = ["| case | ours | peer | ratio | to reach |", "|---|---|---|---|---|"]
    for line in lines:
        target = f"{line['target']:.3g}x" if line["target"] else ""
        missed = " **missed**" if line["target"] and line["ratio"] < line["target"] else ""
        times = f"{line['ours']} | {line['peer']}"
        rows.append(f"| {line['case']} | {times} | {line['ratio']:.2f}x{missed} | {target} |")
    return "\n".join(rows)


def machine():
    installed = {one.name: one.version for one in importlib.metadata.distributions()}
    versions = ", ".join(f"{name} {installed[name]}" for name in PEERS if name in installed)
    cpu = next(
        (line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")), "?"
    )
    return (
        f"polystick {polystick.__version__}, Python {platform.python_version()}, {versions}; "
        f"{cpu}, {os.cpu_count()} cores."
    )


def _cpuinfo():
    path = Path("/proc/cpuinfo")
    return path.read_text().split("\n") if path.exists() else []


def main(names):
    chosen = [m for m in MODULES if not names or m.__name__ in names]
    sections = []
    for module in chosen:
        print(f"{module.__name__} ...", file=sys.stderr, flush=True)
        sections.append(section(module))
        print(sections[-1], flush=True)
    if not names:
        head = "# Benchmarks\n\nWritten by `make bench`: ours and the peer in turns, in one process, minima."
        text = "\n\n".join([f"{head} {machine()}", *sections])
        (HERE / "RESULTS.md").write_text(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
