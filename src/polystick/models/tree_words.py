"""Correlated words: topics with a Gaussian prior on a tree of words instead of a Dirichlet prior::

node_variance_j ~ InverseGamma(degrees / 2, degrees scale / 2)      j = 1..V-1, the nodes of the tree
node_mean_j     ~ N(0, node_variance_j / strength)
node_psi_tj     ~ N(node_mean_j, node_variance_j)                   t = 1..T
topics_t        = pi(node_psi_t)                                    pi: the map of the tree

Words that share a branch rise and fall together from topic to topic, all the more the longer they share
it, and the means pool what topics have in common. Only nodes that a topic's tokens reach carry a potential,
and each is a scalar, so the cost grows with V as for the Dirichlet prior.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse.linalg
from scipy.special import logit

from polystick import augmentation
from polystick.decomposition import Decomposition
from polystick.models.topic_words import probabilities, renamed, wide

STRENGTH = 0.1  # of node means: so many topics are they worth
DEGREES, SCALE = 4.0, 1.0  # of node variances


@dataclass(frozen=True)
class TreeWords:
    """Topics whose words are correlated. It has no factors."""

    tree: Decomposition
    concentration: float  # of the collapsed start

    fields: ClassVar = ("topics", "sizes", "node_psi", "node_mean", "node_variance")
    dims: ClassVar = {
        "topics": ("topic", "word"),
        "node_mean": ("node",),
        "node_variance": ("node",),
    }

    @property
    def n_words(self):
        return self.tree.n_categories

    def cells(self, shard):
        return shard.words

    def simulate(self, n_topics, rng):
        mean, variance = simulate_law_of_nodes(self.n_words - 1, rng)
        noise = rng.standard_normal((n_topics, self.n_words - 1))
        return self._fields(mean + np.sqrt(variance) * noise, mean, variance)

    def _fields(self, psi, mean, variance):
        words = wide(self.tree.probabilities(psi).T)
        return {**words, "node_psi": psi, "node_mean": mean, "node_variance": variance}

    # Gibbs

    def mean(self, counts):
        psi = smoothed_logits(self.tree, counts)
        return self._fields(psi, psi.mean(axis=0), np.full(self.n_words - 1, SCALE))

    def draw(self, parameters, counts, key, ordered_map):
        """node_psi | omega, tokens, topic by topic, then the law of the nodes | node_psi."""
        n_topics = len(parameters.sizes)
        by_topic = np.ascontiguousarray(counts[:, :n_topics].T, dtype=np.int64)

        def draw(t):
            return self._draw_nodes(parameters, by_topic[t : t + 1], t, key)

        psi = np.concatenate(list(ordered_map(draw, range(n_topics))))
        return self._fields(psi, *draw_law_of_nodes(psi, key.generator("nodes")))

    def _draw_nodes(self, parameters, counts, t, key):
        """Omega | node_psi of topic t, then node_psi | omega: scalars, for the prior is diagonal."""
        ids = np.array([t], dtype=np.uint64)
        old = parameters.node_psi[t : t + 1]
        potential = augmentation.draw_potential(
            self.tree.split(counts), old, key.at("node omega"), ids
        )
        precision = potential.omega + 1.0 / parameters.node_variance
        linear = potential.kappa + parameters.node_mean / parameters.node_variance
        noise = key.normals("node psi", ids, old.shape[1])
        return linear / precision + noise / np.sqrt(precision)

    def rename(self, parameters, order):
        return {**renamed(parameters, order), "node_psi": parameters.node_psi[order]}

    def given(self, topics):
        return wide(topics.T)

    def describe(self, parameters):
        return {
            "topics": probabilities(parameters.topics, parameters.sizes),
            "node_mean": parameters.node_mean,
            "node_variance": parameters.node_variance,
        }


def simulate_law_of_nodes(n_nodes, rng):
    """Draw node_mean and node_variance from their prior."""
    variance = 0.5 * DEGREES * SCALE / rng.standard_gamma(0.5 * DEGREES, n_nodes)
    return np.sqrt(variance / STRENGTH) * rng.standard_normal(n_nodes), variance


def draw_law_of_nodes(psi, rng):
    """Draw node_mean and node_variance given node_psi (T, V - 1)."""
    n, average = len(psi), psi.mean(axis=0)
    strength = STRENGTH + n
    squares = np.square(psi - average).sum(axis=0)
    squares += STRENGTH * n / strength * np.square(average) + DEGREES * SCALE
    variance = 0.5 * squares / rng.standard_gamma(0.5 * (DEGREES + n), len(average))
    noise = rng.standard_normal(len(average))
    return n * average / strength + np.sqrt(variance / strength) * noise, variance


def smoothed_logits(tree, counts):
    """Return psi (T, V - 1): at each node the smoothed share of a topic's tokens that take its first side."""
    successes, trials = tree.split(np.ascontiguousarray(counts.T, dtype=np.float64))
    at_all = (successes.sum(axis=0) + 0.5) / (trials.sum(axis=0) + 1.0)
    return logit((successes + at_all) / (trials + 1.0))


def similar_words(counts, n_dims=16):
    """Return a balanced tree in which words that share documents are close.

    Words are points in the leading directions of their counts over documents, smoothed by a logarithm; each
    node halves its words along the direction in which they differ most.
    """
    points = _word_points(counts, n_dims)
    return Decomposition.from_tuples(_halve(np.arange(len(points)), points))


def _word_points(counts, n_dims):
    weights = counts.astype(np.float64).tocsr(copy=True)
    weights.data = np.log1p(weights.data)
    start = np.random.default_rng(0).standard_normal(min(weights.shape))
    n_dims = min(n_dims, min(weights.shape) - 1)
    if n_dims < 1:
        return np.asarray(weights.sum(axis=0)).reshape(-1, 1)
    _, values, directions = scipy.sparse.linalg.svds(weights, k=n_dims, v0=start)
    points = (values[:, None] * directions).T
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return points / np.where(lengths > 0, lengths, 1.0)


def _halve(words, points):
    """Return words as nested pairs."""
    if len(words) <= 2:
        return tuple(map(int, words)) if len(words) == 2 else int(words[0])
    centred = points[words] - points[words].mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    ranked = words[np.argsort(centred @ directions[:, -1], kind="stable")]
    half = len(ranked) // 2
    return _halve(ranked[:half], points), _halve(ranked[half:], points)
