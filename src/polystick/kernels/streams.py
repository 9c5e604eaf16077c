"""Random streams of 64 bits: one xoroshiro128++ generator per (key, row).

The state is two uint64 passed by value: a kernel opens the stream of a row, consumes it from left
to right and forgets it. So draws depend on the key and the row's id, never on a thread, a block or
an order.

Every function that draws returns its value followed by the new state. Normals come from a ziggurat
(Marsaglia and Tsang 2000) with 256 layers; its table is made by `tools/make_polyagamma_tables.py`.
"""

import math
from pathlib import Path

import numba
import numpy as np

from polystick.kernels import kernel

with np.load(Path(__file__).with_name("polyagamma_tables.npz"), allow_pickle=False) as _tables:
    LAYER_WIDTH = _tables["ziggurat_width"]
    LAYER_HEIGHT = _tables["ziggurat_height"]

TAIL_START = float(LAYER_WIDTH[1])
LAYER_BITS = np.uint64(255)
UNIT = 2.0**-53


def wrapping(function):
    """Let uint64 arithmetic wrap around silently where plain Python runs the kernels."""
    plain = numba.config.DISABLE_JIT  # type: ignore[attr-defined]
    return np.errstate(over="ignore")(function) if plain else function


@kernel(inline="always")
def _rotate(bits, shift):
    return (bits << np.uint64(shift)) | (bits >> np.uint64(64 - shift))


@wrapping
@kernel(forceinline=True)
def _scramble(bits):
    """Hash 64 bits to 64 bits, one to one (the finaliser of SplitMix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@wrapping
@kernel(forceinline=True)
def open_stream(key, row):
    """Return the state of the stream of a row: two independent hashes of (key, row)."""
    first = _scramble(_scramble(key) + np.uint64(0x9E3779B97F4A7C15))
    second = _scramble(first ^ np.uint64(0x6A09E667F3BCC909))
    s0 = _scramble(first ^ (row * np.uint64(0xD1B54A32D192ED03)))
    s1 = _scramble(second + row * np.uint64(0x8CB92BA72F3D8DD7))
    return s0, s1


@wrapping
@kernel(forceinline=True)
def next_bits(s0, s1):
    """Draw 64 bits (Blackman and Vigna 2021)."""
    bits = _rotate(s0 + s1, 17) + s0
    s1 ^= s0
    return bits, _rotate(s0, 49) ^ s1 ^ (s1 << np.uint64(21)), _rotate(s1, 28)


@kernel(inline="always")
def to_unit(bits):
    """Turn the upper 53 bits into a float in [0, 1); the lower 11 bits stay free for other uses."""
    return np.float64(np.int64(bits >> np.uint64(11))) * UNIT


@kernel(forceinline=True)
def uniform(s0, s1):
    """Draw a uniform on [0, 1)."""
    bits, s0, s1 = next_bits(s0, s1)
    return to_unit(bits), s0, s1


@kernel(forceinline=True)
def exponential(s0, s1):
    """Draw a standard exponential by inversion."""
    u, s0, s1 = uniform(s0, s1)
    return -math.log(1.0 - u), s0, s1


@kernel(inline="always")
def _draw_beyond(s0, s1):
    """Draw |n| of a normal given |n| > TAIL_START (Marsaglia 1964)."""
    while True:
        e, s0, s1 = exponential(s0, s1)
        y, s0, s1 = exponential(s0, s1)
        x = e / TAIL_START
        if 2.0 * y > x * x:
            return TAIL_START + x, s0, s1


@kernel
def _finish_normal(x, layer, s0, s1):
    """Settle a proposal outside the core of its layer; return (value, is accepted, state)."""
    if layer == np.uint64(0):
        n, s0, s1 = _draw_beyond(s0, s1)
        return math.copysign(n, x), True, s0, s1
    u, s0, s1 = uniform(s0, s1)
    low, high = LAYER_HEIGHT[layer], LAYER_HEIGHT[layer + np.uint64(1)]
    return x, low + u * (high - low) < math.exp(-0.5 * x * x), s0, s1


@kernel(forceinline=True)
def normal(s0, s1):
    """Draw a standard normal."""
    while True:
        bits, s0, s1 = next_bits(s0, s1)
        layer = bits & LAYER_BITS
        x = (2.0 * to_unit(bits) - 1.0) * LAYER_WIDTH[layer]
        if abs(x) < LAYER_WIDTH[layer + np.uint64(1)]:
            return x, s0, s1
        x, accepted, s0, s1 = _finish_normal(x, layer, s0, s1)
        if accepted:
            return x, s0, s1


@kernel(inline="always")
def fill_normals(key, rows, out):
    """Write standard normals into out[i], from the stream of rows[i].

    key  : uint64
    rows : (n,) uint64 ids
    out  : (n, k) float64
    """
    for i in range(out.shape[0]):
        s0, s1 = open_stream(key, rows[i])
        for j in range(out.shape[1]):
            out[i, j], s0, s1 = normal(s0, s1)


@kernel
def fill_ragged_normals(key, rows, starts, out):
    """Write standard normals into out[starts[i] : starts[i + 1]], from the stream of rows[i].

    key    : uint64
    rows   : (n,) uint64 ids
    starts : (n + 1,) int64
    out    : flat float64
    """
    for i in range(rows.shape[0]):
        if starts[i] < starts[i + 1]:
            s0, s1 = open_stream(key, rows[i])
            for j in range(starts[i], starts[i + 1]):
                out[j], s0, s1 = normal(s0, s1)
