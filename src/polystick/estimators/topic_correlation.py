"""Which topics go together, for topic models that know."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from polystick.estimators.intervals import interval
from polystick.inference.execution import one_blas_thread
from polystick.validation import check_integer, check_level


class TopicCorrelation:
    """The part of a face that tells of correlations."""

    model_: Any
    posterior_: Any
    n_topics: Any

    def topic_correlation(self, *, level=0.9, n_draws=100):
        """Return posterior correlations of the topics' log shares over documents.

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
        law = self.model_.fold_names[:2]
        with one_blas_thread():
            drawn = self.posterior_.spread(law, n_draws, self.posterior_.best_chain)
            draws = [dict(zip(law, one)) for one in drawn]
            populations = [self.model_.log_population(drawn) for drawn in draws]
            found = np.stack([np.corrcoef(log_pi, rowvar=False) for log_pi in populations])
        names = pd.RangeIndex(self.n_topics, name="topic")
        return interval(found, level, lambda a: pd.DataFrame(a, index=names, columns=names))
