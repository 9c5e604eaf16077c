"""Pólya-gamma draws: ours against polyagamma 2.0.2 on the same arrays, in nanoseconds per draw.

    python benchmarks/polyagamma_draws.py

CPU time of one thread, minima of repeats, the two taking turns. Ours is `draw_ragged`, as the library calls
it, or `draw`, the public function, which checks what it is given. The peer is approximate for most of
these arrays; ours is exact. The case of two threads is in wall time, so it says something only on a
machine with two idle cores.
"""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polyagamma as peer
from timing import WALL, in_turns, record

from polystick import polyagamma

N_STICKS = 49
KEY = np.uint64(1)


def make_topic_rows(n_documents, n_words=200, spread=1.5, tilt=2.0, seed=0):
    """Return (b, z) as in a correlated topic model with 50 topics of no particular order."""
    rng = np.random.default_rng(seed)
    weights = np.exp(spread * rng.normal(size=(n_documents, N_STICKS + 1)))
    counts = rng.multinomial(n_words, weights / weights.sum(1, keepdims=True))
    before = np.cumsum(counts, 1) - counts
    return n_words - before[:, :-1], rng.normal(0, tilt, (n_documents, N_STICKS))


def make_constant_rows(b, n_rows, seed=0):
    z = np.random.default_rng(seed).normal(0, 2, (n_rows, N_STICKS))
    return np.full(z.shape, b), z


def draw_ours(b, z):
    n, k = b.shape
    rows, starts = np.arange(n, dtype=np.uint64), np.arange(n + 1) * k
    return polyagamma.draw_ragged(KEY, rows, starts, b.ravel(), z.ravel())


def draw_public(b, z):
    return polyagamma.draw(b, z, seed=1)


def compare(case, b, z, target=None, draw=draw_ours):
    """Time both on the entries with b > 0, which are all that the peer takes."""
    rng = np.random.default_rng(1)
    h, tilt = b[b > 0].astype(float), z[b > 0]
    ours, theirs = in_turns(
        lambda: draw(b, z),
        lambda: peer.random_polyagamma(h, tilt, random_state=rng),
        repeats=25,
    )
    return record(case, ours / h.size, theirs / h.size, target, unit="ns")


def compare_threads(b, z, target=1.8, n_blocks=16):
    """Time one thread, the peer here, and two, in wall time."""
    cuts = np.linspace(0, len(b), n_blocks + 1).astype(int)
    blocks = [(b[i:j], z[i:j]) for i, j in itertools.pairwise(cuts)]
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(2) as two:
        pair, single = in_turns(
            *(
                lambda pool=pool: list(pool.map(lambda x: draw_ours(*x), blocks))
                for pool in (two, one)
            ),
            clock=WALL,
            repeats=150,
        )
    n_draws = np.count_nonzero(b)
    return record("mix, 2 threads against 1", pair / n_draws, single / n_draws, target, unit="ns")


def run():
    """Return one record per case."""
    b, z = make_topic_rows(2000)
    records = [
        compare("mix of a topic model", b, z, target=12.0),
        compare("the same by polyagamma.draw", b, z, 12.0, draw_public),
        compare("the same of floats", b.astype(float), z, 12.0, draw_public),
    ]
    for size in (1, 2, 5, 20, 50, 200):
        target = 5.0 if size == 1 else None
        records.append(
            compare(f"b = {size}, z ~ N(0, 2^2)", *make_constant_rows(size, 1000), target)
        )
    return [*records, compare_threads(*make_topic_rows(8000))]


if __name__ == "__main__":
    for record in run():
        print(record)
