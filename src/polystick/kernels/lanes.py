"""The linear algebra of `linalg` for LANES matrices at once, one in each lane of a vector.

A matrix is a flat array of vectors in row order: its entry (i, j) is vector i * stride + j. Loops
are tiled for registers: a tile of eight sums keeps both multipliers of a core busy, and the four
rows of a panel stay in the first cache while the earlier rows stream past. Factors keep the
reciprocals of their diagonal.
"""

import math

from polystick.kernels import kernel
from polystick.kernels.simd import LANES, div, fma, fnma, load, mul, splat, sqrt, store

PANEL = 4


@kernel(inline="always")
def padded(k):
    """Return the rows of the panels that hold a matrix (k, k) and a right-hand side."""
    return -(-(k + 1) // PANEL) * PANEL


@kernel(inline="always")
def _reciprocal_sqrt(x):
    return div(splat(1.0), sqrt(x))


@kernel(inline="always")
def _factor_tile_in_place(a, i, j, stride):
    """Finish the columns j, j + 1 of the rows i .. i + 3."""
    x, y = j * stride, (j + 1) * stride
    r0 = i * stride
    r1, r2, r3 = r0 + stride, r0 + 2 * stride, r0 + 3 * stride
    a0, a1, a2, a3 = load(a, r0 + j), load(a, r1 + j), load(a, r2 + j), load(a, r3 + j)
    j1 = j + 1
    b0, b1, b2, b3 = load(a, r0 + j1), load(a, r1 + j1), load(a, r2 + j1), load(a, r3 + j1)
    for p in range(j):
        u, v = load(a, x + p), load(a, y + p)
        w = load(a, r0 + p)
        a0, b0 = fnma(w, u, a0), fnma(w, v, b0)
        w = load(a, r1 + p)
        a1, b1 = fnma(w, u, a1), fnma(w, v, b1)
        w = load(a, r2 + p)
        a2, b2 = fnma(w, u, a2), fnma(w, v, b2)
        w = load(a, r3 + p)
        a3, b3 = fnma(w, u, a3), fnma(w, v, b3)
    u, v, w = load(a, x + j), load(a, y + j), load(a, y + j1)
    a0, a1, a2, a3 = mul(a0, u), mul(a1, u), mul(a2, u), mul(a3, u)
    store(a, r0 + j, a0)
    store(a, r1 + j, a1)
    store(a, r2 + j, a2)
    store(a, r3 + j, a3)
    store(a, r0 + j1, mul(fnma(a0, v, b0), w))
    store(a, r1 + j1, mul(fnma(a1, v, b1), w))
    store(a, r2 + j1, mul(fnma(a2, v, b2), w))
    store(a, r3 + j1, mul(fnma(a3, v, b3), w))


@kernel(inline="always")
def _factor_corner_in_place(a, i, stride):
    """Finish the triangle of the rows and columns i .. i + 3."""
    r0 = i * stride
    r1, r2, r3 = r0 + stride, r0 + 2 * stride, r0 + 3 * stride
    a00 = load(a, r0 + i)
    a10, a11 = load(a, r1 + i), load(a, r1 + i + 1)
    a20, a21, a22 = load(a, r2 + i), load(a, r2 + i + 1), load(a, r2 + i + 2)
    a30, a31, a32 = load(a, r3 + i), load(a, r3 + i + 1), load(a, r3 + i + 2)
    a33 = load(a, r3 + i + 3)
    for p in range(i):
        u, v, w, x = load(a, r0 + p), load(a, r1 + p), load(a, r2 + p), load(a, r3 + p)
        a00, a10, a20, a30 = fnma(u, u, a00), fnma(v, u, a10), fnma(w, u, a20), fnma(x, u, a30)
        a11, a21, a31 = fnma(v, v, a11), fnma(w, v, a21), fnma(x, v, a31)
        a22, a32, a33 = fnma(w, w, a22), fnma(x, w, a32), fnma(x, x, a33)
    a00 = _reciprocal_sqrt(a00)
    a10, a20, a30 = mul(a10, a00), mul(a20, a00), mul(a30, a00)
    a11 = _reciprocal_sqrt(fnma(a10, a10, a11))
    a21, a31 = mul(fnma(a20, a10, a21), a11), mul(fnma(a30, a10, a31), a11)
    a22 = _reciprocal_sqrt(fnma(a21, a21, fnma(a20, a20, a22)))
    a32 = mul(fnma(a31, a21, fnma(a30, a20, a32)), a22)
    a33 = _reciprocal_sqrt(fnma(a32, a32, fnma(a31, a31, fnma(a30, a30, a33))))
    store(a, r0 + i, a00)
    store(a, r1 + i, a10)
    store(a, r1 + i + 1, a11)
    store(a, r2 + i, a20)
    store(a, r2 + i + 1, a21)
    store(a, r2 + i + 2, a22)
    store(a, r3 + i, a30)
    store(a, r3 + i + 1, a31)
    store(a, r3 + i + 2, a32)
    store(a, r3 + i + 3, a33)


@kernel(inline="always")
def factor_in_place(a, n_rows, stride):
    """Overwrite lower triangles with Cholesky factors, whose diagonals are left as reciprocals.

    n_rows is a multiple of PANEL. A right-hand side h appended as a last row k becomes (L^-1 h)':
    a forward substitution at the speed of the factorisation. Columns from k on mean nothing.
    """
    for i in range(0, n_rows, PANEL):
        for j in range(0, i, 2):
            _factor_tile_in_place(a, i, j, stride)
        _factor_corner_in_place(a, i, stride)


@kernel
def solve_upper_in_place(a, x, k, stride):
    """Replace x by L^-T x, two rows of L at a time."""
    i = k - 1
    while i > 0:
        r0, r1 = i * stride, (i - 1) * stride
        x0 = mul(load(x, i), load(a, r0 + i))
        x1 = mul(fnma(load(a, r0 + i - 1), x0, load(x, i - 1)), load(a, r1 + i - 1))
        store(x, i, x0)
        store(x, i - 1, x1)
        for p in range(i - 1):
            store(x, p, fnma(load(a, r1 + p), x1, fnma(load(a, r0 + p), x0, load(x, p))))
        i -= 2
    if i == 0:
        store(x, 0, mul(load(x, 0), load(a, 0)))


@kernel(inline="always")
def _invert_tile_in_place(a, inverse, i, j, stride):
    """Finish the columns j .. j + 3 of the rows i, i + 1 of the inverse."""
    r0, r1 = i * stride, (i + 1) * stride
    m0, m1 = r0 + j, r1 + j
    a0, a1, a2, a3 = (
        load(inverse, m0),
        load(inverse, m0 + 1),
        load(inverse, m0 + 2),
        load(inverse, m0 + 3),
    )
    b0, b1, b2, b3 = (
        load(inverse, m1),
        load(inverse, m1 + 1),
        load(inverse, m1 + 2),
        load(inverse, m1 + 3),
    )
    for p in range(j, i):
        u, v = load(a, r0 + p), load(a, r1 + p)
        q = p * stride + j
        w, x, y, z = (
            load(inverse, q),
            load(inverse, q + 1),
            load(inverse, q + 2),
            load(inverse, q + 3),
        )
        a0, a1, a2, a3 = fnma(u, w, a0), fnma(u, x, a1), fnma(u, y, a2), fnma(u, z, a3)
        b0, b1, b2, b3 = fnma(v, w, b0), fnma(v, x, b1), fnma(v, y, b2), fnma(v, z, b3)
    u, v, w = load(a, r0 + i), load(a, r1 + i), load(a, r1 + i + 1)
    a0, a1, a2, a3 = mul(a0, u), mul(a1, u), mul(a2, u), mul(a3, u)
    store(inverse, m0, a0)
    store(inverse, m0 + 1, a1)
    store(inverse, m0 + 2, a2)
    store(inverse, m0 + 3, a3)
    store(inverse, m1, mul(fnma(v, a0, b0), w))
    store(inverse, m1 + 1, mul(fnma(v, a1, b1), w))
    store(inverse, m1 + 2, mul(fnma(v, a2, b2), w))
    store(inverse, m1 + 3, mul(fnma(v, a3, b3), w))


@kernel(inline="always")
def invert_factor(a, inverse, k, stride):
    """Write L^-1 into the lower triangle of inverse; above it are zeros that its tiles rely on.

    Row k of both is read and written too when k is odd; it means nothing.
    """
    inverse[:] = 0.0
    for i in range(k + k % 2):
        store(inverse, i * stride + i, splat(1.0))
    for i in range(0, k, 2):
        for j in range(0, i + 2, PANEL):
            _invert_tile_in_place(a, inverse, i, j, stride)


@kernel(inline="always")
def _gram_tile(inverse, cov, i, j, k, stride):
    """Write the columns j .. j + 3 of the rows i, i + 1 of J^-1."""
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = splat(0.0)
    for p in range(i, k):
        row = p * stride
        u, v = load(inverse, row + i), load(inverse, row + i + 1)
        q = row + j
        w, x, y, z = (
            load(inverse, q),
            load(inverse, q + 1),
            load(inverse, q + 2),
            load(inverse, q + 3),
        )
        a0, a1, a2, a3 = fma(u, w, a0), fma(u, x, a1), fma(u, y, a2), fma(u, z, a3)
        b0, b1, b2, b3 = fma(v, w, b0), fma(v, x, b1), fma(v, y, b2), fma(v, z, b3)
    m0 = i * stride + j
    m1 = m0 + stride
    store(cov, m0, a0)
    store(cov, m0 + 1, a1)
    store(cov, m0 + 2, a2)
    store(cov, m0 + 3, a3)
    store(cov, m1, b0)
    store(cov, m1 + 1, b1)
    store(cov, m1 + 2, b2)
    store(cov, m1 + 3, b3)


@kernel(inline="always")
def gram_of_inverse(inverse, cov, k, stride):
    """Write J^-1 into the lower triangle of cov, given L^-1 with zeros above its diagonal."""
    for i in range(0, k, 2):
        for j in range(0, i + 2, PANEL):
            _gram_tile(inverse, cov, i, j, k, stride)


@kernel(inline="always")
def add_transposed_product_in_place(y, u, x):
    """Add u' x to y, where u (k, k) is an ordinary upper triangular matrix, common to the lanes."""
    for p in range(u.shape[0]):
        xp = load(x, p)
        for i in range(p, u.shape[0]):
            store(y, i, fma(splat(u[p, i]), xp, load(y, i)))


@kernel(inline="always")
def log_det(a, lane, k, stride):
    """Return log|J| of one lane; one logarithm serves eight pivots, which is far from overflow."""
    total, product = 0.0, 1.0
    for i in range(k):
        product *= a[(i * stride + i) * LANES + lane]
        if i % 8 == 7:
            total -= math.log(product)
            product = 1.0
    return 2.0 * (total - math.log(product))


@kernel
def get(a, lane, values):
    """Read one lane of the first vectors of a."""
    for i in range(values.shape[0]):
        values[i] = a[i * LANES + lane]
