"""Factors of groups: which columns they are of, and which group each row belongs to."""

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["Grouping", "grouping"]


@dataclass(frozen=True, eq=False)
class Grouping:
    """Factors, each of the values that one column has, or several have together."""

    names: tuple[str, ...]
    columns: tuple[tuple[Any, ...], ...]  # of each factor
    levels: tuple[pd.Index, ...]  # of each factor, sorted

    @property
    def sizes(self):
        return tuple(len(levels) for levels in self.levels)

    @property
    def needed(self):
        """All columns of a frame that are needed."""
        return tuple(dict.fromkeys(column for each in self.columns for column in each))

    @property
    def labels(self):
        """Return a label for each group of all factors."""
        many = len(self.names) > 1
        return [
            f"{name}: {_text(level)}" if many else _text(level)
            for name, levels in zip(self.names, self.levels)
            for level in levels
        ]

    def level_names(self, factor):
        """Return what the groups of a factor are called: values of its column, or several joined."""
        levels = self.levels[factor]
        return [_text(level) if isinstance(level, tuple) else level for level in levels]

    def indicators(self, frame):
        """Return which groups the rows are in, of those of all factors (n, G); 0 for others."""
        of_factors = [
            (levels.get_indexer(_keys(frame, columns))[:, None] == np.arange(len(levels)))
            for columns, levels in zip(self.columns, self.levels)
        ]
        return np.hstack([np.zeros((len(frame), 0)), *of_factors])

    def places(self, frame):
        """Return which group of each factor the rows are in (n, F)."""
        places = np.zeros((len(frame), len(self.names)), dtype=int)
        for f, (name, columns, levels) in enumerate(zip(self.names, self.columns, self.levels)):
            keys = _keys(frame, columns)
            places[:, f] = levels.get_indexer(keys)
            if (places[:, f] < 0).any():
                unseen = keys[int((places[:, f] < 0).argmax())]
                raise ValueError(
                    f'groups="known" needs groups seen in fit; got {_text(unseen)!r} of {name}; use '
                    'groups="new" for groups of their kind, or groups="none" for a typical one'
                )
        return places


def grouping(groups, frame):
    """Return the factors that were asked for.

    groups : the name of a column, a list of them (crossed), or names with slashes, as "state/county" (nested)
    """
    asked = [] if groups is None else [groups] if isinstance(groups, str) else groups
    if isinstance(asked, dict | set):
        raise TypeError(f"groups must be a column or a list of columns; got {groups!r}")
    if not isinstance(asked, list | tuple):
        asked = [asked]
    columns: list[tuple] = []
    for each in asked:
        columns += _columns_of(each, frame)
    if len(set(columns)) < len(columns):
        raise ValueError(f"groups must differ; got {groups!r}; name each column once")
    levels = [_levels(frame, each) for each in columns]
    names = tuple(":".join(map(str, each)) for each in columns)
    return Grouping(names, tuple(columns), tuple(levels))


def _columns_of(name, frame):
    """Return the columns of each factor that a name stands for."""
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"covariates must be a DataFrame where there are groups, which name its columns; got "
            f"{type(frame).__name__}"
        )
    parts = [name]
    if name not in frame.columns and isinstance(name, str) and "/" in name:
        parts = [part.strip() for part in name.split("/")]
    if "|" in str(name) and not set(parts) <= set(frame.columns):
        raise ValueError(
            f"groups must be columns, whose levels vary; got {name!r}; slopes that vary between groups there "
            "are none"
        )
    for part in parts:
        if part not in frame.columns:
            there = ", ".join(map(str, list(frame.columns)[:8])) or "none"
            raise ValueError(f"groups must be columns of the covariates ({there}); got {part!r}")
    return [tuple(parts[: i + 1]) for i in range(len(parts))]


def _levels(frame, columns):
    keys = _keys(frame, columns)
    levels = keys.unique()
    with contextlib.suppress(TypeError):  # labels of several kinds stay in the order of the rows
        levels = levels.sort_values()
    if len(levels) < 2:
        raise ValueError(
            f"groups must be at least two; column {columns[-1]!r} has {len(levels)}; leave it out"
        )
    return levels


def _keys(frame, columns):
    """Return what each row's group is called, as an index."""
    absent = [c for c in columns if not isinstance(frame, pd.DataFrame) or c not in frame.columns]
    if absent:
        raise ValueError(f"covariates must have the groups of the fit; {absent[0]!r} is missing")
    for column in columns:
        if frame[column].isna().any():
            row = int(frame[column].isna().to_numpy().argmax())
            raise ValueError(
                f"groups must be known; got a missing value in row {row} of column {column!r}; leave the row "
                "out, or give it a group of its own"
            )
    if len(columns) == 1:
        column = frame[columns[0]]
        is_factor = isinstance(column.dtype, pd.CategoricalDtype)
        return pd.Index(column.astype(column.cat.categories.dtype) if is_factor else column)
    return pd.MultiIndex.from_frame(frame[list(columns)].astype(object)).to_flat_index()


def _text(level):
    return ", ".join(map(str, level)) if isinstance(level, tuple) else str(level)
