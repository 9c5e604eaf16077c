"""The face that all topic models share."""

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from polystick import scores
from polystick.estimators.intervals import interval
from polystick.estimators.row_names import ids_of, named
from polystick.estimators.seeds import seed_for
from polystick.estimators.topic_replicates import TopicReplicates
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.inference.gibbs import Gibbs
from polystick.models import folding
from polystick.validation import (
    all_or_nothing,
    category_names,
    check_counts,
    check_inference,
    check_integer,
    check_level,
    check_positive,
    check_running,
    warn_user,
)

_DOCUMENTS_AT_ONCE = 64  # of new ones
_STATES = 32  # posterior states that new documents meet
_HELD_OUT_STATES = 8  # each has a swarm of particles


class TopicEstimator(
    TopicReplicates, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """What all topic models offer; a subclass says how to make its model."""

    stream_: Any

    def _make_model(self, counts):
        raise NotImplementedError

    def _shard_new(self, counts, ids=None, **place):
        """Cut new documents into blocks; a subclass may ask for more than their counts."""
        self._refuse_place(place)
        ids = folding.content_ids(counts) if ids is None else ids
        return self.model_.shards(counts, _DOCUMENTS_AT_ONCE, ids)

    def _refuse_place(self, place):
        if place:
            raise TypeError(f"{type(self).__name__} takes no {', '.join(place)} for new documents")

    def _lay_out(self, counts, **place):
        """Return counts by the cells of the recorded topics (T, ...)."""
        return counts

    def _default_inference(self):
        return Gibbs(200, 200, n_chains=3, max_bytes=2**28, min_ess=400, max_draws=500)

    def fit(self, X, y=None, *, resume=False):
        """Learn topics from counts of words (n, V): an array, a CSR matrix or a DataFrame.

        Parameters
        ----------
        X : array-like or CSR of shape (n, V)
            A row without words is kept: its shares are what the other documents say.
        y : ignored
        resume : bool
            Go on with the run in the checkpoint folder, if there is one.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            return self._fit(X, resume)

    def _fit(self, X, resume, **place):
        inference = self._inference()
        seed = seed_for(self, resume)
        counts = self._start(X, inference)
        model = self._make_model(counts, **place)
        self.stream_ = None
        posterior = inference.run(
            model,
            self._shards(model, inference, counts, seed, **place),
            seed=seed,
            execution=execution_for(self.n_jobs),
            progress=self.progress,
            checkpoint=self.checkpoint,
            resume=resume,
            coords=self._coords() | named("document", X),
        )
        self._seen_rows = ids_of(counts)
        return self._finish(model, inference, posterior, seed)

    def _inference(self):
        check_running(self.n_jobs, self.progress, self.checkpoint)
        given = self.inference
        return check_inference(self._default_inference() if given is None else given)

    def _start(self, X, inference):
        """Check what came in, and return it as a CSR matrix."""
        check_integer("n_topics", self.n_topics, at_least=2)
        check_positive("topic_concentration", self.topic_concentration)
        counts = self._read(X, inference, reset=True)
        self.words_ = category_names(X, counts.shape[1])
        if counts.sum() < self.n_topics:
            raise ValueError(
                f"n_topics must not exceed the number of tokens; got {self.n_topics} topics for "
                f"{counts.sum():g} tokens; ask for fewer topics"
            )
        self.seen_ = np.asarray(counts.sum(axis=0)).ravel() > 0
        return counts

    def _finish(self, model, inference, posterior, seed):
        self.model_, self.inference_, self.seed_ = model, inference, seed
        self._posterior, self._topics = posterior, None
        stream = getattr(self, "stream_", None)
        self.n_iter_ = stream.n_steps if stream else posterior.tree.attrs["n_sweeps"]
        self._n_features_out = self.n_topics
        return self

    @property
    def posterior_(self):
        """The `Posterior`; that of a stream is drawn when it is asked for."""
        if self._posterior is None:
            self._posterior = self.stream_.posterior(self._coords())
        return self._posterior

    @property
    def topics_(self):
        """Posterior mean of the topics, in the chain of the highest likelihood."""
        if self._topics is None:
            draws = self.posterior_["topics"][self.posterior_.best_chain]
            self._topics = draws.mean(axis=0, dtype=np.float64)
        return self._topics

    @property
    def _share(self):
        return self.posterior_["share"][self.posterior_.best_chain]

    def _read(self, X, inference, *, reset):
        return scipy.sparse.csr_array(
            check_counts(self, X, reset=reset, whole=inference.needs_whole_counts)
        )

    def _shards(self, model, inference, counts, seed):
        """Cut the documents into blocks; stochastic schedules want them in random order."""
        size = getattr(inference, "rows_per_block", None)
        if size is None:
            return model.shards(counts)
        order = np.random.default_rng(seed % 2**63).permutation(counts.shape[0])
        return model.shards(counts[order], size, ids=order.astype(np.uint64))

    # new documents

    def transform(self, X, *, return_draws=False, return_std=False, n_states=_STATES, **place):
        """Return the posterior mean of each document's shares of topics, (n, T).

        Shares are drawn given the words, under posterior states of the topics (those of the chain of the
        highest likelihood, whose topics the tables show): exact sampling with fixed topics, so a new
        document does not change them. A document's result depends on its words alone.

        Parameters
        ----------
        X : array-like or CSR of shape (n, V)
        return_draws : bool
            Also return draws (n_states, n, T), one under each posterior state.
        return_std : bool
            Also return posterior standard deviations (n, T), estimated from those draws.
        n_states : int
            Posterior states to average over.
        """
        counts = self._check(X)
        means, draws = self._fold(counts, n_states, self.posterior_.best_chain, **place)
        result = [means.mean(axis=0), *([draws] if return_draws else [])]
        result += [draws.std(axis=0)] if return_std else []
        return tuple(result) if len(result) > 1 else result[0]

    def score_samples(self, X, *, method="completion", observed=0.5, per="token",
                      coefficient=False, n_states=None, **place):  # fmt: skip
        """Return the log probability of each document's words, (n,), in nats.

        Parameters
        ----------
        X : array-like or CSR of shape (n, V)
        method : "completion" or "held_out"
            "completion" shows the model a part of each document's tokens, picked at random, and scores the
            rest. "held_out" scores whole documents: sequential Monte Carlo, unbiased for each document's
            probability under each posterior state.
        observed : float
            Share of the tokens that "completion" shows.
        per : "token" or "document"
            Whether "completion" averages the probability of each token over posterior states, or that of all
            scored tokens of a document together (which needs many more states).
        coefficient : bool
            Whether to count the multinomial coefficient in.
        n_states : int or None
            Posterior states to average over; None is 32, or 8 for "held_out".
        """
        if method == "completion":
            found = self._complete(self._check(X), observed, per, coefficient, n_states, **place)
            return found[0]
        return self._hold_out(self._check(X), method, coefficient, n_states, **place)

    def score(self, X, y=None, *, method="completion", observed=0.5, per="token",
              coefficient=False, n_states=None, **place):  # fmt: skip
        """Return the log probability per scored token, in nats, as in `score_samples`; bigger is better."""
        if method == "completion":
            found = self._complete(self._check(X), observed, per, coefficient, n_states, **place)
            return scores.per_count(*found)
        counts, options = self._check(X), {"coefficient": coefficient, "n_states": n_states}
        values = self._hold_out(counts, method, **options, **place)
        return scores.per_count(values, counts)

    def _hold_out(self, counts, method, coefficient, n_states, **place):
        if method != "held_out":
            raise ValueError(f"method must be 'completion' or 'held_out'; got {method!r}")
        n_states = _HELD_OUT_STATES if n_states is None else n_states
        values = scores.log_mean_exp(self._anneal(counts, n_states, **place), axis=0)
        return values + scores.log_coefficients(counts) if coefficient else values

    def _complete(self, counts, observed, per, coefficient, n_states, **place):
        """Return log likelihoods of the tokens that were not shown, and these as counts."""
        if per not in ("token", "document"):
            raise ValueError(f"per must be 'token' or 'document'; got {per!r}")
        n_states = _STATES if n_states is None else n_states
        shown, rest = scores.split_words(counts, observed, self.seed_)
        means, draws = self._fold(shown, n_states, **place)
        topics = (t.reshape(self.n_topics, -1) for *_, t in self._states(n_states))
        shares = means if per == "token" else draws
        cells = self._lay_out(rest, **place)
        return scores.completion(shares, topics, cells, per=per, coefficient=coefficient), rest

    def perplexity(self, X, **options):
        """Return exp(-score): as if so many words were equally likely; smaller is better."""
        return float(np.exp(-self.score(X, **options)))

    def _fold(self, counts, n_states, chain=None, **place):
        """Return means and draws (states, n, T) of the documents' shares."""
        parts = self._map_new(
            counts,
            n_states,
            lambda priors, shard: list(folding.fold_in(self.model_, priors, shard, self.seed_)),
            chain,
            **place,
        )
        means, draws = zip(*[zip(*part) for part in parts])
        return tuple(
            np.concatenate([np.stack(p) for p in values], axis=1) for values in (means, draws)
        )

    def _anneal(self, counts, n_states, **place):
        parts = self._map_new(
            counts,
            n_states,
            lambda priors, shard: folding.annealed_log_weights(
                self.model_, priors, shard, self.seed_
            ),
            **place,
        )
        return np.concatenate(parts, axis=1)

    def _map_new(self, counts, n_states, work, chain=None, **place):
        """Map work(priors, shard) over blocks of new documents."""
        check_integer("n_states", n_states, at_least=1)
        with execution_for(self.n_jobs) as execution, one_blas_thread():
            names = self.model_.fold_names
            priors = [
                self.model_.fold_prior(dict(zip(names, state)))
                for state in self._states(n_states, chain)
            ]
            shards = self._shard_new(counts, **place)
            return list(execution.map(lambda shard: work(priors, shard), shards))

    def _states(self, n_states, chain=None):
        return self.posterior_.spread(self.model_.fold_names, n_states, chain)

    def _check(self, X):
        check_is_fitted(self)
        check_running(self.n_jobs, self.progress, self.checkpoint)
        counts = scipy.sparse.csr_array(check_counts(self, X, reset=False, whole=True))
        unseen = np.isin(counts.indices, np.flatnonzero(~self.seen_))
        if unseen.any():
            warn_user(
                f"{counts.data[unseen].sum()} tokens of {len(np.unique(counts.indices[unseen]))} words that "
                "were never seen in fit are ignored"
            )
            counts.data[unseen] = 0
            counts.eliminate_zeros()
        return counts

    # what was learned

    def topics(self, n_words=10, *, words=None):
        """Return a table of the topics, largest first: share of the tokens, and the likeliest words.

        Parameters
        ----------
        n_words : int
        words : sequence of V names, optional
            Where the data had none, such as ``vectorizer.get_feature_names_out()``.
        """
        check_is_fitted(self)
        return self._topic_table(self.topics_, n_words, words)

    def _topic_table(self, topics, n_words, words):
        check_integer("n_words", n_words, at_least=1)
        names = self.words_ if words is None else self._check_words(words)
        best = np.argsort(-topics, axis=1, kind="stable")[:, :n_words]
        table = pd.DataFrame(names[best], columns=pd.RangeIndex(1, best.shape[1] + 1))
        table.insert(0, "share", self._share.mean(axis=0))
        table.index.name = "topic"
        return table.sort_values("share", ascending=False)

    def topic_sizes(self, *, level=0.9):
        """Return the share of each topic in the tokens, with a central interval, largest first.

        The interval is that of the likeliest chain and too narrow: sizes move slowly, hundreds of draws are
        worth a few, and convergence is not judged by them. Compare ``posterior_["share"]`` between chains.
        """
        check_is_fitted(self)
        check_level(level)
        found = interval(self._share, level, pd.Series)
        table = pd.DataFrame({"share": found.mean, "lower": found.lower, "upper": found.upper})
        table.index.name = "topic"
        return table.sort_values("share", ascending=False)

    def _check_words(self, words):
        names = np.asarray(words, dtype=object)
        if names.shape != (self.n_features_in_,):
            raise ValueError(
                f"words must be {self.n_features_in_} names, one for each column; got shape {names.shape}"
            )
        if len(set(names)) < len(names):
            raise ValueError(
                "words must differ; got a vocabulary with doubled names; join their columns"
            )
        return names

    def _coords(self):
        return {"topic": np.arange(self.n_topics), "word": [str(word) for word in self.words_]}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags
