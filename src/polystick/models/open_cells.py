"""Cells that counts leave to the law, where rows are few.

With few rows, one that is far from the others asks for a variance of its own, and the two follow each other
slowly. `kernels.open_cells` draws its cells with mean and covariance integrated out; these come after.
"""

import numpy as np

from polystick.kernels import algebra, open_cells

FEW = 50  # rows: with more, one of them hardly moves the law
TOLD = 3.0  # counts of both sides of a split, harmonic: a cell with fewer is open
PASSES = 3  # a slice goes less far than an exact draw, and costs little


def find(splits):
    """Return which cells (n, k) counts tell little of."""
    successes, trials = splits
    return successes * (trials - successes) < TOLD * np.maximum(trials, 1)


def redraw(prior, rows, counts, psi, key):
    """Return new psi (n, k), with (mean, cov) ~ prior integrated out, and new mean and cov given it.

    rows : (n,) ids
    counts : successes, trials and which cells to draw, (n, k) each
    """
    psi = np.array(psi)
    law = _given(prior, psi)
    inverse = law.expected_precision / law.degrees
    open_cells.redraw_in_place(
        key.at("open cells"), rows, counts, PASSES,
        (law.mean.copy(), law.strength, law.degrees), inverse, psi,
    )  # fmt: skip
    return psi, _given(prior, psi).draw(key.generator("law of open cells"))


def _given(prior, psi):
    return prior.posterior(len(psi), psi.sum(axis=0), algebra.gram(psi))
