"""Emissions psi = a' u: a row a = [e; f] for each stick, a vector u = [z; v] for each step.

Of u the states z are unknown and the end v is known: 1 for a bias, then inputs; it may be empty. The
potential exp(kappa psi - omega psi^2 / 2) of a stick at a step is quadratic in z given a, and in a
given u, so that a step needs sums of omega a a' and kappa a over its sticks, and a stick sums of
omega u u' and kappa u over its steps. Given moments in place of values they serve mean field too.
Only active sticks cost. A symmetric matrix is packed: its upper triangle, row after row.

starts, nodes : (S + 1,), (starts[S],) the active sticks of step s are nodes[starts[s]:starts[s + 1]]
kappa, omega  : (starts[S],) the potentials of the active sticks
rows, steps   : (n, E), (S, E) each stick's a and each step's u, or their means
row_products  : (n, P) each a a' packed, P = E (E + 1) / 2, or their means
step_products : (S, P) each u u' packed, or their means
known         : (S, E - D) each step's v
"""

import numpy as np

from polystick.kernels import kernel, lanes, simd
from polystick.kernels.simd import LANES


@kernel
def pack_products(vectors, products):
    """Write x x' of each vector x.

    vectors, products : (n, E), (n, P)
    """
    for k in range(vectors.shape[0]):
        at = 0
        for i in range(vectors.shape[1]):
            for j in range(i, vectors.shape[1]):
                products[k, at] = vectors[k, i] * vectors[k, j]
                at += 1


@kernel
def multiply_active(starts, nodes, rows, steps, values):
    """Write the inner product of a stick's row and a step's, for the active sticks.

    Of rows and steps it is psi. Of their products, one of the two with its off-diagonal entries
    doubled, it is E psi^2.

    values : (starts[S],) out
    """
    n, width = rows.shape
    n_vectors = -(-width // LANES)
    stride = n_vectors * LANES
    padded, step, sums = np.zeros(n * stride), np.zeros(stride), np.empty(LANES)
    for k in range(n):
        for i in range(width):
            padded[k * stride + i] = rows[k, i]
    for s in range(starts.shape[0] - 1):
        for i in range(width):
            step[i] = steps[s, i]
        for at in range(starts[s], starts[s + 1]):
            first, total = nodes[at] * n_vectors, simd.splat(0.0)
            for p in range(n_vectors):
                total = simd.fma(simd.load(padded, first + p), simd.load(step, p), total)
            simd.store(sums, 0, total)
            values[at] = (sums[0] + sums[1]) + (sums[2] + sums[3]) if LANES == 4 else sums[0]


# ---- to the states


@kernel
def _sum_over_sticks(begin, end, nodes, weights, vectors, total):
    """Write the sum of weights[at] * vectors[nodes[at]] over begin <= at < end."""
    total[:] = 0.0
    whole = end - (end - begin) % 4
    for at in range(begin, whole, 4):
        k0, k1, k2, k3 = nodes[at], nodes[at + 1], nodes[at + 2], nodes[at + 3]
        w0, w1, w2, w3 = weights[at], weights[at + 1], weights[at + 2], weights[at + 3]
        for i in range(total.shape[0]):
            first = w0 * vectors[k0, i] + w1 * vectors[k1, i]
            second = w2 * vectors[k2, i] + w3 * vectors[k3, i]
            total[i] += first + second
    for at in range(whole, end):
        k0, w0 = nodes[at], weights[at]
        for i in range(total.shape[0]):
            total[i] += w0 * vectors[k0, i]


@kernel
def pull_back(starts, nodes, kappa, omega, rows, row_products, known, linear, precision, constant):
    """Write the potential of each step's states, exp(linear' z - z' precision z / 2 + constant).

    linear, precision, constant : (S, D), (S, D, D), (S,) out
    """
    g, packed = np.empty(rows.shape[1]), np.empty(row_products.shape[1])
    for s in range(linear.shape[0]):
        _sum_over_sticks(starts[s], starts[s + 1], nodes, kappa, rows, g)
        _sum_over_sticks(starts[s], starts[s + 1], nodes, omega, row_products, packed)
        constant[s] = _condition(g, packed, known[s], linear[s], precision[s])


@kernel(inline="always")
def _condition(g, packed, v, linear, precision):
    """Write h = g_z - S_zv v and J = S_zz of a quadratic in [z; v]; return what is left of it."""
    d, width = linear.shape[0], g.shape[0]
    at = 0
    for i in range(d):
        for j in range(i, d):
            precision[i, j] = precision[j, i] = packed[at]
            at += 1
        linear[i] = g[i]
        for j in range(width - d):
            linear[i] -= packed[at] * v[j]
            at += 1
    constant = 0.0
    for i in range(width - d):
        slope = g[d + i] - 0.5 * packed[at] * v[i]
        for j in range(i + 1, width - d):
            slope -= packed[at + j - i] * v[j]
        constant += slope * v[i]
        at += width - d - i
    return constant


# ---- to the rows


@kernel
def gather(starts, nodes, kappa, omega, steps, step_products, linear, precision):
    """Write each stick's sums of kappa u and omega u u' over the steps at which it is active.

    linear, precision : (n, E), (n, P) out
    """
    linear[:] = 0.0
    precision[:] = 0.0
    for s in range(starts.shape[0] - 1):
        for at in range(starts[s], starts[s + 1]):
            k, weight = nodes[at], kappa[at]
            for i in range(linear.shape[1]):
                linear[k, i] += weight * steps[s, i]
            weight = omega[at]
            for i in range(precision.shape[1]):
                precision[k, i] += weight * step_products[s, i]


@kernel
def draw_rows(prior_precision, prior_linear, linear, precision, noise, rows):
    """Write draws J^-1 h + L^-T noise of the rows, J = L L' = prior precision + precision.

    prior_precision, prior_linear : (E, E), (n, E) the prior's J and h
    linear, precision             : (n, E), (n, P) from `gather`
    noise                         : (n, E) standard normals; zeros give the mean
    rows                          : (n, E) out
    """
    n, width = rows.shape
    stride = lanes.padded(width)
    factor, x = np.zeros(stride * stride * LANES), np.empty(width * LANES)
    for first in range(0, n, LANES):
        for lane in range(LANES):
            k, at = min(first + lane, n - 1), 0
            for i in range(width):
                h = prior_linear[k, i] + linear[k, i]
                factor[(width * stride + i) * LANES + lane] = h
                for j in range(i, width):
                    entry = prior_precision[i, j] + precision[k, at]
                    factor[(j * stride + i) * LANES + lane] = entry
                    at += 1
        lanes.factor_in_place(factor, stride, stride)
        for lane in range(LANES):
            k = min(first + lane, n - 1)
            for i in range(width):
                solved = factor[(width * stride + i) * LANES + lane]
                x[i * LANES + lane] = solved + noise[k, i]
        lanes.solve_upper_in_place(factor, x, width, stride)
        for lane in range(min(LANES, n - first)):
            lanes.get(x, lane, rows[first + lane])
