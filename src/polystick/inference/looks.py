"""What is looked at in a block, where its rows are: what is told of them, and what is kept or watched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polystick.inference.execution import concatenate
from polystick.inference.protocols import Array, Watch

__all__ = ["MomentLook", "RowLook", "Seen", "joined_looks", "said_of"]


class Seen(NamedTuple):
    """What a run keeps of a block in each draw, by name."""

    kept: dict[str, Array]
    watched: dict[str, Array]


@dataclass(frozen=True, eq=False)
class RowLook:
    """A look at the rows of a sweep that counts."""

    keep: tuple[str, ...]
    watch: Watch | None

    def __call__(self, model: Any, shard: Any, rows: Any) -> tuple[Mapping[str, Array], Seen]:
        said = model.describe_rows(shard, rows)
        watched = {} if self.watch is None else self.watch.take(shard, rows, said)
        return said, Seen({name: said[name] for name in self.keep}, watched)


def joined_looks(blocks: Sequence[Seen]) -> Seen:
    """Put blocks of a chain together."""
    return Seen(*(concatenate(parts) for parts in zip(*blocks)))


@dataclass(frozen=True, eq=False)
class MomentLook:
    """Moments of draws of what is told of the rows, given their factors and this prior."""

    prior: object

    def __call__(self, model: Any, shard: Any, rows: Any) -> tuple[Array, dict[str, Array]]:
        """Return the units of the block, and name_mean and name_sd."""
        drawn = model.draw_described_rows(self.prior, shard, rows)
        moments = {
            f"{name}_{what}": function(values, axis=0)
            for name, values in drawn.items()
            for what, function in (("mean", np.mean), ("sd", np.std))
        }
        return units_of(shard), moments


def said_of(model: Any, shard: Any, rows: Any) -> list[str]:
    """Return the names of what is told of rows."""
    return list(model.describe_rows(shard, rows))


def sizes_of(shards: Sequence[Any]) -> tuple[list[int], int]:
    """Return the number of rows in each shard, and of units in all."""
    lengths: list[int] | None = getattr(shards, "lengths", None)  # of data in parts, unread
    if lengths is not None:
        return lengths, sum(lengths)
    return [len(shard.rows) for shard in shards], sum(len(units_of(shard)) for shard in shards)


def units_of(shard: Any) -> Array:
    """Return the ids of the rows of a shard, or of their steps where they are sequences."""
    units: Array = getattr(shard, "steps", shard.rows)
    return units
