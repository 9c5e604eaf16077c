"""Covariates as numbers: a formula, or columns as they are, to a matrix that new rows can have too.

A `Design` remembers what the covariates of a fit were: the columns it needs, the levels of factors, the
knots of splines. Columns are put on one scale, as Gelman et al. (2008) do: those of two values are divided by
their difference, others by two standard deviations, and where there is an intercept all are centred. So one
prior serves covariates on any scale, and a coefficient is about what it takes to get from low to high.
"""

import ast
import contextlib
import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from polystick.validation import as_frame as of_pandas
from polystick.validation import warn_user

__all__ = ["Design", "design"]

INTERCEPT = "Intercept"
LEAST_SPREAD = 1e-10  # of a column, relative to its size, below which it is constant
LEAST_RANK = 1e-8  # of a direction, relative to the longest, below which columns are collinear


@dataclass(frozen=True, eq=False)
class Design:
    """What is needed to turn covariates into a matrix (n, p)."""

    formula: str | None  # None: the columns as they are, and an intercept
    names: tuple[str, ...]  # of the p columns of the matrix
    terms: tuple[str, ...]  # the term that each of them belongs to
    variables: tuple[Any, ...]  # columns of a frame that are needed
    levels: dict[Any, tuple[Any, ...]]  # of those that are factors
    centre: np.ndarray  # (p,)
    scale: np.ndarray  # (p,)
    spec: object  # how formulaic made it; None without a formula

    def matrix(self, covariates: Any) -> np.ndarray:
        """Return the columns for rows of covariates (n, p), on the scale of the fit."""
        frame = covariates if self.formula is not None else as_frame(covariates)
        _need_columns(frame, self.variables)
        raw = _numbers(frame, self.variables) if self.spec is None else self._by_formula(frame)
        return (raw - self.centre) / self.scale

    def _by_formula(self, frame):
        _refuse_missing(frame, self.variables)
        for name, known in self.levels.items():
            _refuse_unseen(frame[name], name, known)
        return _built(self.formula, lambda: _materialised(self.spec, frame))[0]

    def unscaled(self, coefficients: np.ndarray) -> np.ndarray:
        """Return coefficients (..., p, k) per unit of the columns as they came."""
        own = coefficients / self.scale[:, None]
        if INTERCEPT in self.names:
            at = self.names.index(INTERCEPT)
            own[..., at, :] -= np.einsum("p,...pk->...k", self.centre, own)
        return own


def design(covariates: Any, formula: str | None = None) -> tuple[Design, np.ndarray]:
    """Return the design of a fit, and its matrix (n, p).

    covariates : a DataFrame; without a formula also an array (n, d) of numbers
    formula : the right side, such as "cr(year, df=5) + party", which formulaic reads; it may call Python
    """
    if formula is None:
        frame = as_frame(covariates)
        variables = tuple(frame.columns)
        names = (INTERCEPT, *map(str, variables))
        return _scaled(None, _numbers(frame, variables), names, names, variables, {}, None)
    return _scaled(formula, *_from_formula(covariates, formula))


def as_frame(covariates):
    """Return numbers (n, d) as a DataFrame; columns without names are called x0, x1, ..."""
    covariates = of_pandas(covariates)
    if isinstance(covariates, pd.DataFrame):
        _refuse_doubled(covariates)
        return covariates
    values = np.asarray(covariates)
    if values.ndim != 2:
        raise ValueError(
            f"covariates must have two axes, a row for each row of counts; got shape {values.shape}; "
            "reshape a single column with np.reshape(x, (-1, 1)), or give a DataFrame and a formula"
        )
    return pd.DataFrame(values, columns=[f"x{i}" for i in range(values.shape[1])])


# from a formula


def _from_formula(frame, formula):
    if not isinstance(formula, str) or not formula.strip():
        raise TypeError(
            f'a formula must be a string such as "age + party", or None; got {formula!r}'
        )
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            "covariates must be a DataFrame where there is a formula, which speaks of its columns; got "
            f"{type(frame).__name__}"
        )
    _refuse_doubled(frame)
    if not len(frame):
        raise ValueError("covariates must have at least one row; look at how rows were selected")
    parsed = _parsed(formula)
    needed = _variables(parsed, frame)
    _need_columns(frame, needed, of=f'the formula "{formula}"')
    _refuse_missing(frame, needed)
    _refuse_times(frame, needed)
    raw, spec = _built(formula, lambda: _materialised(parsed, frame))
    if not raw.shape[1]:
        raise ValueError(f'a formula must have a term; got "{formula}"; "1" is a common mean')
    variables = tuple(name for name in frame.columns if name in needed)
    terms = np.empty(raw.shape[1], dtype=object)
    for term, places in spec.term_indices.items():
        terms[places] = INTERCEPT if str(term) == "1" else str(term)
    levels = _levels(frame, variables, spec)
    return raw, tuple(spec.column_names), tuple(terms), variables, levels, spec


