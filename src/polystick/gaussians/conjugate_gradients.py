"""Many symmetric positive definite systems at once, by preconditioned conjugate gradients.

Each system leaves the batch when it is solved. The batch is kept contiguous, so what is left of it
costs what it should.
"""

from typing import NamedTuple

import numpy as np

from polystick.gaussians.process import NotConverged

__all__ = ["Solution", "attempt", "solve"]


class Solution(NamedTuple):
    """The solutions, what is left of their equations, and the iterations of the slowest."""

    x: np.ndarray  # (r, ...)
    residual: np.ndarray  # (r, ...) b - A x
    n_iterations: int


def solve(system, b, limit, max_iterations, start=None):
    """Solve A x = b for each row until the error is below `limit` in the norm of A.

    The error's norm, (r' A^-1 r)^(1/2), is judged by that of the preconditioned residual r. What the
    recursion says of r is checked by b - A x before a row leaves, and a row that fails starts anew.

    system : has `multiply(v)`, `diagonal` (r, ...) and `take(rows)`
    b      : (r, ...)
    limit  : (r,)
    start  : (r, ...) guess of x
    """
    found, left = _run(system, b, limit, max_iterations, start)
    if len(left.rows) == 0:
        return found
    with np.errstate(divide="ignore"):  # a tolerance whose square is 0
        worst = np.max(np.sqrt(left.error / left.limit))
    raise NotConverged(
        f"conjugate gradients must reach their tolerance within {max_iterations} iterations; "
        f"{len(left.rows)} of {len(b)} rows have not, and the worst residual is {worst:.3g} times "
        "what is allowed; try a looser tolerance, solver='dense', or more max_iterations (of choose_family)"
    )


def attempt(system, b, error, max_iterations):
    """Return about the solutions, with an error relative to their size; good or bad, or NaN."""
    with np.errstate(all="ignore"):
        limit = error * np.sqrt(_dots(b, b / system.diagonal))
        found, left = _run(system, b, limit, max_iterations, None)
    found.x[left.rows] = left.x
    return found.x


def _run(system, b, limit, max_iterations, start):
    """Iterate; return a solution and the rows that are not solved."""
    x, residual = np.empty_like(b), np.empty_like(b)
    left = _Batch(system, b, limit**2, start)
    for n_iterations in range(max_iterations + 1):
        left.finish(x, residual)
        if len(left.rows) == 0 or n_iterations == max_iterations:
            break
        left.advance()
    return Solution(x, residual, n_iterations), left


class _Batch:
    """The rows that are not solved yet; `error` and `limit` are squares."""

    def __init__(self, system, b, limit, start):
        self.system, self.b, self.limit = system, b, limit
        self.rows = np.arange(len(b))
        self.inverse = 1.0 / system.diagonal
        self.x = self.inverse * b if start is None else start
        self.residual = b - system.multiply(self.x)
        self.direction = self.inverse * self.residual
        self.error = _dots(self.residual, self.direction)

    def advance(self):
        """Take one step of conjugate gradients."""
        p, q = self.direction, self.system.multiply(self.direction)
        step = _like(self.error / _dots(p, q), p)
        self.x += step * p
        q *= step
        self.residual -= q
        np.multiply(self.inverse, self.residual, out=q)
        error = _dots(self.residual, q)
        p *= _like(error / self.error, p)
        p += q
        self.error = error

    def finish(self, out, rest):
        """Write out the rows that are solved and keep the others; NaN is nothing to work on."""
        done = np.flatnonzero(~(self.error > self.limit))
        if len(done) == 0:
            return
        residual = self.b[done] - self.system.take(done).multiply(self.x[done])
        direction = self.inverse[done] * residual
        error = _dots(residual, direction)
        wrong = error > 4.0 * self.limit[done]  # squares: the recursion may be off by a factor of 2
        solved, again = done[~wrong], done[wrong]
        self.x[solved[np.isnan(error[~wrong])]] = np.nan
        out[self.rows[solved]], rest[self.rows[solved]] = self.x[solved], residual[~wrong]
        self.residual[again], self.direction[again] = residual[wrong], direction[wrong]
        self.error[again] = error[wrong]
        if len(solved):
            self._keep(np.delete(np.arange(len(self.rows)), solved))

    def _keep(self, kept):
        self.system = self.system.take(kept)
        for name in ("b", "limit", "rows", "inverse", "x", "residual", "direction", "error"):
            setattr(self, name, getattr(self, name)[kept])


def _dots(a, b):
    return np.vecdot(a.reshape(len(a), -1), b.reshape(len(b), -1))


def _like(numbers, a):
    return numbers.reshape(-1, *(1,) * (a.ndim - 1))
