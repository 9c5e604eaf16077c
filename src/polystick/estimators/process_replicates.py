"""What Gaussian processes say of counts that could have been: replicates, groups for ArviZ."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polystick import scores
from polystick.estimators.arviz_groups import Asked, Groups, assembled, need_fit
from polystick.estimators.replicates import (
    check_room,
    check_totals,
    drawn_counts,
    generator,
    totals_of,
)
from polystick.estimators.row_names import labels_of
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.models import predictive
from polystick.validation import check_integer, check_seed

_DRAWS = 200  # posterior states, for groups: each solves for all inputs
_STATE = ("theta", "white", "level", "scale")


class ProcessReplicates:
    """A part of `MultinomialGP`."""

    _check_inputs: Any
    _check_table: Any
    _input_names: Any
    categories_: Any
    counts_: Any
    inputs_: Any
    model_: Any
    n_jobs: Any
    posterior_: Any
    predict_proba: Any
    sample_prior: Any
    seed_: Any

    def predict_counts(self, Z=None, *, totals=None, n_draws=256, random_state=None):
        """Return draws (n_draws, n, K) of counts from the posterior predictive law.

        At the inputs of the fit, each posterior draw of the functions gives one; fewer where there are
        fewer. At other inputs, and after mean field, different inputs are drawn independently of each other,
        as in `predict_proba`.

        Parameters
        ----------
        Z : array-like of shape (n, d), optional
            None is `inputs_`, the inputs of the fit.
        totals : int or array of shape (n,)
            Of the counts to draw; None is those of `counts_`, where Z is None.
        n_draws : int
        random_state : int or None
            None is the seed of the fit.
        """
        check_is_fitted(self)
        check_integer("n_draws", n_draws, at_least=1)
        inputs = self.inputs_ if Z is None else self._check_inputs(Z)
        if totals is None and Z is not None:
            raise ValueError("totals must say how many counts to draw at each input of Z; got None")
        given = totals_of(self.counts_) if totals is None else check_totals(totals, len(inputs))
        seed = self.seed_ if random_state is None else check_seed(random_state)
        states = None
        if Z is None and self._has_functions:
            draws = self.posterior_.even_draws(_STATE, n_draws)
            states = self.posterior_.states(_STATE, draws)
        return self._replicates(inputs, given, seed, states, n_draws)

    def to_arviz(self, Z=None, X=None, *, log_likelihood=False, posterior_predictive=False,
                 prior_predictive=False, n_draws=None, random_state=None):  # fmt: skip
        """Return the posterior with the groups asked for, as what the installed ArviZ works on.

        That is InferenceData before ArviZ 1.0, a DataTree since. All groups have the same chains and draws:
        `posterior` and `sample_stats` are thinned to those that the others were made from.

        Parameters
        ----------
        Z, X : as in `fit`
            None is the data of the fit, with the counts of equal inputs added. Other data, both of them, are
            for predictive checks. They become `observed_data`, under the labels of X's index (or Z's) if it
            is a DataFrame.
        log_likelihood : bool
            Log probability of the counts at each input of the fit, given those at all other inputs, their
            omega and the parameters of each draw; the functions are integrated out, and the multinomial
            coefficient is counted in. Averaged by ``az.loo``, this is the probability of an input's counts
            under a fit without them; ``az.compare`` compares kernels. `p_loo` then counts only what
            hyperparameters and omega learn. Gibbs only.
        posterior_predictive : bool
            Counts at the same inputs again, as `predict_counts` draws them.
        prior_predictive : bool
            Counts from the prior, as `sample_prior` has it, with the same totals.
        n_draws : int or None
            Draws of all chains together, at most. None is all of them where nothing is asked for, or 200.
        random_state : int or None
            None is the seed of the fit.
        """
        check_is_fitted(self)
        asked = Asked.of(self, log_likelihood, posterior_predictive, prior_predictive, n_draws,
                         random_state)  # fmt: skip
        if posterior_predictive == "new":
            raise ValueError(
                'posterior_predictive="new" needs a population of rows; counts at inputs have none: give '
                "other inputs, Z and X, and say True"
            )
        return assembled(self.posterior_, self._groups(Z, X, asked), asked)

    @property
    def _has_functions(self):
        return "white" in self.posterior_.names()

    def _groups(self, Z, X, asked):
        again = Z is None and X is None
        if not again and (Z is None or X is None):
            raise ValueError("Z and X must both be given, or neither; got one of them")
        if asked.log_likelihood:
            need_fit(again, "the counts")
        inputs, counts = (self.inputs_, self.counts_) if again else self._check_table(Z, X)
        labels = self._input_names if again else labels_of(X)
        sizes = totals_of(counts) if asked.posterior_predictive or asked.prior_predictive else None
        joint = again and self._has_functions
        return Groups(
            _STATE if self._has_functions else ("theta",),
            _DRAWS,
            counts,
            "input",
            {
                "input": np.arange(len(inputs)) if labels is None else labels,
                "category": [str(name) for name in self.categories_],
            },
            lambda states: self._left_out(states, asked.seed),
            "input",
            lambda states: self._replicates(
                inputs, sizes, asked.seed, states if joint else None, len(states)
            ),
            lambda n: self._prior_counts(inputs, sizes, asked.seed, n),
        )

    def _left_out(self, states, seed):
        """Return the log probability of each input's counts given all others, (S, M)."""
        shards = self.model_.shards(self.counts_)

        def work(i):
            given = (self.model_, states[i], shards, self.counts_)
            return predictive.log_left_out(*given, seed, i)

        with execution_for(self.n_jobs) as execution, one_blas_thread():
            found = list(execution.map(work, range(len(states))))
        return np.stack(found) + scores.log_coefficients(self.counts_)

    def _replicates(self, inputs, totals, seed, states, n_draws):
        """Return counts (S, n, K), at the functions of each state where there are any."""
        if states is not None:
            n_draws = len(states)
        check_room(3 * n_draws, len(inputs), len(self.categories_))
        if states is None:
            _, pi = self.predict_proba(inputs, return_draws=True, n_draws=n_draws)
            return _counts(pi, totals, seed, 0)
        with one_blas_thread():
            return _counts(map(self.model_.probabilities_of, states), totals, seed, 0)

    def _prior_counts(self, inputs, totals, seed, n_draws):
        check_room(3 * n_draws, len(inputs), len(self.categories_))
        pi = self.sample_prior(inputs, n_draws, random_state=seed)
        return _counts(pi, totals, seed, 1)


def _counts(pi, totals, seed, what):
    return np.stack(
        [drawn_counts(each, totals, generator(seed, what, i)) for i, each in enumerate(pi)]
    )
