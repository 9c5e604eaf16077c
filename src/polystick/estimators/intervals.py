"""Posterior means with central intervals, as tables."""

from typing import NamedTuple

import numpy as np
import pandas as pd


class Interval(NamedTuple):
    """A posterior mean with the ends of a central interval, as data frames."""

    mean: pd.DataFrame
    lower: pd.DataFrame
    upper: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return one table, with columns (mean, lower or upper; those of each)."""
        return pd.concat(self._asdict(), axis=1)


def interval(draws, level, frame):
    """Return the mean and the interval of draws (draw, ...), each made a table by `frame`.

    A draw that is NaN says nothing.
    """
    tail = (1 - level) / 2
    some = np.isnan(draws).any()
    quantile, mean = (np.nanquantile, np.nanmean) if some else (np.quantile, np.mean)
    ends = quantile(draws, [tail, 1 - tail], axis=0)
    return Interval(frame(mean(draws, axis=0)), frame(ends[0]), frame(ends[1]))
