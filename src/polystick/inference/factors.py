"""What the variational schedules share: a step, where an ascent stands, its checkpoint and its posterior.

A factor is a dataclass of arrays, numbers and again such dataclasses, where it is made of several laws.
What all of them ask of a model, besides `dims`:

    initial_factor(shards, key)             -> factor of the parameters
    expect(factor)                          -> prior: what the local steps of one sweep share
    initial_row_factors(prior, shard)       -> row factors (a named tuple of arrays, rows first)
    update_rows(prior, shard, rows, key)    -> (row factors, expected statistics)     local step
    update_factor(factor, statistics)       -> factor                                 global step
    elbo(factor, statistics)                -> the bound at the factor the statistics were made with
    draw_from_factor(factor, key)           -> parameters
    describe_parameters(parameters)         -> name -> array, what is recorded; by default their fields
    draw_described_rows(prior, shard, rows) -> name -> array (draw, rows, ...), from the row factors

Where rows are sequences a shard has `steps`, the ids of their steps, besides `rows`: steps are then what is
described, and what a gain is shared by.
"""

import dataclasses

import numpy as np

from polystick.inference.checkpoint import fingerprint, open_checkpoint
from polystick.inference.description import described
from polystick.inference.execution import concatenate
from polystick.inference.interruption import Interruption, report_interruption
from polystick.inference.posterior import Posterior
from polystick.inference.progress import Monitor
from polystick.inference.recorder import Recorder, posterior_groups, thinned_axes
from polystick.keys import Key

FEWEST_DRAWS, MOST_DRAWS = 32, 1000


class Ascent:
    """Where a run stands: the factor of the parameters, those of the rows, and the bound so far."""

    inference = ""

    def __init__(self, settings, model, shards, seed, execution):
        self.settings, self.model, self.seed, self.sweep = settings, model, seed, 0
        self.elbo: list[float] = []
        self.n_rows = sum(len(shard.rows) for shard in shards)
        self.n_units = sum(len(units_of(shard)) for shard in shards)
        self.factor = model.initial_factor(shards, Key(seed))
        self.held = hold_rows(model, self.factor, shards, execution)

    def identity(self, shards):
        """Return what must be the same for a checkpoint to be resumed."""
        return {
            "model": fingerprint(self.model),
            "data": fingerprint(shards),
            "seed": str(self.seed),
            "inference": self.inference.replace("_", " "),
        }

    def kept(self):
        """Say what an interruption leaves, or None."""
        return f"the factors of {self.sweep} sweeps are kept" if self.sweep else None

    def save(self, saver):
        rows = {f"rows.{name}": value for name, value in self.held.gather()[0].items()}
        state = {**flattened(self.factor), **rows, "elbo": np.array(self.elbo)}
        saver.save(self.sweep, state, {})

    def restore(self, saver):
        self.sweep, state, _ = saver.load()
        self.elbo = list(state["elbo"])
        self.factor = rebuilt(self.factor, state)
        names = type(self.held.states[0][0])._fields
        self.held.scatter([{name: state[f"rows.{name}"] for name in names}])

    def attrs(self):
        """Return what the posterior says of the run."""
        return {"elbo": self.elbo[-1]}

    def posterior(self, coords):
        attrs = {"inference": self.inference, "n_sweeps": self.sweep, "seed": str(self.seed)}
        attrs |= self.attrs()
        return build_posterior(self, attrs, coords, self._row_moments())

    def _row_moments(self):
        prior = self.model.expect(self.factor)

        def moments(shard, rows):
            drawn = self.model.draw_described_rows(prior, shard, rows)
            return {
                f"{name}_{what}": function(values, axis=0)
                for name, values in drawn.items()
                for what, function in (("mean", np.mean), ("sd", np.std))
            }

        found = concatenate([block[0] for block in self.held.look(moments)])
        order = np.argsort(np.concatenate([units_of(shard) for shard in self.held.shards]))
        return {name: value[order] for name, value in found.items()}


