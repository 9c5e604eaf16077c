"""Weighted sums of squares and products of columns: X' diag(w) X.

The fast kernel holds a tile of sums in registers while it goes through the rows. Its scalar twin rounds
products before it adds them, so that the two agree up to rounding.

x : flat (n * wide), rows of `padded(k)` numbers of which those beyond k are 0
w : (n,)
"""

from polystick.kernels import kernel, simd
from polystick.kernels.simd import WIDTH

BLOCK = 4
SPAN = 2 * WIDTH


@kernel(inline="always")
def padded(k):
    """Return how many numbers the rows of k columns are given."""
    return -(-k // SPAN) * SPAN


@kernel
def fill_tile_scalar(x, w, wide, p, q, tile):
    """Write the sums of columns p .. p + BLOCK - 1 with q .. q + SPAN - 1 into a flat tile."""
    tile[:] = 0.0
    for i in range(w.shape[0]):
        for a in range(BLOCK):
            weight = w[i] * x[i * wide + p + a]
            for b in range(SPAN):
                tile[a * SPAN + b] += weight * x[i * wide + q + b]


@kernel
def fill_tile_simd(x, w, wide, p, q, tile):
    """Do as fill_tile_scalar."""
    a0 = b0 = c0 = d0 = simd.splat(0.0)
    a1 = b1 = c1 = d1 = simd.splat(0.0)
    at = q // WIDTH
    for i in range(w.shape[0]):
        left, right = simd.load(x, at), simd.load(x, at + 1)
        a, b = simd.splat(w[i] * x[p]), simd.splat(w[i] * x[p + 1])
        c, d = simd.splat(w[i] * x[p + 2]), simd.splat(w[i] * x[p + 3])
        a0, a1 = simd.fma(a, left, a0), simd.fma(a, right, a1)
        b0, b1 = simd.fma(b, left, b0), simd.fma(b, right, b1)
        c0, c1 = simd.fma(c, left, c0), simd.fma(c, right, c1)
        d0, d1 = simd.fma(d, left, d0), simd.fma(d, right, d1)
        at += wide // WIDTH
        p += wide
    simd.store(tile, 0, a0)
    simd.store(tile, 1, a1)
    simd.store(tile, 2, b0)
    simd.store(tile, 3, b1)
    simd.store(tile, 4, c0)
    simd.store(tile, 5, c1)
    simd.store(tile, 6, d0)
    simd.store(tile, 7, d1)


fill_tile = fill_tile_simd if simd.ENABLED else fill_tile_scalar


@kernel(inline="always")
def add_in_place(x, w, tile, gram):
    """Add the sums to the upper triangle of gram (k, k); tile (BLOCK * SPAN,) is to work in."""
    k = gram.shape[0]
    for p in range(0, k, BLOCK):
        for q in range(p // SPAN * SPAN, k, SPAN):
            fill_tile(x, w, padded(k), p, q, tile)
            for a in range(p, min(p + BLOCK, k)):
                for b in range(max(a, q), min(q + SPAN, k)):
                    gram[a, b] += tile[(a - p) * SPAN + b - q]


@kernel(inline="always")
def add_row_in_place(x, w, row, tile, out):
    """Add one row of the sums to out (k,)."""
    k = out.shape[0]
    p = row // BLOCK * BLOCK
    for q in range(0, k, SPAN):
        fill_tile(x, w, padded(k), p, q, tile)
        for b in range(q, min(q + SPAN, k)):
            out[b] += tile[(row - p) * SPAN + b - q]
