"""Slow, obvious twins of the Pólya-gamma kernels."""

import math

import numpy as np
from scipy import special

SPLIT = 0.64  # Devroye's point between the two series


def draw_gamma_series(b, z, size, rng, n_terms=300):
    """Draw PG(b, z) from its definition, the rest of the series replaced by its mean."""
    k = np.arange(1, n_terms + 1) - 0.5
    weights = 1 / (2 * np.pi**2 * (k**2 + z**2 / (4 * np.pi**2)))
    full_mean = math.tanh(z / 2) / (2 * z) if z else 0.25
    draws = rng.gamma(b, size=(size, n_terms)) @ weights
    return draws + b * (full_mean - weights.sum())


def draw_devroye(b, z, size, rng):
    """Draw PG(b, z) as a sum of b draws of PG(1, z) (Polson, Scott and Windle 2013)."""
    return np.array([sum(draw_one(abs(z), rng) for _ in range(b)) for _ in range(size)])


def draw_one(z, rng):
    half = z / 2
    while True:
        x = propose(half, rng)
        u = rng.random() * coefficient(0, x)
        if accepts(u, x):
            return x / 4


def propose(half, rng):
    rate = math.pi**2 / 8 + half**2 / 2
    right = math.pi / (2 * rate) * math.exp(-rate * SPLIT)
    left = 2 * math.exp(-half) * inverse_gaussian_cdf(SPLIT, half)
    if rng.random() * (left + right) < right:
        return SPLIT + rng.exponential() / rate
    return truncated_inverse_gaussian(half, rng)


def inverse_gaussian_cdf(x, drift):
    """Return P(X <= x) for mean 1 / drift and shape 1."""
    root = math.sqrt(x)
    upper = special.log_ndtr(-(drift * x + 1) / root) + 2 * drift
    return special.ndtr((drift * x - 1) / root) + math.exp(upper)


def truncated_inverse_gaussian(drift, rng):
    """Draw an inverse Gaussian of mean 1 / drift and shape 1, given that it is below SPLIT."""
    if drift * SPLIT > 1:
        while (x := rng.wald(1 / drift, 1.0)) > SPLIT:
            pass
        return x
    while True:
        n = rng.standard_normal()
        x = 1 / n**2  # a Levy variable, tilted
        if x < SPLIT and rng.random() < math.exp(-0.5 * drift**2 * x):
            return x


def coefficient(n, x):
    """Return a_n(x) of the alternating series of the density of J*(1, 0)."""
    k = n + 0.5
    if x > SPLIT:
        return math.pi * k * math.exp(-0.5 * (k * math.pi) ** 2 * x)
    return math.pi * k * (2 / (math.pi * x)) ** 1.5 * math.exp(-2 * k**2 / x)


def accepts(u, x):
    total, n = coefficient(0, x), 0
    while True:
        n += 1
        total -= coefficient(n, x)
        if u <= total:
            return True
        n += 1
        total += coefficient(n, x)
        if u > total:
            return False


def cdf_series(x, b, z, n_terms=60):
    """Return F(x | b, z) by integrating the alternating series term by term; for small x and b."""
    n = np.arange(n_terms)
    log_weight = special.gammaln(n + b) - special.gammaln(b) - special.gammaln(n + 1)
    a = n + b / 2
    minus = special.log_ndtr(-(a - z * x) / np.sqrt(x)) - a * z
    plus = special.log_ndtr(-(a + z * x) / np.sqrt(x)) + a * z
    scale = b * (np.log1p(np.exp(-z)) + z / 2) + log_weight
    return np.sum((-1.0) ** n * (np.exp(scale + minus) + np.exp(scale + plus)))


def cdf_one(x, z, n_terms=60):
    """Return F(x | 1, z) from the poles of its Laplace transform; for large x."""
    k = np.arange(n_terms) + 0.5
    rate = (4 * np.pi**2 * k**2 + z**2) / 2
    terms = (-1.0) ** np.arange(n_terms) * 4 * np.pi * k / rate * np.exp(-rate * x)
    return 1 - np.cosh(z / 2) * terms.sum()


def cdf_fourier(x, b, z, n_points=200_000):
    """Return F(x | b, z) by Gil-Pelaez inversion with the trapezoidal rule; for b of 5 and more."""
    mean = b * (np.tanh(z / 2) / (2 * z) if z else 0.25)
    t = (np.arange(n_points) + 0.5) * 2 * np.pi / (40 * mean)
    v = np.sqrt(z**2 / 4 - 0.5j * t)
    log_phi = b * (z / 2 + np.log1p(np.exp(-z)) - v - np.log1p(np.exp(-2 * v)))
    return 0.5 - np.sum(np.imag(np.exp(log_phi - 1j * t * x)) / t) * (t[1] - t[0]) / np.pi
