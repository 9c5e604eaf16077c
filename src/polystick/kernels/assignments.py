"""Which topic each token belongs to: draws for Gibbs, expectations for mean field.

A token of word v in document i has topic t with probability proportional to
weights[i, t] * topics[v, t]. Topics are word-major and, for draws, float32 with columns padded by
zeros to a multiple of WIDTH, so that a word is a few whole vectors.

A draw adds the products of a word into WIDTH vertical lanes, keeps their running sums, picks a lane
and then a topic along the lane. Sums in float32 move a probability by about 1e-7. A document's
weights are divided by their maximum first. Where a total is still too small for float32, and where
rounding leads past the last topic that has any probability, the cell is drawn in float64. A word
that no topic knows is drawn by the weights alone and counts as having probability SMALLEST.
"""

import math

import numpy as np

from polystick.kernels import kernel, simd32
from polystick.kernels.simd32 import LINE, WIDTH, add, load, mul, prefetch, splat, store
from polystick.kernels.streams import next_bits, open_stream, uniform

AHEAD, AHEAD_LONG = 8, 4  # cells between the request of a word's topics and their use
FLOATS, DOUBLES = LINE // 4, LINE // 8
SMALLEST = float(np.finfo(np.float64).tiny)
SMALL_TOTAL = np.float32(1e-30)
LOW, HIGH = 1e-200, 1e200  # products of totals are kept between them
SMALL_SUM = 1e-290  # below it count / sum might overflow
ZERO = np.float32(0.0)
UNIT = np.float32(2.0**-24)


@kernel(inline="always")
def _short_uniform(s0, s1):
    """Draw a float32 uniform on [0, 1)."""
    bits, s0, s1 = next_bits(s0, s1)
    return np.float32(np.int32(bits >> np.uint64(40))) * UNIT, s0, s1


@kernel(inline="always")
def _scale_weights(weights, i, scaled):
    """Write weights[i] / their maximum as float32; return the maximum, or SMALLEST."""
    scale = SMALLEST
    for t in range(weights.shape[1]):
        scale = max(scale, weights[i, t])
    for t in range(weights.shape[1]):
        scaled[t] = np.float32(weights[i, t] / scale)
    return scale


@kernel(inline="always")
def run_lanes_scalar(scaled, topics, first, sums):
    """Write the running sums of the products along the lanes: sums[t] ends at sums[t mod WIDTH]."""
    for t in range(WIDTH):
        sums[t] = scaled[t] * topics[first + t]
    for t in range(WIDTH, scaled.shape[0]):
        sums[t] = sums[t - WIDTH] + scaled[t] * topics[first + t]


