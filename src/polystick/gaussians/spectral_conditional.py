"""w on a whole grid given a potential whose omega is a product over the factors of the grid.

Then A = I + P' diag(omega) P is diagonal in a basis that is a product too, so that its root and its
determinant cost small eigenproblems. The root is the symmetric one, which moves little when C does.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from polystick.gaussians import kronecker
from polystick.gaussians.kronecker import Rotation

__all__ = ["GridConditional"]


@dataclass(frozen=True, eq=False)
class GridConditional:
    """In the basis of A, v = U'w has mean `mean` and precision `eigenvalues`."""

    grid: Any
    rotation: Rotation
    turned: list  # the factors of P times the basis, for each row
    eigenvalues: np.ndarray  # (r, m_1, ..., m_F)
    mean: np.ndarray  # (r, m_1, ..., m_F)

    @classmethod
    def of(cls, grid, potential):
        """Decompose A for each row."""
        factors = kronecker.product_of_marginals(grid.fill(potential.omega))
        rotation = Rotation.of(grid.matrices, factors)
        turned, eigenvalues = rotation.turn(grid.matrices), rotation.eigenvalues
        pull = kronecker.apply(kronecker.transposed(turned), grid.fill(potential.kappa))
        return cls(grid, rotation, turned, eigenvalues, pull / eigenvalues)

    @property
    def log_normaliser(self):
        explained = np.square(self.mean) * self.eigenvalues - np.log(self.eigenvalues)
        return 0.5 * explained.reshape(len(explained), -1).sum(axis=1)

    @cached_property
    def _basis(self):
        """The factors of U times the basis of A, for each row."""
        return self.rotation.turn(self.grid.vectors)

    def _down(self, white):
        grid = white.reshape(len(white), *self.grid.shape)
        return kronecker.apply(kronecker.transposed(self._basis), grid)

    def _up(self, v):
        return kronecker.apply(self._basis, v).reshape(len(v), -1)

    def values(self, rest):
        v = self.mean + self._down(rest) / np.sqrt(self.eigenvalues)
        return self.grid.read(kronecker.apply(self.turned, v))

    def white(self, rest):
        v = self._down(rest)  # where C has no variance, w is rest
        return rest + self._up(self.mean + v / np.sqrt(self.eigenvalues) - v)

    def rest(self, white):
        v = self._down(white)
        return white + self._up((v - self.mean) * np.sqrt(self.eigenvalues) - v)
