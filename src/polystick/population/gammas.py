"""Inverse gammas: variances whose standard deviations are half-Cauchy or half-t given a rate."""

import numpy as np
from scipy.special import digamma, gammainc, gammaincc, gammainccinv, gammaincinv, gammaln

__all__ = ["TINY", "gamma_divergence", "inverse_gamma", "inverse_gamma_within"]

TINY = 1e-100


def inverse_gamma(shape, rate, rng):
    """Draw an inverse gamma for each rate."""
    rate = np.asarray(rate)
    return np.maximum(rate / np.maximum(rng.standard_gamma(shape, rate.shape), TINY), TINY)


def inverse_gamma_within(ends, shape, rate, rng):
    """Draw an inverse gamma for each rate, given that it lies between two ends."""
    high, low = (np.divide(rate, end) if end else np.full(np.shape(rate), np.inf) for end in ends)
    return np.clip(rate / _gamma_within(low, high, shape, rng), *ends)


def _gamma_within(low, high, shape, rng):
    """Draw standard gammas between two ends, by whichever tail tells them apart."""
    if shape == 1.0 and np.isinf(high).all():
        return low + rng.standard_exponential(np.shape(low))
    u, is_right = rng.random(np.shape(low)), low > shape
    with np.errstate(divide="ignore", over="ignore"):
        left = gammainc(shape, low) + u * (gammainc(shape, high) - gammainc(shape, low))
        right = gammaincc(shape, high) + u * (gammaincc(shape, low) - gammaincc(shape, high))
        drawn = np.where(is_right, gammainccinv(shape, right), gammaincinv(shape, left))
        # where a tail is too small a number, it is exponential on the right, a power on the left
        far = np.where(is_right, low - np.log(1.0 - u), high * u ** (1.0 / shape))
    is_told = np.where(is_right, gammaincc(shape, low), gammainc(shape, high)) > TINY
    return np.clip(np.where(is_told, drawn, far), low, high)


def gamma_divergence(shape, rate, shape0, rate0):
    """Return KL(Gamma(shape, rate) || Gamma(shape0, rate0))."""
    value = (shape - shape0) * digamma(shape) - gammaln(shape) + gammaln(shape0)
    return value + shape0 * np.log(rate / rate0) + shape * (rate0 - rate) / rate
