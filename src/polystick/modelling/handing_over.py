"""A potential as other Gaussian software wants it: as noisy data, or as potentials of states."""

from typing import NamedTuple

import numpy as np

from polystick.augmentation import Potential
from polystick.inference.protocols import Array

__all__ = ["Observations", "as_observations", "pull_back"]


class Observations(NamedTuple):
    """Data y ~ N(psi, variance) that say of psi what a potential says."""

    values: Array
    variances: Array


def as_observations(potential: Potential, largest: float = 1e8) -> Observations:
    """Return the potential as noisy values of psi: kappa / omega with variances 1 / omega.

    Where nothing was counted omega is 0; the value there is 0, with the variance `largest`, which stands for
    infinity in software that has no word for missing. Leave such entries out where that can be done.
    """
    omega = np.maximum(potential.omega, 1.0 / largest)
    return Observations(potential.kappa / omega, 1.0 / omega)


def pull_back(
    potential: Potential, emission: Array, bias: Array | float = 0.0
) -> tuple[Array, Array]:
    """Return the potential of states z, where psi = emission z + bias: linear (n, D), precision (n, D, D).

    emission : (k, D), the same in all of n steps
    bias     : (k,) or a number
    """
    kappa, omega = potential
    linear = (kappa - omega * bias) @ emission
    return linear, np.einsum("nk,ki,kj->nij", omega, emission, emission)
