"""Blocks of documents of a corpus in parts, made when they are asked for: only those at work are in memory.

A corpus has `parts`, `offsets`, `rows(part, start, stop)`, `take(numbers)`, `row_cells()` and `row_tokens()`.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from polystick.models.blocks import evenly

__all__ = ["CorpusBlocks", "cut_parts", "cut_shuffled"]


class CorpusBlocks(Sequence):
    """Blocks of documents, each made of counts, ids and what is given.

    ids    : (n,) numbers of documents, in the order of the blocks
    edges  : places where blocks begin and end
    parts  : numbers of the blocks of each part, where documents are in their order; else None
    """

    def __init__(self, corpus, ids, edges, parts, given, make):
        self.corpus, self.ids, self.parts, self.given = corpus, ids, parts, given
        self._edges, self._make = edges, make
        self.lengths = np.diff(edges).tolist()
        self._first = np.cumsum([0, *map(len, parts or ())])

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        i = range(len(self))[i]
        ids = self.ids[self._edges[i] : self._edges[i + 1]]
        return self._block(self._read(i, ids), ids)

    def _block(self, counts, ids):
        given = {name: values[ids] for name, values in self.given.items()}
        return self._make(counts, ids.astype(np.uint64), given)

    def _read(self, i, ids):
        if self.parts is None:
            return self.corpus.take(ids)
        part = int(np.searchsorted(self._first, i, side="right")) - 1
        start = self._edges[i] - self.corpus.offsets[part]
        return self.corpus.rows(part, start, start + len(ids))

    def cut(self, numbers):
        """Return some neighbouring blocks to be sent elsewhere, and read there if they are on disk."""
        if self.corpus.folder is None:
            return [self[i] for i in numbers]
        edges = np.array(self._edges[numbers.start : numbers.stop + 1])
        ids = self.ids[edges[0] : edges[-1]]
        edges = (edges - edges[0]).tolist()
        return CorpusBlocks(self.corpus, ids, edges, None, self.given, self._make)

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
        return self._block(self.corpus.take(ids), ids)


def cut_parts(corpus, size, given, make, work_of):
    """Return blocks of documents in their order; each part is cut by itself."""
    edges, parts = [0], []
    for start, cells in zip(
        corpus.offsets, np.split(corpus.row_cells(), corpus.offsets[1:-1]), strict=False
    ):
        pieces = evenly(work_of(cells), size)
        parts.append(range(len(edges) - 1, len(edges) - 1 + len(pieces)))
        edges += [start + piece.stop for piece in pieces]
    return CorpusBlocks(corpus, np.arange(edges[-1]), edges, parts, given, make)


def cut_shuffled(corpus, size, order, given, make, work_of):
    """Return blocks of documents in any order, over the borders of parts."""
    ids = np.asarray(order, np.int64)
    pieces = evenly(work_of(corpus.row_cells()[ids]), size)
    edges = [0, *(piece.stop for piece in pieces)]
    return CorpusBlocks(corpus, ids, edges, None, given, make)
