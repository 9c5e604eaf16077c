"""Which topics go together: associations of their shares over documents."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from polystick.estimators import association
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.inference.gibbs import Gibbs
from polystick.models.given_topics import GivenTopics
from polystick.models.softmax_counts import SoftmaxCounts
from polystick.population import SparseFactors

_MOST_DOCUMENTS = 2000
_N_BURN = 100
N_CHAINS = 2


def associate(documents, labels, level, n_draws, n_topic_draws, seed):
    """Return the `Association` of the topics of `NewDocuments`, under these labels."""
    model, n_each = documents.model, -(-n_draws // N_CHAINS)
    with one_blas_thread():
        chosen = documents.states(min(n_topic_draws, n_each), documents.posterior.best_chain)
        states = [model.fold_prior(state) for state in chosen]
    posterior = run_given(
        model, states, _some_of(documents),
        n_draws=n_each, seed=seed, execution=execution_for(documents.n_jobs),
    )  # fmt: skip
    return association.of(posterior, labels, level, N_CHAINS * n_each)


def _some_of(documents):
    """Return blocks of documents, evenly spaced where there are many."""
    n = documents.counts.shape[0]
    picked = np.unique(np.linspace(0, n - 1, min(n, _MOST_DOCUMENTS)).round().astype(int))
    given = {name: values[picked] for name, values in documents.given.items()}
    ids = np.arange(len(picked), dtype=np.uint64)  # so that documents that are alike differ
    return documents.model.shards(documents.counts[picked], ids=ids, **given)


def run_given(topic_model, states, shards, *, n_draws, seed, execution=None):
    """Return the posterior of the law of the shares given topics; its R-hats are told pair by pair."""
    law = SoftmaxCounts(SparseFactors(np.zeros(len(states[0].sizes))))
    model = GivenTopics(law, topic_model, tuple(states), _N_BURN, -(-n_draws // len(states)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        schedule = Gibbs(n_draws, _N_BURN, n_chains=N_CHAINS)
        return schedule.run(model, shards, seed=seed, execution=execution)
