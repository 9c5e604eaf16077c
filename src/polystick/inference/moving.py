"""Moves of all rows of a chain at once, with their part of the parameters, before a sweep of Gibbs.

A model makes them by map and reduce, wherever the rows are::

    propose_move(parameters, key)                   -> what the blocks need to know, or None for no move
    weigh_move(proposed, shard, rows)               -> a named tuple to be added up
    decide_move(parameters, proposed, weight, key)  -> parameters, and what rows must follow
    follow_move(decided, shard, rows)               -> rows

or, where rows must be at hand together, by `move_together`.
"""

from collections.abc import Sequence
from typing import Any

from polystick.inference.protocols import OrderedMap
from polystick.inference.sums import total
from polystick.keys import Key

__all__ = ["moved", "moves", "moves_together"]


def moves(model: Any) -> bool:
    """Tell whether a model has such moves."""
    return hasattr(model, "propose_move") or moves_together(model)


def moves_together(model: Any) -> bool:
    """Tell whether they need all rows of a chain in one place."""
    able = hasattr(model, "move_together") and getattr(model, "moves_rows", True)
    return able and not hasattr(model, "propose_move")


def moved(
    model: Any,
    parameters: Any,
    shards: Sequence[Any],
    rows: Sequence[Any],
    key: Key,
    ordered_map: OrderedMap = map,
) -> tuple[Any, Sequence[Any]]:
    """Return parameters and rows, a list over blocks, after the move of a chain."""
    if not hasattr(model, "propose_move"):
        return tuple(model.move_together(parameters, shards, list(rows), key, ordered_map))
    proposed = model.propose_move(parameters, key)
    if proposed is None:
        return parameters, rows
    numbers = range(len(rows))
    weights = ordered_map(lambda i: model.weigh_move(proposed, shards[i], rows[i]), numbers)
    parameters, decided = model.decide_move(parameters, proposed, total(weights, len(rows)), key)
    follow = ordered_map(lambda i: model.follow_move(decided, shards[i], rows[i]), numbers)
    return parameters, list(follow)
