"""Chosen cells of rows, each drawn exactly given the others of its row (`log_concave`)."""

import numpy as np

from polystick.kernels import hats, kernel, streams


@kernel(inline="always")
def _multiply(weights, table, product):
    """Write weights' table, four rows at a time."""
    k = table.shape[0]
    product[:] = 0.0
    for p in range(0, k - 3, 4):
        a, b, c, d = weights[p], weights[p + 1], weights[p + 2], weights[p + 3]
        t, u, v, w = table[p], table[p + 1], table[p + 2], table[p + 3]
        for r in range(product.shape[0]):
            product[r] += (a * t[r] + b * u[r]) + (c * v[r] + d * w[r])
    for p in range(k // 4 * 4, k):
        a, t = weights[p], table[p]
        for r in range(product.shape[0]):
            product[r] += a * t[r]


@kernel
def redraw_rows_in_place(key, rows, successes, trials, chosen, mean, precision, psi):
    """Draw each chosen split given the others of its row, psi_i ~ N(mean_i, precision^-1), one after another.

    key : uint64
    rows : (n,) uint64 ids
    successes, trials, chosen : (n, k) counts, and for which splits
    mean, precision : (1, k) of all rows or (n, k) of each, (k, k)
    psi : (n, k) in and out
    """
    n_rows, k = psi.shape
    stride = 1 if mean.shape[0] > 1 else 0
    most = min(n_rows, hats.TOGETHER)
    (y, n, given, x), (z0, z1), at, work = hats.make_room(most)
    s0, s1 = np.empty(most, np.uint64), np.empty(most, np.uint64)
    gap, pull = np.zeros((k, len(x))), np.empty(len(x))
    for start in range(0, n_rows, most):
        size = min(most, n_rows - start)
        for r in range(size):
            s0[r], s1[r] = streams.open_stream(key, rows[start + r])
        for r in range(size):
            for j in range(k):
                gap[j, r] = psi[start + r, j] - mean[stride * (start + r), j]
        for j in range(k):
            count = 0
            for r in range(size):
                at[count] = r
                count += chosen[start + r, j]
            if count == 0:
                continue
            own = precision[j, j]
            _multiply(precision[j], gap, pull)
            for i in range(count):
                r = at[i]
                y[i], n[i] = float(successes[start + r, j]), float(trials[start + r, j])
                x[i], z0[i], z1[i] = psi[start + r, j], s0[r], s1[r]
                given[i] = x[i] - pull[r] / own
            hats.draw_in_place(count, y, n, given, own, x, z0, z1, work)
            for i in range(count):
                r = at[i]
                psi[start + r, j], s0[r], s1[r] = x[i], z0[i], z1[i]
                gap[j, r] = x[i] - mean[stride * (start + r), j]
