"""A stick of a walk given the others, as one dense Gaussian: the obvious twin of kernels.walk_sticks."""

import numpy as np


def joint(starts, moves, variance, kappa, omega, place, spread, prior_precision, prior_linear):
    """Return mean and covariance of (b, x) under the potentials."""
    (n_steps, q), n = moves.shape, len(moves.T) + len(moves)
    precision, linear = np.zeros((n, n)), np.zeros(n)
    precision[:q, :q], linear[:q] = prior_precision, prior_linear
    first = {int(start): i for i, start in enumerate(starts[:-1])}
    for t in range(n_steps):
        row = np.zeros(n)  # row' (b, x) is the noise of step t, up to its mean
        row[q + t] = 1.0
        if t in first:
            precision += np.outer(row, row) / spread
            linear += row * place[first[t]] / spread
        else:
            row[q + t - 1] = -1.0
            row[:q] = -moves[t]
            precision += np.outer(row, row) / variance
        precision[q + t, q + t] += omega[t]
        linear[q + t] += kappa[t]
    cov = np.linalg.inv(precision)
    return cov @ linear, cov


def moves_of_others(starts, states, j):
    """Return the increments of the sticks but j; 0 at first steps."""
    moves = np.diff(np.delete(states, j, axis=1), axis=0, prepend=states[:1, 1:])
    moves[starts[:-1]] = 0.0
    return moves


def split_precision(cov, j):
    """Return b and s^2 of stick j given the others, and the others' own covariance."""
    others = np.delete(np.delete(cov, j, axis=0), j, axis=1)
    cross = np.delete(cov[j], j)
    tie = np.linalg.solve(others, cross)
    return tie, cov[j, j] - cross @ tie, others
