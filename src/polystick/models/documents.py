"""Documents as counts of words: blocks of rows in the layout of CSR."""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from polystick.models.blocks import evenly
from polystick.models.corpus_blocks import cut_parts, cut_shuffled

ROWS_PER_BLOCK = 512  # part of the result: float sums are formed block by block
ROW_WORK = 64  # of a document besides its words, in words: about what is measured for 50 topics


class Documents(NamedTuple):
    """A block of documents. The cells of document i are starts[i] .. stops[i]."""

    rows: np.ndarray  # (n,) uint64 ids, which key the random streams
    starts: np.ndarray  # (n,) int64
    stops: np.ndarray  # (n,) int64
    words: np.ndarray  # (cells,) int32
    counts: np.ndarray  # (cells,) int32, or float64 where counts are weights
    vocabulary: np.ndarray  # (u,) int32, the words of the block
    columns: np.ndarray  # (cells,) int32, where in the vocabulary each word is
    given: (
        dict  # name -> (n, ...), what else is known of the documents, such as their slices of time
    )

    @property
    def totals(self):
        """Return the number of tokens of each document, (n,)."""
        sums = np.concatenate([[0], np.cumsum(self.counts)])
        return sums[self.stops] - sums[self.starts]


def cut(counts, size=ROWS_PER_BLOCK, ids=None, **given):
    """Cut counts (n, V), dense or CSR, into blocks of documents, and what is given of each.

    Of a corpus in parts the ids say which documents, in which order; None is all, part by part.
    """
    if hasattr(counts, "row_cells"):
        if ids is None:
            return cut_parts(counts, size, given, block, work_of)
        return cut_shuffled(counts, size, ids, given, block, work_of)
    counts = scipy.sparse.csr_array(counts)
    ids = np.arange(counts.shape[0], dtype=np.uint64) if ids is None else ids
    work = work_of(np.diff(counts.indptr))
    return [
        block(counts[part], ids[part], {name: values[part] for name, values in given.items()})
        for part in evenly(work, size)
    ]


def n_rows(blocks):
    """Return how many documents blocks have."""
    return sum(getattr(blocks, "lengths", None) or (len(each.rows) for each in blocks))


def work_of(n_cells):
    return n_cells + ROW_WORK


def block(counts, ids, given=None):
    """Return the rows of a CSR matrix as one block."""
    seen = np.zeros(counts.shape[1], bool)
    seen[counts.indices] = True
    vocabulary, columns = np.flatnonzero(seen), (np.cumsum(seen) - 1)[counts.indices]
    whole = counts.dtype.kind in "iu"
    return Documents(
        ids,
        counts.indptr[:-1].astype(np.int64),
        counts.indptr[1:].astype(np.int64),
        counts.indices.astype(np.int32),
        counts.data.astype(np.int32 if whole else np.float64),
        vocabulary.astype(np.int32),
        columns.astype(np.int32),
        given or {},
    )