def _refuse_times(frame, names):
    for name in names:
        if frame[name].dtype.kind in "mM" or isinstance(frame[name].dtype, pd.PeriodDtype):
            raise ValueError(
                f"covariates must be numbers or factors; column {name!r} has times; give a number, such as "
                "the year, frame[column].dt.year"
            )


def _formulaic():
    try:
        import formulaic
    except ImportError:
        raise ImportError(
            "formulas need formulaic; install polystick[formula], or give columns of numbers and no formula"
        ) from None
    return formulaic


def _parsed(formula):
    formulaic = _formulaic()
    if bar := re.search(r"\(([^()|]*)\|([^()|]*)\)", formula):
        raise ValueError(
            f'a formula must have no groups; got "{bar.group()}"; give groups="{bar.group(2).strip()}" for '
            "levels of groups; slopes that vary between groups there are none"
        )
    if re.search(r"\bgp\s*\(", formula):
        raise ValueError(
            f'a formula must have no processes; got "{formula}"; "cr(x, df=5)" is a smooth curve, and '
            "MultinomialGP has processes"
        )
    try:
        parsed = formulaic.Formula(formula)
    except formulaic.errors.FormulaicError as error:
        raise ValueError(f'cannot read the formula "{formula}": {_first(error)}') from error
    if "~" in formula and not formula.strip().startswith("~"):
        raise ValueError(
            f'a formula must have no response, for the counts come beside it; got "{formula}"; leave out '
            'what is left of "~", and the "~"'
        )
    if not isinstance(parsed, formulaic.SimpleFormula):
        raise ValueError(
            f'a formula must have one part; got "{formula}"; leave "|" out: it does not tell groups'
        )
    return parsed


def _variables(parsed, frame):
    """Return the columns that a formula needs, sorted; formulaic itself leaves out those inside `cr(...)`."""
    needed = set(map(str, parsed.required_variables))
    for factor in (factor for term in parsed for factor in term.factors):
        with contextlib.suppress(SyntaxError):  # names in backticks, which formulaic knows
            words = {n.id for n in ast.walk(ast.parse(factor.expr)) if isinstance(n, ast.Name)}
            needed |= words & {name for name in frame.columns if isinstance(name, str)}
    return sorted(needed)


def _materialised(source, frame):
    """Return the matrix that a formula or a spec makes of a frame, rows in their order."""
    formulaic = _formulaic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", formulaic.errors.DataMismatchWarning)
        return source.get_model_matrix(frame, context={}, na_action="raise", output="pandas")


def _built(formula, make):
    """Return the numbers and the spec of a matrix, or say in a sentence why there is none."""
    formulaic = _formulaic()
    try:
        with np.errstate(all="ignore"):
            matrix = make()
    except formulaic.errors.DataMismatchWarning as error:
        raise ValueError(
            f"factors must have levels seen in fit; got others: {_first(error)}"
        ) from error
    except (formulaic.errors.FormulaicError, ValueError, TypeError) as error:
        raise ValueError(
            f'cannot make the columns of the formula "{formula}": {_first(error)}'
        ) from error
    raw = np.ascontiguousarray(matrix.to_numpy(dtype=np.float64))
    if not np.isfinite(raw).all():
        name = list(matrix.columns)[int((~np.isfinite(raw)).any(axis=0).argmax())]
        row = int((~np.isfinite(raw)).any(axis=1).argmax())
        raise ValueError(
            f'the columns of a formula must be finite; got another value in row {row} of "{name}"'
        )
    return raw, matrix.model_spec


def _first(error):
    """Return what an error says first, on one line, without colours."""
    text = str(error).split("\n\n")[0]
    return " ".join(text.split()).rstrip(".")


def _levels(frame, variables, spec):
    """Return the levels of columns that stand in the formula as factors."""
    levels = {
        name: tuple(_sorted(frame[name]))
        for name in variables
        if not pd.api.types.is_numeric_dtype(frame[name])
    }
    for factor, (_, state) in spec.encoder_state.items():
        if "categories" not in state:
            continue
        inside = _variables(_parsed(f"0 + {factor}"), frame)
        if len(inside) == 1 and set(frame[inside[0]]) <= set(state["categories"]):
            levels.setdefault(inside[0], tuple(state["categories"]))
    return levels


def _sorted(column):
    if isinstance(column.dtype, pd.CategoricalDtype):
        return [level for level in column.cat.categories if (column == level).any()]
    return sorted(column.unique(), key=lambda level: (str(type(level)), level))


# what came


