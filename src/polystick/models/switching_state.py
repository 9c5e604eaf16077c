"""What sweeps of dynamics that switch hand on: parameters, rows, sums."""

from typing import NamedTuple

import numpy as np

from polystick.gaussians.switching import SwitchingChain
from polystick.models import dynamics_state
from polystick.models.chain_sums import FirstSums, PairSums, added
from polystick.models.memory import RecallSums


class Parameters(NamedTuple):
    """What all sequences share."""

    coefficients: np.ndarray  # (R, D, D + q) A and B
    dynamics_cov: np.ndarray  # (R, D, D)
    initial_mean: np.ndarray  # (D,)
    initial_cov: np.ndarray  # (D, D)
    emission: np.ndarray  # (k, E)
    stretch: np.ndarray  # ()
    bias_scale: np.ndarray  # ()
    memory_weights: np.ndarray  # (P,)
    transition: np.ndarray  # (R, R), from the row to the column


class Rows(NamedTuple):
    """Where the sequences of a block stand."""

    states: np.ndarray  # (S, D)
    regimes: np.ndarray  # (S,) int32


class Statistics(NamedTuple):
    """Sums over steps; those over pairs are stacked by the regime of the later step."""

    pairs: PairSums
    first: FirstSums
    linear: np.ndarray  # (k, E)
    precision: np.ndarray  # (k, P)
    value: float
    recall: RecallSums
    moves: np.ndarray  # (R, R) how often one regime followed another

    def __add__(self, other):
        return added(self, other)


class Prior(NamedTuple):
    """What the local steps of a sweep share."""

    chain: SwitchingChain
    push: np.ndarray  # (R, D, q)
    emission: np.ndarray  # (k, E)
    products: np.ndarray  # (k, P) of its rows
    stretch: float
    memory_weights: np.ndarray  # (P,)
    transition: np.ndarray  # (R, R)

    @property
    def n_regimes(self):
        return len(self.transition)

    @property
    def initial(self):
        """The probabilities of a first regime."""
        return np.full(self.n_regimes, 1.0 / self.n_regimes)

    @property
    def shared(self):
        """What predictions from given states need, which regimes have no part in."""
        return dynamics_state.Prior(
            self.chain.chains[0], self.push[0], self.emission, self.emission, self.products,
            self.stretch, self.memory_weights,
        )  # fmt: skip

    def shifts(self, pushes):
        """Return what is added to the states under each regime, (R, S, D)."""
        return pushes @ np.swapaxes(self.push, 1, 2)
