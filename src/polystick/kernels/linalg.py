"""Small dense linear algebra in loops: at the size of a row faster than LAPACK, and to compile.

A factor is held as L' in the upper triangle, J = L L', so that every inner loop but one runs along
a row of the array and is vectorised without reordering a sum. A matrix that is not positive
definite leaves NaN.
"""

import math

from polystick.kernels import kernel


@kernel
def add_multiple_in_place(x, factor, y):
    """Add factor times y to x."""
    for i in range(x.shape[0]):
        x[i] += factor * y[i]


@kernel
def dot(x, y):
    """Return x'y, from four sums that need not wait for each other."""
    a = b = c = d = 0.0
    whole = x.shape[0] // 4 * 4
    for i in range(0, whole, 4):
        a += x[i] * y[i]
        b += x[i + 1] * y[i + 1]
        c += x[i + 2] * y[i + 2]
        d += x[i + 3] * y[i + 3]
    for i in range(whole, x.shape[0]):
        a += x[i] * y[i]
    return (a + b) + (c + d)


@kernel
def cholesky_in_place(a):
    """Overwrite the upper triangle of a (k, k) with L'."""
    k = a.shape[0]
    for i in range(k):
        row = a[i, i:k]
        for p in range(i):
            add_multiple_in_place(row, -a[p, i], a[p, i:k])
        pivot = math.sqrt(row[0])
        for j in range(k - i):
            row[j] /= pivot


@kernel
def solve_lower_in_place(factor, x):
    """Replace x by L^-1 x."""
    k = x.shape[0]
    for i in range(k):
        x[i] /= factor[i, i]
        add_multiple_in_place(x[i + 1 : k], -x[i], factor[i, i + 1 : k])


@kernel
def solve_upper_in_place(factor, x):
    """Replace x by L^-T x."""
    for i in range(x.shape[0] - 1, -1, -1):
        total = x[i]
        for p in range(i + 1, x.shape[0]):
            total -= factor[i, p] * x[p]
        x[i] = total / factor[i, i]


@kernel(inline="always")
def invert_factor(factor, inverse):
    """Write L^-1 into the lower triangle of inverse (k, k)."""
    for i in range(factor.shape[0]):
        row = inverse[i, : i + 1]
        row[:] = 0.0
        row[i] = 1.0
        for p in range(i):
            add_multiple_in_place(row[: p + 1], -factor[p, i], inverse[p, : p + 1])
        for j in range(i + 1):
            row[j] /= factor[i, i]


@kernel(inline="always")
def gram_of_inverse(inverse, cov):
    """Write J^-1 into the lower triangle of cov (k, k), given L^-1 in that of inverse."""
    k = inverse.shape[0]
    for i in range(k):
        row = cov[i, : i + 1]
        row[:] = 0.0
        for p in range(i, k):
            add_multiple_in_place(row, inverse[p, i], inverse[p, : i + 1])


@kernel
def mirror_in_place(a):
    """Copy the lower triangle of a (k, k) to the upper one."""
    for i in range(a.shape[0]):
        for j in range(i):
            a[j, i] = a[i, j]


@kernel(inline="always")
def log_det(factor):
    """Return log|J|; one logarithm serves eight pivots, which is far from overflow."""
    total, product = 0.0, 1.0
    for i in range(factor.shape[0]):
        product *= factor[i, i]
        if i % 8 == 7:
            total += math.log(product)
            product = 1.0
    return 2.0 * (total + math.log(product))
