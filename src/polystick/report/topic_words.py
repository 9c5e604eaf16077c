"""The words of topics, so few of them that a page can order them by any relevance."""

import numpy as np
from scipy.stats import rankdata

from polystick.report import panels

__all__ = ["panel"]

_SHOWN = 25  # of a topic, at any weight
_WEIGHTS = np.linspace(0, 1, 11)
_MOST_SEARCHED = 6000
_TOPICS_OF_A_WORD = 3
_TINY = np.finfo(float).tiny


def panel(model, names, share):
    """Return the panel of the words: of each topic those that are best at some weight, or by FREX.

    Words are numbers in `vocabulary`; `speaks` has for each the topics that it speaks of, and how surely.
    """
    seen = np.flatnonzero(np.asarray(model.seen_))
    p = np.maximum(model.components_[:, seen], _TINY)
    marginal = share @ p / share.sum()
    frex = _frex(p)
    chosen = [_chosen(np.log(p[t]), np.log(marginal), frex[t]) for t in range(len(p))]
    kept = _searched(marginal, chosen)
    number = np.full(len(seen), -1)
    number[kept] = np.arange(len(kept))
    vocabulary = np.asarray(names)[seen[kept]]
    return {
        "kind": "words",
        "title": "Words",
        "vocabulary": [str(word) for word in vocabulary],
        "all": panels.short(marginal[kept]),
        "words": [
            {
                "word": number[own].tolist(),
                "p": panels.short(p[t, own]),
                "frex": np.round(frex[t, own], 3).tolist(),
            }
            for t, own in enumerate(chosen)
        ],
        "speaks": _speaks(p[:, kept], share),
        "note": "Relevance 1 orders words by how likely they are in the topic, 0 by how much likelier than "
        "anywhere (Sievert and Shirley 2014). FREX: frequent here and seldom elsewhere (Bischof and "
        "Airoldi 2012).",
    }


def _chosen(log_p, log_marginal, frex):
    """Return the words that are among the best at some weight, or by FREX."""
    orders = [w * log_p + (1 - w) * (log_p - log_marginal) for w in _WEIGHTS]
    best = [
        np.argpartition(-order, min(_SHOWN, len(order) - 1))[:_SHOWN] for order in (*orders, frex)
    ]
    return np.unique(np.concatenate(best))


def _frex(p, weight=0.5):
    """Return FREX (T, V): the harmonic mean of ranks by frequency and by being exclusive."""
    ranks = [
        rankdata(part, method="max", axis=1) / part.shape[1] for part in (p / p.sum(axis=0), p)
    ]
    return 1 / (weight / ranks[0] + (1 - weight) / ranks[1])


def _searched(marginal, chosen):
    """Return the words that can be searched for: all that are shown, and the most frequent."""
    frequent = np.argsort(-marginal, kind="stable")[:_MOST_SEARCHED]
    return np.unique(np.concatenate([*chosen, frequent]))


def _speaks(p, share):
    """Return for each word [topic, percent, topic, percent ...], the likeliest first."""
    joint = share[:, None] * p
    given = 100 * joint / joint.sum(axis=0)
    best = np.argsort(-given, axis=0, kind="stable")[:_TOPICS_OF_A_WORD]
    sure = np.take_along_axis(given, best, axis=0).round().astype(int)
    return [
        [int(n) for pair in zip(best[:, v], sure[:, v]) if pair[1] >= 1 for n in pair]
        for v in range(p.shape[1])
    ]
