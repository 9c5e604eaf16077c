"""What covariates do: curves along numbers, changes between levels, and contrasts chosen in the page."""

import itertools

import numpy as np
import pandas as pd

from polystick.report import panels

__all__ = ["contrasts", "effects", "effects_in_rows", "evenly"]

_LEVEL = 0.9
_MOST_LEVELS = 6  # of which any two are compared
_DRAWS = 100
_MOST_AVERAGED = 200  # rows
_MOST_CHANGES, _N_PLACES = 12, 21  # from the first level of a factor; along a number


def effects(model, frame, variables, places, of):
    """Yield a panel for each covariate; places: thing -> its number; of: what changes, for the notes."""
    for column in variables:
        if _is_number(frame[column]):
            looks = {"x_label": str(column), "note": f"{of}, all else as it is; 90 % intervals."}
            table = model.effect_curves(column, level=_LEVEL, n_draws=_DRAWS)
            yield panels.curves(f"Along {column}", table, places, percent=True, **looks)
        else:
            parts = dict(_parts(model.effects(column, level=_LEVEL, n_draws=_DRAWS), column))
            note = f"Change of {of[:1].lower()}{of[1:]}, all else as it is; 90 % intervals."
            yield panels.changes(f"Effect of {column}", parts, places, percent=True, note=note)


def effects_in_rows(model, frame, variables, places, of):
    """Yield a panel for each covariate of a regression, whose averages would take long over many rows."""
    some = frame.iloc[evenly(len(frame), _MOST_AVERAGED)]
    rows = f"in {len(some)} rows, all else as it is; 90 % intervals."
    for column in variables:
        if _is_number(frame[column]):
            values = _along(frame[column])
            tables = [_summary(_averages(model, some, column, value), places) for value in values]
            table: pd.DataFrame = pd.concat(tables, keys=values)
            looks = {"x_label": str(column), "note": f"{of} {rows}"}
            yield panels.curves(f"Along {column}", table, places, percent=True, **looks)
        else:
            parts = dict(_changes(model, some, column, places))
            yield panels.changes(
                f"Effect of {column}", parts, places, percent=True, note=f"Change {rows}"
            )


def contrasts(model, frame, variables, places):
    """Yield a panel for each covariate of which two values are chosen in the page and compared.

    Beyond some hundred rows averages are over so many of them, evenly spaced.
    """
    some = frame.iloc[evenly(len(frame), _MOST_AVERAGED)]
    for column in variables:
        values = _values(frame[column])
        if len(values) > 2:  # of two, the effect says it all
            averages = [_averages(model, some, column, value) for value in values]
            panel = panels.changes(
                f"Compare two values of {column}",
                dict(_differences(averages, list(places))),
                places,
                percent=True,
                note=f"From the first to the second, all else as it is in {len(some)} rows; 90 % intervals.",
            )
            yield {**panel, "kind": "contrast", "values": [_short(value) for value in values]}


def evenly(n, most):
    """Return numbers of at most so many of n rows, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def _averages(model, frame, column, value):
    """Return probabilities (draws, K) averaged over rows of which a column has one value."""
    told = frame.assign(**{column: value})
    return model.predict_proba(told, return_draws=True, n_draws=_DRAWS)[-1].mean(axis=1)


def _changes(model, frame, column, places):
    """Yield (name, table) of the changes from the first level of a factor to others."""
    first, *others = sorted(frame[column].value_counts().index[: _MOST_CHANGES + 1], key=str)
    start = _averages(model, frame, column, first)
    for other in others:
        change = _averages(model, frame, column, other) - start
        yield f"{column}: {first} to {other}", _summary(change, places)


def _differences(averages, names):
    """Yield (pair, table of the change from one to the other) for each pair of averages (draws, K)."""
    for (a, one), (b, other) in itertools.combinations(enumerate(averages), 2):
        yield f"{a}|{b}", _summary(other - one, names)


def _summary(draws, names):
    """Return a table of means and intervals of draws (draws, K)."""
    lower, upper = np.quantile(draws, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    parts = {"estimate": draws.mean(axis=0), "lower": lower, "upper": upper}
    return pd.DataFrame(parts, index=list(names))


def _along(column):
    """Return places along a number."""
    values = np.unique(column)
    return values if len(values) <= _N_PLACES else np.linspace(values[0], values[-1], _N_PLACES)


def _values(column):
    """Return the values that can be compared: levels, or quantiles of a number."""
    if _is_number(column):
        return np.unique(column.quantile([0, 0.25, 0.5, 0.75, 1], interpolation="nearest"))
    counted = column.value_counts()
    return sorted(counted.index[:_MOST_LEVELS], key=str)


def _short(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_number(column):
    return column.dtype.kind in "iuf" and column.nunique() > 2


def _parts(table, column):
    if table.index.nlevels == 1:
        yield str(column), table
        return
    for change, part in table.groupby(level=0, sort=False):
        yield f"{column}: {change}", part.droplevel(0)
