"""Memory: how a token depends on those before it in its sequence, besides the state. For one token a step::

psi_tj = (what states and biases say) + sum_m w_m f_mtj

where f_m is what one memory says of split j, as log odds less those that it would have with nothing to
remember (`kernels.memories` has the formulas):

    one fading cache, of a speed that is learned   u + c_t / pull, where c_t counts tokens, the last ones more
    what followed the last token                   counts - discount, and u in the place of what that takes
    what followed the last two                     the same, and the one above in the place of u

u are fixed frequencies. The weights w ~ N(0, 1) are independent; of the caches all but one have weight 0, and
which one has not is uniform a priori. With biases at u and no states, w = 1 for one memory alone is that
memory mixed with the unigram (cache) or interpolated with it (bigram, trigram). Together they multiply the
odds, so what one of them knows the others need not.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from polystick.decomposition import Decomposition
from polystick.kernels import algebra, memories
from polystick.models.chain_sums import added

CACHE_PULL = 3.0  # times the half-life: how many tokens the frequencies are worth, beside a cache
NUMBERS_AT_ONCE = 2**22
PRIME = np.uint64(11400714819323198485)


class RecallSums(NamedTuple):
    """What the weights are learned from, sums over the active splits of all steps."""

    linear: np.ndarray  # (P,) of kappa f
    precision: np.ndarray  # (P, P) of omega f f'
    cross: np.ndarray  # (k, E, P) of omega u f', of each stick

    def __add__(self, other):
        return added(self, other)

    def given(self, emission):
        """Return the sums of (kappa - omega E u) f: what is left of psi is the memory's."""
        return self.linear - np.einsum("ke,kep->p", emission, self.cross)


def levels(recalled, weights):
    """Return what the memory says of each split, for features (..., P)."""
    return np.einsum("...c,c->...", recalled, weights)


def recall_sums(shard, u, potential, n_sticks):
    """Return the sums of a block of steps whose u are given."""
    size, width = shard.recalled.shape[1], u.shape[1]
    sums = RecallSums(*map(np.zeros, ((size,), (size, size), (n_sticks, width, size))))
    if size:
        memories.gather(*shard.active, *potential, shard.recalled, u, *sums)
    return sums


