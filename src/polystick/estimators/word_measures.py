"""Which words tell of a topic: measures on topics (T, V) and their shares (T,), bigger is better.

probability : the likeliest words
relevance   : weight log p(word | topic) + (1 - weight) log(p(word | topic) / p(word))
              (Sievert and Shirley 2014): likely words, less those that are likely anywhere
frex        : words that are both frequent in the topic and exclusive to it, the harmonic mean of their
              ranks by either (Bischof and Airoldi 2012)
"""

import numpy as np
from scipy.stats import rankdata

from polystick.validation import check_integer

__all__ = ["WEIGHTS", "frex", "measured", "relevance", "top_words"]

WEIGHTS = {"probability": None, "relevance": 0.6, "frex": 0.5}
_TINY = np.finfo(np.float64).tiny


def relevance(topics, share, weight=WEIGHTS["relevance"]):
    """Return the relevance (T, V) of words; weight 1 is the order of their probabilities."""
    topics = np.maximum(topics, _TINY)
    return np.log(topics) - (1 - weight) * np.log(share @ topics / np.sum(share))


def frex(topics, share, weight=WEIGHTS["frex"]):
    """Return FREX (T, V), from 0 to 1; the weight is that of being exclusive.

    A word is exclusive to a topic as far as its probability there is all that it has in any topic. Shares do
    not matter. Ranks are shares of the words that have as much or less.
    """
    topics = np.maximum(topics, _TINY)
    exclusive = _ranks(topics / topics.sum(axis=0))
    return 1 / (weight / exclusive + (1 - weight) / _ranks(topics))


def _ranks(values):
    return rankdata(values, method="max", axis=1) / values.shape[1]


def measured(topics, share, by="probability", weight=None):
    """Return topics (T, V) by a measure of `WEIGHTS`; None is the weight that stands there."""
    if by not in WEIGHTS:
        raise ValueError(f"by must be one of {', '.join(map(repr, WEIGHTS))}; got {by!r}")
    if by == "probability":
        if weight is not None:
            raise ValueError(
                f"by='probability' weighs nothing; got weight={weight!r}: leave it out, or take "
                "by='relevance' or by='frex'"
            )
        return topics
    weight = WEIGHTS[by] if weight is None else _check_weight(weight)
    return {"relevance": relevance, "frex": frex}[by](topics, share, weight)


def _check_weight(weight):
    if not isinstance(weight, int | float | np.number) or not 0 <= weight <= 1:
        raise ValueError(f"weight must be a number from 0 to 1; got {weight!r}")
    return float(weight)


def top_words(topics, share, names, n_words, by="probability", weight=None, seen=slice(None)):
    """Return names (T, n_words) of the best words of each topic.

    seen : (V,) bool, words that the data had; others are exclusive to any topic by chance, and come last
    """
    check_integer("n_words", n_words, at_least=1)
    scores = topics
    if by != "probability" or weight is not None:
        scores = np.full(topics.shape, -np.inf)
        scores[:, seen] = measured(topics[:, seen], share, by, weight)
    return names[np.argsort(-scores, axis=1, kind="stable")[:, :n_words]]
