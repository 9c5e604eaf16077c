"""Dense linear algebra that rounds alike on every processor, which BLAS and LAPACK do not.

All sums of products are tiles of a' b: BLOCK columns of a with SPAN of b, held in registers while their rows
go by in order. The matrices of a tile lie flat, in rows that are padded with zeros to whole spans. Where a
triangle is known its zeros are not read, so at the size of a law of rows this takes about as long as BLAS.

A root U is upper triangular, a = U' U. A matrix that is not positive definite leaves NaN.
"""

import math

import numpy as np

from polystick.kernels import kernel, linalg, simd
from polystick.kernels.simd import WIDTH

BLOCK = 4
SPAN = 2 * WIDTH
FULL, UPPER, LOWER = 0, 1, 2  # where a matrix is not known to be zero


@kernel
def fill_tile_scalar(left, right, rows, tile):
    """Write the sums of rows (first, one beyond the last) into a flat tile.

    left, right : (flat matrix, width, first column)
    """
    (a, a_width, p), (b, b_width, q) = left, right
    tile[:] = 0.0
    for i in range(rows[0], rows[1]):
        for c in range(BLOCK):
            for j in range(SPAN):
                tile[c * SPAN + j] += a[i * a_width + p + c] * b[i * b_width + q + j]


@kernel
def fill_tile_simd(left, right, rows, tile):
    """Do as fill_tile_scalar, without rounding products."""
    (a, a_width, p), (b, b_width, q), (low, high) = left, right, rows
    x0 = x1 = x2 = x3 = simd.splat(0.0)
    y0 = y1 = y2 = y3 = simd.splat(0.0)
    at, p = (low * b_width + q) // WIDTH, low * a_width + p
    for _ in range(low, high):
        x, y = simd.load(b, at), simd.load(b, at + 1)
        c0, c1 = simd.splat(a[p]), simd.splat(a[p + 1])
        c2, c3 = simd.splat(a[p + 2]), simd.splat(a[p + 3])
        x0, y0 = simd.fma(c0, x, x0), simd.fma(c0, y, y0)
        x1, y1 = simd.fma(c1, x, x1), simd.fma(c1, y, y1)
        x2, y2 = simd.fma(c2, x, x2), simd.fma(c2, y, y2)
        x3, y3 = simd.fma(c3, x, x3), simd.fma(c3, y, y3)
        at += b_width // WIDTH
        p += a_width
    simd.store(tile, 0, x0)
    simd.store(tile, 1, y0)
    simd.store(tile, 2, x1)
    simd.store(tile, 3, y1)
    simd.store(tile, 4, x2)
    simd.store(tile, 5, y2)
    simd.store(tile, 6, x3)
    simd.store(tile, 7, y3)


fill_tile = fill_tile_simd if simd.ENABLED else fill_tile_scalar


