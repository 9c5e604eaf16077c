"""Where to draw the nodes of a small graph: those that go together close by, no label on another."""

import numpy as np

__all__ = ["place", "separate"]

N_FORCE_STEPS = 300
N_SEPARATION_STEPS = 1000


def place(similarity, attraction):
    """Return positions (K, 2) in the unit square, the same for the same input.

    similarity : (K, K) between -1 and 1; scaling of its distances (Torgerson) is the start
    attraction : (K, K) symmetric, non-negative: how strongly two nodes pull each other

    From there springs pull and all nodes repel (Fruchterman and Reingold 1991); then the room is used
    more evenly.
    """
    k = len(similarity)
    if k == 1:
        return np.full((1, 2), 0.5)
    at = _unit(_scaled(np.sqrt(np.clip(2 - 2 * similarity, 0, 4))))
    spring, area = attraction - np.diag(np.diag(attraction)), 1 / k
    for step in range(N_FORCE_STEPS):
        gap = at[:, None] - at[None]
        squared = (gap**2).sum(axis=2) + 1e-6
        # pull: spring d^2 / sqrt(area) along the unit vector; push: area / d; and a little to the middle
        push = area / squared - spring * np.sqrt(squared / area)
        move = np.einsum("ij,ijx->ix", push, gap) - 0.5 * (at - 0.5)
        length = np.sqrt((move**2).sum(axis=1, keepdims=True)) + 1e-12
        heat = 0.1 * (1 - step / N_FORCE_STEPS)
        at = at + move * np.minimum(1, heat / length)
    # half of the way to even spacing: lone nodes far out would squeeze all others together
    ranks = np.argsort(np.argsort(at, axis=0), axis=0) / (k - 1)
    return (_unit(at) + ranks) / 2


def separate(positions, boxes, room):
    """Return positions moved as little as need be so that boxes do not overlap and stay in the room.

    positions : (K, 2) centres
    boxes : (K, 2) widths and heights, in the units of the room
    room : (2,) width and height

    Where boxes fill the room too much some overlap stays.
    """
    at, half = np.array(positions, float), np.asarray(boxes) / 2
    low, high = np.minimum(half, room / 2), np.maximum(room - half, room / 2)
    reach = half[:, None] + half[None]
    side = np.sign(np.arange(len(at))[:, None] - np.arange(len(at))[None])  # decides equal places
    for _ in range(N_SEPARATION_STEPS):
        gap = at[:, None] - at[None]
        overlap = reach - np.abs(gap)
        overlap[np.diag_indices(len(at))] = 0
        hit = (overlap > 0.1).all(axis=2)
        if not hit.any() and (at >= low).all() and (at <= high).all():
            break
        # along the axis where the way out is shorter, in shares of the box
        along = np.argmin(overlap / reach, axis=2)[..., None] == np.arange(2)
        direction = np.where(gap == 0, side[..., None], np.sign(gap))
        push = np.where(hit[..., None] & along, 0.3 * overlap * direction, 0.0)
        at = np.clip(at + push.sum(axis=1), low, high)
    return at


def _scaled(distance):
    """Return the plane of largest spread of points with these distances."""
    squared = distance**2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1, keepdims=True) + squared.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    vectors = vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 0))
    largest = np.argmax(np.abs(vectors), axis=0)
    vectors = vectors * np.sign(vectors[largest, [0, 1]] + 1e-300)  # eigenvectors have no sign
    # nodes that are all alike would start in one place
    turn = 2.399963 * np.arange(len(vectors))
    return vectors + 1e-3 * np.column_stack([np.cos(turn), np.sin(turn)])


def _unit(at):
    spread = np.ptp(at, axis=0)
    return (at - at.min(axis=0)) / np.where(spread > 0, spread, 1)
