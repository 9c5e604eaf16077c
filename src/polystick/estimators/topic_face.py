"""The face that all topic models share."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from polystick import scores
from polystick.arguments import RandomState
from polystick.estimators.arviz_groups import Asked, Groups, assembled, need_fit, need_rows
from polystick.estimators.corpora import corpus_of, known_parts, part_of, put_together
from polystick.estimators.face import Face, Transformer
from polystick.estimators.folded import refuse_draws
from polystick.estimators.new_documents import NewDocuments, prior_words
from polystick.estimators.replicates import check_room, check_totals, totals_of
from polystick.estimators.row_names import ids_of, labels_of, named, same_rows
from polystick.estimators.seeds import seed_of
from polystick.estimators.tables import tabled
from polystick.estimators.texts import NO_WORDS, counted, counted_first
from polystick.estimators.topic_agreement import (
    agreement_of,
    agreement_table,
    pooled_sizes,
    with_chains,
)
from polystick.estimators.topic_covariates import NOTHING, About, TopicCovariates
from polystick.estimators.topic_reading import TopicReading
from polystick.estimators.topic_tables import size_table, topic_table
from polystick.inference.gibbs import Gibbs
from polystick.inference.posterior import Posterior
from polystick.inference.stochastic import Stream
from polystick.validation import (
    all_or_nothing,
    check_integer,
    check_level,
    check_positive,
    warn_user,
)

_UNKNOWN = "not yet compared"
_STATES = 32  # posterior states that new documents meet
_HELD_OUT_STATES = 8  # each has a swarm of particles
_DRAWS = 100  # posterior states, for ArviZ: each has a swarm of particles for each document


def _sweeps(gibbs):
    return gibbs.n_chains * (gibbs.n_burn + gibbs.n_draws * gibbs.thin)


class TopicEstimator(TopicReading, TopicCovariates, Transformer, Face):
    """What all topic models offer; a subclass says how to make its model."""

    _explored_as: ClassVar[str | None] = "topics"
    _axes = ("document", "topic")
    _schedules: ClassVar[tuple[type, ...]] = (Gibbs,)
    _posterior: Posterior | None  # None: that of a stream, drawn when asked for
    stream_: Stream | None
    _default = Gibbs(200, 200, n_chains=3, max_bytes=2**28, min_ess=400, max_draws=600)

    def _make_model(self, counts):
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, *, covariates: Any = None, resume: bool = False) -> Self:
        """Learn topics from texts, or from counts of words (n, V): an array, a CSR matrix or a DataFrame.

        Parameters
        ----------
        X : array-like or CSR of shape (n, V), a `Corpus`, or n documents
            Documents may be texts (a list, a Series, the one column of a table), lists of words, dicts of
            words and counts, or lists of (id, count) pairs; `words_` then holds their words, and all other
            methods take such documents too. One without words is kept: its shares are what the others say.
        y : ignored
        covariates : DataFrame of n rows
            Where shares depend on covariates: those of the documents, which belong together by their place.
        resume : bool
            Go on with the run in the checkpoint folder, if there is one.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            return self._fit(X, resume, About(covariates=covariates, X=X))

    def fit_transform(self, X: Any, y: Any = None, **about: Any) -> Any:
        """Fit, and return the shares of topics of the same documents, (n, T).

        Times or covariates of the documents are given as to `fit`.
        """
        return self.fit(X, **about).transform(X, **about)

    def _fit(self, X, resume, about=NOTHING):
        fit = self._begin(resume)
        self._read_prevalence(about, fit.inference)
        counts = self._start(X, fit.inference)
        model, given = self._make_model(counts), self._given(counts.shape[0], about)
        shards = self._shards(model, fit, counts, given)
        self._run(fit, model, shards, self._coords() | named("document", X))
        self._seen_rows, self.stream_ = ids_of(counts), None
        self._n_features_out = self.n_topics
        self._topics = self.topics_  # now, for `transform` must not change what is held
        return self

    def _start(self, X, inference):
        """Check what came in, and return it as a CSR matrix."""
        self._tell_of_long_runs()
        check_integer("n_topics", self.n_topics, at_least=2)
        check_positive("topic_concentration", self.topic_concentration)
        counts = counted_first(self, X, whole=inference.needs_whole_counts)
        self._labels = {}
        if not counts.sum():
            raise ValueError(NO_WORDS)
        if counts.sum() < self.n_topics:
            raise ValueError(
                f"n_topics must not exceed the number of tokens; got {self.n_topics} topics for "
                f"{counts.sum():g} tokens; ask for fewer topics"
            )
        self.seen_ = np.asarray(counts.sum(axis=0)).ravel() > 0
        return counts

    def _tell_of_long_runs(self):
        """Say that ``Gibbs()``, made for rows of a few numbers, is not the default here."""
        if self.inference == Gibbs() != self._default:
            most = self._default.max_draws or self._default.n_draws
            times = _sweeps(Gibbs()) / (self._default.n_chains * (self._default.n_burn + most))
            warn_user(
                f"Gibbs() makes {_sweeps(Gibbs())} sweeps over all chains, {times:.1f} times as many as "
                "inference=None at most; leave it out, or say how many: such as Gibbs(n_draws=200, "
                "n_burn=200, n_chains=3)"
            )

    @property
    def posterior_(self) -> Any:
        """The `Posterior`; that of a stream is drawn when it is asked for."""
        if self._posterior is None and self.stream_ is not None:
            self._posterior = self.stream_.posterior(self._coords())
        return self._posterior

    @posterior_.setter
    def posterior_(self, posterior):
        self._posterior, self._topics = posterior, None
        self._agreement = _UNKNOWN

    @property
    def topics_(self) -> Any:
        """Posterior mean of the topics, in the chain of the highest likelihood."""
        if self._topics is None:
            draws = self.posterior_["topics"][self.posterior_.best_chain]
            self._topics = draws.mean(axis=0, dtype=np.float64)
        return self._topics

    @property
    def components_(self) -> Any:
        """Topics (T, V) under the name that scikit-learn has for them: `topics_`, on average over time.

        They are probabilities, the posterior mean of each topic; those of scikit-learn's own latent Dirichlet
        allocation are pseudo-counts.
        """
        topics = self.topics_
        return topics.mean(axis=1) if topics.ndim == 3 else topics

    @property
    def _share(self):
        return self.posterior_["share"][self.posterior_.best_chain]

    def _shards(self, model, fit, counts, given):
        """Cut the documents into blocks; stochastic schedules want them in random order."""
        size = getattr(fit.inference, "rows_per_block", None)
        if size is None:
            return model.shards(counts, **given)
        order = np.random.default_rng(fit.seed % 2**63).permutation(counts.shape[0])
        if hasattr(counts, "row_cells"):  # a corpus, whose documents are looked up in this order
            return model.shards(counts, size, order, **given)
        given = {name: values[order] for name, values in given.items()}
        return model.shards(counts[order], size, order.astype(np.uint64), **given)

    # new documents

    def transform(self, X: Any, *, method: str = "fast", return_draws: bool = False,
                  return_std: bool = False, n_draws: int = _STATES, times: Any = None,
                  covariates: Any = None) -> Any:  # fmt: skip
        """Return each document's shares of topics, (n, T).

        Topics, those of the chain of the highest likelihood that the tables show, stay as they are: a new
        document does not change them. A document's result depends on its words alone.

        Parameters
        ----------
        X : array-like or CSR of shape (n, V), or documents as in `fit`
        method : "fast" or "exact"
            "fast" climbs, from equal shares, to where the shares are most probable given the words and the
            posterior means of the topics and of the law of the shares; it draws nothing. "exact" draws
            shares under posterior states and averages: several times slower, and better for documents of
            a few dozen words or fewer. Models with a softmax know no fast way and are always exact.
        return_draws : bool
            Also return draws (n_draws, n, T), one under each posterior state; the method is then "exact".
        return_std : bool
            Also return posterior standard deviations (n, T), estimated from those draws, likewise.
        n_draws : int
            Posterior draws that "exact" averages over.
        times : sequence of n integers, dates or pandas periods
            Where topics move with time: when the documents were written.
        covariates : DataFrame of n rows
            Where shares depend on covariates: those of the documents.
        """
        if method not in ("fast", "exact"):
            raise ValueError(f"method must be 'fast' or 'exact'; got {method!r}")
        check_integer("n_draws", n_draws, at_least=1)
        how, about = (method, return_draws, return_std, n_draws), About(times, covariates, X)
        found = (self._transformed(counts, of, how) for counts, of in self._pieces(X, about))
        names = self.get_feature_names_out()
        mean, *more = (tabled(self, each, X, names) if each.ndim == 2 else each
                       for each in put_together(found, X))  # fmt: skip
        return (mean, *more) if more else mean

    def _transformed(self, counts, about, how):
        method, return_draws, return_std, n_draws = how
        documents = self._documents(counts, about)
        if method == "fast" and documents.model.folds_quickly and not (return_draws or return_std):
            refuse_draws(n_draws, _STATES)
            return (documents.settle(self._mean_state()),)
        folded = documents.fold(n_draws, self.posterior_.best_chain, keep_draws=return_draws)
        return folded.told(return_draws, return_std)

    def _mean_state(self):
        """Return name -> posterior mean of what new documents need, in the chain that tables show."""
        posterior, names = self.posterior_, self.model_.fold_names
        law = [name for name in names if name != "topics"]
        draws = (np.ascontiguousarray(posterior[name][posterior.best_chain]) for name in law)
        means = {name: each.mean(axis=0) for name, each in zip(law, draws)}  # also of a pickle's
        return {**means, "topics": self.topics_}

    def score_samples(self, X: Any, *, method: str = "completion", observed: Any = None,
                      per: str | None = None, coefficient: bool = False, n_draws: int | None = None,
                      times: Any = None, covariates: Any = None) -> np.ndarray:  # fmt: skip
        """Return the log probability of each document's words, (n,), in nats.

        Parameters
        ----------
        X : array-like or CSR of shape (n, V), or documents as in `fit`
        method : "completion" or "held_out"
            "completion" shows the model a part of each document's tokens, picked at random, and scores the
            rest. "held_out" scores whole documents: sequential Monte Carlo, unbiased for each document's
            probability under each posterior state.
        observed : float or None
            Share of the tokens that "completion" shows; None is a half.
        per : "token", "document" or None
            Whether "completion" averages the probability of each token over posterior states, or that of all
            scored tokens of a document together (which needs many more states). None is "token".
        coefficient : bool
            Whether to count the multinomial coefficient in.
        n_draws : int or None
            Posterior draws to average over; None is 32, or 8 for "held_out".
        times, covariates : as in `transform`
        """
        how = (method, observed, per, coefficient, n_draws)
        return self._all_scored(X, how, About(times, covariates, X))[0]

    def score(self, X: Any, y: Any = None, *, method: str = "completion", observed: Any = None,
              per: str | None = None, coefficient: bool = False, n_draws: int | None = None,
              times: Any = None, covariates: Any = None) -> float:  # fmt: skip
        """Return the log probability per scored token, in nats, as in `score_samples`; bigger is better."""
        how = (method, observed, per, coefficient, n_draws)
        return scores.per_count(*self._all_scored(X, how, About(times, covariates, X)))

    def _all_scored(self, X, how, about):
        """Return log likelihoods (n,), and how many tokens they are of."""
        found = (self._scored(counts, of, how) for counts, of in self._pieces(X, about))
        values, n_tokens = zip(*((values, counts.sum()) for values, counts in found))
        return np.concatenate(values), np.sum(n_tokens)

    def _scored(self, counts, about, how):
        """Return log likelihoods (n,), and the tokens that they are of as counts (n, V)."""
        method, observed, per, coefficient, n_draws = how
        if method == "held_out":
            if observed is not None or per is not None:
                raise ValueError(
                    "method='held_out' scores whole documents and takes no observed or per; "
                    "leave them out, or take method='completion'"
                )
            documents = self._documents(counts, about)
            weights = documents.anneal(_HELD_OUT_STATES if n_draws is None else n_draws)
            values = scores.log_mean_exp(weights, axis=0)
            return values + scores.log_coefficients(counts) if coefficient else values, counts
        if method != "completion":
            raise ValueError(f"method must be 'completion' or 'held_out'; got {method!r}")
        observed, per = 0.5 if observed is None else observed, "token" if per is None else per
        if per not in ("token", "document"):
            raise ValueError(f"per must be 'token' or 'document'; got {per!r}")
        shown, rest = scores.split_words(counts, observed, self.seed_)
        n_draws = _STATES if n_draws is None else n_draws
        return self._documents(shown, about).complete(rest, n_draws, per, coefficient), rest

    def perplexity(self, X: Any, *, method: str = "completion", observed: Any = None,
                   per: str | None = None, coefficient: bool = False, n_draws: int | None = None,
                   times: Any = None, covariates: Any = None) -> float:  # fmt: skip
        """Return exp(-score): as if so many words were equally likely; smaller is better."""
        how = (method, observed, per, coefficient, n_draws)
        found = self._all_scored(X, how, About(times, covariates, X))
        return float(np.exp(-scores.per_count(*found)))

    def predict_counts(self, X: Any, *, totals: ArrayLike | None = None, n_draws: int = 32,
                       random_state: RandomState = None, times: Any = None,
                       covariates: Any = None) -> Any:  # fmt: skip
        """Return draws (n_draws, n, V) of word counts from the posterior predictive law, dense.

        Each posterior draw of the topics gives one: the document's shares are drawn given its words, then
        new words. So these are replicates of the same documents. One without words is new: for new documents
        of the corpus give zeros, and totals.

        Parameters
        ----------
        X : array-like or CSR of shape (n, V), or documents as in `fit`
            Words seen of each document.
        totals : int or array of shape (n,), optional
            Lengths of the documents to draw; None is those of X.
        n_draws : int
            Posterior draws, of all chains, at most; fewer where there are fewer.
        random_state : int, RandomState, Generator or None
            None is the seed of the fit.
        times, covariates : as in `transform`
        """
        counts = self._check(X)
        check_integer("n_draws", n_draws, at_least=1)
        given = totals_of(counts) if totals is None else check_totals(totals, counts.shape[0])
        seed = seed_of(self, random_state)
        names = self.model_.fold_names
        states = self.posterior_.states(names, self.posterior_.even_draws(names, n_draws))
        about = About(times, covariates, X)
        return self._documents(counts, about).replicates(states, given, seed)

    def sample_prior(self, n_rows: int = 1, n_draws: int = 1, *, random_state: RandomState = None,
                     times: Any = None, covariates: Any = None) -> Any:  # fmt: skip
        """Return draws (n_draws, n_rows, V) of the probabilities of words in documents, before any data.

        Each draw has topics, and a law of the shares, of its own from the prior. The same at each call,
        unless random_state is given; it is the seed of the fit by default.
        """
        check_is_fitted(self)
        check_integer("n_rows", n_rows, at_least=1)
        check_integer("n_draws", n_draws, at_least=1)
        check_room(2 * n_draws, n_rows, self.n_features_in_)
        seed = seed_of(self, random_state)
        given = self._given(n_rows, About(times, covariates))
        drawn = [prior_words(self.model_, n_rows, seed, i, given) for i in range(n_draws)]
        return np.stack(drawn)

    def to_arviz(self, X: Any = None, *, log_likelihood: bool = False, posterior_predictive: bool = False,
                 prior_predictive: bool = False, n_draws: int | None = None,
                 random_state: RandomState = None, times: Any = None,
                 covariates: Any = None) -> Any:  # fmt: skip
        """Return the posterior with the groups asked for, as what the installed ArviZ works on.

        That is InferenceData before ArviZ 1.0, a DataTree since. All groups have the same chains and draws:
        `posterior` and `sample_stats` are thinned to those that the others were made from. Counts are
        dense, (chain, draw, document, word), so give documents that are few, or ask for few draws.

        Parameters
        ----------
        X : array-like or CSR of shape (n, V), or documents as in `fit`
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
        random_state : int, RandomState, Generator or None
            None is the seed of the fit.
        times, covariates : as in `transform`
        """
        check_is_fitted(self)
        asked = Asked.of(self, log_likelihood, posterior_predictive, prior_predictive, n_draws,
                         random_state)  # fmt: skip
        need_rows(X, asked)
        return assembled(
            self.posterior_, self._groups(X, asked, About(times, covariates, X)), asked
        )

    def _groups(self, X, asked, about):
        names = self.model_.fold_names
        if X is None:
            return Groups(names, _DRAWS, None, "document", {}, None, "document", None, None)
        counts, labels, seed = self._check(X), labels_of(X), asked.seed
        check_room(2, *counts.shape)
        if asked.log_likelihood:
            need_fit(same_rows(self._seen_rows, counts), "the documents")
        documents = self._documents(counts, about)
        is_new = asked.posterior_predictive == "new"
        again = self._documents(0 * counts, about) if is_new else documents
        totals = totals_of(counts)
        coords = {
            "document": np.arange(len(totals)) if labels is None else labels,
            "category": [str(word) for word in self.words_],
        }
        return Groups(
            names,
            _DRAWS,
            counts.toarray(),
            "document",
            coords,
            lambda states: documents.log_likelihoods(states, seed),
            "document",
            lambda states: again.replicates(states, totals, seed),
            lambda n_draws: documents.prior_counts(n_draws, totals, seed),
        )

    def _documents(self, counts, about):
        """Return checked counts as documents that the fit can tell of."""
        given = self._given(counts.shape[0], about)
        return NewDocuments(self.model_, self.posterior_, self.seed_, self.n_jobs, counts, given)

    def _pieces(self, X, about):
        """Yield checked counts and what else is known of them, for each part of a corpus."""
        corpus = corpus_of(X)
        if corpus is None:
            yield self._check(X), about
            return
        check_is_fitted(self)
        self._check_running()
        yield from zip(known_parts(self, corpus), part_of(about, corpus))

    def _check(self, X):
        check_is_fitted(self)
        self._check_running()
        counts = counted(self, X, whole=True)
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

    def topics(self, n_words: int = 10, *, words: Sequence[str] | None = None, by: str = "probability",
               weight: float | None = None) -> Any:  # fmt: skip
        """Return a table of the topics, largest first: share of the tokens, and their words.

        Parameters
        ----------
        n_words : int
        words : sequence of V names, optional
            Where the data had none, such as ``vectorizer.get_feature_names_out()``.
        by : "probability", "relevance" or "frex"
            The likeliest words; or those that are likely here, less what they are anywhere (Sievert and
            Shirley 2014); or those that are frequent here and seldom elsewhere (Bischof and Airoldi 2012).
        weight : float from 0 to 1, or None
            Of probability in relevance, None is 0.6; of being exclusive in FREX, None is 0.5.
        """
        check_is_fitted(self)
        share = self._share.mean(axis=0)
        return self._topic_table(self.topics_, share, n_words, words, by, weight)

    def _topic_table(self, topics, share, n_words, words, by, weight):
        best = self._top_words(topics, share, n_words, words, by, weight)
        table = topic_table(best, share, self._topic_index)
        return with_chains(table, self.agreement_, self._topic_index)

    def topic_sizes(self, *, level: float = 0.9) -> pd.DataFrame:
        """Return the share of each topic in the tokens, with a central interval, largest first.

        Share and interval are over the draws of all chains that have the topic; `chains` says how many. That
        of a topic of one chain is too narrow: sizes move slowly, and hundreds of draws are worth a few.
        `between_chains` is the standard deviation of the chains' own averages, NaN for a topic of one chain.
        """
        check_is_fitted(self)
        check_level(level)
        if self.agreement_ is None:
            return size_table(self._share, level, self._topic_index)
        return pooled_sizes(self.posterior_, self.agreement_, level, self._topic_index)

    @property
    def agreement_(self) -> Any:
        """The `Agreement` of the chains on the topics; None for one chain, mean field and streams."""
        if self._agreement == _UNKNOWN:  # by value: it may come from a pickle
            self._agreement = agreement_of(self.posterior_)
        return self._agreement

    def topic_agreement(self) -> Any:
        """Return in how many chains each topic of the likeliest chain is, largest first.

        Returns
        -------
        DataFrame
            `share`, the average over the chains that have the topic, with the `lowest` and the `highest` of
            them; `chains`, how many have it; `lacking`, the numbers of those that do not; and `similarity`,
            1 for equal topics, to its worst match. From 0.8 on a match is taken for the same topic.
        """
        check_is_fitted(self)
        if self.agreement_ is None:
            raise ValueError(
                "topic_agreement compares chains, so there must be two at least; got a fit without: "
                "fit with inference=Gibbs(n_chains=3)"
            )
        return agreement_table(self.posterior_, self.agreement_, self._topic_index)

    def _coords(self):
        known = {"topic": np.arange(self.n_topics), "word": [str(word) for word in self.words_]}
        return known if self.prevalence_ is None else {**known, "covariate": self.prevalence_.names}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        return tags
