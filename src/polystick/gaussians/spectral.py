"""Gaussian processes in the eigenbasis of their covariance, solved by conjugate gradients.

With C = P P', P = U S^(1/2) and v = U' w, the law of v given the potential has precision
A = I + P' diag(omega) P, and a draw solves

    A v = P' (kappa + omega^(1/2) e2) + U' e1.

A >= I whatever C and omega are, so nothing needs jitter, and an input at which nothing was seen is
no special case. The exact diagonal of A is a good preconditioner, for A is nearly diagonal in this
basis if omega varies little. The tolerance is the error of a draw in its own standard deviations, on
average over the directions: of a residual r the error has the norm r' A^-1 r, and a draw that of M.

`Grid` has a covariance that is a Kronecker product over the factors of a grid, so that a product
with P is a few small ones. Where omega is far from even, each row gets a basis of its own, in which A
would be diagonal if omega were the product of its marginals: that costs one small eigenproblem for each
factor, takes no more time in an iteration, and leaves few of them (counts from 50 to 50,000 by
place: 23 instead of 410).

`Spectral` takes any covariance. Its products with P are large and wait for memory, so it begins with a
guess from half the bytes of the few columns that matter; what is returned is as exact as without.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from polystick.gaussians import Potential, conjugate_gradients, kronecker
from polystick.gaussians.kronecker import Rotation, System
from polystick.gaussians.process import Dense, Drawn, Dual, Eigenbasis, OfMatrix
from polystick.gaussians.spectral_conditional import GridConditional
from polystick.gaussians.spectral_prediction import SpectralPredictor, UnstructuredPredictor
from polystick.gaussians.surrogate import Spectrum

__all__ = ["Grid", "Spectral"]

BATCH = 2**15  # numbers in an array of one batch of rows, so that a few of them fit a cache
LARGE_BATCH = 2**22  # with one factor the product with P is one large matrix product
UNEVEN = 0.5  # squared coefficient of variation of a marginal of omega from which a rotation pays
COARSE_FROM = 1e-3  # of the eigenvalues of A - I: what is below them is left out of a first guess
COARSE_ERROR, COARSE_ITERATIONS = 1e-4, 50  # of the guess, relative to its size
LEAST = 1e-8  # of the largest weight of a factor: keeps the others apart from 0
RANK_ONE = 1e-6  # relative error of weights that pass as a product


@dataclass(frozen=True, eq=False)
class Grid:
    """A product of covariances over the factors of a grid, of which M cells are inputs.

    w lives on the whole grid. `dual` gives all cells weights, also the holes, and the term of the
    bound that belongs to those, -sum D variance, is in its `log_det`.
    """

    covs: tuple  # (n_1, n_1), ..., (n_F, n_F)
    cells: np.ndarray  # (M,) the place of each input in the grid, in C order
    tolerance: float = 1e-8
    max_iterations: int = 1000

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(cov) for cov in self.covs)

    @property
    def size(self) -> int:
        return len(self.cells)

    @property
    def n_white(self) -> int:
        return int(np.prod(self.shape))

    @property
    def noise_size(self) -> int:
        return self.n_white + self.size

    @cached_property
    def bases(self) -> list[Eigenbasis]:
        return [Eigenbasis.of(cov) for cov in self.covs]

    @cached_property
    def vectors(self) -> list[np.ndarray]:
        """The factors of U."""
        return [basis.vectors for basis in self.bases]

    @cached_property
    def matrices(self) -> list[np.ndarray]:
        """The factors of P."""
        return [basis.scaled for basis in self.bases]

    @cached_property
    def spectrum(self) -> Spectrum:
        values = kronecker.outer([basis.roots[None] ** 2 for basis in self.bases])
        return Spectrum(values.ravel(), self.vectors, self.shape)

    def fill(self, values: np.ndarray) -> np.ndarray:
        """Write values (r, M) into grids (r, n_1, ..., n_F) with 0 in the holes."""
        grid = np.zeros((len(values), self.n_white))
        grid[:, self.cells] = values
        return grid.reshape(len(values), *self.shape)

    def read(self, grid: np.ndarray) -> np.ndarray:
        """Undo `fill`."""
        return grid.reshape(len(grid), self.n_white)[:, self.cells]

    def cov_among(self, inputs: np.ndarray) -> np.ndarray:
        """Return the covariance of some of the inputs."""
        where = np.unravel_index(self.cells[inputs], self.shape)
        factors = [cov[np.ix_(i, i)] for cov, i in zip(self.covs, where)]
        return np.prod(factors, axis=0) if len(factors) > 1 else factors[0]

    def draw(self, potential: Potential, noise: np.ndarray) -> Drawn:
        """Draw w on the whole grid given the potential, from noise (r, n_white + M)."""
        white, n_iterations = np.empty((len(noise), self.n_white)), 0
        for rows in self.batches(len(noise)):
            e1, e2 = np.split(noise[rows], [self.n_white], axis=1)
            e1, omega = e1.reshape(-1, *self.shape), potential.omega[rows]
            start = kronecker.apply(kronecker.transposed(self.vectors), e1)
            v, n = self.solve(omega, potential.kappa[rows] + np.sqrt(omega) * e2, start)
            drawn = e1 + kronecker.apply(self.vectors, v - start)  # e1 where C has no variance
            white[rows] = drawn.reshape(len(drawn), -1)
            n_iterations = max(n_iterations, n)
        return Drawn(white, n_iterations)

    def draws(self, potential: Potential, noises: np.ndarray) -> Drawn:
        """Draw w (n, r, n_white) given the potential, from noises (n, r, n_white + M)."""
        n, r, size = noises.shape
        kind: Any = type(potential)
        often = kind(*(np.tile(part, (n, 1)) for part in potential))
        white, n_iterations = self.draw(often, noises.reshape(n * r, size))
        return Drawn(white.reshape(n, r, -1), n_iterations)

    def conditional(self, potential: Potential) -> Any:
        """Return w given a potential with omega such as `weights` gives; None if the grid has holes."""
        if len(self.covs) == 1 or self.size < self.n_white:
            return None
        return GridConditional.of(self, potential)

    def unwhiten(self, white: np.ndarray) -> np.ndarray:
        """Return f = R w at the inputs."""
        down = kronecker.transposed(self.vectors)
        v = kronecker.apply(down, white.reshape(len(white), *self.shape))
        return self.read(kronecker.apply(self.matrices, v))

    def mean(self, potential: Potential) -> np.ndarray:
        """Return the mean of f given the potential."""
        mean = np.empty(np.shape(potential.kappa))
        for rows in self.batches(len(mean)):
            v, _ = self.solve(potential.omega[rows], potential.kappa[rows])
            mean[rows] = self.read(kronecker.apply(self.matrices, v))
        return mean

    def batches(self, n: int) -> list[slice]:
        """Cut n rows where their company depends on n only."""
        size = max(1, (BATCH if len(self.covs) > 1 else LARGE_BATCH) // self.n_white)
        return [slice(start, start + size) for start in range(0, n, size)]

    def solve(
        self, omega: np.ndarray, pull: np.ndarray, start: float | np.ndarray = 0.0
    ) -> tuple[np.ndarray, int]:
        """Solve A v = P' pull + start, with omega and pull (r, M); return v and the iterations."""
        omega = self.fill(omega)
        b = kronecker.apply(kronecker.transposed(self.matrices), self.fill(pull)) + start
        uneven = _uneven(omega)
        if not uneven.any():
            return self._solve_plain(omega, b)
        v, n_iterations = np.empty_like(b), 0
        for rows, solve in ((~uneven, self._solve_plain), (uneven, self._solve_turned)):
            if rows.any():
                v[rows], n = solve(omega[rows], b[rows])
                n_iterations = max(n_iterations, n)
        return v, n_iterations

    def _solve_plain(self, omega, b):
        start = self._coarse_start(omega, b) if len(self.covs) == 1 else None
        return self._iterate(System(self.matrices, omega), b, start)

    def _solve_turned(self, omega, b):
        rotation = Rotation.of(self.matrices, kronecker.product_of_marginals(omega))
        b = kronecker.apply(kronecker.transposed(rotation.vectors), b)
        y, n_iterations = self._iterate(System(rotation.turn(self.matrices), omega), b)
        return kronecker.apply(rotation.vectors, y), n_iterations

    def _iterate(self, system, b, start=None):
        limit = np.full(len(b), self.tolerance * np.sqrt(b[0].size))
        found = conjugate_gradients.solve(system, b, limit, self.max_iterations, start)
        return found.x, found.n_iterations

    @cached_property
    def _single(self):
        """P in single precision, if it has one factor."""
        return self.matrices[0].astype(np.float32)

    def _coarse_start(self, omega, b):
        """Guess v in single precision where the potential is felt; elsewhere A is nearly I."""
        start, felt = b.copy(), self.bases[0].roots ** 2 * omega.max() > COARSE_FROM
        if felt.any():
            first = np.argmax(felt)  # of the eigenvalues, which ascend
            coarse = System([self._single[:, first:]], omega.astype(np.float32))
            part = b[:, first:].astype(np.float32)
            guess = conjugate_gradients.attempt(coarse, part, COARSE_ERROR, COARSE_ITERATIONS)
            start[:, first:] = np.where(np.isfinite(guess), guess, part)
        return start

    @cached_property
    def _n_seen(self):
        """The inputs in each line of each factor."""
        return kronecker.marginals(self.fill(np.ones((1, self.size))))

    def weights(self, omega: np.ndarray) -> np.ndarray:
        """Return the product over the factors that has the marginal means of omega."""
        omega = np.asarray(omega, float)
        means = [
            sums / np.maximum(seen, 1.0)
            for sums, seen in zip(kronecker.marginals(self.fill(omega)), self._n_seen)
        ]
        means = [np.maximum(m, LEAST * m.max(axis=1, keepdims=True)) for m in means]
        total = omega.mean(axis=1, keepdims=True)
        surplus = np.where(total > 0, total, 1.0) ** (len(means) - 1)
        return self.read(kronecker.outer(means)) / surplus

    def dual(self, linear: np.ndarray, weights: np.ndarray) -> Dual:
        """Return the moments of q; the weights must be such as `weights` gives."""
        factors, n = self.factors_of(weights), len(linear)
        variance, log_det = np.empty((n, self.size)), np.empty(n)
        for rows in self.batches(n):
            parts = [d[rows] for d in factors]
            rotation = Rotation.of(self.matrices, parts)
            eigenvalues = rotation.eigenvalues
            grid = kronecker.apply(kronecker.squared(rotation.turn(self.matrices)), 1 / eigenvalues)
            variance[rows] = self.read(grid)
            in_holes = _total(kronecker.outer(parts) * grid)
            in_holes -= np.sum(weights[rows] * variance[rows], axis=1)
            log_det[rows] = _total(np.log(eigenvalues)) - in_holes * (self.size < self.n_white)
        return Dual(self.read(kronecker.apply(self.covs, self.fill(linear))), variance, log_det)

    @cached_property
    def _line_solver(self):
        """The pseudo-inverse of X' X, where X (M, n_1 + ... + n_F) tells the lines of each input."""
        where = np.unravel_index(self.cells, self.shape)
        lines = np.hstack([np.eye(n)[i] for n, i in zip(self.shape, where)])
        return np.linalg.pinv(lines.T @ lines, hermitian=True)

    def factors_of(self, weights: np.ndarray) -> list[np.ndarray]:
        """Return the factors (r, n) of weights (r, M) that are a product; 0 in lines without inputs."""
        some = weights.max(axis=1, keepdims=True) > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = self.fill(np.where(some, np.log(weights), 0.0))
            logs = np.hstack(kronecker.marginals(logs)) @ self._line_solver
            parts = np.split(np.exp(logs), np.cumsum(self.shape)[:-1], axis=1)
        factors = [np.where(seen > 0, part, 0.0) for seen, part in zip(self._n_seen, parts)]
        factors[0] = np.where(some, factors[0], 0.0)
        if not np.allclose(self.read(kronecker.outer(factors)), weights, rtol=RANK_ONE, atol=0.0):
            raise ValueError(
                "weights must be a product over the factors of the grid, or 0; got others; "
                "try weights(omega), which gives the nearest"
            )
        return factors

    def predictor(self, cross: np.ndarray, variance: np.ndarray) -> Any:
        """Return the predictor for new inputs.

        cross : covariances of the new inputs with the lines of each factor, (M*, n_1), ..., (M*, n_F);
            if the grid has no holes, their products (M*, M) with the inputs will do
        variance : (M*,)
        """
        if isinstance(cross, np.ndarray) and self.size < self.n_white:
            raise ValueError(
                "cross must be a tuple with the covariances (M*, n) of each factor where the grid "
                f"has holes; got one array {cross.shape}; what is known of f includes the holes"
            )
        whole = self.fill(cross) if isinstance(cross, np.ndarray) else kronecker.outer(cross)
        return SpectralPredictor(self, whole, variance)


