"""Kronecker products of small matrices, and systems I + P' diag(omega) P with P such a product.

An array over a grid is (r, n_1, ..., n_F), one row after another; a matrix of a factor is (n, m), shared
by the rows, or (r, n, m), one for each. Rows are multiplied one at a time where there are two factors
or more, so their bits do not depend on the company they come in.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

__all__ = [
    "Rotation",
    "System",
    "apply",
    "marginals",
    "outer",
    "product_of_marginals",
    "squared",
    "transposed",
]


def apply(matrices, x):
    """Multiply each axis of x (r, m_1, ..., m_F) by its matrix, the last one first."""
    *others, last = matrices
    shared = last.ndim == 2
    if shared or not others:
        x = x @ last.T if shared else (x[:, None] @ last.swapaxes(1, 2))[:, 0]
    else:
        stack = x.reshape(len(x), -1, x.shape[-1])
        x = (stack @ last.swapaxes(1, 2)).reshape(*x.shape[:-1], last.shape[1])
    for axis, matrix in enumerate(others, start=1):
        before, after = x.shape[1:axis], x.shape[axis + 1 :]
        stack = x.reshape(len(x), math.prod(before), x.shape[axis], math.prod(after))
        matrix = matrix if matrix.ndim == 2 else matrix[:, None]
        x = (matrix @ stack).reshape(len(x), *before, matrix.shape[-2], *after)
    return x


def transposed(matrices):
    return [matrix.swapaxes(-1, -2) for matrix in matrices]


def squared(matrices):
    return [matrix**2 for matrix in matrices]


def marginals(x):
    """Return the sums of x (r, n_1, ..., n_F) over all axes of the grid but one, for each."""
    axes = range(1, x.ndim)
    return [x.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]


def product_of_marginals(x):
    """Return the factors (r, n) of the product that has the marginals of x; 0 if x is."""
    sums = marginals(x)
    total = sums[0].sum(axis=1, keepdims=True)
    surplus = np.where(total > 0, total, 1.0) ** (1.0 - 1.0 / len(sums))
    return [s / surplus for s in sums]


def outer(vectors):
    """Return the products (r, n_1, ..., n_F) of vectors (r, n) of the factors."""
    product, *others = vectors
    for vector in others:
        between = (1,) * (product.ndim - 1)
        product = product[..., None] * vector.reshape(len(vector), *between, vector.shape[1])
    return product


@dataclass(frozen=True, eq=False)
class System:
    """The systems A = I + P' diag(omega) P of a batch of rows."""

    matrices: list  # of the factors of P
    omega: np.ndarray  # (r, n_1, ..., n_F)

    def multiply(self, v):
        """Return A v."""
        f = apply(self.matrices, v)
        f *= self.omega
        out = apply(transposed(self.matrices), f)
        out += v
        return out

    @property
    def diagonal(self):
        return 1.0 + apply(transposed(squared(self.matrices)), self.omega)

    def take(self, rows):
        """Return the systems of some of the rows."""
        return System([m if m.ndim == 2 else m[rows] for m in self.matrices], self.omega[rows])


class Rotation(NamedTuple):
    """The eigenvectors of I + P' diag(d) P, where d is a product over the factors for each row."""

    values: list  # of the factors (r, m): the eigenvalues are 1 + their products
    vectors: list  # of the factors (r, m, m)

    @classmethod
    def of(cls, matrices, weights):
        """Decompose, from the factors P (n, m) and d (r, n)."""
        grams = [p.T @ (d[:, :, None] * p) for p, d in zip(matrices, weights)]
        return cls(*zip(*map(np.linalg.eigh, grams)))

    @property
    def eigenvalues(self):
        """Return 1 + the products of the values, (r, m_1, ..., m_F)."""
        return 1.0 + outer(self.values)

    def turn(self, matrices):
        """Return P times the eigenvectors, one for each row."""
        return [p @ v for p, v in zip(matrices, self.vectors)]
