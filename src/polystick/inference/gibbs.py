"""Gibbs sampling: repeat a model's local and global steps and keep what they draw.

All chains go in lock step, so that small data still fill the threads, and an interrupted run has as many
draws in each chain. `protocols.GibbsModel` is what the schedule asks of a model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from polystick.inference.checkpoint import Checkpoint, fingerprint, open_checkpoint
from polystick.inference.convergence import (
    MIN_ESS,
    NOTHING,
    RHAT_LIMIT,
    Worst,
    look_for_worst,
    rows_agree,
    with_rhat,
    worst_of,
)
from polystick.inference.description import described
from polystick.inference.execution import Serial, one_blas_thread
from polystick.inference.held import find_not_finite
from polystick.inference.interruption import Interruption, report_interruption
from polystick.inference.looks import RowLook, joined_looks, said_of
from polystick.inference.moving import moves, moves_together
from polystick.inference.posterior import Posterior
from polystick.inference.progress import Monitor, Show
from polystick.inference.protocols import (
    Array,
    Execution,
    Extras,
    GibbsModel,
    L,
    P,
    R,
    S,
    T,
    check_model,
)
from polystick.inference.recorder import (
    WATCHED,
    Recorder,
    Running,
    named_moments,
    posterior_groups,
    thinned_axes,
)
from polystick.inference.watching import Watching
from polystick.keys import Key
from polystick.validation import check_integer, warn_user

_GROWTH = 1.25  # of the draws between two looks
_MOST = 10  # times n_draws


@dataclass(frozen=True)
class Gibbs:
    """Draw from the posterior: exact, up to Monte Carlo error.

    Parameters
    ----------
    n_draws : int
        Draws to keep in each chain; with `min_ess`, those to keep at least.
    n_burn : int
        Sweeps to forget first.
    thin : int
        Sweeps between two draws that are kept.
    n_chains : int
        Independent chains. One chain can't tell that another would have ended elsewhere.
    keep : tuple of str
        Names of per-row variables (such as "probabilities") whose draws are kept too; the means and
        standard deviations of all of them are kept anyway.
    max_bytes : int
        A variable whose draws would need more memory is thinned, and its running mean and standard
        deviation are kept.
    min_ess : int or None
        Go on until each quantity that is diagnosed has so many effective draws in all chains together, and
        an R-hat within its limit. None: `n_draws`, whatever they are worth.
    max_draws : int or None
        Draws of each chain to stop at in any case; None is ten times `n_draws`.
    """

    n_draws: int = 1000
    n_burn: int = 500
    thin: int = 1
    n_chains: int = 4
    keep: tuple[str, ...] = ()
    max_bytes: int = 2**30
    min_ess: int | None = None
    max_draws: int | None = None

    needs_whole_counts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("n_draws", "thin", "n_chains", "max_bytes"):
            check_integer(name, getattr(self, name), at_least=1)
        check_integer("n_burn", self.n_burn, at_least=0)
        if not isinstance(self.keep, tuple | list):
            raise TypeError(
                f'keep must be a tuple of names, as ("probabilities",); got {self.keep!r}'
            )
        for name in ("min_ess", "max_draws"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), at_least=1)
        if self.max_draws is not None and self.min_ess is None:
            raise ValueError(
                f"max_draws must come with min_ess, which says when to stop before; got {self.max_draws} "
                "alone; a fixed length is n_draws"
            )

    @property
    def most_draws(self) -> int:
        """Draws that each chain has at the most."""
        if self.min_ess is None:
            return self.n_draws
        return _MOST * self.n_draws if self.max_draws is None else self.max_draws

    def is_look(self, n_draws: int) -> bool:
        """Tell whether so many draws of each chain are looked at: a rule that no clock or thread changes."""
        look = min(self.n_draws, self.most_draws)
        while look < min(n_draws, self.most_draws):
            look = min(max(look + 1, int(_GROWTH * look)), self.most_draws)
        return look == n_draws

    def run(
        self,
        model: GibbsModel[S, P, L, R, T],
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
        """Run the chains and return a `Posterior`."""
        check_model(model, "Gibbs")
        total = self.n_burn + self.most_draws * self.thin
        with execution or Serial() as mapping, one_blas_thread():
            run = _Run(self, model, shards, seed, mapping)
            saving = open_checkpoint(run, checkpoint, resume, every, coords)
            with saving as saver, Interruption() as interruption:
                with Monitor(progress, total, run.sweep) as monitor:
                    while not (run.finished() or interruption.requested):
                        run.advance()
                        likelihood = float(np.mean(run.log_likelihood))
                        monitor.update(run.sweep, likelihood, run.progress())
                        if saver and (saver.due() or run.finished()):
                            run.save(saver)
                if interruption.requested:
                    report_interruption(run, saver)
            posterior = run.posterior(coords)
        trouble = posterior.verdict().trouble()
        if trouble and not interruption.requested:
            warn_user(trouble, ConvergenceWarning)
        return posterior


class _Run(Generic[S, P, L, R, T]):
    """Where the chains stand."""

    def __init__(
        self,
        settings: Gibbs,
        model: GibbsModel[S, P, L, R, T],
        shards: Sequence[S],
        seed: int,
        execution: Execution,
    ) -> None:
        self.settings, self.model, self.seed, self.sweep = settings, model, seed, 0
        self.shards, self.ordered_map = shards, execution.map
        self.held = execution.hold(model, shards, settings.n_chains, moves_together(model))
        self.recorder = Recorder(settings.most_draws, settings.max_bytes)
        self.watching = Watching(model, shards)
        self.look = RowLook(tuple(settings.keep), self.watching.watch)
        self.seen = (0, NOTHING, NOTHING)  # draws at the last look, the worst R-hat and ESS then
        self.parameters: list[P] = list(
            execution.map(lambda key: model.initial_parameters(shards, key), self._keys())
        )
        self.held.start("initial_rows", self._priors(), self._keys())
        self.log_likelihood = np.zeros(settings.n_chains)
        self._check_names()

    def advance(self) -> None:
        """Make one sweep of every chain, and keep it if it is due."""
        self.sweep += 1
        keys, kept = self._keys(), self.sweep - self.settings.n_burn
        due = kept > 0 and kept % self.settings.thin == 0
        if moves(self.model):
            self.parameters = self.held.move(self.parameters, keys)
        look = self.look if due else None
        statistics, seen = self.held.step("draw_rows", self._priors(), keys, look=look)
        self._draw_parameters(statistics, keys)
        if self.sweep == self.settings.n_burn and hasattr(self.model, "agree"):
            self.parameters = self.extras.agree(self.parameters, keys[0])
        self.log_likelihood = np.array([self.model.log_likelihood(s) for s in statistics])
        if due:
            self._record(seen)

    def finished(self) -> bool:
        """Tell whether there are draws enough, by their number or by what they are worth."""
        n, settings = self.recorder.n_added, self.settings
        if n >= settings.most_draws:
            return True
        if settings.min_ess is None or not n or not settings.is_look(n):
            return False
        if self.seen[0] != n:
            self.seen = (n, *self._look())
        _, rhat, ess = self.seen
        bad = rhat.value > self.rhat_limit or ess.value < settings.min_ess
        given = settings.n_chains, self.rhat_limit, settings.min_ess
        return not bad and rows_agree(self._row_rhats(self.held.moments()), *given)

    def progress(self) -> str | None:
        """Say how far a run is that ends when it is done."""
        n, rhat, ess = self.seen
        if not n:
            return None
        return (
            f"ESS {ess.value:.0f} of {self.settings.min_ess}, R-hat {rhat.value:.2f} ({rhat.name})"
        )

    @property
    def rhat_limit(self) -> float:
        return float(getattr(self.model, "rhat_limit", RHAT_LIMIT))

    def _look(self) -> tuple[Worst, Worst]:
        names, draws = getattr(self.model, "identified", None), self.recorder.draws()
        known = {n for n in draws if n.startswith(WATCHED) or n == "log_likelihood"}
        known |= {n for n in draws if names is None or n in names}
        found, _ = look_for_worst({name: draws[name] for name in draws if name in known})
        return worst_of(found, lambda name, entry: name.removeprefix(WATCHED))

    def _row_rhats(self, moments: Mapping[str, Running]) -> dict[str, Array]:
        names = getattr(self.model, "identified", None)
        return {
            f"{name}_rhat": running.rhat()
            for name, running in moments.items()
            if names is None or name in names
        }

    def identity(self) -> dict[str, object]:
        """Return what must be the same for a checkpoint to be resumed."""
        return {
            "model": fingerprint(self.model),
            "data": fingerprint(self.shards),
            "seed": str(self.seed),
            "inference": "gibbs",
            "n_burn": self.settings.n_burn,
            "thin": self.settings.thin,
            "n_chains": self.settings.n_chains,
            "keep": list(self.settings.keep),
        }

    def kept(self) -> str | None:
        """Say what an interruption leaves, or None."""
        n = self.recorder.n_added
        return f"the {n} draws of each chain are kept" if n else None

    def save(self, saver: Checkpoint) -> bool:
        state = self.recorder.state()
        for chain, parameters in enumerate(self.parameters):
            for name, value in parameters._asdict().items():
                state[f"chain{chain}.parameters.{name}"] = value
        saved = saver.save(self.sweep, state, self.recorder.unsaved(), self.held)
        if saved:
            self.recorder.mark_saved()
        return saved

    def restore(self, saver: Checkpoint) -> None:
        self.sweep, state, chunks = saver.load(self.held)
        self.recorder.restore(state, chunks)
        kind: Any = self.model.parameter_type
        names = [f"chain{chain}" for chain in range(self.settings.n_chains)]
        self.parameters = [
            kind(*(state[f"{chain}.parameters.{name}"] for name in kind._fields)) for chain in names
        ]

    def posterior(self, coords: Mapping[str, Any] | None) -> Posterior:
        draws = self.recorder.draws()
        likeliest = None
        if getattr(self.model, "has_labels", False) and "log_likelihood" in draws:
            likeliest = int(draws["log_likelihood"].mean(axis=1).argmax())
        moments = self.held.moments()
        rows = named_moments(moments, likeliest) | self._row_rhats(moments)
        groups = posterior_groups(self.recorder, rows, likeliest)
        groups["sample_stats"] = {"total_log_likelihood": draws["log_likelihood"]}
        if "watched" in groups:
            groups["watched"] = self.watching.described(groups["watched"])
        named = {**(coords or {}), **thinned_axes(self.recorder)}
        named |= self.watching.coords(named)
        return Posterior.build(groups, self.model.dims, named, self._attrs(draws))

    def _attrs(self, draws: Mapping[str, Array]) -> dict[str, object]:
        names = getattr(self.model, "identified", None)
        return {
            "inference": "gibbs",
            "min_ess": self.settings.min_ess or MIN_ESS,
            "n_sweeps": self.sweep,
            "seed": str(self.seed),
            "identified": "*" if names is None else " ".join(names),
            "rhat_limit": self.rhat_limit,
            "advice": getattr(self.model, "advice", ""),
            "told": self._told(draws),
            "finished": int(self.finished()),
        }

    def _told(self, draws: Mapping[str, Array]) -> str:
        said = self.extras.tell_chains(draws) if hasattr(self.model, "tell_chains") else ""
        return with_rhat(said, draws["log_likelihood"]) if said else ""

    @property
    def extras(self) -> Extras[S, P, R, T, Any]:
        """The model, for what it was found to have besides."""
        return cast(Extras[S, P, R, T, Any], self.model)

    def _keys(self) -> list[Key]:
        return [Key(self.seed, self.sweep).chain(c) for c in range(self.settings.n_chains)]

    def _priors(self) -> list[L]:
        return [self.model.prepare(parameters) for parameters in self.parameters]

    def _check_names(self) -> None:
        known = next(iter(self.held.describe(said_of)))
        unknown = sorted({*self.settings.keep} - ({*known} - {*self.parameters[0]._fields}))
        if unknown:
            raise ValueError(
                f"keep must name variables of the rows ({', '.join(known)}); got {', '.join(unknown)}"
            )

    def _draw_parameters(self, statistics: Sequence[T], keys: Sequence[Key]) -> None:
        """Make the global step of each chain, side by side; it may map over the threads."""

        def draw(chain: int) -> P:
            where = f"in sweep {self.sweep} of chain {chain}"
            try:
                parameters = self._global_step(
                    self.parameters[chain], statistics[chain], keys[chain]
                )
            except (ValueError, np.linalg.LinAlgError) as error:
                raise FloatingPointError(
                    f"the parameters could not be drawn {where} ({error}); try a stronger prior"
                ) from error
            culprit = find_not_finite(parameters)
            if culprit is not None:
                raise FloatingPointError(
                    f"{culprit.variable} (entry {culprit.row}) is not finite {where}; "
                    "try a stronger prior"
                )
            return parameters

        self.parameters = list(self.ordered_map(draw, range(len(keys))))

    def _global_step(self, parameters: P, statistics: T, key: Key) -> P:
        if self.sweep <= self.settings.n_burn and hasattr(self.model, "settle"):
            n_burn = self.settings.n_burn
            return self.extras.settle(parameters, statistics, key, n_burn, self.ordered_map)
        return self.model.draw_parameters(parameters, statistics, key, self.ordered_map)

    def _record(self, seen: Sequence[Sequence[Any]]) -> None:
        chains = [described(self.model, parameters) for parameters in self.parameters]
        values = {name: np.stack([c[name] for c in chains]) for name in chains[0]}
        kept, taken = zip(*map(joined_looks, seen))
        values |= {n: np.stack([each[n] for each in kept]) for n in self.settings.keep}
        values |= self.watching.told(self.parameters, chains, taken)
        self.recorder.add({**values, "log_likelihood": self.log_likelihood})
