"""Files of a checkpoint: written whole or not at all, read only if they are what was written."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np

from polystick.inference.protocols import Array

__all__ = ["CheckpointError", "read_arrays", "write", "write_arrays"]


class CheckpointError(RuntimeError):
    """A checkpoint that can't be used. It has been left untouched."""


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> str:
    """Write an npz file whole or not at all; return its checksum."""
    temporary = path.with_suffix(".tmp")
    with open(temporary, "wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
        _flush(file)
    with open(temporary, "rb") as file:
        checksum = hashlib.file_digest(file, "sha256").hexdigest()
    _rename(temporary, path)
    return checksum


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
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_suffix(".tmp")
    with open(temporary, "wb") as file:
        file.write(content)
        _flush(file)
    _rename(temporary, path)


def _flush(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _rename(temporary: Path, path: Path) -> None:
    os.replace(temporary, path)
    if os.name == "nt":  # folders can't be opened there, and are written through
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