@dataclass(frozen=True, eq=False)
class Spectral(OfMatrix):
    """Any covariance, in its eigenbasis: one eigenproblem, then no more factors.

    The rows of a batch share matrix products, so their last bits depend on the batch.
    """

    cov: np.ndarray  # (M, M)
    tolerance: float = 1e-8
    max_iterations: int = 1000

    @cached_property
    def grid(self) -> Grid:
        """The same as a grid with one factor."""
        inputs = np.arange(len(self.cov))
        return Grid((self.cov,), inputs, self.tolerance, self.max_iterations)

    @property
    def spectrum(self) -> Spectrum:
        return self.grid.spectrum

    @cached_property
    def dense(self) -> Dense:
        return Dense(self.cov)

    def draw(self, potential: Potential, noise: np.ndarray) -> Drawn:
        """Draw w given the potential, from noise (r, 2 M)."""
        return self.grid.draw(potential, noise)

    def draws(self, potential: Potential, noises: np.ndarray) -> Drawn:
        """Draw w (n, r, M) given the potential, from noises (n, r, 2 M)."""
        return self.grid.draws(potential, noises)

    def conditional(self, potential: Potential) -> Any:
        """Return None: one basis for each row would take too long."""

    def unwhiten(self, white: np.ndarray) -> np.ndarray:
        """Return f = R w."""
        return self.grid.unwhiten(white)

    def mean(self, potential: Potential) -> np.ndarray:
        """Return the mean of f given the potential."""
        return self.grid.mean(potential)

    def weights(self, omega: np.ndarray) -> np.ndarray:
        """Return omega: any weights will do."""
        return omega

    def dual(self, linear: np.ndarray, weights: np.ndarray) -> Dual:
        """Return the moments of q, by one Cholesky factor for each row."""
        return self.dense.dual(linear, weights)

    def predictor(self, cross: np.ndarray, variance: np.ndarray) -> Any:
        """Return the predictor for new inputs: cross (M*, M), variance (M*,)."""
        return UnstructuredPredictor(self.grid, cross, variance)


def _total(grid):
    return grid.sum(axis=tuple(range(1, grid.ndim)))


def _uneven(omega):
    """Tell which rows need a basis of their own."""
    if omega.ndim == 2:
        return np.zeros(len(omega), bool)
    return np.any([_variation(m) > UNEVEN for m in kronecker.marginals(omega)], axis=0)


def _variation(x):
    """Return the squared coefficient of variation of each row."""
    mean = x.mean(axis=1)
    return x.var(axis=1) / np.where(mean > 0, mean, 1.0) ** 2
