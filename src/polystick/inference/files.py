"""Files of a checkpoint: written whole or not at all, read only if they are what was written."""

import hashlib
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from polystick.folders import whole
from polystick.inference.protocols import Array

__all__ = ["CheckpointError", "read_arrays", "write_arrays"]


class CheckpointError(RuntimeError):
    """A checkpoint that can't be used. It has been left untouched."""


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> str:
    """Write an npz file; return its checksum."""
    with whole(path) as file:
        np.savez(file, allow_pickle=False, **arrays)
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_arrays(path: Path, checksum: str) -> dict[str, Array]:
    """Read an npz file that has this checksum."""
    try:
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(
            f"the checkpoint in {path.parent} lacks {path.name} ({error.strerror}); restore it from a "
            "copy, or delete the folder to start anew"
        ) from error
    if found != checksum:
        raise CheckpointError(
            f"{path} is damaged: its checksum does not fit; it was left as it is: restore it from a "
            "copy, or delete the folder to start anew"
        )
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise CheckpointError(f"{path} must hold plain arrays, and does not ({error})") from error
