"""The face of the models that multinomial Gaussian processes are compared with."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polystick import scores
from polystick.arguments import Counts
from polystick.estimators.inputs import counts_of, merge_inputs
from polystick.estimators.process_face import ProcessEstimator
from polystick.estimators.tables import as_asked
from polystick.inference.execution import one_blas_thread
from polystick.validation import check_integer

STATES = 64  # posterior states that new inputs meet


class ProcessBaseline(ProcessEstimator):
    """What the baselines share: a subclass has `_learn`, `_predict` and `_log_evidence`."""

    def _needs_whole_counts(self):
        return False

    def predict_proba(self, Z: ArrayLike, *, return_std: bool = False, return_draws: bool = False,
                      n_draws: int = STATES) -> Any:  # fmt: skip
        """Return the expected probabilities (n, K) at inputs.

        Parameters
        ----------
        Z : array-like of shape (n, d)
        return_std : bool
            Also return standard deviations (n, K).
        return_draws : bool
            Also return draws (n_draws, n, K). Given a posterior state, different inputs are drawn
            independently of each other.
        n_draws : int
            Posterior states to average over, where there are some, and draws to return.
        """
        inputs, index = merge_inputs(self._check_inputs(Z))
        check_integer("n_draws", n_draws, at_least=1)
        with one_blas_thread():
            mean, std, draws = self._predict(inputs, return_std, return_draws, n_draws)
        found = [mean, std] if return_std else [mean]
        found = [values[index] for values in found]
        return as_asked(self, found, Z, draws[:, index] if return_draws else None)

    def score_samples(self, Z: ArrayLike, X: Counts | None = None, *, y: ArrayLike | None = None,
                      coefficient: bool = False, n_draws: int = STATES) -> np.ndarray:  # fmt: skip
        """Return the log probability (n,) of each row's counts, by itself.

        Parameters
        ----------
        Z : array-like of shape (n, d)
        X, y : array-like or CSR of shape (n, K)
            The counts, as one of the two.
        coefficient : bool
            Whether to count the multinomial coefficient in.
        n_draws : as in `predict_proba`
        """
        inputs, counts = self._check_table(Z, counts_of(X, y))
        check_integer("n_draws", n_draws, at_least=1)
        with one_blas_thread():
            values = self._log_evidence(inputs, counts, n_draws)
        return values + scores.log_coefficients(counts) if coefficient else values

    def score(self, Z: ArrayLike, X: Counts | None = None, *, y: Any = None, coefficient: bool = False,
              n_draws: int = STATES) -> float:  # fmt: skip
        """Return the log probability per count, in nats, as in `score_samples`; bigger is better."""
        values = self.score_samples(Z, X, y=y, coefficient=coefficient, n_draws=n_draws)
        return scores.per_count(values, self._check_table(Z, counts_of(X, y))[1])

    def _predict(self, inputs, return_std, return_draws, n_draws):
        """Return probabilities (n, K), their standard deviations and draws, or None for what is not asked."""
        raise NotImplementedError

    def _log_evidence(self, inputs, counts, n_draws):
        """Return the log probability of each row of counts without its coefficient."""
        raise NotImplementedError
