"""Topics whose words change from slice to slice (Blei and Lafferty 2006), on a tree of words::

node_psi_t1j ~ N(node_mean_j, node_variance_j)           the law of `CorrelatedWords`, in the first slice
node_psi_tsj ~ N(node_psi_t(s-1)j, node_step)            s = 2..S
node_step    ~ InverseGamma(degrees / 2, degrees scale / 2)
topics_ts    = pi(node_psi_ts)

A word in slice s is word number s V + word of one long vocabulary, so the documents' step is that of
`CorrelatedTopics`. Given omega each node of each topic is a scalar random walk.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polystick import augmentation
from polystick.decomposition import Decomposition
from polystick.kernels import walks
from polystick.models.dynamic_topics import DynamicTopics
from polystick.models.word_trees import draw_law_of_nodes, simulate_law_of_nodes, smoothed_logits

STEP_DEGREES, STEP_SCALE = 4.0, 0.05


class Parameters(NamedTuple):
    """Those of `DynamicTopics`, and the trees'. Topics are (S V, padded T)."""

    levels: np.ndarray
    cov: np.ndarray
    step_cov: np.ndarray
    topics: np.ndarray
    sizes: np.ndarray
    share: np.ndarray
    move: np.ndarray
    node_psi: np.ndarray  # (T, S, V - 1)
    node_mean: np.ndarray  # (V - 1,)
    node_variance: np.ndarray  # (V - 1,)
    node_step: np.ndarray  # (1,)


@dataclass(frozen=True)
class EvolvingTopics(DynamicTopics):
    """Dynamic topics that change. Sampled only: it has no factors."""

    word_tree: Decomposition

    parameter_type: ClassVar[Any] = Parameters
    dims: ClassVar[Any] = {
        **DynamicTopics.dims,
        "topics": ("topic", "time", "word"),
        "node_step": ("one",),
    }

    @property
    def n_cells(self):
        return self.n_slices * self.n_words

    def word_ids(self, shard):
        document = np.searchsorted(shard.starts, np.arange(len(shard.words)), side="right") - 1
        return (shard.slices[document] * self.n_words + shard.words).astype(np.int32)

    # simulate

    def simulate_words(self, rng):
        mean, variance = simulate_law_of_nodes(self.n_words - 1, rng)
        step = 0.5 * STEP_DEGREES * STEP_SCALE / rng.standard_gamma(0.5 * STEP_DEGREES, 1)
        noise = rng.standard_normal((self.n_topics, self.n_slices, self.n_words - 1))
        scale = np.sqrt(np.full((self.n_slices, self.n_words - 1), step))
        scale[0] = np.sqrt(variance)
        return self._fields(mean + np.cumsum(scale * noise, axis=1), mean, variance, step)

    def simulate_counts(self, parameters, rows, n_tokens, rng, slices):
        """Draw counts of words given the topics of the slices and the documents' psi."""
        topics = self.describe_parameters(parameters)["topics"].astype(np.float64)
        topics /= topics.sum(axis=2, keepdims=True)
        words = np.einsum("nt,tnv->nv", self.proportions(rows.psi), topics[:, slices])
        return rng.multinomial(n_tokens, words / words.sum(axis=1, keepdims=True))

    def _fields(self, psi, mean, variance, step):
        words = self.word_tree.probabilities(psi).reshape(self.n_topics, self.n_cells)
        return {
            **self.pad(words.T),
            "sizes": np.ones(self.n_topics),
            "node_psi": psi,
            "node_mean": mean,
            "node_variance": variance,
            "node_step": step,
        }

    # Gibbs

    def mean_words(self, counts):
        """Start with topics that do not change, from counts (V, T) or (S V, T)."""
        pooled = counts.reshape(-1, self.n_words, self.n_topics).sum(axis=0)
        psi = smoothed_logits(self.word_tree, pooled)
        everywhere = np.repeat(psi[:, None], self.n_slices, axis=1)
        variance = np.maximum(psi.var(axis=0), 0.1)
        return self._fields(everywhere, psi.mean(axis=0), variance, np.array([STEP_SCALE]))

    def draw_words(self, parameters, counts, key, ordered_map):
        """node_psi | omega, tokens, topic by topic, then the law of the nodes | node_psi."""

        def draw(t):
            by_slice = counts[:, t].reshape(self.n_slices, self.n_words).astype(np.int64)
            return self._draw_walks(parameters, by_slice, t, key)

        psi = np.stack(list(ordered_map(draw, range(self.n_topics))))
        rng = key.generator("nodes")
        mean, variance = draw_law_of_nodes(psi[:, 0], rng)
        steps = np.diff(psi, axis=1)
        squares = 0.5 * (STEP_DEGREES * STEP_SCALE + np.vdot(steps, steps))
        step = squares / rng.standard_gamma(0.5 * (STEP_DEGREES + steps.size), 1)
        return self._fields(psi, mean, variance, step)

    def _draw_walks(self, parameters, counts, t, key):
        """Omega | node_psi of topic t in each slice, then its walks | omega."""
        ids = np.arange(t * self.n_slices, (t + 1) * self.n_slices, dtype=np.uint64)
        splits, old = self.word_tree.split(counts), parameters.node_psi[t]
        potential = augmentation.draw_potential(splits, old, key.at("node omega"), ids)
        noise, out = key.normals("node psi", ids, old.shape[1]), np.empty_like(old)
        step = np.full(old.shape[1], parameters.node_step[0])
        law = (parameters.node_mean, parameters.node_variance, step)
        walks.draw_walks(*law, potential.kappa, potential.omega, noise, out)
        return out

    def rename_words(self, parameters, order):
        fields = super().rename_words(parameters, order)
        return {**fields, "node_psi": parameters.node_psi[order]}

    # documents given parameters, and what to record

    def fold_words(self, topics):
        flat = topics.reshape(self.n_topics, self.n_cells)
        return {**self.pad(flat.T), "sizes": np.ones(self.n_topics)}

    def describe_parameters(self, parameters):
        described = super().describe_parameters(parameters)
        shape = (self.n_topics, self.n_slices, self.n_words)
        described["topics"] = described["topics"].reshape(shape)
        return {**described, "node_step": parameters.node_step}
