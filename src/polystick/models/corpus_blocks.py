"""Blocks of documents of a corpus in parts, made when they are asked for: only those at work are in memory.

A corpus has `parts`, `offsets`, `rows(part, start, stop)`, `take(numbers)`, `row_cells()` and `row_tokens()`.
"""

import itertools
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from polystick.models.blocks import evenly

__all__ = ["PartBlocks", "ShuffledBlocks"]


class _CorpusBlocks(Sequence):
    """What both kinds of blocks share; `make` makes a block of counts, ids and what is given."""

    ids: np.ndarray  # (n,) numbers of documents, in the order of the blocks
    lengths: list[int]

    def __init__(self, corpus, given, make):
        self.corpus, self.given, self._make = corpus, given, make

    def __getitem__(self, i):
        counts, ids = self._read(range(len(self))[i])
        given = {name: values[ids] for name, values in self.given.items()}
        return self._make(counts, ids.astype(np.uint64), given)

    def _read(self, i):
        """Return the counts of a block, and the numbers of its documents."""
        raise NotImplementedError

    @property
    def identity(self):
        """What tells a run on these blocks from others."""
        return [self.corpus.identity, self.lengths, self.ids, self.given]

    @cached_property
    def totals(self):
        """Tokens of each document (n,), in the order of the blocks."""
        return self.corpus.row_tokens()[self.ids]

    def pick(self, places):
        """Return the documents at these places, in the order of the blocks, as one block."""
        ids = self.ids[places]
        given = {name: values[ids] for name, values in self.given.items()}
        return self._make(self.corpus.take(ids), ids.astype(np.uint64), given)


class PartBlocks(_CorpusBlocks):
    """Documents in their order; each part is cut by itself."""

    def __init__(self, corpus, size, given, make, work_of):
        super().__init__(corpus, given, make)
        cells = np.split(corpus.row_cells(), corpus.offsets[1:-1])
        cuts = [evenly(work_of(each), size) for each in cells]
        self._pieces = [(part, piece) for part, pieces in enumerate(cuts) for piece in pieces]
        self.ids = np.arange(corpus.offsets[-1])
        self.lengths = [piece.stop - piece.start for _, piece in self._pieces]
        ends = np.cumsum([0, *map(len, cuts)]).tolist()
        self.parts = [range(a, b) for a, b in itertools.pairwise(ends)]

    def __len__(self):
        return len(self._pieces)

    def _read(self, i):
        part, piece = self._pieces[i]
        ids = self.corpus.offsets[part] + np.arange(piece.start, piece.stop)
        return self.corpus.rows(part, piece.start, piece.stop), ids


class ShuffledBlocks(_CorpusBlocks):
    """Documents in any order, over the borders of parts."""

    def __init__(self, corpus, size, order, given, make, work_of):
        super().__init__(corpus, given, make)
        self.ids = np.asarray(order, np.int64)
        self._pieces = evenly(work_of(corpus.row_cells()[self.ids]), size)
        self.lengths = [piece.stop - piece.start for piece in self._pieces]

    def __len__(self):
        return len(self._pieces)

    def _read(self, i):
        ids = self.ids[self._pieces[i]]
        return self.corpus.take(ids), ids
