"""What correlated multinomials say of rows that could have been: replicates, priors, groups for ArviZ.

Functions of a fitted face; the public ones are methods of `CorrelatedMultinomial`.
"""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from polystick import scores
from polystick.arguments import Counts, RandomState
from polystick.estimators.arviz_groups import Asked, Groups, assembled, need_fit, need_rows
from polystick.estimators.replicates import (
    check_room,
    check_totals,
    drawn_counts,
    generator,
    totals_of,
)
from polystick.estimators.row_names import labels_of, same_rows
from polystick.estimators.seeds import seed_of
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.models.multinomial import log_coefficients
from polystick.validation import check_integer

_DRAWS = 1000  # posterior draws of the parameters, for groups
_POINTS = 32  # of a row's psi for each of them: an error of 0.01 to 0.05 nats
_CANDIDATES = 16  # of which a replicate's psi is picked
_AT_ONCE = 32  # draws of the parameters, and twice as many rows, whose proposals are in memory


def predict_counts(face, X: Counts, *, totals: ArrayLike | None = None, n_draws: int = 256,
                   random_state: RandomState = None) -> Any:  # fmt: skip
    """Return draws (n_draws, n, K) of counts from the posterior predictive law.

    Each posterior draw of the parameters gives one. A row's psi is drawn given its counts, so these
    are replicates of the same rows, each with its own probabilities; their mean is that of
    `predict_proba` times the totals. A row without counts is a new one of the population, so
    ``predict_counts(0 * X, totals=X.sum(axis=1))`` are new rows as large as those of X,
    which is what checks the population.

    Parameters
    ----------
    X : array-like or CSR of shape (n, K)
        Counts seen of each row.
    totals : int or array of shape (n,), optional
        Of the counts to draw; None is those of X.
    n_draws : int
        Posterior draws of the parameters, at most; fewer where there are fewer.
    random_state : int, RandomState, Generator or None
        None is the seed of the fit.
    """
    counts = face._check(X)
    check_integer("n_draws", n_draws, at_least=1)
    given = totals_of(counts) if totals is None else check_totals(totals, counts.shape[0])
    seed = seed_of(face, random_state)
    names = face.model_.population_type._fields
    states = face.posterior_.states(names, face.posterior_.even_draws(names, n_draws))
    return _replicates(face, counts, given, seed, states)


def sample_prior(
    face, n_rows: int = 1, n_draws: int = 1, *, random_state: RandomState = None
) -> Any:
    """Return draws (n_draws, n_rows, K) of the probabilities of rows, as if nothing had been counted.

    Each draw has a mean and a covariance of its own from the prior, and rows of their population.
    The same at each call, unless random_state is given; it is the seed of the fit by default.
    """
    check_is_fitted(face)
    check_integer("n_rows", n_rows, at_least=1)
    check_integer("n_draws", n_draws, at_least=1)
    seed = seed_of(face, random_state)
    return np.stack([_prior_rows(face, n_rows, seed, i) for i in range(n_draws)])


def to_arviz(face, X: Counts | None = None, *, log_likelihood: bool = False,
             posterior_predictive: bool = False, prior_predictive: bool = False, n_draws: int | None = None,
             random_state: RandomState = None) -> Any:  # fmt: skip
    """Return the posterior with the groups asked for, as what the installed ArviZ works on.

    That is InferenceData before ArviZ 1.0, a DataTree since. All groups have the same chains and draws:
    `posterior` and `sample_stats` are thinned to those that the others were made from.

    Parameters
    ----------
    X : array-like or CSR of shape (n, K)
        The rows of the fit, for all but the posterior; they become `observed_data`, under the labels of
        its index if it is a DataFrame.
    log_likelihood : bool
        Log probability of each row's counts given the parameters of each draw, with the row's own psi
        integrated out (importance sampling, 32 points, an error of 0.01 to 0.05 nats) and the multinomial
        coefficient: for ``az.loo`` and ``az.compare``, which then say how well a row is predicted by a
        fit without it. Gibbs only.
    posterior_predictive : bool or "new"
        Counts of the same rows again, as `predict_counts` draws them: psi is that of the row, given its
        counts. "new": counts of new rows of the population with the same totals.
    prior_predictive : bool
        Counts of rows from the prior, with the same totals.
    n_draws : int or None
        Draws of all chains together, at most. None is all of them where nothing is asked for, or 1000.
    random_state : int, RandomState, Generator or None
        None is the seed of the fit.
    """
    check_is_fitted(face)
    asked = Asked.of(face, log_likelihood, posterior_predictive, prior_predictive, n_draws,
                     random_state)  # fmt: skip
    need_rows(X, asked)
    return assembled(face.posterior_, _groups(face, X, asked), asked)


