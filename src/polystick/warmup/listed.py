"""The list of kernels that a model calls from Python, and with which types (`kernels.txt`)."""

import functools
import importlib
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

__all__ = ["Root", "of_models", "spelled"]

_LIST = Path(__file__).with_name("kernels.txt")
_ROOM = "polystick.kernels."


class Root(NamedTuple):
    """A kernel that is called from Python, with the types of its arguments."""

    name: str
    types: str

    @property
    def dispatcher(self) -> Any:
        module, name = self.name.rsplit(".", 1)
        return getattr(importlib.import_module(_ROOM + module), name)

    @property
    def signature(self) -> tuple[Any, ...]:
        return tuple(map(_read_type, self.types.split()))

    def is_cached(self) -> bool:
        """Tell whether the machine code lies on disk, or can't."""
        cache: Any = self.dispatcher._cache
        files = getattr(cache, "_cache_file", None)
        if files is None:
            return True
        codegen = self.dispatcher.targetctx.codegen()
        return cache._index_key(self.signature, codegen) in files._load_index()


@functools.cache
def of_models() -> dict[str, tuple[Root, ...]]:
    """Return name of a model -> the kernels of its fit; "NAME predictions" -> those that come after that."""
    found: dict[str, tuple[Root, ...]] = {}
    for part in _LIST.read_text().strip().split("\n\n"):
        head, *lines = part.splitlines()
        found[head] = tuple(Root(*line.split(maxsplit=1)) for line in lines)
    return found


# types as they stand in the list: f8 is a number, f8[2] an array of two axes ("r" only to read, "A" strided),
# (f8,i8) a tuple, kernels.splits.Splits(i8[2],i8[2]) a named one


def spelled(kind: Any) -> str:
    """Return a type as it stands in the list."""
    if isinstance(kind, numba.types.BaseTuple):
        return _spelled_tuple(kind)
    if isinstance(kind, numba.types.Array):
        layout = "" if kind.layout == "C" else kind.layout
        return f"{_letters(kind.dtype)}[{kind.ndim}]{layout}{'' if kind.mutable else 'r'}"
    return _letters(kind)


def _spelled_tuple(kind: Any) -> str:
    parts, named = ",".join(map(spelled, kind)), getattr(kind, "instance_class", None)
    if named is None:
        return f"({parts})"
    home = f"{named.__module__}.{named.__qualname__}".removeprefix("polystick.")
    return f"{home}({parts})"


def _letters(kind: Any) -> str:
    return np.dtype(str(kind)).str.lstrip("<|")


def _read_type(text: str) -> Any:
    if text.endswith(")"):
        return _read_tuple(text[:-1])
    letters, _, rest = text.partition("[")
    kind = numba.from_dtype(np.dtype(letters))  # type: ignore[attr-defined]
    if not rest:
        return kind
    ndim, _, flags = rest.partition("]")
    layout: Any = flags.rstrip("r") or "C"
    return numba.types.Array(kind, int(ndim), layout, readonly=flags.endswith("r"))


def _read_tuple(text: str) -> Any:
    home, _, parts = text.partition("(")
    kinds = tuple(map(_read_type, parts.split(",")))
    if not home:
        return numba.types.BaseTuple.from_types(kinds)
    module, _, name = home.rpartition(".")
    named = getattr(importlib.import_module(f"polystick.{module}"), name)
    return numba.types.BaseTuple.from_types(kinds, named)
