"""What models of sequences tell of one sequence; `to_frame` has the names of its steps and categories."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from polystick.estimators.intervals import interval
from polystick.estimators.tables import framed

__all__ = ["Filtered", "Forecast", "Likeliest", "Smoothed", "forecast_of", "likeliest"]


@dataclass(frozen=True, eq=False)
class Smoothed:
    """A sequence given all of it."""

    states: np.ndarray  # (steps, S) means
    states_sd: np.ndarray  # (steps, S)
    probabilities: np.ndarray  # (steps, K) means
    lower: np.ndarray  # (steps, K)
    upper: np.ndarray  # (steps, K)
    categories: np.ndarray | None = None  # (K,) names
    index: pd.Index | None = None  # of the steps, where they have names

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the probabilities, with columns (mean, lower or upper; category)."""
        parts = {"mean": self.probabilities, "lower": self.lower, "upper": self.upper}
        return framed(parts, self.index, self.categories)


@dataclass(frozen=True, eq=False)
class Filtered:
    """A sequence given what was seen up to each step."""

    states: np.ndarray  # (steps, S) means
    states_sd: np.ndarray  # (steps, S)
    probabilities: np.ndarray  # (steps, K) means
    categories: np.ndarray | None = None  # (K,) names
    index: pd.Index | None = None  # of the steps, where they have names

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the probabilities, with columns (mean; category)."""
        return framed({"mean": self.probabilities}, self.index, self.categories)


@dataclass(frozen=True, eq=False)
class Likeliest:
    """The likeliest categories of each step, the likeliest first."""

    categories: np.ndarray  # (steps, n_top) names
    probabilities: np.ndarray  # (steps, n_top)
    index: pd.Index | None = None  # of the steps, where they have names

    def to_frame(self) -> pd.DataFrame:
        """Return a table with columns (category or probability; rank 1, 2, ...)."""
        ranks = pd.RangeIndex(1, self.probabilities.shape[1] + 1, name="rank")
        parts = {"category": self.categories, "probability": self.probabilities}
        return framed(parts, self.index, ranks)


def likeliest(probabilities, n_top):
    """Return numbers and probabilities (steps, n_top) of the likeliest categories, the likeliest first."""
    n_top = min(n_top, probabilities.shape[1])
    top = np.argpartition(-probabilities, n_top - 1, axis=1)[:, :n_top]
    order = np.lexsort((top, -np.take_along_axis(probabilities, top, axis=1)))
    top = np.take_along_axis(top, order, axis=1)
    return top, np.take_along_axis(probabilities, top, axis=1)


@dataclass(frozen=True, eq=False)
class Forecast:
    """The steps after the last."""

    mean: np.ndarray  # (n_steps, K)
    lower: np.ndarray  # (n_steps, K)
    upper: np.ndarray  # (n_steps, K)
    draws: np.ndarray  # (n_draws, n_steps, K) of probabilities, along drawn paths of states
    categories: np.ndarray | None = None  # (K,) names
    index: pd.Index | None = None  # of the new steps

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the probabilities, with columns (mean, lower or upper; category).

        Its index goes on after that of the sequence, where that has equal steps: of dates, periods or whole
        numbers.
        """
        parts = {"mean": self.mean, "lower": self.lower, "upper": self.upper}
        return framed(parts, self.index, self.categories)


def forecast_of(draws, level, categories=None, index=None):
    """Return a forecast from draws (n_draws, n_steps, K)."""
    mean, lower, upper = interval(draws, level, np.asarray)
    return Forecast(mean, lower, upper, draws, categories, index)
