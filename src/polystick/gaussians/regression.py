"""Regression with groups: psi_i = B' w_i + U[g_i] + e_i, with B and U drawn at once and e integrated out.

Each row tells of its line b = B' w_i + U[g_i] by exp(linear_i' b - b' weight_i b / 2). With noise
e_i ~ N(0, cov) behind a potential (kappa, omega) these are

    weight = (cov + omega^-1)^-1,      linear = (I + omega cov)^-1 kappa,

formed so that nothing divides by omega. The groups of one factor share no rows, so they are eliminated first,
one k x k system for each; B then has the Schur complement. Groups of other factors are columns of w.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

__all__ = ["GroupRows", "Prior", "Sums", "draw", "group_rows", "row_sums", "tell_of_line"]


class GroupRows(NamedTuple):
    """Which rows of a block belong to which group of the factor that is eliminated."""

    order: np.ndarray  # (n,) rows, sorted by group
    starts: np.ndarray  # (m,) where each of the block's groups starts in that order
    groups: np.ndarray  # (m,) which they are


class Sums(NamedTuple):
    """What the rows of a block tell of B (q, k) and of its groups."""

    weight: np.ndarray  # (q, k, q, k)
    linear: np.ndarray  # (q, k)
    group_weight: np.ndarray  # (m, k, k)
    group_linear: np.ndarray  # (m, k)
    cross: np.ndarray  # (m, q, k, k) of B with each group
    groups: np.ndarray  # (m,)


class Prior(NamedTuple):
    """A normal law of B and of the groups, all entries of one column of w apart from the others'."""

    weight: np.ndarray  # (q, k, k)
    linear: np.ndarray  # (q, k)
    group_weight: np.ndarray  # (k, k)
    group_linear: np.ndarray  # (G, k)


def group_rows(group):
    """Return where the rows of each group are; `group` (n,) whole numbers."""
    order = np.argsort(group, kind="stable")
    groups, starts = np.unique(group[order], return_index=True)
    return GroupRows(order, starts, groups)


def tell_of_line(potential, cov):
    """Return weight (n, k, k) and linear (n, k) of each row's line, noise integrated out.

    cov : (k, k) of noise; None where there is none
    """
    kappa, omega = potential
    n, k = omega.shape
    if cov is None:
        weight = np.zeros((n, k, k))
        weight[:, np.arange(k), np.arange(k)] = omega
        return weight, kappa
    root = np.sqrt(omega)
    inner = root[:, :, None] * cov * root[:, None]
    inner[:, np.arange(k), np.arange(k)] += 1.0
    right = np.zeros((n, k, k + 1))
    right[:, np.arange(k), np.arange(k)] = root
    right[:, :, k] = root * (kappa @ cov)
    solved = root[:, :, None] * np.linalg.solve(inner, right)
    weight = solved[:, :, :k]
    return 0.5 * (weight + weight.transpose(0, 2, 1)), kappa - solved[:, :, k]


def row_sums(w, rows, weight, linear):
    """Return what rows tell of B and of their groups; w (n, q), rows: `GroupRows` or None."""
    q, k = w.shape[1], linear.shape[1]
    whole = np.empty((q, k, q, k))
    for j in range(k):
        for m in range(j, k):
            part = (w.T * weight[:, j, m]) @ w
            whole[:, j, :, m] = part
            whole[:, m, :, j] = part
    if rows is None:
        none = np.zeros((0, k, k)), np.zeros((0, k)), np.zeros((0, q, k, k)), np.zeros(0, int)
        return Sums(whole, w.T @ linear, *none)
    order, starts, groups = rows
    own = weight[order]
    crossed = w[order][:, :, None, None] * own[:, None]
    return Sums(
        whole,
        w.T @ linear,
        np.add.reduceat(own, starts, axis=0),
        np.add.reduceat(linear[order], starts, axis=0),
        np.add.reduceat(crossed, starts, axis=0),
        groups,
    )


def draw(prior, sums, noise, group_noise):
    """Draw B (q, k) and the groups (G, k), affine functions of standard normals of these shapes.

    sums : of each block, in order
    """
    (q, k), n_groups = prior.linear.shape, len(prior.group_linear)
    weight, linear = np.zeros((q, k, q, k)), prior.linear.copy()
    weight[np.arange(q), :, np.arange(q)] = prior.weight
    own = np.tile(prior.group_weight, (n_groups, 1, 1))
    group_linear, cross = prior.group_linear.copy(), np.zeros((n_groups, q, k, k))
    for part in sums:
        weight += part.weight
        linear += part.linear
        own[part.groups] += part.group_weight
        group_linear[part.groups] += part.group_linear
        cross[part.groups] += part.cross
    weight, linear = weight.reshape(q * k, q * k), linear.ravel()
    cross = cross.reshape(n_groups, q * k, k)
    if n_groups:
        gain = np.linalg.solve(own, cross.transpose(0, 2, 1))  # (G, k, q k)
        weight = weight - np.tensordot(cross, gain, axes=([0, 2], [0, 1]))
        linear = linear - np.einsum("gjb,gj->b", gain, group_linear)
    root = np.linalg.cholesky(0.5 * (weight + weight.T))
    half = solve_triangular(root, linear, lower=True) + noise.ravel()
    b = solve_triangular(root, half, lower=True, trans=1)
    if not n_groups:
        return b.reshape(q, k), np.zeros((0, k))
    rest = group_linear - np.einsum("gbj,b->gj", cross, b)
    roots = np.linalg.cholesky(own)
    halves = np.linalg.solve(roots, rest[:, :, None]) + group_noise[:, :, None]
    groups = np.linalg.solve(roots.transpose(0, 2, 1), halves)[:, :, 0]
    return b.reshape(q, k), groups
