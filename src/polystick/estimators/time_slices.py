"""Time stamps as slices of equal length, of which some may be empty."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

MOST_SLICES = 100_000


@dataclass(frozen=True, eq=False)
class TimeSlices:
    """All slices from the first to the last, and the number of each."""

    labels: pd.Index  # whole numbers or periods, without gaps

    @classmethod
    def spanning(cls, times, freq="Y"):
        """Return the slices of time stamps: integers, dates (cut into periods of `freq`) or periods."""
        stamps = _stamps(times, freq)
        if not len(stamps):
            raise ValueError("times must hold at least one time stamp; got none")
        if isinstance(stamps, pd.PeriodIndex):
            _refuse_many(stamps.max().ordinal - stamps.min().ordinal, stamps)
            return cls(pd.period_range(stamps.min(), stamps.max(), freq=stamps.freq))
        if freq != "Y":
            raise ValueError(
                f"freq is of no use to whole numbers, which are slices by themselves; got {freq!r}; leave it "
                "out, or give dates"
            )
        _refuse_many(int(stamps.max()) - int(stamps.min()), stamps)
        return cls(pd.RangeIndex(stamps.min(), stamps.max() + 1))

    def number(self, times):
        """Return the number (n,) of each time stamp's slice."""
        found = self._places(_stamps(times, getattr(self.labels, "freqstr", "Y")))
        outside = (found < 0) | (found >= len(self))
        if outside.any():
            first = np.flatnonzero(outside)[0]
            raise ValueError(
                f"times must lie from {self.labels[0]} to {self.labels[-1]}, as in fit; got "
                f"{list(times)[first]}; fit with the later documents, or leave them out"
            )
        return found

    def _places(self, stamps):
        """Return how many slices each time stamp is after the first; a slice may be several periods long."""
        labels = self.labels
        if isinstance(labels, pd.PeriodIndex) != isinstance(stamps, pd.PeriodIndex):
            kind = "dates or periods" if isinstance(labels, pd.PeriodIndex) else "integers"
            raise TypeError(f"times must be {kind}, as in fit; got {stamps.dtype}")
        if isinstance(labels, pd.PeriodIndex):
            freq: Any = labels.freq
            return (stamps.asi8 - labels.asi8[0]) // freq.n
        return stamps.to_numpy() - labels[0]

    def __len__(self):
        return len(self.labels)


def _refuse_many(n_steps, stamps):
    if n_steps >= MOST_SLICES:
        raise ValueError(
            f"times must span at most {MOST_SLICES} slices, empty ones among them; got {stamps.min()} to "
            f"{stamps.max()}; number the slices that there are, or take longer ones by freq"
        )


def check_length(times, n_documents):
    """Raise unless there is a time stamp for each document."""
    if times is None or isinstance(times, str) or np.ndim(times) == 0:
        raise TypeError(
            "times must hold a time stamp for each document: integers, dates or periods; got "
            f"{'none' if times is None else repr(times)[:30]}"
        )
    if len(times) != n_documents:
        raise ValueError(
            f"times must hold a time stamp for each of the {n_documents} documents; got {len(times)}"
        )


def _stamps(times, freq):
    """Return time stamps as an index of integers or of periods."""
    index = pd.Index(times).infer_objects()
    if index.hasnans:
        raise ValueError("times must not be missing; leave documents without a time stamp out")
    if isinstance(index, pd.PeriodIndex):
        return index if freq in (None, index.freqstr) or freq == "Y" else index.asfreq(freq)
    if pd.api.types.is_integer_dtype(index.dtype):
        return index.astype(np.int64)
    if pd.api.types.is_float_dtype(index.dtype) or pd.api.types.is_bool_dtype(index.dtype):
        raise TypeError(f"times must be integers, dates or periods; got {index.dtype}")
    try:
        dates = pd.DatetimeIndex(pd.to_datetime(index, format="ISO8601"))
    except (TypeError, ValueError) as error:
        raise TypeError(f"times must be integers, dates or periods ({error})") from error
    return dates.tz_localize(None).to_period(freq)
