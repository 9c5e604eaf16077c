"""What the compared models of sequences predict, given one draw of their parameters."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import log_softmax, ndtr

from polystick.kernels.hidden_markov import LEAST
from polystick.models.sequence_filter import NUMBERS_AT_ONCE, SequenceFilter

if TYPE_CHECKING:
    from polystick.baselines import hidden_markov, logistic_normal_dynamics

PARTICLES = 500


class After(NamedTuple):
    """The step after the last of each sequence."""

    rows: np.ndarray  # (n,) ids
    law: np.ndarray  # (n, S) probabilities of states, or (n, D, N) particles


@dataclass(frozen=True, eq=False)
class HiddenMarkovPredictor:
    """A `HiddenMarkov` model with parameters: all but paths is exact."""

    model: "hidden_markov.HiddenMarkov"
    parameters: "hidden_markov.Parameters"

    @cached_property
    def _prior(self):
        return self.model.prepare(self.parameters)

    def filter(self, shard, key, *, show=(), before=None, keeps=False):
        prior = self._prior
        if before is not None:
            prior = prior._replace(initial=np.maximum(before.law[0], LEAST))
        predicted, values, after = self.model.filter(prior, shard)
        after = After(shard.rows, after)
        ahead = self.model.probabilities(prior, predicted) if "predicted" in show else None
        if "current" not in show:
            return SequenceFilter(values, ahead, None, None, None, after)
        states = self.model.condition(prior, shard, predicted)
        current = self.model.probabilities(self._prior, states)
        return SequenceFilter(values, ahead, current, states, states * (1.0 - states), after)

    def smooth(self, shard):
        """Return p(state | all of its sequence), (steps, S)."""
        return self.model.smooth(self._prior, shard)

    def probabilities(self, states):
        """Return the probabilities (..., K) of categories given those of states (..., S)."""
        return self.model.probabilities(self._prior, states)

    def forecast(self, after, n_steps, key, n_paths, inputs=None):
        n = len(after.rows)
        noise = key.normals("forecast", after.rows, n_steps * n_paths)
        u = ndtr(noise).reshape(n, n_steps, n_paths)
        law, paths = after.law[:, None], np.empty((n, n_steps, n_paths), dtype=np.int64)
        for s in range(n_steps):
            sums = np.cumsum(law, axis=-1)
            below = u[:, s, :, None] * sums[..., -1:] >= sums[..., :-1]
            paths[:, s] = below.sum(axis=-1)
            law = self._prior.transition[paths[:, s]]
        return np.moveaxis(self._prior.emission.T[paths], 2, 0)

    def simulate(self, totals, rng, inputs=None):
        return self.model.simulate_sequences(self.parameters, totals, rng)[1]

    def draw_probabilities(self, shard, key):
        """Draw the probabilities (steps, K) of steps given all of their sequences."""
        rows = self.model.initial_rows(self._prior, shard, key)
        rows, _ = self.model.draw_rows(self._prior, shard, rows, key)
        return self.parameters.emission[rows.states]


@dataclass(frozen=True, eq=False)
class LogisticNormalPredictor:
    """`LogisticNormalDynamics` with parameters, by a bootstrap filter."""

    model: "logistic_normal_dynamics.LogisticNormalDynamics"
    parameters: "logistic_normal_dynamics.Parameters"

    @cached_property
    def _prior(self):
        return self.model.prepare(self.parameters)

    def filter(self, shard, key, *, show=(), n_particles=PARTICLES):
        found = self.model.filter(self._prior, shard, key, n_particles)
        after = After(shard.rows, found.after)
        if not show:
            return SequenceFilter(found.values, None, None, None, None, after)
        size = max(1, NUMBERS_AT_ONCE // (n_particles * self.model.n_categories))
        blocks = [slice(t, t + size) for t in range(0, shard.n_steps, size)]
        parts = [self._look(found.predicted[steps], shard, steps) for steps in blocks]
        predicted, current, states, spread = map(np.concatenate, zip(*parts))
        return SequenceFilter(found.values, predicted, current, states, spread, after)

    def _look(self, particles, shard, steps):
        """Return expected probabilities without x_t and with it, and the states' moments with it."""
        log_pi = log_softmax(self._psi(np.moveaxis(particles, -1, -2)), axis=-1)  # (steps, N, K)
        pi = np.exp(log_pi)
        weights = np.exp(self._log_weights(log_pi, shard, steps))
        weights /= weights.sum(axis=1, keepdims=True)
        current = np.einsum("tn,tnk->tk", weights, pi)
        z = np.einsum("ij,tjn->tin", self._prior.root, particles)
        states = np.einsum("tn,tin->ti", weights, z)
        spread = np.einsum("tn,tin->ti", weights, np.square(z - states[..., None]))
        return pi.mean(axis=1), current, states, spread

    def _log_weights(self, log_pi, shard, steps):
        """Return log p(x_t | particle), (steps, N), up to a constant of the step."""
        log_weights = np.zeros(log_pi.shape[:2])
        for t, first, stop in zip(
            range(len(log_pi)), shard.offsets[steps], shard.offsets[1:][steps]
        ):
            cells = slice(first, stop)
            log_weights[t] = log_pi[t][:, shard.categories[cells]] @ shard.counts[cells]
        return log_weights - log_weights.max(axis=1, keepdims=True)

    def _psi(self, white):
        return white @ self._prior.emission.T + self._prior.bias

    def forecast(self, after, n_steps, key, n_paths, inputs=None):
        n, d, n_particles = after.law.shape
        picked = np.arange(n_paths) * n_particles // n_paths  # evenly, also where paths are more
        white = np.moveaxis(after.law[:, :, picked], 1, 2)  # (n, paths, D)
        noise = key.normals("forecast", after.rows, n_steps * n_paths * d)
        path = [white]
        for shocks in np.moveaxis(noise.reshape(n, n_steps, n_paths, d), 1, 0)[1:]:
            path.append(path[-1] @ self._prior.law[0].T + shocks)
        log_pi = log_softmax(self._psi(np.stack(path, axis=2)), axis=-1)
        return np.moveaxis(np.exp(log_pi), 1, 0)

    def simulate(self, totals, rng, inputs=None):
        return self.model.simulate_sequences(self.parameters, totals, rng)[1]
