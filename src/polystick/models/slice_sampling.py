"""Slice sampling of a few numbers: one after another (Neal 2003), or together on an ellipse."""

import numpy as np

__all__ = ["ellipse_step", "slice_sweep"]

MOST_STEPS = 8  # outwards
MOST_HALVINGS = 100  # about: what is left of a slice then is a point, and nothing moves


def slice_sweep(log_density, point, width, rng, most_steps=MOST_STEPS):
    """Draw each coordinate of a point (p,) once, given the others, in random order.

    most_steps : widths that a slice may have at the most; with 1 nothing is looked at outside the first
    """
    point = np.array(point, dtype=np.float64)
    value = log_density(point)
    for i in rng.permutation(len(point)):
        point, value = _slice(log_density, point, value, i, width, rng, most_steps)
    return point


def _slice(log_density, point, value, i, width, rng, most_steps):
    """Return a new point along coordinate i and its log density: step out, then shrink."""

    def at(x):
        moved = point.copy()
        moved[i] = x
        return moved, log_density(moved)

    level = value - rng.standard_exponential()
    low = point[i] - width * rng.random()
    high = low + width
    n_left = int(rng.integers(most_steps))
    for _ in range(n_left):
        if not at(low)[1] > level:
            break
        low -= width
    for _ in range(most_steps - 1 - n_left):
        if not at(high)[1] > level:
            break
        high += width
    for _ in range(MOST_HALVINGS):
        x = rng.uniform(low, high)
        moved, found = at(x)
        if found > level:
            return moved, found
        low, high = (x, high) if x < point[i] else (low, x)
    return point, value


def ellipse_step(log_density, point, centre, root, rng):
    """Draw a point (p,) on an ellipse about N(centre, root root'), a guess of its law."""
    now, other = np.linalg.solve(root, point - centre), rng.standard_normal(len(point))

    def excess(u, found):
        return found + 0.5 * u @ u

    level = excess(now, log_density(point)) - rng.standard_exponential()
    angle = rng.uniform(0.0, 2.0 * np.pi)
    low, high = angle - 2.0 * np.pi, angle
    for _ in range(MOST_HALVINGS):
        u = now * np.cos(angle) + other * np.sin(angle)
        moved = centre + root @ u
        if excess(u, log_density(moved)) > level:
            return moved
        low, high = (angle, high) if angle < 0.0 else (low, angle)
        angle = rng.uniform(low, high)
    return point
