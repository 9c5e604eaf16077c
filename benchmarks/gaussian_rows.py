"""Draws of Gaussian rows: ours against NumPy and LAPACK, and our two forms against each other.

The peers: stacked `np.linalg.cholesky` with BLAS's triangular solves (stacked `np.linalg.solve` and
`inv`, and SciPy's batched `solve_triangular`, are slower), and LAPACK's dpotrf row by row. On two
cores the peer may use two BLAS or two Python threads. Times are CPU time on one core and wall time
on two.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from scipy.linalg import blas, lapack
from timing import CPU, WALL, in_turns, record

from polystick.kernels import gaussian

ROWS, BLOCK, REPEATS = 3000, 256, 9
POOL = ThreadPoolExecutor(2)


def make(n, k, share=1.0):
    rng = np.random.default_rng(k)
    roots = rng.normal(size=(k, 2 * k))
    precision = roots @ roots.T / k
    active = np.argsort(rng.random((n, k)), axis=1) < round(share * k)
    kappa = active * rng.normal(size=(n, k))
    omega = active * rng.gamma(1.0, size=(n, k))
    return precision, rng.normal(size=k), kappa, omega, rng.normal(size=(n, 2 * k))


def ours(precision, linear, kappa, omega, noise):
    n, k = kappa.shape
    psi, log_det = np.empty((n, 1, k)), np.empty(n)
    gaussian.draw_rows(precision, linear, kappa, omega, noise[:, None], psi, log_det)
    return psi[:, 0]


def stacked(precision, linear, kappa, omega, noise):
    k = kappa.shape[1]
    factors = np.linalg.cholesky(precision + omega[:, :, None] * np.eye(k))
    psi = linear + kappa
    for i, factor in enumerate(factors):
        solved = blas.dtrsv(factor.T, psi[i], trans=1)
        psi[i] = blas.dtrsv(factor.T, solved + noise[i, :k])
    return psi


def row_by_row(precision, linear, kappa, omega, noise):
    k = kappa.shape[1]
    psi = linear + kappa
    diagonal = np.arange(k)
    for i in range(len(psi)):
        j = precision.copy()
        j[diagonal, diagonal] += omega[i]
        factor = lapack.dpotrf(j.T, clean=0, overwrite_a=1)[0]
        solved = blas.dtrsv(factor, psi[i], trans=1)
        psi[i] = blas.dtrsv(factor, solved + noise[i, :k])
    return psi


def conditioning(mean, cov, root, kappa, omega, noise):
    psi = np.empty_like(kappa)
    gaussian.condition_rows(mean, cov, root, kappa, omega, noise, psi)
    return psi


def in_blocks(function, n_threads, precision, linear, *rows):
    """Map a function over blocks of rows, on a pool of threads."""
    starts = range(0, len(rows[0]), BLOCK)

    def run(start):
        return function(precision, linear, *(a[start : start + BLOCK] for a in rows))

    mapped = map(run, starts) if n_threads == 1 else POOL.map(run, starts)
    return np.concatenate(list(mapped))


def against_peer(name, peer, k, n, n_cores, target=None):
    problem = make(n, k)
    np.testing.assert_allclose(ours(*problem), peer(*problem), rtol=1e-6, atol=1e-8)
    programs = [(1, ours, n_cores), (1, peer, n_cores)] + [(n_cores, peer, 1)] * (n_cores > 1)
    fast, *slow = in_turns(
        *(partial(in_blocks, f, m, *problem) for _, f, m in programs),
        blas=[n_blas for n_blas, _, _ in programs],
        repeats=REPEATS,
        clock=CPU if n_cores == 1 else WALL,
    )
    return record(f"draw {n} rows vs {name}, k={k}, cores={n_cores}", fast, min(slow), target)


def forms(k, n, share):
    precision, linear, kappa, omega, noise = make(n, k, share)
    cov = np.linalg.inv(precision)
    root = np.ascontiguousarray(np.linalg.cholesky(cov).T)
    condition, information = in_turns(
        partial(conditioning, cov @ linear, cov, root, kappa, omega, noise),
        partial(ours, precision, linear, kappa, omega, noise),
        repeats=REPEATS,
    )
    case = f"conditioning vs information form, k={k}, active={share:.0%}"
    return record(case, condition, information, None)


def run():
    """Return one row for each case."""
    sizes = ((20, ROWS), (49, ROWS), (99, 1000), (199, 300))
    forms(3, 8, 1.0)  # compiles
    rows = [
        against_peer("stacked NumPy", stacked, k, n, n_cores, 8.0 if k == 49 else None)
        for n_cores in (1, 2)
        for k, n in sizes
    ]
    rows += [against_peer("LAPACK row by row", row_by_row, k, n, 1) for k, n in sizes]
    return rows + [forms(k, n, share) for k, n in sizes for share in (0.05, 0.1, 0.25, 0.5)]


if __name__ == "__main__":
    for result in run():
        print(result)
