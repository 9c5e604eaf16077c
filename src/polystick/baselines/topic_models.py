"""The faces of the topic models that correlated topics are compared with."""

from typing import Any

import numpy as np

from polystick.arguments import PathLike, Progress, RandomState
from polystick.baselines.lda import DirichletTopics
from polystick.baselines.logistic_normal import logistic_normal_topics
from polystick.conjugate import NormalInverseWishart
from polystick.estimators.topic_correlation import CorrelatedTopicEstimator
from polystick.estimators.topic_face import TopicEstimator
from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from polystick.inference.schedules import Schedule
from polystick.validation import check_positive, check_prior

_VARIANCE = np.pi**2 / 6  # of a logit, were shares uniform: trigamma(1)


class LDA(TopicEstimator):
    """Latent Dirichlet allocation by collapsed Gibbs sampling: topics whose shares know no correlation.

    Parameters
    ----------
    n_topics : int
    topic_concentration : float
        Dirichlet prior of each topic's words.
    alpha : float, array (T,) or None
        Dirichlet prior of the shares. None learns it while burning in, a value for each topic.
    vectorizer : CountVectorizer or None
        How words are counted where documents are texts, as in `CorrelatedTopicModel`.
    inference : Gibbs or None
        None is Gibbs sampling with three chains. Tokens are visited one after another, so threads serve
        chains.
    random_state, n_jobs, progress, checkpoint, checkpoint_every
        As in `CorrelatedTopicModel`.

    Attributes
    ----------
    posterior_, topics_, components_, words_, vectorizer_, seed_, n_iter_
        As in `CorrelatedTopicModel`.
    """

    def __init__(self, n_topics: int = 10, *, topic_concentration: float = 0.05, alpha: Any = None,
                 vectorizer: Any = None, inference: Schedule | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None,
                 progress: Progress | None = None, checkpoint: PathLike | None = None,
                 checkpoint_every: float = 60.0) -> None:  # fmt: skip
        self.n_topics = n_topics
        self.topic_concentration = topic_concentration
        self.alpha = alpha
        self.vectorizer = vectorizer
        self._run_by(inference, random_state, n_jobs, progress, checkpoint, checkpoint_every)

    def _make_model(self, counts):
        alpha = None if self.alpha is None else np.asarray(self.alpha, dtype=np.float64)
        if alpha is not None:
            for value in np.atleast_1d(alpha).tolist():
                check_positive("alpha", value)
            if alpha.shape not in ((), (self.n_topics,)):
                raise ValueError(
                    f"alpha must be a number or {self.n_topics} numbers; got shape {alpha.shape}"
                )
        return DirichletTopics(
            self.n_topics, counts.shape[1], float(self.topic_concentration), alpha
        )


class LogisticNormalTopicModel(CorrelatedTopicEstimator):
    """The correlated topic model with a softmax instead of sticks.

    Sampled one logit at a time (Chen et al. 2013), or fitted by variational EM (Blei and Lafferty 2007).

    Parameters
    ----------
    n_topics : int
    topic_concentration : float
        Dirichlet prior of each topic's words.
    prior : NormalInverseWishart or None
        Prior of the mean and covariance of the T logits. None is a weak and proper one.
    vectorizer : CountVectorizer or None
        How words are counted where documents are texts, as in `CorrelatedTopicModel`.
    inference : Gibbs, MeanField or None
        None is Gibbs sampling with three chains; MeanField is variational EM.
    random_state, n_jobs, progress, checkpoint, checkpoint_every
        As in `CorrelatedTopicModel`.

    Attributes
    ----------
    posterior_, topics_, components_, words_, vectorizer_, seed_, n_iter_
        As in `CorrelatedTopicModel`.
    """

    _schedules = (Gibbs, MeanField)

    def __init__(self, n_topics: int = 10, *, topic_concentration: float = 0.05, prior: Any = None,
                 vectorizer: Any = None, inference: Schedule | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None,
                 progress: Progress | None = None, checkpoint: PathLike | None = None,
                 checkpoint_every: float = 60.0) -> None:  # fmt: skip
        self.n_topics = n_topics
        self.topic_concentration = topic_concentration
        self.prior = prior
        self.vectorizer = vectorizer
        self._run_by(inference, random_state, n_jobs, progress, checkpoint, checkpoint_every)

    def _make_model(self, counts):
        prior = self.prior
        if prior is None:
            prior = NormalInverseWishart.weak(np.zeros(self.n_topics), _VARIANCE)
        prior = check_prior(prior, self.n_topics, per="topic")
        return logistic_normal_topics(counts.shape[1], float(self.topic_concentration), prior)
