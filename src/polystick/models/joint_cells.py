"""Cells of a row that are drawn together given omega; the others are drawn one by one.

A cell of which counts tell much hardly depends on the other cells of its row: it is as well drawn alone,
given them (`kernels.exact_cells`), without omega and without a place in the row's Gaussian. Rows stay
whole where that is cheaper: where few cells of a block would stand alone, or few of a row have trials at all.
"""

from typing import NamedTuple

import numpy as np

from polystick import augmentation
from polystick.decomposition import Splits
from polystick.gaussians.normal import few_active
from polystick.kernels import some_cells, streams

TOLD = 30.0  # counts of both sides of a split, harmonic: from here on a cell may stand alone
WORTH = 0.25  # share of a block's cells: with fewer that may stand alone, its rows stay whole


class Cells(NamedTuple):
    """The cells of some rows that are drawn together, row by row."""

    successes: np.ndarray  # (number of cells,)
    trials: np.ndarray
    starts: np.ndarray  # (n + 1,) row i has those from starts[i] to starts[i + 1]
    columns: np.ndarray  # their splits
    places: np.ndarray  # in the flat table
    order: np.ndarray  # rows that have some, with about as many side by side
    whole: np.ndarray  # rows that stay whole; they have none of these
    whole_splits: Splits


def find(splits):
    """Return the cells that are drawn together, and which cells (n, k) are not."""
    successes, trials = splits
    told = successes * (trials - successes) > TOLD * np.maximum(trials, 1)
    whole = few_active(trials) | (told.mean() < WORTH)
    joint = ~told & ~whole[:, None]
    numbers, places = joint.sum(axis=1), np.flatnonzero(joint)
    order = np.argsort(numbers, kind="stable")
    cells = Cells(
        np.ravel(successes)[places],
        np.ravel(trials)[places],
        np.concatenate([[0], np.cumsum(numbers)]),
        places % joint.shape[1],
        places,
        order[numbers[order] > 0],
        np.flatnonzero(whole),
        Splits(successes[whole], trials[whole]),
    )
    return cells, told & ~whole[:, None]


def draw(prior, cells, psi, key, rows):
    """Return psi (n, k) with omega of the cells | psi, counts, then the cells | omega, the other cells."""
    psi = np.array(psi)
    if len(cells.whole):
        psi[cells.whole] = _draw_whole(prior, cells, psi[cells.whole], key, rows[cells.whole])
    if not len(cells.order):
        return psi
    potential = augmentation.draw_potential(cells, psi.ravel()[cells.places], key.at("omega"), rows)
    noise = np.empty(len(cells.places))
    streams.fill_ragged_normals(key.at("psi"), rows, cells.starts, noise)
    some_cells.draw_in_place(
        prior.precision, prior.linear, *potential, cells.starts, cells.columns, cells.order,
        noise, psi,
    )  # fmt: skip
    return psi


def _draw_whole(prior, cells, psi, key, rows):
    potential = augmentation.draw_potential(cells.whole_splits, psi, key.at("omega"), rows)
    return prior.draw(potential, key.normals("psi", rows, 2 * psi.shape[1]))
