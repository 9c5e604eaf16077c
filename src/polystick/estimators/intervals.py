"""Posterior means with central intervals, as tables."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from polystick.estimators.labelled import dataset


class Interval(NamedTuple):
    """A posterior mean with the ends of a central interval, as data frames."""

    mean: pd.DataFrame
    lower: pd.DataFrame
    upper: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return one table, with columns (mean, lower or upper; those of each)."""
        return pd.concat(self._asdict(), axis=1)

    def to_xarray(self) -> Any:
        """Return mean, lower and upper as a `Dataset` of xarray; of pairs the second is the other_topic."""
        index, columns = self.mean.index, self.mean.columns
        row = index.name or "name"
        column = f"other_{row}" if columns.name == index.name else columns.name or "column"
        parts = {name: (frame.to_numpy(), column) for name, frame in self._asdict().items()}
        return dataset(parts, index.rename(row), {column: columns.to_numpy()})


def interval(draws, level, frame):
    """Return the mean and the interval of draws (draw, ...), each made a table by `frame`.

    A draw that is NaN says nothing.
    """
    tail = (1 - level) / 2
    some = np.isnan(draws).any()
    quantile, mean = (np.nanquantile, np.nanmean) if some else (np.quantile, np.mean)
    ends = quantile(draws, [tail, 1 - tail], axis=0)
    return Interval(frame(mean(draws, axis=0)), frame(ends[0]), frame(ends[1]))
