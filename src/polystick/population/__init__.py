"""Laws of the mean and covariance of normal rows that learn their scale.

What they have, as `NormalInverseWishart` has it, is said by `population.law`; some also have

    given(parameters)                           the conjugate law that mean and cov have given the other
                                                parameters
    move(parameters, gains, stretch, shift, rng)
                                                all rows at once, with their part of the law

`HuangWand` is for rows about zero: it has no mean, and takes the sum of outer products alone. In the room
n, K, H are rows, entries and factors.
"""

from polystick.population.huang_wand import Chance, HuangWand, Spread, SpreadFactor
from polystick.population.learned_scale import LearnedScale
from polystick.population.sparse_factors import SparseFactors

__all__ = ["Chance", "HuangWand", "LearnedScale", "SparseFactors", "Spread", "SpreadFactor"]
