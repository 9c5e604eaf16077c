"""A linear-Gaussian chain under a dense potential at each step: messages back, states forward.

It is forward filtering backward sampling with time turned round.

The states are whitened, x = root w, so that the chain is

    w_1 = start + spread u,    w_s = dynamics w_{s-1} + bias_s + e_s,    u, e_s ~ N(0, I),

and the potential of step s is exp(g' w - w' M w / 2). The potential of step s and the message from
its future make a pair (g, M) again; given the past, w_s has the precision B = I + M = L L'. The
message goes on as N = M B^-1 = I - B^-1, found without cancellation: off the diagonal the entries of
L^-1 are as small as M, and 1 - 1 / L_ii^2 comes from the excess L_ii^2 - 1, which is summed without
the one. So noise as small or as large as you like costs no digits, and no potential is inverted. A
matrix that is not positive definite leaves NaN.

linear, precision : (S, D), (S, D, D) the potentials
dynamics, bias    : (D, D), (S, D); the first bias is not read
start, spread     : (D,), (D, D)
factor            : (S, D, D) of each B the factor L' in the upper triangle and L^-1 below it
message           : (S, D) of each step the linear term g of w, at the first step of u
"""

import math

import numpy as np

from polystick.kernels import kernel
from polystick.kernels.products import (
    add_product_in_place,
    add_transposed_in_place,
    copy,
    mirror_in_place,
    multiply,
    padded,
    sandwich_in_place,
    sandwich_tiles_in_place,
    transpose_in_place,
)

# ---- one step: B = I + M


@kernel
def factor_in_place(m, excess):
    """Overwrite M, given in the upper triangle of m, with L' and L^-1; return log|B|."""
    d = m.shape[0]
    log_det, squares = 0.0, 1.0
    for i in range(d):
        whole = i - i % 4
        for p in range(0, whole, 4):
            c0, c1, c2, c3 = m[p, i], m[p + 1, i], m[p + 2, i], m[p + 3, i]
            for j in range(i, d):
                first = c0 * m[p, j] + c1 * m[p + 1, j]
                second = c2 * m[p + 2, j] + c3 * m[p + 3, j]
                m[i, j] -= first + second
        for p in range(whole, i):
            c0 = m[p, i]
            for j in range(i, d):
                m[i, j] -= c0 * m[p, j]
        excess[i] = m[i, i]
        squares *= 1.0 + excess[i]
        if i % 4 == 3:  # one logarithm serves four pivots, which is far from overflow
            log_det += math.log(squares)
            squares = 1.0
        pivot = math.sqrt(1.0 + excess[i])
        m[i, i] = pivot
        scale = 1.0 / pivot
        for j in range(i + 1, d):
            m[i, j] *= scale
    _invert_in_place(m)
    return log_det + math.log(squares)


@kernel(inline="always")
def _invert_in_place(m):
    """Write L^-1 below the diagonal of m, which holds L' above it."""
    d = m.shape[0]
    for i in range(d):
        for j in range(i):
            m[i, j] = -m[j, i] / m[j, j]
        whole = i % 4
        for p in range(whole):
            for j in range(p):
                m[i, j] -= m[p, i] * m[p, j]
        for p in range(whole, i, 4):
            c0, c1, c2, c3 = m[p, i], m[p + 1, i], m[p + 2, i], m[p + 3, i]
            for j in range(p):
                first = c0 * m[p, j] + c1 * m[p + 1, j]
                second = c2 * m[p + 2, j] + c3 * m[p + 3, j]
                m[i, j] -= first + second
            m[i, p] -= c1 * m[p + 1, p] + c2 * m[p + 2, p] + c3 * m[p + 3, p]
            m[i, p + 1] -= c2 * m[p + 2, p + 1] + c3 * m[p + 3, p + 1]
            m[i, p + 2] -= c3 * m[p + 3, p + 2]
        scale = 1.0 / m[i, i]
        for j in range(i):
            m[i, j] *= scale


@kernel(inline="always")
def shrink(m, excess, n):
    """Write N = I - B^-1 into n, given the factor in m and its excess."""
    d = m.shape[0]
    for i in range(d):
        scale = -1.0 / m[i, i]
        for j in range(i):
            n[i, j] = scale * m[i, j]
        n[i, i] = excess[i] / (1.0 + excess[i])
        whole = d - (d - i - 1) % 4
        for p in range(i + 1, whole, 4):
            c0, c1, c2, c3 = m[p, i], m[p + 1, i], m[p + 2, i], m[p + 3, i]
            for j in range(i + 1):
                first = c0 * m[p, j] + c1 * m[p + 1, j]
                second = c2 * m[p + 2, j] + c3 * m[p + 3, j]
                n[i, j] -= first + second
        for p in range(whole, d):
            c0 = m[p, i]
            for j in range(i + 1):
                n[i, j] -= c0 * m[p, j]
        for j in range(i):
            n[j, i] = n[i, j]


@kernel
def solve_half(m, x):
    """Replace x by L^-1 x."""
    d = x.shape[0]
    for i in range(d):
        x[i] /= m[i, i]
        for j in range(i + 1, d):
            x[j] -= x[i] * m[i, j]


@kernel
def solve_other_half(m, x):
    """Replace x by L^-T x."""
    for i in range(x.shape[0]):
        weight = x[i]
        x[i] = weight / m[i, i]
        for j in range(i):
            x[j] += weight * m[i, j]


