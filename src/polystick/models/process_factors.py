"""Mean field for multinomial Gaussian processes.

A stick has q(f) = N(C linear, (C^-1 + diag(weights))^-1), the dual form (Opper and Archambeau 2009): nothing
inverts C. When theta moves, q(omega) is held fixed and the mean of f follows, for under strong counts it is f
and not `linear` that the counts hold: else theta could hardly move. The best weights are E[omega]. Where a
solver can treat only some weights exactly and cheaply (rank one on a grid), it takes the nearest of those if
they raise the bound, which so remains a bound. Theta, level and scale have point masses, at their most
probable values.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

MOST_STEPS = 4  # of the search for theta in one sweep
KNOWN = ("linear", "weights", "scale")  # for sure, of what is described, with the level


@dataclass(frozen=True)
class KernelFactor:
    """The point mass of theta."""

    theta: np.ndarray  # (p,)


class RowFactors(NamedTuple):
    """Each q(f_j), and the point masses of level and scale."""

    linear: np.ndarray  # (r, M)
    weights: np.ndarray  # (r, M)
    omega: np.ndarray  # (r, M) of q(omega), which is the best one for the others
    level: np.ndarray  # (r,)
    scale: np.ndarray  # (r,)


class ExpectedStatistics(NamedTuple):
    """What the global step needs."""

    blocks: tuple  # of pairs (shard, row factors)
    value: float  # the sticks' part of the bound


def moments(rows, dual):
    """Return E[psi] and E[psi^2], (r, M)."""
    mean = rows.level[:, None] + rows.scale[:, None] * dual.mean
    return mean, np.square(mean) + np.square(rows.scale[:, None]) * dual.variance
