"""Products of small matrices: in loops that skip zeros, and in vectors where there are none.

A tile is WIDTH rows and as many columns of a product, whose sums stay in registers. For tiles,
matrices lie flat in rows and columns of whole vectors, with zeros in the padding. At D = 10 they take
less than half the time of the loops, whose rows are too short for the compiler's own vectors. They
need the compiler: callers ask `simd.ENABLED`.
"""

import numpy as np

from polystick.kernels import kernel
from polystick.kernels.simd import WIDTH, fma, load, splat, store

# ---- loops


@kernel
def copy(a, out):
    """Write a (D, D) into the upper left corner of out."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j]


@kernel
def add_product_in_place(out, a, b, upper):
    """Add a' b to out, or to its upper triangle only; zeros in a cost nothing."""
    d = a.shape[0]
    whole = d - d % 4
    for i in range(d):
        low = i if upper else 0
        for p in range(0, whole, 4):
            c0, c1, c2, c3 = a[p, i], a[p + 1, i], a[p + 2, i], a[p + 3, i]
            if c0 != 0.0 or c1 != 0.0 or c2 != 0.0 or c3 != 0.0:
                for j in range(low, d):
                    first = c0 * b[p, j] + c1 * b[p + 1, j]
                    second = c2 * b[p + 2, j] + c3 * b[p + 3, j]
                    out[i, j] += first + second
        for p in range(whole, d):
            c0 = a[p, i]
            if c0 != 0.0:
                for j in range(low, d):
                    out[i, j] += c0 * b[p, j]


@kernel
def transpose_in_place(a):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j], a[j, i] = a[j, i], a[i, j]


@kernel
def sandwich_in_place(out, a, n, product):
    """Add a' n a to the upper triangle of out, for n symmetric; product is scratch."""
    product[:] = 0.0
    add_product_in_place(product, a, n, False)
    transpose_in_place(product)
    add_product_in_place(out, a, product, True)


@kernel
def multiply(a, x, out):
    """Write a x into out."""
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[0]):
            total += a[i, j] * x[j]
        out[i] = total


@kernel
def add_transposed_in_place(out, a, x):
    """Add a' x to out."""
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            out[j] += x[i] * a[i, j]


@kernel
def mirror_in_place(a):
    """Copy the upper triangle of a to the lower one."""
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = a[j, i]


# ---- tiles


@kernel(inline="always")
def padded(a):
    """Return a (D, D) with zeros around it, so that rows and columns are whole vectors."""
    d = a.shape[0]
    size = -(-d // WIDTH) * WIDTH
    out = np.zeros((size, size))
    copy(a, out)
    return out


@kernel
def _multiply_tiles(a, b, out, d, upper):
    """Write a' b into out, or the tiles that hold its upper triangle only."""
    width = -(-d // WIDTH)
    one, stride = np.uint64(1), np.uint64(width * WIDTH)  # unsigned: not counted from the end
    for i in range(0, d, 4):
        for j in range(i // WIDTH if upper else 0, width):
            x0 = x1 = x2 = x3 = splat(0.0)
            at = np.uint64(i)
            for p in range(d):
                row = load(b, p * width + j)
                x0 = fma(splat(a[at]), row, x0)
                x1 = fma(splat(a[at + one]), row, x1)
                x2 = fma(splat(a[at + one + one]), row, x2)
                x3 = fma(splat(a[at + one + one + one]), row, x3)
                at += stride
            store(out, i * width + j, x0)
            store(out, (i + 1) * width + j, x1)
            store(out, (i + 2) * width + j, x2)
            store(out, (i + 3) * width + j, x3)


@kernel(inline="always")
def sandwich_tiles_in_place(out, tiles):
    """Add a' n a to the upper triangle of out (D, D), for n symmetric.

    tiles : (a, n, two to write in), each padded and flat
    """
    a, n, product, square = tiles
    d = out.shape[0]
    stride = -(-d // WIDTH) * WIDTH
    _multiply_tiles(n, a, product, d, False)
    _multiply_tiles(a, product, square, d, True)
    for i in range(d):
        for j in range(i, d):
            out[i, j] += square[i * stride + j]
