"""Shares of topics of documents under fixed topics, by climbing: no draws, no streams.

Each step shares the tokens of a document among topics in proportion to weights[t] * topics[word, t], and then
moves the law's own coordinates to where they are best for these shares (EM). Documents start from equal
weights, so that their words decide which mode they climb to.

words         : the `Words` of n documents
n_steps       : at most; a document ends when its weights move by less than tolerance in sum
topic_counts  : (n, T) float64 out: the expected tokens of each topic

The topics of a document's words are copied side by side first, each row divided by its largest entry, which
changes no share and keeps single precision from underflow. Words that no topic knows say nothing.
"""

import math
from typing import NamedTuple

import numpy as np

from polystick.kernels import elementary, kernel
from polystick.kernels.simd32 import WIDTH

ZERO, ONE = np.float32(0.0), np.float32(1.0)
LEAST = np.float32(1e-30)  # weight of a topic, the largest having 1
NEWTON_STEPS = 4
SMALL_SLOPE = 1e-6  # tokens


class Words(NamedTuple):
    """The words of documents, and their topics."""

    starts: np.ndarray  # (n,) int64: document i has the cells from here
    stops: np.ndarray  # (n,) int64: to here
    cells: np.ndarray  # (cells,) int32: the row of topics for each cell
    counts: np.ndarray  # (cells,) int32
    topics: np.ndarray  # (rows, Tp) float32, Tp a multiple of WIDTH, padded by zeros
    sizes: np.ndarray  # (T,) float64: a word's weight in topic t is topics[row, t] / sizes[t]


@kernel(inline="always")
def _longest(words):
    """Return the cells of the document that has most of them."""
    longest = 0
    for i in range(words.starts.shape[0]):
        longest = max(longest, words.stops[i] - words.starts[i])
    return longest


@kernel(inline="always")
def _gather(words, i, rows, tokens):
    """Copy the topics of the words of document i into rows, its counts into tokens; return how many."""
    topics, sizes = words.topics, words.sizes
    size, at = topics.shape[1], 0
    for cell in range(words.starts[i], words.stops[i]):
        word, top = words.cells[cell], ZERO
        for t in range(sizes.shape[0]):
            value = np.float32(topics[word, t] / sizes[t])
            rows[at * size + t] = value
            top = max(top, value)
        if top > ZERO:
            for t in range(sizes.shape[0]):
                rows[at * size + t] /= top
            tokens[at] = words.counts[cell]
            at += 1
    return at


@kernel(inline="always")
def _share_out(n_rows, rows, tokens, weights, shares):
    """Write into shares (Tp,) the expected tokens of each topic, for weights (Tp,)."""
    size = weights.shape[0]
    for t in range(size):
        shares[t] = ZERO
    for row in range(n_rows):
        first = row * size
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = ZERO
        for t in range(0, size, WIDTH):
            a0 += weights[t] * rows[first + t]
            a1 += weights[t + 1] * rows[first + t + 1]
            a2 += weights[t + 2] * rows[first + t + 2]
            a3 += weights[t + 3] * rows[first + t + 3]
            a4 += weights[t + 4] * rows[first + t + 4]
            a5 += weights[t + 5] * rows[first + t + 5]
            a6 += weights[t + 6] * rows[first + t + 6]
            a7 += weights[t + 7] * rows[first + t + 7]
        ratio = tokens[row] / (((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7)))
        for t in range(size):
            shares[t] += ratio * rows[first + t]
    for t in range(size):
        shares[t] *= weights[t]


@kernel(inline="always")
def _climb_node(psi, successes, trials, centre, precision):
    """Return where successes psi - trials log(1 + e^psi) - precision (psi - centre)^2 / 2 is largest.

    Newton steps from psi, each kept between the points that the signs of the slope have left over.
    """
    low, high = centre - (trials - successes) / precision, centre + successes / precision
    psi = min(max(psi, low), high)
    for _ in range(NEWTON_STEPS):
        success = 1.0 / (1.0 + elementary.exp(-psi))
        slope = successes - trials * success - precision * (psi - centre)
        if abs(slope) < SMALL_SLOPE:
            break
        if slope > 0.0:
            low = psi
        else:
            high = psi
        psi += slope / (precision + trials * success * (1.0 - success))
        if not low < psi < high:
            psi = 0.5 * (low + high)
    return psi


@kernel(inline="always")
def _dot_row(a, i, x):
    """Return the sum of a[i, j] x[j], in four interleaved sums, which LLVM vectorises."""
    size = x.shape[0]
    whole = size - size % 4
    a0 = a1 = a2 = a3 = 0.0
    for j in range(0, whole, 4):
        a0 += a[i, j] * x[j]
        a1 += a[i, j + 1] * x[j + 1]
        a2 += a[i, j + 2] * x[j + 2]
        a3 += a[i, j + 3] * x[j + 3]
    total = (a0 + a2) + (a1 + a3)
    for j in range(whole, size):
        total += a[i, j] * x[j]
    return total


