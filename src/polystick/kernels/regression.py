"""Sums over rows from which a regression with groups is drawn.

A row tells of its line b by exp(linear' b - b' weight b / 2). Its weight is packed in c numbers: the
diagonal, c = k, where entries do not meet, else the lower triangle, row by row, c = k (k + 1) / 2.
"""

import math
from typing import NamedTuple

import numpy as np

from polystick.kernels import kernel, lanes, linalg, simd
from polystick.kernels.simd import WIDTH


class Law(NamedTuple):
    """The law of B, d = q k entries, and of the groups."""

    weight: np.ndarray  # (q, k, k)
    linear: np.ndarray  # (d,)
    group_weight: np.ndarray  # (k, k)
    group_linear: np.ndarray  # (m, k)


class Told(NamedTuple):
    """What rows tell of B and of the groups."""

    weight: np.ndarray  # (d, d)
    linear: np.ndarray  # (d,)
    group_weight: np.ndarray  # (m, k, k)
    group_linear: np.ndarray  # (m, k)
    cross: np.ndarray  # (m, k, d)


@kernel
def tell_rows_scalar(kappa, omega, cov, weight, linear):
    """Write what each row tells of its line, noise ~ N(0, cov) integrated out.

    kappa, omega : (n, k) the potential of line + noise
    weight       : (n, k (k + 1) / 2) out: (cov + omega^-1)^-1, packed
    linear       : (n, k) out: (I + omega cov)^-1 kappa
    """
    n, k = kappa.shape
    root, factor, inverse, inner = np.empty(k), np.empty((k, k)), np.empty((k, k)), np.empty((k, k))
    for row in range(n):
        for i in range(k):
            root[i] = np.sqrt(omega[row, i])
        for i in range(k):
            for j in range(i, k):
                factor[i, j] = root[i] * cov[i, j] * root[j]
            factor[i, i] += 1.0
        linalg.cholesky_in_place(factor)
        linalg.invert_factor(factor, inverse)
        linalg.gram_of_inverse(inverse, inner)
        place = 0
        for i in range(k):
            for j in range(i + 1):
                weight[row, place] = root[i] * inner[i, j] * root[j]
                place += 1
        _take_away(kappa[row], cov, weight[row], linear[row])


@kernel(inline="always")
def _take_away(kappa, cov, weight, linear):
    """Write kappa - weight cov kappa into linear (k,)."""
    k, place = kappa.shape[0], 0
    for i in range(k):
        linear[i] = kappa[i]
    for i in range(k):
        mine = 0.0
        for p in range(k):
            mine += cov[i, p] * kappa[p]
        for j in range(i):
            other = 0.0
            for p in range(k):
                other += cov[j, p] * kappa[p]
            linear[i] -= weight[place] * other
            linear[j] -= weight[place] * mine
            place += 1
        linear[i] -= weight[place] * mine
        place += 1


