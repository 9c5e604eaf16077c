"""What documents do all at once before a sweep: follow new names of topics, or move psi with its law.

A sweep draws psi given the law and the law given psi: a variance that many documents leave open then moves by
small steps. Here a stick of all documents is stretched or shifted together with its part of the law, given
the topics of tokens (generalised Gibbs, Liu and Sabatti 2000). A sweep does one of the two, of all sticks.
"""

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from polystick.kernels import stick_moves

STEPS = 0.02, 0.6  # least and greatest scale of what is proposed; each stick and sweep has its own


class Gains(NamedTuple):
    """What the log likelihood of documents would gain by a move."""

    gains: np.ndarray  # (k,), or nothing where there is no choice


class Renaming(NamedTuple):
    """New names of topics: new topic t was order[t]."""

    order: np.ndarray  # (T,)

    def weigh(self, model, shard, rows):
        return Gains(np.zeros(0))

    def decide(self, model, parameters, weight, key):
        return parameters._replace(move=np.arange(len(self.order))), self

    def follow(self, model, shard, rows):
        return model.rename_rows(rows, self.order)


class Stretching(NamedTuple):
    """A move of psi about what it scatters about."""

    law: SimpleNamespace  # the fields of parameters that tell of psi, before the move
    stretch: np.ndarray  # (k,)
    shift: np.ndarray  # (k,)

    def weigh(self, model, shard, rows):
        mean, splits = self._means(model, shard), model.link.split(rows.tokens)
        return Gains(gains(splits, rows.psi, mean, self.stretch, self.shift))

    def decide(self, model, parameters, weight, key):
        steps, rng = (self.stretch, self.shift), key.generator("accepted")
        parameters, *done = model.shares.move(parameters, weight.gains, *steps, rng)
        return parameters, Stretching(self.law, *done)

    def follow(self, model, shard, rows):
        mean = self._means(model, shard)
        return rows._replace(psi=moved(rows.psi, mean, self.stretch, self.shift))

    def _means(self, model, shard):
        """Return what psi scatters about: the mean, or what shares say of the documents of a block."""
        if not hasattr(model.shares, "means"):
            return self.law.mean
        return model.shares.means(self.law, shard.given)


class Moving:
    """A model whose moves carry themselves out."""

    def weigh_move(self, proposed: Any, shard: Any, rows: Any) -> Gains:
        return proposed.weigh(self, shard, rows)

    def decide_move(self, parameters: Any, proposed: Any, weight: Gains, key: Any) -> Any:
        return proposed.decide(self, parameters, weight, key)

    def follow_move(self, decided: Any, shard: Any, rows: Any) -> Any:
        return decided.follow(self, shard, rows)


def is_renamed(order):
    """Tell whether topics have new names."""
    return (order != np.arange(len(order))).any()


def proposed(n_sticks, key):
    """Return stretch and shift (k,): one of them is proposed in this sweep."""
    rng = key.generator("moves")
    steps = np.exp(rng.uniform(*np.log(STEPS), size=n_sticks)) * rng.standard_normal(n_sticks)
    if key.sweep % 2:
        return np.exp(steps), np.zeros(n_sticks)
    return np.ones(n_sticks), steps


def gains(splits, psi, mean, stretch, shift):
    """Return what the log likelihood of some documents would gain, stick by stick (k,).

    mean : of psi, (k,) or (n, k)
    """
    found, means = np.zeros(psi.shape[1]), np.empty(psi.shape)
    means[:] = mean
    stick_moves.add_gains(*splits, psi, means, stretch, shift, found)
    return found


def moved(psi, mean, stretch, shift):
    """Return psi after a move that was decided."""
    return mean + shift + stretch * (psi - mean)
