"""The laws of the parameters of multinomial dynamics under mean field."""

from dataclasses import dataclass, replace

import numpy as np

from polystick.conjugate import NormalInverseWishart
from polystick.conjugate_dynamics import MatrixNormalInverseWishart


@dataclass(frozen=True, eq=False)
class EmissionFactor:
    """Normal laws of the rows a_j."""

    mean: np.ndarray  # (k, E)
    cov: np.ndarray  # (k, E, E)

    @classmethod
    def natural(cls, linear, precision):
        """Build the laws of J (k, E, E) and h (k, E)."""
        cov = np.linalg.inv(precision)
        cov = 0.5 * (cov + cov.swapaxes(1, 2))
        return cls(np.einsum("kij,kj->ki", cov, linear), cov)

    @property
    def variance(self):
        """Each Var[a_ji], (k, E)."""
        return np.diagonal(self.cov, axis1=1, axis2=2)

    @property
    def second(self):
        """Each E[a a'], (k, E, E)."""
        return self.cov + outer(self.mean)

    def kl(self, centre, scales):
        """Return KL(self || N(centre, diag(scales^2)))."""
        spread = (self.variance + (self.mean - centre) ** 2) / scales**2
        log_ratio = (
            2.0 * len(self.mean) * np.log(scales).sum() - np.linalg.slogdet(self.cov)[1].sum()
        )
        return 0.5 * (np.sum(spread - 1.0) + log_ratio)

    def draw(self, rng):
        """Draw the rows."""
        noise = rng.standard_normal(self.mean.shape)
        return self.mean + np.einsum("kij,kj->ki", np.linalg.cholesky(self.cov), noise)


@dataclass(frozen=True, eq=False)
class DynamicsFactor:
    """The laws of all parameters."""

    dynamics: MatrixNormalInverseWishart
    initial: NormalInverseWishart
    emission: EmissionFactor
    moves: (
        np.ndarray
    )  # (D, D) the covariance over steps of E[z], which says whether states are used

    def rescaled(self, c):
        """Return the laws that belong to c times the states."""
        dynamics, initial, emission = self.dynamics, self.initial, self.emission
        d, p = dynamics.mean.shape
        along = np.where(np.arange(p) < d, c, 1.0)
        by = np.where(np.arange(emission.mean.shape[1]) < d, 1.0 / c, 1.0)
        return DynamicsFactor(
            replace(
                dynamics,
                mean=dynamics.mean * (c / along),
                strength=dynamics.strength * np.outer(along, along),
                scale=c * c * dynamics.scale,
            ),
            replace(initial, mean=c * initial.mean, scale=c * c * initial.scale),
            EmissionFactor(emission.mean * by, emission.cov * np.outer(by, by)),
            c * c * self.moves,
        )

    @property
    def largest_move(self):
        """Return the standard deviation over steps of what states add to E[psi], where it is largest."""
        e = self.emission.mean[:, : len(self.moves)]
        return float(np.sqrt(np.einsum("kd,de,ke->k", e, self.moves, e).max()))


def outer(vectors):
    """Return x x' of each row x."""
    return vectors[:, :, None] * vectors[:, None, :]


def packed_matrices(matrices):
    """Pack symmetric matrices (n, E, E): upper triangles, row after row."""
    at = np.triu_indices(matrices.shape[1])
    return np.ascontiguousarray(matrices[:, *at])


def unpacked(packed, width):
    """Undo `packed_matrices`."""
    at = np.triu_indices(width)
    matrices = np.empty((len(packed), width, width))
    matrices[:, *at] = packed
    matrices[:, *at[::-1]] = packed
    return matrices
