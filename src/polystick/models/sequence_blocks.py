"""Sequences of tokens or of count rows, cut into blocks for the models of sequences."""

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import gammaln

STEPS_PER_BLOCK = 4096  # at least, but for the last block


class Block(NamedTuple):
    """Whole sequences, one after another."""

    rows: np.ndarray  # (n,) uint64 ids, which key the random streams
    starts: np.ndarray  # (n + 1,) int64: the steps of sequence i are starts[i] .. starts[i + 1]
    lookups: (
        np.ndarray
    )  # (steps,) int64: the token, or for count rows the step; -1 if nothing was seen
    offsets: np.ndarray  # (steps + 1,) int64: step t shows the cells offsets[t] .. offsets[t + 1]
    categories: np.ndarray  # (cells,) int32
    counts: np.ndarray  # (cells,) int64
    totals: np.ndarray  # (steps,) int64
    is_single: bool  # no step shows more than one count
    log_coefficient: float  # of all steps

    @property
    def n_steps(self):
        return len(self.lookups)


def cut(sequences, size=STEPS_PER_BLOCK):
    """Cut sequences into blocks, of tokens (-1: missing) or of rows of counts (empty: missing)."""
    lengths = np.array([_length(sequence) for sequence in sequences], dtype=np.int64)
    block_of = (np.cumsum(lengths) - lengths) // size
    edges = np.flatnonzero(np.diff(block_of, prepend=-1))
    stops = [*edges[1:], len(lengths)]
    return [_block(sequences[i:j], i, lengths[i:j]) for i, j in zip(edges, stops)]


def _length(sequence):
    return sequence.shape[0] if scipy.sparse.issparse(sequence) else len(sequence)


def _block(sequences, first, lengths):
    ids = np.arange(first, first + len(lengths), dtype=np.uint64)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    cells = [_cells(sequence) for sequence in sequences]
    widths, categories, counts = (np.concatenate(parts) for parts in zip(*cells))
    offsets = np.concatenate([[0], np.cumsum(widths)])
    sums = np.concatenate([[0], np.cumsum(counts)])
    totals = sums[offsets[1:]] - sums[offsets[:-1]]
    is_single = bool(totals.max(initial=0) <= 1)
    lookups = np.where(totals > 0, np.arange(len(totals)), -1)
    if is_single:
        lookups[totals > 0] = categories
    coefficient = 0.0
    if not is_single:
        coefficient = gammaln(totals + 1.0).sum() - gammaln(counts + 1.0).sum()
    return Block(ids, starts, lookups, offsets, categories, counts, totals, is_single, coefficient)


def _cells(sequence):
    """Return the number of cells of each step, and their categories and counts."""
    if scipy.sparse.issparse(sequence):
        table = scipy.sparse.csr_array(sequence, copy=True)
        table.sum_duplicates()
        table.eliminate_zeros()
        return np.diff(table.indptr), table.indices.astype(np.int32), table.data.astype(np.int64)
    tokens = np.asarray(sequence, dtype=np.int64)
    if tokens.ndim == 2:
        seen = tokens > 0
        return seen.sum(axis=1), np.nonzero(seen)[1].astype(np.int32), tokens[seen]
    seen = tokens >= 0
    categories = tokens[seen].astype(np.int32)
    return seen.astype(np.int64), categories, np.ones(len(categories), dtype=np.int64)
