"""What the tokens of a sequence so far say of each binary split of the next one.

Two kinds of memory, both over the sides of the splits. A fading count of all tokens (a cache), one for each
speed; and counts of what followed the last token, or the last two (bigrams, trigrams), of which each kind of
follower gives a discount to what is expected without that context (absolute discounting, as Kneser and Ney).
A feature is the log odds of a split under such a memory, less those without it; so it is 0 where nothing is
remembered. All is read before the step's own token is added.

Counts of contexts are in a hash table whose keys are 64 bits of (context, side of a split): two of a
million keys are the same with a probability of about 1e-7.

tree    : (starts, nodes, sides) the path of each category (`decomposition.Paths`)
law     : Law
"""

import math
from typing import NamedTuple

import numpy as np

from polystick.kernels import kernel
from polystick.kernels.streams import wrapping

HUGE = 1e100


class Law(NamedTuple):
    """What memories are made of."""

    masses: (
        np.ndarray
    )  # (k, 2) the share of both sides of each split, of all; those of the root add up to 1
    log_odds: np.ndarray  # (k,) of the masses
    growth: np.ndarray  # (H,) a step makes what comes later this much heavier than what was before
    pull: np.ndarray  # (H,) how many tokens the masses are worth, beside a cache
    discounts: np.ndarray  # (O,) of the last token, of the last two


class Tables(NamedTuple):
    """Where things are remembered; one slot in two of a hash table is empty at least, 0 is no key."""

    keys: np.ndarray  # (n,) uint64 of (context, side of a split)
    places: np.ndarray  # (n,) int64: 2 split + side
    counts: np.ndarray  # (n,)
    kinds: np.ndarray  # (n,) of followers
    earlier: np.ndarray  # (n,) int64 the slot that the context had filled before; -1: none
    contexts: np.ndarray  # (m,) uint64
    totals: np.ndarray  # (m,)
    all_kinds: np.ndarray  # (m,)
    latest: np.ndarray  # (m,) int64 the slot that the context filled last; -1: none
    caches: np.ndarray  # (H, k, 2)
    weights: np.ndarray  # (H,) of a token in a cache, now


@wrapping
@kernel
def _join(key, word):
    """Hash a key and a number to a key other than 0."""
    bits = key * np.uint64(0x9E3779B97F4A7C15) + np.uint64(word) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0x94D049BB133111EB)
    return (bits ^ (bits >> np.uint64(31))) | np.uint64(1)


@wrapping
@kernel
def _find(keys, key):
    """Return the slot of a key, or the empty one that it would have."""
    last = np.uint64(keys.shape[0] - 1)
    slot = (key >> np.uint64(1)) & last
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + np.uint64(1)) & last
    return np.int64(slot)


@kernel(inline="always")
def _read_contexts(t, tokens, tables, contexts, slots):
    """Write keys and slots of what comes before step t; return how long a context is known."""
    key, n = np.uint64(1), 0
    for back in range(contexts.shape[0]):
        at = t - 1 - back
        if at < 0 or tokens[at] < 0:
            break
        key = _join(key, tokens[at])
        contexts[back], slots[back] = key, _find(tables.contexts, key)
        n += 1
    return n


@kernel(forceinline=True)
def _cached(node, h, law, tables):
    """Return the feature of a cache."""
    pull, weight = law.pull[h], tables.weights[h]
    first = tables.caches[h, node, 0] / weight + pull * law.masses[node, 0]
    second = tables.caches[h, node, 1] / weight + pull * law.masses[node, 1]
    return math.log(first / second) - law.log_odds[node]


@kernel(inline="always")
def _write_path(row, n_contexts, contexts, slots, nodes, law, tables, features):
    """Write the features of some splits, from features[row] on: all that the likelihood of a token needs."""
    n_caches = law.growth.shape[0]
    for at in range(nodes.shape[0]):
        node = nodes[at]
        first, second, odds = law.masses[node, 0], law.masses[node, 1], law.log_odds[node]
        for h in range(n_caches):
            features[row + at, h] = _cached(node, h, law, tables)
        for back in range(law.discounts.shape[0]):
            features[row + at, n_caches + back] = 0.0
            if back < n_contexts and tables.contexts[slots[back]] != 0:
                discount, whole = law.discounts[back], tables.totals[slots[back]]
                rest = discount * tables.all_kinds[slots[back]]
                a = _find(tables.keys, _join(contexts[back], 2 * node))
                b = _find(tables.keys, _join(contexts[back], 2 * node + 1))
                first = tables.counts[a] - discount * tables.kinds[a] + rest * first
                second = tables.counts[b] - discount * tables.kinds[b] + rest * second
                now = math.log(first / second)
                features[row + at, n_caches + back] = now - odds
                first, second, odds = first / whole, second / whole, now


