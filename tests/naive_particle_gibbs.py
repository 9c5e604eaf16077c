"""The slow, obvious twin of particle Gibbs with ancestor sampling, one particle after another."""

import numpy as np
from scipy.special import log_softmax

from polystick.kernels import streams


class Stream:
    """The random stream of one sequence."""

    def __init__(self, key, row):
        self._state = streams.open_stream(key, row)

    def draw(self, kind):
        value, *state = getattr(streams, kind)(*map(np.uint64, self._state))
        self._state = state
        return value

    def draws(self, kind, n):
        return np.array([self.draw(kind) for _ in range(n)])


def choose(stream, log_weights):
    """Draw the number of a particle."""
    sums = np.cumsum(np.exp(log_weights - log_weights.max()))
    return min(np.searchsorted(sums, stream.draw("uniform") * sums[-1], "right"), len(sums) - 1)


def resample(stream, log_weights, n):
    """Draw n ancestors in increasing order."""
    sums = np.cumsum(np.exp(log_weights - log_weights.max()))
    places = np.cumsum(stream.draws("exponential", n + 1))
    found = np.searchsorted(sums, places[:-1] * (sums[-1] / places[-1]), "right")
    return np.minimum(found, len(sums) - 1)


def draw_path(key, row, counts, law, emission, bias, n, path, forgets=False, by_weight=False):
    """Draw a path given the one before (T, D), and its log likelihood, given counts (T, K).

    forgets   : sabotage: the path before is no particle, there is one more free one in its place
    by_weight : sabotage: the ancestor of the path before is drawn by weight alone
    """
    (dynamics, start, spread), stream = law, Stream(key, row)
    free, history, ancestors, log_weights = n - (not forgets), [], [], []
    for t, state in enumerate(path):
        if t == 0:
            noise = stream.draws("normal", free * len(start)).reshape(free, -1)
            particles, parents = start + noise @ spread.T, np.zeros(n, int)
        else:
            means = history[-1] @ dynamics.T
            parents = resample(stream, log_weights[-1], free)
            noise = stream.draws("normal", free * len(start)).reshape(-1, free).T
            particles = means[parents] + noise
            if not forgets:
                density = 0.0 if by_weight else -0.5 * np.square(state - means).sum(axis=1)
                parents = np.append(parents, choose(stream, log_weights[-1] + density))
        history.append(particles if forgets else np.concatenate([particles, state[None]]))
        ancestors.append(parents)
        log_pi = log_softmax(history[-1] @ emission.T + bias, axis=1)
        log_weights.append(log_pi @ counts[t])
    j, states, value = choose(stream, log_weights[-1]), np.empty_like(path), 0.0
    for t in range(len(path) - 1, -1, -1):
        states[t], value = history[t][j], value + log_weights[t][j]
        j = ancestors[t][j]
    return states, value
