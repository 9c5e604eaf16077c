"""New documents under fixed topics: shares of topics, and the probability of words.

Any topic model will do that is `Foldable`, so all models are scored by one estimator. A prior is one
posterior state of the topics; documents move on from state to state of a chain, and start again at the next
chain, whose topics are others.
"""

import itertools
from typing import Any, Protocol

import numpy as np
from scipy.special import logsumexp, softmax
from scipy.stats import norm

from polystick.keys import Key


class Foldable(Protocol):
    """A topic model that new documents may meet."""

    @property
    def fold_names(self) -> tuple[str, ...]:
        """What is needed of a recorded draw."""

    @property
    def folds_quickly(self) -> bool:
        """Whether there is quick_shares(prior, shard) -> (n, T), without draws."""

    def shards(self, counts: Any, size: int, ids: np.ndarray, **given: np.ndarray) -> list:
        """Cut counts (n, V) into blocks."""

    def fold_prior(self, described: dict[str, np.ndarray]) -> Any:
        """Return a prior, with `topics` (V, ..) and their `sizes` (T,)."""

    def initial_rows(self, prior: Any, shard: Any, key: Key) -> Any: ...

    def prior_rows(self, prior: Any, shard: Any, key: Key) -> Any:
        """Draw rows as if nothing had been seen."""

    def fold(self, prior: Any, shard: Any, rows: Any, key: Key) -> Any:
        """Draw rows so that the law of the shares given the words stays."""

    def proportions_of(self, rows: Any) -> np.ndarray:
        """Return the shares of topics (n, T)."""

    def word_ids(self, shard: Any) -> np.ndarray:
        """Return the row of `topics` for each cell."""


def fold_in(model, priors, shard, seed, *, firsts=(0,), n_burn=25, n_sweeps=10):
    """Yield for each state the shares of topics (n, T): their mean over the last sweeps, and one draw.

    firsts : numbers of the states that are the first of a chain
    """
    sweep = 0
    for number, prior in enumerate(priors):
        mean, burn = 0.0, n_burn if number in firsts else 0
        if number in firsts:
            rows = model.initial_rows(prior, shard, Key(seed, sweep))
        for i in range(burn + n_sweeps):
            sweep += 1
            rows = model.fold(prior, shard, rows, Key(seed, sweep))
            if i >= burn:
                mean = mean + model.proportions_of(rows)
        yield mean / n_sweeps, model.proportions_of(rows)


def annealed_log_weights(model, priors, shard, seed, *, n_stages=40, n_particles=32):
    """Return log weights (S, n): the mean of exp over states is unbiased for each document's probability.

    A sequential Monte Carlo sampler (Del Moral et al. 2006) with the words of a document as the temperature:
    particles start from the prior; each stage weighs them by the next few words, in random order, picks
    among them by weight, and moves them by a step that knows the words so far. With one particle it is
    annealed importance sampling (Neal 2001), far noisier; Wallach et al. (2009) go one word at a time.
    """
    tokens, stages = in_random_order(shard, seed), _stages(shard, n_stages)
    return np.stack(
        [
            _anneal(model, p, tokens, stages, Key(seed).chain(i), n_particles)
            for i, p in enumerate(priors)
        ]
    )


def _anneal(model, prior, tokens, stages, key, n_particles):
    swarm = copied(tokens, n_particles)
    rows, total = model.prior_rows(prior, swarm, key), np.zeros(len(tokens.rows))
    for stage, (before, after) in enumerate(itertools.pairwise(stages), start=1):
        here = Key(key.seed, stage)
        start, stop = (swarm.starts + np.repeat(seen, n_particles) for seen in (before, after))
        fresh = swarm._replace(starts=start, stops=stop)
        gained = log_probabilities(model, fresh, model.proportions_of(rows), prior)
        gained = gained.reshape(-1, n_particles)
        total += logsumexp(gained, axis=1) - np.log(n_particles)
        picked = _pick(gained, norm.cdf(here.normals("pick", tokens.rows, 1)))
        rows = type(rows)(*(value[picked] for value in rows))
        rows = model.fold(prior, swarm._replace(stops=stop), rows, here)
    return total


