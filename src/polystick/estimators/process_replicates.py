"""What Gaussian processes say of counts that could have been: replicates, groups for ArviZ.

Functions of a fitted face; the public ones are methods of `MultinomialGP`.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from polystick import scores
from polystick.arguments import Counts, RandomState
from polystick.estimators.arviz_groups import Asked, Groups, assembled, need_fit
from polystick.estimators.replicates import (
    check_room,
    check_totals,
    drawn_counts,
    generator,
    totals_of,
)
from polystick.estimators.row_names import labels_of
from polystick.estimators.seeds import seed_of
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.models import predictive
from polystick.validation import check_integer

_DRAWS = 200  # posterior states, for groups: each solves for all inputs
_STATE = ("theta", "white", "mean", "scale")


def predict_counts(face, Z: ArrayLike | None = None, *, totals: ArrayLike | None = None, n_draws: int = 256,
                   random_state: RandomState = None) -> Any:  # fmt: skip
    """Return draws (n_draws, n, K) of counts from the posterior predictive law.

    At the inputs of the fit, each posterior draw of the functions gives one; fewer where there are
    fewer. At other inputs, and after mean field, different inputs are drawn independently of each other,
    as in `predict_proba`.

    Parameters
    ----------
    Z : array-like of shape (n, d), optional
        None is `inputs_`, the inputs of the fit.
    totals : int or array of shape (n,)
        Of the counts to draw; None is those of `counts_`, where Z is None.
    n_draws : int
    random_state : int, RandomState, Generator or None
        None is the seed of the fit.
    """
    check_is_fitted(face)
    check_integer("n_draws", n_draws, at_least=1)
    inputs = face.inputs_ if Z is None else face._check_inputs(Z)
    if totals is None and Z is not None:
        raise ValueError("totals must say how many counts to draw at each input of Z; got None")
    given = totals_of(face.counts_) if totals is None else check_totals(totals, len(inputs))
    seed = seed_of(face, random_state)
    states = None
    if Z is None and _has_functions(face):
        draws = face.posterior_.even_draws(_STATE, n_draws)
        states = face.posterior_.states(_STATE, draws)
    return _replicates(face, inputs, given, seed, states, n_draws)


def to_arviz(face, Z: ArrayLike | None = None, X: Counts | None = None, *, log_likelihood: bool = False,
             posterior_predictive: bool = False, prior_predictive: bool = False, n_draws: int | None = None,
             random_state: RandomState = None) -> Any:  # fmt: skip
    """Return the posterior with the groups asked for, as what the installed ArviZ works on.

    That is InferenceData before ArviZ 1.0, a DataTree since. All groups have the same chains and draws:
    `posterior` and `sample_stats` are thinned to those that the others were made from.

    Parameters
    ----------
    Z, X : as in `fit`
        None is the data of the fit, with the counts of equal inputs added. Other data, both of them, are
        for predictive checks. They become `observed_data`, under the labels of X's index (or Z's) if it
        is a DataFrame.
    log_likelihood : bool
        Log probability of the counts at each input of the fit, given those at all other inputs, their
        omega and the parameters of each draw; the functions are integrated out, and the multinomial
        coefficient is counted in. Averaged by ``az.loo``, this is the probability of an input's counts
        under a fit without them; ``az.compare`` compares kernels. `p_loo` then counts only what
        hyperparameters and omega learn. Gibbs only.
    posterior_predictive : bool
        Counts at the same inputs again, as `predict_counts` draws them.
    prior_predictive : bool
        Counts from the prior, as `sample_prior` has it, with the same totals.
    n_draws : int or None
        Draws of all chains together, at most. None is all of them where nothing is asked for, or 200.
    random_state : int, RandomState, Generator or None
        None is the seed of the fit.
    """
    check_is_fitted(face)
    asked = Asked.of(face, log_likelihood, posterior_predictive, prior_predictive, n_draws,
                     random_state)  # fmt: skip
    if posterior_predictive == "new":
        raise ValueError(
            'posterior_predictive="new" needs a population of rows; counts at inputs have none: give '
            "other inputs, Z and X, and say True"
        )
    return assembled(face.posterior_, _groups(face, Z, X, asked), asked)


def _has_functions(face):
    return "white" in face.posterior_.names()


def _groups(face, Z, X, asked):
    again = Z is None and X is None
    if not again and (Z is None or X is None):
        raise ValueError("Z and X must both be given, or neither; got one of them")
    if asked.log_likelihood:
        need_fit(again, "the counts")
    inputs, counts = (face.inputs_, face.counts_) if again else face._check_table(Z, X)
    labels = face._input_names if again else labels_of(X)
    sizes = totals_of(counts) if asked.posterior_predictive or asked.prior_predictive else None
    joint = again and _has_functions(face)
    return Groups(
        _STATE if _has_functions(face) else ("theta",),
        _DRAWS,
        counts,
        "input",
        {
            "input": np.arange(len(inputs)) if labels is None else labels,
            "category": [str(name) for name in face.categories_],
        },
        lambda states: _left_out(face, states, asked.seed),
        "input",
        lambda states: _replicates(
            face, inputs, sizes, asked.seed, states if joint else None, len(states)
        ),
        lambda n: _prior_counts(face, inputs, sizes, asked.seed, n),
    )


def _left_out(face, states, seed):
    """Return the log probability of each input's counts given all others, (S, M)."""
    shards = face.model_.shards(face.counts_)

    def work(i):
        given = (face.model_, states[i], shards, face.counts_)
        return predictive.log_left_out(*given, seed, i)

    with execution_for(face.n_jobs) as execution, one_blas_thread():
        found = list(execution.map(work, range(len(states))))
    return np.stack(found) + scores.log_coefficients(face.counts_)


def _replicates(face, inputs, totals, seed, states, n_draws):
    """Return counts (S, n, K), at the functions of each state where there are any."""
    if states is not None:
        n_draws = len(states)
    check_room(3 * n_draws, len(inputs), len(face.categories_))
    if states is None:
        _, pi = face.predict_proba(inputs, return_draws=True, n_draws=n_draws)
        return _counts(pi, totals, seed, 0)
    with one_blas_thread():
        return _counts(map(face.model_.probabilities_of, states), totals, seed, 0)


def _prior_counts(face, inputs, totals, seed, n_draws):
    check_room(3 * n_draws, len(inputs), len(face.categories_))
    pi = face.sample_prior(inputs, n_draws, random_state=seed)
    return _counts(pi, totals, seed, 1)


def _counts(pi, totals, seed, what):
    return np.stack(
        [drawn_counts(each, totals, generator(seed, what, i)) for i, each in enumerate(pi)]
    )
