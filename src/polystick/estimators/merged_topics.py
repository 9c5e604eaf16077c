"""Topics that are read as one: a view of a fitted model, which stays as it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from polystick.estimators import topic_documents
from polystick.estimators.tables import index_of
from polystick.estimators.topic_labels import number_of
from polystick.estimators.word_measures import top_words

if TYPE_CHECKING:
    from polystick.estimators.topic_face import TopicEstimator

__all__ = ["MergedTopics", "merge"]


@dataclass(frozen=True, eq=False)
class MergedTopics:
    """Groups of topics, each read as one topic.

    Shares of a group are sums of shares; its words are those of its topics, in proportion to their sizes.
    Sums are of draws' means, so nothing has been fitted anew, and scores are those of the model.

    Attributes
    ----------
    groups : list of lists of topics
    labels : Index, the label or number of a single topic, "1 + 4" of a group
    topics_ : array (G, V)
    shares_ : array (G,), of the tokens
    """

    model: "TopicEstimator"
    groups: list
    labels: pd.Index
    topics_: np.ndarray
    shares_: np.ndarray

    def table(self, n_words: int = 10, *, words: Sequence[str] | None = None, by: str = "probability",
              weight: float | None = None) -> pd.DataFrame:  # fmt: skip
        """Return a table as `topics` of the model does, largest group first."""
        names = self.model._word_names(words)
        given = n_words, by, weight, self.model.seen_
        best = top_words(self.topics_, self.shares_, names, *given)
        found = pd.DataFrame(best, self.labels, pd.RangeIndex(1, best.shape[1] + 1))
        found.insert(0, "share", self.shares_)
        return found.sort_values("share", ascending=False)

    def transform(self, X: Any, *, times: Any = None, covariates: Any = None) -> Any:
        """Return the shares of the groups in documents, (n, G)."""
        shares = np.asarray(self.model.transform(X, times=times, covariates=covariates))
        return np.stack([shares[:, group].sum(axis=1) for group in self.groups], axis=1)

    def document_topics(self, X: Any, *, names: Sequence[str] | None = None, times: Any = None,
                        covariates: Any = None) -> pd.DataFrame:  # fmt: skip
        """Return the shares of the groups in documents as a table."""
        shares = self.transform(X, times=times, covariates=covariates)
        return topic_documents.share_table(shares, index_of(X), self.labels, names)


def merge(model, groups):
    """Return the view of a fitted model in which groups of topics, numbers or labels, are one each."""
    known, n = model._known_labels, model.n_topics
    asked = [sorted(number_of(t, known, n) for t in group) for group in _lists_of(groups)]
    flat = [topic for group in asked for topic in group]
    if len(set(flat)) < len(flat):
        raise ValueError("groups must not share topics; got one twice; join these groups")
    if not all(asked):
        raise ValueError("groups must have topics; got an empty one; leave it out")
    whole = sorted([*asked, *([t] for t in range(n) if t not in flat)])
    share, topics = model._share.mean(axis=0), model._average_topics
    mixed = [np.average(topics[group], axis=0, weights=_weights(share[group])) for group in whole]
    index = model._topic_index
    names = [index[g[0]] if len(g) == 1 else " + ".join(str(index[t]) for t in g) for g in whole]
    labels = pd.Index(names, dtype=object, name="topic")
    return MergedTopics(
        model, whole, labels, np.stack(mixed), np.array([share[g].sum() for g in whole])
    )


def _lists_of(groups):
    groups = list(groups)
    if any(isinstance(group, str) or not hasattr(group, "__len__") for group in groups):
        raise TypeError(
            "groups must be lists of topics, such as [[0, 3], [1, 2]]; got a topic alone; put a single group "
            "into a list too, as in [[0, 3]]"
        )
    return groups


def _weights(share):
    return share if share.sum() > 0 else np.ones_like(share)
