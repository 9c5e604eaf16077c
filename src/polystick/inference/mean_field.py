"""Mean field: coordinate ascent on a bound, by closed-form updates.

What the schedule asks of a model, besides `dims` and `describe_rows`' names:

    initial_factor(key)                     -> factor of the parameters (a dataclass of arrays)
    expect(factor)                          -> prior: what the local steps of one sweep share
    initial_row_factors(prior, shard)       -> row factors (a named tuple of arrays, rows first)
    update_rows(prior, shard, rows, key)    -> (row factors, expected statistics)     local step
    update_factor(factor, statistics)       -> factor                                 global step
    elbo(factor, statistics)                -> the bound at the factor the statistics were made with
    draw_from_factor(factor, key)           -> parameters
    draw_described_rows(prior, shard, rows) -> name -> array (draw, rows, ...), from the row factors

Each step raises the bound or leaves it; both are deterministic.
"""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from polystick.inference.checkpoint import fingerprint, open_checkpoint
from polystick.inference.execution import Serial, concatenate, one_blas_thread
from polystick.inference.interruption import Interruption, report_interruption
from polystick.inference.posterior import Posterior
from polystick.inference.progress import Monitor
from polystick.inference.recorder import Recorder, posterior_groups, thinned_axes
from polystick.keys import Key
from polystick.validation import check_integer, check_positive, warn_user


@dataclass(frozen=True)
class MeanField:
    """Approximate the posterior by independent factors: fast, deterministic, too sure of itself.

    Parameters
    ----------
    tolerance : float
        Stop when a sweep gains less than this many nats for each row.
    max_sweeps : int
        Stop then in any case, with a warning.
    n_draws : int
        Draws from the factors to report, so that what uses a posterior need not know how it was made.
    max_bytes : int
        As in `Gibbs`.
    """

    tolerance: float = 1e-4
    max_sweeps: int = 1000
    n_draws: int = 1000
    max_bytes: int = 2**30

    needs_whole_counts: ClassVar[bool] = False

    def __post_init__(self):
        check_positive("tolerance", self.tolerance)
        for name in ("max_sweeps", "n_draws", "max_bytes"):
            check_integer(name, getattr(self, name), at_least=1)

    def run(self, model, shards, *, seed, execution=None, progress=False, checkpoint=None,
            resume=False, every=60.0, coords=None):  # fmt: skip
        """Climb to a maximum of the bound and return a `Posterior`."""
        with execution or Serial() as execution, one_blas_thread():
            run = _Run(self, model, shards, seed, execution)
            saver = open_checkpoint(run, checkpoint, resume, every)
            label = {"done": run.sweep, "label": "bound"}
            with (
                Monitor(progress, self.max_sweeps, **label) as monitor,
                Interruption() as interruption,
            ):
                while not run.finished() and not interruption.requested:
                    run.advance()
                    monitor.update(run.sweep, run.elbo[-1])
                    if saver and (saver.due() or run.finished()):
                        run.save(saver)
            if interruption.requested:
                report_interruption(run, saver)
            elif not run.converged():
                _warn_not_converged(run)
            return run.posterior(coords)


class _Run:
    """Where the ascent stands."""

    def __init__(self, settings, model, shards, seed, execution):
        self.settings, self.model, self.seed, self.sweep = settings, model, seed, 0
        self.held = execution.hold(shards)
        self.n_rows = sum(len(shard.rows) for shard in shards)
        self.factor = model.initial_factor(Key(seed))
        self.elbo: list[float] = []
        prior = model.expect(self.factor)
        self.held.states = [[model.initial_row_factors(prior, shard) for shard in shards]]

    def advance(self):
        self.sweep += 1
        prior, key = self.model.expect(self.factor), Key(self.seed, self.sweep)
        (statistics,) = self.held.step(self.model.update_rows, [prior], [key])
        self.elbo.append(float(self.model.elbo(self.factor, statistics)))
        if not np.isfinite(self.elbo[-1]):
            raise FloatingPointError(
                f"the bound is not finite after sweep {self.sweep}; try a stronger prior"
            )
        try:
            self.factor = self.model.update_factor(self.factor, statistics)
        except (ValueError, np.linalg.LinAlgError) as error:
            raise FloatingPointError(
                f"the factor of the parameters broke down in sweep {self.sweep} ({error}); "
                "try a stronger prior"
            ) from error

    def converged(self):
        if len(self.elbo) < 2:
            return False
        return self.elbo[-1] - self.elbo[-2] < self.settings.tolerance * self.n_rows

    def finished(self):
        return self.converged() or self.sweep >= self.settings.max_sweeps

    def identity(self, shards):
        """Return what must be the same for a checkpoint to be resumed."""
        return {
            "model": fingerprint(self.model),
            "data": fingerprint(shards),
            "seed": str(self.seed),
            "inference": "mean field",
        }

    def kept(self):
        """Say what an interruption leaves, or None."""
        return f"the factors of {self.sweep} sweeps are kept" if self.sweep else None

    def save(self, saver):
        state = {f"factor.{name}": np.asarray(v) for name, v in _fields(self.factor).items()}
        state |= {f"rows.{name}": value for name, value in self.held.gather()[0].items()}
        saver.save(self.sweep, {**state, "elbo": np.array(self.elbo)}, {})

    def restore(self, saver):
        self.sweep, state, _ = saver.load()
        self.elbo = list(state["elbo"])
        factor = {name: state[f"factor.{name}"][()] for name in _fields(self.factor)}
        self.factor = dataclasses.replace(self.factor, **factor)
        row_kind = type(self.held.states[0][0])
        rows = {name: state[f"rows.{name}"] for name in row_kind._fields}
        self.held.scatter([rows])

    def posterior(self, coords):
        recorder = Recorder(self.settings.n_draws, self.settings.max_bytes)
        for i in range(self.settings.n_draws):
            drawn = self.model.draw_from_factor(self.factor, Key(self.seed, i))
            recorder.add({name: value[None] for name, value in drawn._asdict().items()})
        attrs = {
            "inference": "mean_field",
            "n_sweeps": self.sweep,
            "seed": str(self.seed),
            "elbo": self.elbo[-1],
            "converged": int(self.converged()),
        }
        groups = posterior_groups(recorder, self._row_moments())
        coords = {**(coords or {}), **thinned_axes(recorder)}
        groups["optimisation"] = {"elbo": np.array(self.elbo)}
        return Posterior.build(groups, self.model.dims, coords, attrs, self.factor)

    def _row_moments(self):
        prior = self.model.expect(self.factor)

        def moments(shard, rows):
            drawn = self.model.draw_described_rows(prior, shard, rows)
            return {
                f"{name}_{what}": function(values, axis=0)
                for name, values in drawn.items()
                for what, function in (("mean", np.mean), ("sd", np.std))
            }

        return concatenate([block[0] for block in self.held.look(moments)])


def _fields(factor):
    return {field.name: getattr(factor, field.name) for field in dataclasses.fields(factor)}


def _warn_not_converged(run):
    warn_user(
        f"mean field did not converge after {run.sweep} sweeps; raise max_sweeps or tolerance",
        ConvergenceWarning,
    )