@kernel
def _half_square(x):
    total = 0.0
    for value in x:
        total += value * value
    return 0.5 * total


# ---- potentials


@kernel
def whiten_potentials(root, linear, precision, white_linear, white_precision):
    """Write root' h and the upper triangle of root' J root for each step.

    root : (D, D)
    """
    n_steps, d = linear.shape
    product = np.empty((d, d))
    for s in range(n_steps):
        white_linear[s] = 0.0
        add_transposed_in_place(white_linear[s], root, linear[s])
        white_precision[s] = 0.0
        if _any(precision[s]):
            sandwich_in_place(white_precision[s], root, precision[s], product)


@kernel(inline="always")
def _any(a):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] != 0.0:
                return True
    return False


# ---- back


@kernel(inline="always")
def pass_back_in_place(dynamics, bias, start, spread, message, factor, tiled):
    """Turn potentials into messages; return the log of the integral of the chain times them.

    message : (S, D) in: the linear terms of the potentials
    factor  : (S, D, D) in: their precisions, of which the upper triangles are read
    tiled   : whether products are formed in vectors, which pays if the dynamics are not sparse
    """
    n_steps, d = message.shape
    excess, x, drift = np.empty(d), np.empty(d), np.empty(d)
    if n_steps == 0:
        return 0.0
    whole = padded(dynamics)
    n, product, spare = np.zeros_like(whole), np.empty((d, d)), np.empty((d, d))
    tiles = whole.reshape(-1), n.reshape(-1), np.empty(n.size), np.empty(n.size)
    log_integral = 0.0
    for s in range(n_steps - 1, 0, -1):
        log_integral -= 0.5 * factor_in_place(factor[s], excess)
        shrink(factor[s], excess, n)
        for i in range(d):
            x[i] = message[s, i]
        solve_half(factor[s], x)
        log_integral += _half_square(x)
        solve_other_half(factor[s], x)
        if bias[s].any():
            multiply(n, bias[s], drift)
            for i in range(d):
                log_integral += bias[s, i] * (x[i] - 0.5 * drift[i])
                x[i] -= drift[i]
        add_transposed_in_place(message[s - 1], dynamics, x)
        if tiled:
            sandwich_tiles_in_place(factor[s - 1], tiles)
        else:
            sandwich_in_place(factor[s - 1], dynamics, n, product)
    return log_integral + begin_in_place(start, spread, factor[0], message[0], product, spare)


@kernel
def begin_in_place(start, spread, m, g, product, n):
    """Turn (g, M) of w_1 = start + spread u into the message and the factor of u; return the log."""
    d = g.shape[0]
    copy(m, n)
    mirror_in_place(n)
    x, excess = np.empty(d), np.empty(d)
    multiply(n, start, x)
    log_integral = 0.0
    for i in range(d):
        log_integral += start[i] * (g[i] - 0.5 * x[i])
        x[i] = g[i] - x[i]
    g[:] = 0.0
    add_transposed_in_place(g, spread, x)
    m[:] = 0.0
    sandwich_in_place(m, spread, n, product)
    log_integral -= 0.5 * factor_in_place(m, excess)
    for i in range(d):
        x[i] = g[i]
    solve_half(m, x)
    return log_integral + _half_square(x)


# ---- forward


@kernel(inline="always")
def draw_forward(dynamics, bias, start, spread, factor, message, noise, states):
    """Write the whitened states, an affine function of the noise; zeros give the mean.

    noise, states : (S, D) standard normals; out
    """
    n_steps, d = message.shape
    x, y = np.empty(d), np.empty(d)
    for s in range(n_steps):
        if s > 0:
            multiply(dynamics, states[s - 1], x)
        for i in range(d):
            x[i] = message[s, i] + (x[i] + bias[s, i] if s > 0 else 0.0)
        solve_half(factor[s], x)
        for i in range(d):
            x[i] += noise[s, i]
        solve_other_half(factor[s], x)
        if s == 0:
            multiply(spread, x, y)
            for i in range(d):
                x[i] = start[i] + y[i]
        for i in range(d):
            states[s, i] = x[i]


@kernel(inline="always")
def moments_forward(dynamics, spread, factor, cov, cross):
    """Write the whitened covariances, in sums of squares throughout.

    cov   : (S, D, D) out: of each state
    cross : (S - 1, D, D) out: of each state after the first with the one before it
    """
    n_steps, d = factor.shape[:2]
    given_past, gain, product = np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
    for s in range(n_steps):
        _invert_precision(factor[s], product, given_past)
        if s == 0:
            copy(spread, gain)
            transpose_in_place(gain)
            cov[0] = 0.0
            sandwich_in_place(cov[0], gain, given_past, product)
        else:
            gain[:] = 0.0
            add_product_in_place(gain, dynamics, given_past, False)
            copy(given_past, cov[s])
            sandwich_in_place(cov[s], gain, cov[s - 1], product)
            transpose_in_place(product)
            copy(product, cross[s - 1])
        mirror_in_place(cov[s])


@kernel(inline="always")
def _invert_precision(m, half, inverse):
    """Write B^-1 into inverse, given the factor in m; half is scratch."""
    d = m.shape[0]
    for i in range(d):
        for j in range(d):
            half[i, j] = m[i, j] if j < i else 0.0
        half[i, i] = 1.0 / m[i, i]
    inverse[:] = 0.0
    add_product_in_place(inverse, half, half, True)
    mirror_in_place(inverse)
