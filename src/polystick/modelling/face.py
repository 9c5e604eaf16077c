"""A face for a model of one's own: fit, predict, score."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from polystick import scores
from polystick.estimators.face import Face
from polystick.estimators.seeds import seed_of
from polystick.estimators.tables import index_of, tabled
from polystick.inference.gibbs import Gibbs
from polystick.inference.progress import Show
from polystick.inference.protocols import Array, GibbsModel, L, P, R, S_contra, T, check_model
from polystick.validation import all_or_nothing, category_names, check_counts, check_integer

__all__ = ["CountsModel", "Estimator"]

Seed: TypeAlias = int | np.random.RandomState | np.random.Generator | None


class CountsModel(GibbsModel[S_contra, P, L, R, T], Protocol):
    """What an `Estimator` asks of a model, besides what `Gibbs` does."""

    @property
    def kept(self) -> tuple[str, ...]:
        """What probabilities are made of: names of what `describe_rows` tells, or of parameters."""

    def shards(self, counts: Array) -> Sequence[Any]:
        """Cut counts (n, K) into blocks."""

    def probabilities(self, *draws: Array) -> Array:
        """Return the probabilities (draw, n, K) of the rows of counts, from draws of what is `kept`."""


class Estimator(Face):
    """Rows of counts under a model of one's own, such as places on a map.

    It predicts and scores the rows of the fit; a row without counts is told by the others.

    Parameters
    ----------
    model : CountsModel
    inference : Gibbs or None
        None is ``Gibbs()``. What the model needs is kept besides its `keep`.
    random_state : int, RandomState, Generator or None
        The seed; None takes a fresh one, kept in `seed_`.
    n_jobs : int or None
        Threads; None is every core this process may use.
    progress : bool, callable or None
        True shows a bar, None where a person watches.
    checkpoint : path or None
        A folder that the run saves itself to, so that ``fit(X, resume=True)`` can go on after a kill.
    checkpoint_every : float
        Seconds between two saves, about; the end of a run is saved in any case.

    Attributes
    ----------
    posterior_ : Posterior
    categories_ : array of K names
    seed_ : int
    n_iter_ : int
        Sweeps made.
    """

    _schedules: ClassVar[tuple[type, ...]] = (Gibbs,)

    def __init__(
        self,
        model: Any,
        *,
        inference: Gibbs | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        progress: Show = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: float = 60.0,
    ) -> None:
        self.model = model
        self._run_by(inference, random_state, n_jobs, progress, checkpoint, checkpoint_every)

    def fit(self, X: Any, y: object = None, *, resume: bool = False) -> Self:
        """Learn from counts (n, K): an array, a CSR matrix or a DataFrame."""
        with all_or_nothing(self):
            return self._fit(X, resume)

    def _fit(self, X: Any, resume: bool) -> Self:
        _check_face(self.model)
        fit = self._begin(resume)
        counts = _dense(check_counts(self, X, reset=True, whole=True))
        self._run(fit, self.model, self.model.shards(counts), None)
        self.categories_ = category_names(X, counts.shape[1])
        self.n_rows_, self._index = len(counts), index_of(X)
        return self

    @property
    def _kept(self) -> tuple[str, ...]:
        fields = self.model.parameter_type._fields
        return tuple(name for name in self.model.kept if name not in fields)

    def probability_draws(self, n_draws: int = 1000) -> Array:
        """Return draws (draw, n, K) of the probabilities, at most n_draws, evenly spaced."""
        check_is_fitted(self)
        check_integer("n_draws", n_draws, at_least=1)
        drawn = self.posterior_.spread(self.model.kept, n_draws)
        return np.asarray(self.model.probabilities(*map(np.stack, zip(*drawn))))

    def predict_proba(self, *, return_std: bool = False, n_draws: int = 1000) -> Any:
        """Return the posterior mean (n, K) of each row's probabilities, and standard deviations."""
        pi = self.probability_draws(n_draws)
        mean = tabled(self, pi.mean(axis=0), self._index)
        return (mean, tabled(self, pi.std(axis=0), self._index)) if return_std else mean

    def predict_counts(
        self, totals: npt.ArrayLike, *, n_draws: int = 256, random_state: Seed = None
    ) -> Array:
        """Return draws (draw, n, K) of new counts with these totals, a number or (n,)."""
        pi = self.probability_draws(n_draws)
        rng = np.random.default_rng(seed_of(self, random_state))
        return rng.multinomial(np.broadcast_to(totals, pi.shape[1]), pi / pi.sum(-1, keepdims=True))

    def score_samples(self, X: Any, *, coefficient: bool = False, n_draws: int = 1000) -> Array:
        """Return the log probability (n,) of new counts of each row, averaged over draws."""
        counts = self._check(X)
        values = self._log_evidence(counts, n_draws)
        return values + scores.log_coefficients(counts) if coefficient else values

    def score(self, X: Any, y: object = None, *, n_draws: int = 1000) -> float:
        """Return the log likelihood per count of new counts, in nats; bigger is better."""
        counts = self._check(X)
        return scores.per_count(self._log_evidence(counts, n_draws), counts)

    def _check(self, X: Any) -> Array:
        check_is_fitted(self)
        counts = _dense(check_counts(self, X, reset=False, whole=False))
        if len(counts) != self.n_rows_:
            raise ValueError(
                f"counts must be of the {self.n_rows_} rows seen in fit; got {len(counts)}; "
                "put zeros where a row has no new counts"
            )
        return counts

    def _log_evidence(self, counts: Array, n_draws: int) -> Array:
        with np.errstate(divide="ignore"):
            logs = np.log(self.probability_draws(n_draws))
        seen = np.where(counts > 0, counts * np.where(counts > 0, logs, 0.0), 0.0)
        return scores.log_mean_exp(seen.sum(axis=2), axis=0)


def _check_face(model: Any) -> None:
    """Raise unless a model has what a face needs."""
    lacking = [name for name in ("kept", "shards", "probabilities") if not hasattr(model, name)]
    if lacking:
        raise TypeError(
            f"{type(model).__name__} has no face: {', '.join(lacking)} missing; "
            "polystick.modelling.CountsModel says what they are"
        )
    check_model(model, "Gibbs")


def _dense(counts: Any) -> Array:
    return np.asarray(counts.toarray() if hasattr(counts, "toarray") else counts)
