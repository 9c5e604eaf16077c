"""Gibbs sweeps of multinomial Gaussian processes: the solvers that use structure against the dense one.

A sweep draws omega and f for all 99 sticks, at the size of the names data: 51 places x 54 years, K = 100,
50 counts each, simulated. CPU time of one thread. The dense sweep is timed on 3 sticks, whose numbers of
inputs with counts are typical (the mean of their cubes is 2% below that of all), and scaled to 99.
Eigenproblems, one for each covariance, are not in it. Lines on growth compare a size with the smallest
one in proportion to M: 1x is a cost that is linear in M.
"""

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern
from timing import CPU, in_turns, record

from polystick import augmentation
from polystick.augmentation import Potential
from polystick.decomposition import Splits
from polystick.gaussians.markov import Markov
from polystick.gaussians.process import Dense
from polystick.gaussians.spectral import Grid, Spectral
from polystick.keys import Key

SIZES = {500: (20, 25), 1000: (25, 40), 2000: (40, 50), 4000: (50, 80), 16_000: (100, 160)}
NAMES = (51, 54)
N_CATEGORIES, N_TRIALS = 100, 50
LARGEST_MATRIX = 4000
TIMED = (16, 49, 82)  # sticks of the dense sweep
YEARS, DEGREES, SMOOTHNESS = 30.0, 5.0, 2.5
TARGETS = {"separable": 60.0, "unstructured": 12.0}


def covariances(n_places, n_years):
    """Return the covariances of places, spread as the states are, and of years."""
    places = np.random.default_rng(0).uniform((25.0, -125.0), (49.0, -67.0), (n_places, 2))
    return RBF(DEGREES)(places), Matern(YEARS, nu=SMOOTHNESS)(np.arange(n_years)[:, None])


def simulate(solver, rng):
    """Draw the level of each stick, its psi, and how its counts split."""
    shares = 1.0 / np.arange(1, N_CATEGORIES + 1) ** 0.7
    level = np.log(shares[:-1] / np.cumsum(shares[::-1])[-2::-1])[:, None]
    psi = level + solver.unwhiten(rng.standard_normal((len(level), solver.n_white)))
    successes, trials = np.zeros((2, *psi.shape), np.int64)
    left = np.full(psi.shape[1], N_TRIALS)
    for j, success in enumerate(1.0 / (1.0 + np.exp(-psi))):
        successes[j], trials[j] = rng.binomial(left, success), left
        left = left - successes[j]
    return level, psi, Splits(successes, trials)


class Sweeps:
    """A chain of sweeps over some of the sticks."""

    def __init__(self, solver, level, psi, splits, sticks):
        self.solver, self.level, self.psi = solver, level[sticks], psi[sticks]
        self.splits = Splits(*(part[sticks] for part in splits[:2]))
        self.rows, self.n_sweeps = np.arange(len(level), dtype=np.uint64)[sticks], 0

    def __call__(self):
        self.n_sweeps += 1
        key = Key(1, self.n_sweeps)
        kappa, omega = augmentation.draw_potential(
            self.splits, self.psi, key.at("omega"), self.rows
        )
        noise = key.normals("f", self.rows, self.solver.noise_size)
        drawn = self.solver.draw(Potential(kappa - omega * self.level, omega), noise)
        self.psi = self.level + self.solver.unwhiten(drawn.white)


def seconds(shape, *, matrices):
    """Return the seconds of a sweep of each solver; of a Markov chain with as many times as cells."""
    covs, n = covariances(*shape), int(np.prod(shape))
    grid, markov = Grid(covs, np.arange(n)), Markov(np.arange(n), 1.0, YEARS, SMOOTHNESS)
    given, every = simulate(grid, np.random.default_rng(1)), slice(None)
    chains = {
        "separable": Sweeps(grid, *given, every),
        "Markov": Sweeps(markov, *simulate(markov, np.random.default_rng(2)), every),
    }
    repeats = [5, 5]
    if matrices:
        cov = np.kron(*covs)
        chains["unstructured"] = Sweeps(Spectral(cov), *given, every)
        chains["dense"] = Sweeps(Dense(cov), *given, list(TIMED))
        repeats += [2, 2]
    found = dict(zip(chains, in_turns(*chains.values(), clock=CPU, repeats=repeats)))
    if matrices:
        found["dense"] *= (N_CATEGORIES - 1) / len(TIMED)
    return found


def compare():
    """Return the lines of the names data's size."""
    found = seconds(NAMES, matrices=True)
    case = f"sweep vs dense, M={np.prod(NAMES)}, K={N_CATEGORIES}"
    return [record(f"{n} {case}", found[n], found["dense"], TARGETS[n]) for n in TARGETS]


def growth(sizes):
    """Return the lines of each solver's growth over sizes from `SIZES`."""
    times = {m: seconds(SIZES[m], matrices=m <= LARGEST_MATRIX) for m in sizes}
    first = min(sizes)
    return [
        record(f"{name} sweep, M={m} vs {m / first:g} x M={first}", t[name], m / first * base)
        for name, base in times[first].items()
        for m, t in times.items()
        if m > first and name in t
    ]


def run(sizes=tuple(SIZES)):
    """Return one record per case."""
    return compare() + growth(sizes)


if __name__ == "__main__":
    import sys

    for line in run(tuple(map(int, sys.argv[1:])) or tuple(SIZES)):
        print(line, flush=True)
