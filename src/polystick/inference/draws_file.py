"""The file of a posterior: netCDF, and after its end a line with the checksum of all that comes before.

HDF5, on which netCDF stands, does not look beyond its own end, so any program still reads the file. The
checksum is compared before HDF5 sees a byte. Where it fits, what the file claims is looked at before memory
is taken for it, and it may not speak of other files.
"""

import hashlib
import importlib.util
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from polystick.folders import whole

__all__ = ["read_tree", "write_tree"]

_LINE = b"\npolystick sha256 %s\n"
_LAST = re.compile(rb"\npolystick sha256 ([0-9a-f]{64})\n")
_LENGTH = len(_LINE % (b"0" * 64))
_MARGIN = 2**18  # bytes for what is not numbers
_PACKED = 1100  # how much smaller zlib makes anything, at most
_NO_DATA = b"This is a netCDF dimension but not a netCDF variable"
_FILTERS = {1, 2, 3}  # zlib, shuffle and the checksum of a chunk
_NOT_READ = (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RuntimeError,
             OverflowError, MemoryError)  # fmt: skip


def write_tree(tree: Any, path: Path, encoding: Mapping[str, Any]) -> None:
    """Write a tree of xarray, whole or not at all."""
    _need_files()
    with whole(path) as file:
        _need_room(file, sum(node.nbytes for node in tree.subtree))
        tree.to_netcdf(file.name, engine="h5netcdf", encoding=encoding)
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0, os.SEEK_END)
        file.write(_LINE % digest.encode())


def _need_room(file: IO[bytes], size: int) -> None:
    """Raise where the disk has no room for what is to come: HDF5 would bring the process down."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size + size // 8 + _MARGIN)
        os.ftruncate(file.fileno(), 0)


def read_tree(path: Path, *, unchecked: bool, max_bytes: int) -> Any:
    """Return the tree in a file that `write_tree` wrote, with all its numbers.

    unchecked : whether a file without a checksum is read, too
    """
    import xarray as xr

    _need_files()
    if not path.is_file():
        raise FileNotFoundError(f"{path} must be a file that Posterior.save wrote; there is none")
    with open(path, "rb") as file:
        _check(path, file, unchecked)
    try:
        _refuse_claims(path, max_bytes)
        with xr.open_datatree(path, engine="h5netcdf") as tree:
            return tree.load()
    except _NOT_READ as error:
        said = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{path} must be a file that Posterior.save wrote ({said or type(error).__name__})"
        ) from error


def _check(path: Path, file: IO[bytes], unchecked: bool) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _LENGTH))
    last = _LAST.fullmatch(file.read(_LENGTH))
    if last is None and unchecked:
        return
    if last is None:
        raise ValueError(
            f"{path} must be a file that Posterior.save wrote; it has no checksum at its end, so it was cut "
            "off, or is of an earlier version or another program; unchecked=True reads it all the same"
        )
    file.seek(0)
    digest, left = hashlib.sha256(), size - _LENGTH
    while left:
        piece = file.read(min(left, 2**20))
        digest.update(piece)
        left -= len(piece)
    if digest.hexdigest().encode() != last[1]:
        raise ValueError(
            f"{path} is damaged: its checksum does not fit; restore it from a copy, or save the draws again"
        )


def _refuse_claims(path: Path, max_bytes: int) -> None:
    """Raise where a file claims more numbers than it can hold, or data that are in another file."""
    import h5py

    total, most = 0, path.stat().st_size
    with h5py.File(path, "r") as file:
        for name, dataset in _datasets(file):
            if dataset.is_virtual or dataset.external:
                raise ValueError(f"{name} is in another file")
            total += _bytes_of(name, dataset, most)
    if total > max_bytes:
        raise ValueError(f"its draws take {total} bytes, more than max_bytes={max_bytes}")


def _datasets(group: Any) -> Iterator[tuple[str, Any]]:
    import h5py

    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise ValueError(f"{name} is a link")
        thing = group[name]
        if isinstance(thing, h5py.Group):
            yield from _datasets(thing)
        else:
            yield thing.name, thing


def _bytes_of(name: str, dataset: Any, most: int) -> int:
    """Return the bytes that a dataset takes in memory, which must be in the file, packed or not."""
    plist = dataset.id.get_create_plist()
    filters = {plist.get_filter(i)[0] for i in range(plist.get_nfilters())}
    if not filters <= _FILTERS:
        raise ValueError(f"{name} is packed in an unknown way")
    if bytes(dataset.attrs.get("NAME", b"")).startswith(_NO_DATA):
        return 0
    stored = min(most, dataset.id.get_storage_size())
    if dataset.nbytes > stored * (_PACKED if filters else 1):
        raise ValueError(f"{name} claims {dataset.nbytes} bytes and has {stored}")
    return int(dataset.nbytes)


def _need_files() -> None:
    if not all(importlib.util.find_spec(name) for name in ("h5netcdf", "h5py")):
        raise ImportError("files of draws need h5netcdf and h5py: pip install polystick[io]")
