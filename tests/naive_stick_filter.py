"""The slow, obvious twins of the filter of sticks: particles one step at a time, and a grid."""

from typing import NamedTuple

import numpy as np

from naive_particle_gibbs import Stream
from polystick.kernels.stick_filter import GUIDED_FROM
from polystick.kernels.stick_proposal import DEFENSIVE, NEAR


class Filtered(NamedTuple):
    values: np.ndarray
    means: np.ndarray
    covs: np.ndarray
    after: np.ndarray
    predicted: np.ndarray
    current: np.ndarray


class Sticks(NamedTuple):
    """The active sticks of a step."""

    rows: np.ndarray
    offsets: np.ndarray
    successes: np.ndarray
    trials: np.ndarray

    def log_likelihood(self, states):
        """Return log p (N,) of states (D, N)."""
        psi = self.rows @ states + self.offsets[:, None]
        return self.successes @ psi - self.trials @ np.logaddexp(0.0, psi)

    def log_posterior(self, centre, state):
        return self.log_likelihood(state[:, None])[0] - 0.5 * np.sum((state - centre) ** 2)

    def expand(self, state):
        """Return the gradient of the log likelihood and minus its second derivatives."""
        success = 1.0 / (1.0 + np.exp(-(self.rows @ state + self.offsets)))
        omega = self.trials * success * (1.0 - success)
        return self.rows.T @ (self.successes - self.trials * success), (
            self.rows.T * omega
        ) @ self.rows


def sticks_of(t, splits, emission, known, d):
    at = slice(splits[0][t], splits[0][t + 1])
    rows = emission[splits[1][at]]
    return Sticks(rows[:, :d], rows[:, d:] @ known[t], splits[2][at], splits[3][at])


def find_proposal(sticks, centre):
    """Return h, J and how far the mode is."""
    state, distance = centre, None
    while True:
        gradient, precision = sticks.expand(state)
        J = np.eye(len(centre)) + precision
        slope = gradient - (state - centre)
        way = np.linalg.solve(J, slope)
        distance = slope @ way if distance is None else distance
        if slope @ way <= NEAR:
            return gradient + precision @ state, J, distance
        now = sticks.log_posterior(centre, state)
        while sticks.log_posterior(centre, state + way) <= now:
            way = way / 2
        state = state + way


def choose(u, weights, n):
    return np.minimum(
        np.searchsorted(np.cumsum(weights), (np.arange(n) + u) / n, "right"), len(weights) - 1
    )


def guide(stream, means, h, J):
    """Return particles and log(prior density / density of the mixture)."""
    d, n = means.shape
    noise = stream.draws("normal", d * n).reshape(d, n)
    centres = np.linalg.solve(J, means + h[:, None])
    particles = centres + np.linalg.solve(np.linalg.cholesky(J).T, noise)
    place = stream.draw("uniform") + DEFENSIVE * np.arange(n + 1)
    plain = np.floor(place[1:]) > np.floor(place[:-1])
    particles[:, plain] = (means + noise)[:, plain]
    inner, outer = particles - centres, particles - means
    square = np.sum(inner * (J @ inner), axis=0)
    guided = 0.5 * np.linalg.slogdet(J)[1] + 0.5 * (np.sum(outer**2, axis=0) - square)
    mixture = np.logaddexp(np.log(1 - DEFENSIVE) + guided, np.log(DEFENSIVE))
    return particles, -mixture


def filter_sequence(
    key, row, law, splits, emission, known, n, n_shown, *, never_guides=False, wrong=None
):
    """Filter one sequence, as the kernel does with the same streams.

    never_guides : draw all particles from the chain
    wrong        : sabotage: "ratio" leaves the density of the proposal out of the weights, "forgets"
                   starts each step with equal weights
    """
    dynamics, bias, start, spread = law
    d, stream, rows = len(start), Stream(key, row), []
    bits = np.uint64(stream.draw("next_bits"))
    equal, particles, mean = np.full(n, -np.log(n)), None, None
    log_weights = equal
    for t in range(len(bias)):
        sticks, origin, root = sticks_of(t, splits, emission, known, d), np.zeros(d), np.eye(d)
        if t == 0:
            origin, root, means, centre = start, spread, np.zeros((d, n)), np.zeros(d)
            offsets = sticks.offsets + sticks.rows @ start
            sticks = sticks._replace(rows=sticks.rows @ spread, offsets=offsets)
        else:
            means = dynamics @ particles + bias[t][:, None]
            centre = dynamics @ mean + bias[t]
        log_weights = equal if wrong == "forgets" else log_weights
        shows = Stream(bits, np.uint64(2 * t))
        ahead = means[:, choose(shows.draw("uniform"), np.exp(log_weights), n_shown)]
        ahead = ahead + shows.draws("normal", d * n_shown).reshape(d, n_shown)
        value, log_ratio, guided = 0.0, 0.0, False
        if np.any(sticks.trials > 0) and not never_guides:
            h, J, distance = find_proposal(sticks, centre)
            gain = np.linalg.slogdet(J)[1] + distance
            guided = gain * len(sticks.trials) > GUIDED_FROM
        if guided:
            particles, log_ratio = guide(stream, means, h, J)
        else:
            particles = means + stream.draws("normal", d * n).reshape(d, n)
        if np.any(sticks.trials > 0):
            log_weights = log_weights + sticks.log_likelihood(particles)
            log_weights = log_weights + (0.0 if wrong == "ratio" else log_ratio)
            value = np.logaddexp.reduce(log_weights)
            log_weights = log_weights - value
        weights = np.exp(log_weights)
        particles = origin[:, None] + root @ particles
        mean = particles @ weights
        gap = particles - mean[:, None]
        shows = Stream(bits, np.uint64(2 * t + 1))
        now = particles[:, choose(shows.draw("uniform"), weights, n_shown)]
        ahead = origin[:, None] + root @ ahead
        rows.append((value, mean, (gap * weights) @ gap.T, ahead, now))
        if 1.0 / np.sum(weights**2) < 0.5 * n:
            particles = particles[:, choose(stream.draw("uniform"), weights, n)]
            log_weights = equal
    shows = Stream(bits, np.uint64(2 * len(bias) + 1))
    after = particles[:, choose(shows.draw("uniform"), np.exp(log_weights), n_shown)]
    values, means, covs, predicted, current = map(np.array, zip(*rows, strict=True))
    return Filtered(values, means, covs, after, predicted, current)


class OnGrid(NamedTuple):
    values: np.ndarray
    predicted: np.ndarray  # mean and variance given the past
    current: np.ndarray  # and given the step too


def filter_on_grid(law, splits, emission, known, grid):
    """Filter one sequence with one dimension by quadrature."""
    dynamics, bias, start, spread = law
    width = grid[1] - grid[0]

    def normal(x, mean, sd):
        return np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi)) * width

    def moments(p):
        mean = p @ grid / p.sum()
        return mean, p @ (grid - mean) ** 2 / p.sum()

    rows, p = [], normal(grid, start[0], spread[0, 0])
    for t in range(len(bias)):
        if t > 0:
            p = normal(grid[:, None], dynamics[0, 0] * grid + bias[t], 1.0) @ p
        log_likelihood = sticks_of(t, splits, emission, known, 1).log_likelihood(grid[None])
        now = p * np.exp(log_likelihood - log_likelihood.max())
        rows.append((np.log(now.sum()) + log_likelihood.max(), moments(p), moments(now)))
        p = now / now.sum()
    return OnGrid(*map(np.array, zip(*rows, strict=True)))
