"""Right of the waist: Gaussian blocks. A potential comes in, psi or its moments go out.

A block is a frozen dataclass of its parameters with, as far as it has a use for them,

    draw(potential, noise)    psi given the potential, an affine function of standard normals
    moments(potential)        the same law's `Moments`, for mean field
    log_density(psi)          of psi under the block alone

`potential` is a named tuple of kappa and omega, (n, k), and stands for
exp(kappa' psi - psi' diag(omega) psi / 2). Blocks know nothing of counts, sticks or topics.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

__all__ = ["Moments", "Potential"]


class Potential(Protocol):
    """What a block is given: a named tuple of these fields, (n, k) each."""

    @property
    def kappa(self) -> np.ndarray: ...

    @property
    def omega(self) -> np.ndarray: ...

    def __iter__(self) -> Iterator[np.ndarray]: ...


class Moments(NamedTuple):
    """The moments of independent rows psi_i ~ N(mean_i, J_i^-1)."""

    mean: np.ndarray  # (n, k)
    variance: np.ndarray  # (n, k) the diagonals of the covariances
    cov_sum: np.ndarray  # (k, k) the covariances summed over the rows
    log_det: np.ndarray  # (n,) log|J_i|

    @property
    def second(self) -> np.ndarray:
        """Return E[psi^2], (n, k)."""
        return self.mean**2 + self.variance
