"""What a run is judged by: a few cells of the table, chosen from the data, and how slow they should be.

Psi of a lopsided split is hard to draw: given Pólya-gamma variables its draws are independent only after
about 1 + 2 E[omega] Var(psi | x) sweeps, and other ways have other limits. So half of the cells are those
that this predicts to be worst, and the others are spread over the data. `inference.convergence` says what is
asked of a watch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from polystick import polyagamma
from polystick.augmentation import lopsided, predicted_lag
from polystick.decomposition import Decomposition

__all__ = [
    "CategoryWatch",
    "Cells",
    "LatentWatch",
    "Picked",
    "RowWatch",
    "ShareWatch",
    "choose_cells",
    "dense_cells",
    "ragged_cells",
]

N_CELLS = 64  # of each half
MOST_OF_A_NODE = 4  # among the slow ones: one category may be rare in each row
N_DOCUMENTS = 128
MODES = (
    "run longer, unless the chains have found different topics, which is seldom cured (see "
    "topic_agreement()); tables and shares speak of the likeliest chain, scores of all"
)


class Cells(NamedTuple):
    """Splits of rows: which row, which node, and how many of its trials went which way."""

    rows: np.ndarray
    nodes: np.ndarray
    successes: np.ndarray
    trials: np.ndarray

    def at(self, places):
        return Cells(*(part[places] for part in self))


def choose_cells(blocks):
    """Return the cells to watch among those of an iterable of blocks of Cells, by row and node."""
    parts = []
    for block in blocks:
        active = block.at(block.trials > 0)
        parts.append((active.at(_slowest(active)), active.at(_evenly(len(active.rows)))))
    slow, spread = (_joined(half) for half in zip(*parts))
    cells = _joined([slow.at(_slowest(slow)), spread.at(_evenly(len(spread.rows)))])
    _, first = np.unique(np.stack([cells.rows, cells.nodes]), axis=1, return_index=True)
    return cells.at(first)


def _joined(parts):
    return Cells(*map(np.concatenate, zip(*parts)))


def ragged_cells(rows, splits):
    """Return the splits (starts, nodes, successes, trials) of rows as Cells."""
    starts, nodes, successes, trials = splits
    return Cells(np.repeat(rows, np.diff(starts)), nodes, successes, trials)


def dense_cells(rows, splits):
    """Return splits (n, k) of rows as Cells."""
    n, k = splits.trials.shape
    nodes = np.tile(np.arange(k), n)
    return Cells(np.repeat(rows, k), nodes, *(part.ravel() for part in splits))


def _slowest(cells):
    """Return the places of the cells of the largest predicted lag, only a few of each node."""
    lag = predicted_lag(cells)
    order = np.argsort(-lag, kind="stable")
    by_node = order[np.argsort(cells.nodes[order], kind="stable")]
    first = np.searchsorted(cells.nodes[by_node], cells.nodes[by_node])
    few = by_node[np.arange(len(by_node)) - first < MOST_OF_A_NODE]
    return few[np.argsort(-lag[few], kind="stable")[:N_CELLS]]


def polya_gamma_lag(trials, psi):
    """Return 1 + 2 E[omega] Var(psi | x) of cells (m,) from draws (chain, draw, m)."""
    omega = polyagamma.mean(trials, np.abs(psi)).mean(axis=(0, 1))
    return 1.0 + 2.0 * omega * psi.var(axis=(0, 1))


def _evenly(n):
    return np.unique(np.linspace(0, n - 1, min(n, N_CELLS)).astype(int)) if n else np.arange(0)


class Picked:
    """Where the wanted ids (sorted) are in each block: found once, for blocks stay as they were cut."""

    def __init__(self, wanted):
        self.wanted = wanted
        self._of_block: dict = {}

    def __call__(self, ids):
        places = self._of_block.get(ids[0])
        if places is None:
            places = self._of_block[ids[0]] = np.flatnonzero(np.isin(ids, self.wanted))
        return places


@dataclass(frozen=True)
class SplitWatch:
    """Probabilities of categories, and psi of the splits that they hang on, at some cells."""

    cells: Cells  # by row and node
    decomposition: Decomposition
    row: str  # what a row is

    @cached_property
    def categories(self):
        """The category on the rare side of each cell's split, the first one below it."""
        _, nodes, successes, trials = self.cells
        below = _first_leaves(self.decomposition.children)
        return below[nodes, (successes > trials - successes).astype(int)]

    @property
    def axes(self):
        rows = self.cells.rows.tolist()
        return {
            "probabilities": {self.row: rows, "category": self.categories.tolist()},
            "psi": {self.row: rows, "stick": self.cells.nodes.tolist()},
        }

    def lags(self, told):
        """Return the lag of each cell; lopsided ones are not drawn by Pólya-gamma steps, and have none."""
        lag = polya_gamma_lag(self.cells.trials, told["psi"])
        return {"psi": np.where(lopsided(self.cells), 1.0, lag)}


