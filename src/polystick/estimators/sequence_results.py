"""What models of sequences tell of one sequence, with the names of its steps and categories."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from polystick.estimators.intervals import interval
from polystick.estimators.labelled import dataset
from polystick.estimators.tables import framed

__all__ = ["Filtered", "Forecast", "Likeliest", "Smoothed", "forecast_of", "likeliest"]


class _OfSteps:
    """Arrays whose rows are steps; a subclass says which of its fields tables have, and as what."""

    _tables: ClassVar[dict[str, str]]
    _more: ClassVar[dict[str, str]] = {}  # and those of xarray: name -> its last axis
    _last: ClassVar[str] = "category"

    categories: np.ndarray | None
    index: pd.Index | None

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the steps, with columns (what it is, such as mean, lower or upper; category)."""
        return framed(self._parts(), self.index, self._columns())

    def to_xarray(self) -> Any:
        """Return the same as a `Dataset` of xarray, with states and draws where there are some."""
        names = {self._last: self._columns()}
        parts = {name: (values, self._last) for name, values in self._parts().items()}
        parts |= {name: (getattr(self, name), last) for name, last in self._more.items()}
        return dataset(parts, self.index, names)

    def _parts(self):
        return {name: getattr(self, field) for name, field in self._tables.items()}

    def _columns(self):
        if self._last == "category":
            return self.categories
        width = next(iter(self._parts().values())).shape[1]
        return pd.RangeIndex(1, width + 1, name=self._last)


@dataclass(frozen=True, eq=False)
class Smoothed(_OfSteps):
    """A sequence given all of it."""

    _tables: ClassVar = {"mean": "probabilities", "lower": "lower", "upper": "upper"}
    _more: ClassVar = {"states": "state", "states_sd": "state"}

    states: np.ndarray  # (steps, S) means
    states_sd: np.ndarray  # (steps, S)
    probabilities: np.ndarray  # (steps, K) means
    lower: np.ndarray  # (steps, K)
    upper: np.ndarray  # (steps, K)
    categories: np.ndarray | None = None  # (K,) names
    index: pd.Index | None = None  # of the steps, where they have names


@dataclass(frozen=True, eq=False)
class Filtered(_OfSteps):
    """A sequence given what was seen up to each step."""

    _tables: ClassVar = {"mean": "probabilities"}
    _more: ClassVar = {"states": "state", "states_sd": "state"}

    states: np.ndarray  # (steps, S) means
    states_sd: np.ndarray  # (steps, S)
    probabilities: np.ndarray  # (steps, K) means
    categories: np.ndarray | None = None  # (K,) names
    index: pd.Index | None = None  # of the steps, where they have names


@dataclass(frozen=True, eq=False)
class Likeliest(_OfSteps):
    """The likeliest categories of each step, the likeliest first; columns of tables are ranks 1, 2, ..."""

    _tables: ClassVar = {"category": "categories", "probability": "probabilities"}
    _last = "rank"

    categories: np.ndarray  # (steps, n_top) names
    probabilities: np.ndarray  # (steps, n_top)
    index: pd.Index | None = None  # of the steps, where they have names


def likeliest(probabilities, n_top):
    """Return numbers and probabilities (steps, n_top) of the likeliest categories, the likeliest first."""
    n_top = min(n_top, probabilities.shape[1])
    top = np.argpartition(-probabilities, n_top - 1, axis=1)[:, :n_top]
    order = np.lexsort((top, -np.take_along_axis(probabilities, top, axis=1)))
    top = np.take_along_axis(top, order, axis=1)
    return top, np.take_along_axis(probabilities, top, axis=1)


@dataclass(frozen=True, eq=False)
class Forecast(_OfSteps):
    """The steps after the last.

    The index of tables goes on after that of the sequence, where that has equal steps: of dates, periods or
    whole numbers.
    """

    _tables: ClassVar = {"mean": "mean", "lower": "lower", "upper": "upper"}
    _more: ClassVar = {"draws": "category"}

    mean: np.ndarray  # (n_steps, K)
    lower: np.ndarray  # (n_steps, K)
    upper: np.ndarray  # (n_steps, K)
    draws: np.ndarray  # (n_draws, n_steps, K) of probabilities, along drawn paths of states
    categories: np.ndarray | None = None  # (K,) names
    index: pd.Index | None = None  # of the new steps


def forecast_of(draws, level, categories=None, index=None):
    """Return a forecast from draws (n_draws, n_steps, K)."""
    mean, lower, upper = interval(draws, level, np.asarray)
    return Forecast(mean, lower, upper, draws, categories, index)
