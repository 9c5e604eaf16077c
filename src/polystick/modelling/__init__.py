"""The public door for models of one's own: put any Gaussian model behind counts.

    counts -> Decomposition.split -> draw_potential -> somebody's Gaussian code -> psi -> probabilities

Two ways lead through it. Given the waist, a `Potential`, any Gaussian software does the rest:
`as_observations` hands it over as noisy data, `pull_back` as potentials of states. Or a model in the house: a
class with the methods of `GibbsModel` has chains, threads, checkpoints and diagnostics by `Gibbs.run`, and an
`Estimator` gives it a face. What is listed here is kept stable; the rooms behind it may change.
"""

from polystick.augmentation import (
    Potential,
    draw_potential,
    expected_potential,
    log_likelihood,
    site_potential,
)
from polystick.conjugate import InverseWishart, NormalInverseWishart, NormalParameters
from polystick.conjugate_dynamics import (
    DynamicsParameters,
    InverseGamma,
    MatrixNormalInverseWishart,
)
from polystick.decomposition import Decomposition, RaggedSplits, Splits, decompose
from polystick.gaussians import Moments
from polystick.gaussians.dynamics import Chain, ChainMoments
from polystick.gaussians.markov import Markov
from polystick.gaussians.noisy import Noisy
from polystick.gaussians.normal import Normal
from polystick.gaussians.process import Dense, Drawn
from polystick.gaussians.spectral import Grid, Spectral
from polystick.inference.execution import Serial, Threads
from polystick.inference.files import CheckpointError
from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from polystick.inference.posterior import Posterior
from polystick.inference.protocols import (
    BatchModel,
    Execution,
    Extras,
    GibbsModel,
    Held,
    OrderedMap,
    Shard,
    VariationalModel,
    Watch,
)
from polystick.inference.stochastic import StochasticVI
from polystick.keys import Key
from polystick.modelling.blocks import Block, cut_rows, cut_sticks
from polystick.modelling.face import CountsModel, Estimator
from polystick.modelling.handing_over import Observations, as_observations, pull_back

__all__ = [
    "BatchModel",
    "Block",
    "Chain",
    "ChainMoments",
    "CheckpointError",
    "CountsModel",
    "Decomposition",
    "Dense",
    "Drawn",
    "DynamicsParameters",
    "Estimator",
    "Execution",
    "Extras",
    "Gibbs",
    "GibbsModel",
    "Grid",
    "Held",
    "InverseGamma",
    "InverseWishart",
    "Key",
    "Markov",
    "MatrixNormalInverseWishart",
    "MeanField",
    "Moments",
    "Noisy",
    "Normal",
    "NormalInverseWishart",
    "NormalParameters",
    "Observations",
    "OrderedMap",
    "Posterior",
    "Potential",
    "RaggedSplits",
    "Serial",
    "Shard",
    "Spectral",
    "Splits",
    "StochasticVI",
    "Threads",
    "VariationalModel",
    "Watch",
    "as_observations",
    "cut_rows",
    "cut_sticks",
    "decompose",
    "draw_potential",
    "expected_potential",
    "log_likelihood",
    "pull_back",
    "site_potential",
]