@dataclass(frozen=True, eq=False)
class Memory:
    """What is remembered.

    Parameters
    ----------
    decomposition : Decomposition
    frequencies : array (K,)
        u, above 0; they need not add up to 1.
    half_lives : tuple of float
        Of the caches that there may be, in steps.
    order : int
        How many tokens back contexts reach: 0, 1 or 2.
    """

    decomposition: Decomposition
    frequencies: np.ndarray
    half_lives: tuple[float, ...] = (50.0, 200.0, 800.0)
    order: int = 2

    DISCOUNTS: ClassVar = (0.75, 0.9)

    @property
    def size(self):
        """The number of features."""
        return len(self.half_lives) + self.order

    @property
    def names(self):
        """The names of the features."""
        return [f"cache {half:g}" for half in self.half_lives] + ["bigram", "trigram"][: self.order]

    @cached_property
    def _law(self):
        u = self.frequencies / self.frequencies.sum()
        masses = np.stack(self.decomposition.sides(u), axis=-1)
        halves = np.array(self.half_lives, dtype=np.float64)
        return memories.Law(
            masses, np.log(masses[:, 0] / masses[:, 1]), 2.0 ** (1.0 / halves), CACHE_PULL * halves,
            np.array(self.DISCOUNTS[: self.order]),
        )  # fmt: skip

    @cached_property
    def _tree(self):
        return tuple(self.decomposition.paths())

    # features

    def features(self, tokens, starts, past=None):
        """Return f (entries, P) of the splits that tokens (S,) are active at, one step after another.

        past : of each sequence the tokens before those, or None
        """
        depth, result = np.diff(self._tree[0]), []
        nothing, none = np.zeros(self.size), np.empty((0, self.decomposition.n_categories - 1))
        for all_tokens, n_past, _ in _whole(tokens, starts, past):
            seen = depth[np.where(all_tokens < 0, 0, all_tokens)] * (all_tokens >= 0)
            found = np.empty((seen.sum(), self.size))
            self._recall(all_tokens, 0, len(all_tokens), nothing, found, none)
            result.append(found[seen[:n_past].sum() :])
        return np.concatenate(result)

    def levels(self, tokens, starts, weights, past=None):
        """Yield (slice, levels): the sum of w f of all splits (steps, k), for some steps after others."""
        k, weights = self.decomposition.n_categories - 1, np.ascontiguousarray(weights)
        size, none = max(1, NUMBERS_AT_ONCE // k), np.empty((0, self.size))
        for all_tokens, n_past, start in _whole(tokens, starts, past):
            tables = self._tables(all_tokens)
            self._recall(all_tokens, 0, n_past, weights, none, np.empty((0, k)), tables)
            for first in range(n_past, len(all_tokens), size):
                last = min(first + size, len(all_tokens))
                levels = np.empty((last - first, k))
                self._recall(all_tokens, first, last, weights, none, levels, tables)
                yield slice(start + first - n_past, start + last - n_past), levels

    def _recall(self, tokens, first, last, weights, features, levels, tables=None):
        """Walk through some steps of one sequence."""
        tables = self._tables(tokens) if tables is None else tables
        memories.recall(
            tokens, first, last, self._tree, self._law, tables, weights, features, levels
        )

    def after(self, history):
        """Return f (k, P) of the step after a history (T,) of one sequence, in which -1 is missing."""
        law, k = self._law, self.decomposition.n_categories - 1
        found, seen = np.zeros((k, self.size)), history >= 0
        ages = np.arange(len(history), 0.0, -1.0)[seen]
        for h, growth in enumerate(law.growth):
            counts = self._count(history[seen], growth**-ages)
            first, second = counts + law.pull[h] * law.masses.T
            found[:, h] = np.log(first / second) - law.log_odds
        masses, odds = law.masses.T, law.log_odds
        for back in range(self.order):
            followers = _followers(history, back + 1)
            if not len(followers):
                break
            rest = law.discounts[back] * len(np.unique(followers))
            kinds = self._count(np.unique(followers), None)
            masses = self._count(followers, None) - law.discounts[back] * kinds + rest * masses
            masses = masses / len(followers)
            now = np.log(masses[0] / masses[1])
            found[:, len(self.half_lives) + back] = now - odds
            odds = now
        return found

    def _count(self, tokens, weights):
        """Return weighted counts (2, k) of both sides of all splits."""
        counts = np.bincount(tokens, weights, minlength=self.decomposition.n_categories)
        return np.stack(self.decomposition.sides(counts.astype(np.float64)))

    def _tables(self, tokens):
        """Return empty tables, large enough for what these tokens follow."""
        K, depth, n_entries, n_contexts = (
            self.decomposition.n_categories, np.diff(self._tree[0]), 0, 0
        )  # fmt: skip
        contexts, seen = np.zeros(len(tokens), np.uint64), tokens >= 0
        for back in range(1, self.order + 1):
            contexts = contexts * PRIME + np.roll(tokens, back).astype(np.uint64)
            pairs = contexts[seen] * PRIME + tokens[seen].astype(np.uint64)
            n_entries += int(depth[tokens[seen][np.unique(pairs, return_index=True)[1]]].sum())
            n_contexts += len(np.unique(contexts[seen]))
        n, m = (_power_above(2 * size) for size in (n_entries, n_contexts))
        return memories.Tables(
            np.zeros(n, np.uint64), np.zeros(n, np.int64), np.zeros(n), np.zeros(n),
            np.zeros(n, np.int64), np.zeros(m, np.uint64), np.zeros(m), np.zeros(m),
            np.zeros(m, np.int64), np.zeros((len(self.half_lives), K - 1, 2)),
            np.ones(len(self.half_lives)),
        )  # fmt: skip

    def at_steps(self, shards, steps):
        """Return f (n, k, P) of some steps, by their numbers in all shards."""
        found, first = [], 0
        for shard in shards:
            for a, b in itertools.pairwise(shard.starts):
                inside = [t for t in steps - first if a <= t < b]
                found += [self.after(shard.tokens[a:t]) for t in inside]
            first += shard.n_steps
        return np.stack(found)

    def simulate(self, psi, totals, weights, rng):
        """Draw counts (T, K) of sequences of a token or none a step, given psi (S, k) without memory."""
        at, result = 0, []
        for total in totals:
            history = np.full(len(total), -1)
            for t in np.flatnonzero(total):
                here = psi[at + t] + np.sum(self.after(history[:t]) * weights, axis=-1)
                history[t] = rng.choice(
                    self.decomposition.n_categories, p=self.decomposition.probabilities(here)
                )
            at += len(total)
            result.append(
                (history[:, None] == np.arange(self.decomposition.n_categories)).astype(np.int64)
            )
        return result

    # weights

    @property
    def first_weights(self):
        """Return where chains start: the second half of half-lives, and half of what contexts say."""
        weights = np.zeros(self.size)
        weights[self._columns(len(self.half_lives) // 2)] = 0.5
        return weights

    def draw_from_prior(self, rng):
        """Draw the weights (P,)."""
        chosen = int(rng.integers(max(1, len(self.half_lives))))
        weights = np.zeros(self.size)
        columns = self._columns(chosen)
        weights[columns] = rng.standard_normal(len(columns))
        return weights

    def _columns(self, chosen):
        """Return which features count where the cache of number `chosen` does."""
        n = len(self.half_lives)
        return np.array([*([chosen] if n else []), *range(n, self.size)], dtype=np.intp)

    def draw_weights(self, linear, precision, rng):
        """Draw which cache counts, and the weights, given a quadratic exponent in all of them."""
        laws = [self._given(c, linear, precision) for c in range(max(1, len(self.half_lives)))]
        logs = np.array([log for *_, log in laws])
        chosen = int(np.argmax(logs + rng.gumbel(size=len(logs))))
        root, mean, _ = laws[chosen]
        weights = np.zeros(self.size)
        noise = rng.standard_normal(len(mean))
        weights[self._columns(chosen)] = mean + algebra.solve_upper(root, noise)
        return weights

    def _given(self, chosen, linear, precision):
        """Return root and mean of the weights' precision where this cache counts, and log of its evidence."""
        at = self._columns(chosen)
        root = algebra.root(precision[np.ix_(at, at)] + np.eye(len(at)))
        half = algebra.solve_lower(root, linear[at])
        mean = algebra.solve_upper(root, half)
        return root, mean, 0.5 * np.sum(half * half) - 0.5 * algebra.log_det(root)


def _whole(tokens, starts, past):
    """Yield the tokens of each sequence with those before, how many these are, and where it starts."""
    for i, (a, b) in enumerate(itertools.pairwise(starts.tolist())):
        before = tokens[:0] if past is None else past[i]
        yield np.concatenate([before, tokens[a:b]]), len(before), a


def _followers(history, width):
    """Return the tokens that followed the last `width` ones before; none if one of these is missing."""
    context = history[len(history) - width :]
    if len(history) < width + 1 or (context < 0).any():
        return np.zeros(0, dtype=np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(history[:-1], width)
    at = np.flatnonzero((windows == context).all(axis=1)) + width
    return history[at][history[at] >= 0]


def _power_above(n):
    return 1 << max(4, int(n).bit_length())
