"""Memory: how a token depends on those before it in its sequence, besides the state. For one token a step::

psi_tj = (what states and biases say) + sum_m w_m f_mtj

where f_m is what one memory says of split j, as log odds less those that it would have with nothing to
remember (`kernels.memories` has the formulas):

    one fading cache, of a speed that is learned   u + c_t / pull, where c_t counts tokens, the last ones more
    what followed the last token                   counts - discount, and u in the place of what that takes
    what followed the last two                     the same, and the one above in the place of u

u are fixed frequencies. The weights w ~ |N(0, 1)| are independent; of the caches all but one have weight 0,
and which one has not is uniform a priori. With biases at u and no states, w = 1 for one memory alone is that
memory mixed with the unigram (cache) or interpolated with it (bigram, trigram). Together they multiply the
odds, so what one of them knows the others need not.

No weight is below 0. u knows from the whole fit how often each token comes, and biases do; so of those that
came already fewer would seem to be left, and in short sequences a cache would be learned that forbids them.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from polystick.decomposition import Decomposition
from polystick.kernels import algebra, memories
from polystick.models.chain_sums import added
from polystick.models.remembered import Remembered

CACHE_PULL = 3.0  # times the half-life: how many tokens the frequencies are worth, beside a cache
NUMBERS_AT_ONCE = 2**22
ROUNDS = 3  # of weights in a sweep, each given the others
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

    def features(self, tokens, starts):
        """Return f (entries, P) of the splits that tokens (S,) are active at, one step after another."""
        depth, result = np.diff(self._tree[0]), []
        nothing, none = np.zeros(self.size), np.empty((0, self.decomposition.n_categories - 1))
        for a, b in itertools.pairwise(starts.tolist()):
            here = tokens[a:b]
            found = np.empty((depth[here[here >= 0]].sum(), self.size))
            self._recall(here, 0, len(here), nothing, found, none)
            result.append(found)
        return np.concatenate(result)

    def levels(self, tokens, starts, weights):
        """Yield (slice, levels): the sum of w f of all splits (steps, k), for some steps after others."""
        k, weights = self.decomposition.n_categories - 1, np.ascontiguousarray(weights)
        size, none = max(1, NUMBERS_AT_ONCE // k), np.empty((0, self.size))
        for a, b in itertools.pairwise(starts.tolist()):
            tables = self._tables(tokens[a:b])
            for first in range(a, b, size):
                last = min(first + size, b)
                levels = np.empty((last - first, k))
                self._recall(tokens[a:b], first - a, last - a, weights, none, levels, tables)
                yield slice(first, last), levels

    def _recall(self, tokens, first, last, weights, features, levels, tables=None):
        """Walk through some steps of one sequence."""
        tables = self._tables(tokens) if tables is None else tables
        memories.recall(
            tokens, first, last, self._tree, self._law, tables, weights, features, levels
        )

    @property
    def nothing(self):
        """What is kept of a sequence that has yet to begin."""
        K = self.decomposition.n_categories
        return Remembered(np.full(self.order, -1), np.zeros((len(self.half_lives), K)))

    def then(self, remembered, tokens):
        """Return what is kept after more steps (n,), whose tokens are -1 where missing."""
        return remembered.then(tokens, 1.0 / self._law.growth)

    def after(self, remembered):
        """Return f (k, P) of the next step."""
        law, found = self._law, []
        for pull, counts in zip(law.pull, remembered.caches):
            first, second = self._sides(counts) + pull * law.masses.T
            found.append(np.log(first / second) - law.log_odds)
        masses, odds = law.masses.T, law.log_odds
        for back, discount in enumerate(law.discounts):
            counts = remembered.followers(back + 1)
            if counts is None or not counts.any():
                break
            is_kind = counts > 0.0
            rest = discount * np.count_nonzero(is_kind)
            masses = (self._sides(counts - discount * is_kind) + rest * masses) / counts.sum()
            now = np.log(masses[0] / masses[1])
            found.append(now - odds)
            odds = now
        nothing = [np.zeros(len(odds))] * (self.size - len(found))
        return np.column_stack([*found, *nothing])

    def along(self, remembered, tokens):
        """Return f (n, k, P) of steps, each given those before it, and what is kept after them all."""
        found = np.empty((len(tokens), self.decomposition.n_categories - 1, self.size))
        for t in range(len(tokens)):
            found[t] = self.after(remembered)
            remembered = self.then(remembered, tokens[t : t + 1])
        return found, remembered

    def on_paths(self, everywhere, tokens):
        """Return f (entries, P) of the splits that tokens (n,) are active at, given those of all splits."""
        starts, nodes, _ = self._tree
        steps = np.flatnonzero(tokens >= 0)
        parts = [
            everywhere[t, nodes[starts[w] : starts[w + 1]]] for t, w in zip(steps, tokens[steps])
        ]
        return np.concatenate([np.zeros((0, self.size)), *parts])

    def _sides(self, counts):
        """Return counts (2, k) of both sides of all splits."""
        return np.stack(self.decomposition.sides(counts))

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
                at, remembered = a, self.nothing
                for t in (t for t in steps - first if a <= t < b):
                    remembered, at = self.then(remembered, shard.tokens[at:t]), t
                    found.append(self.after(remembered))
            first += shard.n_steps
        return np.stack(found)

    def simulate(self, psi, totals, weights, rng):
        """Draw counts (T, K) of sequences of a token or none a step, given psi (S, k) without memory."""
        at, result, K = 0, [], self.decomposition.n_categories
        for total in totals:
            tokens, remembered = np.full(len(total), -1), self.nothing
            for t in range(len(total)):
                if total[t]:
                    here = psi[at + t] + np.sum(self.after(remembered) * weights, axis=-1)
                    tokens[t] = rng.choice(K, p=self.decomposition.probabilities(here))
                remembered = self.then(remembered, tokens[t : t + 1])
            at += len(total)
            result.append((tokens[:, None] == np.arange(K)).astype(np.int64))
        return result

    # weights

    @property
    def first_weights(self):
        """Return where chains start: the second half of half-lives, and half of what contexts say."""
        weights, n = np.zeros(self.size), len(self.half_lives)
        weights[[*([n // 2] if n else []), *range(n, self.size)]] = 0.5
        return weights

    def draw_from_prior(self, rng):
        """Draw the weights (P,)."""
        weights, n = np.zeros(self.size), len(self.half_lives)
        chosen = int(rng.integers(max(1, n)))
        columns = [*([chosen] if n else []), *range(n, self.size)]
        weights[columns] = np.abs(rng.standard_normal(len(columns)))
        return weights

    def draw_weights(self, weights, linear, precision, rng):
        """Draw which cache counts, and the weights, given a quadratic exponent in all of them.

        weights : (P,) those so far, as each is drawn given the others
        """
        weights, n = weights.copy(), len(self.half_lives)
        groups = [*([range(n)] if n else []), *([m] for m in range(n, self.size))]
        for _ in range(ROUNDS):
            for group in map(list, groups):  # of which one counts
                weights[group] = 0.0
                slope = (linear - algebra.multiply(precision, weights))[group]
                J = np.diagonal(precision)[group] + 1.0
                logs = 0.5 * slope**2 / J - 0.5 * np.log(J) + log_ndtr(slope / np.sqrt(J))
                chosen = int(np.argmax(logs + rng.gumbel(size=len(logs))))
                weights[group[chosen]] = _draw_above_0(slope[chosen], J[chosen], rng)
        return weights


def _draw_above_0(slope, precision, rng):
    """Draw from a normal law with this h and J, given that it is above 0."""
    root = np.sqrt(precision)
    tail = np.log1p(-rng.random()) + log_ndtr(slope / root)
    return max(0.0, (slope / root - ndtri_exp(tail)) / root)


def _power_above(n):
    return 1 << max(4, int(n).bit_length())
