"""Sequences of counts as binary splits of each step, in blocks, with what is known of each step."""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse

from polystick.decomposition import RaggedSplits
from polystick.models import sequence_blocks


@dataclass(frozen=True, eq=False)
class Steps:
    """Whole sequences, one after another; e and q numbers of each step are known."""

    rows: np.ndarray  # (n,) uint64 ids of the sequences
    steps: np.ndarray  # (S,) uint64 ids of the steps, which key the random streams
    starts: np.ndarray  # (n + 1,) int64: the steps of sequence i are starts[i] .. starts[i + 1]
    splits: RaggedSplits  # of each step; none where nothing was seen
    known: np.ndarray  # (S, e) what psi depends on besides the states: 1 for a bias, inputs
    pushes: np.ndarray  # (S, q) what states depend on besides those before: 1 for a drift, inputs
    log_coefficient: float
    recalled: (
        np.ndarray
    )  # (active splits of all steps, P) what memory says of each; P is 0 without one
    tokens: (
        np.ndarray
    )  # (S,) int64, -1 where nothing was seen; (0,) where steps show more than a token
    everywhere: np.ndarray | None  # (S, k, P) what memory says of all splits, if it is known
    pasts: tuple  # of each sequence: what is remembered of the steps before it

    @property
    def n_steps(self):
        return len(self.steps)

    @property
    def active(self):
        """Where each step's active sticks are, and which: the layout of kernels."""
        return self.splits.starts, self.splits.nodes


def cut(
    sequences, decomposition, inputs, describe, size=sequence_blocks.STEPS_PER_BLOCK, memory=None
):
    """Cut sequences into blocks.

    inputs   : (T, m) of each sequence, or None
    describe : function of inputs (S, m) that returns known and pushes
    memory   : of a `Memory`, or None
    """
    inputs = [None] * len(sequences) if inputs is None else inputs
    blocks = sequence_blocks.cut(sequences, size)
    firsts = itertools.accumulate((block.n_steps for block in blocks), initial=0)
    return [
        _steps(
            block,
            first,
            inputs[block.rows[0] : block.rows[-1] + 1],
            decomposition,
            describe,
            memory,
        )
        for block, first in zip(blocks, firsts)
    ]


def _steps(block, first, inputs, decomposition, describe, memory):
    n_steps = block.n_steps
    cells = (block.counts, block.categories, block.offsets)
    shape = (n_steps, decomposition.n_categories)
    splits = decomposition.split_sparse(scipy.sparse.csr_array(cells, shape=shape))
    given = np.zeros((n_steps, 0)) if inputs[0] is None else np.concatenate(inputs)
    known, pushes = (np.ascontiguousarray(part, np.float64) for part in describe(given))
    ids = np.arange(first, first + n_steps, dtype=np.uint64)
    tokens = block.lookups if block.is_single else np.zeros(0, dtype=np.int64)
    recalled, pasts = np.zeros((len(splits.nodes), 0)), ()
    if memory is not None:
        recalled = memory.features(tokens, block.starts)
        pasts = (memory.nothing,) * len(block.rows)
    return Steps(
        block.rows,
        ids,
        block.starts,
        splits,
        known,
        pushes,
        block.log_coefficient,
        recalled,
        tokens,
        None,
        pasts,
    )


def follow(shard, past, memory):
    """Return the steps of one sequence as those after what is remembered, and what is then."""
    everywhere, now = memory.along(past, shard.tokens)
    recalled = memory.on_paths(everywhere, shard.tokens)
    return replace(shard, recalled=recalled, everywhere=everywhere, pasts=(past,)), now
