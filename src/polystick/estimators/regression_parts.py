"""From options of a regression's face to its model, and from rows of a frame to lines of posterior states."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from polystick.decomposition import decompose
from polystick.estimators.inputs import Categories
from polystick.inference.gibbs import Gibbs
from polystick.models.regression import StickRegression
from polystick.models.regression_state import RegressionPrior
from polystick.models.softmax_regression import SoftmaxRegression
from polystick.validation import check_positive, warn_user

LINKS = ("stick", "softmax")
OVERDISPERSION = ("auto", "full", "diagonal", None)
KINDS = ("known", "new", "none")
LARGEST_SYSTEM = 6000  # unknowns that are drawn at once
LARGEST_SD = 10.0  # of overdispersion, beyond which probabilities of rows are 0 and 1
LARGEST_CROSS = 2**27  # numbers between these and the groups
USUAL_SCALE = 2.5  # of coefficients, from low to high
FEW_COUNTS = 1.5  # of a row on average, below which rows are as good as single labels

__all__ = [
    "State",
    "as_labels",
    "as_state",
    "build",
    "check_kind",
    "check_schedule",
    "coords_of",
    "line_of",
    "read_counts",
    "scales_of",
    "states_of",
    "tell_of_lonely_groups",
]


class State(NamedTuple):
    """One posterior draw."""

    coefficients: np.ndarray  # (p, k)
    group_effects: np.ndarray | None  # (G, k)
    group_cov: np.ndarray | None  # (F, k, k)
    noise_cov: np.ndarray | None  # (k, k)

    def cov(self, kind):
        """Return the covariance of psi about the line; None if it is on it."""
        parts = [] if self.noise_cov is None else [self.noise_cov]
        if kind == "new" and self.group_cov is not None:
            parts += list(self.group_cov)
        return sum(parts) if parts else None


def states_of(posterior, n_draws):
    """Return about n_draws posterior draws, evenly spaced over chains and time."""
    names = [name for name in State._fields if name in posterior.names()]
    drawn = [dict(zip(names, each)) for each in posterior.spread(names, n_draws)]
    return [as_state(each) for each in drawn]


def as_state(arrays):
    return State(*(arrays.get(name) for name in State._fields))


def line_of(state, x, places):
    """Return lines (n, k); places (n, F) of groups among all, or None."""
    line = x @ state.coefficients
    if places is not None and state.group_effects is not None:
        line += state.group_effects[places].sum(axis=1)
    return line


def check_kind(groups, has_groups):
    if groups not in KINDS:
        raise ValueError(
            'groups must be "known" (those of the fit), "new" (others of their kind) or "none" (a typical '
            f"one); got {groups!r}"
        )
    return groups if has_groups else "none"


# what was counted


def as_labels(y):
    """Return labels (n,) if these are single ones, one for each row; None if they are counts."""
    values = y if hasattr(y, "ndim") else np.asarray(y)
    if values.ndim != 1:
        return None
    labels = pd.Series(values).reset_index(drop=True)
    if labels.isna().any():
        row = int(labels.isna().to_numpy().argmax())
        raise ValueError(f"labels must be known; got a missing one in row {row}; leave the row out")
    return labels


def read_counts(y, categories=None):
    """Return counts (n, K) and the names of categories, from counts or from single labels.

    categories : those of a fit, which others must have; None in a fit
    """
    labels = as_labels(y)
    if labels is None:
        reader = Categories()
        counts = reader.check(y, reset=True, whole=True)
        if categories is not None and counts.shape[1] != len(categories):
            raise ValueError(
                f"counts must have the {len(categories)} categories seen in fit; got {counts.shape[1]}; "
                "select the columns of the fit"
            )
        if categories is not None and hasattr(y, "columns") and list(y.columns) != list(categories):
            raise ValueError(
                "counts must have the categories seen in fit; got others, or in another order; select the "
                "columns of the fit, in their order"
            )
        return counts, reader.names
    if categories is None:
        try:
            names = np.array(sorted(labels.unique()), dtype=object)
        except TypeError:
            raise ValueError(
                "labels must be of one kind, so that they can be sorted; got several; use "
                "y.astype(str)"
            ) from None
        if len(names) < 2:
            raise ValueError(
                f"labels must have at least 2 categories; got {len(names)}; give counts (n, K) where a row "
                "has several"
            )
        if len(names) > 0.5 * len(labels) and len(labels) > 4 and _are_fractions(labels):
            raise ValueError(
                "labels must be names of categories, or whole numbers; got fractions; give counts (n, K)"
            )
        categories = names
    places = pd.Index(categories).get_indexer(pd.Index(labels))
    if (places < 0).any():
        raise ValueError(
            f"labels must be among the categories seen in fit; got {labels[int((places < 0).argmax())]!r}"
        )
    counts = np.zeros((len(labels), len(categories)), dtype=np.int64)
    counts[np.arange(len(labels)), places] = 1
    return counts, categories


def _are_fractions(labels):
    return pd.api.types.is_float_dtype(labels) and bool((labels % 1 != 0).any())


# the model


def build(face, design, groups, counts):
    """Return the model that the options of a face ask for."""
    check_options(face)
    prior_scale = scales_of(face.prior_scale, design)
    overdispersion = _overdispersion(face, counts, groups)
    n_categories = counts.shape[1]
    if face.link == "softmax":
        prior = _prior(face, np.zeros(n_categories), design, prior_scale, groups, overdispersion)
        return SoftmaxRegression(prior)
    names = [str(name) for name in face.categories_]
    splits = decompose(
        face.decomposition, n_categories=n_categories, weights=counts.sum(axis=0), names=names
    )
    level = splits.dirichlet_moments(1.0)[0]
    prior = _prior(face, level, design, prior_scale, groups, overdispersion)
    return StickRegression(prior, splits)


def _prior(face, level, design, scale, groups, overdispersion):
    """Return the prior; psi of an average row has its mean where categories are alike."""
    k, p = len(level), len(design.names)
    mean = np.zeros((p, k))
    is_level = np.array([term == "Intercept" for term in design.terms])
    mean[is_level] = level
    prior = RegressionPrior(mean, scale, groups.sizes, overdispersion, float(face.group_scale))
    n_first = max(groups.sizes, default=0)
    size = (p + sum(groups.sizes) - n_first) * (1 if face.link == "softmax" else k)
    if size > LARGEST_SYSTEM or n_first * size * k > LARGEST_CROSS:
        raise ValueError(
            f"{p} columns and groups of {', '.join(map(str, groups.sizes)) or 'none'} on {k} entries are "
            "more than can be drawn at once; leave out crossed groups, or add up rare categories"
        )
    return prior


def check_schedule(inference, link):
    """Raise where a schedule needs what a link has not."""
    if link == "softmax" and not isinstance(inference, Gibbs):
        raise ValueError(
            f'link="softmax" needs inference=Gibbs(...) or None; got {inference!r}; mean field is for '
            'link="stick"'
        )


def check_options(face):
    if face.link not in LINKS:
        raise ValueError(f'link must be "stick" or "softmax"; got {face.link!r}')
    if face.overdispersion not in OVERDISPERSION:
        raise ValueError(
            'overdispersion must be "auto", "full", "diagonal" or None; got '
            f"{face.overdispersion!r}"
        )
    if face.link == "softmax" and face.decomposition is not None:
        raise ValueError(
            'decomposition is of no use to link="softmax", which splits nothing; got '
            f'{face.decomposition!r}; leave it out, or use link="stick"'
        )
    check_positive("group_scale", face.group_scale)


def scales_of(told, design):
    """Return the prior standard deviation of each column's coefficients."""
    given, rest = (told, USUAL_SCALE) if isinstance(told, dict) else ({}, told)
    check_positive("prior_scale", rest)
    for term, value in given.items():
        if term not in design.terms:
            there = ", ".join(dict.fromkeys(design.terms))
            raise ValueError(f"prior_scale must name terms of the model ({there}); got {term!r}")
        check_positive(f"prior_scale of {term!r}", value)
    return np.array([float(given.get(term, rest)) for term in design.terms])


