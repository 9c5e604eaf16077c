"""What models of sequences tell of one sequence."""

from typing import NamedTuple

import numpy as np

from polystick.estimators.intervals import interval


class Smoothed(NamedTuple):
    """A sequence given all of it."""

    states: np.ndarray  # (steps, S) means
    states_sd: np.ndarray  # (steps, S)
    probabilities: np.ndarray  # (steps, K) means
    lower: np.ndarray  # (steps, K)
    upper: np.ndarray  # (steps, K)


class Filtered(NamedTuple):
    """A sequence given what was seen up to each step."""

    states: np.ndarray  # (steps, S) means
    states_sd: np.ndarray  # (steps, S)
    probabilities: np.ndarray  # (steps, K) means


class Forecast(NamedTuple):
    """The steps after the last."""

    mean: np.ndarray  # (n_steps, K)
    lower: np.ndarray  # (n_steps, K)
    upper: np.ndarray  # (n_steps, K)
    draws: np.ndarray  # (n_draws, n_steps, K) of probabilities, along drawn paths of states


def forecast_of(draws, level):
    """Return a forecast from draws (n_draws, n_steps, K)."""
    mean, lower, upper = interval(draws, level, np.asarray)
    return Forecast(mean, lower, upper, draws)
