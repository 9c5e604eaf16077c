"""What a linear-Gaussian chain is learned from: sums over pairs of states and over first states."""

import operator
from typing import NamedTuple

import numpy as np

from polystick.kernels import algebra


def added(left, right):
    """Add two tuples of statistics, entry by entry."""
    return type(left)(*map(operator.add, left, right))


class PairSums(NamedTuple):
    """Sums over pairs of x = [z_{t-1}; p_t] and y = z_t; the law of a matrix takes them."""

    n: int | np.ndarray  # a number, or one for each of several laws, as of the sums
    xx: np.ndarray
    yx: np.ndarray
    yy: np.ndarray

    def __add__(self, other):
        return added(self, other)


class FirstSums(NamedTuple):
    """Sums over first states; the law of a mean takes them."""

    n: int
    total: np.ndarray
    outer: np.ndarray

    def __add__(self, other):
        return added(self, other)


def heads_of(starts):
    """Return the numbers of the first steps of sequences; of empty ones there is none."""
    return starts[:-1][np.diff(starts) > 0]


def pair_sums(starts, states, pushes=None):
    """Return the sums over steps that follow another of their sequence."""
    follows = np.ones(len(states), dtype=bool)
    follows[heads_of(starts)] = False
    after, x = states[follows], states[:-1][follows[1:]]
    if pushes is not None:
        x = np.column_stack([x, pushes[follows]])
    return PairSums(len(after), algebra.gram(x), algebra.multiply(after.T, x), algebra.gram(after))


def first_sums(starts, states):
    first = states[heads_of(starts)]
    return FirstSums(len(first), first.sum(axis=0), algebra.gram(first))
