"""What covariates of documents do to the shares of their topics."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from polystick.estimators.effects import Effects
from polystick.estimators.prevalence import Prevalence
from polystick.estimators.topic_correlation import CorrelatedTopicEstimator
from polystick.inference.execution import one_blas_thread
from polystick.models.topics import TopicModel
from polystick.validation import check_integer

__all__ = ["SLICE", "TopicEffects"]

SLICE = "slice of time (by DynamicTopicModel)"  # a column beside the covariates
_DRAWS = 200
_MOST_DOCUMENTS = 2000
_MOST_KNOWN = 1000  # kinds of documents whose shares are remembered


@dataclass(frozen=True, eq=False)
class ExpectedShares:
    """Shares that a regression expects of documents, under some of its draws."""

    model: TopicModel
    prevalence: Prevalence
    states: list  # of name -> array
    is_dated: bool = False  # whether shares depend on the slice of time too, in the column SLICE
    known: dict = field(default_factory=dict)  # columns, as bytes -> (draws, T)

    def __call__(self, frame):
        """Return shares (draws, n, T); documents with the same covariates are looked at once."""
        x = self.prevalence.columns(frame)
        if self.is_dated:
            x = np.column_stack([x, frame[SLICE]])
        kinds, of_kind = np.unique(x, axis=0, return_inverse=True)
        if len(self.known) > _MOST_KNOWN:
            self.known.clear()
        new = np.array([kind.tobytes() not in self.known for kind in kinds])
        self.known.update(self._expected(kinds[new]))
        found = np.stack([self.known[kind.tobytes()] for kind in kinds], axis=1)
        return found[:, of_kind.ravel()]

    def _expected(self, kinds):
        """Return columns, as bytes -> shares (draws, T)."""
        if not len(kinds):
            return {}
        given = {"covariates": kinds}
        if self.is_dated:
            given = {"covariates": kinds[:, :-1], "slices": kinds[:, -1].astype(int)}
        with one_blas_thread():
            found = [self.model.expected_shares(state, **given) for state in self.states]
        return {kind.tobytes(): each for kind, each in zip(kinds, np.stack(found, axis=1))}


class TopicEffects(CorrelatedTopicEstimator):
    """Tables of effects, for a face that may have a prevalence."""

    _dates: np.ndarray | None = (
        None  # (n,) slices of the documents of a fit, if shares depend on them
    )

    def effects(
        self, column: str, change: Any = None, *, level: float = 0.9, n_draws: int = _DRAWS
    ) -> pd.DataFrame:
        """Return by how much the expected share of each topic changes with a covariate, on average.

        The share that the regression expects of a document with such covariates, its own scatter integrated
        out, is found for all documents of the fit (beyond 2000 for so many, evenly spaced), once with one
        value of the covariate and once with another, all else as it is; differences are averaged. Draws are
        those of the chain that the tables show.

        Parameters
        ----------
        column : name of a column of the covariates that the prevalence speaks of
        change : number, pair of values, "slope" or None
            A number that is added; from which value to which; per unit. None: from the lower to the higher of
            two values, from the first level of a factor to each other one, and else by 1.
        level : float
            Probability of the central interval.
        n_draws : int
            Posterior draws to use.

        Returns
        -------
        DataFrame
            Of each topic `estimate`, `lower`, `upper` and `p_positive`, the probability of a rise.
        """
        return self._effects(n_draws).effects(column, change, level)

    def contrasts(
        self, levels: Any, by: str | None = None, *, level: float = 0.9, n_draws: int = _DRAWS
    ) -> pd.DataFrame:
        """Return what a change from one level to another does to shares, for some documents or within all.

        Parameters
        ----------
        levels : dict
            Column -> (from, to). Of two columns it is their interaction: by how much the change of the second
            moves what the first does.
        by : name of a column of the covariates, or None
            With an average for the documents of each of its values.
        level, n_draws
            As in `effects`, like the table.
        """
        return self._effects(n_draws).contrasts(levels, by, level)

    def effect_curves(
        self, column: str, at: Any = None, *, level: float = 0.9, n_draws: int = _DRAWS
    ) -> pd.DataFrame:
        """Return expected shares of topics at values of a covariate, all else as it is in the documents.

        Parameters
        ----------
        column : name of a column of the covariates that the prevalence speaks of
        at : values of it, or None
            None: places over its range, or each level of a factor.
        level, n_draws
            As in `effects`.

        Returns
        -------
        DataFrame
            `estimate`, `lower` and `upper`, rows by value and topic. `plots.effect_curves` draws it.
        """
        return self._effects(n_draws).curves(column, at, level)

    def _effects(self, n_draws):
        check_is_fitted(self)
        check_integer("n_draws", n_draws, at_least=1)
        if self.prevalence_ is None:
            raise ValueError(
                "effects need shares that depend on covariates; got a fit without prevalence: fit with "
                'prevalence="..." and covariates'
            )
        law = self.model_.shares.told
        drawn = self.posterior_.spread(law, n_draws, self.posterior_.best_chain)
        states = [dict(zip(law, one)) for one in drawn]
        known = self.prevalence_
        frame = known.frame
        if self._dates is not None:
            frame = frame.assign(**{SLICE: self._dates})
        picked = np.linspace(0, len(frame) - 1, min(len(frame), _MOST_DOCUMENTS)).round()
        some = frame.iloc[picked.astype(int)].reset_index(drop=True)
        shares = ExpectedShares(self.model_, known, states, self._dates is not None)
        return Effects(shares, some, self._topic_index, known.variables, known.levels)