@kernel
def padded(x):
    """Return a matrix flat, and the width of its rows."""
    n, k = x.shape
    width = -(-k // SPAN) * SPAN
    flat = np.zeros(n * width)
    for i in range(n):
        for j in range(k):
            flat[i * width + j] = x[i, j]
    return flat, width


# sums over rows


@kernel
def product(a, b):
    """Return a' b, for a (n, k) and b (n, m)."""
    n, k, m = a.shape[0], a.shape[1], b.shape[1]
    (x, x_width), (y, y_width) = padded(a), padded(b)
    out, tile = np.empty((k, m)), np.empty(BLOCK * SPAN)
    for p in range(0, k, BLOCK):
        for q in range(0, m, SPAN):
            fill_tile((x, x_width, p), (y, y_width, q), (0, n), tile)
            for c in range(min(BLOCK, k - p)):
                for j in range(min(SPAN, m - q)):
                    out[p + c, q + j] = tile[c * SPAN + j]
    return out


@kernel
def gram(x, shape):
    """Return x' x, for x (n, k) of a shape: FULL, or UPPER or LOWER triangular."""
    n, k = x.shape
    flat, width = padded(x)
    out, tile = np.empty((k, k)), np.empty(BLOCK * SPAN)
    for p in range(0, k, BLOCK):
        high = min(p + BLOCK, n) if shape == UPPER else n
        for q in range(p // SPAN * SPAN, k, SPAN):
            low = min(q, high) if shape == LOWER else 0
            fill_tile((flat, width, p), (flat, width, q), (low, high), tile)
            for c in range(min(BLOCK, k - p)):
                for j in range(max(p + c, q), min(q + SPAN, k)):
                    out[p + c, j] = out[j, p + c] = tile[c * SPAN + j - q]
    return out


# roots and triangles


@kernel
def root(a):
    """Return U with U' U = a (k, k), of which the upper triangle is read."""
    k = a.shape[0]
    out, tile = np.zeros((k, k)), np.empty(BLOCK * SPAN)
    flat, width = padded(out)
    for p in range(0, k, BLOCK):
        last = min(p + BLOCK, k)
        for q in range(p // SPAN * SPAN, k, SPAN):
            fill_tile((flat, width, p), (flat, width, q), (0, p), tile)
            for i in range(p, last):
                for j in range(max(i, q), min(q + SPAN, k)):
                    flat[i * width + j] = a[i, j] - tile[(i - p) * SPAN + j - q]
        for i in range(p, last):
            row = flat[i * width + i : i * width + k]
            for above in range(p, i):
                at = above * width + i
                linalg.add_multiple_in_place(row, -flat[at], flat[at : at - i + k])
            pivot = math.sqrt(row[0])
            for j in range(k - i):
                row[j] /= pivot
                out[i, i + j] = row[j]
    return out


@kernel
def pivoted_root(a):
    """Return U (k, k) and an order (k,), U' U = a in this order of rows and columns.

    Each pivot is the largest variance that those before it leave.
    """
    rest, k = a.copy(), a.shape[0]
    out, order = np.zeros((k, k)), np.arange(k)
    for i in range(k):
        best = i
        for j in range(i + 1, k):
            if rest[j, j] > rest[best, best]:
                best = j
        if best != i:
            order[i], order[best] = order[best], order[i]
            for j in range(k):
                rest[i, j], rest[best, j] = rest[best, j], rest[i, j]
                out[j, i], out[j, best] = out[j, best], out[j, i]
            for j in range(k):
                rest[j, i], rest[j, best] = rest[j, best], rest[j, i]
        pivot = math.sqrt(rest[i, i])
        for j in range(i, k):
            out[i, j] = rest[i, j] / pivot
        for j in range(i + 1, k):
            linalg.add_multiple_in_place(rest[j, i:], -out[i, j], out[i, i:])
    return out, order


@kernel
def _subtract(tile, b, width, rows, q):
    """Subtract a tile from rows of a flat matrix."""
    first, last = rows
    for i in range(first, last):
        for j in range(SPAN):
            b[i * width + q + j] -= tile[(i - first) * SPAN + j]


@kernel
def _cut(flat, width, k, m):
    """Return a flat matrix without its padding."""
    out = np.empty((k, m))
    for i in range(k):
        out[i] = flat[i * width : i * width + m]
    return out


@kernel
def solve_lower(u, b, shape):
    """Return U'^-1 b, for b (k, m) that is FULL or LOWER triangular, as the result is then."""
    k, m = b.shape
    (flat, width), (x, x_width) = padded(u), padded(b)
    tile = np.empty(BLOCK * SPAN)
    for p in range(0, k, BLOCK):
        last, end = min(p + BLOCK, k), min(p + BLOCK, m) if shape == LOWER else m
        for q in range(0, end, SPAN):
            low = min(q, p) if shape == LOWER else 0
            fill_tile((flat, width, p), (x, x_width, q), (low, p), tile)
            _subtract(tile, x, x_width, (p, last), q)
        for i in range(p, last):
            row = x[i * x_width : i * x_width + end]
            for above in range(p, i):
                at = above * x_width
                linalg.add_multiple_in_place(row, -u[above, i], x[at : at + end])
            for j in range(end):
                row[j] /= u[i, i]
    return _cut(x, x_width, k, m)


@kernel
def solve_upper(lower, b, shape):
    """Return U^-1 b, for lower = U' and b (k, m) that is FULL or UPPER triangular, as the result is then."""
    k, m = b.shape
    (flat, width), (x, x_width) = padded(lower), padded(b)
    tile = np.empty(BLOCK * SPAN)
    for p in range((k - 1) // BLOCK * BLOCK, -1, -BLOCK):
        last, first = min(p + BLOCK, k), p // SPAN * SPAN if shape == UPPER else 0
        for q in range(first, m, SPAN):
            high = min(q + SPAN, k) if shape == UPPER else k
            fill_tile((flat, width, p), (x, x_width, q), (last, high), tile)
            _subtract(tile, x, x_width, (p, last), q)
        for i in range(last - 1, p - 1, -1):
            row = x[i * x_width + first : i * x_width + m]
            for below in range(i + 1, last):
                at = below * x_width
                linalg.add_multiple_in_place(row, -lower[below, i], x[at + first : at + m])
            for j in range(m - first):
                row[j] /= lower[i, i]
    return _cut(x, x_width, k, m)
