"""What every face has: one way to run a fit, the settings of its schedule as parameters, and tables.

A fit checks what it is run by, reads the data, makes a model and hands it to the schedule::

    with all_or_nothing(self):
        fit = self._begin(resume)
        ...
        self._run(fit, model, model.shards(counts), coords)
"""

import dataclasses
import os
import pathlib
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import TransformerMixin

from polystick.arguments import PathLike
from polystick.estimators.explored import Explored
from polystick.estimators.seeds import seed_for
from polystick.estimators.tables import TABLES
from polystick.inference.execution import execution_of_fit
from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from polystick.inference.stochastic import StochasticVI
from polystick.storage import save
from polystick.validation import check_inference, check_running
from polystick.warmup import before_first_fit

__all__ = ["Face", "Fit", "Transformer"]

_OF_INFERENCE = "inference__"


class Fit(NamedTuple):
    """How a fit is run."""

    inference: Gibbs | MeanField | StochasticVI
    seed: int
    resume: bool


class Face(Explored):
    """A model as scikit-learn knows it.

    One that is run by a schedule has inference, random_state, n_jobs, progress, checkpoint and
    checkpoint_every, and says which `_schedules` its model has and which is the default. One that is not has
    none of these parameters.
    """

    _schedules: ClassVar[tuple[type, ...]] = (Gibbs, MeanField)
    _default: ClassVar = Gibbs()
    _listed: ClassVar[str] = ""  # in the list of the warm-up; unlisted kernels compile when called
    _kept: ClassVar[tuple[str, ...]] = ()  # names of rows whose draws predictions need
    _axes: ClassVar[tuple[str, str]] = ("row", "category")  # of predictions, where no names came in

    inference: Any
    random_state: Any
    n_jobs: int | None = None
    progress: bool | Callable | None = False
    checkpoint: str | os.PathLike | None = None
    checkpoint_every: float = 60.0

    def _run_by(
        self,
        inference: Any,
        random_state: Any,
        n_jobs: Any,
        progress: Any,
        checkpoint: Any,
        every: Any,
    ) -> None:
        """Store what all constructors take that say how a fit is run."""
        self.inference, self.random_state, self.n_jobs = inference, random_state, n_jobs
        self.progress, self.checkpoint, self.checkpoint_every = progress, checkpoint, every

    # one way to run a fit

    def _begin(self, resume: bool) -> Any:
        """Check how a fit is to be run, before any data are looked at."""
        self._check_running()
        return Fit(self._schedule(), seed_for(self, resume), resume)

    def _run(self, fit: Any, model: Any, shards: Any, coords: Any) -> None:
        """Run a model on shards, and keep what comes of it."""
        if isinstance(fit.inference, Gibbs):
            before_first_fit(self._kernels(), self.progress)
        self.posterior_ = fit.inference.run(
            model,
            shards,
            seed=fit.seed,
            execution=execution_of_fit(self.n_jobs),
            progress=self.progress,
            checkpoint=self.checkpoint,
            resume=fit.resume,
            every=self.checkpoint_every,
            coords=coords,
        )
        self.model_, self.inference_, self.seed_ = model, fit.inference, fit.seed
        self.n_iter_ = self.posterior_.tree.attrs["n_sweeps"]

    def _kernels(self):
        """Return the name that the kernels of a fit have in the list of the warm-up."""
        is_softmax = getattr(self, "link", None) == "softmax"
        return f"softmax-{self._listed}" if is_softmax else self._listed

    def _refuse_resume(self, resume):
        """Raise where there is no run that could be resumed."""
        if resume:
            raise ValueError(
                f"{type(self).__name__} makes no run that could be resumed; got resume={resume!r}: leave "
                "it out"
            )

    def _schedule(self):
        """Return the schedule that was asked for, which must be one that the model has."""
        inference = check_inference(self._asked_schedule())
        if not isinstance(inference, self._schedules):
            names = ", ".join(f"{schedule.__name__}(...)" for schedule in self._schedules)
            raise TypeError(
                f"{type(self).__name__} needs inference={names} or None; got {inference!r}"
            )
        if self._kept and isinstance(inference, Gibbs):
            keep = tuple(dict.fromkeys((*inference.keep, *self._kept)))
            return dataclasses.replace(inference, keep=keep)
        return inference

    def _asked_schedule(self):
        return self._default_inference() if self.inference is None else self.inference

    def _default_inference(self):
        return self._default

    def _check_running(self):
        check_running(self.n_jobs, self.progress, self.checkpoint, self.checkpoint_every)

    # files

    def save(
        self, path: PathLike, *, draws: np.ndarray | None = None, posterior: bool = False
    ) -> pathlib.Path:
        """Write the fitted model to a file that `polystick.load` reads, whole or not at all; return its path.

        It holds the parameters and all that predictions, scores, forecasts and tables need, as numbers and
        texts with checksums, and nothing that could be run. Any process that loads it gets the same bits from
        it, and the bits that this model gives if its draws are all in there. Progress and checkpoint are left
        out.

        Parameters
        ----------
        path : path
            Such as "topics.polystick".
        draws : int or None
            Draws of all chains together, at most, that are kept of what is large. None keeps all of them if
            they take 32 MB or less, or else as many as that.
        posterior : bool
            Keep every draw, whatever it takes.
        """
        return save(self, path, draws=draws, posterior=posterior)

    # the settings of a schedule are parameters too

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; the settings of a schedule that was given are `inference__n_draws` etc."""
        params = super().get_params(deep=deep)
        if deep:
            settings = _settings(params.get("inference"))
            params |= {_OF_INFERENCE + name: value for name, value in settings.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``inference__n_draws=100`` gives a schedule like the present one, but for that."""
        settings = {name: params.pop(name) for name in list(params) if _is_setting(name)}
        super().set_params(**params)
        if settings:
            self.inference = self._with_settings(settings)
        return self

    def _with_settings(self, settings):
        if not hasattr(self, "inference"):
            raise ValueError(f"{type(self).__name__} is run by no schedule; got {min(settings)!r}")
        schedule = check_inference(self._asked_schedule())
        given = {name.removeprefix(_OF_INFERENCE): value for name, value in settings.items()}
        known = _settings(schedule)
        if unknown := sorted(set(given) - set(known)):
            raise ValueError(
                f"{type(schedule).__name__} has no setting {unknown[0]!r}; there are {', '.join(known)}"
            )
        return dataclasses.replace(schedule, **given)

    # tables

    def set_output(self, *, transform: str | None = None) -> Self:
        """Say what predictions by row are: arrays, or tables with the names of what came in.

        Parameters
        ----------
        transform : "default", "pandas", "polars", "xarray" or None
            Arrays; data frames; those of polars, whose rows have no names; or arrays of xarray, with the
            dimensions and coordinates of what came in. None changes nothing.
        """
        if transform not in TABLES:
            raise ValueError(
                'transform must be "default", "pandas", "polars", "xarray" or None; '
                f"got {transform!r}"
            )
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self


class Transformer(TransformerMixin):
    """A face with `transform`, which makes its own tables, as `predict_proba` does."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**{**options, "auto_wrap_output_keys": None})

    set_output = Face.set_output


def _is_setting(name):
    return name.startswith(_OF_INFERENCE)


def _settings(schedule):
    """Return name -> value of the settings of a schedule."""
    if isinstance(schedule, type) or not dataclasses.is_dataclass(schedule):
        return {}
    return {field.name: getattr(schedule, field.name) for field in dataclasses.fields(schedule)}
