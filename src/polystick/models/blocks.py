"""Where rows are cut into blocks."""

import itertools

import numpy as np


def evenly(work, size):
    """Return slices of about `size` items and alike work (n,), none empty, even in number for two threads.

    They are less where there are few items, or some with most of the work.
    """
    n = len(work)
    n_blocks = 1 if n <= size else 2 * -(-n // (2 * size))
    done = np.cumsum(work)
    edges = np.searchsorted(done, done[-1:] * np.arange(1, n_blocks) / n_blocks, side="right")
    places = sorted({0, *map(int, edges), n})
    return [slice(*pair) for pair in itertools.pairwise(places)] or [slice(0, 0)]
