"""The face of correlated topics."""

from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from polystick.arguments import PathLike, Progress, RandomState
from polystick.decomposition import decompose
from polystick.estimators.texts import counted
from polystick.estimators.topic_covariates import NOTHING, need_learned_scale
from polystick.estimators.topic_effects import TopicEffects
from polystick.estimators.topic_tables import tree_of_words
from polystick.inference.execution import execution_for
from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from polystick.inference.schedules import Schedule
from polystick.inference.stochastic import StochasticVI
from polystick.models.regressed_shares import RegressedShares
from polystick.models.topic_factors import assemble
from polystick.models.topic_shares import NormalShares, Sticks
from polystick.models.topic_words import DirichletWords
from polystick.models.tree_words import TreeWords
from polystick.population import LearnedScale
from polystick.validation import (
    all_or_nothing,
    check_integer,
    check_prior,
)

_SCALE = 1.0  # of standard deviations of psi, a priori


def _takes_streams(estimator):
    return isinstance(estimator.inference, StochasticVI)


class CorrelatedTopicModel(TopicEffects):
    """Topics of documents, whose shares have a law with correlations.

    Each document mixes topics in shares of its own; their logits (one for each binary split of the topics)
    have a Gaussian law over documents, with a mean and a covariance that are learned. With a `prevalence` the
    mean is a regression on covariates of the documents: a structural topic model, of which `effects` tells.

    Parameters
    ----------
    n_topics : int
    topic_concentration : float
        Dirichlet prior of each topic's words: the smaller, the fewer words a topic has.
    decomposition : str, array, nested tuples, linkage matrix or Decomposition, default="balanced"
        How topics become binary splits. "balanced" halves them again and again: where documents have few
        topics, logits of its splits are nearly symmetric, as a Gaussian law wants them. With "given", the
        paper's, sticks are broken off in the order of the topics, and while burning in topics are renamed so
        that the largest comes first.
    word_tree : None, str, array, nested tuples, linkage matrix or Decomposition
        None: topics have a Dirichlet prior over words. Else they have a Gaussian prior on a binary tree of
        the words, so that words below a common node rise and fall together from topic to topic: "similar"
        (words that share documents are close), "balanced", "huffman" or a tree of your own. Gibbs only;
        `topic_concentration` then serves the warm start.
    seed_words : mapping or None
        Words that topics should have: numbers of topics, or labels for them, -> lists of words (names of
        columns, or their numbers). Their Dirichlet prior then has more weight on these words in that topic.
        Without a `word_tree` only.
    seed_weight : float
        What a seed weighs, in the tokens of its word in the corpus: 1 is as if each token had been seen
        again, in that topic.
    prevalence : str or None
        How shares depend on covariates of the documents: the right side of a formula, such as
        "cr(year, df=5) + party", read by formulaic, which `polystick[formula]` brings. `fit` and all methods
        that take documents then need their `covariates`. Each term has a scale of its own that is learned,
        so factors of many levels, such as authors, are pooled. Gibbs only. The words of a topic do not
        depend on covariates.
    groups : column, list of columns, or None
        Columns of the covariates whose groups are pooled, such as the authors of documents: "author"; nested,
        "paper/author". They need a `prevalence`, which may be "1". New documents may be of other groups, and
        are then taken for those of a typical one.
    prior : NormalInverseWishart, LearnedScale or None
        Prior of the mean and covariance of psi. None: `LearnedScale`, which learns how large variances and
        how strong correlations are, centred where a uniform Dirichlet distribution of shares would be. A
        `prevalence` needs such a law.
    vectorizer : CountVectorizer or None
        How words are counted where documents are texts. None is `texts.default_vectorizer`; one that is
        fitted already is taken as it is, any other is cloned and fitted.
    inference : Gibbs, MeanField, StochasticVI or None
        The schedule with its settings; None is Gibbs sampling with three chains of 200 sweeps to forget and
        200 to 600 that count. `Gibbs()` without settings makes 4 x 1500. All of them start from a few hundred
        sweeps of collapsed latent Dirichlet allocation.
    random_state : int, RandomState, Generator or None
        The seed. The same seed gives the same bits on any number of threads. None takes a fresh one,
        kept in `seed_`.
    n_jobs : int or None
        Threads; None is every core this process may use, and -1 too.
    progress : bool, callable or None
        True shows a bar, None where a person watches: in a terminal or a notebook. A function is called
        with a `Progress` after each sweep.
    checkpoint : path or None
        A folder that the run saves itself to, so that ``fit(X, resume=True)`` can go on after a kill.
    checkpoint_every : float
        Seconds between two saves, about; the end of a run is saved in any case.

    Attributes
    ----------
    posterior_ : Posterior
        Draws of `topics`, `share`, `mean` and `cov`, running moments of the documents' `proportions`. With a
        `prevalence` `mean` and `cov` are of a document with average covariates, and `coefficients` are of
        columns that the fit has made of the formula: read `effects` in their place.
    prevalence_ : Prevalence or None
        The formula as the fit read it, and the covariates of its documents.
    topics_ : array (T, V)
        Posterior mean of the topics, in the chain of the highest likelihood.
    components_ : array (T, V)
        The same, under the name that scikit-learn has for it.
    words_ : array of V names
    vectorizer_ : CountVectorizer or None
        What counts the words of new texts; None where the documents were counts.
    seed_ : int
    n_iter_ : int
        Sweeps made.

    Notes
    -----
    Topics have no order that the data could know. At the end of the burn-in the topics of all chains are
    renamed after those of the first, by how alike they are, so draws of chains can be compared topic by
    topic; a bad R-hat then says that chains found different topics. The log likelihood needs no labels.
    As an average over chains that disagree would blend topics, tables, correlations and `transform` speak
    of the chain of the highest likelihood; scores average over all chains.

    Examples
    --------
    >>> import numpy as np
    >>> from polystick import CorrelatedTopicModel, MeanField
    >>> counts = np.random.default_rng(0).poisson(1.0, (20, 30))
    >>> model = CorrelatedTopicModel(3, inference=MeanField(), random_state=0).fit(counts)
    >>> model.transform(counts).shape
    (20, 3)
    """

    _schedules = (Gibbs, MeanField, StochasticVI)
    _listed = "topics"

    def __init__(self, n_topics: int = 10, *, topic_concentration: float = 0.05,
                 decomposition: Any = "balanced", word_tree: Any = None, seed_words: Any = None,
                 seed_weight: float = 1.0, prevalence: Any = None, groups: Any = None, prior: Any = None,
                 vectorizer: Any = None, inference: Schedule | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None,
                 progress: Progress | None = None, checkpoint: PathLike | None = None,
                 checkpoint_every: float = 60.0) -> None:  # fmt: skip
        self.n_topics = n_topics
        self.topic_concentration = topic_concentration
        self.decomposition = decomposition
        self.word_tree = word_tree
        self.seed_words = seed_words
        self.seed_weight = seed_weight
        self.prevalence = prevalence
        self.groups = groups
        self.prior = prior
        self.vectorizer = vectorizer
        self._run_by(inference, random_state, n_jobs, progress, checkpoint, checkpoint_every)

    @available_if(_takes_streams)
    def partial_fit(self, X, y=None, *, corpus_size=None):
        """Learn from one more batch of a stream of documents, which is then forgotten.

        Only for ``inference=StochasticVI(...)``.

        Parameters
        ----------
        X : array-like or CSR of shape (n, V), or documents as in `fit`
            Words of texts are those of the first batch, unless a fitted `vectorizer` knows more.
        y : ignored
        corpus_size : int
            How many documents there will be in all; asked for with the first batch.
        """
        with all_or_nothing(self):
            return self._partial_fit(X, corpus_size)

    def _partial_fit(self, X, corpus_size):
        stream = getattr(self, "stream_", None)
        stream = self._absorb(X, stream) if stream else self._first_batch(X, corpus_size)
        self.model_, self.stream_, self.posterior_ = stream.model, stream, None
        self.seed_, self.n_iter_ = stream.seed, stream.n_steps
        self._n_features_out = self.n_topics
        return self

    def _first_batch(self, X, corpus_size):
        if corpus_size is None:
            raise TypeError(
                "corpus_size must say how many documents the stream will have in all; got none"
            )
        check_integer("corpus_size", corpus_size, at_least=1)
        fit = self._begin(resume=False)
        self._read_prevalence(NOTHING, fit.inference)
        counts = self._start(X, fit.inference)
        whole = counts * (corpus_size / counts.shape[0])  # seeds weigh against the whole stream
        model, self.inference_ = self._make_model(whole), fit.inference
        shards = model.shards(counts, fit.inference.rows_per_block)
        stream = fit.inference.start(model, shards, seed=fit.seed, corpus_size=corpus_size)
        stream.absorb(shards, execution_for(self.n_jobs))
        return stream

    def _absorb(self, X, stream):
        self.inference_ = self._schedule()
        counts = counted(self, X, whole=self.inference_.needs_whole_counts)
        self.seen_ = self.seen_ | (np.asarray(counts.sum(axis=0)).ravel() > 0)
        shards = stream.model.shards(counts, self.inference_.rows_per_block)
        stream.absorb(shards, execution_for(self.n_jobs))
        return stream

    def _make_model(self, counts):
        decomposition = decompose(self.decomposition, n_categories=self.n_topics)
        prior = self.prior
        if prior is None:
            prior = LearnedScale(decomposition.dirichlet_moments(1.0)[0], scale=_SCALE)
        prior = check_prior(prior, self.n_topics - 1)
        shares = self._make_shares(prior)
        return assemble(self._make_words(counts), shares, Sticks(decomposition))

    def _make_shares(self, prior):
        if self.prevalence_ is None:
            return NormalShares(prior)
        need_learned_scale(prior)
        x = self.prevalence_.columns(self.prevalence_.frame)
        return RegressedShares(prior, self.prevalence_.terms, x.T @ x / len(x))

    def _make_words(self, counts):
        concentration = float(self.topic_concentration)
        if self.word_tree is None:
            return self._seeded(DirichletWords(counts.shape[1], concentration), counts)
        self._refuse_seeds()
        if not (self.inference is None or isinstance(self.inference, Gibbs)):
            raise TypeError(
                f"a word_tree needs inference=Gibbs(...) or None; got {self.inference!r}"
            )
        names = getattr(self, "feature_names_in_", None)
        return TreeWords(tree_of_words(self.word_tree, counts, names), concentration)