@kernel
def tell_rows_simd(kappa, omega, cov, weight, linear):
    """Do as tell_rows_scalar, WIDTH rows at a time."""
    n, k = kappa.shape
    stride = -(-(k + 1) // lanes.PANEL) * lanes.PANEL
    size = stride * stride * WIDTH
    root, pulled = np.empty((WIDTH, k)), np.empty(k)
    factor, inverse, inner = np.zeros(size), np.empty(size), np.empty(size)
    for start in range(0, n, WIDTH):
        for lane in range(WIDTH):
            row = min(start + lane, n - 1)
            for i in range(k):
                root[lane, i] = math.sqrt(omega[row, i])
            for i in range(k):
                total = 0.0
                for j in range(k):
                    total += cov[i, j] * kappa[row, j]
                for j in range(i + 1):
                    part = root[lane, i] * cov[i, j] * root[lane, j]
                    factor[(i * stride + j) * WIDTH + lane] = part
                factor[(i * stride + i) * WIDTH + lane] += 1.0
                factor[(k * stride + i) * WIDTH + lane] = root[lane, i] * total
        lanes.factor_in_place(factor, stride, stride)
        x = factor[k * stride * WIDTH :]
        lanes.solve_upper_in_place(factor, x, k, stride)
        for lane in range(min(WIDTH, n - start)):
            lanes.get(x, lane, pulled)
            for i in range(k):
                linear[start + lane, i] = kappa[start + lane, i] - root[lane, i] * pulled[i]
        lanes.invert_factor(factor, inverse, k, stride)
        lanes.gram_of_inverse(inverse, inner, k, stride)
        for lane in range(min(WIDTH, n - start)):
            place = 0
            for i in range(k):
                for j in range(i + 1):
                    part = root[lane, i] * inner[(i * stride + j) * WIDTH + lane]
                    weight[start + lane, place] = part * root[lane, j]
                    place += 1


@kernel
def add_rows(w, group, weight, linear, pairs, lines, group_weight, group_linear, cross):
    """Add up what rows tell of B (q, k), of their groups, and of both; psi_i = B' w_i + U[g_i].

    w              : (n, q)
    group          : (n,) from 0 to m - 1; not read where m = 0
    weight, linear : (n, c), (n, k) of the rows
    pairs          : (q, q c) added to, of columns a and b <= a; or none, (0, q c)
    lines          : (q, k) added to
    group_weight, group_linear, cross : (m, c), (m, k), (m, q c) added to
    """
    n, q = w.shape
    c, k, m = weight.shape[1], linear.shape[1], group_weight.shape[0]
    told = np.empty(q * c)
    for row in range(n):
        for a in range(q):
            x = w[row, a]
            for p in range(c):
                told[a * c + p] = x * weight[row, p]
            for j in range(k):
                lines[a, j] += x * linear[row, j]
        for a in range(len(pairs)):
            x = w[row, a]
            for p in range((a + 1) * c):
                pairs[a, p] += x * told[p]
        if m:
            g = group[row]
            for p in range(q * c):
                cross[g, p] += told[p]
            for p in range(c):
                group_weight[g, p] += weight[row, p]
            for j in range(k):
                group_linear[g, j] += linear[row, j]


@kernel
def unpack_pairs(pairs, whole):
    """Write the sums of pairs of columns (q, q c) into whole (q, k, q, k), which is 0."""
    q, k = whole.shape[0], whole.shape[1]
    c = pairs.shape[1] // q
    for a in range(q):
        for b in range(a + 1):
            place = b * c
            for i in range(k):
                for j in range(i if c == k else 0, i + 1):
                    value = pairs[a, place]
                    whole[a, i, b, j] = value
                    whole[a, j, b, i] = value
                    whole[b, i, a, j] = value
                    whole[b, j, a, i] = value
                    place += 1


@kernel
def unpack_groups(packed, cross, group_weight, whole):
    """Write sums of groups into group_weight (m, k, k) and whole (m, k, q, k), which are 0.

    packed, cross : (m, c), (m, q c)
    """
    m, k, q = whole.shape[0], whole.shape[1], whole.shape[2]
    c = packed.shape[1]
    for g in range(m):
        place = 0
        for i in range(k):
            for j in range(i if c == k else 0, i + 1):
                group_weight[g, i, j] = packed[g, place]
                group_weight[g, j, i] = packed[g, place]
                for a in range(q):
                    whole[g, i, a, j] = cross[g, a * c + place]
                    whole[g, j, a, i] = cross[g, a * c + place]
                place += 1


@kernel(inline="always")
def eliminate_groups(group_weight, group_linear, cross, factor, half, half_linear):
    """Write factors of the groups, group_weight = L L', with L^-1 cross and L^-1 group_linear.

    group_weight, group_linear, cross : (m, k, k), (m, k), (m, k, q k)
    factor, half, half_linear         : of the same shapes, out; factor holds L' in its upper triangle
    """
    m, k = group_linear.shape
    for g in range(m):
        for i in range(k):
            for j in range(i, k):
                factor[g, i, j] = group_weight[g, i, j]
        linalg.cholesky_in_place(factor[g])
        for i in range(k):
            half_linear[g, i] = group_linear[g, i]
            mine = half[g, i]
            for a in range(mine.shape[0]):
                mine[a] = cross[g, i, a]
            for p in range(i):
                part = factor[g, p, i]
                half_linear[g, i] -= part * half_linear[g, p]
                linalg.add_multiple_in_place(mine, -part, half[g, p])
            scale = 1.0 / factor[g, i, i]
            half_linear[g, i] *= scale
            for a in range(mine.shape[0]):
                mine[a] *= scale


@kernel
def solve_groups_in_place(factor, x):
    """Replace each x[g] (k,) by L^-T x[g]."""
    for g in range(x.shape[0]):
        linalg.solve_upper_in_place(factor[g], x[g])


@kernel(inline="always")
def _take_groups_away(half, half_linear, system, linear):
    """Take half' half from the upper triangle of system (d, d), and half' half_linear from linear (d,).

    half, half_linear : (r, d), (r,)
    """
    r, d = half.shape
    for a in range(d):
        row, p = system[a, a:], 0
        while p + 4 <= r:  # four at a time, so that the row is read and written a quarter as often
            h0, h1, h2, h3 = half[p, a], half[p + 1, a], half[p + 2, a], half[p + 3, a]
            b0, b1, b2, b3 = half[p, a:], half[p + 1, a:], half[p + 2, a:], half[p + 3, a:]
            for c in range(row.shape[0]):
                row[c] -= h0 * b0[c] + h1 * b1[c] + h2 * b2[c] + h3 * b3[c]
            p += 4
        for rest in range(p, r):
            linalg.add_multiple_in_place(row, -half[rest, a], half[rest, a:])
    for p in range(r):
        linalg.add_multiple_in_place(linear, -half_linear[p], half[p])


@kernel(inline="always")
def draw_line(law, told, precision, noise, group_noise, b, groups):
    """Draw B (d,), d = q k, and the groups (m, k), affine functions of standard normals.

    law, told          : Law and Told
    precision          : (k, k) of the groups, in the place of the law's
    noise, group_noise : (d,), (m, k)
    b, groups          : (d,), (m, k) out
    """
    (m, k), d = groups.shape, b.shape[0]
    system, half_linear, x = np.empty((d, d)), np.empty((m, k)), np.empty(d)
    factor, half, of_groups = np.empty((m, k, k)), np.empty((m, k, d)), np.empty((m, k, k))
    for row in range(d):
        a = row // k
        for other in range(row, d):
            system[row, other] = told.weight[row, other]
        for j in range(row - a * k, k):
            system[row, a * k + j] += law.weight[a, row - a * k, j]
        x[row] = told.linear[row] + law.linear[row]
    for g in range(m):
        for i in range(k):
            groups[g, i] = told.group_linear[g, i] + law.group_linear[g, i]
            for j in range(k):
                of_groups[g, i, j] = told.group_weight[g, i, j] + precision[i, j]
    eliminate_groups(of_groups, groups, told.cross, factor, half, half_linear)
    _take_groups_away(half.reshape(m * k, d), half_linear.reshape(m * k), system, x)
    linalg.cholesky_in_place(system)
    linalg.solve_lower_in_place(system, x)
    for a in range(d):
        b[a] = x[a] + noise[a]
    linalg.solve_upper_in_place(system, b)
    for g in range(m):
        for i in range(k):
            groups[g, i] = half_linear[g, i] + group_noise[g, i] - linalg.dot(half[g, i], b)
        linalg.solve_upper_in_place(factor[g], groups[g])


tell_rows = tell_rows_simd if simd.ENABLED else tell_rows_scalar
