"""What dynamics that switch predict, given one draw of their parameters: by particles of regimes and states.

A particle goes on with a regime drawn from the transitions. Where a step tells something, its state is
drawn given what the step says to second order, about where it is likeliest on the whole, or for one in ten
from the dynamics alone, so that no weight is large by far (a mixture; Hesterberg 1995). Particles are
resampled when they are worth less than half their number. The values of a sequence are logarithms of
estimates without bias.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import logsumexp

from polystick.models.dynamics_prediction import Predictor, histories
from polystick.models.sequence_filter import SequenceFilter
from polystick.models.switching_state import Parameters, Prior

if TYPE_CHECKING:
    from polystick.models.switching import SwitchingDynamics

PARTICLES = 400
SHOWN = 64  # particles whose probabilities are averaged
PLAIN = 0.1  # of the particles are drawn from the dynamics alone
MOST_STEPS = 30  # of Newton's
NEAR = 1e-3  # half the square of the last of them


class Cloud(NamedTuple):
    """Where the filter of one sequence stands."""

    number: int  # steps so far
    states: np.ndarray  # (N, D); none before the first step
    regimes: np.ndarray  # (N,)
    log_weights: np.ndarray  # (N,)


class After(NamedTuple):
    """The last step of each sequence."""

    rows: np.ndarray  # (n,) ids
    clouds: tuple  # of each
    histories: tuple  # of each, what is remembered and the tokens after that; () without a memory


class Sticks(NamedTuple):
    """The active sticks of a step, a of them."""

    rows: np.ndarray  # (a, D)
    offsets: np.ndarray  # (a,)
    successes: np.ndarray
    trials: np.ndarray

    def log_likelihood(self, states):
        """Return log p (N,) of states (N, D)."""
        psi = states @ self.rows.T + self.offsets
        return psi @ self.successes - np.logaddexp(0.0, psi) @ self.trials

    def expand(self, mean, precision):
        """Return h and J of the log likelihood to second order about the mode with N(mean, precision^-1)."""
        state = mean
        for _ in range(MOST_STEPS):
            success = 0.5 + 0.5 * np.tanh(0.5 * (self.rows @ state + self.offsets))
            slope = self.rows.T @ (self.successes - self.trials * success)
            J = (self.rows.T * (self.trials * success * (1.0 - success))) @ self.rows
            whole = slope - precision @ (state - mean)
            way = np.linalg.solve(precision + J, whole)
            if whole @ way <= NEAR:
                break
            now = self._log_posterior(state, mean, precision)
            while self._log_posterior(state + way, mean, precision) < now:
                way = 0.5 * way
            state = state + way
        return slope + J @ state, J

    def _log_posterior(self, state, mean, precision):
        gap = state - mean
        return self.log_likelihood(state[None])[0] - 0.5 * gap @ precision @ gap


class Move(NamedTuple):
    """Normal laws of states, one for each particle: by the regime of each."""

    means: np.ndarray  # (N, D)
    roots: np.ndarray  # (R, D, D) of covariances
    regimes: np.ndarray  # (N,)

    def draw(self, noise):
        return self.means + np.einsum("nij,nj->ni", self.roots[self.regimes], noise)

    def log_density(self, states):
        """Return it without what all laws have in common, (N,)."""
        inverses = np.linalg.inv(self.roots)
        white = np.einsum("nij,nj->ni", inverses[self.regimes], states - self.means)
        log_det = np.linalg.slogdet(self.roots)[1]
        return -0.5 * np.square(white).sum(axis=1) - log_det[self.regimes]

    def picked(self, which):
        return Move(self.means[which], self.roots, self.regimes[which])


@dataclass(frozen=True, eq=False)
class SwitchingPredictor:
    """Switching dynamics with parameters."""

    model: "SwitchingDynamics"
    parameters: Parameters
    prior: Prior

    @cached_property
    def plain(self):
        """What predicts with given states, which regimes have no part in."""
        return Predictor(self.model.base, self.parameters, self.prior.shared)

    @cached_property
    def _roots(self):
        """Roots of the noise of each regime, and of the first state (R, D, D), twice."""
        noise = np.linalg.cholesky(self.prior.chain.dynamics_cov)
        first = np.linalg.cholesky(self.prior.chain.initial_cov)
        return noise, np.repeat(first[None], self.prior.n_regimes, axis=0)

    # filter

    def filter(self, shard, key, *, show=(), before=None, keeps=False, n_particles=PARTICLES):
        d, n_steps = self.model.n_dims, shard.n_steps
        values, means, spread = np.zeros(n_steps), np.empty((n_steps, d)), np.empty((n_steps, d))
        shown = {name: np.empty((n_steps, d, SHOWN)) for name in show}
        offsets = self.plain.offsets(shard)
        shifts, clouds = self.prior.shifts(shard.pushes), []
        for i, row in enumerate(shard.rows.tolist()):
            cloud = _start(n_particles, d) if before is None else before.clouds[i]
            for t in range(shard.starts[i], shard.starts[i + 1]):
                site, move = f"{row} {cloud.number}", self._move(cloud, shifts[:, t], key, row)
                weights = np.exp(cloud.log_weights)
                if "predicted" in show:
                    rng = key.generator(f"ahead {site}")
                    ahead = move.picked(_systematic(weights, SHOWN, rng.random()))
                    shown["predicted"][t] = ahead.draw(rng.standard_normal((SHOWN, d))).T
                rng = key.generator(f"filter {site}")
                values[t], cloud = self._see(cloud, move, self._sticks(t, shard, offsets), rng)
                weights = np.exp(cloud.log_weights)
                means[t] = weights @ cloud.states
                spread[t] = weights @ np.square(cloud.states - means[t])
                if "current" in show:
                    u = key.generator(f"now {site}").random()
                    shown["current"][t] = cloud.states[_systematic(weights, SHOWN, u)].T
                cloud = _resampled(cloud, weights, rng)
            clouds.append(cloud)
        after = After(shard.rows, tuple(clouds), histories(shard))
        pi = {name: self.plain.expected(part, shard) for name, part in shown.items()}
        ahead, current = pi.get("predicted"), pi.get("current")
        return SequenceFilter(values, ahead, current, means, spread, after)

    def _move(self, cloud, shifts, key, row):
        """Return the laws of the next states, with new regimes; shifts (R, D)."""
        chain, rng = self.prior.chain, key.generator(f"regimes {row} {cloud.number}")
        u, n = rng.random(len(cloud.log_weights)), len(cloud.log_weights)
        if not cloud.number:
            regimes = np.minimum(
                (u * self.prior.n_regimes).astype(np.intp), self.prior.n_regimes - 1
            )
            return Move(np.tile(chain.initial_mean, (n, 1)), self._roots[1], regimes)
        regimes = _next(self.prior.transition, cloud.regimes, u)
        means = np.einsum("nij,nj->ni", chain.dynamics[regimes], cloud.states) + shifts[regimes]
        return Move(means, self._roots[0], regimes)

    def _sticks(self, t, shard, offsets):
        """Return the active sticks of a step, or None where nothing was seen."""
        splits, d = shard.splits, self.model.n_dims
        here = slice(splits.starts[t], splits.starts[t + 1])
        if not np.any(splits.trials[here]):
            return None
        rows = self.prior.emission[splits.nodes[here]]
        level = rows[:, d:] @ shard.known[t] + offsets[here]
        hits, tries = splits.successes[here], splits.trials[here]
        return Sticks(rows[:, :d], level, hits.astype(np.float64), tries.astype(np.float64))

    def _see(self, cloud, move, sticks, rng):
        """Draw the states of a step; return its log probability given those before, and the cloud."""
        noise, number = rng.standard_normal(move.means.shape), cloud.number + 1
        if sticks is None:
            return 0.0, Cloud(number, move.draw(noise), move.regimes, cloud.log_weights)
        guided = self._guided(cloud, move, sticks)
        is_plain = rng.random(len(noise)) < PLAIN
        states = np.where(is_plain[:, None], move.draw(noise), guided.draw(noise))
        law = move.log_density(states)
        mixed = np.logaddexp(np.log(1.0 - PLAIN) + guided.log_density(states), np.log(PLAIN) + law)
        logs = cloud.log_weights + law - mixed + sticks.log_likelihood(states)
        value = float(logsumexp(logs))
        return value, Cloud(number, states, move.regimes, logs - value)

    def _guided(self, cloud, move, sticks):
        """Return the laws of states given the step to second order."""
        weights = np.exp(cloud.log_weights)
        centre = weights @ move.means
        gap = move.means - centre
        covs = move.roots @ np.swapaxes(move.roots, 1, 2)
        shares = np.bincount(move.regimes, weights, minlength=len(covs))
        whole = (gap * weights[:, None]).T @ gap + np.einsum("r,rij->ij", shares, covs)
        h, J = sticks.expand(centre, np.linalg.inv(whole))
        precisions = np.linalg.inv(covs)
        posterior = np.linalg.inv(precisions + J)
        pulls = np.einsum("nij,nj->ni", precisions[move.regimes], move.means) + h
        means = np.einsum("nij,nj->ni", posterior[move.regimes], pulls)
        return Move(
            means,
            np.linalg.cholesky(0.5 * (posterior + np.swapaxes(posterior, 1, 2))),
            move.regimes,
        )

    # what comes after

    def forecast(self, after, n_steps, key, n_paths, inputs=None):
        chain, d = self.prior.chain, self.model.n_dims
        result = np.empty(
            (n_paths, len(after.rows), n_steps, self.model.decomposition.n_categories)
        )
        for i, (row, cloud) in enumerate(zip(after.rows.tolist(), after.clouds)):
            rng = key.generator(f"forecast {row}")
            known, pushes = self.model.known(
                np.zeros((n_steps, 0)) if inputs is None else inputs[i]
            )
            shifts, states = self.prior.shifts(pushes), np.empty((n_paths, n_steps, d))
            picked = _systematic(np.exp(cloud.log_weights), n_paths, rng.random())
            now, regimes = cloud.states[picked], cloud.regimes[picked]
            for s in range(n_steps):
                regimes = _next(self.prior.transition, regimes, rng.random(n_paths))
                means = np.einsum("nij,nj->ni", chain.dynamics[regimes], now) + shifts[regimes, s]
                now = Move(means, self._roots[0], regimes).draw(rng.standard_normal((n_paths, d)))
                states[:, s] = now
            result[:, i] = self.plain.along(states, known, after.histories[i : i + 1], rng)
        return result

    def simulate(self, totals, rng, inputs=None):
        rows = self.model.simulate_rows(self.parameters, totals, rng, inputs)
        return self.model.simulate_counts(self.parameters, rows, totals, rng, inputs)

    # given all of a sequence

    def probabilities(self, states, known, level=0.0):
        """Return pi (..., K) of states (..., D) at steps of which this (..., e) is known."""
        return self.plain.probabilities(states, known, level)

    def levels(self, tokens, starts):
        """Yield (slice, what memory adds to psi) for some steps after others."""
        return self.plain.levels(tokens, starts)

    def draw_probabilities(self, shard, key, n_sweeps=30):
        """Draw the probabilities (S, K) of steps given all of their sequences."""
        return self.plain.at_states(self.smooth(shard, key, n_sweeps), shard)

    def smooth(self, shard, key, n_sweeps):
        """Return states (S, D) of sequences given all of them: where a chain of their own ends."""
        rows = self.model.initial_rows(self.prior, shard, key)
        for sweep in range(n_sweeps):
            rows, _ = self.model.draw_rows(self.prior, shard, rows, key.chain(sweep))
        return rows.states


def _start(n_particles, d):
    equal = np.full(n_particles, -np.log(n_particles))
    return Cloud(0, np.empty((0, d)), np.empty(0, dtype=np.intp), equal)


def _next(transition, regimes, u):
    """Return the regimes that follow, by uniform numbers u (N,)."""
    sums = np.cumsum(transition, axis=1)
    return (u[:, None] * sums[regimes, -1:] >= sums[regimes, :-1]).sum(axis=1)


def _systematic(weights, n, u):
    """Return n particles by weight, in increasing order, by one uniform number."""
    sums = np.cumsum(weights)
    return np.minimum(
        np.searchsorted(sums, (np.arange(n) + u) / n * sums[-1], "right"), len(sums) - 1
    )


def _resampled(cloud, weights, rng):
    """Return a cloud of particles of equal weight where they are worth less than half their number."""
    n = len(weights)
    if 1.0 / np.square(weights).sum() >= 0.5 * n:
        return cloud
    chosen = _systematic(weights, n, rng.random())
    equal = np.full(n, -np.log(n))
    return Cloud(cloud.number, cloud.states[chosen], cloud.regimes[chosen], equal)
