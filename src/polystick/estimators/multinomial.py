"""The face of correlated multinomials."""

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from polystick import scores
from polystick.arguments import Counts, PathLike, Progress, RandomState
from polystick.association import LEAST_CATEGORIES
from polystick.estimators import association, completion, row_models, row_replicates
from polystick.estimators.association import Association
from polystick.estimators.face import Face, Transformer
from polystick.estimators.intervals import Interval, interval
from polystick.estimators.row_names import ids_of, named
from polystick.estimators.stick_names import stick_names
from polystick.estimators.tables import as_asked, tabled
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from polystick.inference.schedules import Schedule
from polystick.inference.stochastic import StochasticVI
from polystick.validation import (
    all_or_nothing,
    category_names,
    check_counts,
    check_integer,
    check_level,
    warn_user,
)

_FEW = 5.0  # effective draws below which an importance estimate is not to be trusted
_POINTS = 8  # proposals of a row for each posterior draw of the parameters
_ROWS_AT_ONCE = 64  # each holds its proposals in memory


class CorrelatedMultinomial(OneToOneFeatureMixin, Transformer, Face):
    """Rows of counts over categories that depend on each other.

    Each row has its own probabilities; their logits (one for each binary split of the categories) share
    a Gaussian law with a mean and a covariance, which are learned, so that rows with few counts borrow
    strength from the others.

    Parameters
    ----------
    link : "stick" or "softmax"
        How psi becomes probabilities. "stick": by binary splits, with one entry of psi for each. "softmax":
        with one entry for each category, none of which comes first; `category_association` needs it.
        Gibbs only.
    covariance : "full", "factor" or None
        The law of the covariance of psi, which learns its scale. "full": half-t standard deviations
        (Huang and Wand 2013), and correlations whose size is learned too. "factor": few factors that move
        few entries each (horseshoe loadings), and noise; Gibbs only. None: what `prior` says, or "full" for
        sticks and "factor" for a softmax.
    decomposition : str, array, nested tuples, linkage matrix or Decomposition, default="frequency"
        How K categories become K - 1 binary splits: "frequency" (sticks, largest category first), "given"
        (sticks in the order of the columns), "balanced", "huffman", "learned" (columns that rise and fall
        together are near each other), a permutation of the columns, or a binary tree as nested tuples, a
        SciPy linkage or a Newick string.
    prior : NormalInverseWishart or None
        Prior of the mean and covariance of psi, in the place of `covariance`, with one entry for each split
        or, for a softmax, for each category.
    inference : Gibbs, MeanField or None
        The schedule with its settings; None is ``Gibbs(min_ess=400, max_draws=2500)`` for sticks, a
        thousand draws of each chain and more until chains agree, and for a softmax
        ``Gibbs(min_ess=200, max_draws=4000)``. Gibbs needs whole counts, mean field takes any
        non-negative weights.
    random_state : int, RandomState, Generator or None
        The seed, or what to draw it from; None takes a fresh one. It is kept in `seed_`: the same seed gives
        the same bits on any number of threads.
    n_jobs : int or None
        Threads; None is every core this process may use, and -1 too.
    progress : bool, callable or None
        True shows a bar, None where a person watches: in a terminal or a notebook. A function is called
        with a `Progress` after each sweep.
    checkpoint : path or None
        A folder that the run saves itself to, so that ``fit(X, resume=True)`` can go on after a kill.
    checkpoint_every : float
        Seconds between two saves, about; the end of a run is saved in any case.

    Attributes
    ----------
    posterior_ : Posterior
        Draws of `mean` and `cov`, running moments of `probabilities`, diagnostics, `to_arviz`, `save`.
    decomposition_ : Decomposition or None
        The binary splits that psi refers to; None for a softmax, whose `mean` and `cov` are those of centred
        log-ratios of the categories' shares.
    categories_ : array of K names
    seed_ : int
    n_iter_ : int
        Sweeps made.

    Examples
    --------
    >>> import numpy as np
    >>> from polystick import CorrelatedMultinomial, MeanField
    >>> counts = np.array([[20, 5, 1], [18, 8, 0], [3, 10, 12], [2, 0, 0]])
    >>> model = CorrelatedMultinomial(inference=MeanField(), random_state=0).fit(counts)
    >>> model.predict_proba(counts).shape
    (4, 3)
    """

    _explored_as = "rows"
    _schedules = (Gibbs, MeanField, StochasticVI)
    _listed = "multinomial"

    def __init__(self, *, link: str = "stick", covariance: str | None = None,
                 decomposition: Any = "frequency", prior: Any = None, inference: Schedule | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None,
                 progress: Progress | None = None, checkpoint: PathLike | None = None,
                 checkpoint_every: float = 60.0) -> None:  # fmt: skip
        self.link = link
        self.covariance = covariance
        self.decomposition = decomposition
        self.prior = prior
        self._run_by(inference, random_state, n_jobs, progress, checkpoint, checkpoint_every)

    def fit(self, X: Counts, y: Any = None, *, resume: bool = False) -> Self:
        """Learn from counts (n, K): an array, a CSR matrix or a DataFrame.

        Parameters
        ----------
        X : array-like or CSR of shape (n, K)
        y : ignored
        resume : bool
            Go on with the run in the checkpoint folder, if there is one.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            return self._fit(X, resume)

    def _fit(self, X, resume):
        fit = self._begin(resume)
        counts = check_counts(self, X, reset=True, whole=fit.inference.needs_whole_counts)
        self.categories_ = category_names(X, counts.shape[1])
        model = row_models.build(self, fit.inference, counts)
        self._run(fit, model, model.shards(counts), self._coords(model) | named("row", X))
        self._seen_rows = ids_of(counts)
        self.decomposition_ = getattr(model, "decomposition", None)
        return self

    def _default_inference(self):
        return row_models.default_inference(self)

    def predict_proba(
        self, X: Counts, *, return_std: bool = False, return_draws: bool = False, n_draws: int = 256
    ) -> Any:
        """Return the posterior mean of each row's probabilities given its counts.

        A row's psi is drawn by importance sampling, 8 times for each of several posterior draws of the
        parameters; the row does not change what is known of the parameters. Its result depends on its own
        counts alone.

        Parameters
        ----------
        X : array-like or CSR of shape (n, K)
            Counts seen of each row; none at all gives what the population says. Of a part of a row they
            give the probabilities of its next count: what `score` with `observed` says of one count.
        return_std : bool
            Also return posterior standard deviations (n, K).
        return_draws : bool
            Also return draws (n_draws, n, K), resampled so that they have equal weights.
        n_draws : int
            Proposals to average over, 8 for each posterior draw of the parameters that is used.
        """

        def work(shard, psi, log_weights):
            weights, pi = self._weights(log_weights), self.model_.probabilities(psi)
            mean = np.einsum("nd,ndk->nk", weights, pi)
            variance = np.einsum("nd,ndk->nk", weights, np.square(pi - mean[:, None]))
            draws = scores.resampled(weights, pi, n_draws) if return_draws else None
            return mean, np.sqrt(variance), draws

        parts = self._propose(self._check(X), n_draws, work)
        kinds = (0, 1) if return_std else (0,)
        found = [np.concatenate([part[i] for part in parts]) for i in kinds]
        draws = np.concatenate([part[2] for part in parts], axis=1) if return_draws else None
        return as_asked(self, found, X, draws)

    def transform(self, X: Counts) -> Any:
        """Return `predict_proba`, as a step of a pipeline."""
        return tabled(self, np.asarray(self.predict_proba(X)), X, self.get_feature_names_out())

    predict_counts = row_replicates.predict_counts
    sample_prior = row_replicates.sample_prior
    to_arviz = row_replicates.to_arviz

    def score_samples(
        self, X: Counts, *, observed: Any = None, coefficient: bool = False, n_draws: int = 1024
    ) -> np.ndarray:
        """Return the log probability of each row's counts under the posterior predictive law.

        The row's psi is integrated out by importance sampling, and the parameters are averaged over
        posterior draws (log-mean-exp for each row). What was observed of a row teaches its psi, and not the
        parameters, as in `predict_proba`.

        Parameters
        ----------
        X : array-like or CSR of shape (n, K)
        observed : float, array-like or CSR of shape (n, K), or None
            What is given of each row. A float is a share of the counts of X, picked at random with the seed
            of the fit, and the rest of X is scored. Counts are given beside X, and all of X is scored.
        coefficient : bool
            Whether to count the multinomial coefficient (of what is scored) in.
        n_draws : int
            Proposals to average over, as in `predict_proba`.
        """
        rest, seen = completion.parts(self, X, observed)
        values = self._log_evidence(rest, seen, n_draws)
        return values + scores.log_coefficients(rest) if coefficient else values

    def score(self, X: Counts, y: Any = None, *, observed: Any = None, coefficient: bool = False,
              n_draws: int = 1024) -> float:  # fmt: skip
        """Return the held-out log likelihood per scored count, in nats; bigger is better.

        With `observed`, as in `score_samples`, it is that of the rest of each row.
        """
        rest, seen = completion.parts(self, X, observed)
        values = self._log_evidence(rest, seen, n_draws)
        return scores.per_count(
            values + scores.log_coefficients(rest) if coefficient else values, rest
        )

    def _log_evidence(self, rest, seen, n_draws):
        """Return log p(rest | seen) of each row.

        For each draw of the parameters it is the evidence of both parts over that of what was seen. Both are
        proposed from the same points, whose errors then mostly cancel.
        """

        def evidence(shard, psi, log_weights):
            return scores.log_mean_exp(log_weights.reshape(len(psi), -1, _POINTS), axis=2)

        def work(shard, psi, log_weights):
            if seen is not None:
                log_weights -= np.repeat(given[shard.rows.astype(int)], _POINTS, axis=1)
            value = scores.log_mean_exp(log_weights, axis=1)
            return value, scores.effective_draws(log_weights, axis=1)

        if seen is not None:
            given = np.concatenate(self._propose(seen, n_draws, evidence))
        both = rest if seen is None else seen + rest
        values, worth = map(np.concatenate, zip(*self._propose(both, n_draws, work)))
        _warn_if_few(worth)
        return values

    def log_share_correlation(self, *, level: float = 0.9, n_draws: int = 100) -> Interval:
        """Return correlations, over rows of the fitted law, of the categories' log shares.

        This describes the law. It is no test of association: for independent categories it is not zero, and
        among rare ones, whose sticks share all earlier ones, it is mostly positive. In simulated tables
        of 35 independent categories 71 to 95 % of the 90 % intervals among rare ones excluded zero, and 12 to
        48 % among common ones. Read the sign of large values between common categories, and nothing
        between rare ones.

        Parameters
        ----------
        level : float
            Probability of the central interval.
        n_draws : int
            Posterior draws to use.

        Returns
        -------
        Interval of data frames (K, K)
        """
        drawn = self._over_draws(n_draws, level, lambda log_pi: np.corrcoef(log_pi, rowvar=False))
        names = pd.Index(self.categories_)
        return interval(drawn, level, lambda a: pd.DataFrame(a, index=names, columns=names))

    def category_association(self, *, level: float = 0.9, n_draws: int = 400) -> "Association":
        """Return which categories go together: correlations of their log abundances.

        Shares tell abundances but for a common factor of each row, so the covariance of log abundances is
        known but for what all pairs share. Of all that fit the shares the *sparse gauge* is taken, in which
        most pairs are as little associated as can be: independent categories have associations of 0, whatever
        their sizes and variances. It is relative to that: where half of the categories share one cause, the
        sign is not known. Intervals of strong associations in few rows are shrunk towards 0: read them as
        "is there something" rather than "how strong".

        It needs ``link="softmax"`` and at least 5 categories.

        Parameters
        ----------
        level : float
            Probability of the central interval.
        n_draws : int
            Posterior draws to use, of all chains together.

        Returns
        -------
        Association
            `mean`, `lower`, `upper`, `nonzero` and `rhat` are data frames (K, K); `table()` names the pairs
            that are known to be associated, the strongest first.
        """
        check_is_fitted(self)
        check_level(level)
        check_integer("n_draws", n_draws, at_least=1)
        association.need_softmax(self)
        return association.of(self.posterior_, pd.Index(self.categories_), level, n_draws)

    def summary(self, *, level: float = 0.9, n_draws: int = 100) -> Any:
        """Return a table of the categories, the largest first.

        `share` is the average over rows of the fitted law, between `lower` and `upper`; `spread` is the
        standard deviation of the share from row to row, between `spread lower` and `spread upper`. Behind
        a softmax of 5 categories or more, `goes with` has the names of those that a category is known to be
        associated with, the strongest first, with the sign.

        Parameters
        ----------
        level : float
            Probability of the central intervals.
        n_draws : int
            Posterior draws to use.
        """

        def moments(log_pi):
            pi = np.exp(log_pi)
            return pi.mean(axis=0), pi.std(axis=0)

        drawn = self._over_draws(n_draws, level, moments)
        names = pd.Index(self.categories_)
        share, spread = (
            pd.concat(interval(drawn[:, i], level, lambda a: pd.Series(a, index=names)), axis=1)
            for i in (0, 1)
        )
        share.columns = ["share", "lower", "upper"]
        spread.columns = ["spread", "spread lower", "spread upper"]
        table = share.join(spread).sort_values("share", ascending=False)
        if self.link == "softmax" and len(names) >= LEAST_CATEGORIES:
            found = association.of(self.posterior_, names, level, max(n_draws, 100))
            table["goes with"] = found.partners().reindex(table.index)
        return table

    def _weights(self, log_weights):
        """Normalise within each draw of the parameters: a row must not choose among them.

        A row of the fit is in their posterior already, and would be counted twice.
        """
        by_parameters = log_weights.reshape(len(log_weights), -1, _POINTS)
        weights = scores.softmax(by_parameters, axis=2) / by_parameters.shape[1]
        return weights.reshape(log_weights.shape)

    def _parameters(self, n_draws):
        kind = self.model_.population_type
        return [kind(*drawn) for drawn in self.posterior_.spread(kind._fields, n_draws)]

    def _over_draws(self, n_draws, level, function):
        """Return function(log probabilities of the population) for each posterior draw, stacked."""
        check_is_fitted(self)
        check_integer("n_draws", n_draws, at_least=1)
        check_level(level)
        with one_blas_thread():
            return np.stack(
                [function(self.model_.log_population(p)) for p in self._parameters(n_draws)]
            )

    def _coords(self, model):
        names = [str(name) for name in self.categories_]
        if self.link == "softmax":
            return {"category": names, "category_too": names}
        sticks = stick_names(model.decomposition, names)
        return {"category": names, "stick": sticks, "stick_too": sticks}

    def _check(self, X):
        check_is_fitted(self)
        self._check_running()
        return check_counts(self, X, reset=False, whole=self.inference_.needs_whole_counts)

    def _propose(self, counts, n_draws, work):
        """Map work(shard, psi, log_weights) over blocks of rows; return the list of results."""
        check_integer("n_draws", n_draws, at_least=_POINTS)
        with execution_for(self.n_jobs) as execution, one_blas_thread():
            priors = [self.model_.population(*p) for p in self._parameters(n_draws // _POINTS)]
            shards = self.model_.shards(counts, size=_ROWS_AT_ONCE)
            return list(
                execution.map(
                    lambda s: work(s, *self.model_.propose_rows(priors, s, _POINTS)), shards
                )
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags


def _warn_if_few(worth):
    few = int((worth < _FEW).sum())
    if few:
        warn_user(
            f"the scores of {few} of {len(worth)} rows rest on fewer than {_FEW:.0f} effective draws and "
            "are too low on average; raise n_draws"
        )
