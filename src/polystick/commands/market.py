"""Matrix Market files, read without compiled code that trusts them, for SciPy's reader crashes on some."""

import warnings
from typing import NamedTuple

import numpy as np
import scipy.sparse

from polystick.commands.packed import unpacked
from polystick.sparse_tables import check_cells, check_width

__all__ = ["read_market"]

_EMPTY_ROWS = 10**7  # that a matrix may claim without a cell to show for them
_VALUES = {b"integer": 1, b"unsigned-integer": 1, b"real": 1, b"double": 1, b"pattern": 0}


class _Head(NamedTuple):
    """What the lines before the numbers say."""

    is_sparse: bool
    n_values: int  # in the line of a cell, 0 where there are only places
    is_symmetric: bool
    shape: tuple
    n_cells: int


def read_market(path):
    """Return the matrix in a Matrix Market file as CSR."""
    content = unpacked(path)
    content = path.read_bytes() if content is path else content.getvalue()
    try:
        head, numbers = _parts(content)
        matrix = _sparse(head, numbers) if head.is_sparse else _dense(head, numbers)
    except (ValueError, DeprecationWarning) as error:
        raise ValueError(f"{path} must be a Matrix Market file ({error})") from error
    check_cells(matrix, str(path))
    return scipy.sparse.csr_array(matrix)


def _parts(content):
    """Return the head, and the numbers after it, which must be as many as it says."""
    first, _, rest = content.partition(b"\n")
    words = first.lower().split()
    if len(words) != 5 or words[:2] != [b"%%matrixmarket", b"matrix"]:
        raise ValueError(
            "its first line must be %%MatrixMarket matrix, a form, a field and a symmetry"
        )
    while rest[:1] in (b"%", b"\n", b"\r"):
        rest = rest.partition(b"\n")[2]
    sizes, _, body = rest.partition(b"\n")
    head = _head(words[2], words[3], words[4], [int(size) for size in sizes.split()])
    if max(head.n_cells, head.shape[0] - _EMPTY_ROWS) > len(body):
        raise ValueError(f"it claims {sizes.decode()}, more than it can hold")
    with warnings.catch_warnings(action="error"):  # of what is no number
        numbers = np.fromstring(body, sep=" ")
    wanted = head.n_cells * (2 * head.is_sparse + head.n_values)
    if len(numbers) != wanted:
        raise ValueError(f"it must have {wanted} numbers after its head; it has {len(numbers)}")
    return head, numbers


def _head(form, field, symmetry, sizes):
    is_sparse, is_symmetric = form == b"coordinate", symmetry == b"symmetric"
    if form not in (b"coordinate", b"array") or len(sizes) != 2 + is_sparse or min(sizes) < 0:
        raise ValueError("it must be of coordinates with three sizes, or an array with two")
    if field not in _VALUES or symmetry not in (b"general", b"symmetric"):
        raise ValueError("it must hold integer, real or pattern cells, general or symmetric")
    if is_symmetric and not (is_sparse and sizes[0] == sizes[1]):
        raise ValueError("a symmetric matrix must be of coordinates, with as many rows as columns")
    check_width(sizes[1])
    shape = (sizes[0], sizes[1])
    n_cells = sizes[2] if is_sparse else sizes[0] * sizes[1]
    return _Head(is_sparse, _VALUES[field], is_symmetric, shape, n_cells)


def _sparse(head, numbers):
    cells = numbers.reshape(head.n_cells, -1)
    places = cells[:, :2] - 1
    inside = (places >= 0) & (places < head.shape) & (places == np.floor(places))
    if not inside.all():
        raise ValueError(
            f"cell {int((~inside.all(axis=1)).argmax()) + 1} lies outside {head.shape}"
        )
    rows, columns = places.astype(np.int64).T
    values = cells[:, 2] if head.n_values else np.ones(head.n_cells)
    if head.is_symmetric:
        off = rows != columns
        rows, columns = np.r_[rows, columns[off]], np.r_[columns, rows[off]]
        values = np.r_[values, values[off]]
    return scipy.sparse.coo_array((_whole(values), (rows, columns)), shape=head.shape)


def _dense(head, numbers):
    return scipy.sparse.coo_array(_whole(numbers).reshape(head.shape, order="F"))


def _whole(values):
    """Return whole numbers as such, so that they print as counts."""
    is_whole = np.abs(values).max(initial=0.0) < 2**53 and (values == np.floor(values)).all()
    return values.astype(np.int64) if is_whole else values
