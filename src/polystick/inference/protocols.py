"""What the schedules ask of a model, of the rows' blocks and of who holds them: protocols, as types.

A model is a frozen dataclass of hyperparameters: no data, no chains, no random state. It is free to choose

    S   shard          a block of rows with their data; has `rows`, the ids that key their random streams
    P   parameters     a named tuple of arrays: what all rows share
    L   law            what the local steps of one sweep share, made of the parameters or of their factor
    R   rows           a named tuple of arrays, rows first: where the rows of a block stand
    T   statistics     a named tuple of what can be added: sums over rows, and the log likelihood or bound
    F   factor         a dataclass of arrays, numbers and again such dataclasses: q(parameters)

and a type checker holds its methods against each other by these letters. What is asked for is in
`GibbsModel`, `VariationalModel` and `BatchModel`. What a model may have besides is in `Extras`; nothing else
is looked for.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy.typing as npt

from polystick.keys import Key

__all__ = [
    "Array",
    "BatchModel",
    "Execution",
    "Extras",
    "GibbsModel",
    "Held",
    "Look",
    "Named",
    "OrderedMap",
    "Shard",
    "Stepped",
    "VariationalModel",
    "Watch",
    "check_model",
    "members",
    "missing",
]

Array: TypeAlias = npt.NDArray[Any]
OrderedMap: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]


class Shard(Protocol):
    """A block of rows, cut once at a fixed place: sums of floats are formed block by block.

    Where rows are sequences a shard also has `steps`, the ids of their steps: steps are then what is
    described, and what a gain of the bound is shared by.
    """

    @property
    def rows(self) -> Array:
        """Return the ids (n,) of its rows, uint64, which key their random streams."""


class Named(Protocol):
    """A named tuple."""

    @property
    def _fields(self) -> tuple[str, ...]: ...

    def _asdict(self) -> dict[str, Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


S = TypeVar("S", bound=Shard)
P = TypeVar("P", bound=Named)
L = TypeVar("L")
R = TypeVar("R", bound=Named)
T = TypeVar("T")
F = TypeVar("F")
S_contra = TypeVar("S_contra", bound=Shard, contravariant=True)
P_co = TypeVar("P_co", bound=Named, covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)
F_contra = TypeVar("F_contra", contravariant=True)


class GibbsModel(Protocol[S_contra, P, L, R, T]):
    """What `Gibbs` runs: a sweep in a local step, mapped over blocks, and a global one."""

    @property
    def parameter_type(self) -> type[P]:
        """The class of the parameters, for a run that is resumed."""

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """Words for the axes of what is recorded, by name."""

    def initial_parameters(self, shards: Sequence[S_contra], key: Key) -> P:
        """Return where a chain starts; chains should start apart."""

    def prepare(self, parameters: P) -> L:
        """Return what the local steps of this sweep share."""

    def initial_rows(self, prior: L, shard: S_contra, key: Key) -> R:
        """Return where the rows of a block start."""

    def draw_rows(self, prior: L, shard: S_contra, rows: R, key: Key) -> tuple[R, T]:
        """Draw the rows given the parameters (local step); return them and their statistics."""

    def draw_parameters(self, parameters: P, statistics: T, key: Key, ordered_map: OrderedMap) -> P:
        """Draw the parameters given the statistics of all rows (global step).

        `ordered_map` maps a function over the threads, with results in order.
        """

    def log_likelihood(self, statistics: T) -> float:
        """Return the log likelihood of all data given the rows."""

    def describe_rows(self, shard: S_contra, rows: R) -> Mapping[str, Array]:
        """Return what is told of the rows: name -> array (rows, ...)."""


class VariationalModel(Protocol[S_contra, P_co, L, R, T, F]):
    """What `MeanField` runs: the same two steps, in expectation."""

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """Words for the axes of what is recorded, by name."""

    def initial_factor(self, shards: Sequence[S_contra], key: Key) -> F:
        """Return the factor of the parameters that an ascent starts from."""

    def expect(self, factor: F) -> L:
        """Return what the local steps of this sweep share."""

    def initial_row_factors(self, prior: L, shard: S_contra) -> R:
        """Return the factors that the rows of a block start from."""

    def update_rows(self, prior: L, shard: S_contra, rows: R, key: Key) -> tuple[R, T]:
        """Update the factors of rows (local step); return them and their expected statistics."""

    def update_factor(self, factor: F, statistics: T) -> F:
        """Return the best factor of the parameters given the statistics of all rows (global step)."""

    def elbo(self, factor: F, statistics: T) -> float:
        """Return the bound at the factor that the statistics were made with."""

    def draw_from_factor(self, factor: F, key: Key) -> P_co:
        """Draw parameters from their factor."""

    def draw_described_rows(self, prior: L, shard: S_contra, rows: R) -> Mapping[str, Array]:
        """Draw what is told of the rows from their factors: name -> array (draw, rows, ...)."""


class BatchModel(VariationalModel[S_contra, P_co, L, R, T, F], Protocol):
    """What `StochasticVI` runs.

    A stream has each row but once and keeps none, so a model whose rows settle slowly should go round more
    than once inside `update_rows`.
    """

    def scale(self, statistics: T, by: float) -> T:
        """Return the statistics of `by` times as many rows like these."""

    def blend(self, factor: F, other: F, rate: float) -> F:
        """Return the factor whose natural parameters lie between, `rate` of the way to the other."""


class Watch(Protocol):
    """What to look at in the rows: a few quantities that users read, chosen from the data."""

    @property
    def axes(self) -> Mapping[str, Mapping[str, Sequence[int]]]:
        """What each quantity is about: name -> word -> numbers."""

    def take(self, shard: Any, rows: Any, described: Mapping[str, Array]) -> dict[str, Array]:
        """Return name -> array, taken of a block's rows in each draw."""

    def tell(
        self,
        parameters: Sequence[Any],
        described: Sequence[Mapping[str, Array]],
        taken: Sequence[Mapping[str, Array]],
    ) -> Mapping[str, Array]:
        """Return name -> array (chain, c), the quantities of a draw, from lists over chains."""

    def lags(self, told: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return name -> array (c,), sweeps for an independent draw, from draws (chain, draw, c)."""


class Extras(Protocol[S_contra, P, R, T_contra, F_contra]):
    """What a model may have besides; each is looked for by its name, and may be absent."""

    @property
    def identified(self) -> tuple[str, ...]:
        """Names whose draws mean the same in each chain: these are diagnosed; by default all."""

    @property
    def rhat_limit(self) -> float:
        """What R-hat may be; by default 1.01."""

    @property
    def advice(self) -> str:
        """What to do if it is more, where running longer is not all."""

    @property
    def has_labels(self) -> bool:
        """Whether rows speak of things whose labels a chain gives, such as topics (label switching).

        Running moments are then of the likeliest chain.
        """

    @property
    def most_draws(self) -> int:
        """How many draws of a factor are reported by default, at most; else 1000."""

    def tell_chains(self, draws: Mapping[str, Array]) -> str:
        """Say in a sentence what chains have found alike, from name -> draws (chain, draw, ...)."""

    def describe_parameters(self, parameters: P) -> Mapping[str, Array]:
        """Return what is recorded of the parameters, name -> array; by default their fields."""

    def move_together(
        self,
        parameters: P,
        shards: Sequence[S_contra],
        rows: list[R],
        key: Key,
        ordered_map: OrderedMap,
    ) -> tuple[P, list[R]]:
        """Move all rows of a chain at once, block by block in a list, before a sweep of Gibbs."""

    @property
    def moves_rows(self) -> bool:
        """Whether `move_together` does anything, with these hyperparameters; by default it does."""

    def propose_move(self, parameters: P, key: Key) -> Any:
        """Return what blocks need to know of a move of all rows before a sweep, or None for none.

        Moves by map and reduce; a model that has them needs no `move_together`.
        """

    def weigh_move(self, proposed: Any, shard: S_contra, rows: R) -> Any:
        """Return what the rows of a block have to say of it, a named tuple of what can be added."""

    def decide_move(self, parameters: P, proposed: Any, weight: Any, key: Key) -> tuple[P, Any]:
        """Return the parameters after the move, and what the rows must follow."""

    def follow_move(self, decided: Any, shard: S_contra, rows: R) -> R:
        """Return the rows of a block after the move."""

    def settle(
        self, parameters: P, statistics: T_contra, key: Key, n_burn: int, ordered_map: OrderedMap
    ) -> P:
        """Make the global step while sweep key.sweep of n_burn is one to forget."""

    def agree(self, chains: list[P], key: Key) -> list[P]:
        """Return the parameters of all chains with common labels, after the last sweep to forget."""

    def watch(self, shards: Sequence[S_contra]) -> Watch:
        """Return what a run of Gibbs sampling is to be judged by, besides the parameters."""

    def diagnose(self, factor: F_contra) -> str | None:
        """Say what is wrong with where an ascent ended, to warn with, or None."""


class Look(Protocol):
    """What to record of the rows of a block after a step."""

    def __call__(self, model: Any, shard: Any, rows: Any) -> tuple[Mapping[str, Array], Any]:
        """Return what is told of the rows, name -> array (rows, ...), and the little that a run keeps."""


class Stepped(NamedTuple):
    """What came of a step: statistics of each chain, and what was seen of its blocks, in order."""

    statistics: list[Any]
    seen: list[list[Any]]


class Held(Protocol):
    """The blocks of rows of a run and their states, wherever they are; nobody reaches in.

    Methods of the model are named, so that a step can be sent to where the rows are.
    """

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""

    def start(self, method: str, priors: Sequence[Any], keys: Sequence[Key] | None = None) -> None:
        """Give the rows of each chain their first states, method(prior, shard[, key])."""

    def step(
        self,
        method: str,
        priors: Sequence[Any],
        keys: Sequence[Key],
        blocks: Sequence[int] | None = None,
        look: Look | None = None,
    ) -> Stepped:
        """Give each block its new state; return the statistics of each chain, added by a fixed tree.

        method : of the model, (prior, shard, state, key) -> (state, statistics)
        blocks : numbers of the blocks to step, in the order of the sums; the others stay. None: all
        look   : what to record of the new states, also in `moments`
        """

    def move(self, parameters: Sequence[Any], keys: Sequence[Key]) -> list[Any]:
        """Let the model move all rows of each chain at once; return the parameters that moved with them."""

    def describe(self, look: Callable[..., Any], last: bool = False) -> Iterator[Any]:
        """Map look(model, shard, state) over the blocks of the first chain, changing nothing.

        last : whether states are not needed any more, so that they may be let go
        """

    def moments(self) -> dict[str, Any]:
        """Return name -> `recorder.Running` of all rows, of what was recorded."""

    def save(self, folder: Path, sweep: int) -> dict[str, str]:
        """Write where the rows stand, a file for each part of the data; return name -> checksum."""

    def load(self, folder: Path, files: Mapping[str, str]) -> None:
        """Undo `save`, for rows that have been started."""


class Execution(Protocol):
    """Who maps a step over the blocks: threads, or one more class for a cluster."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Map a function over items, with results in order."""

    def hold(
        self, model: Any, shards: Sequence[Any], n_chains: int = 1, together: bool = False
    ) -> Held:
        """Take the blocks in, for a run of a model with so many chains.

        together : whether the model moves all rows of a chain in one place, before each step
        """

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


# ---- the check at the start of a run

_SCHEDULES: dict[str, tuple[type, str]] = {
    "Gibbs": (GibbsModel, "Gibbs sampler"),
    "MeanField": (VariationalModel, "mean field"),
    "StochasticVI": (BatchModel, "stochastic mean field"),
}


def check_model(model: object, schedule: str) -> None:
    """Raise unless a model has what a schedule asks for, with room for its arguments."""
    protocol, what = _SCHEDULES[schedule]
    name, lacking = type(model).__name__, missing(model, protocol)
    if lacking:
        raise TypeError(
            f"{name} has no {what}: {_listed(lacking)} missing; {_instead(model, protocol)}"
        )
    asked = {**members(protocol), **members(Extras)}
    for method, arguments in asked.items():
        given = getattr(model, method, None)
        if arguments is not None and given is not None and not _takes(given, len(arguments)):
            raise TypeError(
                f"{name}.{method} must take ({', '.join(arguments)}); got "
                f"{inspect.signature(given)}; see {Extras.__module__}"
            )


def missing(model: object, protocol: type) -> list[str]:
    """Return what a protocol asks for and a model has not, or has as None."""
    return [name for name in members(protocol) if getattr(model, name, None) is None]


def members(protocol: type) -> dict[str, tuple[str, ...] | None]:
    """Return what a protocol lists: name -> names of the arguments, or None for what is no method."""
    found: dict[str, tuple[str, ...] | None] = {}
    for base in reversed(protocol.__mro__):
        if base.__module__ == protocol.__module__:
            listed = {name: value for name, value in vars(base).items() if name[0] != "_"}
            found |= {name: _arguments(value) for name, value in listed.items()}
    return found


def _arguments(member: Any) -> tuple[str, ...] | None:
    return tuple(inspect.signature(member).parameters)[1:] if callable(member) else None


def _takes(method: Callable[..., Any], n_arguments: int) -> bool:
    try:
        inspect.signature(method).bind(*[None] * n_arguments)
    except TypeError:
        return False
    return True


def _listed(names: Sequence[str]) -> str:
    quoted = ", ".join(f"`{name}`" for name in names)
    return f"{quoted} {'is' if len(names) == 1 else 'are'}"


def _instead(model: object, protocol: type) -> str:
    fits = [name for name, (other, _) in _SCHEDULES.items() if not missing(model, other)]
    if fits:
        return f"use {fits[0]}()"
    return f"{protocol.__module__}.{protocol.__name__} says what each gets and returns"
