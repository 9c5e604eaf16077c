"""What documents are like, as numbers that the shares of their topics can depend on."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from polystick.design import INTERCEPT, Design
from polystick.estimators.covariates import check_rows, read
from polystick.estimators.groupings import Grouping, grouping

__all__ = ["Prevalence"]

LEAST_NEW = 1e-4  # of a column's size, that those before it in its term do not tell already


class Columns(NamedTuple):
    """The columns that a term becomes: combinations of those of the design, about their means."""

    weights: np.ndarray  # (q, p): of the q columns of a design
    names: list
    term: int


@dataclass(frozen=True, eq=False)
class Prevalence:
    """A formula, what it was in a fit, and the columns (n, p) that it makes of documents.

    All have mean 0 in the fit, for the level of the shares is a parameter of its own. A factor has one for
    each of its levels, all on one footing, so that no effect depends on which comes first, and levels are
    pooled as groups are. Those of any other term are made orthogonal, with variance 1, so that neither units
    nor the choice of a basis matter. Groups are pooled too, and may be others in new documents: what is not
    known of one is as of a typical one.
    """

    design: Design
    frame: pd.DataFrame  # covariates of the fit that the formula needs
    centre: np.ndarray  # (q,) of the columns of the design
    weights: np.ndarray  # (q, p)
    terms: np.ndarray  # (p,) numbers
    names: list
    grouping: Grouping
    group_shares: np.ndarray  # (G,) of the documents of a fit, those of all factors

    @classmethod
    def of(cls, formula, covariates, X, groups=None):
        """Read covariates (n, ...) of the documents X of a fit, and groups, as `grouping` takes them."""
        made, raw, frame = read(covariates, formula, X, "X")
        of_groups = grouping(groups, covariates)
        for column in of_groups.needed:
            frame[column] = covariates[column].to_numpy()
        centre = raw.mean(axis=0)
        found = list(_columns(made, raw, centre))
        weights = np.hstack([np.zeros((raw.shape[1], 0)), *(part.weights for part in found)])
        n_terms = len(found)
        for f, levels in enumerate(of_groups.levels):
            found.append(Columns(np.eye(len(levels)), of_groups.level_names(f), n_terms + f))
        if not found:
            raise ValueError(
                f'prevalence must have a covariate; got "{formula}"; name columns of the covariates, or '
                "leave it out"
            )
        terms = np.repeat([part.term for part in found], [len(part.names) for part in found])
        names = [name for part in found for name in part.names]
        shares = of_groups.indicators(covariates).mean(axis=0)
        return cls(made, frame, centre, weights, terms, names, of_groups, shares)

    @property
    def variables(self):
        """What effects can be told of."""
        return (*self.design.variables, *self._single)

    @property
    def levels(self):
        """The levels of those that are factors."""
        return {**self.design.levels, **self._single}

    @property
    def _single(self):
        """Groups that one column tells -> their levels."""
        told = zip(self.grouping.columns, self.grouping.levels)
        return {columns[0]: tuple(levels) for columns, levels in told if len(columns) == 1}

    def columns(self, covariates, X=None):
        """Return columns (n, p) of documents; a row's have the same bits in any company, as BLAS has not."""
        if X is not None:
            check_rows(covariates, X, "X")
        raw = self.design.matrix(covariates) - self.centre
        own = np.einsum("dq,qp->dp", raw, self.weights)
        return np.hstack([own, self.grouping.indicators(covariates) - self.group_shares])


def _columns(made, raw, centre):
    """Yield the columns of each term but the intercept."""
    terms = [term for term in dict.fromkeys(made.terms) if term != INTERCEPT]
    for number, term in enumerate(terms):
        places = [i for i, each in enumerate(made.terms) if each == term]
        names = [made.names[i] for i in places]
        own = raw[:, places]
        levels = _levels_in(own)
        if levels is not None and levels.all():
            small = np.eye(len(places))
        elif levels is not None:
            small = np.column_stack([np.eye(len(places)), -np.ones(len(places))])
            names = [*names, f"{term} (the first)"]
        else:
            small, kept = _orthogonal(own - centre[places])
            names = [names[i] for i in kept]
        weights = np.zeros((raw.shape[1], small.shape[1]))
        weights[places] = small
        yield Columns(weights, names, number)


def _levels_in(columns):
    """Return which rows (n,) have a level of those that columns tell, if they do; they may be centred."""
    above = (columns - columns.min(axis=0)).round(9)
    how_many = above.sum(axis=1)
    are_levels = np.isin(above, (0.0, 1.0)).all() and (how_many < 1.5).all()
    return how_many > 0.5 if are_levels else None


def _orthogonal(columns):
    """Return weights (q, r) that make columns orthogonal, of variance 1, and which of them are the new ones.

    Each is what it tells beyond those before it (Gram and Schmidt); one that tells nothing is left out.
    """
    n, q = columns.shape
    kept: list[int] = []
    made: list[np.ndarray] = []
    basis = np.zeros((n, 0))
    for i in range(q):
        weights, own = np.eye(q)[i], columns[:, i]
        for _ in range(2):  # once more, for the rounding of the first time
            along = basis.T @ (columns @ weights) / n
            weights = weights - np.reshape(made, (-1, q)).T @ along
        size = np.sqrt(np.mean(np.square(columns @ weights)))
        if size > LEAST_NEW * np.sqrt(np.mean(np.square(own))):
            kept.append(i)
            made.append(weights / size)
            basis = columns @ np.transpose(made)
    return np.transpose(made), kept
