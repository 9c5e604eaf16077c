"""What topic models ask of their parts, `words`, `shares` and `link`: protocols, as types.

Parameters are a named tuple of the fields of words and of shares; each part draws, renames and describes its
own. A law of psi is what `prepare` or `expect` of the shares returns: nobody else looks into it. What more is
known of documents, such as slices of time, comes with the blocks as `given`, name -> array. Mean field asks
for more: `FactoredWords`, `FactoredShares`, `FactoredLink`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np

from polystick.keys import Key
from polystick.models.multinomial import RowFactors

__all__ = [
    "FactoredLink",
    "FactoredShares",
    "FactoredWords",
    "Link",
    "ShareSums",
    "Shares",
    "WordSums",
    "Words",
]

Array: TypeAlias = np.ndarray
Fields: TypeAlias = dict[str, Array]
Given: TypeAlias = Mapping[str, Array]
Rng: TypeAlias = np.random.Generator
Expect: TypeAlias = Callable[[Any, Any], Array]  # (block, row factors) -> counts of topics (n, T)


class WordSums(Protocol):
    """Tokens, or what is expected of them, by word and topic; blocks of documents add up."""

    def __add__(self, other: Any) -> Any: ...


class ShareSums(Protocol):
    """What the law of psi needs of documents; blocks of documents add up."""

    def __add__(self, other: Any) -> Any: ...

    def scaled(self, by: float) -> "ShareSums":
        """Return the sums of so many times the documents."""


class Words(Protocol):
    """A law of topics. They are held word by word: (V, padded T), or (S V, padded T) for S slices."""

    @property
    def n_words(self) -> int: ...

    @property
    def concentration(self) -> float:
        """Of the collapsed start."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of what it holds of the parameters; topics and sizes are among them."""

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """Words for the axes of what it describes."""

    def cells(self, shard: Any) -> Array:
        """Return the row of `topics` that each cell of a block is about."""

    def simulate(self, n_topics: int, rng: Rng) -> Fields:
        """Draw from the law."""

    def mean(self, counts: Array) -> Fields:
        """Return a start given counts of words by topic."""

    def draw(self, parameters: Any, counts: Array, key: Key, ordered_map: Any) -> Fields:
        """Draw given counts of words by topic."""

    def rename(self, parameters: Any, order: Array) -> Fields:
        """Let topic t be what topic order[t] was."""

    def given(self, topics: Array) -> Fields:
        """Return topics and sizes from a recorded draw."""

    def describe(self, parameters: Any) -> Fields:
        """Return what is recorded; `topics` (T, ..., V) is."""


class Shares(Protocol):
    """A law of psi."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of what it holds of the parameters; `cov` is among them."""

    @property
    def told(self) -> tuple[str, ...]:
        """Those that are recorded: enough for new documents."""

    def dims(self, axis: str) -> Mapping[str, tuple[str, ...]]:
        """Words for the axes of what is recorded, where those of psi are called `axis`."""

    def simulate(self, rng: Rng) -> Fields:
        """Draw from the law."""

    def start(self, psi: Array, key: Key) -> Fields:
        """Return a start given psi (n, k) of some documents."""

    def draw(self, parameters: Any, sums: Any, rng: Rng) -> Fields:
        """Draw given sums over documents."""

    def statistics(self, psi: Array, given: Given) -> ShareSums:
        """Return what `draw` needs of documents."""

    def prepare(self, parameters: Any) -> Any:
        """Return the law of psi."""

    def rows(self, law: Any, given: Given) -> Any:
        """Return the Gaussian of documents of which this is given; an expected one has it as `normal`."""

    def rename(self, parameters: Any, order: Array, link: "Link", key: Key) -> Fields:
        """Let topic t be what topic order[t] was."""

    def average(self, parameters: Any) -> tuple[Array, Array]:
        """Return mean and covariance of psi over documents."""


class Link(Protocol):
    """What makes shares of psi."""

    @property
    def n_topics(self) -> int: ...

    @property
    def n_dims(self) -> int:
        """Of psi."""

    @property
    def axis(self) -> str:
        """What they are called."""

    @property
    def has_order(self) -> bool:
        """Whether it matters which topic is first."""

    def shares(self, psi: Array) -> Array: ...

    def log_shares(self, psi: Array) -> Array: ...

    def psi(self, log_shares: Array) -> Array: ...

    def draw(self, law: Any, ids: Array, counts: Array, psi: Array, key: Key) -> Array:
        """Draw psi of documents given how many tokens have each topic (n, T)."""

    def rename(self, psi: Array, order: Array) -> Array:
        """Let topic t be what topic order[t] was."""

    def rename_law(self, mean: Array, cov: Array, order: Array, key: Key) -> tuple[Array, Array]:
        """Do so with the law of psi, as nearly as can be."""

    def places(self, log_shares: Array, held: Any) -> Array:
        """Return an order in which topics that were found suit the link."""


# mean field


class FactoredWords(Words, Protocol):
    """Words with a mean field; their factor is an array."""

    def factor(self, counts: Array) -> Array:
        """Return the best factor given counts (V, T)."""

    def expect(self, factor: Array) -> Callable[[Array], Array]:
        """Return a function from words (u,) to exp E log topics (u, T), which can be pickled."""

    def divergence(self, factor: Array) -> float:
        """Return KL(factor || law)."""

    def draw_from(self, factor: Array, rng: Rng) -> Fields: ...

    def tokens(self, factor: Array) -> Array:
        """Return how many tokens of each topic a factor has seen, (T,)."""


class FactoredShares(Shares, Protocol):
    """Shares with a mean field."""

    def factor(self, sums: Any, old: Any = None) -> Any:
        """Return the best factor given sums over documents."""

    def expect(self, factor: Any) -> Any:
        """Return the expected law, for `rows`."""

    def expected_statistics(self, rows: RowFactors, outer: Array, given: Given) -> ShareSums: ...

    def divergence(self, factor: Any) -> float:
        """Return KL(factor || law)."""

    def draw_from(self, factor: Any, rng: Rng) -> Fields: ...


class FactoredLink(Link, Protocol):
    """A link with a mean field."""

    def expected_log_shares(self, rows: RowFactors) -> Array:
        """Return E log shares (n, T), but for a number that topics have in common."""

    def settle(
        self, law: Any, shard: Any, rows: RowFactors, expect: Expect
    ) -> tuple[RowFactors, Array, float]:
        """Return row factors, the expected sum of psi psi', and a part of the bound."""

    def draw_shares(
        self, law: Any, shard: Any, rows: RowFactors, points: Array, expect: Expect
    ) -> Array:
        """Return draws of shares (s, n, T)."""


class Approximation(Protocol):
    """Who tells of a factor: a part itself, or another that knows a cruder one."""

    def expect(self, factor: Any) -> Any: ...

    def divergence(self, factor: Any) -> float: ...

    def draw_from(self, factor: Any, rng: Rng) -> Fields: ...
