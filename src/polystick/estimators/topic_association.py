"""Which topics go together: associations of their shares over documents."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from polystick.estimators import association
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.inference.gibbs import Gibbs
from polystick.models.given_topics import GivenTopics
from polystick.models.softmax_counts import SoftmaxCounts
from polystick.population import SparseFactors
from polystick.validation import check_integer, check_level, check_seed

_MOST_DOCUMENTS = 2000
_N_CHAINS = 2
_N_BURN = 100


class TopicAssociation:
    """The part of a face that tells of associations."""

    _check: Any
    _slices_of: Any
    _states: Any
    model_: Any
    n_jobs: Any
    n_topics: Any
    posterior_: Any
    seed_: Any

    def topic_association(self, X, *, level=0.9, n_draws=400, n_states=8, random_state=None,
                          **place):  # fmt: skip
        """Return which topics go together in documents: correlations of their log abundances.

        It is to topics what `category_association` is to categories: 0 for topics that are independent but
        for sharing their documents, whatever their sizes, as no correlation of log shares is. Topics are
        those of a few posterior states of the likeliest chain. Given them, the topics of the tokens and the
        law of the shares are drawn anew, under a softmax and a covariance of few factors, by two chains that
        go from state to state. That law teaches the topics nothing (a *cut* posterior), and topics are taken
        for what they are: where the fit has split or blended the true ones, associations are those of its
        own topics. They are relative to most pairs not being associated. Intervals of strong ones in few
        documents are shrunk towards 0: read them as "is there something". Where documents have times, what
        topics have in common by these is in it. It needs at least 5 topics.

        Parameters
        ----------
        X : array-like or CSR of shape (n, V)
            The documents of the fit, or others. Beyond 2000, so many of them, evenly spaced, are used.
        level : float
            Probability of the central interval.
        n_draws : int
            Draws of both chains together, after 100 each that are forgotten. 400 draws for 2000 documents of
            100 tokens and 16 topics take about 15 seconds; `rhat` says which pairs need more.
        n_states : int
            Posterior states of the topics.
        random_state : int or None
            None is the seed of the fit.

        Returns
        -------
        Association
            `mean`, `lower`, `upper`, `nonzero` and `rhat` are data frames (T, T); `table()` has the pairs
            that are known to be associated, the strongest first.
        """
        counts = self._check(X)
        check_level(level)
        check_integer("n_draws", n_draws, at_least=_N_CHAINS)
        check_integer("n_states", n_states, at_least=1)
        association.need_enough(self.n_topics, "topic_association", "topics")
        slices = self._slices_of(counts.shape[0], **place)
        seed = self.seed_ if random_state is None else check_seed(random_state)
        names, n_each = self.model_.fold_names, -(-n_draws // _N_CHAINS)
        with one_blas_thread():
            chosen = self._states(min(n_states, n_each), self.posterior_.best_chain)
            states = [self.model_.fold_prior(dict(zip(names, state))) for state in chosen]
        posterior = run_given(
            self.model_, states, self._some_documents(counts, slices),
            n_draws=n_each, seed=seed, execution=execution_for(self.n_jobs),
        )  # fmt: skip
        labels = pd.RangeIndex(self.n_topics, name="topic")
        return association.of(posterior, labels, level, _N_CHAINS * n_each)

    def _some_documents(self, counts, slices):
        n = counts.shape[0]
        picked = np.unique(np.linspace(0, n - 1, min(n, _MOST_DOCUMENTS)).round().astype(int))
        more = {} if slices is None else {"slices": slices[picked]}
        ids = np.arange(len(picked), dtype=np.uint64)  # so that documents that are alike differ
        return self.model_.shards(counts[picked], ids=ids, **more)


def run_given(topic_model, states, shards, *, n_draws, seed, execution=None):
    """Return the posterior of the law of the shares given topics; its R-hats are told pair by pair."""
    law = SoftmaxCounts(SparseFactors(np.zeros(len(states[0].sizes))))
    model = GivenTopics(law, topic_model, tuple(states), _N_BURN, -(-n_draws // len(states)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        schedule = Gibbs(n_draws, _N_BURN, n_chains=_N_CHAINS)
        return schedule.run(model, shards, seed=seed, execution=execution)
