"""Topics whose words change from slice to slice (Blei and Lafferty 2006), on a tree of words::

node_psi_t1j ~ N(node_mean_j, node_variance_j)           the law of `TreeWords`, in the first slice
node_psi_tsj ~ N(node_psi_t(s-1)j, node_step)            s = 2..S
node_step    ~ InverseGamma(degrees / 2, degrees scale / 2)
topics_ts    = pi(node_psi_ts)

A word in slice s is word number s V + word of one long vocabulary, so the documents' step is that of any
topics. Given omega each node of each topic is a scalar random walk.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polystick import augmentation
from polystick.decomposition import Decomposition
from polystick.kernels import walks
from polystick.models.topic_words import probabilities, renamed, wide
from polystick.models.tree_words import draw_law_of_nodes, simulate_law_of_nodes, smoothed_logits

STEP_DEGREES, STEP_SCALE = 4.0, 0.05


@dataclass(frozen=True)
class WalkingWords:
    """Topics that change. It has no factors. Topics are held as (S V, padded T)."""

    tree: Decomposition
    n_slices: int
    concentration: float  # of the collapsed start

    fields: ClassVar = ("topics", "sizes", "node_psi", "node_mean", "node_variance", "node_step")
    dims: ClassVar = {"topics": ("topic", "time", "word"), "node_step": ("one",)}

    @property
    def n_words(self):
        return self.tree.n_categories

    def cells(self, shard):
        document = np.searchsorted(shard.starts, np.arange(len(shard.words)), side="right") - 1
        slices = shard.given["slices"]
        return (slices[document] * self.n_words + shard.words).astype(np.int32)

    def simulate(self, n_topics, rng):
        mean, variance = simulate_law_of_nodes(self.n_words - 1, rng)
        step = 0.5 * STEP_DEGREES * STEP_SCALE / rng.standard_gamma(0.5 * STEP_DEGREES, 1)
        noise = rng.standard_normal((n_topics, self.n_slices, self.n_words - 1))
        scale = np.sqrt(np.full((self.n_slices, self.n_words - 1), step))
        scale[0] = np.sqrt(variance)
        return self._fields(mean + np.cumsum(scale * noise, axis=1), mean, variance, step)

    def _fields(self, psi, mean, variance, step):
        return {
            **self.given(self.tree.probabilities(psi)),
            "node_psi": psi,  # (T, S, V - 1)
            "node_mean": mean,  # (V - 1,)
            "node_variance": variance,  # (V - 1,)
            "node_step": step,  # (1,)
        }

    # Gibbs

    def mean(self, counts):
        """Start with topics that do not change, from counts (V, T) or (S V, T)."""
        pooled = counts.reshape(-1, self.n_words, counts.shape[1]).sum(axis=0)
        psi = smoothed_logits(self.tree, pooled)
        everywhere = np.repeat(psi[:, None], self.n_slices, axis=1)
        variance = np.maximum(psi.var(axis=0), 0.1)
        return self._fields(everywhere, psi.mean(axis=0), variance, np.array([STEP_SCALE]))

    def draw(self, parameters, counts, key, ordered_map):
        """node_psi | omega, tokens, topic by topic, then the law of the nodes | node_psi."""

        def draw(t):
            by_slice = counts[:, t].reshape(self.n_slices, self.n_words).astype(np.int64)
            return self._draw_walks(parameters, by_slice, t, key)

        psi = np.stack(list(ordered_map(draw, range(len(parameters.sizes)))))
        rng = key.generator("nodes")
        mean, variance = draw_law_of_nodes(psi[:, 0], rng)
        steps = np.diff(psi, axis=1)
        squares = 0.5 * (STEP_DEGREES * STEP_SCALE + np.vdot(steps, steps))
        step = squares / rng.standard_gamma(0.5 * (STEP_DEGREES + steps.size), 1)
        return self._fields(psi, mean, variance, step)

    def _draw_walks(self, parameters, counts, t, key):
        """Omega | node_psi of topic t in each slice, then its walks | omega."""
        ids = np.arange(t * self.n_slices, (t + 1) * self.n_slices, dtype=np.uint64)
        splits, old = self.tree.split(counts), parameters.node_psi[t]
        potential = augmentation.draw_potential(splits, old, key.at("node omega"), ids)
        noise, out = key.normals("node psi", ids, old.shape[1]), np.empty_like(old)
        step = np.full(old.shape[1], parameters.node_step[0])
        law = (parameters.node_mean, parameters.node_variance, step)
        walks.draw_walks(*law, potential.kappa, potential.omega, noise, out)
        return out

    def rename(self, parameters, order):
        return {**renamed(parameters, order), "node_psi": parameters.node_psi[order]}

    def given(self, topics):
        flat = wide(topics.reshape(len(topics), -1).T)
        return {**flat, "sizes": np.ones(len(topics))}

    def describe(self, parameters):
        topics = probabilities(parameters.topics, parameters.sizes)
        shape = (len(topics), self.n_slices, self.n_words)
        return {"topics": topics.reshape(shape), "node_step": parameters.node_step}
