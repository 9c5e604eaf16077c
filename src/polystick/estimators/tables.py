"""Predictions as tables, with the names of what came in, where `set_output` asks for them."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn import get_config

from polystick.estimators.labelled import labelled
from polystick.validation import as_frame

__all__ = ["TABLES", "as_asked", "framed", "index_of", "steps_after", "tabled"]

TABLES = ("default", "pandas", "polars", "xarray", None)  # what `set_output` may be told


def tabled(face: Any, values: np.ndarray, like: Any, columns: Any = None) -> Any:
    """Return values (n, K) as they are, or as a table where a face was asked for tables.

    like    : what came in, or an index, which has the names of the rows
    columns : names of the columns; None: the categories
    """
    asked = getattr(face, "_sklearn_output_config", {})
    kind = asked.get("transform", get_config()["transform_output"])
    if kind == "default":
        return values
    names = pd.Index(face.categories_ if columns is None else columns)
    if kind == "xarray":
        return labelled(values, like, names, face._axes)
    if kind == "polars":
        import polars

        return polars.DataFrame(values, schema=[str(name) for name in names], orient="row")
    return pd.DataFrame(values, index=index_of(like), columns=names)


def as_asked(face: Any, found: list, like: Any, draws: Any = None) -> Any:
    """Return a mean and what else was asked for: tables where they are, and draws if there are any."""
    tables = [tabled(face, values, like) for values in found]
    result = tables if draws is None else [*tables, draws]
    return tuple(result) if len(result) > 1 else result[0]


def index_of(X: object) -> pd.Index | None:
    """Return the index of a table, or an index as it is; None where rows have no names."""
    index = X if isinstance(X, pd.Index) else getattr(as_frame(X), "index", None)
    return index if isinstance(index, pd.Index) else None


def framed(parts, index, categories):
    """Return a table of name -> (n, K), the names above those of the categories."""
    columns = None if categories is None else pd.Index(categories)
    frames = {
        name: pd.DataFrame(values, index=index, columns=columns) for name, values in parts.items()
    }
    return pd.concat(frames, axis=1)


def steps_after(index, n_seen, n_steps):
    """Return the index of the steps after the last of n_seen.

    An index of dates, of periods or of whole numbers with equal steps goes on; steps without names have
    numbers, which go on; after other names steps are numbered from 1.
    """
    if index is None:
        return pd.RangeIndex(n_seen, n_seen + n_steps)
    if isinstance(index, pd.PeriodIndex):
        return pd.period_range(index[-1] + 1, periods=n_steps, freq=index.freq, name=index.name)
    if isinstance(index, pd.DatetimeIndex):
        freq = index.freq or (pd.infer_freq(index) if len(index) > 2 else None)
        if freq is not None:
            return pd.date_range(index[-1], periods=n_steps + 1, freq=freq, name=index.name)[1:]
    elif pd.api.types.is_integer_dtype(index.dtype) and len(index) > 1:
        step = np.unique(np.diff(index.to_numpy()))
        if len(step) == 1 and step[0] > 0:
            first = int(index[-1]) + int(step[0])
            return pd.RangeIndex(
                first, first + n_steps * int(step[0]), int(step[0]), name=index.name
            )
    return pd.RangeIndex(1, n_steps + 1, name="steps ahead")