def _overdispersion(face, counts, groups):
    """Return whether rows vary beyond their covariates, where their counts can tell."""
    asked = face.overdispersion
    totals = counts.sum(axis=1)
    told = totals[totals > 0].mean() if totals.any() else 0.0
    if asked == "auto":
        return "full" if told > FEW_COUNTS else None
    if asked is not None and told <= 1.0:
        raise ValueError(
            f"overdispersion needs rows of several counts, for single ones vary as they do anyway; got "
            f'{asked!r}; use overdispersion=None or "auto"'
        )
    return asked


def tell_of_lonely_groups(groups, places, overdispersion):
    """Warn where groups and overdispersion say the same."""
    for f, name in enumerate(groups.names):
        if overdispersion is not None and len(np.unique(places[:, f])) == len(places):
            warn_user(
                f"each group of {name} has one row, so that its effect cannot be told from overdispersion; "
                "leave one of the two out"
            )


def tell_of_separation(posterior):
    """Warn where overdispersion has taken what covariates should tell: rows with one category alone."""
    if "noise_cov" not in posterior.names():
        return
    variances = np.diagonal(np.asarray(posterior["noise_cov"]), axis1=-2, axis2=-1)
    sd = np.sqrt(np.median(variances, axis=(0, 1))).max()
    if sd > LARGEST_SD:
        warn_user(
            f"rows vary beyond their covariates by a standard deviation of {sd:.0f} log odds, so that hardly "
            "anything is told of effects; where rows have one category each, and covariates separate them, "
            "give overdispersion=None"
        )


def coords_of(face, groups, design):
    """Return axis -> names for the coordinates of a posterior."""
    names: list[Any] = [str(name) for name in face.categories_]
    coords = {"category": names, "category_too": names, "column": list(design.names)}
    if groups.names:
        coords |= {"group": groups.labels, "factor": list(groups.names)}
    return coords
