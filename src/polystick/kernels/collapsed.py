"""Collapsed Gibbs sampling of latent Dirichlet allocation: one token after another, in place.

The topic of a token, given those of all others, has weights

    (document's count + alpha_t) (word's count + eta) / (topic's count + V eta)

with the token itself left out. Topics are drawn by inversion. The sum runs along eight lanes at once,
topic t in lane t % 8: the lane is drawn first, then the place in it. Counts are whole numbers in
float32, exact up to 2^24; callers see to it that no document and no word has more tokens.
"""

import math

import numpy as np

from polystick.kernels import kernel, simd32
from polystick.kernels.simd32 import LINE, WIDTH, add, load, mul, prefetch, splat, store
from polystick.kernels.streams import open_stream, uniform

LARGEST_COUNT = 2**24  # float32 holds all whole numbers up to here
FLOATS = LINE // 4  # in a line of the cache
AHEAD = 6  # tokens between the request of a word's counts and their use
SMALL = 2.0**-500  # a product of probabilities below it is turned into its logarithm
LANES_BACK = -np.arange(WIDTH, dtype=np.float32)
STRIDE, MARGIN = 4 * WIDTH, 3 * WIDTH
ZERO, ONE, INFINITY = np.float32(0.0), np.float32(1.0), np.float32(math.inf)


@kernel
def count_words(words, assignments, word_topics):
    """Add each token to the counts (V, Tp) of its word and topic."""
    for i in range(words.shape[0]):
        word_topics[words[i], assignments[i]] += ONE


@kernel
def count_documents(starts, assignments, document_topics):
    """Add each token to the counts (n, T) of its document and topic."""
    for i in range(document_topics.shape[0]):
        for j in range(starts[i], starts[i + 1]):
            document_topics[i, assignments[j]] += 1


@kernel(inline="always")
def _pick(u, sums, n_topics):
    """Return the topic at the share u in [0, 1) of all weight, and all weight.

    A lane is searched by strides of four topics, then within one.

    sums : (Tp + MARGIN,) float32 weights summed along each lane: sums[t] = sums[t - WIDTH] + weight
           of t, and infinity in the margin
    """
    last = sums.shape[0] - MARGIN - WIDTH
    end0, end4 = sums[last], sums[last + 4]
    end1, end5 = end0 + sums[last + 1], end4 + sums[last + 5]
    end2, end3 = end1 + sums[last + 2], end1 + (sums[last + 2] + sums[last + 3])
    total = end3 + (end5 + (sums[last + 6] + sums[last + 7]))
    end4, end5 = end3 + end4, end3 + end5
    end6 = end5 + sums[last + 6]
    x = np.float32(u) * total
    lane, below = 0, ZERO
    if x >= end0:
        lane, below = 1, end0
    if x >= end1:
        lane, below = 2, end1
    if x >= end2:
        lane, below = 3, end2
    if x >= end3:
        lane, below = 4, end3
    if x >= end4:
        lane, below = 5, end4
    if x >= end5:
        lane, below = 6, end5
    if x >= end6:
        lane, below = 7, end6
    x -= below
    t = np.int64(lane)
    for place in range(lane + STRIDE - WIDTH, last, STRIDE):
        t += STRIDE * (x >= sums[place])
    beyond = np.int64(x >= sums[t]) + np.int64(x >= sums[t + WIDTH])
    t += WIDTH * (beyond + np.int64(x >= sums[t + 2 * WIDTH]))
    return min(t, n_topics - 1), total  # rounding may lead past the last topic


@kernel(forceinline=True)
def _move(t, step, here, totals, prior, spread, rate, weight):
    """Add a token to topic t of the document at hand, or take it away: step = 1 or -1."""
    here[t] += np.float32(step)
    totals[t] += step
    rate[t] = 1.0 / (totals[t] + spread)
    weight[t] = (here[t] + prior[t]) * rate[t]


@kernel(inline="always")
def _start_sweep(alpha, totals, spread, prior, rate):
    """Write alpha and 1 / (totals + spread) as float32."""
    for t in range(alpha.shape[0]):
        prior[t], rate[t] = alpha[t], 1.0 / (totals[t] + spread)


