"""Hidden Markov chains looked at from the end: what states were given all, and the likeliest path.

Arrays are those of `hidden_markov`; those of the likeliest path are logarithms, of which some may be -inf.
"""

import math

import numpy as np

from polystick.kernels import kernel


@kernel
def smooth_sequences(starts, filtered, transition, smoothed):
    """Write p(state | all of the sequence), given the states filtered.

    filtered : (steps, S) p(state | what was seen now and before)
    smoothed : (steps, S) out
    """
    size = transition.shape[0]
    ratio = np.empty(size)
    for i in range(starts.shape[0] - 1):
        for t in range(starts[i + 1] - 1, starts[i] - 1, -1):
            if t == starts[i + 1] - 1:
                for j in range(size):
                    smoothed[t, j] = filtered[t, j]
                continue
            for k in range(size):
                ahead = 0.0
                for j in range(size):
                    ahead += filtered[t, j] * transition[j, k]
                ratio[k] = smoothed[t + 1, k] / ahead
            total = 0.0
            for j in range(size):
                back = 0.0
                for k in range(size):
                    back += transition[j, k] * ratio[k]
                smoothed[t, j] = filtered[t, j] * back
                total += smoothed[t, j]
            for j in range(size):
                smoothed[t, j] /= total


@kernel
def likeliest_paths(starts, lookups, table, initial, transition, states, values):
    """Write the path that is the likeliest together with what was seen (Viterbi 1967).

    Of paths that are equally likely it is one with the lowest states, from the end.

    states : (steps,) int32 out
    values : (n,) out: log p(path, what was seen)
    """
    size, longest = initial.shape[0], 0
    for i in range(values.shape[0]):
        longest = max(longest, starts[i + 1] - starts[i])
    best, ahead = np.empty(size), np.empty(size)
    origins = np.empty((longest, size), np.int32)
    for i in range(values.shape[0]):
        first, stop = starts[i], starts[i + 1]
        for j in range(size):
            best[j] = 0.0
        for t in range(first, stop):
            for k in range(size):
                origin, top = 0, initial[k]
                if t > first:
                    top = -math.inf
                    for j in range(size):
                        if best[j] + transition[j, k] > top:
                            origin, top = j, best[j] + transition[j, k]
                origins[t - first, k] = origin
                ahead[k] = top + (table[lookups[t], k] if lookups[t] >= 0 else 0.0)
            for k in range(size):
                best[k] = ahead[k]
        state = 0
        for k in range(size):
            if best[k] > best[state]:
                state = k
        values[i] = best[state]
        for t in range(stop - 1, first - 1, -1):
            states[t] = state
            state = origins[t - first, state]