@kernel(inline="always")
def _split(children, shares, successes, trials):
    """Write the splits of shares (T,) at each node."""
    for node in range(len(children) - 1, -1, -1):
        a, b = children[node, 0], children[node, 1]
        first = np.float64(shares[a]) if a >= 0 else trials[~a]
        second = np.float64(shares[b]) if b >= 0 else trials[~b]
        successes[node] = first
        trials[node] = first + second


@kernel(inline="always")
def _weigh(i, children, means, gap, logs, above, weights):
    """Write the weights of topics, the largest being 1; return by how much their shares have moved."""
    n_topics, top, old, new, change = len(children) + 1, -math.inf, 0.0, 0.0, 0.0
    above[0] = 0.0
    for node in range(len(children)):
        psi = means[i, node] + gap[node]
        loss = elementary.log(1.0 + elementary.exp(-abs(psi)))
        for side in range(2):
            child = children[node, side]
            value = above[node] + min(psi if side == 0 else -psi, 0.0) - loss
            if child >= 0:
                logs[child] = value
                top = max(top, value)
            else:
                above[~child] = value
    for t in range(n_topics):
        logs[t] = elementary.exp(logs[t] - top)
        new += logs[t]
        old += weights[t]
    for t in range(n_topics):
        change += abs(logs[t] / new - weights[t] / old)
        weights[t] = max(np.float32(logs[t]), LEAST)
    return change


@kernel(inline="always")
def _move_nodes(i, precision, means, successes, trials, gap):
    """Move psi - mean to where it is best, node by node, each given the others."""
    for j in range(gap.shape[0]):
        own = precision[j, j]
        psi = means[i, j] + gap[j]
        centre = psi - _dot_row(precision, j, gap) / own
        gap[j] = _climb_node(psi, successes[j], trials[j], centre, own) - means[i, j]


@kernel
def settle_sticks(words, children, precision, means, start, n_steps, tolerance, topic_counts, psi):
    """Climb to where the law of psi times the probability of the words is largest.

    children  : (k, 2) the tree whose leaves are topics
    precision : (k, k) of psi
    means     : (n, k) of psi
    start     : (k,) psi of equal shares
    psi       : (n, k) out
    """
    n, k = psi.shape
    longest, size = _longest(words), words.topics.shape[1]
    rows, tokens = np.zeros(longest * size, np.float32), np.empty(longest, np.float32)
    weights, shares = np.zeros(size, np.float32), np.empty(size, np.float32)
    gap, above, logs = np.empty(k), np.empty(k), np.empty(k + 1)
    successes, trials = np.empty(k), np.empty(k)
    for i in range(n):
        n_rows = _gather(words, i, rows, tokens)
        for t in range(k + 1):
            weights[t] = ONE
        for j in range(k):
            gap[j] = start[j] - means[i, j]
        for _ in range(n_steps):
            _share_out(n_rows, rows, tokens, weights, shares)
            _split(children, shares, successes, trials)
            _move_nodes(i, precision, means, successes, trials, gap)
            if _weigh(i, children, means, gap, logs, above, weights) < tolerance:
                break
        for t in range(k + 1):
            topic_counts[i, t] = shares[t]
        for j in range(k):
            psi[i, j] = means[i, j] + gap[j]


@kernel
def settle_dirichlet(words, alpha, n_steps, tolerance, topic_counts):
    """Climb to where shares are (expected tokens of each topic + alpha), normalised.

    alpha : (T,)
    """
    longest, size = _longest(words), words.topics.shape[1]
    rows, tokens = np.zeros(longest * size, np.float32), np.empty(longest, np.float32)
    weights, shares = np.zeros(size, np.float32), np.empty(size, np.float32)
    for i in range(topic_counts.shape[0]):
        n_rows = _gather(words, i, rows, tokens)
        for t in range(alpha.shape[0]):
            weights[t] = ONE
        for _ in range(n_steps):
            _share_out(n_rows, rows, tokens, weights, shares)
            total, change = 0.0, 0.0
            for t in range(alpha.shape[0]):
                total += shares[t] + alpha[t]
            for t in range(alpha.shape[0]):
                new = np.float32((shares[t] + alpha[t]) / total)
                change += abs(new - weights[t])
                weights[t] = max(new, LEAST)
            if change < tolerance:
                break
        for t in range(alpha.shape[0]):
            topic_counts[i, t] = shares[t]
