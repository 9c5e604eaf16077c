"""A zip of arrays (.npy) and one document (JSON), with a manifest that has a checksum for each part.

Members are stored as they are, never packed, so none can be larger than the file. An array's header is
believed only where its shape and its type make just as many bytes as there are.
"""

import contextlib
import hashlib
import io
import json
import math
import platform
import struct
import tokenize
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from polystick.folders import whole

__all__ = ["ModelFileError", "checked", "read", "write"]

FORMAT = 1
_KIND = "polystick model"
_MANIFEST, _CONTENT = "manifest.json", "model.json"
_NUMBERS = "biufcmMSU"  # kinds of dtypes: never objects
_MOST_HEADER = 10_000  # bytes
_LONGEST_AXIS = 2**40  # of an array without elements
_ALWAYS_THE_SAME = (1980, 1, 1, 0, 0, 0)  # so that equal models make equal files
_PACKAGES = ("polystick", "numpy", "scipy", "scikit-learn", "pandas", "xarray", "formulaic")
_NOT_ONE = (zipfile.BadZipFile, struct.error, NotImplementedError, RuntimeError, EOFError)
_NOT_READ = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError,
             RecursionError, MemoryError, SyntaxError, tokenize.TokenError)  # fmt: skip


class ModelFileError(ValueError):
    """A model file that can't be read, or a model that can't be written to one."""


def write(path: Path, content: object, arrays: Sequence[np.ndarray], about: Mapping) -> None:
    """Write a document and the arrays that it names by their numbers, whole or not at all."""
    parts = {_CONTENT: _encode(content)}
    parts |= {_name(i): _npy(array) for i, array in enumerate(arrays)}
    manifest = {"kind": _KIND, "format": FORMAT, **about, "versions": _versions()}
    manifest["parts"] = {name: _sha256(part) for name, part in parts.items()}
    manifest["checksum"] = _sha256(_encode(manifest))
    with whole(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, part in {_MANIFEST: _encode(manifest), **parts}.items():
            archive.writestr(zipfile.ZipInfo(name, _ALWAYS_THE_SAME), part)


def read(path: Path, max_bytes: int) -> tuple[Any, list[np.ndarray], dict]:
    """Return the document, the arrays and the manifest, after every check has passed."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} must be a file that a model's save wrote; there is none")
    size = path.stat().st_size
    if size > max_bytes:
        raise ModelFileError(
            f"{path} has {size} bytes, more than the {max_bytes} that are allowed; pass max_bytes={size} if "
            "you know where it comes from"
        )
    with _opened(path) as archive:
        members = _members(path, archive, size)
        manifest = _manifest(path, _bytes(path, archive, members, _MANIFEST))
        names = list(manifest["parts"])
        if {*names, _MANIFEST} != {*members}:
            raise _damaged(path, "its parts are not those that its manifest lists")
        parts = {name: _bytes(path, archive, members, name) for name in names}
    for name, sha in manifest["parts"].items():
        if _sha256(parts[name]) != sha:
            raise _damaged(path, f"the checksum of {name} does not fit")
    with checked(path):
        arrays = [_array(parts[_name(i)]) for i in range(len(parts) - 1)]
        return json.loads(parts[_CONTENT]), arrays, manifest


@contextlib.contextmanager
def checked(path: Path) -> Iterator[None]:
    """Turn what goes wrong with a content that makes no sense into a sentence."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{path} can't be read: {error}") from error
    except _NOT_READ as error:
        raise _damaged(path, f"its content makes no sense ({_said(error)})") from error


def _opened(path):
    try:
        return zipfile.ZipFile(path)
    except (*_NOT_ONE, *_NOT_READ) as error:
        raise ModelFileError(
            f"{path} must be a file that a model's save wrote; it is something else, or was cut off "
            f"({_said(error)})"
        ) from error


def _members(path, archive, size):
    """Return name -> entry, after a look at whether they can be in a file of that size."""
    entries = archive.infolist()
    members = {entry.filename: entry for entry in entries}
    if len(members) != len(entries) or _MANIFEST not in members or _CONTENT not in members:
        raise ModelFileError(
            f"{path} must be a file that a model's save wrote; it is another archive, or parts are missing"
        )
    if any(
        e.compress_type != zipfile.ZIP_STORED or e.compress_size != e.file_size for e in entries
    ):
        raise _damaged(path, "its parts are packed, which save never does")
    if sum(entry.file_size for entry in entries) > size:
        raise _damaged(path, "its parts claim to be larger than the file")
    return members


def _bytes(path, archive, members, name):
    try:
        return archive.read(members[name])
    except (*_NOT_ONE, *_NOT_READ, OSError) as error:
        raise _damaged(path, f"{name} can't be read ({_said(error)})") from error


def _manifest(path, content):
    with checked(path):
        manifest = json.loads(content)
        checksum = manifest.pop("checksum")
        if manifest["kind"] != _KIND or checksum != _sha256(_encode(manifest)):
            raise ModelFileError(
                "the checksum of its manifest does not fit; restore it from a copy"
            )
        if manifest["format"] != FORMAT:
            raise ModelFileError(
                f"it has format {manifest['format']}, by polystick "
                f"{manifest['versions'].get('polystick')}, and this version reads {FORMAT}; use the "
                "version that wrote it, or a newer one"
            )
        return {**manifest, "parts": dict(manifest["parts"])}


def _damaged(path, why):
    return ModelFileError(
        f"{path} is damaged: {why}; restore it from a copy, or save the model again"
    )


def _said(error):
    return " ".join(str(error).split())[:200] or type(error).__name__


# arrays


def _npy(array):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def _array(content):
    """Return the array of an .npy file, whose header is checked before memory is taken."""
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an array is not in version 1.0 of the npy format")
    header = np.lib.format.read_array_header_1_0(stream, max_header_size=_MOST_HEADER)
    shape, in_columns, dtype = header
    if dtype.kind not in _NUMBERS or dtype.itemsize == 0:
        raise ValueError(f"an array has the type {dtype}, which holds more than numbers and texts")
    if any(not 0 <= n < _LONGEST_AXIS for n in shape):
        raise ValueError(f"an array has the shape {shape}")
    start, count = stream.tell(), math.prod(shape)
    if count * dtype.itemsize != len(content) - start:
        raise ValueError(
            f"an array of shape {shape} would have {count * dtype.itemsize} bytes, and has "
            f"{len(content) - start}"
        )
    flat = np.frombuffer(content, dtype, count, start)
    return flat.reshape(shape, order="F" if in_columns else "C").copy(order="K")


# what is said of it


def _name(i):
    return f"array-{i}.npy"


def _encode(thing):
    return json.dumps(thing, allow_nan=False, separators=(",", ":")).encode()


def _sha256(content):
    return hashlib.sha256(content).hexdigest()


def _versions():
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
