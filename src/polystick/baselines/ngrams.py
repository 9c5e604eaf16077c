"""What people use on text before they use a model of states: counts of words, of pairs and of triples.

All foretell each token by those before it in its sequence, and count on as they go. What they are tuned by,
the last tenth of what was seen, is no part of what is scored. They are

    unigram     (n_w + a) / (n + a K)
    cache       mixed with the unigram: counts of tokens that fade, to a half in so many steps
    bigram      frequencies of what followed the last token, mixed with the unigram (Jelinek and Mercer)
    Kneser-Ney  the same with an absolute discount, where what it takes goes to words by how many different
                tokens they followed; of order 2 or 3
"""

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

HALF_LIVES = (25.0, 50.0, 100.0, 200.0, 400.0, 800.0)
ADDED = tuple(np.geomspace(0.01, 3.0, 9))
WEIGHTS = tuple(np.linspace(0.05, 0.95, 19))
DISCOUNTS = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


class Seen(NamedTuple):
    """Of each step, what was counted before it; w is its token, v the one before, u that before v."""

    n_w: np.ndarray
    n: np.ndarray
    n_vw: np.ndarray
    n_v: np.ndarray
    kinds_v: np.ndarray  # how many different tokens followed v
    before_w: np.ndarray  # how many different tokens w followed
    pairs: np.ndarray  # how many different pairs there were
    n_uvw: np.ndarray
    n_uv: np.ndarray
    kinds_uv: np.ndarray
    before_vw: np.ndarray
    before_v: np.ndarray  # how many different pairs (u, v), each with a w, had v in the middle
    kinds_before_v: np.ndarray  # how many different w there were in those
    fading: np.ndarray  # (H,) counts of w that fade
    fading_all: np.ndarray  # (H,)


def count(tokens):
    """Return what was seen before each token (T,) of a sequence without gaps."""
    n: Counter = Counter()
    kinds: Counter = Counter()
    fading: dict = {}
    decay, nothing = 0.5 ** (1.0 / np.array(HALF_LIVES)), np.zeros(len(HALF_LIVES))
    whole, rows = nothing, []
    for t, w in enumerate(tokens.tolist()):
        v = tokens[t - 1].item() if t > 0 else None
        u = tokens[t - 2].item() if t > 1 else None
        at, value = fading.get(w, (t, nothing))
        value = value * decay ** (t - at)
        row = (
            n[w,], t, n[v, w], n["of", v], kinds[v], kinds["before", w], kinds["pairs"], n[u, v, w],
            n["of", u, v], kinds[u, v], kinds["before", v, w], kinds["around", v],
            kinds["after", v], value, whole,
        )  # fmt: skip
        rows.append(row)
        if v is not None:
            is_new = n[v, w] == 0
            kinds.update({v: is_new, ("before", w): is_new, "pairs": is_new})
            n.update([(v, w), ("of", v)])
        if u is not None:
            is_new = n[u, v, w] == 0
            is_first = is_new and kinds["before", v, w] == 0
            kinds.update({
                (u, v): is_new, ("before", v, w): is_new, ("around", v): is_new, ("after", v): is_first
            })  # fmt: skip
            n.update([(u, v, w), ("of", u, v)])
        n[w,] += 1
        fading[w], whole = (t, value + 1.0), (whole + 1.0) * decay
    return Seen(*map(np.array, zip(*rows)))


@dataclass(frozen=True)
class NGrams:
    """Probabilities of tokens given what was counted; settings are those that tuning chooses among."""

    kind: str
    n_categories: int

    @property
    def settings(self):
        return {
            "unigram": [(added,) for added in ADDED],
            "cache": list(itertools.product(ADDED, range(len(HALF_LIVES)), WEIGHTS)),
            "bigram": list(itertools.product(ADDED, WEIGHTS)),
            "Kneser-Ney, order 2": list(itertools.product(ADDED, DISCOUNTS)),
            "Kneser-Ney, order 3": list(itertools.product(ADDED, DISCOUNTS, DISCOUNTS)),
        }[self.kind]

    def probabilities(self, seen, added, *rest):
        """Return the probability of each token."""
        unigram = _mixed(seen.n_w, seen.n, added * self.n_categories, 1.0 / self.n_categories)
        if self.kind == "unigram":
            return unigram
        if self.kind == "cache":
            half, weight = rest
            return _interpolated(seen.fading[:, half], seen.fading_all[:, half], weight, unigram)
        if self.kind == "bigram":
            return _interpolated(seen.n_vw, seen.n_v, rest[0], unigram)
        words = _mixed(
            seen.before_w, seen.pairs, added * self.n_categories, 1.0 / self.n_categories
        )
        if self.kind == "Kneser-Ney, order 2":
            return _discounted(seen.n_vw, seen.n_v, seen.kinds_v, rest[0], words)
        pairs = _discounted(seen.before_vw, seen.before_v, seen.kinds_before_v, rest[0], words)
        return _discounted(seen.n_uvw, seen.n_uv, seen.kinds_uv, rest[1], pairs)

    def tune(self, seen):
        """Return the settings that foretell these tokens best."""
        return max(self.settings, key=lambda given: np.log(self.probabilities(seen, *given)).sum())

    def score_steps(self, tokens, n_seen):
        """Return log p (T - n_seen,) of the tokens after the first n_seen, and the settings."""
        seen = count(tokens)
        settings = self.tune(_part(seen, n_seen - n_seen // 10, n_seen))
        return np.log(self.probabilities(_part(seen, n_seen, None), *settings)), settings


KINDS = ("unigram", "cache", "bigram", "Kneser-Ney, order 2", "Kneser-Ney, order 3")


def _part(seen, first, last):
    return Seen(*(each[first:last] for each in seen))


def _mixed(count, total, strength, base):
    return (count + strength * base) / (total + strength)


def _interpolated(count, total, weight, base):
    """Return weight times frequencies plus the rest times a base; the base where there are none."""
    share = count / np.where(total > 0, total, 1.0)
    return np.where(total > 0, weight * share + (1.0 - weight) * base, base)


def _discounted(count, total, kinds, discount, base):
    """Return frequencies less a discount, which goes to a base."""
    kept = np.maximum(count - discount, 0.0) + discount * kinds * base
    return np.where(total > 0, kept / np.where(total > 0, total, 1.0), base)
