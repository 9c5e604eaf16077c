"""Counts cut into blocks, for models whose rows are rows of counts, or sticks."""

from typing import NamedTuple

import numpy as np

from polystick.decomposition import Decomposition, Splits
from polystick.inference.protocols import Array
from polystick.scores import log_coefficients

__all__ = ["Block", "cut_rows", "cut_sticks"]


class Block(NamedTuple):
    """Binary splits of some rows."""

    rows: Array  # (n,) uint64 ids, which key their random streams
    splits: Splits  # (n, ...) each
    log_coefficient: float  # what multinomial coefficients add to the log likelihood


def cut_rows(decomposition: Decomposition, counts: Array, size: int = 512) -> list[Block]:
    """Cut counts (n, K) into blocks of `size` rows, whose splits are (size, K-1).

    For models in which rows are independent given what they share. The size is part of the result.
    """
    counts, ids = np.asarray(counts), np.arange(len(counts), dtype=np.uint64)
    pieces = (slice(start, start + size) for start in range(0, len(counts), size))
    return [
        Block(ids[piece], decomposition.split(counts[piece]), _coefficient(counts[piece]))
        for piece in pieces
    ]


def cut_sticks(decomposition: Decomposition, counts: Array) -> list[Block]:
    """Cut counts (n, K) into K-1 blocks of one stick each, whose splits are (1, n).

    For models in which rows of counts depend on each other and sticks do not: places, times.
    """
    counts = np.asarray(counts)
    columns = [np.ascontiguousarray(part.T) for part in decomposition.split(counts)]
    whole = _coefficient(counts)
    return [
        Block(
            np.array([stick], np.uint64),
            Splits(*(part[stick : stick + 1] for part in columns)),
            whole if stick == 0 else 0.0,
        )
        for stick in range(decomposition.n_categories - 1)
    ]


def _coefficient(counts: Array) -> float:
    return float(log_coefficients(counts).sum())