@kernel(inline="always")
def run_lanes_simd(scaled, topics, first, sums):
    """Do as run_lanes_scalar, all lanes at once."""
    start = first // WIDTH
    total = splat(ZERO)
    for p in range(scaled.shape[0] // WIDTH):
        total = add(total, mul(load(scaled, p), load(topics, start + p)))
        store(sums, p, total)


run_lanes = run_lanes_simd if simd32.ENABLED else run_lanes_scalar  # with the same bits


@kernel(inline="always")
def _run_across(sums, edges):
    """Write the running sums of the lanes' totals into edges[1:]; return the last."""
    last = sums.shape[0] - WIDTH
    total = ZERO
    for lane in range(WIDTH):
        total += sums[last + lane]
        edges[lane + 1] = total
    return total


@kernel(inline="always")
def _pick(u, sums, edges):
    """Return the topic at place u of [0, total): its lane first, then its place in the lane."""
    lane = 0
    for j in range(1, WIDTH):
        lane += u >= edges[j]
    rest = u - edges[lane]
    t = lane
    for p in range(lane, sums.shape[0] - WIDTH, WIDTH):
        t += WIDTH * (rest >= sums[p])
    return t


@kernel
def _draw_carefully(weights, i, topics, first, s0, s1):
    """Draw one topic in float64; return it, the log of the total and the state."""
    n_topics = weights.shape[1]
    total = 0.0
    for t in range(n_topics):
        total += weights[i, t] * topics[first + t]
    known = total > 0.0
    log_total = math.log(total) if known else math.log(SMALLEST)
    if not known:
        for t in range(n_topics):
            total += weights[i, t]
    u, s0, s1 = uniform(s0, s1)
    rest, last = u * total, 0
    for t in range(n_topics):
        x = weights[i, t] * (topics[first + t] if known else 1.0)
        if x > 0.0:
            last = t
            if rest < x:
                break
            rest -= x
    return last, log_total, s0, s1


@kernel(inline="always")
def _multiply(value, product, total):
    """Multiply a product whose logarithm belongs to value, and move it there before it is extreme."""
    product *= total
    if product < LOW or product > HIGH:
        value += math.log(product)
        product = 1.0
    return value, product


@kernel
def draw_assignments(key, rows, starts, stops, words, counts, weights, topics, pairs, topic_counts):
    """Draw a topic for each token; return the log-likelihood of the tokens.

    key          : uint64
    rows         : (n,) uint64 ids; document i draws from the stream of rows[i], cell by cell
    starts, stops : (n,) int64; the cells of document i
    words, counts : (cells,) int32
    weights      : (n, T) float64: probabilities of topics divided by the sizes of topics
    topics       : (V, Tp) float32, Tp the next multiple of WIDTH from T on, padded by zeros; V * Tp < 2^31
    pairs        : (tokens,) int32 out: word * Tp + topic, in the order of documents and cells
    topic_counts : (n, T) int64 out: the tokens of each topic
    """
    n, n_topics = weights.shape
    size, flat = topics.shape[1], topics.reshape(-1)
    scaled, sums = np.zeros(size, np.float32), np.empty(size, np.float32)
    edges = np.zeros(WIDTH + 1, np.float32)
    value, token = 0.0, 0
    for i in range(n):
        s0, s1 = open_stream(key, rows[i])
        log_scale, product = math.log(_scale_weights(weights, i, scaled)), 1.0
        before = token
        for t in range(n_topics):
            topic_counts[i, t] = 0
        for cell in range(starts[i], stops[i]):
            first = np.int64(words[cell]) * size
            later = np.int64(words[min(cell + AHEAD, words.shape[0] - 1)]) * size
            for t in range(0, size, FLOATS):
                prefetch(flat, later + t)
            run_lanes(scaled, flat, first, sums)
            total = _run_across(sums, edges)
            for _ in range(counts[cell]):
                u, s0, s1 = _short_uniform(s0, s1)
                t = _pick(u * total, sums, edges)
                if total >= SMALL_TOTAL and scaled[t] * flat[first + t] > ZERO:
                    value, product = _multiply(value, product, np.float64(total))
                else:
                    t, log_total, s0, s1 = _draw_carefully(weights, i, flat, first, s0, s1)
                    value += log_total - log_scale
                pairs[token] = first + t
                topic_counts[i, t] += 1
                token += 1
        value += math.log(product) + (token - before) * log_scale
    return value


@kernel
def tally_in_place(pairs, counts):
    """Count pairs: add 1 to entry pairs[token] of the flat counts.

    pairs  : (tokens,) int32
    counts : (V, Tp) int32
    """
    flat = counts.reshape(-1)
    for token in range(pairs.shape[0]):
        flat[pairs[token]] += 1


@kernel(inline="always")
def _dot(x, i, y, j):
    """Return the sum of x[i, t] * y[j, t], in eight interleaved sums, which LLVM vectorises."""
    size = x.shape[1]
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    whole = size - size % 8
    for t in range(0, whole, 8):
        a0 += x[i, t] * y[j, t]
        a1 += x[i, t + 1] * y[j, t + 1]
        a2 += x[i, t + 2] * y[j, t + 2]
        a3 += x[i, t + 3] * y[j, t + 3]
        a4 += x[i, t + 4] * y[j, t + 4]
        a5 += x[i, t + 5] * y[j, t + 5]
        a6 += x[i, t + 6] * y[j, t + 6]
        a7 += x[i, t + 7] * y[j, t + 7]
    total = ((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7))
    for t in range(whole, size):
        total += x[i, t] * y[j, t]
    return total


@kernel(inline="always")
def _share_unknown(i, count, weights, share):
    """Share a cell whose word no topic knows by the weights alone; return its log-likelihood."""
    total = 0.0
    for t in range(weights.shape[1]):
        total += weights[i, t]
    for t in range(weights.shape[1]):
        share[t] += count / max(total, SMALLEST)
    return count * math.log(SMALLEST)


@kernel
def expect_assignments(
    starts, stops, columns, counts, weights, topics, expected_topics, expected_words_in_place
):
    """Share each cell among topics in proportion to u_t = weights[i, t] * topics[j, t].

    Return the sum over cells of count * log(sum of u). A cell of sum 0 is shared by the weights,
    counts as having the sum SMALLEST and adds nothing to the words.

    starts, stops   : (n,) int64; the cells of document i
    columns         : (cells,) int32; the word of a cell as a row j of topics
    counts          : (cells,) float64
    weights         : (n, T) float64
    topics          : (u, T) float64
    expected_topics : (n, T) float64 out: the tokens of each topic
    expected_words_in_place : (u, T) float64, added to; (0, T) where it is not wanted
    """
    n, n_topics = weights.shape
    wants_words = expected_words_in_place.shape[0] > 0
    flat, flat_words = topics.reshape(-1), expected_words_in_place.reshape(-1)
    share = np.empty(n_topics)
    value = 0.0
    for i in range(n):
        for t in range(n_topics):
            share[t] = 0.0
        for cell in range(starts[i], stops[i]):
            j, count = np.int64(columns[cell]), counts[cell]
            later = np.int64(columns[min(cell + AHEAD_LONG, columns.shape[0] - 1)]) * n_topics
            for t in range(later, later + n_topics, DOUBLES):
                prefetch(flat, t)
                if wants_words:
                    prefetch(flat_words, t)
            total = _dot(weights, i, topics, j)
            if not total > SMALL_SUM:
                value += _share_unknown(i, count, weights, share)
                continue
            value += count * math.log(total)
            ratio = count / total
            for t in range(n_topics):
                share[t] += ratio * topics[j, t]
            if wants_words:
                for t in range(n_topics):
                    expected_words_in_place[j, t] += ratio * weights[i, t] * topics[j, t]
        for t in range(n_topics):
            expected_topics[i, t] = share[t] * weights[i, t]
    return value