@kernel(inline="always")
def _start_document(first, stop, assignments, prior, rate, here, weight):
    """Count the document's topics into here (Tp,) and set weight = (here + prior) rate."""
    for t in range(here.shape[0]):
        here[t] = ZERO
    for i in range(first, stop):
        here[assignments[i]] += ONE
    for t in range(here.shape[0]):
        weight[t] = (here[t] + prior[t]) * rate[t]


@kernel(inline="always")
def run_lanes_scalar(weight, counts, first, eta, old, without, sums):
    """Write the sums of the weights along the lanes, with `without` for topic `old`."""
    for t in range(weight.shape[0]):
        x = weight[t] * (counts[first + t] + eta)
        if t == old:
            x = without
        sums[t] = x + sums[t - WIDTH] if t >= WIDTH else x


@kernel(inline="always")
def run_lanes_simd(weight, counts, first, eta, old, without, sums):
    """Do as run_lanes_scalar, all lanes at once."""
    total, start = splat(ZERO), first // WIDTH
    shift, instead, back = splat(eta), splat(without), splat(np.float32(-WIDTH))
    distance = add(splat(np.float32(old)), load(LANES_BACK, 0))
    for p in range(weight.shape[0] // WIDTH):
        x = mul(load(weight, p), add(load(counts, start + p), shift))
        total = add(total, simd32.where_zero(distance, instead, x))
        store(sums, p, total)
        distance = add(distance, back)


run_lanes = run_lanes_simd if simd32.ENABLED else run_lanes_scalar  # with the same bits


@kernel
def sweep_in_place(key, rows, starts, words, assignments, alpha, eta, word_topics, totals):
    """Draw the topic of each token anew, in place; return the log likelihood of the tokens.

    The likelihood of a token is its word's probability at the means of shares and topics given all
    assignments at that moment, its own included. Most tokens keep their topic. So a token is not taken out of
    the counts, but out of the sum; counts are written only where the topic has changed, and the processor
    works ahead where it has not.

    key         : uint64
    rows        : (n,) uint64 ids of the documents, which key their streams
    starts      : (n + 1,) int64; the tokens of document i are starts[i] .. starts[i + 1]
    words       : (tokens,) int32
    assignments : (tokens,) int32 topics, in and out
    alpha       : (T,) float64
    eta         : float64
    word_topics : (V, Tp) float32 whole counts, in and out; Tp the next multiple of WIDTH, padding 0
    totals      : (T,) float64 sums of word_topics over words, in and out
    """
    size, n_topics, counts = word_topics.shape[1], alpha.shape[0], word_topics.reshape(-1)
    spread, short_eta = word_topics.shape[0] * eta, np.float32(eta)
    prior, rate = np.zeros(size, np.float32), np.zeros(size, np.float32)
    here, weight = np.zeros(size, np.float32), np.zeros(size, np.float32)
    sums = np.full(size + MARGIN, INFINITY)
    _start_sweep(alpha, totals, spread, prior, rate)
    alpha_sum, value, product = alpha.sum(), 0.0, 1.0
    for d in range(rows.shape[0]):
        s0, s1 = open_stream(key, rows[d])
        _start_document(starts[d], starts[d + 1], assignments, prior, rate, here, weight)
        scale = 1.0 / (starts[d + 1] - starts[d] + alpha_sum)
        for i in range(starts[d], starts[d + 1]):
            later = np.int64(words[min(i + AHEAD, words.shape[0] - 1)]) * size
            for j in range(0, size, FLOATS):
                prefetch(counts, later + j)
            first, old = np.int64(words[i]) * size, np.int64(assignments[i])
            without = ((here[old] - ONE) + prior[old]) * np.float32(
                1.0 / ((totals[old] - 1.0) + spread)
            )
            without *= (counts[first + old] - ONE) + short_eta
            run_lanes(weight, counts, first, short_eta, old, without, sums)
            u, s0, s1 = uniform(s0, s1)
            t, total = _pick(u, sums, n_topics)
            if t != old:
                without = weight[t] * (counts[first + t] + short_eta)
                counts[first + old] -= ONE
                _move(old, -1.0, here, totals, prior, spread, rate, weight)
                assignments[i] = t
                counts[first + t] += ONE
                _move(t, 1.0, here, totals, prior, spread, rate, weight)
            product *= scale * (total + (weight[t] * (counts[first + t] + short_eta) - without))
            if product < SMALL:
                value, product = value + math.log(product), 1.0
    return value + math.log(product)
