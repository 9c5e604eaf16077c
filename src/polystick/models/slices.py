"""Slice sampling (Neal 2003) of a few numbers, one after another."""

import numpy as np

__all__ = ["slice_sweep"]

MOST_STEPS = 8  # outwards


def slice_sweep(log_density, point, width, rng):
    """Draw each coordinate of a point (p,) once, given the others, in random order."""
    point = np.array(point, dtype=np.float64)
    value = log_density(point)
    for i in rng.permutation(len(point)):
        point, value = _slice(log_density, point, value, i, width, rng)
    return point


def _slice(log_density, point, value, i, width, rng):
    """Return a new point along coordinate i and its log density: step out, then shrink."""

    def at(x):
        moved = point.copy()
        moved[i] = x
        return moved, log_density(moved)

    level = value - rng.standard_exponential()
    low = point[i] - width * rng.random()
    high = low + width
    n_left = int(rng.integers(MOST_STEPS))
    for _ in range(n_left):
        if at(low)[1] <= level:
            break
        low -= width
    for _ in range(MOST_STEPS - 1 - n_left):
        if at(high)[1] <= level:
            break
        high += width
    while True:
        x = rng.uniform(low, high)
        moved, found = at(x)
        if found > level:
            return moved, found
        low, high = (x, high) if x < point[i] else (low, x)
