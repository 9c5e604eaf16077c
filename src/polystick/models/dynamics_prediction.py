"""What multinomial dynamics predict, given one draw of their parameters: by a particle filter."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polystick.kernels import stick_filter
from polystick.models.sequence_filter import NUMBERS_AT_ONCE, SequenceFilter

PARTICLES = 200
SHOWN = 64  # particles whose probabilities are averaged


class After(NamedTuple):
    """The last step of each sequence, and its tokens where the model has a memory."""

    rows: np.ndarray  # (n,) ids
    particles: np.ndarray  # (n, M, D) of its states
    histories: tuple  # of tokens (T,) of each; () without a memory


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
        after = After(shard.rows, np.swapaxes(found.after, 1, 2) @ root.T, self._histories(shard))
        if not probabilities:
            return SequenceFilter(found.values, None, None, None, None, after)
        ahead, current = self._expected(shard, [found.predicted, found.current])
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
        if self.model.memory is None:
            offsets = np.zeros(len(hits))
        else:
            offsets = shard.recalled @ self.prior.memory_weights
        return stick_filter.Splits(splits.starts, splits.nodes, hits, tries, offsets)

    def _histories(self, shard):
        if self.model.memory is None:
            return ()
        return tuple(np.split(shard.tokens, shard.starts[1:-1]))

    def levels(self, tokens, starts):
        """Yield (slice, what memory adds to psi (steps, k)) for some steps after others; 0 without one."""
        if self.model.memory is None:
            return iter([(slice(0, int(starts[-1])), np.zeros((1, 1)))])
        return self.model.memory.levels(tokens, starts, self.prior.memory_weights)

    def _expected(self, shard, clouds):
        """Return the means of probabilities (S, K) over clouds of white particles (S, D, M)."""
        K = self.model.decomposition.n_categories
        results = [np.empty((len(cloud), K)) for cloud in clouds]
        size = max(1, NUMBERS_AT_ONCE // (clouds[0].shape[2] * K))
        for steps, levels in self.levels(shard.tokens, shard.starts):
            for t in range(steps.start, steps.stop, size):
                here = slice(t, min(t + size, steps.stop))
                level = np.broadcast_to(levels, (steps.stop - steps.start, levels.shape[1]))
                level = level[here.start - steps.start : here.stop - steps.start, None]
                for cloud, result in zip(clouds, results):
                    white = np.swapaxes(cloud[here], 1, 2)
                    known = shard.known[here, None]
                    pi = self._probabilities(white, known, self.prior.white, level)
                    result[here] = pi.mean(axis=1)
        return results

    def _probabilities(self, states, known, rows, level):
        """Return pi (..., K) of states (..., D), white or not like the rows."""
        d = self.model.n_dims
        psi = states @ rows[:, :d].T + known @ rows[:, d:].T
        return self.model.decomposition.probabilities(psi + level)

    def probabilities(self, states, known, level=0.0):
        """Return pi (..., K) of states (..., D) at steps of which this (..., e) is known.

        level : (..., k) what memory adds to psi
        """
        return self._probabilities(states, known, self.prior.emission, level)

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
            if self.model.memory is None:
                result[:, i] = self.probabilities(states, known)
            else:
                rng = key.generator(f"tokens {after.rows[i]}")
                for path, own in enumerate(states):
                    result[path, i] = self._go_on(after.histories[i], own, known, rng)
        return result

    def _go_on(self, history, states, known, rng):
        """Return pi (n_steps, K) along a path, each step's given tokens drawn at the steps before it."""
        result, K = [], self.model.decomposition.n_categories
        for state, given in zip(states, known):
            level = self.model.memory.after(history) @ self.prior.memory_weights
            result.append(self.probabilities(state, given, level))
            history = np.append(history, rng.choice(K, p=result[-1]))
        return np.array(result)

    def simulate(self, totals, rng, inputs=None):
        rows = self.model.simulate_rows(self.parameters, totals, rng, inputs)
        return self.model.simulate_counts(self.parameters, rows, totals, rng, inputs)

    def draw_probabilities(self, shard, key, n_sweeps=30):
        """Draw the probabilities (S, K) of steps given all of their sequences."""
        states, result = self.smooth(shard, key, n_sweeps), []
        for steps, level in self.levels(shard.tokens, shard.starts):
            result.append(self.probabilities(states[steps], shard.known[steps], level))
        return np.concatenate(result)

    def smooth(self, shard, key, n_sweeps):
        """Return states (S, D) of sequences given all of them: where a chain of their own ends."""
        rows = self.model.initial_rows(self.prior, shard, key)
        for sweep in range(n_sweeps):
            prior = self.model.smoothing_prior(self.prior, sweep, n_sweeps)
            rows, _ = self.model.draw_rows(prior, shard, rows, key.chain(sweep))
        return rows.states
