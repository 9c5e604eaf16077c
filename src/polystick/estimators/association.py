"""Associations between categories, as tables."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from polystick.association import LEAST_CATEGORIES, correlations
from polystick.inference.diagnostics import rhat
from polystick.inference.execution import one_blas_thread

__all__ = ["Association", "need_enough", "need_softmax", "of"]

MOST_PARTNERS = 3  # of a category, in a summary


@dataclass(frozen=True)
class Association:
    """Correlations of log abundances in the sparse gauge, between categories.

    Attributes
    ----------
    mean, lower, upper : DataFrame (K, K)
        Posterior mean, and the ends of the central interval.
    nonzero : DataFrame (K, K)
        1 less twice the probability of the less probable sign: 0 where both are as likely, 1 where the sign
        is certain. Above `level` just where the interval excludes zero.
    rhat : DataFrame (K, K)
        R-hat of each; NaN with one short chain.
    level : float
        Of the interval.
    """

    mean: pd.DataFrame
    lower: pd.DataFrame
    upper: pd.DataFrame
    nonzero: pd.DataFrame
    rhat: pd.DataFrame
    level: float

    @property
    def known(self) -> pd.DataFrame:
        """Which associations are known not to be zero, by their intervals."""
        return (self.lower > 0) | (self.upper < 0)

    def table(self, n: int = 20, *, all_pairs: bool = False) -> pd.DataFrame:
        """Return the strongest associations that are known, or the strongest of all, with names.

        Parameters
        ----------
        n : int or None
            Rows, at the most; None is all.
        all_pairs : bool
            Also those whose interval holds zero.
        """
        i, j = np.triu_indices(len(self.mean), 1)
        names = self.mean.index
        parts = {name: getattr(self, name).to_numpy()[i, j] for name in self._columns}
        found = pd.DataFrame({str(names.name or "category"): names[i], "with": names[j], **parts})
        if not all_pairs:
            found = found[self.known.to_numpy()[i, j]]
        order = np.argsort(-found["mean"].abs().to_numpy(), kind="stable")
        return found.iloc[order][:n].reset_index(drop=True)

    _columns = ("mean", "lower", "upper", "nonzero", "rhat")

    def partners(self) -> pd.Series:
        """Return for each category the names of those it is known to go with or against, as text."""
        known, mean = self.known.to_numpy().copy(), self.mean.to_numpy()
        np.fill_diagonal(known, False)
        names = self.mean.index.to_numpy()
        told = []
        for i in range(len(names)):
            places = np.flatnonzero(known[i])
            places = places[np.argsort(-np.abs(mean[i, places]), kind="stable")][:MOST_PARTNERS]
            told.append(", ".join(f"{'+' if mean[i, j] > 0 else '-'}{names[j]}" for j in places))
        return pd.Series(told, index=self.mean.index)


def need_softmax(face):
    """Raise where associations have no meaning, or no model that passes a null."""
    if face.link != "softmax":
        raise ValueError(
            'category_association needs link="softmax": covariances of sticks find associations between '
            'independent categories; fit CorrelatedMultinomial(link="softmax")'
        )
    need_enough(len(face.categories_), "category_association", "categories")


def need_enough(n, method, things):
    """Raise where so few are told of that associations have no meaning."""
    if n < LEAST_CATEGORIES:
        raise ValueError(
            f"{method} needs at least {LEAST_CATEGORIES} {things}, got {n}: only ratios of shares "
            "are known, and with so few of them any association could be that of another pair"
        )


def of(posterior, names, level, n_draws):
    """Return the `Association` that the recorded covariances of centred log-ratios tell."""
    cov = posterior["cov"]
    per_chain = max(1, -(-n_draws // cov.shape[0]))
    picked = np.unique(np.linspace(0, cov.shape[1] - 1, per_chain).astype(int))
    with one_blas_thread():
        drawn = correlations(np.asarray(cov)[:, picked])
    flat = drawn.reshape(-1, *drawn.shape[2:])
    below, above = (flat < 0).mean(axis=0), (flat > 0).mean(axis=0)
    tail = (1 - level) / 2
    lower, upper = np.quantile(flat, [tail, 1 - tail], axis=0)
    parts = (flat.mean(axis=0), lower, upper, 1 - 2 * np.minimum(below, above), _rhats(drawn))
    frames = (pd.DataFrame(part, index=names, columns=names) for part in parts)
    return Association(**dict(zip(Association._columns, frames)), level=level)


def _rhats(drawn):
    """Return R-hat (K, K) of draws (chain, draw, K, K)."""
    k = drawn.shape[-1]
    if drawn.shape[1] < 4:
        return np.full((k, k), np.nan)
    with np.errstate(all="ignore"):
        return np.asarray(rhat(drawn.reshape(*drawn.shape[:2], -1))).reshape(k, k)
