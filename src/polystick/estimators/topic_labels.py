"""Names that people give to topics."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

__all__ = ["checked_labels", "feature_names", "number_of", "topic_index"]


def checked_labels(labels, known, n_topics):
    """Return number -> label: those known, changed by a mapping, or by a sequence for all topics."""
    if isinstance(labels, Mapping):
        asked = {number_of(topic, known, n_topics): label for topic, label in labels.items()}
        if len(asked) < len(labels):
            raise ValueError("labels must name each topic once; got one under its number and name")
    else:
        asked = dict(enumerate(_sequence(labels, n_topics)))
    merged = {**known, **{topic: _checked(label, n_topics) for topic, label in asked.items()}}
    found = {topic: merged[topic] for topic in sorted(merged) if merged[topic] is not None}
    doubled = pd.Index(list(found.values()))
    if doubled.has_duplicates:
        twice = doubled[doubled.duplicated()][0]
        raise ValueError(
            f"labels must differ; got {twice[:40]!r} for two topics; add a word to one"
        )
    return found


def _sequence(labels, n_topics):
    if isinstance(labels, str) or not hasattr(labels, "__len__") or len(labels) != n_topics:
        got = len(labels) if hasattr(labels, "__len__") and not isinstance(labels, str) else labels
        raise ValueError(
            f"labels must be {n_topics} names, one for each topic, or a mapping from topics to names; "
            f"got {str(got)[:40]}"
        )
    return list(labels)


def _checked(label, n_topics):
    if label is None:
        return None
    if not isinstance(label, str) or not label.strip():
        raise TypeError(f"labels must be strings that are not empty, or None; got {label!r:.40}")
    if label.isdecimal() and int(label) < n_topics:
        raise ValueError(f"labels must not be numbers of topics; got {label!r}; add a word")
    return str(label)


def number_of(topic, known, n_topics):
    """Return the number of a topic that is given by its number or its label."""
    if isinstance(topic, int | np.integer) and not isinstance(topic, bool):
        if 0 <= topic < n_topics:
            return int(topic)
        raise ValueError(f"topics have the numbers 0 to {n_topics - 1}; got {topic}")
    for number, label in known.items():
        if label == topic:
            return number
    there = ", ".join(map(repr, known.values())) or "none; see set_labels"
    raise ValueError(f"no topic is labelled {topic!r:.40}; labels are {there}")


def topic_index(known, n_topics):
    """Return an index of the topics: labels where there are some, else numbers."""
    if not known:
        return pd.RangeIndex(n_topics, name="topic")
    return pd.Index([known.get(t, t) for t in range(n_topics)], dtype=object, name="topic")


def feature_names(known, names):
    """Return names of columns, with labels where there are some."""
    return np.array([known.get(t, name) for t, name in enumerate(names)], dtype=object)
