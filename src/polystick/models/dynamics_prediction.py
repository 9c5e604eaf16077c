"""What multinomial dynamics predict, given one draw of their parameters: by a particle filter."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polystick.kernels import stick_filter, tree_means
from polystick.models.memory import levels
from polystick.models.sequence_filter import NUMBERS_AT_ONCE, SHOWS, SequenceFilter

PARTICLES = 200
SHOWN = 64  # particles whose probabilities are averaged


class After(NamedTuple):
    """The last step of each sequence, and its tokens where the model has a memory."""

    rows: np.ndarray  # (n,) ids
    particles: np.ndarray  # (n, M, D) of its states
    kept: stick_filter.Kept  # what a filter needs to go on, of no sequence if not asked for
    histories: tuple  # of each, what is remembered and the tokens after that; () without a memory


@dataclass(frozen=True, eq=False)
class Predictor:
    """A model of dynamics with parameters."""

    model: Any
    parameters: Any
    prior: Any

    def filter(self, shard, key, *, show=(), before=None, keeps=False, n_particles=PARTICLES):
        d, n, n_steps = self.model.n_dims, len(shard.rows), shard.n_steps
        kept = _nothing_kept(n * keeps, d, n_particles) if before is None else _again(before.kept)
        n_particles = kept.particles.shape[2]
        n_shown = min(SHOWN, n_particles)
        clouds = [np.empty((n_steps * (name in show), d, n_shown)) for name in SHOWS]
        moments = np.empty(n_steps), np.empty((n_steps, d)), np.empty((n_steps, d, d))
        found = stick_filter.Found(*moments, np.empty((n, d, n_shown)), *clouds)
        stick_filter.filter_sequences(
            key.at("filter"), shard.rows, shard.starts, self._law(shard), self._splits(shard),
            self.prior.white, shard.known, n_particles, found, kept,
        )  # fmt: skip
        root = self.prior.chain.root
        after = After(shard.rows, np.swapaxes(found.after, 1, 2) @ root.T, kept, histories(shard))
        ahead, current = (
            self.expected(cloud, shard) if name in show else None
            for name, cloud in zip(SHOWS, clouds)
        )
        if current is None:
            return SequenceFilter(found.values, ahead, None, None, None, after)
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
        offsets = self.offsets(shard)
        return stick_filter.Splits(splits.starts, splits.nodes, hits, tries, offsets)

    def offsets(self, shard):
        """Return what memory adds to psi of the active splits of all steps."""
        if self.model.memory is None:
            return np.zeros(len(shard.splits.nodes))
        return levels(shard.recalled, self.prior.memory_weights)

    def expected(self, clouds, shard):
        """Return the mean over particles (S, D, M), which are white, of probabilities (S, K)."""
        d, decomposition = self.model.n_dims, self.model.decomposition
        children, slots = decomposition.children, np.empty(self.model.n_sticks, dtype=np.int64)
        tree_means.assign_slots(children, slots)
        moves, rest = (np.ascontiguousarray(part) for part in np.split(self.prior.white, [d], 1))
        result = np.empty((len(clouds), decomposition.n_categories))
        for here, level in self.levels_of(shard):
            offsets = shard.known[here] @ rest.T + level
            tree_means.mean_probabilities(
                children, slots, moves, offsets, clouds[here], result[here]
            )
        return result

    def levels_of(self, shard):
        """Yield (slice, what memory adds to psi (steps, k)) for some steps after others."""
        if shard.everywhere is None:
            return self.levels(shard.tokens, shard.starts)
        return iter([(slice(None), shard.everywhere @ self.prior.memory_weights)])

    def levels(self, tokens, starts):
        """Do as in `levels_of` for sequences that begin; without a memory it adds 0."""
        if self.model.memory is not None:
            return self.model.memory.levels(tokens, starts, self.prior.memory_weights)
        size = max(1, NUMBERS_AT_ONCE // self.model.decomposition.n_categories)
        return ((slice(t, t + size), 0.0) for t in range(0, int(starts[-1]), size))

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
            rng = key.generator(f"tokens {after.rows[i]}")
            result[:, i] = self.along(states, known, after.histories[i : i + 1], rng)
        return result

    def along(self, states, known, histories, rng):
        """Return pi (n, n_steps, K) along paths of states (n, n_steps, D); a memory begins with a history."""
        memory = self.model.memory
        if memory is None:
            return self.probabilities(states, known)
        remembered = memory.then(*histories[0])
        return np.stack([self._go_on(remembered, path, known, rng) for path in states])

    def _go_on(self, remembered, states, known, rng):
        """Return pi (n_steps, K) along a path, each step's given tokens drawn at the steps before it."""
        result, memory = [], self.model.memory
        for state, given in zip(states, known):
            level = memory.after(remembered) @ self.prior.memory_weights
            result.append(self.probabilities(state, given, level))
            token = rng.choice(self.model.decomposition.n_categories, p=result[-1])
            remembered = memory.then(remembered, np.array([token]))
        return np.array(result)

    def simulate(self, totals, rng, inputs=None):
        rows = self.model.simulate_rows(self.parameters, totals, rng, inputs)
        return self.model.simulate_counts(self.parameters, rows, totals, rng, inputs)

    def draw_probabilities(self, shard, key, n_sweeps=30):
        """Draw the probabilities (S, K) of steps given all of their sequences."""
        return self.at_states(self.smooth(shard, key, n_sweeps), shard)

    def at_states(self, states, shard):
        """Return the probabilities (S, K) of steps given their states."""
        result = []
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


def histories(shard):
    """Return what is remembered of each sequence, and its tokens after that."""
    return tuple(zip(shard.pasts, np.split(shard.tokens, shard.starts[1:-1])))


def _nothing_kept(n, d, n_particles):
    """Return where filters stand before any step."""
    return stick_filter.Kept(
        numbers=np.zeros(n, dtype=np.int64),
        streams=np.zeros((n, 2), dtype=np.uint64),
        particles=np.empty((n, d, n_particles)),
        weights=np.empty((n, 2, n_particles)),
        means=np.empty((n, d)),
        worths=np.empty(n),
    )


def _again(kept):
    """Return a copy, which the kernel may write to."""
    return stick_filter.Kept(*map(np.copy, kept))
