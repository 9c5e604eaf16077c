"""Surrogate data (Murray and Adams 2010): what lets the parameters of a covariance move under strong data.

Given f = R w, surrogate data g = f + N(0, 1 / weight) say as much of f as counts would. Seen from g, w is

    v = s^(1/2) weight / (1 + weight s) U'g + (1 + weight s)^(-1/2) rest        v = U'w, C = U diag(s) U'

with `rest` standard normal, whatever the covariance. So a proposal keeps g and rest, and lets w follow the
covariance: f then stays near g, where the counts want it. Directions without variance keep their w.
"""

from typing import NamedTuple

import numpy as np

from polystick.gaussians import kronecker

__all__ = ["Spectrum", "Surrogate"]


class Spectrum(NamedTuple):
    """Eigenvalues of C and its eigenvectors, factor by factor of a grid."""

    values: np.ndarray  # (m,)
    vectors: list  # of the factors, (n, m)
    shape: tuple  # of the grid, (n, ...)

    def down(self, x):
        """Return U'x (r, m) for x (r, n)."""
        turned = kronecker.apply(kronecker.transposed(self.vectors), x.reshape(len(x), *self.shape))
        return turned.reshape(len(x), -1)

    def up(self, v):
        """Return U v (r, n)."""
        axes = [vectors.shape[1] for vectors in self.vectors]
        return kronecker.apply(self.vectors, v.reshape(len(v), *axes)).reshape(len(v), -1)


class Surrogate(NamedTuple):
    """Surrogate data and what is left of w, over the directions of w."""

    data: np.ndarray  # (r, n)
    rest: np.ndarray  # (r, n)
    weight: np.ndarray  # (r,)

    @classmethod
    def of(cls, spectrum, white, weight, noise):
        """Draw surrogate data of white (r, n), from noise of that shape."""
        v, roots = spectrum.down(white), np.sqrt(spectrum.values)
        data = spectrum.up(roots * v) + noise / np.sqrt(weight)[:, None]
        grown, mean = _seen_from(spectrum, data, weight)
        rest = white + spectrum.up((v - mean) * np.sqrt(grown) - v)
        return cls(data, rest, weight)

    def white(self, spectrum):
        """Return w (r, n) under another covariance, and log p(data) (r,) there up to a constant."""
        grown, mean = _seen_from(spectrum, self.data, self.weight)
        rest = spectrum.down(self.rest)
        white = self.rest + spectrum.up(mean + rest / np.sqrt(grown) - rest)
        explained = np.sum(np.square(mean) * grown, axis=1)
        return white, 0.5 * (explained - np.log(grown).sum(axis=1))


def _seen_from(spectrum, data, weight):
    """Return 1 + weight s (r, m) and the mean of v given the data (r, m)."""
    grown = 1.0 + weight[:, None] * spectrum.values
    mean = np.sqrt(spectrum.values) * weight[:, None] / grown * spectrum.down(data)
    return grown, mean
