"""What sweeps and factors of multinomial dynamics hand on: parameters, rows, sums."""

from typing import NamedTuple

import numpy as np

from polystick.gaussians.dynamics import Chain
from polystick.models.chain_sums import FirstSums, PairSums
from polystick.models.memory import RecallSums


class Parameters(NamedTuple):
    """What all sequences share."""

    coefficients: np.ndarray  # (D, D + q) A and B
    dynamics_cov: np.ndarray  # (D, D)
    initial_mean: np.ndarray  # (D,)
    initial_cov: np.ndarray  # (D, D)
    emission: np.ndarray  # (k, E) rows [e; f]
    stretch: np.ndarray  # () states of the next sweep start as this many times those of the last
    bias_scale: np.ndarray = np.ones(())  # of the biases' standard deviation, where it is learned
    memory_weights: np.ndarray = np.zeros(0)  # (P,)


class Rows(NamedTuple):
    """Where the sequences of a block stand."""

    states: np.ndarray  # (S, D)


class Statistics(NamedTuple):
    """Sums over steps, u = [z_t; v_t]."""

    pairs: PairSums
    first: FirstSums
    linear: np.ndarray  # (k, E) kappa u of each stick
    precision: np.ndarray  # (k, P) omega u u' of each stick, packed
    value: float  # log likelihood given the states
    recall: RecallSums


class Prior(NamedTuple):
    """What the local steps of a sweep share."""

    chain: Chain
    push: np.ndarray  # (D, q) B
    emission: np.ndarray  # (k, E)
    white: np.ndarray  # (k, E) rows for white states
    products: np.ndarray  # (k, P) of white rows
    stretch: float
    memory_weights: np.ndarray  # (P,)


# mean field


class RowFactors(NamedTuple):
    """Each q(omega), which is what q(states) follows from."""

    tilt: np.ndarray  # (active sticks of all steps,)


class ExpectedStatistics(NamedTuple):
    """As `Statistics`, with expectations of the sums."""

    pairs: PairSums
    first: FirstSums
    linear: np.ndarray  # (k, E)
    precision: np.ndarray  # (k, P)
    value: float  # the steps' part of the bound
    n_steps: int
    mean: np.ndarray  # (D,) of E[z], all steps
    mean_outer: np.ndarray  # (D, D) of E[z] E[z]'

    @property
    def moves(self):
        """The covariance over steps of E[z]."""
        centre = self.mean / self.n_steps
        return self.mean_outer / self.n_steps - np.outer(centre, centre)


class ExpectedPrior(NamedTuple):
    """What the local steps of a sweep share."""

    chain: Chain
    push: np.ndarray  # (D, q)
    excess: np.ndarray  # (D + q, D + q) of E[W' Q^-1 W]: D K^-1
    first_constant: float  # of the bound, for each sequence
    pair_constant: float  # and for each step but the first
    rows: np.ndarray  # (k, E) E[a]
    products: np.ndarray  # (k, P) E[a a'], packed
    doubled: np.ndarray  # (k, P) the same with off-diagonal entries doubled
