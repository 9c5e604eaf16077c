"""Tables from strangers: no index may point outside, for compiled code follows it without a look; and no
width may ask for memory that no file could fill.
"""

from typing import Any

import numpy as np

__all__ = ["MOST_CATEGORIES", "check_cells", "check_width"]

MOST_CATEGORIES = 10**7  # more are a slip, such as numbers that are no places in a list of names


def check_width(n_categories: int) -> None:
    """Raise where there are more categories than anybody can have meant, before they take memory."""
    if n_categories > MOST_CATEGORIES:
        raise ValueError(
            f"there must be at most {MOST_CATEGORIES:.0e} categories; got {n_categories}; number those that "
            "are there from 0 on, as np.unique(..., return_inverse=True) does"
        )


def check_cells(matrix: Any, what: str = "a sparse matrix") -> None:
    """Raise unless all indices of a sparse matrix are inside it; nothing is changed or converted."""
    wrong = _CHECKS.get(matrix.format, lambda matrix: None)(matrix)
    if wrong:
        raise ValueError(
            f"{what} must have indices inside its shape {tuple(map(int, matrix.shape))}; {wrong}: it was put "
            "together wrongly or is damaged; make it anew from rows and columns, as by scipy.sparse.coo_array"
        )


def _wrong_compressed(matrix):
    by_row = matrix.format != "csc"
    major, minor = matrix.shape if by_row else matrix.shape[::-1]
    if matrix.format == "bsr":
        height, width = matrix.blocksize
        major, minor = major // height, minor // width
    return _wrong_ends(matrix, major) or _wrong_numbers("indices", matrix.indices, minor)


def _wrong_ends(matrix, n):
    ends, n_cells = matrix.indptr, min(len(matrix.indices), len(matrix.data))
    if len(ends) != n + 1 or ends[0] != 0 or ends[-1] > n_cells or (np.diff(ends) < 0).any():
        return f"indptr must rise from 0 to at most the {n_cells} cells, in {n + 1} numbers"
    return None


def _wrong_coordinates(matrix):
    if any(len(axis) != len(matrix.data) for axis in matrix.coords):
        return "each cell must have a row and a column"
    pairs = zip(matrix.coords, matrix.shape)
    found = (_wrong_numbers(f"axis {i}", axis, n) for i, (axis, n) in enumerate(pairs))
    return next(filter(None, found), None)


def _wrong_lists(matrix):
    if any(len(row) != len(data) for row, data in zip(matrix.rows, matrix.data)):
        return "each cell must have a column"
    columns = np.array([column for row in matrix.rows for column in row], dtype=object)
    return _wrong_numbers("rows", columns, matrix.shape[1])


def _wrong_numbers(name, numbers, below):
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < below):
        outside = numbers.min() if numbers.min() < 0 else numbers.max()
        return f"{name} hold {outside}, which is not one of 0..{below - 1}"
    return None


_CHECKS: dict[str, Any] = {
    "csr": _wrong_compressed,
    "csc": _wrong_compressed,
    "bsr": _wrong_compressed,
    "coo": _wrong_coordinates,
    "lil": _wrong_lists,
}
