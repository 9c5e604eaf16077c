"""What the variational schedules share: a step, where an ascent stands, its checkpoint and its posterior.

`protocols.VariationalModel` is what all of them ask of a model.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast

import numpy as np

from polystick.inference.checkpoint import Checkpoint, fingerprint, open_checkpoint
from polystick.inference.description import described
from polystick.inference.interruption import Interruption, report_interruption
from polystick.inference.looks import MomentLook, sizes_of
from polystick.inference.posterior import Posterior
from polystick.inference.progress import Monitor, Show
from polystick.inference.protocols import (
    Array,
    BatchModel,
    Execution,
    F,
    Held,
    L,
    P,
    R,
    S,
    T,
    VariationalModel,
)
from polystick.inference.recorder import Recorder, posterior_groups, thinned_axes
from polystick.keys import Key

FEWEST_DRAWS, MOST_DRAWS = 32, 1000


class Drawn(Protocol):
    """Settings of how many draws of the factor there shall be."""

    @property
    def n_draws(self) -> int | None: ...

    @property
    def max_bytes(self) -> int: ...


Settings = TypeVar("Settings", bound=Drawn)


class Drawable(Protocol):
    """A run or a stream, as its posterior sees it."""

    seed: int
    elbo: list[float]

    @property
    def settings(self) -> Drawn: ...

    @property
    def model(self) -> VariationalModel[Any, Any, Any, Any, Any, Any]: ...

    @property
    def factor(self) -> Any: ...


class Ascent(Generic[S, P, L, R, T, F, Settings]):
    """Where a run stands: the factor of the parameters, those of the rows, and the bound so far."""

    inference = ""

    def __init__(
        self,
        settings: Settings,
        model: VariationalModel[S, P, L, R, T, F],
        shards: Sequence[S],
        seed: int,
        execution: Execution,
    ) -> None:
        self.settings, self.model, self.seed, self.sweep = settings, model, seed, 0
        self.shards = shards
        self.elbo: list[float] = []
        self.n_rows_of, self.n_units = sizes_of(shards)
        self.n_rows = sum(self.n_rows_of)
        self.factor = model.initial_factor(shards, Key(seed))
        self.held = hold_rows(model, self.factor, shards, execution)

    def identity(self) -> dict[str, object]:
        """Return what must be the same for a checkpoint to be resumed."""
        return {
            "model": fingerprint(self.model),
            "data": fingerprint(self.shards),
            "seed": str(self.seed),
            "inference": self.inference.replace("_", " "),
        }

    def kept(self) -> str | None:
        """Say what an interruption leaves, or None."""
        return f"the factors of {self.sweep} sweeps are kept" if self.sweep else None

    def save(self, saver: Checkpoint) -> bool:
        state = {**flattened(self.factor), "elbo": np.array(self.elbo)}
        return saver.save(self.sweep, state, {}, self.held)

    def restore(self, saver: Checkpoint) -> None:
        self.sweep, state, _ = saver.load(self.held)
        self.elbo = state["elbo"].tolist()
        self.factor = rebuilt(self.factor, state)

    def attrs(self) -> dict[str, object]:
        """Return what the posterior says of the run."""
        return {"elbo": float(self.elbo[-1]) if self.elbo else np.nan}

    def advance(self) -> None:
        """Make one step."""
        raise NotImplementedError

    def finished(self) -> bool:
        """Tell whether it was the last."""
        raise NotImplementedError

    def posterior(self, coords: Mapping[str, Any] | None) -> Posterior:
        attrs = {"inference": self.inference, "n_sweeps": self.sweep, "seed": str(self.seed)}
        return build_posterior(self, {**attrs, **self.attrs()}, coords, self._row_moments())

    def _row_moments(self) -> dict[str, Array]:
        look = MomentLook(self.model.expect(self.factor))
        units, whole, n_done = np.empty(self.n_units, np.uint64), dict[str, Array](), 0
        for ids, moments in self.held.describe(look, last=True):
            place = slice(n_done, n_done + len(ids))
            units[place], n_done = ids, place.stop
            for name, value in moments.items():
                if name not in whole:
                    whole[name] = np.empty((self.n_units, *value.shape[1:]), value.dtype)
                whole[name][place] = value
        if (np.diff(units.astype(np.int64)) <= 0).any():
            order = np.argsort(units)
            for value in whole.values():
                reorder(value, order)
        return whole


def reorder(values: Array, order: Array) -> None:
    """Put rows in another order, without room for all of them twice."""
    columns: Array = values.reshape(len(values), -1)
    for j in range(columns.shape[1]):
        columns[:, j] = columns[order, j]


def hold_rows(
    model: VariationalModel[S, P, L, R, T, F], factor: F, shards: Sequence[S], execution: Execution
) -> Held:
    """Return the blocks with the factors that their rows start from."""
    held = execution.hold(model, shards)
    held.start("initial_row_factors", [model.expect(factor)])
    return held


def take_step(
    model: VariationalModel[S, P, L, R, T, F],
    factor: F,
    held: Held,
    key: Key,
    blocks: Sequence[int] | None = None,
    scale: float | None = None,
    rate: float | None = None,
) -> tuple[F, float]:
    """Update the rows of the blocks, then the factor; return it and the bound before.

    blocks : numbers of the blocks; None: all
    scale  : how many times more rows the blocks stand for; None: they are all there is
    rate   : how far to go from the old factor to the new one; None: all the way
    """
    (statistics,) = held.step("update_rows", [model.expect(factor)], [key], blocks).statistics
    if scale is not None:
        statistics = cast(BatchModel[S, P, L, R, T, F], model).scale(statistics, scale)
    bound = float(model.elbo(factor, statistics))
    if not np.isfinite(bound):
        raise FloatingPointError(
            f"the bound is not finite after sweep {key.sweep}; try a stronger prior"
        )
    try:
        new = model.update_factor(factor, statistics)
        if rate is not None:
            new = cast(BatchModel[S, P, L, R, T, F], model).blend(factor, new, rate)
        return new, bound
    except (ValueError, np.linalg.LinAlgError) as error:
        raise FloatingPointError(
            f"the factor of the parameters broke down in sweep {key.sweep} ({error}); "
            "try a stronger prior"
        ) from error


def ascend(
    run: Ascent[S, P, L, R, T, F, Settings],
    total: int,
    progress: Show,
    checkpoint: str | Path | None,
    resume: bool,
    every: float,
    coords: Mapping[str, Any] | None,
) -> bool:
    """Advance a run until it has finished; tell whether it did, or was interrupted."""
    saving = open_checkpoint(run, checkpoint, resume, every, coords)
    with saving as saver, Interruption() as interruption:
        with Monitor(progress, total, done=run.sweep, label="bound") as monitor:
            while not run.finished() and not interruption.requested:
                run.advance()
                monitor.update(run.sweep, run.elbo[-1])
                if saver and (saver.due() or run.finished()):
                    run.save(saver)
        if interruption.requested:
            report_interruption(run, saver)
    return not interruption.requested


def build_posterior(
    run: Drawable,
    attrs: Mapping[str, object],
    coords: Mapping[str, Any] | None = None,
    row_moments: Mapping[str, Array] | None = None,
) -> Posterior:
    """Return a `Posterior` of draws from the factor of a run or a stream."""
    recorder = _draw(run)
    groups = posterior_groups(recorder, row_moments or {})
    groups["optimisation"] = {"elbo": np.array(run.elbo)}
    named = {**(coords or {}), **thinned_axes(recorder)}
    return Posterior.build(groups, run.model.dims, named, attrs, run.factor)


def _draw(run: Drawable) -> Recorder:
    def draw(i: int) -> dict[str, Array]:
        parameters = run.model.draw_from_factor(run.factor, Key(run.seed, i))
        return {name: value[None] for name, value in described(run.model, parameters).items()}

    first = draw(0)
    most: int = getattr(run.model, "most_draws", MOST_DRAWS)
    n_draws = run.settings.n_draws or _draws_that_fit(first, run.settings.max_bytes, most)
    recorder = Recorder(n_draws, run.settings.max_bytes)
    recorder.add(first)
    for i in range(1, n_draws):
        recorder.add(draw(i))
    return recorder


def _draws_that_fit(values: Mapping[str, Array], max_bytes: int, most: int) -> int:
    each = sum(value.nbytes for value in values.values())
    return min(most, max(FEWEST_DRAWS, max_bytes // 4 // each))


def flattened(factor: Any, prefix: str = "factor") -> dict[str, Array]:
    """Return dotted name -> array for all that a factor is made of."""
    arrays: dict[str, Array] = {}
    for field in dataclasses.fields(factor):
        name, value = f"{prefix}.{field.name}", getattr(factor, field.name)
        if dataclasses.is_dataclass(value):
            arrays |= flattened(value, name)
        else:
            arrays[name] = np.asarray(value)
    return arrays


def rebuilt(like: F, arrays: Mapping[str, Array], prefix: str = "factor") -> F:
    """Undo `flattened`, for a factor made like this one."""
    parts = {}
    for field in dataclasses.fields(cast(Any, like)):
        name, value = f"{prefix}.{field.name}", getattr(like, field.name)
        nested = dataclasses.is_dataclass(value)
        parts[field.name] = rebuilt(value, arrays, name) if nested else arrays[name][()]
    return cast(F, dataclasses.replace(cast(Any, like), **parts))
