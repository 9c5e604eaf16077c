"""Sums over blocks by one fixed tree over their numbers.

Node (level l, number j) is the sum over blocks j 2**l up to (j + 1) 2**l, left half plus right half; one that
has no right half is its left. So the bits of a sum depend on the number of blocks alone, not on who adds
which of them and when: neighbours that were added apart are joined where the tree joins them. Fields that say
`exact`, such as whole counts, may be added in any order, and are.
"""

import operator
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np


class Node(NamedTuple):
    """A sum of statistics over the blocks below a node of the tree."""

    level: int
    number: int
    value: tuple[Any, ...]  # of the fields that are not exact
    own: bool  # whether its arrays may be written to

    def is_left_of(self, other: "Node") -> bool:
        """Tell whether the two are halves of one node."""
        even = self.number % 2 == 0
        return self.level == other.level and even and self.number + 1 == other.number


class TreeSum:
    """The sum of named tuples of statistics over neighbouring blocks, given one after another.

    Of n blocks no more than 2 log2 n sums are held; together with its neighbour's they go on to be one.
    """

    def __init__(self, n_blocks: int, first: int = 0) -> None:
        self._n_blocks, self._next = n_blocks, first
        self._kind: Any = None
        self._nodes: list[Node] = []
        self._exact: dict[str, Any] = {}
        self._only: Any = None  # statistics, where there is one block in all

    def add(self, statistics: Any) -> None:
        """Add the statistics of the next block."""
        if self._n_blocks == 1:
            self._only = statistics
            return
        self._kind = type(statistics)
        named = dict(zip(statistics._fields, statistics))
        exact = {name: value for name, value in named.items() if _is_exact(value)}
        self._add_exact(exact)
        floats = tuple(value for name, value in named.items() if name not in exact)
        self._push(Node(0, self._next, floats, own=False))
        self._next += 1

    def join(self, right: "TreeSum") -> None:
        """Add the sum over the blocks that come next, which is used up."""
        self._only = right._only if self._only is None else self._only
        self._kind = self._kind or right._kind
        self._add_exact(right._exact)
        for node in right._nodes:
            self._push(node._replace(own=False))  # its arrays may have come from another process
        self._next = right._next

    @property
    def value(self) -> Any:
        """The statistics of all blocks."""
        if self._only is not None:
            return self._only
        (node,) = self._nodes
        rest = iter(node.value)
        return self._kind(
            *(
                self._exact[name] if name in self._exact else next(rest)
                for name in self._kind._fields
            )
        )

    def _add_exact(self, exact: dict[str, Any]) -> None:
        for name, value in exact.items():
            self._exact[name] = self._exact[name] + value if name in self._exact else value

    def _push(self, node: Node) -> None:
        """Put a node beside the others, joined to its left half as often as it has one."""
        while True:
            if self._nodes and self._nodes[-1].is_left_of(node):
                node = _joined(self._nodes.pop(), node)
            elif self._lacks_a_right_half(node):
                node = node._replace(level=node.level + 1, number=node.number // 2)
            else:
                break
        self._nodes.append(node)

    def _lacks_a_right_half(self, node: Node) -> bool:
        is_left = node.number % 2 == 0
        is_root = node.number == 0 and (1 << node.level) >= self._n_blocks
        return is_left and not is_root and (node.number + 1) << node.level >= self._n_blocks


def total(statistics: Iterable[Any], n_blocks: int) -> Any:
    """Return the sum of the statistics of all blocks, which come in order."""
    added = TreeSum(n_blocks)
    for each in statistics:
        added.add(each)
    return added.value


def _is_exact(value: Any) -> bool:
    return getattr(type(value), "exact", False)


def _joined(left: Node, right: Node) -> Node:
    if left.own:
        value = tuple(map(_add_onto, left.value, right.value))
    elif right.own:
        value = tuple(map(_add_onto, right.value, left.value))  # a + b and b + a have the same bits
    else:
        value = tuple(map(operator.add, left.value, right.value))
    return Node(left.level + 1, left.number // 2, value, own=True)


def _add_onto(own: Any, other: Any) -> Any:
    """Return the sum, written to the first where that gives the same bits."""
    if isinstance(own, np.ndarray) and own.dtype != np.result_type(own, other):
        return own + other
    own += other
    return own


__all__ = ["Node", "TreeSum", "total"]
