"""The face of dynamic topics."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from polystick.arguments import PathLike, Progress, RandomState
from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import decompose
from polystick.estimators.document_kinds import count_documents
from polystick.estimators.intervals import interval
from polystick.estimators.time_slices import TimeSlices, check_length
from polystick.estimators.topic_covariates import About, need_learned_scale
from polystick.estimators.topic_effects import TopicEffects
from polystick.estimators.topic_tables import tree_of_words
from polystick.inference.execution import one_blas_thread
from polystick.inference.schedules import Schedule
from polystick.models.regressed_walk import RegressedWalk
from polystick.models.topic_factors import assemble
from polystick.models.topic_shares import Sticks
from polystick.models.topic_words import DirichletWords
from polystick.models.tree_words import TreeWords
from polystick.models.walking_shares import WalkingShares
from polystick.models.walking_words import WalkingWords
from polystick.population import LearnedScale
from polystick.validation import all_or_nothing, check_integer, check_level, check_prior

_SCALE = 1.0  # of standard deviations of psi about a level, a priori
_STEP = 0.05  # expected variance of a step of psi from slice to slice, a priori


class DynamicTopicModel(TopicEffects):
    """Topics of documents with time stamps, whose shares move with time.

    The mean of the logits of the shares walks from one slice of time to the next; documents scatter about it
    with a covariance of their own. Topics can be fixed, or their words can walk too. A slice without
    documents is walked through.

    Parameters
    ----------
    n_topics : int
    topic_concentration : float
        Dirichlet prior of each topic's words; with `evolving` or `word_tree` it serves the warm start only.
    freq : str
        Length of a slice where time stamps are dates, as pandas writes it: "Y", "Q", "M". Integers are
        slices of length 1 and take no other, and periods have their own.
    evolving : bool
        Whether the words of topics change from slice to slice. Memory then grows with topics x slices x
        words: take long slices and few words.
    word_tree : None, str, array, nested tuples, linkage matrix or Decomposition
        A tree of the words, as in `CorrelatedTopicModel`. Words of evolving topics walk on it, and None is
        "similar"; other topics have a Gaussian prior on it, and for None a Dirichlet prior.
    seed_words, seed_weight
        As in `CorrelatedTopicModel`; without `evolving` and `word_tree` only.
    prevalence : str or None
        How shares depend on covariates of the documents, beyond the level of their slice: a formula, as in
        `CorrelatedTopicModel`. What varies with time alone is told from the levels only by how smooth these
        are, so let covariates be of documents, such as who speaks and where.
    groups : column, list of columns, or None
        Columns of the covariates whose groups are pooled, as in `CorrelatedTopicModel`.
    prior : NormalInverseWishart, LearnedScale or None
        Prior of how documents scatter about the level of their slice; its mean is that of the first level.
        None: a `LearnedScale`, as in `CorrelatedTopicModel`; a `prevalence` needs one.
    vectorizer : CountVectorizer or None
        How words are counted where documents are texts, as in `CorrelatedTopicModel`.
    inference : Gibbs or None
        This model is sampled only. None is Gibbs sampling with three chains.
    random_state, n_jobs, progress, checkpoint, checkpoint_every
        As in `CorrelatedTopicModel`.

    Attributes
    ----------
    times_ : pandas Index
        The slices, from the first to the last.
    posterior_ : Posterior
        Draws of `levels` (time, stick), `cov`, `step_cov`, `topics` and `share`.
    topics_ : array (T, V), or (T, S, V) where topics evolve
        Posterior mean of the topics.
    components_ : array (T, V)
        The same, on average over time where topics evolve.
    words_, vectorizer_, seed_, n_iter_
        As in `CorrelatedTopicModel`.

    Examples
    --------
    >>> import numpy as np
    >>> from polystick import DynamicTopicModel, Gibbs
    >>> rng = np.random.default_rng(0)
    >>> counts, years = rng.poisson(1.0, (20, 30)), np.repeat([1990, 1991, 1993, 1994], 5)
    >>> short = Gibbs(n_draws=10, n_burn=10, n_chains=1)
    >>> model = DynamicTopicModel(3, inference=short, random_state=0).fit(counts, times=years)
    >>> model.shares_over_time().mean.shape
    (5, 3)
    """

    def __init__(self, n_topics: int = 10, *, topic_concentration: float = 0.05, freq: str = "Y",
                 evolving: bool = False, word_tree: Any = None, seed_words: Any = None,
                 seed_weight: float = 1.0, prevalence: Any = None, groups: Any = None, prior: Any = None,
                 vectorizer: Any = None, inference: Schedule | None = None, random_state: RandomState = None,
                 n_jobs: int | None = None, progress: Progress | None = None,
                 checkpoint: PathLike | None = None,
                 checkpoint_every: float = 60.0) -> None:  # fmt: skip
        self.n_topics = n_topics
        self.topic_concentration = topic_concentration
        self.freq = freq
        self.evolving = evolving
        self.word_tree = word_tree
        self.seed_words = seed_words
        self.seed_weight = seed_weight
        self.prevalence = prevalence
        self.groups = groups
        self.prior = prior
        self.vectorizer = vectorizer
        self._run_by(inference, random_state, n_jobs, progress, checkpoint, checkpoint_every)

    def fit(self, X: Any, y: Any = None, *, times: Any = None, covariates: Any = None,
            resume: bool = False) -> Self:  # fmt: skip
        """Learn topics from texts or counts of words (n, V), and the time stamps of the documents.

        Parameters
        ----------
        X : array-like or CSR of shape (n, V), or documents as in `CorrelatedTopicModel`
        y : ignored
        times : sequence of n integers, dates or pandas periods
        covariates : DataFrame of n rows
            Where there is a `prevalence`: those of the documents, which belong together by their place.
        resume : bool
            Go on with the run in the checkpoint folder, if there is one.
        """
        with all_or_nothing(self):
            check_length(times, count_documents(X))
            self.slices_ = TimeSlices.spanning(times, self.freq)
            self.times_, self._dates = self.slices_.labels, self.slices_.number(times)
            return self._fit(X, resume, About(times, covariates, X))

    def shares_over_time(self, *, level: float = 0.9, n_draws: int = 50) -> Any:
        """Return the expected shares of topics in each slice, with intervals: data frames (S, T)."""
        check_is_fitted(self)
        check_level(level)
        check_integer("n_draws", n_draws, at_least=1)
        law = self.model_.shares.told
        draws = self.posterior_.spread(law, n_draws, self.posterior_.best_chain)
        with one_blas_thread():
            found = [self._shares_by_slice(SimpleNamespace(**dict(zip(law, one)))) for one in draws]
        columns = self._topic_index
        return interval(
            np.stack(found), level, lambda a: pd.DataFrame(a, index=self.times_, columns=columns)
        )

    def _shares_by_slice(self, state):
        """Return the expected shares (S, T) of documents with the covariates of the corpus."""
        shares = self.model_.shares
        return shares.shares_by_slice(state.levels, shares.average(state)[1], self.model_.link)

    def topics(self, n_words: int = 10, *, words: Sequence[str] | None = None, time: Any = None,
               by: str = "probability", weight: float | None = None) -> Any:  # fmt: skip
        """Return a table of the topics, on average over time or in one slice.

        Parameters
        ----------
        n_words, words, by, weight
            As in `CorrelatedTopicModel`.
        time : time stamp, optional
            The share is then that which `shares_over_time` expects in this slice, and words are those of the
            slice where topics evolve.
        """
        check_is_fitted(self)
        topics, share = self._average_topics, self._share.mean(axis=0)
        if time is not None:
            (place,) = self.slices_.number([time])
            topics = topics if self.topics_.ndim == 2 else self.topics_[:, place]
            share = self.shares_over_time().mean.to_numpy()[place]
        return self._topic_table(topics, share, n_words, words, by, weight)

    def _make_model(self, counts):
        decomposition = decompose("balanced", n_categories=self.n_topics)
        mean, variance = decomposition.dirichlet_moments(1.0)
        prior = LearnedScale(mean, scale=_SCALE) if self.prior is None else self.prior
        prior, law = check_prior(prior, self.n_topics - 1), None
        if isinstance(prior, LearnedScale):
            law = LearnedScale(np.zeros_like(mean), prior.scale, prior.nu)
            prior = NormalInverseWishart.weak(prior.centre, variance)
        steps = NormalInverseWishart.weak(np.zeros_like(mean), _STEP).of_cov
        shares = self._regressed(WalkingShares(len(self.slices_), prior, steps, law))
        return assemble(self._make_words(counts), shares, Sticks(decomposition))

    def _regressed(self, walk):
        if self.prevalence_ is None:
            return walk
        need_learned_scale(self.prior)
        x = self.prevalence_.columns(self.prevalence_.frame)
        return RegressedWalk(walk, self.prevalence_.terms, x.T @ x / len(x))

    def _make_words(self, counts):
        concentration = float(self.topic_concentration)
        if not self.evolving and self.word_tree is None:
            return self._seeded(DirichletWords(counts.shape[1], concentration), counts)
        self._refuse_seeds()
        spec = "similar" if self.word_tree is None else self.word_tree
        tree = tree_of_words(spec, counts, getattr(self, "feature_names_in_", None))
        if not self.evolving:
            return TreeWords(tree, concentration)
        return WalkingWords(tree, len(self.slices_), concentration)

    def _coords(self):
        times = np.asarray(
            self.times_.astype(str) if isinstance(self.times_, pd.PeriodIndex) else self.times_
        )
        return {**super()._coords(), "time": times}

    def _given(self, n, about):
        check_length(about.times, n)
        given = super()._given(n, about._replace(times=None))
        return {"slices": self.slices_.number(about.times), **given}
