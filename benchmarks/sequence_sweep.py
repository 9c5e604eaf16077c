"""CPU seconds of a sweep of MultinomialLDS, and of a prediction, as sequences and vocabularies grow.

The State of the Union as one sequence of its 1000 commonest words, by default (a balanced tree, a memory,
10 states), one thread: the quickest of some sweeps. Then `predict_proba` of a step for each posterior draw
with 10,000 categories of Zipf's law, the quickest of some runs.

    python benchmarks/sequence_sweep.py
"""

import time

import numpy as np
from sequence_text import commonest, read_addresses

from polystick import Gibbs, MultinomialLDS

SIZES, N_SWEEPS, K_MANY, N_DRAWS = (20_000, 50_000, 100_000, 200_000), 6, 10_000, 8


def sweep_seconds(tokens):
    """Return the CPU seconds of the quickest sweep after the first."""
    ends = []
    face = MultinomialLDS(
        n_categories=1000, inference=Gibbs(1, N_SWEEPS, n_chains=1), random_state=0, n_jobs=1,
        progress=lambda _: ends.append(time.process_time()),
    )  # fmt: skip
    face.fit(tokens)
    return np.diff(ends).min()


def prediction_seconds(memory, n_steps=200):
    """Return the CPU seconds of a step and draw, of the quickest of some runs."""
    chances = 1.0 / np.arange(1, K_MANY + 1)
    tokens = np.random.default_rng(0).choice(K_MANY, 5000, p=chances / chances.sum())
    face = MultinomialLDS(
        n_categories=K_MANY, memory=memory, inference=Gibbs(N_DRAWS, 4, n_chains=1),
        random_state=0, n_jobs=1,
    ).fit(tokens)  # fmt: skip
    found = []
    for _ in range(6):
        start = time.process_time()
        face.predict_proba(tokens[:n_steps], n_draws=N_DRAWS)
        found.append((time.process_time() - start) / (n_steps * N_DRAWS))
    return min(found)


if __name__ == "__main__":
    words = commonest(read_addresses())
    print("| tokens | CPU s a sweep | µs a token |\n|---|---|---|")
    for size in SIZES:
        seconds = sweep_seconds(words[:size])
        print(f"| {size:,} | {seconds:.3f} | {1e6 * seconds / size:.2f} |", flush=True)
    for memory in (None, "both"):
        print(f"memory={memory!r}: {1e3 * prediction_seconds(memory):.2f} ms a step and draw")
