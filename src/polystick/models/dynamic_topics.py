"""Dynamic topics: the law of the documents' shares moves from one slice of time to the next::

levels_1 ~ N(initial_mean, initial_cov)
levels_s ~ N(levels_{s-1}, step_cov)               s = 2..S, slices of time
step_cov ~ InverseWishart(step prior),  cov ~ InverseWishart(prior)
psi_d    ~ N(levels_{s(d)}, cov)                   the rest is `CorrelatedTopics`

A slice may have no documents: the levels walk through it.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polystick import augmentation
from polystick.augmentation import Potential
from polystick.conjugate import NormalInverseWishart
from polystick.gaussians.dynamics import Chain
from polystick.gaussians.normal import Normal
from polystick.models import documents
from polystick.models.folding import draw_from_prior
from polystick.models.multinomial import standard_normal_points
from polystick.models.topics import CorrelatedTopics, Rows
from polystick.models.word_counts import Pairs


class DatedDocuments(NamedTuple):
    """A block of `Documents` with the slice of each."""

    rows: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    words: np.ndarray
    counts: np.ndarray
    vocabulary: np.ndarray
    columns: np.ndarray
    slices: np.ndarray  # (n,) int64

    @property
    def totals(self):
        """Return the number of tokens of each document, (n,)."""
        return documents.totals(self)


class Parameters(NamedTuple):
    """Those of `CorrelatedTopics`, with levels instead of a mean."""

    levels: np.ndarray  # (S, k)
    cov: np.ndarray  # (k, k)
    step_cov: np.ndarray  # (k, k)
    topics: np.ndarray
    sizes: np.ndarray
    share: np.ndarray
    move: np.ndarray


class Prior(NamedTuple):
    """What the local steps of a sweep share."""

    levels: np.ndarray
    normal: Normal  # of psi about its level
    topics: np.ndarray
    sizes: np.ndarray
    move: np.ndarray | None


class Statistics(NamedTuple):
    """Sums over documents, by slice where they can move."""

    n_rows: np.ndarray  # (S,)
    total: np.ndarray  # (S, k) of psi
    outer: np.ndarray  # (k, k) of psi psi'
    words: Pairs
    value: float


@dataclass(frozen=True)
class DynamicTopics(CorrelatedTopics):
    """Correlated topics over slices of time; `prior` is that of the first level and of cov."""

    n_slices: int
    step_prior: NormalInverseWishart  # of step_cov; its mean and strength are not used

    parameter_type: ClassVar[Any] = Parameters
    fold_names: ClassVar[Any] = ("levels", "cov", "topics")
    dims: ClassVar[Any] = {
        **CorrelatedTopics.dims,
        "levels": ("time", "stick"),
        "step_cov": ("stick", "stick_too"),
    }

    def shards(self, counts, size=documents.ROWS_PER_BLOCK, ids=None, *, slices):
        """Cut counts (n, V) into blocks, with the slice (n,) of each document."""
        blocks, start, cut = documents.cut(counts, size, ids), 0, []
        for block in blocks:
            dated = (*block, slices[start : start + len(block.rows)])
            cut.append(DatedDocuments._make(dated))
            start += len(block.rows)
        return cut

    # simulate

    def simulate(self, n_tokens, slices, rng):
        """Draw (parameters, rows, counts) for documents of n_tokens (n,) in slices (n,)."""
        cov, step_cov = self.prior.draw(rng).cov, self.step_prior.draw(rng).cov
        levels = self._chain(step_cov).draw(
            *self._no_potential(), rng.standard_normal((self.n_slices, self.n_sticks))
        )
        law = {"levels": levels, "cov": cov, "step_cov": step_cov}
        share = np.full(self.n_topics, 1 / self.n_topics)
        parameters = self.parameters(law, self.simulate_words(rng), share)
        noise = rng.standard_normal((len(slices), self.n_sticks))
        rows = Rows(levels[slices] + noise @ np.linalg.cholesky(cov).T)
        return parameters, rows, self.simulate_counts(parameters, rows, n_tokens, rng, slices)

    def simulate_counts(self, parameters, rows, n_tokens, rng, slices):
        """Draw counts of words; the topics are the same in all slices."""
        return super().simulate_counts(parameters, rows, n_tokens, rng)

    def _chain(self, step_cov):
        start = self.prior.scale / (self.prior.degrees - self.n_sticks - 1)
        return Chain.random_walk(self.prior.mean, start / self.prior.strength, step_cov)

    def _no_potential(self):
        shape = (self.n_slices, self.n_sticks)
        return np.zeros(shape), np.zeros((*shape, self.n_sticks))

    # Gibbs

    def law_of(self, start, shards):
        """Start with levels that do not move."""
        law = super().law_of(start, shards)
        step_cov = self.step_prior.scale / (self.step_prior.degrees - self.n_sticks + 1)
        return {
            "levels": np.tile(law["mean"], (self.n_slices, 1)),
            "cov": law["cov"],
            "step_cov": step_cov,
        }

    def prepare(self, parameters):
        moved = (parameters.move != np.arange(self.n_topics)).any()
        return Prior(
            parameters.levels,
            Normal(np.zeros(self.n_sticks), parameters.cov),
            parameters.topics,
            parameters.sizes,
            parameters.move if moved else None,
        )

    def initial_rows(self, prior, shard, key):
        return Rows(prior.levels[shard.slices])

    def summarise(self, shard, psi, words, value):
        total = np.zeros((self.n_slices, self.n_sticks))
        np.add.at(total, shard.slices, psi)
        n_rows = np.bincount(shard.slices, minlength=self.n_slices)
        return Statistics(n_rows, total, psi.T @ psi, words, value)

    def draw_psi(self, prior, shard, counts, psi, key):
        """Omega | psi, counts, then psi | omega, counts, as a draw about the level."""
        ids, level = shard.rows, prior.levels[shard.slices]
        splits = self.decomposition.split(counts)
        kappa, omega = augmentation.draw_potential(splits, psi, key.at("omega"), ids)
        about = Potential(kappa - omega * level, omega)
        return level + prior.normal.draw(about, key.normals("psi", ids, 2 * psi.shape[1]))

    def draw_law(self, parameters, statistics, key):
        """Levels | psi, cov, step_cov; then cov | psi, levels and step_cov | levels."""
        rng = key.generator("parameters")
        levels = self._draw_levels(parameters, statistics, rng)
        n, total, outer = statistics[:3]
        cross = levels.T @ total
        residual = outer - cross - cross.T + (levels * n[:, None]).T @ levels
        steps = np.diff(levels, axis=0)
        return {
            "levels": levels,
            "cov": draw_cov(self.prior, n.sum(), residual, rng),
            "step_cov": draw_cov(self.step_prior, len(steps), steps.T @ steps, rng),
        }

    def _draw_levels(self, parameters, statistics, rng):
        precision = np.linalg.inv(parameters.cov)
        linear = statistics.total @ precision
        noise = rng.standard_normal(linear.shape)
        chain = self._chain(parameters.step_cov)
        return chain.draw(linear, statistics.n_rows[:, None, None] * precision, noise)

    def rename_law(self, parameters, order, key):
        """Rename levels one by one, and match the covariances at their average."""
        middle = parameters.levels.mean(axis=0)
        levels = self.renamed(parameters.levels, order)
        covs = {}
        for name in ("cov", "step_cov"):
            law = super().rename_law(_Law(middle, getattr(parameters, name)), order, key)
            covs[name] = law["cov"]
        return {"levels": levels, **covs}

    # documents given parameters: folding

    def fold_prior(self, described):
        words = self.fold_words(described["topics"])
        normal = Normal(np.zeros(self.n_sticks), described["cov"])
        return Prior(described["levels"], normal, words["topics"], words["sizes"], None)

    def fold_words(self, topics):
        return self.pad(topics.T)

    def prior_rows(self, prior, shard, key):
        return Rows(prior.levels[shard.slices] + draw_from_prior(prior.normal, shard, key))

    def slice_shares(self, described, n_points=128):
        """Return the expected shares of topics (S, T) in each slice under recorded parameters."""
        points = standard_normal_points(n_points, self.n_sticks)
        about = points @ np.linalg.cholesky(described["cov"]).T
        return np.stack([self.proportions(level + about).mean(0) for level in described["levels"]])

    def log_population(self, described, n_points=512):
        """Return log shares of documents about the average level."""
        mean = described["levels"].mean(axis=0)
        return super().log_population({"mean": mean, "cov": described["cov"]}, n_points)

    # what to record

    def describe_law(self, parameters):
        return {name: getattr(parameters, name) for name in ("levels", "cov", "step_cov")}


class _Law(NamedTuple):
    mean: np.ndarray
    cov: np.ndarray


def draw_cov(prior, n, outer, rng):
    """Draw a covariance given n residuals and their sum of outer products, under the scale of an NIW law."""
    scale = prior.scale + outer
    known = NormalInverseWishart(
        prior.mean, prior.strength, 0.5 * (scale + scale.T), prior.degrees + n
    )
    return known.draw(rng).cov
