"""Compositions over time: the states are psi itself, which walk or return to a level::

psi_1 ~ N(mean, cov),   mean, cov ~ NIW(initial_prior)
psi_t = psi_{t-1} + N(0, Q)               a walk: Q ~ InverseWishart(that of dynamics_prior)
psi_t = A psi_{t-1} + b + N(0, Q)         or autoregression: [A b], Q ~ MNIW(dynamics_prior)

The rest is `MultinomialDynamics`, with the identity for the emission.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polystick.conjugate import NormalInverseWishart
from polystick.models.dynamics import MultinomialDynamics


@dataclass(frozen=True)
class CompositionDynamics(MultinomialDynamics):
    """The model; it has a state for each stick, `level` is (k, 0), and scales are not used."""

    walks: bool = True

    identified: ClassVar[tuple[str, ...]] = ("dynamics", "dynamics_drift", "dynamics_cov", "states")

    def _draw_from_prior(self, rng):
        nothing = np.zeros(self.dynamics_prior.strength.shape)
        pairs = 0, nothing, nothing[: self.n_dims], nothing[: self.n_dims, : self.n_dims]
        coefficients, dynamics_cov = self.draw_dynamics(pairs, rng)
        mean, cov, _ = self.initial_prior.draw(rng)
        return self._with_stretch(coefficients, dynamics_cov, mean, cov, self._identity, rng)

    @property
    def _identity(self):
        return np.eye(self.n_sticks)

    def initial_parameters(self, shards, key):
        """Start at rest."""
        start = super().initial_parameters(shards, key)
        coefficients = self.dynamics_prior.mean.copy()
        return start._replace(coefficients=coefficients, emission=self._identity)

    def draw_dynamics(self, statistics, rng):
        """Q | states of a walk; A, b, Q | states of an autoregression."""
        if not self.walks:
            return super().draw_dynamics(statistics, rng)
        n, xx, yx, yy = statistics[:4]
        d, prior = self.n_dims, self.dynamics_prior
        scale = prior.scale + yy + xx - yx - yx.T
        noise = NormalInverseWishart(np.zeros(d), 1.0, 0.5 * (scale + scale.T), prior.degrees + n)
        return np.eye(d), noise.draw(rng).cov

    def emission_sums(self, prior, shard, states, potential):
        """Return nothing: there is nothing to learn."""
        return np.zeros((0, 0)), np.zeros((0, 0))

    def draw_emission(self, statistics, key):
        return self._identity

    def draw_stretch(self, parameters, rng):
        """The scale of psi means something."""
        return 1.0

    def watched_psi(self, parameters, states, known):
        return states

    def describe_parameters(self, parameters):
        said = super().describe_parameters(parameters)
        del said["emission"]
        return said

    def recall(self, described):
        return super().recall({**described, "emission": self._identity})
