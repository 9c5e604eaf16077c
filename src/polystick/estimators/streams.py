"""Filters that go on: what a model knows of a sequence that has not ended, and what new steps make of it.

Functions of a fitted face; the public ones are methods of all models of sequences.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from polystick import scores
from polystick.arguments import Counts
from polystick.estimators.sequence_results import Likeliest, likeliest
from polystick.estimators.sequences import Read, as_list
from polystick.estimators.tables import tabled
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.models.memory import NUMBERS_AT_ONCE
from polystick.models.remembered import Remembered
from polystick.models.sequence_filter import prediction_key
from polystick.models.sequence_splits import follow
from polystick.validation import check_integer

__all__ = ["FilterState", "Updated", "draw_paths", "filter_state", "predict_next", "update"]

STATES = 32  # posterior draws that predictions are averaged over
_FEW_STEPS = 64  # not worth threads
_NAMED_STEPS = 10  # at the end, from which it can be told how dates go on


@dataclasses.dataclass(frozen=True, eq=False)
class FilterState:
    """Where the filter of one sequence stands under each posterior draw; an update makes a new one of it."""

    n_steps: int  # so far
    predictors: tuple  # of the draws
    options: dict  # of their filters
    afters: tuple | None = None  # what they go on from, once there was a step
    past: Remembered | None = None  # what the memory of all has kept, where the model has one
    index: pd.Index | None = None  # of the last steps, where all have names

    def __repr__(self):
        return f"<FilterState after {self.n_steps} steps, {len(self.predictors)} draws>"


class Updated(NamedTuple):
    """What new steps make of a filter, and what was expected of them."""

    state: FilterState
    probabilities: np.ndarray | pd.DataFrame | Likeliest  # (steps, K) of each given those before
    log_probabilities: (
        np.ndarray
    )  # (steps,) of what each showed, one step ahead; 0 where nothing was seen


def filter_state(face, X: Counts | None = None, inputs: ArrayLike | None = None, *, n_draws: int = STATES,
                 n_particles: int | None = None) -> Any:  # fmt: skip
    """Return where the filter of one sequence stands, for `update`.

    Parameters
    ----------
    X, inputs : one sequence, as in `fit`
        What was seen so far. None is a sequence that has yet to begin.
    n_draws : int
        Posterior draws of the parameters to average over.
    n_particles : int or None
        Of filters that have particles, and of no others; None is their default.

    Returns
    -------
    FilterState
        It keeps what it needs of the model, and is changed by nothing: several futures can be tried from one.
    """
    check_is_fitted(face)
    _need_stream(face)
    check_integer("n_draws", n_draws, at_least=1)
    options = {}
    if n_particles is not None:
        face._refuse_particles(n_particles)
        options["n_particles"] = n_particles
    predictors = tuple(face.model_.predictor(draw) for draw in face._draws(n_draws))
    state = FilterState(0, predictors, options)
    if X is None:
        return state
    return _advanced(face, state, _read_one(face, X, inputs), ())[0]


def update(
    face, state: Any, X: Counts, inputs: ArrayLike | None = None, *, n_top: int | None = None
) -> Any:
    """Let a filter see new steps of its sequence.

    In whatever pieces a sequence comes, the numbers are those of `predict_proba`, `score_samples` and
    `forecast` of all of it by itself. An update costs what its new steps cost, however long the sequence is.

    Parameters
    ----------
    state : FilterState
        It is not changed.
    X, inputs : as in `fit`
        The new steps: a token, tokens, or rows of counts.
    n_top : int or None
        How many categories to tell of, the likeliest of each step.

    Returns
    -------
    Updated (state, probabilities, log_probabilities)
    """
    check_is_fitted(face)
    _need_state(state)
    if n_top is not None:
        check_integer("n_top", n_top, at_least=1)
    read, parts = _read_one(face, X, inputs), []
    for piece in _pieces(face, state, read):
        state, found = _advanced(face, state, piece, ("predicted",))
        values = scores.log_mean_exp(np.stack([each.values for each in found]), axis=0)
        parts.append((values, np.mean([each.predicted for each in found], axis=0)))
    values, ahead = map(np.concatenate, zip(*parts))
    if n_top is None:
        return Updated(state, tabled(face, ahead, read.indexes[0]), values)
    top, pi = likeliest(ahead, n_top)
    return Updated(state, Likeliest(face.categories_[top], pi, read.indexes[0]), values)


def predict_next(
    face, state: Any, inputs: ArrayLike | None = None, *, n_top: int | None = None
) -> Any:
    """Return the probabilities (K,) of the next step, given all that a filter has seen.

    Parameters
    ----------
    state : FilterState
    inputs : array (1, m)
        Of the next step, where the model has inputs.
    n_top : int or None
        How many categories to tell of: then the result is a `Likeliest` of one step.
    """
    ahead = update(face, state, [-1], inputs, n_top=n_top).probabilities
    return ahead if n_top is not None else np.asarray(ahead)[0]


def draw_paths(face, state, n_steps, n_draws, inputs):
    """Draw probabilities (n_draws, n_steps, K) along paths from a state; inputs (1, n_steps, m) or None."""
    if state.afters is None:
        raise ValueError("a forecast from a state needs a step that it has seen; update it first")
    n_laws = min(n_draws, len(state.predictors))
    n_paths, draws = -(-n_draws // n_laws), np.empty((n_draws, n_steps, face.n_features_in_))
    for number, predictor in enumerate(state.predictors[:n_laws]):
        key, here = prediction_key(face.seed_, number), draws[number::n_laws]
        paths = predictor.forecast(state.afters[number], n_steps, key, n_paths, inputs=inputs)
        here[:] = paths[: len(here), 0]
    return draws


def _read_one(face, X, inputs):
    """Return the new steps of one sequence."""
    given = [[X]] if np.ndim(X) == 0 and not hasattr(X, "tocsr") else as_list(X)
    if len(given) != 1:
        raise ValueError(
            f"X must be one sequence, for a state is that of one; got {len(given)}; keep a state for each"
        )
    return face._read(given, inputs)


def _advanced(face, state, read: Read, show):
    """Return the state after new steps, and what the filter of each draw found."""
    shard, past = _remembering(face, state, read)
    n_steps = int(read.lengths[0])
    n_jobs = face.n_jobs if n_steps > _FEW_STEPS else 1

    def at_draw(number):
        key = prediction_key(face.seed_, number)
        before = None if state.afters is None else state.afters[number]
        predictor = state.predictors[number]
        options = state.options if before is None else {}
        return predictor.filter(shard, key, show=show, before=before, keeps=True, **options)

    with execution_for(n_jobs) as execution, one_blas_thread():
        found = list(execution.map(at_draw, range(len(state.predictors))))
    afters, index = tuple(each.after for each in found), read.indexes[0]
    if state.afters is not None and index is not None:
        index = None if state.index is None else state.index.append(index)
    index = None if index is None else index[-_NAMED_STEPS:]
    now = dataclasses.replace(
        state, n_steps=state.n_steps + n_steps, afters=afters, past=past, index=index
    )
    return now, found


def _memory(face):
    """Return the memory of the model, or None."""
    return getattr(face.model_, "memory", None)


def _remembering(face, state, read):
    """Return the new steps as a block, and what is remembered after them."""
    (shard,), memory = face._shards(face.model_, read), _memory(face)
    if memory is None:
        return shard, None
    if state.past is None:
        return shard, memory.then(memory.nothing, shard.tokens)
    return follow(shard, state.past, memory)


def _pieces(face, state, read):
    """Cut new steps where what is remembered of all categories at each would take much room."""
    memory, n_steps = _memory(face), int(read.lengths[0])
    if memory is None or state.past is None:
        return [read]
    size = max(1, NUMBERS_AT_ONCE // (memory.size * face.n_features_in_))
    return [_part(read, slice(at, at + size)) for at in range(0, max(1, n_steps), size)]


def _part(read, here):
    """Return some steps of one sequence."""
    (sequence,), (index,) = read.sequences, read.indexes
    return read._replace(
        sequences=[sequence[here]],
        inputs=None if read.inputs is None else [read.inputs[0][here]],
        indexes=(None if index is None else index[here],),
    )


def _need_stream(face):
    if not face._goes_on:
        raise TypeError(
            f"{type(face).__name__} has no filter that goes on from a state; run predict_proba on all of the "
            "sequence"
        )


def _need_state(state):
    if not isinstance(state, FilterState):
        raise TypeError(
            f"state must be what filter_state or update returned; got {type(state).__name__}"
        )
