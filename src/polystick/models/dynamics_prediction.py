"""What multinomial dynamics predict, given one draw of their parameters: by a particle filter."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polystick.kernels import stick_filter
from polystick.models.sequence_filter import NUMBERS_AT_ONCE, SequenceFilter

PARTICLES = 200
SHOWN = 64  # particles whose probabilities are averaged


class After(NamedTuple):
    """The last step of each sequence."""

    rows: np.ndarray  # (n,) ids
    particles: np.ndarray  # (n, M, D) of its states


@dataclass(frozen=True, eq=False)
class Predictor:
    """A model of dynamics with parameters."""

    model: Any
    parameters: Any
    prior: Any

    def filter(self, shard, key, *, probabilities=False, n_particles=PARTICLES):
        d, n, n_steps = self.model.n_dims, len(shard.rows), shard.n_steps
        n_shown = min(SHOWN, n_particles)
        shown = (n_steps if probabilities else 0, d, n_shown)
        moments = np.empty(n_steps), np.empty((n_steps, d)), np.empty((n_steps, d, d))
        clouds = np.empty((n, d, n_shown)), np.empty(shown), np.empty(shown)
        found = stick_filter.Found(*moments, *clouds)
        stick_filter.filter_sequences(
            key.at("filter"), shard.rows, shard.starts, self._law(shard), self._splits(shard),
            self.prior.white, shard.known, n_particles, found,
        )  # fmt: skip
        root = self.prior.chain.root
        after = After(shard.rows, np.swapaxes(found.after, 1, 2) @ root.T)
        if not probabilities:
            return SequenceFilter(found.values, None, None, None, None, after)
        ahead, current = (
            self._expected(cloud, shard.known) for cloud in (found.predicted, found.current)
        )
        spread = np.einsum("ij,tjk,ik->ti", root, found.covs, root)
        return SequenceFilter(found.values, ahead, current, found.means @ root.T, spread, after)

    def _law(self, shard):
        chain = self.prior.chain
        pushed = shard.pushes @ self.prior.push.T
        bias = chain.white.root.solve(np.ascontiguousarray(pushed.T)).T
        white = chain.white
        bias = np.ascontiguousarray(bias)
        return stick_filter.Law(white.dynamics, bias, white.start, white.spread)

    def _splits(self, shard):
        splits = shard.splits
        hits, tries = (part.astype(np.float64) for part in (splits.successes, splits.trials))
        return stick_filter.Splits(splits.starts, splits.nodes, hits, tries)

    def _expected(self, cloud, known):
        """Return the mean over particles (S, D, M), which are white, of probabilities (S, K)."""
        width = cloud.shape[2] * self.model.decomposition.n_categories
        size = max(1, NUMBERS_AT_ONCE // width)
        result = np.empty((len(cloud), self.model.decomposition.n_categories))
        for t in range(0, len(cloud), size):
            white = np.swapaxes(cloud[t : t + size], 1, 2)
            pi = self._probabilities(white, known[t : t + size, None], self.prior.white)
            result[t : t + size] = pi.mean(axis=1)
        return result

    def _probabilities(self, states, known, rows):
        """Return pi (..., K) of states (..., D), white or not like the rows."""
        d = self.model.n_dims
        psi = states @ rows[:, :d].T + known @ rows[:, d:].T
        return self.model.decomposition.probabilities(psi)

    def probabilities(self, states, known):
        """Return pi (..., K) of states (..., D) at steps of which this (..., e) is known."""
        return self._probabilities(states, known, self.prior.emission)

    def forecast(self, after, n_steps, key, n_paths, inputs=None):
        n, n_shown, d = after.particles.shape
        picked = np.arange(n_paths) * n_shown // n_paths
        noise = key.normals("forecast", after.rows, n_paths * n_steps * d)
        noise = noise.reshape(n, n_paths, n_steps, d)
        result = np.empty((n_paths, n, n_steps, self.model.decomposition.n_categories))
        for i in range(n):
            given = np.zeros((n_steps, 0)) if inputs is None else inputs[i]
            known, pushes = self.model.known(given)
            shifts = pushes @ self.prior.push.T
            states = self.prior.chain.extend(after.particles[i, picked], noise[i], shifts=shifts)
            result[:, i] = self.probabilities(states, known)
        return result

    def simulate(self, totals, rng, inputs=None):
        rows = self.model.simulate_rows(self.parameters, totals, rng, inputs)
        return self.model.simulate_counts(self.parameters, rows, totals, rng, inputs)

    def draw_probabilities(self, shard, key, n_sweeps=30):
        """Draw the probabilities (S, K) of steps given all of their sequences."""
        return self.probabilities(self.smooth(shard, key, n_sweeps), shard.known)

    def smooth(self, shard, key, n_sweeps):
        """Return states (S, D) of sequences given all of them: where a chain of their own ends."""
        rows = self.model.initial_rows(self.prior, shard, key)
        for sweep in range(n_sweeps):
            prior = self.model.smoothing_prior(self.prior, sweep, n_sweeps)
            rows, _ = self.model.draw_rows(prior, shard, rows, key.chain(sweep))
        return rows.states
