"""Keys of random streams: (seed, sweep, site, row id), never a thread or a worker.

A `Key` is the (seed, sweep) part. Its `at` names the site, the place in the sweep that draws, and gives
the 64 bits that kernels join with a row's id. So a draw depends on the row and on nothing else: any number
of threads, any split of the rows and a run that was resumed give the same bits.
"""

import functools
import hashlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from polystick.kernels import streams


def _hash(*words: object) -> int:
    digest = hashlib.blake2b("/".join(map(str, words)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@functools.cache
def _site(name: str) -> np.uint64:
    return np.uint64(_hash("site", name))


@functools.lru_cache(maxsize=256)  # of the sweep that each chain is in
def _sweep(seed: int, sweep: int) -> np.uint64:
    return np.uint64(_hash("key", seed, sweep))


@functools.lru_cache(maxsize=256)
def _chain(seed: int, index: int | str) -> int:
    return _hash("chain", seed, index)


class Key(NamedTuple):
    """One sweep of one chain."""

    seed: int
    sweep: int = 0

    def chain(self, index: int | str) -> "Key":
        """Return the key of an independent chain."""
        return Key(_chain(self.seed, index), self.sweep)

    def at(self, site: str) -> np.uint64:
        """Return the 64-bit key of a named place in this sweep."""
        return _sweep(self.seed, self.sweep) ^ _site(site)

    def generator(self, site: str) -> np.random.Generator:
        """Return a NumPy generator, for draws that belong to no row."""
        return np.random.Generator(np.random.PCG64(_hash("generator", *self, site)))

    def normals(
        self, site: str, rows: npt.NDArray[np.uint64], size: int
    ) -> npt.NDArray[np.float64]:
        """Draw standard normals (n, size), those of row i from the stream of rows[i]."""
        out = np.empty((len(rows), size))
        streams.fill_normals(self.at(site), rows, out)
        return out
