"""Average effects of covariates on probabilities: of categories, or of topics.

A regression on sticks has coefficients that mean nothing to anybody. What is told instead is what a covariate
does to probabilities: they are found for all rows as they are but for that covariate, once at one value of it
and once at another, and the differences are averaged over the rows, draw by draw of the posterior.
"""

import itertools
import numbers
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from polystick.validation import check_level

__all__ = ["Effects"]

SLOPE = 1e-3  # of a column's standard deviation, on each side of where a slope is taken
ROWS_AT_ONCE = 256  # whose probabilities are in memory, for all draws
MOST_LEVELS = 40  # of a column that rows are told apart by
N_GRID = 41  # places of a curve


@dataclass(frozen=True, eq=False)
class Effects:
    """What a fitted model says of its covariates.

    shares : frame -> draws of probabilities (draws, n, K), each row by itself
    frame : covariates of the rows to average over
    names : of categories or of topics; its name is that of the index of tables
    variables : columns that the model knows
    factors : those of them that it takes for factors, numbers or not
    """

    shares: Callable[[pd.DataFrame], np.ndarray]
    frame: pd.DataFrame
    names: pd.Index
    variables: tuple[Any, ...]
    factors: Collection[Any] = ()

    def effects(self, column: Any, change: Any = None, level: float = 0.9) -> pd.DataFrame:
        """Return the average change of each probability: estimate, lower, upper, p_positive.

        change : a number that is added to the column; a pair of values, from the first to the second;
            "slope", per unit of the column; None: from the lower to the higher of two values, from the first
            level of a factor to each other one, and else 1
        """
        check_level(level)
        values = self._column(column)
        if change is None and not _is_numeric(values):
            first, *others = _levels_of(values)
            tables = {
                f"{first} to {other}": self._difference(column, (first, other), level)
                for other in others
            }
            return next(iter(tables.values())) if len(tables) == 1 else _stacked(tables, column)
        ends, unit = _ends(values, change, column)
        return self._difference(column, ends, level, unit)

    def contrasts(self, levels: dict, by: Any = None, level: float = 0.9) -> pd.DataFrame:
        """Return what goes with a change from one level to another, for some rows or within all.

        levels : column -> (from, to). Of two columns it is their interaction: by how much the change of the
            second moves what the first does.
        by : a column; there is one average for the rows of each of its values
        """
        check_level(level)
        if not isinstance(levels, dict) or not 1 <= len(levels) <= 2:
            raise TypeError(
                'contrasts need one or two columns with two values each, such as {"party": ("D", "R")}; got '
                f"{levels!r}"
            )
        for column, ends in levels.items():
            _check_pair(ends, column)
            _check_values(self._column(column), ends, column)
        groups = self._groups(by)
        tables = {
            name: self._table(sum(self._signed(levels, rows)), level)
            for name, rows in groups.items()
        }
        return tables[None] if by is None else _stacked(tables, by)

    def curves(self, column: Any, at: Any = None, level: float = 0.9) -> pd.DataFrame:
        """Return average probabilities at values of a column: rows (value, name); estimate, lower, upper.

        at : the values; None: over its range, or each level of a factor
        """
        check_level(level)
        values = self._column(column)
        places = (
            _places(values) if at is None else list(np.atleast_1d(np.asarray(at, dtype=object)))
        )
        _check_values(values, places, column)
        everyone = np.arange(len(self.frame))
        tables = {
            value: self._table(self._averages({column: value}, everyone), level) for value in places
        }
        return _stacked(tables, column).drop(columns="p_positive")

    # averages

    def _difference(self, column, ends, level, unit=1.0):
        everyone = np.arange(len(self.frame))
        start, end = (self._averages({column: value}, everyone) for value in ends)
        return self._table((end - start) / unit, level)

    def _signed(self, levels, rows):
        """Yield averages (draws, K) of all combinations of the ends, with their signs."""
        for picked in itertools.product((0, 1), repeat=len(levels)):
            sign = (-1.0) ** (len(picked) - sum(picked))
            values = {column: ends[i] for (column, ends), i in zip(levels.items(), picked)}
            yield sign * self._averages(values, rows)

    def _averages(self, values, rows):
        """Return probabilities (draws, K) averaged over rows whose columns have other values."""
        total = 0.0
        for start in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[start : start + ROWS_AT_ONCE]
            frame = self.frame.iloc[some].copy()
            for column, value in values.items():
                frame[column] = value[some] if isinstance(value, np.ndarray) else value
            total = total + self.shares(frame).sum(axis=1)
        return total / len(rows)

    def _table(self, draws, level):
        tail = (1 - level) / 2
        lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
        return pd.DataFrame(
            {
                "estimate": draws.mean(axis=0),
                "lower": lower,
                "upper": upper,
                "p_positive": ((draws > 0) + 0.5 * (draws == 0)).mean(axis=0),
            },
            index=self.names,
        )

    # columns

    def _column(self, column):
        if column not in self.variables:
            there = ", ".join(map(str, self.variables)) or "none"
            raise ValueError(f"the model has no covariate {column!r}; it has {there}")
        values = self.frame[column]
        return values.astype("category") if column in self.factors else values

    def _groups(self, by):
        """Return value -> places of the rows that have it."""
        if by is None:
            return {None: np.arange(len(self.frame))}
        if by not in self.frame.columns:
            there = ", ".join(map(str, self.frame.columns)) or "none"
            raise ValueError(f"by must be a column of the covariates ({there}); got {by!r}")
        values = self.frame[by]
        levels = _levels_of(values)
        if len(levels) > MOST_LEVELS:
            raise ValueError(
                f"by must be a column of at most {MOST_LEVELS} values; {by!r} has {len(levels)}; cut it into "
                "groups with pandas.cut, and fit with that column beside it"
            )
        return {value: np.flatnonzero((values == value).to_numpy()) for value in levels}