def units_of(shard):
    """Return the ids of the rows of a shard, or of their steps where they are sequences."""
    return getattr(shard, "steps", shard.rows)


def hold_rows(model, factor, shards, execution):
    """Return the blocks with the factors that their rows start from."""
    held, prior = execution.hold(shards), model.expect(factor)
    started = execution.map(lambda shard: model.initial_row_factors(prior, shard), shards)
    held.states = [list(started)]
    return held


def take_step(model, factor, held, key, blocks=None, scale=None, rate=None):
    """Update the rows of the blocks, then the factor; return it and the bound before.

    blocks : numbers of the blocks; None: all
    scale  : how many times more rows the blocks stand for; None: they are all there is
    rate   : how far to go from the old factor to the new one; None: all the way
    """
    (statistics,) = held.step(model.update_rows, [model.expect(factor)], [key], blocks)
    if scale is not None:
        statistics = model.scale(statistics, scale)
    bound = float(model.elbo(factor, statistics))
    if not np.isfinite(bound):
        raise FloatingPointError(
            f"the bound is not finite after sweep {key.sweep}; try a stronger prior"
        )
    try:
        new = model.update_factor(factor, statistics)
        return (new if rate is None else model.blend(factor, new, rate)), bound
    except (ValueError, np.linalg.LinAlgError) as error:
        raise FloatingPointError(
            f"the factor of the parameters broke down in sweep {key.sweep} ({error}); "
            "try a stronger prior"
        ) from error


def ascend(run, total, progress, checkpoint, resume, every):
    """Advance a run until it has finished; tell whether it did, or was interrupted."""
    saver = open_checkpoint(run, checkpoint, resume, every)
    with (
        Monitor(progress, total, done=run.sweep, label="bound") as monitor,
        Interruption() as interruption,
    ):
        while not run.finished() and not interruption.requested:
            run.advance()
            monitor.update(run.sweep, run.elbo[-1])
            if saver and (saver.due() or run.finished()):
                run.save(saver)
    if interruption.requested:
        report_interruption(run, saver)
    return not interruption.requested


def build_posterior(run, attrs, coords=None, row_moments=None):
    """Return a `Posterior` of draws from the factor of a run or a stream."""
    recorder = _draw(run)
    groups = posterior_groups(recorder, row_moments or {})
    groups["optimisation"] = {"elbo": np.array(run.elbo)}
    coords = {**(coords or {}), **thinned_axes(recorder)}
    return Posterior.build(groups, run.model.dims, coords, attrs, run.factor)


def _draw(run):
    def draw(i):
        parameters = run.model.draw_from_factor(run.factor, Key(run.seed, i))
        return {name: value[None] for name, value in described(run.model, parameters).items()}

    first = draw(0)
    n_draws = run.settings.n_draws or _draws_that_fit(first, run.settings.max_bytes)
    recorder = Recorder(n_draws, run.settings.max_bytes)
    recorder.add(first)
    for i in range(1, n_draws):
        recorder.add(draw(i))
    return recorder


def _draws_that_fit(values, max_bytes):
    each = sum(value.nbytes for value in values.values())
    return min(MOST_DRAWS, max(FEWEST_DRAWS, max_bytes // 4 // each))


def flattened(factor, prefix="factor"):
    """Return dotted name -> array for all that a factor is made of."""
    arrays: dict[str, np.ndarray] = {}
    for field in dataclasses.fields(factor):
        name, value = f"{prefix}.{field.name}", getattr(factor, field.name)
        if dataclasses.is_dataclass(value):
            arrays |= flattened(value, name)
        else:
            arrays[name] = np.asarray(value)
    return arrays


def rebuilt(like, arrays, prefix="factor"):
    """Undo `flattened`, for a factor made like this one."""
    parts = {}
    for field in dataclasses.fields(like):
        name, value = f"{prefix}.{field.name}", getattr(like, field.name)
        nested = dataclasses.is_dataclass(value)
        parts[field.name] = rebuilt(value, arrays, name) if nested else arrays[name][()]
    return dataclasses.replace(like, **parts)
