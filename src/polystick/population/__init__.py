"""Laws of the mean and covariance of normal rows that learn their scale.

Like `NormalInverseWishart`, each has

    draw(rng)                                   parameters from the law
    start(rng)                                  parameters to start a chain from: apart, but not far out
    redraw(parameters, n, total, outer, rng)    a Gibbs step given n rows, sums of them and of outer products
    recentre(parameters, rng)                   the level that all entries of the mean share, which a softmax
                                                does not see, drawn given the rest
    given(parameters)                           the conjugate law that mean and cov have given the other
                                                parameters, where there is one

and parameters that begin with mean, cov and precision; for mean field, where there is one,

    initial_factor()                            of all parameters
    updated(factor, n, total, outer)            the best one given the rows' expected sums
    divergence(factor)                          KL(factor || law)

where factor.normal is that of mean and cov. `HuangWand` is for rows about zero: it has no mean, and takes the
sum of outer products alone. In the room n, K, H are rows, entries and factors.
"""

from polystick.population.huang_wand import Chance, HuangWand, Spread, SpreadFactor
from polystick.population.learned_scale import LearnedScale
from polystick.population.sparse_factors import SparseFactors

__all__ = ["Chance", "HuangWand", "LearnedScale", "SparseFactors", "Spread", "SpreadFactor"]
