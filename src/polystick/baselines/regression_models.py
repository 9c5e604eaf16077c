"""The face of the probit that regressions are compared with."""

from typing import Any

import numpy as np

from polystick.arguments import PathLike, Progress, RandomState
from polystick.baselines.probit import ProbitRegression
from polystick.estimators.regression import MultinomialRegression
from polystick.estimators.regression_parts import scales_of
from polystick.inference.gibbs import Gibbs
from polystick.inference.schedules import Schedule
from polystick.models.regression_state import RegressionPrior


def build(face, design, groups, counts):
    """Return the model of single labels."""
    totals = counts.sum(axis=1)
    if (totals != 1).any():
        row = int((totals != 1).argmax())
        raise ValueError(
            f"a probit needs single labels, one for each row; got {totals[row]} counts in row {row}; use "
            "MultinomialRegression"
        )
    scale = scales_of(face.prior_scale, design)
    return ProbitRegression(RegressionPrior(np.zeros((len(scale), counts.shape[1])), scale))


class MultinomialProbit(MultinomialRegression):
    """Single labels explained by covariates through normal utilities (Albert and Chib 1993).

    The largest of K utilities is what is seen. They are independent given the covariates, so that categories
    come in no order. Effects are told as in `MultinomialRegression`, and are those of a softmax but for
    noise; draws are slower to forget than its own.

    Parameters
    ----------
    formula : str or None
        As in `MultinomialRegression`; there are no groups, and no overdispersion.
    prior_scale : float or dict
        As in `MultinomialRegression`, in units of the noise of a utility; others of a dict have 2.5.
    inference, random_state, n_jobs, progress, checkpoint, checkpoint_every
        As in `MultinomialRegression`.

    Attributes
    ----------
    posterior_, design_, categories_, classes_, seed_, n_iter_
        As in `MultinomialRegression`.
    """

    _schedules = (Gibbs,)
    _model_of = staticmethod(build)
    groups = overdispersion = decomposition = None

    def __init__(self, formula: str | None = None, *, prior_scale: Any = 2.5,
                 inference: Schedule | None = None, random_state: RandomState = None,
                 n_jobs: int | None = None, progress: Progress | None = None,
                 checkpoint: PathLike | None = None,
                 checkpoint_every: float = 60.0) -> None:  # fmt: skip
        self.formula = formula
        self.prior_scale = prior_scale
        self._run_by(inference, random_state, n_jobs, progress, checkpoint, checkpoint_every)
