"""What a hidden Markov model says of the states behind whole sequences: methods of its face."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from polystick.alignment import align
from polystick.arguments import Counts
from polystick.baselines.hidden_markov import Parameters
from polystick.estimators.intervals import interval
from polystick.estimators.sequence_face import STATES
from polystick.estimators.sequence_results import Smoothed
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.validation import check_integer, check_level

__all__ = ["Decoded", "decode", "smooth", "state_probabilities"]


@dataclass(frozen=True, eq=False)
class Decoded:
    """The likeliest path of states through a sequence."""

    states: np.ndarray  # (steps,) 0 .. S-1
    log_probability: float  # of the path together with the sequence, without coefficients
    index: pd.Index | None = None  # of the steps, where they have names


def decode(face, X: Counts | None = None, *, lengths: ArrayLike | None = None) -> Any:
    """Return the likeliest path of states through each sequence (Viterbi), a list of `Decoded`.

    A path is that of one law: the mean of the draws of the chain in which the sequences of the fit are
    likeliest, for states of other chains may be others. States are numbered as in `posterior_`.

    Parameters
    ----------
    X, lengths : as in `fit`
        None is the sequences of the fit.
    """
    check_is_fitted(face)
    read, parameters = face._read_again(X, None, lengths), likeliest_parameters(face)
    result: list[tuple] = []
    for shard in face._shards(face.model_, read):
        states, values = face.model_.likeliest_paths(parameters, shard)
        result.extend(zip(np.split(states, shard.starts[1:-1]), values.tolist()))
    return [Decoded(path, value, at) for (path, value), at in zip(result, read.indexes)]


def likeliest_parameters(face):
    """Return the mean of the draws of the chain whose likelihood is the largest on average."""
    chain = int(face.posterior_.log_likelihood.mean(axis=1).argmax())
    return Parameters(*(face.posterior_[name][chain].mean(axis=0) for name in Parameters._fields))


def state_probabilities(
    face, X: Counts | None = None, *, lengths: ArrayLike | None = None, n_draws: int = STATES
) -> Any:
    """Return the probabilities of states at each step given the whole sequence, a list of (steps, S).

    Averages over posterior draws of the parameters, whose states are those of `decode` as nearly as can be,
    by what they emit.

    Parameters
    ----------
    X, lengths : as in `fit`
        None is the sequences of the fit.
    n_draws : int
        Posterior draws to average over.
    """
    read, found = _smoothed(face, X, lengths, n_draws)
    mean = np.mean([states[:, order] for _, states, order in found], axis=0)
    return np.split(mean, np.cumsum(read.lengths)[:-1])


def smooth(face, X: Counts | None = None, *, lengths: ArrayLike | None = None, level: float = 0.9,
           n_draws: int = STATES) -> Any:  # fmt: skip
    """Return states and probabilities of each step given the whole sequence, a list of `Smoothed`.

    States are named as in `decode`, and given as the probabilities of each; `states_sd` are the standard
    deviations of their indicators. `lower` and `upper` are over posterior draws of the parameters.

    Parameters
    ----------
    X, lengths : as in `fit`
        None is the sequences of the fit.
    level : float
        Probability of the central intervals.
    n_draws : int
        Posterior draws to average over.
    """
    check_level(level)
    read, found = _smoothed(face, X, lengths, n_draws)
    states = np.mean([part[:, order] for _, part, order in found], axis=0)
    edges, result = np.concatenate([[0], np.cumsum(read.lengths)]), []
    for first, stop, index in zip(edges, edges[1:], read.indexes):
        pi = np.stack([law.probabilities(part[first:stop]) for law, part, _ in found])
        mean, lower, upper = interval(pi, level, np.asarray)
        law = states[first:stop]
        spread = np.sqrt(np.maximum(law * (1.0 - law), 0.0))
        result.append(Smoothed(law, spread, mean, lower, upper, face.categories_, index))
    return result


def _smoothed(face, X, lengths, n_draws):
    """Return what came in, and for each draw a predictor, states (steps, S) and their order in `decode`."""
    check_integer("n_draws", n_draws, at_least=1)
    read = face._read_again(X, None, lengths)
    shards = face._shards(face.model_, read)
    draws = face._draws(n_draws)
    emissions = [likeliest_parameters(face).emission, *(draw["emission"] for draw in draws)]
    predictors = [face.model_.predictor(draw) for draw in draws]

    def work(predictor):
        return np.concatenate([predictor.smooth(shard) for shard in shards])

    with execution_for(face.n_jobs) as execution, one_blas_thread():
        found = list(execution.map(work, predictors))
    return read, list(zip(predictors, found, align(emissions)[0][1:]))
