"""What people read of topics: words, labels, documents and queries, as tables."""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from polystick.estimators import topic_documents
from polystick.estimators.merged_topics import merge
from polystick.estimators.row_names import row_labels
from polystick.estimators.tables import index_of
from polystick.estimators.topic_agreement import with_chains
from polystick.estimators.topic_labels import checked_labels, feature_names, topic_index
from polystick.estimators.topic_queries import asked_words, query_table
from polystick.estimators.topic_tables import check_words
from polystick.estimators.word_measures import top_words
from polystick.validation import check_integer


class TopicReading(ClassNamePrefixFeaturesOutMixin):
    """Tables of a fitted topic model that has topics_, posterior_, words_ and transform."""

    # labels

    def set_labels(self, labels: Any) -> Self:
        """Give topics names, which all tables and `get_feature_names_out` then use, until the next fit.

        Parameters
        ----------
        labels : mapping or sequence
            Topics (their numbers or present labels) -> names, or names of all topics. None takes a name away.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._labels = checked_labels(labels, self._known_labels, self.n_topics)
        return self

    @property
    def topic_labels_(self) -> np.ndarray:
        """Labels of the topics, or their numbers where there are none."""
        return self._topic_index.to_numpy(dtype=object)

    @property
    def _known_labels(self):
        return getattr(self, "_labels", {})

    @property
    def _topic_index(self):
        return topic_index(self._known_labels, self.n_topics)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of what `transform` returns: labels, or numbers after the name of the class."""
        return feature_names(self._known_labels, super().get_feature_names_out(input_features))

    # words

    @property
    def _average_topics(self):
        """Topics (T, V), those that evolve averaged over time."""
        topics = self.topics_
        return topics if topics.ndim == 2 else topics.mean(axis=1)

    def _word_names(self, words):
        return self.words_ if words is None else check_words(words, self.n_features_in_)

    def _top_words(self, topics, share, n_words, words=None, by="probability", weight=None):
        names = self._word_names(words)
        return top_words(topics, share, names, n_words, by, weight, seen=self.seen_)

    def summary(self, n_words: int = 7, *, words: Sequence[str] | None = None) -> Any:
        """Return a table of the topics, largest first: share, likeliest words, and words by FREX.

        `chains` is in how many chains a topic is, and ``attrs["chains"]`` says that in a sentence.

        Parameters
        ----------
        n_words : int
        words : sequence of V names, optional
        """
        check_is_fitted(self)
        topics, share = self._average_topics, self._share.mean(axis=0)
        found = {
            title: self._top_words(topics, share, n_words, words, by)
            for title, by in (("likeliest", "probability"), ("frex", "frex"))
        }
        lines = {title: [", ".join(map(str, row)) for row in rows] for title, rows in found.items()}
        table = pd.DataFrame({"share": share, **lines}, index=self._topic_index)
        table = with_chains(table, self.agreement_, self._topic_index)
        table.attrs["chains"] = self.posterior_.tree.attrs.get("told", "")
        return table.sort_values("share", ascending=False)

    def merged(self, groups: Any) -> Any:
        """Return a view in which each of these groups of topics is one topic; the model stays as it is.

        Parameters
        ----------
        groups : sequence of sequences of topics, numbers or labels
            Such as ``[[1, 4], ["war", "army"]]``; others stay alone.

        Returns
        -------
        MergedTopics
        """
        check_is_fitted(self)
        return merge(self, groups)

    def topics_for(self, query: Any, *, words: Sequence[str] | None = None) -> pd.DataFrame:
        """Return which topics a few words speak of: a table of probabilities, the likeliest topic first.

        Parameters
        ----------
        query : str or sequence of names of words
            Words that are not in the vocabulary are ignored, with a warning.
        words : sequence of V names, optional

        Returns
        -------
        DataFrame
            The probability of each topic given a token of the word, for each word; "together" takes them
            for words of one topic.
        """
        check_is_fitted(self)
        names = self._word_names(words)
        vectorizer = getattr(self, "vectorizer_", None)
        build = getattr(vectorizer, "build_analyzer", None)
        analyze = None if build is None else build()
        asked = asked_words(query, names, analyze)
        given = self._average_topics, self._share.mean(axis=0), asked, names
        return query_table(*given, self._topic_index)

    # documents

    def document_topics(self, X: Any = None, *, names: Sequence[str] | None = None, times: Any = None,
                        covariates: Any = None) -> pd.DataFrame:  # fmt: skip
        """Return the shares of topics in documents as a table, documents by topics.

        Parameters
        ----------
        X : documents as in `transform`, or None
            None is the documents of the fit, whose shares were averaged over the run.
        names : sequence of n labels, optional
            Of the documents; else the index of X, or numbers.
        times, covariates : as in `transform`
        """
        check_is_fitted(self)
        if X is None:
            shares, index = self._fitted_shares(), row_labels(self.posterior_, "document")
        else:
            shares = np.asarray(self.transform(X, times=times, covariates=covariates))
            index = index_of(X)
        return topic_documents.share_table(shares, index, self._topic_index, names)

    def _fitted_shares(self):
        try:
            return self.posterior_.running("proportions")[0]
        except KeyError as error:
            raise ValueError(
                "this run has kept no shares of its documents; give the documents, as in document_topics(X)"
            ) from error

    def representative_documents(self, X: Any, texts: Sequence[str] | None = None, *, n: int = 3,
                                 times: Any = None, covariates: Any = None) -> pd.DataFrame:  # fmt: skip
        """Return the documents that speak most of each topic, with the beginnings of their texts.

        Documents without words are left out, those much shorter than most (a quarter of the median length)
        come last, and of copies there is one.

        Parameters
        ----------
        X : documents as in `transform`
        texts : sequence of n strings, optional
            Where X are counts, to be shown.
        n : int
            Documents of each topic, at most.
        times, covariates : as in `transform`

        Returns
        -------
        DataFrame
            (topic, rank) -> document (its label or number), share, tokens and, if there are any, text.
        """
        check_integer("n", n, at_least=1)
        shares = np.asarray(self.transform(X, times=times, covariates=covariates))
        texts = topic_documents.texts_of(X, texts, len(shares))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `transform` has said it
            counts = self._check(X)
        found = topic_documents.speaking(shares, counts, n)
        index, topics = index_of(X), self._topic_index
        return topic_documents.speaking_table(found, shares, counts, index, topics, texts)
