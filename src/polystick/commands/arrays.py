"""Arrays as strangers' files have them: what a header claims, and where indices point, is checked first.

A header costs nothing to write, and compiled code follows an index wherever it leads.
"""

import io
import math
import warnings
import zipfile
from typing import NamedTuple

import numpy as np
import scipy.sparse

from polystick.commands.packed import unpacked
from polystick.sparse_tables import check_cells, check_width

__all__ = ["SPARSE", "offsets_of", "read_arrays", "sparse_table", "tokens_of"]

SPARSE = {"data", "indices", "indptr", "shape"}
_DENSEST = 1100  # deflate makes nothing smaller than by this


class _Cells(NamedTuple):
    """The parts of a sparse matrix, before it is one."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    shape: tuple
    format: str = "csr"


def read_arrays(path):
    """Return the arrays of an NPZ file by name; those of objects, which would run programs, are left out."""
    content = unpacked(path)
    try:
        with warnings.catch_warnings(action="ignore"):  # of files that are old
            _refuse_false_headers(content)
            _rewind(content)
            return _arrays_in(content)
    except MemoryError:
        raise
    except Exception as error:  # readers of foreign files raise whatever they come across
        raise ValueError(f"{path} must be an NPZ file of plain arrays ({error})") from error


def _arrays_in(content):
    with np.load(content, allow_pickle=False) as stored:
        names = [name for name in stored.files if f"{name}.npy" in stored.zip.namelist()]
        return {name: array for name in names if (array := _plain(stored, name)).size}


def _rewind(content):
    if isinstance(content, io.BytesIO):
        content.seek(0)


def _plain(stored, name):
    """Return an array, or an empty one where it holds objects."""
    with stored.zip.open(f"{name}.npy") as file:
        _, dtype = _header(file)
    return np.empty(0) if dtype.hasobject else stored[name]


def _refuse_false_headers(content):
    """Raise where an array claims more than its part of the file can hold."""
    with zipfile.ZipFile(content) as archive:
        for part in archive.infolist():
            if part.filename.endswith(".npy"):
                with archive.open(part) as file:
                    shape, dtype = _header(file)
                most = min(part.file_size, _DENSEST * part.compress_size)
                if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > most:
                    raise ValueError(
                        f"{part.filename} claims the shape {shape}, more than it can hold"
                    )


def _header(file):
    """Return the shape and dtype of an array, before it is read."""
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    version = np.lib.format.read_magic(file)
    if version not in readers:
        raise ValueError(f"an array has version {version} of the format; save it by numpy.savez")
    shape, _, dtype = readers[version](file)
    return shape, dtype


def sparse_table(arrays, path):
    """Return the CSR matrix that four arrays are the parts of."""
    shape = _whole(arrays["shape"], "shape", path)
    if len(shape) != 2 or shape.min() < 0:
        raise ValueError(f"shape of {path} must be two numbers; got {some_of(shape)}")
    cells = _Cells(
        arrays["data"],
        _whole(arrays["indices"], "indices", path),
        _whole(arrays["indptr"], "indptr", path),
        tuple(shape.tolist()),
    )
    if cells.data.ndim != 1 or cells.data.dtype.kind not in "iufb":
        raise ValueError(f"data of {path} must be numbers in one axis; got {cells.data.dtype}")
    check_cells(cells, str(path))
    check_width(cells.shape[1])
    return scipy.sparse.csr_array((cells.data, cells.indices, cells.indptr), shape=cells.shape)


def _whole(array, name, path):
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} of {path} must be whole numbers in one axis; got {array.dtype} in {array.ndim}"
        )
    return array


def some_of(array):
    return ", ".join(map(str, array[:5].tolist()))


def tokens_of(arrays, names, path):
    """Return tokens and the names of all categories."""
    tokens = _whole(arrays["tokens"], "tokens", path)
    if not tokens.size or tokens.min() < 0:
        raise ValueError(f"tokens of {path} must be whole numbers from 0; got others")
    if names is None:
        check_width(int(tokens.max()) + 1)
        return tokens, [str(k) for k in range(int(tokens.max()) + 1)]
    if tokens.max() >= len(names):
        raise ValueError(
            f"tokens of {path} must be below {len(names)}, the number of names; got {tokens.max()}"
        )
    if len({*names}) < len(names):
        raise ValueError(f"names in {path} must differ; some come twice")
    return tokens, names


def offsets_of(arrays, n_tokens, path):
    """Return where sequences begin, and where the last ends."""
    offsets = _whole(arrays.get("offsets", np.array([0, n_tokens])), "offsets", path)
    rises = len(offsets) > 1 and (offsets[:-1] <= offsets[1:]).all()
    if not rises or offsets[0] != 0 or offsets[-1] != n_tokens:
        raise ValueError(
            f"offsets of {path} must rise from 0 to {n_tokens}, the number of tokens; got "
            f"{some_of(offsets)}"
        )
    return offsets
