"""Arrays of xarray with the names of what came in. xarray is imported where it is used: it takes a while."""

from typing import Any

import numpy as np
import pandas as pd

__all__ = ["dataset", "labelled"]


def labelled(values: np.ndarray, like: Any, columns: pd.Index, axes: tuple[str, str]) -> Any:
    """Return values (n, K) as a `DataArray`.

    like    : what came in, of xarray or pandas, or an index. Its rows, with all that is known of them, are
              those of the values; if it has the same columns, so are these.
    columns : names of the columns
    axes    : what rows and columns are called where nothing that came in says it
    """
    import xarray as xr

    ours = isinstance(like, xr.DataArray)
    if ours and like.ndim == 2 and list(like.get_index(like.dims[1])) == list(columns):
        return xr.DataArray(values, like.coords, like.dims)
    if ours:
        rows = like.isel({like.dims[1]: 0}, drop=True) if like.ndim == 2 else like
        dim, coords = like.dims[0], rows.coords
    else:
        dim, coords = _rows(getattr(like, "index", like), axes[0])
        axes = axes[0], _own_name(like, columns) or axes[1]
    found = xr.DataArray(values, coords, (dim, axes[1]))
    return found.assign_coords({axes[1]: columns.to_numpy()})


def _rows(index, name):
    """Return the name of an index and its coordinates; nothing but a name where it is none."""
    import xarray as xr

    if not isinstance(index, pd.Index):
        return name, {}
    if isinstance(index, pd.MultiIndex):
        return name, xr.Coordinates.from_pandas_multiindex(index, name)
    return index.name or name, {index.name or name: index}


def _own_name(like, columns):
    """Return what a frame calls its columns, if they are these."""
    own = getattr(like, "columns", None)
    return own.name if own is not None and list(own) == list(columns) else None


def dataset(parts: dict, index: pd.Index | None, columns: dict) -> Any:
    """Return a `Dataset` of arrays whose rows are steps.

    parts   : name -> values (steps, m), or (draw, steps, m), and what their last axis is called
    index   : of the steps, or None
    columns : name of a last axis -> its labels, where there are some
    """
    import xarray as xr

    step, coords = _rows(index, "step")
    named = {name: labels for name, labels in columns.items() if labels is not None}
    arrays = {
        name: (("draw",) * (values.ndim - 2) + (step, last), values)
        for name, (values, last) in parts.items()
    }
    return xr.Dataset(arrays, coords).assign_coords(named)
