"""Files that may be packed by gzip, bzip2 or xz."""

import bz2
import contextlib
import gzip
import io
import lzma
import zlib
from typing import Any

__all__ = ["ending_of", "opened", "said_whole", "unpacked"]

_OPEN: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def ending_of(path):
    """Return the ending that says what a file holds."""
    return path.with_suffix("").suffix if path.suffix in _OPEN else path.suffix


def opened(path):
    """Open a file of text."""
    return _OPEN.get(path.suffix, open)(path, "rt", encoding="utf-8")


def unpacked(path):
    """Return what readers of binary files take: the path, or the content of a packed file."""
    if path.suffix not in _OPEN:
        return path
    with _OPEN[path.suffix](path, "rb") as file:
        return io.BytesIO(file.read())


@contextlib.contextmanager
def said_whole(path):
    """Say so where a packed file can't be unpacked."""
    try:
        yield
    except FileNotFoundError:  # another file
        raise
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        if path.suffix not in _OPEN:
            raise
        raise ValueError(
            f"{path} must be a whole {path.suffix} file; unpacking it: {error}"
        ) from error
