"""Where rows are cut into blocks."""

import itertools

import numpy as np


def evenly(work, size):
    """Return slices of about `size` items and alike work (n,), even in number for two threads."""
    n = len(work)
    n_blocks = 1 if n <= size else 2 * -(-n // (2 * size))
    done = np.cumsum(work)
    edges = np.searchsorted(done, done[-1:] * np.arange(1, n_blocks) / n_blocks, side="right")
    return [slice(*pair) for pair in itertools.pairwise([0, *map(int, edges), n])]
