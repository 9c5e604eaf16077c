"""Where compiled kernels lie on disk: in a folder for each state of the sources, with and without vectors.

Numba looks at a kernel's own file to decide whether its machine code is still true. A kernel holds the code
of the kernels that it calls, so after an upgrade that changed only their files the old code would run. Here
the cache is a folder named by a digest of all kernels and tables, and of which twins are called: where the
twin is chosen at a leaf, the kernels above it are the same to Numba. Numba's rules for its place remain
(`NUMBA_CACHE_DIR`, next to the sources, the user's own folder), and so does its stamp of a kernel's own file.
"""

import functools
import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

from numba.core import caching

from polystick.kernels import SIMD

PREFIX = "polystick-"
N_OTHERS = 3  # folders of other states that stay, for who goes back and forth between versions


@functools.cache
def folder_name():
    """Return the name of the folder that belongs to the sources as they are."""
    digest = hashlib.sha256(b"simd" if SIMD else b"scalar")
    for path in sorted(Path(__file__).parent.iterdir()):
        if path.suffix in (".py", ".npz"):
            content = path.read_bytes()
            digest.update(f"{path.name} {len(content)}\n".encode())
            digest.update(content)
    return PREFIX + digest.hexdigest()[:16]


def move_cache(dispatcher: Any) -> None:
    """Let a dispatcher that caches do so in the folder; it is made when there is something to save."""
    cache = dispatcher._cache
    path = os.path.join(cache.cache_path, folder_name())
    cache._cache_file = _Files(
        cache_path=path,
        filename_base=cache._impl.filename_base,
        source_stamp=cache._cache_file._source_stamp,
    )
    cache._cache_path = path


class _Files(caching.IndexDataCacheFile):
    def save(self, key, data):
        _make(Path(self._cache_path))
        super().save(key, data)


def _make(folder):
    """Make the folder and remove all but the newest of those of other states."""
    if folder.exists():
        return
    others = sorted(folder.parent.glob(PREFIX + "*"), key=_age)
    folder.mkdir(parents=True, exist_ok=True)
    for old in others[N_OTHERS:]:
        shutil.rmtree(old, ignore_errors=True)


def _age(path):
    try:
        return -path.stat().st_mtime
    except OSError:  # somebody else removed it
        return 0.0