def _numbers(frame, variables):
    """Return an intercept and columns of numbers (n, 1 + d)."""
    parts = [np.ones(len(frame))]
    for name in variables:
        column = frame[name]
        if not pd.api.types.is_numeric_dtype(column):
            raise ValueError(
                f"covariates must be numbers where there is no formula; got {column.dtype} in column "
                f'{name!r}; give a formula, such as "{name}", which codes factors'
            )
        parts.append(column.to_numpy(dtype=np.float64, na_value=np.nan))
    raw = np.column_stack(parts)
    if not np.isfinite(raw).all():
        rows, places = np.nonzero(~np.isfinite(raw))
        raise ValueError(_not_finite(variables[places[0] - 1], int(rows[0])))
    return raw


def _not_finite(name, row):
    return (
        f"covariates must be known and finite; got a missing or infinite value in row {row} of column "
        f"{name!r}; leave the row out, or fill it in"
    )


def _refuse_missing(frame, variables):
    for name in variables:
        column = frame[name]
        bad = column.isna().to_numpy()
        if pd.api.types.is_float_dtype(column):
            bad = bad | np.isinf(column.to_numpy(dtype=np.float64, na_value=np.nan))
        if bad.any():
            raise ValueError(_not_finite(name, int(bad.argmax())))


def _refuse_unseen(column, name, known):
    unseen = [level for level in column.unique().tolist() if level not in known]
    if unseen:
        few = ", ".join(map(str, known[:6])) + (", ..." if len(known) > 6 else "")
        raise ValueError(
            f"factor {name!r} must have levels seen in fit ({few}); got {unseen[0]!r}; leave such rows out, "
            "or, in a regression, make it a group: groups may be new"
        )


def _need_columns(frame, variables, of="the fit"):
    if variables and not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"covariates must be a DataFrame, as those of the fit were; got {type(frame).__name__}"
        )
    absent = [name for name in variables if name not in frame.columns]
    if absent:
        there = ", ".join(map(str, list(frame.columns)[:8])) or "no columns"
        raise ValueError(
            f"covariates must have the columns of {of}; {absent[0]!r} is missing from {there}"
        )


def _refuse_doubled(frame):
    if not frame.columns.is_unique:
        name = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(
            f"the names of covariates must differ; got {name!r} twice; rename one of them"
        )


# scales


def _scaled(formula, raw, names, terms, variables, levels, spec):
    """Return a design whose columns are on one scale, and its matrix."""
    is_intercept = np.array([term == INTERCEPT for term in terms])
    _refuse_constant(raw, names, is_intercept)
    low, high = raw.min(axis=0), raw.max(axis=0)
    binary = ((raw == low) | (raw == high)).all(axis=0)
    largest = np.maximum(np.abs(raw).max(axis=0), np.finfo(float).tiny)
    spread = 2.0 * (raw / largest).std(axis=0) * largest  # squares of wild scales would overflow
    scale = np.where(is_intercept, 1.0, np.where(binary, high - low, spread))
    scale = np.where(scale > 0, scale, np.where(low != 0, np.abs(low), 1.0))
    centred = is_intercept.any() & ~is_intercept
    centre = np.where(centred, (raw / largest).mean(axis=0) * largest, 0.0)
    made = Design(formula, names, terms, variables, levels, centre, scale, spec)
    matrix = (raw - centre) / scale
    if len(matrix) < matrix.shape[1]:
        warn_user(
            f"{matrix.shape[1]} columns of covariates are more than the {len(matrix)} rows: much of what is "
            "said of their effects comes from the prior"
        )
    else:
        _refuse_collinear(matrix, terms)
    return made, matrix


def _refuse_constant(raw, names, is_intercept):
    size = np.maximum(np.abs(raw).max(axis=0), np.finfo(float).tiny)
    constant = np.ptp(raw / size, axis=0) < LEAST_SPREAD
    said = "an intercept is there already" if is_intercept.any() else "leave it out"
    absent = "a factor may have a level without rows"
    if len(raw) > 1 and (constant & ~is_intercept).any() and (is_intercept.any() or len(names) > 1):
        place = int((constant & ~is_intercept).argmax())
        raise ValueError(
            f"covariates must vary between the rows of a fit; column {names[place]!r} is "
            f"{raw[0, place]:g} in all of them; {said if raw[0, place] else absent}"
        )


def _refuse_collinear(matrix, terms):
    """Raise if a term says nothing that those before it do not say.

    It may say some of that again: a basis of splines adds up to the intercept, and times a factor to the
    factor. The prior then tells its columns apart.
    """
    known = np.zeros((len(matrix), 0))
    for term in dict.fromkeys(terms):
        own = _basis(matrix[:, [t == term for t in terms]])
        rest = own - known @ (known.T @ own)
        if np.abs(rest).max() < LEAST_RANK:
            raise ValueError(
                f"covariates must not be collinear; term {term!r} follows from those before it; leave it, or "
                "one of them, out"
            )
        known = _basis(np.column_stack([known, own]))


def _basis(columns):
    """Return an orthonormal basis (n, r) of the span of columns."""
    left, size, _ = np.linalg.svd(columns, full_matrices=False)
    return left[:, size > LEAST_RANK * max(size[0], np.finfo(float).tiny)]