@dataclass(frozen=True)
class RowWatch(SplitWatch):
    """Cells of rows that have psi and describe their probabilities; blocks hold rows one after another."""

    _of_block: dict = field(default_factory=dict)  # first row -> where the cells of a block are

    def take(self, shard, rows, described):
        places = self._of_block.get(shard.rows[0])
        if places is None:
            places = self._of_block[shard.rows[0]] = self._find(shard.rows)
        of_categories, of_nodes = places  # in flat arrays: a third of the time of pairs
        pi = described["probabilities"].take(of_categories)
        return {"probabilities": pi, "psi": rows.psi.take(of_nodes)}

    def _find(self, ids):
        here, k = np.isin(self.cells.rows, ids), len(self.decomposition.children)
        local = np.searchsorted(ids, self.cells.rows[here])
        return local * (k + 1) + self.categories[here], local * k + self.cells.nodes[here]

    def tell(self, parameters, described, taken):
        return {name: np.array([each[name] for each in taken]) for name in taken[0]}


@dataclass(frozen=True)
class CategoryWatch:
    """Probabilities at some cells of rows that describe them; a node is a category of k."""

    cells: Cells
    k: int
    _of_block: dict = field(default_factory=dict)  # first row -> where the cells of a block are

    @property
    def axes(self):
        rows, categories = self.cells.rows.tolist(), self.cells.nodes.tolist()
        return {"probabilities": {"row": rows, "category": categories}}

    def take(self, shard, rows, described):
        places = self._of_block.get(shard.rows[0])
        if places is None:
            here = np.isin(self.cells.rows, shard.rows)
            local = np.searchsorted(shard.rows, self.cells.rows[here])
            places = self._of_block[shard.rows[0]] = local * self.k + self.cells.nodes[here]
        return {"probabilities": described["probabilities"].take(places)}

    def tell(self, parameters, described, taken):
        return {name: np.array([each[name] for each in taken]) for name in taken[0]}

    def lags(self, told):
        return {}


@dataclass(frozen=True)
class LatentWatch(SplitWatch):
    """Cells of rows whose psi is made of what is taken of them and of parameters.

    taken(shard, rows, picked) -> name -> array; picked(ids) are the places of the rows that have cells
    psi(parameters, taken)     -> (rows that have cells, k)
    """

    taken: Callable
    psi: Callable

    @cached_property
    def _picked(self):
        return Picked(np.unique(self.cells.rows))

    @cached_property
    def _flat(self):
        """Where the cells are in flat arrays of probabilities and of psi."""
        k = len(self.decomposition.children)
        rows = np.searchsorted(self._picked.wanted, self.cells.rows)
        return rows * (k + 1) + self.categories, rows * k + self.cells.nodes

    def take(self, shard, rows, described):
        return self.taken(shard, rows, self._picked)

    def tell(self, parameters, described, taken):
        psi = np.array(list(map(self.psi, parameters, taken)))
        pi = self.decomposition.probabilities(psi)
        of_categories, of_nodes = self._flat
        return {
            "probabilities": pi.reshape(len(pi), -1).take(of_categories, axis=1),
            "psi": psi.reshape(len(psi), -1).take(of_nodes, axis=1),
        }


def _first_leaves(children):
    """Return for each child (k, 2) the category that is reached by going on to first children."""
    leaves = children.copy()
    for node in range(len(children) - 1, -1, -1):  # preorder: children come later
        for side in (0, 1):
            if leaves[node, side] < 0:
                leaves[node, side] = leaves[~leaves[node, side], 0]
    return leaves


@dataclass(frozen=True)
class ShareWatch:
    """What needs no labels of topics: how alike documents are, by the topics that they share.

    Sizes of topics are left out: they are slow by nature, and differ by little.
    """

    documents: np.ndarray  # in the order of the blocks, an even number

    @classmethod
    def of(cls, shards):
        """Choose documents evenly spaced among those of the blocks."""
        ids = getattr(shards, "ids", None)  # of a corpus, without reading it
        if ids is None:
            ids = np.concatenate([shard.rows for shard in shards])
        chosen = np.linspace(0, len(ids) - 1, min(len(ids), N_DOCUMENTS) // 2 * 2).astype(int)
        return cls(ids[chosen])

    @cached_property
    def _picked(self):
        return Picked(np.sort(self.documents))

    @property
    def axes(self):
        pairs = self.documents.astype(int).reshape(-1, 2)
        return {"similarity": {"document": pairs[:, 0].tolist(), "and": pairs[:, 1].tolist()}}

    def take(self, shard, rows, described):
        return {"proportions": described["proportions"][self._picked(shard.rows)]}

    def tell(self, parameters, described, taken):
        shares = np.stack([each["proportions"] for each in taken])
        return {"similarity": (shares[:, 0::2] * shares[:, 1::2]).sum(axis=2)}

    def lags(self, told):
        return {}
