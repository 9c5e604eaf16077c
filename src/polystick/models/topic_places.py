"""Which topic stands where in a tree of topics: those that share documents side by side.

A node high in the tree decides between groups of topics. Where a group is topics that go together, its share
varies smoothly from document to document; a group of any topics has a logit of large variance, which a
Gaussian law follows badly. So each node parts the topics that reach it by the principal direction of their
correlations (recursive spectral bisection), as many to each child as it has leaves. On AP (1000 words, 100
topics) this halves the variances, and completion gains 0.01 nats a token with a tenth of the words shown.
"""

import numpy as np

from polystick.kernels import algebra

__all__ = ["likeness", "places"]


def likeness(log_shares):
    """Return correlations (T, T) of log shares (n, T) over documents, less the average of each document."""
    away = log_shares - log_shares.mean(axis=1, keepdims=True)
    away -= away.mean(axis=0)
    lengths = np.sqrt(np.square(away).sum(axis=0))
    away /= np.where(lengths > 0, lengths, 1.0)
    return algebra.gram(away)


def places(children, likeness, held):
    """Return an order (T,) in which leaf t of the tree gets topic order[t]; topics that are held stay."""
    order = np.arange(len(likeness))
    is_held = np.isin(order, held)
    todo = [(~0, order.copy())]
    while todo:
        node, topics = todo.pop()
        if node >= 0:
            order[node] = topics[0]
            continue
        first, second = children[~node]
        below = leaves(children, first)
        chosen = _first_part(topics, below, likeness, is_held)
        todo += [(first, topics[chosen]), (second, topics[~chosen])]
    return order


def leaves(children, node):
    """Return the leaves below a child, which may be one itself."""
    found, todo = [], [node]
    while todo:
        node = todo.pop()
        if node >= 0:
            found.append(node)
        else:
            todo += children[~node].tolist()
    return np.array(found)


def _first_part(topics, below, likeness, is_held):
    """Say of each topic whether it goes to the first child, which has these leaves below it."""
    height = _direction(likeness[np.ix_(topics, topics)])
    stays = is_held[topics] & np.isin(topics, below)
    leaves_us = is_held[topics] & ~stays
    if _better_turned(height, stays, len(below)):
        height = -height
    rank = np.where(stays, -np.inf, np.where(leaves_us, np.inf, -height))
    chosen = np.zeros(len(topics), dtype=bool)
    chosen[np.argsort(rank, kind="stable")[: len(below)]] = True
    return chosen


def _better_turned(height, stays, n_first):
    """Say whether the lowest, not the highest, should go first: where those that stay are, or by the gap."""
    if stays.any():
        return height[stays].mean() < height[~stays].mean()
    upwards = np.sort(height)
    return upwards[n_first] - upwards[n_first - 1] > upwards[-n_first] - upwards[-n_first - 1]


def _direction(likeness):
    """Return the first principal coordinate, on whose upper side the first topic is."""
    centred = likeness - likeness.mean(axis=0)
    centred -= centred.mean(axis=1, keepdims=True)
    height = np.linalg.eigh(centred)[1][:, -1]
    return height if height[0] >= 0 else -height
