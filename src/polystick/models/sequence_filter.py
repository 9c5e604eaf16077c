"""What models of sequences say of steps given those before: one protocol, so that one estimator scores all.

Given a posterior draw of the parameters (name -> array), `model.predictor(described)` is an object with

    filter(shard, key, *, show=(), before=None, keeps=False, n_particles=...)    -> SequenceFilter
    forecast(after, n_steps, key, n_paths, inputs=None)              -> probabilities (n_paths, n, n_steps, K)
    simulate(totals, rng, inputs=None)                               -> list of counts (steps, K)

To `show` are "predicted" and "current", which comes with the states. A filter goes on with one sequence
where `before` is the `after` of its steps so far, found with `keeps`. A forecast draws paths of states: those
of the steps after the last, given the `after` of n sequences; its inputs are (n, n_steps, m). A simulation
starts anew: totals (steps,) of each sequence, inputs a list of (steps, m). Exact models have no n_particles.
Randomness comes from the key and the rows' ids.
"""

from typing import Any, NamedTuple

import numpy as np

from polystick.keys import Key

NUMBERS_AT_ONCE = 2**22  # probabilities of particles, in blocks of steps

SHOWS = ("predicted", "current")


class SequenceFilter(NamedTuple):
    """What was expected of each step, and how probable what it showed was; steps of all sequences of a shard.

    What is not to be shown may be None.
    """

    values: (
        np.ndarray
    )  # (steps,) log p(x_t | before) without coefficients; 0 where nothing was seen
    predicted: np.ndarray | None  # (steps, K) E[pi_t | before]
    current: np.ndarray | None  # (steps, K) E[pi_t | before and x_t]
    states: np.ndarray | None  # (steps, S) E[z_t | before and x_t]
    spread: np.ndarray | None  # (steps, S) Var[z_t | before and x_t], of each by itself
    after: Any  # of the last states of the sequences: what `forecast` needs


def prediction_key(seed, number):
    """Return the key of predictions with posterior draw `number`, none of which a sweep uses."""
    return Key(seed, number).chain("sequences")
