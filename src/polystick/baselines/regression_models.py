"""The face of the probit that regressions are compared with."""

import numpy as np

from polystick.baselines.probit import ProbitRegression
from polystick.estimators.regression import MultinomialRegression
from polystick.estimators.regression_parts import line_of, scales_of
from polystick.models.regression_state import RegressionPrior


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
    inference, random_state, n_jobs, progress, checkpoint
        As in `MultinomialRegression`.

    Attributes
    ----------
    posterior_, design_, categories_, classes_, seed_, n_iter_
        As in `MultinomialRegression`.
    """

    groups = overdispersion = decomposition = None

    def __init__(self, formula=None, *, prior_scale=2.5, inference=None, random_state=None,
                 n_jobs=None, progress=None, checkpoint=None):  # fmt: skip
        self.formula = formula
        self.prior_scale = prior_scale
        self.inference = inference
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.checkpoint = checkpoint

    def _build(self, counts):
        """Return the model of single labels."""
        if (counts.sum(axis=1) != 1).any():
            row = int((counts.sum(axis=1) != 1).argmax())
            raise ValueError(
                f"a probit needs single labels, one for each row; got {counts.sum(axis=1)[row]} counts in "
                f"row {row}; use MultinomialRegression"
            )
        scale = scales_of(self.prior_scale, self.design_)
        return ProbitRegression(RegressionPrior(np.zeros((len(scale), counts.shape[1])), scale))

    def _over(self, states, x, places, counts, kind):
        """Return log p(y_i | parameters) of all states and rows (S, n)."""
        lines = (line_of(state, x, places) for state in states)
        return np.stack([(counts * self.model_.log_probabilities(line)).sum(axis=1) for line in lines])
