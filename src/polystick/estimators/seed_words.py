"""Words that topics should have, as people give them."""

from collections.abc import Mapping

import numpy as np

from polystick.models.seeded_words import Seed, SeededWords
from polystick.models.topic_words import DirichletWords
from polystick.validation import check_positive

__all__ = ["seed_labels", "words_with_seeds"]

LEAST = 0.125  # tokens of a seed, however rare


def seed_labels(seed_words, n_topics):
    """Return number -> label, and number -> words, of topic (a number or a label) -> words.

    Labels get the first numbers that no one asked for.
    """
    if seed_words is None:
        return {}, {}
    if not isinstance(seed_words, Mapping) or not seed_words:
        raise TypeError(
            "seed_words must be a mapping from topics, numbers or labels, to lists of words; got "
            f"{type(seed_words).__name__}"
        )
    numbers = {topic for topic in seed_words if not isinstance(topic, str)}
    if not all(isinstance(t, int | np.integer) and 0 <= t < n_topics for t in numbers):
        raise ValueError(f"topics of seed_words must be labels or 0 to {n_topics - 1}; got others")
    if len(seed_words) > n_topics:
        raise ValueError(
            f"seed_words must have no more topics than n_topics={n_topics}; got {len(seed_words)}"
        )
    free = iter(t for t in range(n_topics) if t not in numbers)
    place = {t: next(free) if isinstance(t, str) else int(t) for t in seed_words}
    labels = {place[topic]: topic for topic in seed_words if isinstance(topic, str)}
    return labels, {place[topic]: _listed(words) for topic, words in seed_words.items()}


def _listed(words):
    if isinstance(words, str) or not len(words):
        raise ValueError("seed_words must give each topic a list of words; got a string or nothing")
    return list(words)


def words_with_seeds(flat: DirichletWords, seed_words, seed_weight, n_topics, names, counts):
    """Return the law of words, with seeds where there are some.

    A seed weighs `seed_weight` times as much as all tokens of its word in the corpus.
    """
    _, by_topic = seed_labels(seed_words, n_topics)
    if not by_topic:
        return flat
    check_positive("seed_weight", seed_weight)
    places = {name: column for column, name in enumerate(names)}
    sums = np.asarray(counts.sum(axis=0)).ravel()
    seeds = []
    for topic, words in by_topic.items():
        for column in dict.fromkeys(_column(word, places, flat.n_words) for word in words):
            seeds.append(Seed(column, topic, max(LEAST, float(seed_weight) * float(sums[column]))))
    return SeededWords(flat, n_topics, tuple(seeds))


def _column(word, places, n_words):
    if word in places:
        return places[word]
    if isinstance(word, int | np.integer) and 0 <= word < n_words:
        return int(word)
    raise ValueError(
        f"seed_words must be in the vocabulary; {str(word)[:40]!r} is not: look at `words_`, keep rare "
        "words, give a DataFrame or texts so that columns have names, or give the number of a column"
    )