def _groups(face, X, asked):
    names = face.model_.population_type._fields
    if X is None:
        return Groups(names, _DRAWS, None, "row", {}, None, "row", None, None)
    counts, labels = face._check(X), labels_of(X)
    if asked.log_likelihood:
        need_fit(same_rows(face._seen_rows, counts), "the rows")
    seen = 0 * counts if asked.posterior_predictive == "new" else counts
    sizes = totals_of(counts) if asked.posterior_predictive or asked.prior_predictive else None
    return Groups(
        names,
        _DRAWS,
        counts.toarray() if scipy.sparse.issparse(counts) else counts,
        "row",
        {
            "row": np.arange(counts.shape[0]) if labels is None else labels,
            "category": [str(name) for name in face.categories_],
        },
        lambda states: _row_log_likelihoods(face, counts, states),
        "row",
        lambda states: _replicates(face, seen, sizes, asked.seed, states),
        lambda n: _prior_counts(face, sizes, asked.seed, n),
    )


def _row_log_likelihoods(face, counts, states):
    """Return log p(x_i | parameters), psi integrated out, (S, n)."""

    def work(shard, priors, number):
        _, log_weights = face.model_.propose_rows(priors, shard, _POINTS)
        by_prior = log_weights.reshape(len(log_weights), len(priors), _POINTS)
        return scores.log_mean_exp(by_prior, axis=2).T

    return _over_states(face, counts, states, work) + log_coefficients(counts)


def _replicates(face, counts, totals, seed, states):
    """Return counts (S, n, K), the psi of each row picked from candidates by weight."""
    k = face.model_.n_dims
    check_room(len(states), counts.shape[0], len(face.categories_))

    def work(shard, priors, number):
        rows = shard.rows.astype(int)
        rng = generator(seed, 0, int(rows[0]), number)
        size = len(rows), len(priors) * _CANDIDATES, face.model_.n_noise
        noise = rng.standard_normal(size)
        psi, log_weights = face.model_.propose_rows(priors, shard, _CANDIDATES, noise)
        shape = len(rows), len(priors), _CANDIDATES
        edges = np.cumsum(scores.softmax(log_weights.reshape(shape), axis=2), axis=2)
        below = edges[..., :-1] < edges[..., -1:] * rng.random((*shape[:2], 1))
        place = below.sum(axis=2)[..., None, None]
        picked = np.take_along_axis(psi.reshape(*shape, k), place, axis=2)[:, :, 0]
        pi = np.moveaxis(face.model_.probabilities(picked), 1, 0)
        return np.stack([drawn_counts(each, totals[rows], rng) for each in pi])

    return _over_states(face, counts, states, work)


def _over_states(face, counts, states, work):
    """Return work(shard, priors, number of the first) of all rows and states, (S, n, ...)."""
    with execution_for(face.n_jobs) as execution, one_blas_thread():
        priors = [face.model_.population(**state) for state in states]
        starts = range(0, len(priors), _AT_ONCE)
        shards = face.model_.shards(counts, size=2 * _AT_ONCE)
        tasks = [(shard, start) for shard in shards for start in starts]
        found = iter(
            execution.map(
                lambda task: work(task[0], priors[task[1] : task[1] + _AT_ONCE], task[1]), tasks
            )
        )
        return np.concatenate(
            [np.concatenate([next(found) for _ in starts]) for _ in shards], axis=1
        )


def _prior_rows(face, n_rows, seed, number):
    """Return probabilities (n_rows, K)."""
    nothing = np.zeros(n_rows, dtype=np.int64)
    _, rows, _ = face.model_.simulate(nothing, generator(seed, 1, number))
    return face.model_.probabilities(rows.psi)


def _prior_counts(face, totals, seed, n_draws):
    check_room(n_draws, len(totals), len(face.categories_))
    return np.stack(
        [
            drawn_counts(_prior_rows(face, len(totals), seed, i), totals, generator(seed, 2, i))
            for i in range(n_draws)
        ]
    )
