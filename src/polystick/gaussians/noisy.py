"""Functions with noise of each input's own: f = g + e, where a solver knows g and e_m ~ N(0, variance).

A potential of f is one of g once e is integrated out, input by input:

    kappa' = kappa / c,   omega' = omega / c,   c = 1 + variance omega,

and e given g and the potential is normal, with mean variance (kappa - omega g) / c and variance / c. So a
solver that knows no noise serves one that has it, with all that `gaussians.process` asks of it: w is that
of g and then that of e, and nothing is divided by omega here either. The solver must take any weights
in `dual`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from polystick.gaussians import Potential
from polystick.gaussians.process import Drawn, Dual

__all__ = ["Noisy", "NoisyPredictor"]


@dataclass(frozen=True, eq=False)
class Noisy:
    """The values of a solver at its inputs, each with noise of its own."""

    smooth: Any  # the solver of g
    variance: float

    spectrum = None  # of the covariance: not cheap here

    @property
    def size(self) -> int:
        return self.smooth.size

    @property
    def n_white(self) -> int:
        return self.smooth.n_white + self.size

    @property
    def noise_size(self) -> int:
        return self.smooth.noise_size + self.size

    @cached_property
    def sd(self) -> float:
        return np.sqrt(self.variance)

    def grown(self, omega: np.ndarray) -> np.ndarray:
        """Return c = 1 + variance omega."""
        return 1.0 + self.variance * omega

    def of_smooth(self, potential: Potential) -> Any:
        """Return the potential of g."""
        c = self.grown(potential.omega)
        kind: Any = type(potential)
        return kind(potential.kappa / c, potential.omega / c)

    def white_noise(
        self, potential: Potential, g: np.ndarray, rest: float | np.ndarray
    ) -> np.ndarray:
        """Return the w of e given g and the potential, from standard normals."""
        kappa, omega = potential
        c = self.grown(omega)
        return self.sd * (kappa - omega * g) / c + rest / np.sqrt(c)

    def split(self, white: np.ndarray) -> list[np.ndarray]:
        """Return the parts of w, or of noise, that belong to g and to e, along the last axis."""
        return np.split(white, [np.shape(white)[-1] - self.size], axis=-1)

    def draw(self, potential: Potential, noise: np.ndarray) -> Drawn:
        """Draw w given the potential from noise (r, noise_size)."""
        white, n_iterations = self.draws(potential, noise[None])
        return Drawn(white[0], n_iterations)

    def draws(self, potential: Potential, noises: np.ndarray) -> Drawn:
        """Draw w (n, r, n_white) given the potential from noises (n, r, noise_size)."""
        first, rest = self.split(noises)
        smooth, n_iterations = self.smooth.draws(self.of_smooth(potential), first)
        g = np.array([self.smooth.unwhiten(white) for white in smooth])
        own = self.white_noise(potential, g, rest)
        return Drawn(np.concatenate([smooth, own], axis=2), n_iterations)

    def conditional(self, potential: Potential) -> Any:
        """Return w given the potential, if the solver of g has that."""
        smooth = self.smooth.conditional(self.of_smooth(potential))
        return None if smooth is None else NoisyConditional(self, potential, smooth)

    def unwhiten(self, white: np.ndarray) -> np.ndarray:
        """Return f (r, M)."""
        smooth, own = self.split(white)
        return self.smooth.unwhiten(smooth) + self.sd * own

    def mean(self, potential: Potential) -> np.ndarray:
        """Return the mean of f (r, M) given the potential."""
        return self.pull(potential, self.smooth.mean(self.of_smooth(potential)))

    def pull(self, potential: Potential, g: np.ndarray) -> np.ndarray:
        """Return the mean of f given g and the potential."""
        kappa, omega = potential
        return (g + self.variance * kappa) / self.grown(omega)

    def weights(self, omega: np.ndarray) -> np.ndarray:
        """Return omega: any weights are exact."""
        return omega

    def dual(self, linear: np.ndarray, weights: np.ndarray) -> Dual:
        """Return the moments of N(C linear, (C^-1 + diag(weights))^-1) and its log determinant."""
        c = self.grown(weights)
        mean, variance, log_det = self.smooth.dual(linear, weights / c)
        mean, variance = mean + self.variance * linear, variance / c**2 + self.variance / c
        return Dual(mean, variance, log_det + np.log(c).sum(axis=1))

    def predictor(self, smooth: Any, seen: np.ndarray) -> "NoisyPredictor":
        """Return a predictor from that of g, and the place (M*,) of each among the inputs, or -1."""
        return NoisyPredictor(self, smooth, np.asarray(seen))


@dataclass(frozen=True, eq=False)
class NoisyConditional:
    """w given a potential: that of g with e integrated out, then that of e."""

    solver: Noisy
    potential: Any
    smooth: Any  # the conditional of g

    @property
    def log_normaliser(self):
        kappa, omega = self.potential
        c = self.solver.grown(omega)
        own = self.solver.variance * np.square(kappa) / c - np.log(c)
        return self.smooth.log_normaliser + 0.5 * own.sum(axis=1)

    def white(self, rest):
        first, rest = self.solver.split(rest)
        own = self.solver.white_noise(self.potential, self.smooth.values(first), rest)
        return np.concatenate([self.smooth.white(first), own], axis=1)

    def values(self, rest):
        return self.solver.unwhiten(self.white(rest))

    def rest(self, white):
        smooth, own = self.solver.split(white)
        mean = self.solver.white_noise(self.potential, self.solver.smooth.unwhiten(smooth), 0.0)
        rest = (own - mean) * np.sqrt(self.solver.grown(self.potential.omega))
        return np.concatenate([self.smooth.rest(smooth), rest], axis=1)


@dataclass(frozen=True, eq=False)
class NoisyPredictor:
    """f at new inputs, whose noise is new, and at old ones, whose noise is theirs."""

    solver: Noisy
    smooth: Any  # the predictor of g
    seen: np.ndarray  # (M*,) the place among the inputs, or -1

    @property
    def old(self):
        return self.seen >= 0

    def collapsed(self, potential):
        """Return mean and variance (r, M*) given the potential."""
        mean, variance = self.smooth.collapsed(self.solver.of_smooth(potential))
        old, here = self.old, self.seen[self.old]
        at_old = type(potential)(*(part[:, here] for part in potential))
        mean[:, old] = self.solver.pull(at_old, mean[:, old])
        return mean, self._with_noise(variance, potential.omega)

    def _with_noise(self, variance, omega):
        old, c = self.old, self.solver.grown(omega[:, self.seen[self.old]])
        total = variance + self.solver.variance
        total[:, old] = variance[:, old] / c**2 + self.solver.variance / c
        return total

    def given(self, white):
        """Return mean (r, M*) and variance (M*,) given w."""
        smooth, own = self.solver.split(white)
        mean, variance = self.smooth.given(smooth)
        mean[:, self.old] += self.solver.sd * own[:, self.seen[self.old]]
        return mean, variance + np.where(self.old, 0.0, self.solver.variance)

    def dual(self, linear, weights):
        """Return mean and variance (r, M*) under q."""
        mean, variance = self.smooth.dual(linear, weights / self.solver.grown(weights))
        mean[:, self.old] += self.solver.variance * linear[:, self.seen[self.old]]
        return mean, self._with_noise(variance, weights)
