"""What a memory keeps of a sequence that goes on: more tokens make another, which shares most of it.

What followed contexts is in runs, the earlier the longer; a run that is no longer than what comes after it
is merged with that. So each token is sorted about log2 T times in a stream of T tokens, however few come at
once, and nothing that was kept before is written to.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Followers(NamedTuple):
    """How often tokens followed contexts, by these and then by tokens."""

    contexts: np.ndarray  # (n,) int64
    tokens: np.ndarray  # (n,) int64
    counts: np.ndarray  # (n,) float64

    def of(self, context):
        """Return what followed a context, and how often."""
        here = slice(*np.searchsorted(self.contexts, [context, context + 1]))
        return self.tokens[here], self.counts[here]


@dataclass(frozen=True, eq=False)
class Remembered:
    """The tokens of one sequence so far, as a memory sees them."""

    last: np.ndarray  # (O,) int64 of the last steps, -1 where one is missing
    caches: np.ndarray  # (H, K) counts that fade, as the next step sees them
    runs: tuple = ()  # of tuples of Followers, one for each order

    def then(self, tokens, decay):
        """Return what is kept after more steps (n,); decay (H,) is that of a step."""
        order, n, seen = len(self.last), len(tokens), tokens >= 0
        ages, caches = np.arange(n, 0.0, -1.0)[seen], []
        for cache, fading in zip(self.caches, decay):
            new = np.bincount(tokens[seen], fading**ages, minlength=len(cache))
            caches.append(fading**n * cache + new)
        whole = np.concatenate([self.last, tokens])
        runs, K = self.runs, self.caches.shape[1]
        if order and seen.any():
            runs = _merged((*runs, tuple(_follow(whole, order, b + 1, K) for b in range(order))))
        return Remembered(whole[len(whole) - order :], np.reshape(caches, self.caches.shape), runs)

    def followers(self, width):
        """Return how often tokens (K,) followed the last `width` ones; None if one of these is missing."""
        tokens, K = self.last[len(self.last) - width :], self.caches.shape[1]
        if (tokens < 0).any():
            return None
        found = [run[width - 1].of(_number(tokens, K)) for run in self.runs]
        counts = np.zeros(K)
        for which, times in found:
            counts[which] += times
        return counts


def _number(tokens, n_categories):
    """Return the number of contexts, the tokens (width, ...) before one."""
    number = np.int64(0)
    for token in tokens:
        number = number * n_categories + token
    return number


def _follow(whole, order, width, n_categories):
    """Return what followed the `width` tokens before, of the steps after the first `order`."""
    n = len(whole)
    parts = [whole[order - back : n - back] for back in range(width, -1, -1)]
    known = np.all(np.stack(parts) >= 0, axis=0)
    *before, tokens = (part[known] for part in parts)
    contexts = np.asarray(_number(before, n_categories), dtype=np.int64)
    return _tallied(contexts, tokens, np.ones(len(tokens)))


def _tallied(contexts, tokens, counts):
    """Return followers with one entry for each context and token."""
    by = np.lexsort((tokens, contexts))
    contexts, tokens, counts = contexts[by], tokens[by], counts[by]
    is_new = np.ones(len(by), dtype=bool)
    is_new[1:] = (np.diff(contexts) != 0) | (np.diff(tokens) != 0)
    at = np.flatnonzero(is_new)
    sums = np.add.reduceat(counts, at) if len(at) else counts
    return Followers(contexts[at], tokens[at], sums)


def _merged(runs):
    """Merge the last runs as long as one is no longer than what comes after it."""
    while len(runs) > 1:
        *rest, earlier, last = runs
        if _length(earlier) > _length(last):
            break
        pairs = zip(earlier, last)
        runs = (*rest, tuple(_tallied(*map(np.concatenate, zip(*pair))) for pair in pairs))
    return runs


def _length(run):
    return max(len(each.tokens) for each in run)
