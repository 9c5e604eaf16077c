"""Correlations of the log shares of topics, for topic models that have them."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from polystick.estimators.intervals import interval
from polystick.estimators.topic_association import TopicAssociation
from polystick.inference.execution import one_blas_thread
from polystick.validation import check_integer, check_level


class TopicCorrelation(TopicAssociation):
    """The part of a face that tells of correlations and associations."""

    model_: Any
    posterior_: Any
    n_topics: Any

    def topic_correlation(self, *, level=0.9, n_draws=100):
        """Return correlations, over documents of the fitted law, of the topics' log shares.

        This describes the law. It is no test of association, which `topic_association` is: for independent
        topics it is not zero, a little below among large topics and above among small ones. In simulated
        corpora with 16 independent topics the 90 % intervals excluded zero for 23 to 72 % of the pairs of
        large topics and for 36 to 98 % of those of small ones, but no correlation was beyond 0.45.

        Parameters
        ----------
        level : float
            Probability of the central interval.
        n_draws : int
            Posterior draws to use.

        Returns
        -------
        Interval of data frames (T, T)
        """
        check_is_fitted(self)
        check_level(level)
        check_integer("n_draws", n_draws, at_least=1)
        law = self.model_.shares.told
        with one_blas_thread():
            drawn = self.posterior_.spread(law, n_draws, self.posterior_.best_chain)
            draws = [dict(zip(law, one)) for one in drawn]
            populations = [self.model_.log_population(drawn) for drawn in draws]
            found = np.stack([np.corrcoef(log_pi, rowvar=False) for log_pi in populations])
        names = pd.RangeIndex(self.n_topics, name="topic")
        return interval(found, level, lambda a: pd.DataFrame(a, index=names, columns=names))
