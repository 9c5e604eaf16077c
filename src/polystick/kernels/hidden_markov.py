"""Hidden Markov chains: filter forward, draw backward, count.

What is seen at a step gives each state a weight, its likelihood up to a factor that states share. Weights
are rows of a table, so that a token is looked up and never computed; -1 is a step at which nothing was
seen. Filters are scaled at each step. Callers see to it that probabilities and weights lie between LEAST
and 1: then no sum is 0, whatever is seen, and the law is changed by nothing that could be noticed.

starts     : (n + 1,) int64; the steps of sequence i are starts[i] .. starts[i + 1]
lookups    : (steps,) int64 the row of the table for each step, or -1
table      : (m, S) weights
initial    : (S,) probabilities of the first state
transition : (S, S) from the row to the column
"""

import math

import numpy as np

from polystick.kernels import kernel
from polystick.kernels.streams import open_stream, uniform

LEAST = 1e-100
SMALL = (
    1e-90  # a product of sums below it is turned into its logarithm; one more would not underflow
)


@kernel(inline="always")
def _advance(past, t, transition, out):
    """Write p(state after | past[t]) into out."""
    size = transition.shape[0]
    for j in range(size):
        out[j] = 0.0
    whole = size - size % 2
    for i in range(0, whole, 2):
        c0, c1 = past[t, i], past[t, i + 1]
        for j in range(size):
            out[j] += c0 * transition[i, j] + c1 * transition[i + 1, j]
    if whole < size:
        c0 = past[t, whole]
        for j in range(size):
            out[j] += c0 * transition[whole, j]


@kernel(inline="always")
def _condition(predicted, lookup, table, filtered, t):
    """Write p(state | what is seen now and before) into filtered[t]; return the factor taken out."""
    size = predicted.shape[0]
    total = 0.0
    if lookup >= 0:
        for j in range(size):
            filtered[t, j] = predicted[j] * table[lookup, j]
            total += filtered[t, j]
    else:
        for j in range(size):
            filtered[t, j] = predicted[j]
            total += filtered[t, j]
    scale = 1.0 / total
    for j in range(size):
        filtered[t, j] *= scale
    return total


@kernel(inline="always")
def _filter(first, stop, lookups, table, initial, transition, filtered):
    """Filter one sequence; return the log likelihood."""
    size = initial.shape[0]
    predicted = np.empty(size)
    value, product = 0.0, 1.0
    for t in range(first, stop):
        if t == first:
            for j in range(size):
                predicted[j] = initial[j]
        else:
            _advance(filtered, t - 1, transition, predicted)
        product *= _condition(predicted, lookups[t], table, filtered, t)
        if product < SMALL:
            value, product = value + math.log(product), 1.0
    return value + math.log(product)


@kernel(inline="always")
def _pick(u, sums):
    """Return the state at the share u in [0, 1) of all weight, given running sums."""
    last = sums.shape[0] - 1
    x = u * sums[last]
    state = 0
    for j in range(last):
        state += sums[j] <= x
    return state


@kernel(inline="always")
def _draw_back(first, stop, filtered, into, states, s0, s1):
    """Draw the states of one sequence from the last to the first; into is transition'."""
    size = into.shape[0]
    sums = np.empty(size)
    for t in range(stop - 1, first - 1, -1):
        total = 0.0
        if t == stop - 1:
            for j in range(size):
                total += filtered[t, j]
                sums[j] = total
        else:
            after = states[t + 1]
            for j in range(size):
                total += filtered[t, j] * into[after, j]
                sums[j] = total
        u, s0, s1 = uniform(s0, s1)
        states[t] = _pick(u, sums)


@kernel
def draw_states(key, rows, starts, lookups, table, initial, transition, states):
    """Draw all states of each sequence given what was seen; return the log likelihood.

    The likelihood is that of the table: states are integrated out.

    key    : uint64
    rows   : (n,) uint64 ids of the sequences, which key their streams
    states : (steps,) int32 out
    """
    size, longest = initial.shape[0], 0
    for i in range(rows.shape[0]):
        longest = max(longest, starts[i + 1] - starts[i])
    filtered, into = np.empty((longest, size)), np.empty((size, size))
    for i in range(size):
        for j in range(size):
            into[j, i] = transition[i, j]
    value = 0.0
    for i in range(rows.shape[0]):
        first, length = starts[i], starts[i + 1] - starts[i]
        here, found = lookups[first : starts[i + 1]], states[first : starts[i + 1]]
        value += _filter(0, length, here, table, initial, transition, filtered)
        s0, s1 = open_stream(key, rows[i])
        _draw_back(0, length, filtered, into, found, s0, s1)
    return value


@kernel
def filter_sequences(starts, lookups, table, initial, transition, predicted, values, after):
    """Write what each step was expected to be, and how probable what it showed was.

    predicted : (steps, S) out: p(state | what was seen before)
    values    : (steps,) out: log of the sum of predicted times weight; 0 where nothing was seen
    after     : (n, S) out: p(state of the step after the last | all that was seen)
    """
    size = initial.shape[0]
    filtered, ahead = np.empty((1, size)), np.empty(size)
    for i in range(starts.shape[0] - 1):
        for j in range(size):
            ahead[j] = initial[j]
        for t in range(starts[i], starts[i + 1]):
            for j in range(size):
                predicted[t, j] = ahead[j]
            values[t] = math.log(_condition(ahead, lookups[t], table, filtered, 0))
            if lookups[t] < 0:
                values[t] = 0.0
            _advance(filtered, 0, transition, ahead)
        for j in range(size):
            after[i, j] = ahead[j]


@kernel
def count_states(starts, states, first_states, transitions):
    """Add each sequence to the counts of first states (S,) and of transitions (S, S)."""
    for i in range(starts.shape[0] - 1):
        if starts[i] < starts[i + 1]:
            first_states[states[starts[i]]] += 1
        for t in range(starts[i] + 1, starts[i + 1]):
            transitions[states[t - 1], states[t]] += 1


@kernel
def count_emissions(offsets, categories, counts, states, emissions):
    """Add what each step shows to the counts (S, K) of its state.

    offsets            : (steps + 1,) int64; step t shows the cells offsets[t] .. offsets[t + 1]
    categories, counts : (cells,) int32, int64
    """
    for t in range(states.shape[0]):
        for c in range(offsets[t], offsets[t + 1]):
            emissions[states[t], categories[c]] += counts[c]


@kernel
def weigh_counts(offsets, categories, counts, log_emission, weights, tops):
    """Write the likelihood of each state at each step, relative to the largest, which is 1.

    log_emission : (K, S)
    weights      : (steps, S) out, at least LEAST
    tops         : (steps,) out: the logarithms of the largest
    """
    n_steps, size = weights.shape
    for t in range(n_steps):
        for j in range(size):
            weights[t, j] = 0.0
        for c in range(offsets[t], offsets[t + 1]):
            for j in range(size):
                weights[t, j] += counts[c] * log_emission[categories[c], j]
        top = -math.inf
        for j in range(size):
            top = max(top, weights[t, j])
        for j in range(size):
            weights[t, j] = max(math.exp(weights[t, j] - top), LEAST)
        tops[t] = top
