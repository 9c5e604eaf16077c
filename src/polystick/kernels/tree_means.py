"""Probabilities of all categories, averaged over particles, in one walk down the tree.

The share of each particle goes down with the walk, in as many lanes as there are particles: a node is visited
once, and a leaf adds its shares up. A share below 1e-304 of the one above it is not told from 0. Shares that
wait for their subtree stand in slots, of which there are no more than the tree is deep.

children : (K-1, 2) a tree in preorder, as in `trees`
rows     : (K-1, D) what a state moves each node by
"""

import numpy as np

from polystick.kernels import kernel, simd, wide
from polystick.kernels.elementary import exp
from polystick.kernels.wide import WIDTH


@kernel
def assign_slots(children, slots):
    """Write the slot (K-1,) of each node, which is free again below it."""
    free, n_free, n_slots = np.empty(len(children), np.int64), 0, 1
    slots[0] = 0
    for node in range(len(children)):
        first, second = children[node, 0], children[node, 1]
        if first < 0 and second < 0:
            if n_free == 0:
                free[0], n_free, n_slots = n_slots, 1, n_slots + 1
            n_free -= 1
            slots[~first], slots[~second] = free[n_free], slots[node]
        elif first < 0 or second < 0:
            slots[~min(first, second)] = slots[node]
        else:
            free[n_free] = slots[node]
            n_free += 1


@kernel(forceinline=True)
def _sum(shares):
    """Return the sum, in eight that a machine forms at once."""
    n = shares.shape[0]
    whole = n - n % 8
    t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = 0.0
    for i in range(0, whole, 8):
        t0 += shares[i]
        t1 += shares[i + 1]
        t2 += shares[i + 2]
        t3 += shares[i + 3]
        t4 += shares[i + 4]
        t5 += shares[i + 5]
        t6 += shares[i + 6]
        t7 += shares[i + 7]
    for i in range(whole, n):
        t0 += shares[i]
    return ((t0 + t4) + (t2 + t6)) + ((t1 + t5) + (t3 + t7))


@kernel(inline="always")
def _branch(row, offset, cloud, psi, shares, here, other):
    """Write what goes to the first child into other, and to the second over shares[here]."""
    d, n = cloud.shape
    for i in range(n):
        psi[i] = offset
    whole = d - d % 5
    for p in range(0, whole, 5):
        c0, c1, c2, c3, c4 = row[p], row[p + 1], row[p + 2], row[p + 3], row[p + 4]
        for i in range(n):
            third = c0 * cloud[p, i] + c1 * cloud[p + 1, i]
            half = c2 * cloud[p + 2, i] + c3 * cloud[p + 3, i]
            psi[i] = (psi[i] + c4 * cloud[p + 4, i]) + (third + half)
    for p in range(whole, d):
        c0 = row[p]
        for i in range(n):
            psi[i] += c0 * cloud[p, i]
    for i in range(n):
        odds = exp(-psi[i])
        first = 1.0 / (1.0 + odds)
        other[i] = shares[here, i] * first
        shares[here, i] *= odds * first


@kernel(inline="always")
def _walk(children, slots, rows, offsets, cloud, room, out):
    """Write the mean probabilities (K,) of one step."""
    shares, psi, other, row = room
    n = psi.shape[0]
    for i in range(n):
        shares[0, i] = 1.0 / n
    for node in range(len(children)):
        here, first, second = slots[node], children[node, 0], children[node, 1]
        for p in range(row.shape[0]):
            row[p] = rows[node, p]
        _branch(row, offsets[node], cloud, psi, shares, here, other)
        if second >= 0:
            out[second] = _sum(shares[here])
        if first >= 0:
            out[first] = _sum(other)
            continue
        below = slots[~first]  # here, where the second child is a leaf, which has had its share
        for i in range(n):
            shares[below, i] = other[i]


@kernel(forceinline=True)
def _count(slots):
    """Return the number of slots in use."""
    n_slots = 1
    for node in range(len(slots)):
        n_slots = max(n_slots, slots[node] + 1)
    return n_slots


@kernel
def mean_probabilities_scalar(children, slots, rows, offsets, clouds, out):
    """Write the mean over particles of the probabilities of each step.

    slots   : (K-1,) of the nodes, assigned
    offsets : (S, K-1) what each node has besides, at each step
    clouds  : (S, D, M) states
    out     : (S, K)
    """
    n_steps, d, n = clouds.shape
    room = np.empty((_count(slots), n)), np.empty(n), np.empty(n), np.empty(d)
    for t in range(n_steps):
        _walk(children, slots, rows, offsets[t], clouds[t], room, out[t])


@kernel(inline="always")
def _divide(node, offset, rows, cloud, places, shares, n_vectors):
    """Share what is at places[0] out to places[1] and places[2]; return the sums of what goes both ways."""
    here, first, second = places
    left = right = wide.splat(0.0)
    for v in range(n_vectors):
        psi = wide.splat(-offset)
        for p in range(rows.shape[1]):
            move = wide.splat(-rows[node, p])
            psi = wide.fma(move, wide.load(cloud, p * n_vectors + v), psi)
        odds = wide.exp(psi)
        chance = wide.div(wide.splat(1.0), wide.add(wide.splat(1.0), odds))
        share = wide.load(shares, here * n_vectors + v)
        share, other = wide.mul(share, chance), wide.mul(share, wide.mul(odds, chance))
        wide.store(shares, first * n_vectors + v, share)
        wide.store(shares, second * n_vectors + v, other)
        left, right = wide.add(left, share), wide.add(right, other)
    return left, right


@kernel(inline="always")
def _walk_in_vectors(children, slots, rows, offsets, cloud, shares, n_vectors, out):
    """Do as in `_walk`; shares of leaves go to a slot of no use, the last."""
    waste, lanes = shares.shape[0] // (n_vectors * WIDTH) - 1, np.empty(WIDTH)
    for node in range(len(children)):
        first, second = children[node, 0], children[node, 1]
        places = (
            slots[node],
            slots[~first] if first < 0 else waste,
            slots[~second] if second < 0 else waste,
        )
        left, right = _divide(node, offsets[node], rows, cloud, places, shares, n_vectors)
        if first >= 0:
            out[first] = wide.total(left, lanes)
        if second >= 0:
            out[second] = wide.total(right, lanes)


@kernel
def mean_probabilities_simd(children, slots, rows, offsets, clouds, out):
    """Do as mean_probabilities_scalar, in vectors, whose lanes beyond the particles have no share."""
    n_steps, d, n = clouds.shape
    n_vectors = -(-n // WIDTH)
    width = n_vectors * WIDTH
    shares, cloud = np.zeros((_count(slots) + 1) * width), np.zeros(d * width)
    for t in range(n_steps):
        for i in range(width):
            shares[i] = 1.0 / n if i < n else 0.0
        for p in range(d):
            for i in range(n):
                cloud[p * width + i] = clouds[t, p, i]
        _walk_in_vectors(children, slots, rows, offsets[t], cloud, shares, n_vectors, out[t])


mean_probabilities = mean_probabilities_simd if simd.ENABLED else mean_probabilities_scalar
