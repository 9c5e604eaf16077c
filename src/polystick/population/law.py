"""What laws of the mean and covariance of normal rows have in common: protocols, as types."""

from typing import Any, Protocol

import numpy as np

__all__ = ["FactoredLaw", "LawFactor", "PopulationLaw"]


class PopulationLaw(Protocol):
    """A law of parameters that begin with mean, cov and precision."""

    @property
    def centre(self) -> np.ndarray:
        """Of the mean, (k,)."""

    @property
    def parameter_type(self) -> Any:
        """The named tuple of its parameters."""

    def draw(self, rng: np.random.Generator) -> Any:
        """Return parameters from the law."""

    def start(self, rng: np.random.Generator) -> Any:
        """Return parameters to start a chain from: apart, but not far out."""

    def redraw(
        self,
        parameters: Any,
        n: float,
        total: np.ndarray,
        outer: np.ndarray,
        rng: np.random.Generator,
    ) -> Any:
        """Make a Gibbs step given n rows, sums of them and of outer products."""

    def recentre(self, parameters: Any, rng: np.random.Generator) -> Any:
        """Draw the level that all entries of the mean share, which a softmax does not see, given the rest."""


class LawFactor(Protocol):
    """The factor of mean field of such parameters."""

    @property
    def normal(self) -> Any:
        """That of mean and cov."""

    def blend(self, other: Any, rate: float) -> Any:
        """Return the factor so far on the way to another."""


class FactoredLaw(PopulationLaw, Protocol):
    """One with a mean field."""

    def initial_factor(self) -> LawFactor:
        """Return a factor of all parameters."""

    def updated(self, factor: Any, n: float, total: np.ndarray, outer: np.ndarray) -> LawFactor:
        """Return the best factor given the rows' expected sums."""

    def divergence(self, factor: Any) -> float:
        """Return KL(factor || law)."""
