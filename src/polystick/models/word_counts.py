"""How often each word has each topic, while blocks of documents are added up.

A block knows few of the words, so it hands over what it has: a list of (word, topic) pairs (Gibbs), or
rows for its own vocabulary (mean field). Both add up block after block, and become a table in the end.
"""

from dataclasses import dataclass, field

import numpy as np

from polystick.kernels import assignments
from polystick.kernels.simd32 import WIDTH


def padded(n_topics):
    """Return the number of topics rounded up to whole vectors."""
    return -(-n_topics // WIDTH) * WIDTH


@dataclass(frozen=True, eq=False)
class Pairs:
    """Tokens as word * padded + topic, block after block, and how many have each topic, (T,)."""

    blocks: list[np.ndarray]
    tokens: np.ndarray

    def __add__(self, other):
        return Pairs(self.blocks + other.blocks, self.tokens + other.tokens)

    def table(self, n_words, width):
        """Return whole counts (n_words, width)."""
        counts = np.zeros((n_words, width), dtype=np.int32)
        for pairs in self.blocks:
            assignments.tally_in_place(pairs, counts)
        return counts


@dataclass(frozen=True, eq=False)
class ExpectedWords:
    """Expected counts (u, T) for the words of a vocabulary (u,)."""

    n_words: int
    vocabulary: np.ndarray
    values: np.ndarray
    _total: list = field(
        default_factory=list
    )  # what has been added up, once there is a second block

    def __add__(self, other):
        total = self._total[0] if self._total else self.table()
        total[other.vocabulary] += other.values
        return ExpectedWords(self.n_words, self.vocabulary, self.values, [total])

    def scaled(self, by):
        every = np.arange(self.n_words, dtype=np.int32)
        return ExpectedWords(self.n_words, every, by * self.table())

    def table(self):
        """Return expected counts (n_words, T)."""
        if self._total:
            return self._total[0]
        table = np.zeros((self.n_words, self.values.shape[1]))
        table[self.vocabulary] = self.values
        return table
