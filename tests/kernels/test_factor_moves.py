"""Factors that lean on each other: what they say of rows stays, and what they are moves."""

import numpy as np
import pytest

from polystick.kernels import factor_moves, streams

N, K, H = 12, 5, 3


@pytest.fixture
def case():
    rng = np.random.default_rng(20150618)
    z = np.column_stack([np.ones(N), rng.standard_normal((N, H))])
    d, weights = rng.standard_normal((N, K)), rng.standard_normal((K, H + 1))
    return z, d, weights, rng.standard_normal((K, H + 1)), rng.gamma(2.0, size=(K, H + 1))


class Stream:
    """A stream of the kernels, from outside."""

    def __init__(self, row):
        self.state = streams.open_stream(np.uint64(7), np.uint64(row))

    def draw(self, law):
        value, *self.state = law(*map(np.uint64, self.state))
        return value


def moved(case):
    z, d, weights, centre, known = case
    gram, cross, weights = z.T @ z, z.T @ d, weights.copy()
    factor_moves.move_in_place(np.uint64(7), gram, cross, weights, centre, known)
    return gram, cross, weights


def test_what_factors_say_of_rows_stays(case):
    z, d, weights, *_ = case
    gram, cross, after = moved(case)
    np.testing.assert_allclose(after @ cross, weights @ z.T @ d, rtol=1e-9)
    np.testing.assert_allclose(after @ gram @ after.T, weights @ z.T @ z @ weights.T, rtol=1e-9)
    np.testing.assert_allclose(gram, gram.T)
    assert gram[0, 0] == N  # the constant is no factor
    assert np.abs(after - weights).min() > 0


def test_steps_are_those_of_an_obvious_twin(case):
    """Explicit factors, the same noise, and densities written out."""
    z, d, weights, centre, known = case
    gram, cross, after = moved(case)
    z, weights = z.copy(), weights.copy()
    for h in range(1, H + 1):
        stream = Stream(h)
        for g in (p for p in range(H + 1) if p != h):
            e = stream.draw(streams.normal)
            precision = z[:, g] @ z[:, g] + known[:, g] @ weights[:, h] ** 2
            pull = known[:, g] * weights[:, h] @ (weights[:, g] - centre[:, g])
            a = (pull - z[:, g] @ z[:, h]) / precision + e / np.sqrt(precision)
            z[:, h] += a * z[:, g]
            weights[:, g] -= a * weights[:, h]
        c = _scale_of(z, weights, known, h, stream)
        z[:, h] *= c
        weights[:, h] /= c
    np.testing.assert_allclose(weights, after, rtol=1e-8)
    np.testing.assert_allclose(z.T @ z, gram, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(z.T @ d, cross, rtol=1e-8, atol=1e-9)


def _scale_of(z, weights, known, h, stream):
    """Slice log c on its density, as the kernel does."""
    square, loaded = z[:, h] @ z[:, h], known[:, h] @ weights[:, h] ** 2
    height = lambda t: (N - K) * t - 0.5 * (np.exp(2 * t) * square + np.exp(-2 * t) * loaded)
    floor = height(0.0) - stream.draw(streams.exponential)
    u = stream.draw(streams.uniform)
    width = factor_moves.WIDTH
    low, high = -u * width, (1 - u) * width
    while height(low) > floor:
        low -= width
    while height(high) > floor:
        high += width
    while True:
        t = low + stream.draw(streams.uniform) * (high - low)
        if height(t) > floor:
            return np.exp(t)
        low, high = (t, high) if t < 0 else (low, t)


def test_one_signature(case):
    moved(case)
    signatures = getattr(factor_moves.move_in_place, "signatures", [None])
    assert len(signatures) == 1