@kernel(inline="always")
def _write_all(t, n_contexts, slots, law, tables, weights, scratch, levels):
    """Write into levels[t] the sum of weights times features of all splits; scratch (2, k, 2) ends in 0."""
    n_caches = law.growth.shape[0]
    masses, added = scratch[0], scratch[1]
    for node in range(levels.shape[1]):
        levels[t, node] = 0.0
        masses[node, 0], masses[node, 1] = law.masses[node, 0], law.masses[node, 1]
        for h in range(n_caches):
            if weights[h] != 0.0:
                levels[t, node] += weights[h] * _cached(node, h, law, tables)
    for back in range(n_contexts):
        context, weight, discount = slots[back], weights[n_caches + back], law.discounts[back]
        if tables.contexts[context] == 0:
            break
        whole, slot = tables.totals[context], tables.latest[context]
        rest = discount * tables.all_kinds[context] / whole
        while slot >= 0:
            node, side = tables.places[slot] // 2, tables.places[slot] % 2
            added[node, side] = (tables.counts[slot] - discount * tables.kinds[slot]) / whole
            slot = tables.earlier[slot]
        for node in range(levels.shape[1]):
            first = added[node, 0] + rest * masses[node, 0]
            second = added[node, 1] + rest * masses[node, 1]
            if added[node, 0] > 0.0 or added[node, 1] > 0.0:
                ratio = (first * masses[node, 1]) / (second * masses[node, 0])
                levels[t, node] += weight * math.log(ratio)
                added[node, 0] = added[node, 1] = 0.0
            masses[node, 0], masses[node, 1] = first, second


@kernel(inline="always")
def _remember(n_contexts, contexts, nodes, sides, tables):
    """Add a token, by its path, to the caches and to what followed its contexts."""
    for at in range(nodes.shape[0]):
        side = 0 if sides[at] > 0 else 1
        for h in range(tables.weights.shape[0]):
            tables.caches[h, nodes[at], side] += tables.weights[h]
    for back in range(n_contexts):
        context, last = _find(tables.contexts, contexts[back]), nodes.shape[0] - 1
        if tables.contexts[context] == 0:
            tables.contexts[context], tables.latest[context] = contexts[back], -1
        is_new = False
        for at in range(last, -1, -1):  # from the leaf, which tells whether the token is new there
            place = 2 * nodes[at] + (0 if sides[at] > 0 else 1)
            key = _join(contexts[back], place)
            slot = _find(tables.keys, key)
            if tables.keys[slot] == 0:
                tables.keys[slot], tables.places[slot] = key, place
                tables.earlier[slot] = tables.latest[context]
                tables.latest[context] = slot
            is_new = is_new if at < last else tables.counts[slot] == 0.0
            tables.counts[slot] += 1.0
            tables.kinds[slot] += 1.0 if is_new else 0.0
        tables.totals[context] += 1.0
        tables.all_kinds[context] += 1.0 if is_new else 0.0


@kernel(inline="always")
def _pass_time(law, tables):
    """Let the caches fade by a step."""
    for h in range(law.growth.shape[0]):
        tables.weights[h] *= law.growth[h]
        if tables.weights[h] > HUGE:
            scale = 1.0 / tables.weights[h]
            tables.weights[h] = 1.0
            for node in range(law.masses.shape[0]):
                tables.caches[h, node, 0] *= scale
                tables.caches[h, node, 1] *= scale


@kernel
def gather(starts, nodes, kappa, omega, features, steps, linear, precision, cross):
    """Write the sums that the weights of features are learned from, over the active splits of all steps.

    features                 : (entries, P)
    steps                    : (S, E) u
    linear, precision, cross : (P,), (P, P), (k, E, P) out: of kappa f, of omega f f', of omega u f' by split
    """
    linear[:] = 0.0
    precision[:] = 0.0
    cross[:] = 0.0
    for s in range(starts.shape[0] - 1):
        for at in range(starts[s], starts[s + 1]):
            for p in range(features.shape[1]):
                linear[p] += kappa[at] * features[at, p]
                weight = omega[at] * features[at, p]
                for q in range(p + 1):
                    precision[p, q] += weight * features[at, q]
                for i in range(steps.shape[1]):
                    cross[nodes[at], i, p] += weight * steps[s, i]
    for p in range(features.shape[1]):
        for q in range(p):
            precision[q, p] = precision[p, q]


@kernel
def recall(tokens, first, last, tree, law, tables, weights, features, levels):
    """Walk through the steps from first up to last, after those before it; write what is wanted.

    tokens   : (S,) int64 of one sequence, -1 where one is missing
    weights  : (H + O,) of the features, read for levels
    features : (entries, H + O) out, of the splits on the paths of the tokens, or (0, H + O)
    levels   : (last - first, k) out, or (0, k): the sum of weights times features, of all splits
    """
    path_starts, path_nodes, path_sides = tree
    n_orders, row = law.discounts.shape[0], 0
    contexts, slots = np.zeros(n_orders, np.uint64), np.zeros(n_orders, np.int64)
    scratch = np.zeros((2, law.masses.shape[0], 2))
    for t in range(first, last):
        _pass_time(law, tables)
        n_contexts = _read_contexts(t, tokens, tables, contexts, slots)
        if levels.shape[0] > 0:
            _write_all(t - first, n_contexts, slots, law, tables, weights, scratch, levels)
        if tokens[t] >= 0:
            a, b = path_starts[tokens[t]], path_starts[tokens[t] + 1]
            nodes, sides = path_nodes[a:b], path_sides[a:b]
            if features.shape[0] > 0:
                _write_path(row, n_contexts, contexts, slots, nodes, law, tables, features)
            row += b - a
            _remember(n_contexts, contexts, nodes, sides, tables)
