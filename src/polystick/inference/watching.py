"""What is watched of the rows in each draw: a few quantities that users read, chosen by the model."""

from collections.abc import Mapping, Sequence
from typing import Any

from polystick.inference.protocols import Array, Named, Shard, Watch
from polystick.inference.recorder import WATCHED

__all__ = ["Watching"]


class Watching:
    """The quantities that a model wants to be judged by; none where it has no `watch`."""

    def __init__(self, model: object, shards: Sequence[Shard]) -> None:
        watch = getattr(model, "watch", None)
        self.watch: Watch | None = None if watch is None else watch(shards)

    def told(
        self,
        parameters: Sequence[Named],
        described: Sequence[Mapping[str, Array]],
        taken: Sequence[Mapping[str, Array]],
    ) -> dict[str, Array]:
        """Return name -> (chain, c), from the parameters of each chain and what was taken of its rows."""
        if self.watch is None:
            return {}
        told = self.watch.tell(parameters, described, taken)
        return {WATCHED + name: value for name, value in told.items()}

    def described(self, draws: Mapping[str, Array]) -> dict[str, Array]:
        """Return the draws of the quantities with their lags."""
        lags = {} if self.watch is None else self.watch.lags(draws)
        return {**draws, **{f"{name}_lag": value for name, value in lags.items()}}

    def coords(self, coords: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return labels for each quantity, such as "row 3, category b"."""
        axes = {} if self.watch is None else self.watch.axes
        return {f"cell_of_{name}": _labels(words, coords) for name, words in axes.items()}


def _labels(words: Mapping[str, Sequence[int]], coords: Mapping[str, Any]) -> list[str]:
    columns = []
    for word, numbers in words.items():
        names = coords.get(word)
        columns.append(
            [f"{word} {number if names is None else names[number]}" for number in numbers]
        )
    return [", ".join(parts) for parts in zip(*columns)]
