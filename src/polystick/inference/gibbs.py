"""Gibbs sampling: repeat a model's local and global steps and keep what they draw.

All chains go in lock step, so that small data still fill the threads, and an interrupted run has as many
draws in each chain. What the schedule asks of a model:

    parameter_type                      -> the class of the parameters
    initial_parameters(shards, key)     -> parameters (a named tuple of arrays)
    prepare(parameters)                 -> prior: what the local steps of one sweep share
    initial_rows(prior, shard, key)     -> rows (a named tuple of arrays, rows first)
    draw_rows(prior, shard, rows, key)  -> (rows, statistics)            local step
    draw_parameters(parameters, statistics, key, ordered_map) -> parameters      global step
    log_likelihood(statistics)          -> number
    describe_rows(shard, rows)          -> name -> array (rows, ...)
    dims                                -> name -> words for the axes

and, if it wants to:

    describe_parameters(parameters)     -> name -> array, what is recorded of them
    settle(parameters, statistics, key, n_burn, ordered_map) -> parameters       global step, while
                                           sweep key.sweep of n_burn is one to forget
    agree(list of parameters, key)      -> the same with common labels, after the last of those

A shard is a block of rows; its `rows` are their ids, which key their random streams. `ordered_map` maps
a function over the threads, with results in order.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polystick.inference.checkpoint import fingerprint, open_checkpoint
from polystick.inference.description import described
from polystick.inference.execution import Serial, concatenate, find_not_finite, one_blas_thread
from polystick.inference.interruption import Interruption, report_interruption
from polystick.inference.posterior import Posterior
from polystick.inference.progress import Monitor
from polystick.inference.recorder import (
    Recorder,
    RowRecorder,
    posterior_groups,
    thinned_axes,
)
from polystick.keys import Key
from polystick.validation import check_integer


@dataclass(frozen=True)
class Gibbs:
    """Draw from the posterior: exact, up to Monte Carlo error.

    Parameters
    ----------
    n_draws : int
        Draws to keep in each chain.
    n_burn : int
        Sweeps to forget first.
    thin : int
        Sweeps between two draws that are kept.
    n_chains : int
        Independent chains. R-hat needs at least two.
    keep : tuple of str
        Names of per-row variables (such as "probabilities") whose draws are kept too; the means and
        standard deviations of all of them are kept anyway.
    max_bytes : int
        A variable whose draws would need more memory is thinned, and its running mean and standard
        deviation are kept.
    """

    n_draws: int = 1000
    n_burn: int = 500
    thin: int = 1
    n_chains: int = 4
    keep: tuple[str, ...] = ()
    max_bytes: int = 2**30

    needs_whole_counts: ClassVar[bool] = True

    def __post_init__(self):
        for name in ("n_draws", "thin", "n_chains", "max_bytes"):
            check_integer(name, getattr(self, name), at_least=1)
        check_integer("n_burn", self.n_burn, at_least=0)
        if not isinstance(self.keep, tuple | list):
            raise TypeError(
                f'keep must be a tuple of names, as ("probabilities",); got {self.keep!r}'
            )

    def run(self, model, shards, *, seed, execution=None, progress=False, checkpoint=None,
            resume=False, every=60.0, coords=None):  # fmt: skip
        """Run the chains and return a `Posterior`."""
        total = self.n_burn + self.n_draws * self.thin
        with execution or Serial() as execution, one_blas_thread():
            run = _Run(self, model, shards, seed, execution)
            saver = open_checkpoint(run, checkpoint, resume, every)
            with Monitor(progress, total, run.sweep) as monitor, Interruption() as interruption:
                while run.sweep < total and not interruption.requested:
                    run.advance()
                    monitor.update(run.sweep, np.mean(run.log_likelihood))
                    if saver and (saver.due() or run.sweep == total):
                        run.save(saver)
            if interruption.requested:
                report_interruption(run, saver)
            return run.posterior(coords)


class _Run:
    """Where the chains stand."""

    def __init__(self, settings, model, shards, seed, execution):
        self.settings, self.model, self.seed, self.sweep = settings, model, seed, 0
        self.held = execution.hold(shards, settings.n_chains)
        self.ordered_map = execution.map
        self.recorder = Recorder(settings.n_draws, settings.max_bytes)
        self.rows = RowRecorder(len(shards))
        self.parameters = list(
            execution.map(lambda key: model.initial_parameters(shards, key), self._keys())
        )
        self.held.step(self._initial_rows, self._priors(), self._keys())
        self.log_likelihood = np.zeros(settings.n_chains)
        self._check_names()

    def advance(self):
        """Make one sweep of every chain, and keep it if it is due."""
        self.sweep += 1
        keys = self._keys()
        statistics = self.held.step(self.model.draw_rows, self._priors(), keys)
        self._draw_parameters(statistics, keys)
        if self.sweep == self.settings.n_burn and hasattr(self.model, "agree"):
            self.parameters = self.model.agree(self.parameters, keys[0])
        self.log_likelihood = np.array([self.model.log_likelihood(s) for s in statistics])
        kept = self.sweep - self.settings.n_burn
        if kept > 0 and kept % self.settings.thin == 0:
            self._record()

    def identity(self, shards):
        """Return what must be the same for a checkpoint to be resumed."""
        return {
            "model": fingerprint(self.model),
            "data": fingerprint(shards),
            "seed": str(self.seed),
            "inference": "gibbs",
            "n_burn": self.settings.n_burn,
            "thin": self.settings.thin,
            "n_chains": self.settings.n_chains,
            "keep": list(self.settings.keep),
        }

    def kept(self):
        """Say what an interruption leaves, or None."""
        n = self.recorder.n_added
        return f"the {n} draws of each chain are kept" if n else None

    def save(self, saver):
        state = {**self.recorder.state(), **(self.rows.state() if self.recorder.n_added else {})}
        for chain, (parameters, rows) in enumerate(zip(self.parameters, self.held.gather())):
            for name, value in parameters._asdict().items():
                state[f"chain{chain}.parameters.{name}"] = value
            for name, value in rows.items():
                state[f"chain{chain}.rows.{name}"] = value
        if saver.save(self.sweep, state, self.recorder.unsaved()):
            self.recorder.mark_saved()

    def restore(self, saver):
        self.sweep, state, chunks = saver.load()
        self.recorder.restore(state, chunks)
        self.rows.restore(state)
        kind, row_kind = self.model.parameter_type, type(self.held.states[0][0])
        names = [f"chain{chain}" for chain in range(self.settings.n_chains)]
        self.parameters = [
            kind(*(state[f"{chain}.parameters.{name}"] for name in kind._fields)) for chain in names
        ]
        self.held.scatter(
            [{name: state[f"{chain}.rows.{name}"] for name in row_kind._fields} for chain in names]
        )

    def posterior(self, coords):
        groups = posterior_groups(self.recorder, self.rows.named_moments())
        groups["sample_stats"] = {"log_likelihood": self.recorder.draws()["log_likelihood"]}
        attrs = {"inference": "gibbs", "n_sweeps": self.sweep, "seed": str(self.seed)}
        coords = {**(coords or {}), **thinned_axes(self.recorder)}
        return Posterior.build(groups, self.model.dims, coords, attrs)

    def _keys(self):
        return [Key(self.seed, self.sweep).chain(c) for c in range(self.settings.n_chains)]

    def _priors(self):
        return [self.model.prepare(parameters) for parameters in self.parameters]

    def _initial_rows(self, prior, shard, _, key):
        return self.model.initial_rows(prior, shard, key), _Nothing()

    def _check_names(self):
        known = self.model.describe_rows(self.held.shards[0], self.held.states[0][0])
        unknown = sorted({*self.settings.keep} - ({*known} - {*self.model.parameter_type._fields}))
        if unknown:
            raise ValueError(
                f"keep must name variables of the rows ({', '.join(known)}); got {', '.join(unknown)}"
            )

    def _draw_parameters(self, statistics, keys):
        for chain, (total, key) in enumerate(zip(statistics, keys)):
            where = f"in sweep {self.sweep} of chain {chain}"
            try:
                parameters = self._global_step(self.parameters[chain], total, key)
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
            self.parameters[chain] = parameters

    def _global_step(self, parameters, statistics, key):
        if self.sweep <= self.settings.n_burn and hasattr(self.model, "settle"):
            n_burn = self.settings.n_burn
            return self.model.settle(parameters, statistics, key, n_burn, self.ordered_map)
        return self.model.draw_parameters(parameters, statistics, key, self.ordered_map)

    def _record(self):
        chains = [described(self.model, parameters) for parameters in self.parameters]
        values = {name: np.stack([c[name] for c in chains]) for name in chains[0]}
        kept = []
        looked = self.held.look(self.model.describe_rows)
        for block, over_chains in enumerate(looked):
            self.rows.add(block, over_chains)
            kept.append([{n: named[n] for n in self.settings.keep} for named in over_chains])
        if self.settings.keep:
            chains = [concatenate(blocks) for blocks in zip(*kept)]
            values |= {n: np.stack([c[n] for c in chains]) for n in self.settings.keep}
        self.recorder.add({**values, "log_likelihood": self.log_likelihood})


class _Nothing(tuple):
    """Statistics of a step that has none."""

    __slots__ = ()
