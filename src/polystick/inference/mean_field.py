"""Mean field: coordinate ascent on a bound, by closed-form updates.

Each step raises the bound or leaves it; both are deterministic. `protocols.VariationalModel` is what is asked
of a model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from sklearn.exceptions import ConvergenceWarning

from polystick.inference.execution import Serial, one_blas_thread
from polystick.inference.factors import Ascent, ascend, take_step
from polystick.inference.posterior import Posterior
from polystick.inference.progress import Show
from polystick.inference.protocols import (
    Execution,
    F,
    L,
    P,
    R,
    S,
    T,
    VariationalModel,
    check_model,
)
from polystick.keys import Key
from polystick.validation import check_integer, check_positive, warn_user


@dataclass(frozen=True)
class MeanField:
    """Approximate the posterior by independent factors: fast, deterministic, too sure of itself.

    Parameters
    ----------
    tolerance : float
        Stop when a sweep gains less than this many nats for each row; of sequences, for each step.
    max_sweeps : int
        Stop then in any case, with a warning.
    n_draws : int or None
        Draws from the factors to report, so that what uses a posterior need not know how it was made.
        None: as many as fit in a quarter of `max_bytes`, from 32 to 1000; of topics 32.
    max_bytes : int
        As in `Gibbs`.
    """

    tolerance: float = 1e-4
    max_sweeps: int = 1000
    n_draws: int | None = None
    max_bytes: int = 2**30

    needs_whole_counts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive("tolerance", self.tolerance)
        for name in ("max_sweeps", "max_bytes"):
            check_integer(name, getattr(self, name), at_least=1)
        if self.n_draws is not None:
            check_integer("n_draws", self.n_draws, at_least=1)

    def run(
        self,
        model: VariationalModel[S, P, L, R, T, F],
        shards: Sequence[S],
        *,
        seed: int,
        execution: Execution | None = None,
        progress: Show = False,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        every: float = 60.0,
        coords: Mapping[str, Any] | None = None,
    ) -> Posterior:
        """Climb to a maximum of the bound and return a `Posterior`."""
        check_model(model, "MeanField")
        with execution or Serial() as mapping, one_blas_thread():
            run = _Run(self, model, shards, seed, mapping)
            ended = ascend(run, self.max_sweeps, progress, checkpoint, resume, every, coords)
            if ended:
                _warn_of_its_end(run)
            return run.posterior(coords)


class _Run(Ascent[S, P, L, R, T, F, MeanField]):
    inference = "mean_field"

    def advance(self) -> None:
        self.sweep += 1
        key = Key(self.seed, self.sweep)
        self.factor, bound = take_step(self.model, self.factor, self.held, key)
        self.elbo.append(bound)

    def converged(self) -> bool:
        if len(self.elbo) < 2:
            return False
        return self.elbo[-1] - self.elbo[-2] < self.settings.tolerance * self.n_units

    def finished(self) -> bool:
        return self.converged() or self.sweep >= self.settings.max_sweeps

    def attrs(self) -> dict[str, object]:
        return {**super().attrs(), "converged": int(self.converged())}


def _warn_of_its_end(run: _Run[S, P, L, R, T, F]) -> None:
    if not run.converged():
        warn_user(
            f"mean field did not converge after {run.sweep} sweeps; raise max_sweeps or tolerance",
            ConvergenceWarning,
        )
    diagnose = getattr(run.model, "diagnose", None)
    trouble = diagnose(run.factor) if diagnose else None
    if trouble:
        warn_user(trouble, ConvergenceWarning)
