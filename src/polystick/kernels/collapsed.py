"""Collapsed Gibbs sampling of latent Dirichlet allocation: one token after another, in place.

The topic of a token, given those of all others, has weights

    (document's count + alpha_t) (word's count + eta) / (topic's count + V eta)

with the token itself left out. Topics are drawn by inversion. The sum runs along eight lanes at once,
topic t in lane t % 8: the lane is drawn first, then the place in it. Counts are whole numbers in
float32, exact up to 2^24; callers see to it that no document and no word has more tokens.

A token of topic -1 has none yet: it is drawn given those before it, which makes a first sweep a start.
"""

import math

import numpy as np

from polystick.kernels import kernel
from polystick.kernels.streams import open_stream, uniform

LANES = 8
LARGEST_COUNT = 2**24  # float32 holds all whole numbers up to here
UNASSIGNED = -1
_LARGE, _SMALL = 2.0**500, 2.0**-500


@kernel
def count_words(words, assignments, word_topics):
    """Add each token to the counts (V, Tp) of its word and topic."""
    for i in range(words.shape[0]):
        word_topics[words[i], assignments[i]] += np.float32(1)


@kernel
def count_documents(starts, assignments, document_topics):
    """Add each token to the counts (n, T) of its document and topic."""
    for i in range(document_topics.shape[0]):
        for j in range(starts[i], starts[i + 1]):
            document_topics[i, assignments[j]] += 1


@kernel(inline="always")
def _pick(sums, u, n_topics):
    """Return the topic at u, a share in [0, 1) of all weight.

    sums : (Tp,) float32 weights summed along each lane: sums[t] = sums[t - 8] + weight of t
    """
    last = sums.shape[0] - LANES
    c0 = sums[last]
    c1 = c0 + sums[last + 1]
    c2 = c1 + sums[last + 2]
    c3 = c2 + sums[last + 3]
    c4 = c3 + sums[last + 4]
    c5 = c4 + sums[last + 5]
    c6 = c5 + sums[last + 6]
    total = c6 + sums[last + 7]
    x = np.float32(u) * total
    lane, below = 0, np.float32(0)
    if x >= c0:
        lane, below = 1, c0
    if x >= c1:
        lane, below = 2, c1
    if x >= c2:
        lane, below = 3, c2
    if x >= c3:
        lane, below = 4, c3
    if x >= c4:
        lane, below = 5, c4
    if x >= c5:
        lane, below = 6, c5
    if x >= c6:
        lane, below = 7, c6
    x -= below
    topic = lane
    for t in range(lane, last, LANES):
        topic += LANES * (x >= sums[t])
    return min(topic, n_topics - 1), total  # rounding may lead past the last one


@kernel
def _enter_document(first, last, assignments, alpha, rate, here, weight):
    """Count the document's topics into here (Tp,) and set weight = (here + alpha) rate."""
    for t in range(here.shape[0]):
        here[t] = np.float32(0)
    for i in range(first, last):
        if assignments[i] >= 0:
            here[assignments[i]] += np.float32(1)
    for t in range(here.shape[0]):
        weight[t] = (here[t] + alpha[t]) * rate[t]


@kernel
def sweep_scalar(key, rows, starts, words, assignments, alpha, eta, word_topics, totals):
    """Draw the topic of each token anew, in place; return the log likelihood of the tokens.

    The likelihood of a token is its word's probability at the means of proportions and topics given
    all assignments, those of the tokens after it being of the sweep before.

    key         : uint64
    rows        : (n,) uint64 ids of the documents
    starts      : (n + 1,) int64; the tokens of document i are starts[i] .. starts[i + 1]
    words       : (tokens,) int32
    assignments : (tokens,) int32 topics, in and out; -1 for none yet
    alpha       : (T,) float64
    eta         : float64
    word_topics : (V, Tp) float32 whole counts, in and out; padding 0
    totals      : (T,) float64 whole counts of the topics, in and out
    """
    n_words, n_padded = word_topics.shape
    n_topics, eta32 = alpha.shape[0], np.float32(eta)
    prior, rate = np.zeros(n_padded, np.float32), np.zeros(n_padded, np.float32)
    here, weight = np.zeros(n_padded, np.float32), np.zeros(n_padded, np.float32)
    sums = np.zeros(n_padded, np.float32)
    for t in range(n_topics):
        prior[t], rate[t] = alpha[t], 1.0 / (totals[t] + n_words * eta)
    alpha_sum, value, product = alpha.sum(), 0.0, 1.0
    for d in range(rows.shape[0]):
        s0, s1 = open_stream(key, rows[d])
        _enter_document(starts[d], starts[d + 1], assignments, prior, rate, here, weight)
        scale = 1.0 / (starts[d + 1] - starts[d] + alpha_sum)
        for i in range(starts[d], starts[d + 1]):
            v, t = words[i], assignments[i]
            if t >= 0:
                word_topics[v, t] -= np.float32(1)
                here[t] -= np.float32(1)
                totals[t] -= 1.0
                rate[t] = 1.0 / (totals[t] + n_words * eta)
                weight[t] = (here[t] + prior[t]) * rate[t]
            for j in range(LANES):
                sums[j] = weight[j] * (word_topics[v, j] + eta32)
            for j in range(LANES, n_padded):
                sums[j] = sums[j - LANES] + weight[j] * (word_topics[v, j] + eta32)
            u, s0, s1 = uniform(s0, s1)
            t, total = _pick(sums, u, n_topics)
            without = weight[t] * (word_topics[v, t] + eta32)
            assignments[i] = t
            word_topics[v, t] += np.float32(1)
            here[t] += np.float32(1)
            totals[t] += 1.0
            rate[t] = 1.0 / (totals[t] + n_words * eta)
            weight[t] = (here[t] + prior[t]) * rate[t]
            product *= scale * (total + (weight[t] * (word_topics[v, t] + eta32) - without))
            if product < _SMALL:
                value, product = value + math.log(product), 1.0
    return value + math.log(product)


sweep_in_place = sweep_scalar
