"""What models of sequences say of counts that could have been: replicates, priors, groups for ArviZ.

Functions of a fitted face; the public ones are methods of all of them.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from polystick.arguments import Counts, RandomState
from polystick.estimators.arviz_groups import Asked, Groups, assembled, need_fit
from polystick.estimators.replicates import check_room, drawn_counts, generator
from polystick.estimators.seeds import seed_of
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.inference.gibbs import Gibbs
from polystick.models.sequence_filter import prediction_key
from polystick.validation import check_integer

_DRAWS = 200  # posterior draws, for groups: each filters all sequences


def predict_counts(face, X: Counts | None = None, inputs: ArrayLike | None = None, *, n_draws: int = 100,
                   random_state: RandomState = None) -> Any:  # fmt: skip
    """Return draws of counts from the posterior predictive law, a list of (n_draws, steps, K).

    The states of a sequence are drawn given all of it, then counts with the totals of its steps: so these
    are replicates of the same sequences. New ones are what `simulate` draws.

    Parameters
    ----------
    X, inputs : as in `fit`
        None is the sequences of the fit.
    n_draws : int
        Posterior draws, at most; fewer where there are fewer.
    random_state : int, RandomState, Generator or None
        None is the seed of the fit.
    """
    check_integer("n_draws", n_draws, at_least=1)
    _need_posterior(face)
    read = face._read_again(X, inputs)
    seed = seed_of(face, random_state)
    names = _replicated_names(face, again=X is None)
    states = face.posterior_.states(names, face.posterior_.even_draws(names, n_draws))
    drawn = _replicates(face, read, seed, states)
    return np.split(drawn, np.cumsum(read.lengths)[:-1], axis=1)


def sample_prior(face, n_steps: int, inputs: ArrayLike | None = None, *, n_draws: int = 1,
                 random_state: RandomState = None) -> Any:  # fmt: skip
    """Return draws of the probabilities of steps, before any data: a list of (n_draws, steps, K).

    Parameters
    ----------
    n_steps : int, or a list of them
        The length of each sequence. Those of a draw have the same parameters.
    inputs : as in `fit`
    n_draws : int
    random_state : int, RandomState, Generator or None
        None is the seed of the fit; the same seed gives the same draws.
    """
    check_is_fitted(face)
    lengths = list(n_steps) if isinstance(n_steps, list | tuple) else [n_steps]
    for each in lengths:
        check_integer("n_steps", each, at_least=1)
    check_integer("n_draws", n_draws, at_least=1)
    inputs = face._read_inputs(inputs, np.array(lengths))
    seed = seed_of(face, random_state)
    draws = [_prior_steps(face, lengths, inputs, seed, i) for i in range(n_draws)]
    return np.split(np.stack(draws), np.cumsum(lengths)[:-1], axis=1)


def to_arviz(face, X: Counts | None = None, inputs: ArrayLike | None = None, *,
             log_likelihood: bool = False, posterior_predictive: bool = False,
             prior_predictive: bool = False, n_draws: int | None = None,
             random_state: RandomState = None) -> Any:  # fmt: skip
    """Return the posterior with the groups asked for, as what the installed ArviZ works on.

    That is InferenceData before ArviZ 1.0, a DataTree since. All groups have the same chains and draws:
    `posterior` and `sample_stats` are thinned to those that the others were made from. Counts are
    dense, (chain, draw, step, category), with the steps of all sequences one after another.

    Parameters
    ----------
    X, inputs : as in `fit`
        None is the sequences of the fit; others are for predictive checks. They become `observed_data`,
        under the labels of the index of tables.
    log_likelihood : bool
        Log probability of each sequence given the parameters of each draw, its states integrated out by
        the filter, without multinomial coefficients: for ``az.loo`` and ``az.compare``, which leave out
        one sequence at a time. So there must be several. Steps are not left out: what comes after a step
        would tell of it. Gibbs only.
    posterior_predictive : bool or "new"
        Counts of the same steps again, as `predict_counts` draws them. "new": of new sequences with
        the same totals.
    prior_predictive : bool
        Counts of sequences from the prior, with the same totals.
    n_draws : int or None
        Draws of all chains together, at most. None is all of them where nothing is asked for, or 200.
    random_state : int, RandomState, Generator or None
        None is the seed of the fit.
    """
    _need_posterior(face)
    asked = Asked.of(face, log_likelihood, posterior_predictive, prior_predictive, n_draws,
                     random_state)  # fmt: skip
    read = face._read_again(X, inputs)
    if asked.log_likelihood:
        need_fit(X is None, "the sequences")
        _need_sequences(face, read)
    return assembled(face.posterior_, _groups(face, read, asked, X is None), asked)


def _need_posterior(face):
    check_is_fitted(face)
    if not hasattr(face, "posterior_"):
        raise TypeError(f"{type(face).__name__} has no posterior draws")


def _need_sequences(face, read):
    if not face._has_likelihood:
        raise TypeError(
            f"{type(face).__name__} has no likelihood of counts, and nothing to be left out of it; "
            "compare score_samples of held-out sequences"
        )
    if len(read.sequences) < 2:
        raise ValueError(
            "log_likelihood=True needs at least 2 sequences, for one of them is left out at a time; got "
            "one; compare score_samples of its last steps, n_seen=..., by fits without them"
        )


def _groups(face, read, asked, again):
    n_steps, n_categories = int(read.lengths.sum()), len(face.categories_)
    check_room(2, n_steps, n_categories)
    steps, new = read.step_names, asked.posterior_predictive == "new"
    names = _replicated_names(face, again and not new and bool(asked.posterior_predictive))
    replicate = _new_sequences if new else _replicates
    return Groups(
        names,
        _DRAWS,
        np.concatenate([_dense(each, n_categories) for each in read.sequences]),
        "step",
        {
            "step": steps.get("step", np.arange(n_steps)),
            "sequence": np.arange(len(read.sequences)),
            "category": [str(name) for name in face.categories_],
        },
        lambda states: _sequence_log_likelihoods(face, read, asked.seed, states),
        "sequence",
        lambda states: replicate(face, read, asked.seed, states),
        lambda n: _prior_counts(face, read, asked.seed, n),
    )


def _replicated_names(face, again):
    """Return what replicates need of a draw: parameters; states too where those of the fit are kept."""
    kept = face._kept if again and isinstance(face.inference_, Gibbs) else ()
    return (*face._parameter_names(), *kept)


def _sequence_log_likelihoods(face, read, seed, states):
    """Return log p(sequence | parameters), (S, n)."""

    def work(predictor, shard, key, number):
        values = predictor.filter(shard, key).values
        return np.add.reduceat(values, shard.starts[:-1])

    return _over_states(face, read, seed, states, work)


def _replicates(face, read, seed, states):
    """Return counts (S, steps, K), the states of each sequence drawn given all of it."""
    totals, n_draws = np.concatenate(read.totals), len(states)
    check_room(n_draws, len(totals), len(face.categories_))

    def work(predictor, shard, key, number):
        return _drawn_probabilities(face, predictor, shard, key, states[number])

    pi = _over_states(face, read, seed, states, work)
    return np.stack(
        [drawn_counts(each, totals, generator(seed, 0, i)) for i, each in enumerate(pi)]
    )


def _drawn_probabilities(face, predictor, shard, key, state):
    """Return the probabilities (steps, K) of a shard, drawn given all of its sequences."""
    if "states" in state:
        return predictor.probabilities(state["states"][shard.steps.astype(int)], shard.known)
    draw = getattr(predictor, "draw_probabilities", None)
    if draw is None:
        raise TypeError(
            f"{type(face).__name__} has no draws of states given a sequence, so it has no replicates of "
            'it; simulate draws new ones, as does posterior_predictive="new"'
        )
    return draw(shard, key)


def _new_sequences(face, read, seed, states):
    check_room(len(states), int(read.lengths.sum()), len(face.categories_))
    return np.stack(
        [
            np.concatenate(
                face.model_.predictor(state).simulate(
                    read.totals, generator(seed, 3, i), inputs=read.inputs
                )
            ).astype(np.int32)
            for i, state in enumerate(states)
        ]
    )


def _over_states(face, read, seed, states, work):
    """Return work(predictor, shard, key, number of the state) of all, (S, sequences or steps, ...)."""
    shards = face._shards(face.model_, read)
    names = face._parameter_names()

    def at_state(i):
        predictor = face.model_.predictor({name: states[i][name] for name in names})
        key = prediction_key(seed, i)
        return np.concatenate([work(predictor, shard, key, i) for shard in shards])

    with execution_for(face.n_jobs) as execution, one_blas_thread():
        return np.stack(list(execution.map(at_state, range(len(states)))))


def _prior_steps(face, lengths, inputs, seed, number):
    """Return probabilities (steps, K) of sequences one after another."""
    simulate = getattr(face.model_, "simulate_probabilities", None)
    if simulate is None:
        raise TypeError(f"{type(face).__name__} has no prior of probabilities to draw from")
    given = () if inputs is None else (inputs,)
    pi = simulate(lengths, generator(seed, 1, number), *given)
    if not np.isfinite(pi).all():
        raise FloatingPointError(
            "the states of a draw from the prior overflow; ask for shorter sequences, or for fewer states"
        )
    return pi


def _prior_counts(face, read, seed, n_draws):
    totals, lengths = np.concatenate(read.totals), read.lengths.tolist()
    check_room(n_draws, len(totals), len(face.categories_))
    rows = (_prior_steps(face, lengths, read.inputs, seed, i) for i in range(n_draws))
    return np.stack([drawn_counts(pi, totals, generator(seed, 2, i)) for i, pi in enumerate(rows)])


def _dense(sequence, n_categories):
    """Return counts (steps, K) of tokens or of a sparse table."""
    if sequence.ndim == 2:
        return sequence.toarray()
    counts = np.zeros((len(sequence), n_categories), dtype=np.int64)
    seen = np.flatnonzero(sequence >= 0)
    counts[seen, sequence[seen]] = 1
    return counts