def copied(tokens, n_particles):
    """Return the block with copies of each document, which share its words but no random stream."""
    every = np.repeat(np.arange(len(tokens.rows)), n_particles)
    number = np.tile(np.arange(n_particles, dtype=np.uint64), len(tokens.rows))
    ids = tokens.rows[every] ^ (number * np.uint64(0x8CB92BA72F3D8DD7))
    given = {name: values[every] for name, values in tokens.given.items()}
    starts, stops = tokens.starts[every], tokens.stops[every]
    return tokens._replace(rows=ids, starts=starts, stops=stops, given=given)


def _pick(log_weights, offset):
    """Return which rows (n P,) survive, by systematic resampling within each document's (n, P)."""
    n, n_particles = log_weights.shape
    edges = np.cumsum(softmax(log_weights, axis=1), axis=1)
    places = (np.arange(n_particles) + offset) / n_particles * edges[:, -1:]
    chosen = (edges[:, None, :-1] <= places[:, :, None]).sum(axis=2)
    return (chosen + n_particles * np.arange(n)[:, None]).ravel()


def log_probabilities(model, shard, proportions, prior):
    """Return the log probability of each document's words, (n,), without multinomial coefficients."""
    lengths = shard.stops - shard.starts
    document = np.repeat(np.arange(len(lengths)), lengths)
    cell = np.arange(lengths.sum()) + np.repeat(shard.starts - _offsets(lengths), lengths)
    weights = proportions / prior.sizes
    topics = prior.topics[model.word_ids(shard)[cell], : weights.shape[1]]
    mixed = np.einsum("ct,ct->c", weights[document], topics)
    logs = shard.counts[cell] * np.log(np.maximum(mixed, np.finfo(np.float64).tiny))
    return np.bincount(document, weights=logs, minlength=len(lengths))


def in_random_order(shard, seed):
    """Return the block with a cell for each token, in a random order that a document alone decides."""
    rng_keys = [np.random.default_rng([seed % 2**63, int(row)]) for row in shard.rows]
    words = [
        rng.permutation(np.repeat(shard.words[a:b], shard.counts[a:b]))
        for rng, a, b in zip(rng_keys, shard.starts, shard.stops)
    ]
    lengths = np.array([len(w) for w in words], dtype=np.int64)
    starts, flat = _offsets(lengths), np.concatenate(words).astype(np.int32)
    return shard._replace(
        starts=starts,
        stops=starts + lengths,
        words=flat,
        counts=np.ones(len(flat), np.int32),
        vocabulary=flat[:0],
        columns=flat[:0],
    )


def _stages(shard, n_stages):
    """Return how many words of each document are seen after each stage, (stages + 1, n)."""
    levels = np.linspace(0.0, 1.0, n_stages + 1)[:, None] ** 1.5  # the first words teach most
    return np.round(levels * shard.totals).astype(np.int64)


def _offsets(lengths):
    return np.cumsum(lengths) - lengths


def content_ids(counts, given=None):
    """Return an id for each row of a CSR matrix that depends on its contents alone, (n,) uint64.

    So a document has the same random stream in any company, and one that differs by its words or by what is
    given of it, name -> (n, ...), has another.
    """
    mixed = (counts.indices.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= counts.data.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    ids = sums[counts.indptr[1:]] - sums[counts.indptr[:-1]]
    for name in sorted(given or {}):
        for column in np.reshape(given[name], (len(ids), -1)).T:
            ids = _mixed_in(ids, column)
    return ids


def _mixed_in(ids, column):
    """Return ids that tell numbers apart, but not their rounding: the same row may come by another way."""
    told = (np.round(column.astype(np.float64), 6) + 0.0).view(np.uint64)  # no -0.0
    mixed = (ids ^ (told >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15) + told
    mixed ^= mixed >> np.uint64(31)
    return mixed * np.uint64(0x94D049BB133111EB)
