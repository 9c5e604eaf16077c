"""The face of topic models whose shares have a normal law: correlations and associations of topics."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from polystick.arguments import RandomState
from polystick.estimators import association
from polystick.estimators.intervals import interval
from polystick.estimators.seed_words import seed_labels, words_with_seeds
from polystick.estimators.seeds import seed_of
from polystick.estimators.topic_agreement import pooled_pairs
from polystick.estimators.topic_association import N_CHAINS, associate
from polystick.estimators.topic_covariates import About
from polystick.estimators.topic_face import TopicEstimator
from polystick.inference.execution import one_blas_thread
from polystick.validation import check_integer, check_level


class CorrelatedTopicEstimator(TopicEstimator):
    """What topic models offer that know which topics go together."""

    def _seeded(self, flat, counts):
        """Return the law of words with the seeds that were asked for, whose labels topics get."""
        self._labels = seed_labels(self.seed_words, self.n_topics)[0]
        given = self.seed_words, self.seed_weight, self.n_topics, self.words_, counts
        return words_with_seeds(flat, *given)

    def _refuse_seeds(self):
        if self.seed_words is not None:
            raise ValueError(
                "seed_words need a Dirichlet prior of words; got a word_tree or evolving=True too: "
                "leave one of them out"
            )

    def topic_association(self, X: Any, *, level: float = 0.9, n_draws: int = 400, n_topic_draws: int = 8,
                          random_state: RandomState = None, times: Any = None,
                          covariates: Any = None) -> Any:  # fmt: skip
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
        X : array-like or CSR of shape (n, V), or documents as in `fit`
            The documents of the fit, or others. Beyond 2000, so many of them, evenly spaced, are used.
        level : float
            Probability of the central interval.
        n_draws : int
            Draws of both chains together, after 100 each that are forgotten. 400 draws for 2000 documents of
            100 tokens and 16 topics take about 15 seconds; `rhat` says which pairs need more.
        n_topic_draws : int
            Posterior states of the topics.
        random_state : int, RandomState, Generator or None
            None is the seed of the fit.
        times : sequence of n integers, dates or pandas periods
            Where topics move with time: when the documents were written.
        covariates : DataFrame of n rows
            Where shares depend on covariates: those of the documents. What topics have in common by these
            is in the associations too.

        Returns
        -------
        Association
            `mean`, `lower`, `upper`, `nonzero` and `rhat` are data frames (T, T); `table()` has the pairs
            that are known to be associated, the strongest first.
        """
        counts = self._check(X)
        check_level(level)
        check_integer("n_draws", n_draws, at_least=N_CHAINS)
        check_integer("n_topic_draws", n_topic_draws, at_least=1)
        association.need_enough(self.n_topics, "topic_association", "topics")
        seed = seed_of(self, random_state)
        documents, labels = self._documents(counts, About(times, covariates, X)), self._topic_index
        return associate(documents, labels, level, n_draws, n_topic_draws, seed)

    def topic_correlation(self, *, level: float = 0.9, n_draws: int = 100) -> Any:
        """Return correlations, over documents of the fitted law, of the topics' log shares.

        Each pair of topics has the draws of all chains that have both: intervals carry how far chains differ.

        This describes the law. It is no test of association, which `topic_association` is: for independent
        topics it is not zero, a little below among large topics and above among small ones. In simulated
        corpora with 16 independent topics the 90 % intervals excluded zero for 23 to 72 % of the pairs of
        large topics and for 36 to 98 % of those of small ones, but no correlation was beyond 0.45.

        Parameters
        ----------
        level : float
            Probability of the central interval.
        n_draws : int
            Posterior draws of each chain to use.

        Returns
        -------
        Interval of data frames (T, T)
        """
        check_is_fitted(self)
        check_level(level)
        check_integer("n_draws", n_draws, at_least=1)
        agreement, names = self.agreement_, self._topic_index
        if agreement is None:
            found = self._correlations(n_draws, self.posterior_.best_chain)
        else:
            chains = range(len(agreement.order))
            found = pooled_pairs([self._correlations(n_draws, c) for c in chains], agreement)
        return interval(found, level, lambda a: pd.DataFrame(a, index=names, columns=names))

    def _correlations(self, n_draws, chain):
        """Return correlations of log shares (s, T, T) under draws of a chain."""
        law = self.model_.shares.told
        with one_blas_thread():
            drawn = self.posterior_.spread(law, n_draws, chain)
            populations = [self.model_.log_population(dict(zip(law, one))) for one in drawn]
            return np.stack([np.corrcoef(log_pi, rowvar=False) for log_pi in populations])
