"""The face of the model that correlated multinomials are compared with."""

from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import OneToOneFeatureMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from polystick import scores
from polystick.arguments import Counts, RandomState
from polystick.baselines import dirichlet_multinomial
from polystick.baselines.dirichlet_multinomial import Cells
from polystick.estimators import completion
from polystick.estimators.face import Face, Transformer
from polystick.estimators.replicates import (
    check_room,
    check_totals,
    drawn_counts,
    generator,
    totals_of,
)
from polystick.estimators.row_names import ids_of
from polystick.estimators.seeds import seed_of
from polystick.estimators.tables import as_asked, tabled
from polystick.validation import (
    all_or_nothing,
    category_names,
    check_counts,
    check_integer,
    check_positive,
    check_seed,
    warn_user,
)


class DirichletMultinomial(OneToOneFeatureMixin, Transformer, Face):
    """Rows of counts whose probabilities have a Dirichlet law: spread, but no associations.

    What `CorrelatedMultinomial` has to beat. The law has one number for each category, which is learned:
    the mode of its logarithm, so predictions do not know how uncertain it is. All else is in closed form.

    Parameters
    ----------
    share_concentration : float
        Of the Dirichlet prior of the average shares; 1 is uniform. A category without any count has about
        the share of so many fresh ones.
    tolerance : float
        The climb has settled where one more step would gain less, in nats.
    max_iter : int
        Steps of the climb, at most.
    random_state : int, RandomState, Generator or None
        The seed of draws and of random parts. None takes a fresh one, kept in `seed_`. What is learned does
        not depend on it.

    Attributes
    ----------
    concentration_ : array of shape (K,)
        Of the Dirichlet law of a row's probabilities. The larger the sum, the more alike are the rows.
    categories_ : array of K names
    seed_ : int
    n_iter_ : int
        Steps of the climb.

    Examples
    --------
    >>> import numpy as np
    >>> from polystick import DirichletMultinomial
    >>> counts = np.array([[20, 5, 1], [18, 8, 0], [3, 10, 12], [2, 0, 0]])
    >>> model = DirichletMultinomial().fit(counts)
    >>> model.predict_proba(counts).shape
    (4, 3)
    """

    _explored_as = "rows"

    def __init__(self, *, share_concentration: float = 1.0, tolerance: float = 1e-9, max_iter: int = 200,
                 random_state: RandomState = None) -> None:  # fmt: skip
        self.share_concentration = share_concentration
        self.tolerance = tolerance
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Counts, y: Any = None) -> Self:
        """Learn from counts (n, K): an array, a CSR matrix or a DataFrame. They need not be whole.

        Parameters
        ----------
        X : array-like or CSR of shape (n, K)
        y : ignored

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            return self._fit(X)

    def _fit(self, X):
        check_positive("share_concentration", self.share_concentration)
        check_positive("tolerance", self.tolerance)
        check_integer("max_iter", self.max_iter, at_least=1)
        seed = check_seed(self.random_state)
        counts = self._read(X, reset=True)
        self.categories_ = category_names(X, counts.shape[1])
        self.concentration_, self.n_iter_, settled = dirichlet_multinomial.fit(
            Cells.of(counts), counts.shape[1], float(self.share_concentration), self.tolerance, self.max_iter
        )  # fmt: skip
        if not settled:
            warn_user(f"the climb to the concentration did not settle in {self.max_iter} steps; raise "
                      "max_iter", ConvergenceWarning)  # fmt: skip
        self.seed_ = seed
        return self

    def predict_proba(
        self, X: Counts, *, return_std: bool = False, return_draws: bool = False, n_draws: int = 256
    ) -> Any:
        """Return the posterior mean of each row's probabilities given its counts.

        Parameters
        ----------
        X : array-like or CSR of shape (n, K)
            Counts seen of each row; none at all gives what the population says. Of a part of a row they
            give the probabilities of its next count: what `score` with `observed` says of one count.
        return_std : bool
            Also return posterior standard deviations (n, K).
        return_draws : bool
            Also return draws (n_draws, n, K). Rows with equal counts have equal draws.
        n_draws : int
            Draws to return.
        """
        counts = self._check(X)
        check_integer("n_draws", n_draws, at_least=1)
        concentration = self.concentration_ + counts.toarray()
        total = concentration.sum(axis=1, keepdims=True)
        mean = concentration / total
        found = [mean, np.sqrt(mean * (1.0 - mean) / (total + 1.0))] if return_std else [mean]
        draws = None
        if return_draws:
            streams = (generator(self.seed_, 0, int(number)) for number in ids_of(counts))
            drawn = [rng.dirichlet(row, n_draws) for rng, row in zip(streams, concentration)]
            draws = np.stack(drawn, axis=1)
        return as_asked(self, found, X, draws)

    def transform(self, X: Counts) -> Any:
        """Return `predict_proba`, as a step of a pipeline."""
        return tabled(self, np.asarray(self.predict_proba(X)), X, self.get_feature_names_out())

    def predict_counts(self, X: Counts, *, totals: ArrayLike | None = None, n_draws: int = 256,
                       random_state: RandomState = None) -> Any:  # fmt: skip
        """Return draws (n_draws, n, K) of counts from the posterior predictive law.

        They are replicates of the same rows, as in `CorrelatedMultinomial`; a row without counts is new.

        Parameters
        ----------
        X : array-like or CSR of shape (n, K)
            Counts seen of each row.
        totals : int or array of shape (n,), optional
            Of the counts to draw; None is those of X.
        n_draws : int
        random_state : int, RandomState, Generator or None
            None is the seed of the fit.
        """
        counts = self._check(X)
        check_integer("n_draws", n_draws, at_least=1)
        check_room(n_draws, *counts.shape)
        given = totals_of(counts) if totals is None else check_totals(totals, counts.shape[0])
        seed = seed_of(self, random_state)
        rng, concentration = generator(seed, 1), self.concentration_ + counts.toarray()
        rows = [
            drawn_counts(rng.dirichlet(row, n_draws), total, rng)
            for row, total in zip(concentration, given)
        ]
        return np.stack(rows, axis=1)

    def score_samples(
        self, X: Counts, *, observed: Any = None, coefficient: bool = False
    ) -> np.ndarray:
        """Return the log probability of each row's counts.

        Parameters
        ----------
        X : array-like or CSR of shape (n, K)
        observed : float, array-like or CSR of shape (n, K), or None
            What is given of each row. A float is a share of the counts of X, picked at random with the seed
            of the fit, and the rest of X is scored. Counts are given beside X, and all of X is scored.
        coefficient : bool
            Whether to count the multinomial coefficient (of what is scored) in.
        """
        rest, seen = completion.parts(self, X, observed)
        return self._score_rows(rest, seen, coefficient)

    def score(
        self, X: Counts, y: Any = None, *, observed: Any = None, coefficient: bool = False
    ) -> float:
        """Return the held-out log likelihood per scored count, in nats; bigger is better.

        With `observed`, as in `score_samples`, it is that of the rest of each row.
        """
        rest, seen = completion.parts(self, X, observed)
        return scores.per_count(self._score_rows(rest, seen, coefficient), rest)

    def summary(self) -> Any:
        """Return a table of the categories, the largest first.

        `share` is the average over rows of the fitted law, `spread` the standard deviation of the share from
        row to row.
        """
        check_is_fitted(self)
        total = self.concentration_.sum()
        share = self.concentration_ / total
        spread = np.sqrt(share * (1.0 - share) / (total + 1.0))
        table = pd.DataFrame({"share": share, "spread": spread}, index=pd.Index(self.categories_))
        return table.sort_values("share", ascending=False)

    def _score_rows(self, rest, seen, coefficient):
        cells, before = Cells.of(rest), (0.0, 0.0)
        if seen is not None:
            before = seen[cells.rows, cells.columns], seen.sum(axis=1)
        values = dirichlet_multinomial.log_evidence(self.concentration_, cells, *before)
        return values + scores.log_coefficients(rest) if coefficient else values

    def _check(self, X):
        check_is_fitted(self)
        return self._read(X, reset=False)

    def _read(self, X, *, reset):
        return scipy.sparse.csr_array(check_counts(self, X, reset=reset, whole=False))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags
