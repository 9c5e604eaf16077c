"""Documents under the topics of a posterior, and documents that could have been."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse

from polystick import scores
from polystick.estimators.folded import joined, summed
from polystick.estimators.replicates import check_room, drawn_counts, generator
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.inference.posterior import Posterior
from polystick.models import folding
from polystick.models.topic_words import mixed
from polystick.validation import check_integer

__all__ = ["NewDocuments", "prior_words"]

_DOCUMENTS_AT_ONCE = 64
_PARTICLES = 128  # an error of 0.3 nats for documents of 100 words, of 0.6 for those of 300


@dataclass(frozen=True, eq=False)
class NewDocuments:
    """Documents, and a fit that tells of them."""

    model: folding.Foldable
    posterior: Posterior
    seed: int
    n_jobs: int | None
    counts: scipy.sparse.csr_array  # (n, V)
    given: dict  # name -> (n, ...), what else is known of documents

    def states(self, n_draws, chain=None):
        """Return name -> array of about so many posterior states, of all chains or one."""
        check_integer("n_draws", n_draws, at_least=1)
        names = self.model.fold_names
        return [dict(zip(names, s)) for s in self.posterior.spread(names, n_draws, chain)]

    def fold(self, n_draws, chain=None, keep_draws=False):
        """Return the `Folded` shares of the documents.

        States are summed up within a block, so that memory does not grow with them unless draws are kept.
        """

        def work(priors, shard, numbers):
            return summed(folding.fold_in(self.model, priors, shard, self.seed), keep_draws)

        return joined(self._map(self.states(n_draws, chain), work))

    def settle(self, described):
        """Return shares (n, T) by climbing under one state, name -> array; exact draws are for others."""
        model: Any = self.model  # one that folds quickly
        parts = self._map([described], lambda priors, shard, _: model.quick_shares(*priors, shard))
        return np.concatenate(parts)

    def anneal(self, n_draws):
        """Return log weights (states, n), whose exp average to each document's probability."""
        parts = self._map(
            self.states(n_draws),
            lambda priors, shard, _: folding.annealed_log_weights(
                self.model, priors, shard, self.seed
            ),
        )
        return np.concatenate(parts, axis=1)

    def _map(self, states, work):
        """Map work(priors, shard, numbers) over blocks of documents; numbers: a slice of them."""
        with execution_for(self.n_jobs) as execution, one_blas_thread():
            priors = [self.model.fold_prior(state) for state in states]
            shards = self._shards(folding.content_ids(self.counts, self.given))
            edges = np.cumsum([0, *(len(shard.rows) for shard in shards)])
            blocks = [(shard, slice(*pair)) for shard, pair in zip(shards, pairwise(edges))]
            return list(execution.map(lambda block: work(priors, *block), blocks))

    def _shards(self, ids):
        return self.model.shards(self.counts, _DOCUMENTS_AT_ONCE, ids, **self.given)

    def complete(self, rest, n_draws, per, coefficient):
        """Return log likelihoods (n,) of the rest of the words, given those that the documents have."""
        states = self.states(n_draws)
        topics = [state["topics"] for state in states]
        if topics[0].ndim == 3:
            rest = _by_slice(rest, self.given["slices"], topics[0].shape[1])
        flat = [each.reshape(len(each), -1) for each in topics]
        which = 0 if per == "token" else 1  # means, or draws
        firsts = self.posterior.firsts_of_chains(self.model.fold_names, n_draws)

        def work(priors, shard, numbers):
            folded = folding.fold_in(self.model, priors, shard, self.seed, firsts=firsts)
            shares = (each[which] for each in folded)
            used, here = _used_words(rest[numbers])
            few = (each[:, used] for each in flat)
            return scores.completion(shares, few, here, per=per, coefficient=coefficient)

        return np.concatenate(self._map(states, work))

    # state after state; documents that are alike differ

    def log_likelihoods(self, states, seed):
        """Return log p(words | topics, law of the shares), (S, n)."""

        def work(prior, shards, number):
            each = (
                folding.annealed_log_weights(
                    self.model, [prior], shard, seed + number, n_particles=_PARTICLES
                )[0]
                for shard in shards
            )
            return np.concatenate(list(each))

        return self._over(states, work)

    def replicates(self, states, totals, seed):
        """Return counts (S, n, V) of these totals, the shares of each document drawn given its words."""
        check_room(len(states), *self.counts.shape)

        def work(prior, shards, number):
            shares = np.concatenate(
                [
                    next(folding.fold_in(self.model, [prior], shard, seed + number))[1]
                    for shard in shards
                ]
            )
            topics = states[number]["topics"].astype(np.float64)
            words = mixed(shares, topics, self.given.get("slices"))
            return drawn_counts(words, totals, generator(seed, 0, number))

        return self._over(states, work)

    def prior_counts(self, n_draws, totals, seed):
        """Return counts (n_draws, n, V) of these totals in documents from the prior."""
        check_room(n_draws, *self.counts.shape)

        def draw(i):
            words = prior_words(self.model, len(totals), seed, i, self.given)
            return drawn_counts(words, totals, generator(seed, 2, i))

        return np.stack([draw(i) for i in range(n_draws)])

    def _over(self, states, work):
        """Return work(prior, shards, number) of each state, stacked."""
        shards = self._shards(np.arange(self.counts.shape[0], dtype=np.uint64))
        with execution_for(self.n_jobs) as execution, one_blas_thread():
            found = execution.map(
                lambda i: work(self.model.fold_prior(states[i]), shards, i), range(len(states))
            )
            return np.stack(list(found))


def prior_words(model, n, seed, number, given):
    """Return probabilities of words (n, V) in documents from the prior."""
    shares, topics = model.simulate_shares(n, generator(seed, 1, number), **given)
    words = mixed(shares, topics.astype(np.float64), given.get("slices"))
    return words / words.sum(axis=1, keepdims=True)


def _by_slice(counts, slices, n_slices):
    """Return counts (n, S V), those of a document in the columns of its slice."""
    columns = counts.indices + counts.shape[1] * np.repeat(slices, np.diff(counts.indptr))
    shape = (counts.shape[0], counts.shape[1] * n_slices)
    return scipy.sparse.csr_array((counts.data, columns, counts.indptr), shape=shape)


def _used_words(counts):
    """Return the words that counts (n, V) have, (u,), and counts of these alone, (n, u)."""
    used, columns = np.unique(counts.indices, return_inverse=True)
    parts = (counts.data, columns, counts.indptr)
    return used, scipy.sparse.csr_array(parts, shape=(counts.shape[0], len(used)))