def _is_numeric(values):
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def _levels_of(values):
    """Return the values that occur, in the order of a categorical or sorted."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        found = set(values)
        return [value for value in values.cat.categories if value in found]
    return sorted(values.unique().tolist())


def _places(values):
    if not _is_numeric(values) or values.nunique() <= N_GRID:
        return _levels_of(values)
    return np.linspace(values.min(), values.max(), N_GRID).tolist()


def _ends(values, change, column):
    """Return the two values of a column to compare, each for all rows or (n,), and what to divide by."""
    if isinstance(change, str) and change == "slope":
        _need_numbers(values, column, change)
        numbers_ = values.to_numpy(dtype=np.float64)
        low, high = numbers_.min(), numbers_.max()
        step = 2.0 * SLOPE * (numbers_.std() or 1.0)
        start = np.clip(numbers_ - 0.5 * step, low, max(low, high - step))
        return (start, start + step), step  # inside the range: splines may know nothing beyond it
    if change is None and values.nunique() == 2:
        return tuple(_levels_of(values)), 1.0
    if isinstance(change, numbers.Real | None) and not isinstance(change, bool):
        _need_numbers(values, column, change)
        numbers_ = values.to_numpy(dtype=np.float64)
        return (numbers_, numbers_ + float(1 if change is None else change)), 1.0
    _check_pair(change, column)
    _check_values(values, change, column)
    return tuple(change), 1.0


def _need_numbers(values, column, change):
    if not _is_numeric(values):
        levels = _levels_of(values)
        raise TypeError(
            f"change must be a pair of levels for {column!r}, which is a factor, such as "
            f"({levels[0]!r}, {levels[-1]!r}); got {change!r}"
        )


def _check_pair(ends, column):
    if isinstance(ends, str) or not isinstance(ends, tuple | list) or len(ends) != 2:
        raise TypeError(
            f'what to compare of {column!r} must be a number, a pair of values or "slope"; got {ends!r}'
        )


def _check_values(values, wanted, column):
    """Raise unless values could stand in a column."""
    if _is_numeric(values):
        bad = [v for v in wanted if isinstance(v, bool) or not isinstance(v, numbers.Real)]
        if bad:
            raise ValueError(f"values of {column!r} must be numbers; got {bad[0]!r}")
        return
    levels = _levels_of(values)
    bad = [value for value in wanted if value not in levels]
    if bad:
        there = ", ".join(map(repr, levels[:8])) + (", ..." if len(levels) > 8 else "")
        raise ValueError(f"values of {column!r} must be among {there}; got {bad[0]!r}")


def _stacked(tables, name):
    """Return tables under each other, with what they are of as the outer level of the index."""
    return pd.concat(tables, names=[name])
