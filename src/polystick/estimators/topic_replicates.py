"""What topic models say of documents that could have been: replicates, priors, groups for ArviZ."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polystick.estimators.arviz_groups import Asked, Groups, assembled, need_fit, need_rows
from polystick.estimators.replicates import (
    check_room,
    check_totals,
    drawn_counts,
    generator,
    totals_of,
)
from polystick.estimators.row_names import labels_of, same_rows
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.models import folding
from polystick.validation import check_integer, check_seed

_DRAWS = 100  # posterior states, for groups: each has a swarm of particles for each document
_PARTICLES = 128  # an error of 0.3 nats for documents of 100 words, of 0.6 for those of 300


class TopicReplicates:
    """A part of all topic models."""

    _check: Any
    _refuse_place: Any
    _seen_rows: Any
    _shard_new: Any
    model_: Any
    n_features_in_: Any
    n_jobs: Any
    posterior_: Any
    seed_: Any
    words_: Any

    def predict_counts(self, X, *, totals=None, n_draws=32, random_state=None, **place):
        """Return draws (n_draws, n, V) of word counts from the posterior predictive law, dense.

        Each posterior draw of the topics gives one: the document's shares are drawn given its words, then
        new words. So these are replicates of the same documents. One without words is new: for new documents
        of the corpus give zeros, and totals.

        Parameters
        ----------
        X : array-like or CSR of shape (n, V)
            Words seen of each document.
        totals : int or array of shape (n,), optional
            Lengths of the documents to draw; None is those of X.
        n_draws : int
            Posterior draws, of all chains, at most; fewer where there are fewer.
        random_state : int or None
            None is the seed of the fit.
        """
        counts = self._check(X)
        check_integer("n_draws", n_draws, at_least=1)
        given = totals_of(counts) if totals is None else check_totals(totals, counts.shape[0])
        seed = self.seed_ if random_state is None else check_seed(random_state)
        names = self.model_.fold_names
        states = self.posterior_.states(names, self.posterior_.even_draws(names, n_draws))
        return self._replicates(counts, given, seed, states, **place)

    def sample_prior(self, n_rows=1, n_draws=1, *, random_state=None, **place):
        """Return draws (n_draws, n_rows, V) of the probabilities of words in documents, before any data.

        Each draw has topics, and a law of the shares, of its own from the prior. The same at each call,
        unless random_state is given; it is the seed of the fit by default.
        """
        check_is_fitted(self)
        check_integer("n_rows", n_rows, at_least=1)
        check_integer("n_draws", n_draws, at_least=1)
        check_room(2 * n_draws, n_rows, self.n_features_in_)
        seed = self.seed_ if random_state is None else check_seed(random_state)
        slices = self._slices_of(n_rows, **place)
        return np.stack([self._prior_rows(n_rows, seed, i, slices) for i in range(n_draws)])

    def to_arviz(self, X=None, *, log_likelihood=False, posterior_predictive=False,
                 prior_predictive=False, n_draws=None, random_state=None, **place):  # fmt: skip
        """Return the posterior with the groups asked for, as what the installed ArviZ works on.

        That is InferenceData before ArviZ 1.0, a DataTree since. All groups have the same chains and draws:
        `posterior` and `sample_stats` are thinned to those that the others were made from. Counts are
        dense, (chain, draw, document, word), so give documents that are few, or ask for few draws.

        Parameters
        ----------
        X : array-like or CSR of shape (n, V)
            The documents of the fit, for all but the posterior; they become `observed_data`, under the
            labels of its index if it is a DataFrame.
        log_likelihood : bool
            Log probability of each document's words under the topics of each draw, its shares integrated
            out by sequential Monte Carlo, as `score_samples` has it for "held_out", without the multinomial
            coefficient: for ``az.loo`` and ``az.compare``. It takes about 0.1 ms for each word and draw.
            Its error, 0.3 nats for documents of 100 words and 0.6 for those of 300, makes ``az.loo`` too low
            by about its square for each document, whatever the model. Gibbs only.
        posterior_predictive : bool or "new"
            Words of the same documents again, as `predict_counts` draws them. "new": of new documents with
            as many words.
        prior_predictive : bool
            Words of documents from the prior, as many.
        n_draws : int or None
            Draws of all chains together, at most. None is all of them where nothing is asked for, or 100.
        random_state : int or None
            None is the seed of the fit.
        """
        check_is_fitted(self)
        asked = Asked.of(self, log_likelihood, posterior_predictive, prior_predictive, n_draws,
                         random_state)  # fmt: skip
        need_rows(X, asked)
        return assembled(self.posterior_, self._groups(X, asked, place), asked)

    def _groups(self, X, asked, place):
        names = self.model_.fold_names
        if X is None:
            return Groups(names, _DRAWS, None, "document", {}, None, "document", None, None)
        counts, labels = self._check(X), labels_of(X)
        check_room(2, *counts.shape)
        if asked.log_likelihood:
            need_fit(same_rows(self._seen_rows, counts), "the documents")
        seen = 0 * counts if asked.posterior_predictive == "new" else counts
        totals, n, seed = totals_of(counts), counts.shape[0], asked.seed
        document = np.arange(n) if labels is None else labels
        return Groups(
            names,
            _DRAWS,
            counts.toarray(),
            "document",
            {"document": document, "category": [str(word) for word in self.words_]},
            lambda states: self._document_log_likelihoods(counts, seed, states, **place),
            "document",
            lambda states: self._replicates(seen, totals, seed, states, **place),
            lambda n_draws: self._prior_counts(totals, seed, n_draws, **place),
        )

    def _document_log_likelihoods(self, counts, seed, states, **place):
        """Return log p(words | topics, law of the shares), (S, n)."""

        def work(prior, shards, number):
            each = (
                folding.annealed_log_weights(
                    self.model_, [prior], shard, seed + number, n_particles=_PARTICLES
                )[0]
                for shard in shards
            )
            return np.concatenate(list(each))

        return self._over_states(counts, states, work, **place)

    def _replicates(self, counts, totals, seed, states, **place):
        """Return counts (S, n, V), the shares of each document drawn given its words."""
        check_room(len(states), *counts.shape)
        slices = self._slices_of(counts.shape[0], **place)

        def work(prior, shards, number):
            drawn = [
                next(folding.fold_in(self.model_, [prior], shard, seed + number))[1]
                for shard in shards
            ]
            words = self._word_probabilities(
                np.concatenate(drawn), states[number]["topics"], slices
            )
            return drawn_counts(words, totals, generator(seed, 0, number))

        return self._over_states(counts, states, work, **place)

    def _over_states(self, counts, states, work, **place):
        """Return work(prior, shards, number) of each state, stacked."""
        shards = self._shard_new(counts, np.arange(counts.shape[0], dtype=np.uint64), **place)
        with execution_for(self.n_jobs) as execution, one_blas_thread():
            found = execution.map(
                lambda i: work(self.model_.fold_prior(states[i]), shards, i), range(len(states))
            )
            return np.stack(list(found))

    def _slices_of(self, n, **place):
        """Return the slice of time of each document; None where time plays no part."""
        self._refuse_place(place)

    def _word_probabilities(self, shares, topics, slices):
        """Return the probabilities of words (n, V) in documents with these shares of topics."""
        if topics.ndim == 2:
            return shares @ topics.astype(np.float64)
        return np.einsum("nt,tnv->nv", shares, topics[:, slices].astype(np.float64))

    def _prior_rows(self, n, seed, number, slices):
        """Return probabilities of words (n, V)."""
        given = {} if slices is None else {"slices": slices}
        shares, topics = self.model_.simulate_shares(n, generator(seed, 1, number), **given)
        words = self._word_probabilities(shares, topics, slices)
        return words / words.sum(axis=1, keepdims=True)

    def _prior_counts(self, totals, seed, n_draws, **place):
        n, slices = len(totals), self._slices_of(len(totals), **place)
        check_room(n_draws, n, self.n_features_in_)
        rows = (self._prior_rows(n, seed, i, slices) for i in range(n_draws))
        return np.stack(
            [drawn_counts(pi, totals, generator(seed, 2, i)) for i, pi in enumerate(rows)]
        )
