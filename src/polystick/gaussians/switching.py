"""States in a chain whose dynamics are those of the regime of each step: x_s = A_r x_{s-1} + c_s + N(0, Q_r).

The regimes are given. Each step has a dense potential as in `dynamics`, and sequences lie one after another.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polystick.gaussians.dynamics import Chain
from polystick.kernels import chain, switching_chain
from polystick.kernels.buffers import as_buffers

__all__ = ["SwitchingChain"]


@dataclass(frozen=True, eq=False)
class SwitchingChain:
    """A first state ~ N(initial_mean, initial_cov), and dynamics and their noise for each regime."""

    initial_mean: np.ndarray  # (D,)
    initial_cov: np.ndarray  # (D, D)
    dynamics: np.ndarray  # (R, D, D)
    dynamics_cov: np.ndarray  # (R, D, D)

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """The chain that never leaves a regime, for each."""
        first = self.initial_mean, self.initial_cov
        return tuple(Chain(*first, *law) for law in zip(self.dynamics, self.dynamics_cov))

    @cached_property
    def _white(self):
        """Return dynamics (R, R, D, D), starts (R, D) and spreads (R, D, D) of states in white."""
        white = [one.white for one in self.chains]
        dynamics = [
            [to.white.root.solve(to.dynamics @ one.root) for to in self.chains]
            for one in self.chains
        ]
        starts, spreads = ([getattr(one, name) for one in white] for name in ("start", "spread"))
        return tuple(np.array(part) for part in (dynamics, starts, spreads))

    def draw(
        self,
        linear: np.ndarray,
        precision: np.ndarray,
        noise: np.ndarray,
        *,
        regimes: np.ndarray,
        shifts: np.ndarray,
        starts: np.ndarray,
    ) -> np.ndarray:
        """Draw the states (S, D) given potentials and regimes (S,), an affine function of noise (S, D)."""
        linear, precision, noise = as_buffers(linear, precision, noise)
        regimes = np.ascontiguousarray(regimes, dtype=np.int32)
        starts = np.require(starts, np.int64, ["C", "W"])
        message, factor = np.empty_like(linear), np.empty_like(precision)
        bias, states = np.empty_like(linear), np.empty_like(linear)
        for r, one in enumerate(self.chains):
            here = np.flatnonzero(regimes == r)
            whitened = np.empty_like(linear[here]), np.empty_like(precision[here])
            chain.whiten_potentials(one.root, linear[here], precision[here], *whitened)
            message[here], factor[here] = whitened
            bias[here] = one.white.root.solve(np.ascontiguousarray(shifts[here].T)).T
        dynamics, first, spread = self._white
        law = dynamics, bias, first, spread, starts, regimes
        switching_chain.pass_back_in_place(*law, message, factor)
        switching_chain.draw_forward(*law, factor, message, noise, states)
        for r, one in enumerate(self.chains):
            states[regimes == r] = states[regimes == r] @ one.root.T
        return states

    def log_densities(
        self, states: np.ndarray, shifts: np.ndarray, follows: np.ndarray
    ) -> np.ndarray:
        """Return log N(x_s; A_r x_{s-1} + c_rs, Q_r) of each step under each regime, (S, R); 0 of first ones.

        shifts  : (R, S, D) under each regime
        follows : (S,) bool whether a step has one before it
        """
        result = np.zeros((len(states), len(self.chains)))
        before, after = states[:-1][follows[1:]], states[follows]
        for r, one in enumerate(self.chains):
            gap = after - before @ one.dynamics.T - shifts[r][follows]
            white = one.white.root.solve(np.ascontiguousarray(gap.T))
            log_det = np.log(np.abs(np.linalg.det(one.root)))
            result[follows, r] = -0.5 * np.square(white).sum(axis=0) - log_det
        return result
