"""The shares of topics in documents: a normal law, and the sticks that make shares of it::

mean, cov ~ law                                NormalInverseWishart or LearnedScale
psi_d     ~ N(mean, cov)                       d = 1..n
shares_d  = pi(psi_d)                          pi: the decomposition's map
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polystick import augmentation
from polystick.decomposition import Decomposition
from polystick.gaussians.normal import Normal
from polystick.kernels import algebra
from polystick.models.multinomial import RowFactors
from polystick.models.quick_folding import settle_sticks
from polystick.models.topic_places import likeness, places
from polystick.population.law import FactoredLaw

RENAMED = 4096  # draws that tell the law of psi under other names
LOCAL_STEPS = 5  # at most, for the documents of a block; more cost time and gained nothing on AP
LOCAL_CHANGE = 1e-3  # of E psi, on average, below which a block is settled


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over documents of psi, or of its expectations; by slice of time, where a law asks for it."""

    n_rows: float | np.ndarray
    total: np.ndarray  # (k,) of psi
    outer: np.ndarray  # (k, k) of psi psi'

    def __add__(self, other):
        return Sums(self.n_rows + other.n_rows, self.total + other.total, self.outer + other.outer)

    def scaled(self, by):
        return Sums(by * self.n_rows, by * self.total, by * self.outer)


@dataclass(frozen=True)
class NormalShares:
    """Documents are exchangeable."""

    law: FactoredLaw  # of mean and cov; one that also has `move` lets documents move with it

    told: ClassVar = ("mean", "cov")

    @property
    def fields(self):
        return self.law.parameter_type._fields

    def dims(self, axis):
        return {"mean": (axis,), "cov": (axis, f"{axis}_too")}

    def simulate(self, rng):
        return self.law.draw(rng)._asdict()

    # Gibbs

    def start(self, psi, key):
        """Return the expected mean and covariance, had documents these psi (n, k)."""
        normal = self.factor(self.statistics(psi, {})).normal
        cov = normal.scale / (normal.degrees - psi.shape[1] + 1)
        start = self.law.start(key.generator("start"))._asdict()
        return {**start, "mean": normal.mean, "cov": cov, "precision": algebra.inverted(cov)}

    def prepare(self, parameters):
        return Normal(parameters.mean, parameters.cov)

    def rows(self, law, given):
        return law

    def statistics(self, psi, given):
        return Sums(len(psi), psi.sum(axis=0), algebra.gram(psi))

    def draw(self, parameters, sums, rng):
        """mean, cov | psi."""
        drawn = self.law.redraw(parameters, sums.n_rows, sums.total, sums.outer, rng)
        return {name: getattr(drawn, name) for name in self.fields}

    def rename(self, parameters, order, link, key):
        mean, cov = link.rename_law(parameters.mean, parameters.cov, order, key)
        return {"mean": mean, "cov": cov, "precision": algebra.inverted(cov)}

    def move(self, parameters, gains, stretch, shift, rng):
        law: Any = self.law  # one that moves
        return law.move(parameters, gains, stretch, shift, rng)

    def average(self, parameters):
        """Return mean and covariance of psi over documents."""
        return parameters.mean, parameters.cov

    # mean field

    def factor(self, sums, old=None):
        old = self.law.initial_factor() if old is None else old
        return self.law.updated(old, sums.n_rows, sums.total, sums.outer)

    def expect(self, factor):
        normal = factor.normal
        constant = 0.5 * (normal.expected_log_det_precision - normal.expected_quadratic)
        return ExpectedNormal(
            Normal.natural(normal.expected_precision, normal.expected_linear), constant
        )

    def expected_statistics(self, rows, outer, given):
        return Sums(len(rows.mean), rows.mean.sum(axis=0), outer)

    def divergence(self, factor):
        return self.law.divergence(factor)

    def draw_from(self, factor, rng):
        return factor.normal.draw(rng)._asdict()


class ExpectedNormal(NamedTuple):
    """A Gaussian at expected natural parameters."""

    normal: Normal
    constant: float  # of E log p(psi), for each document


@dataclass(frozen=True)
class Sticks:
    """The link by binary splits, of sticks or any tree: what counts leave of it is a Gaussian potential.

    In mean field omega is kept given the topics of tokens, so that each token that reaches a stick carries a
    PG(1, tilt) variable, tilt^2 = E psi^2, and

        E log pi_t  is replaced by its bound  sum over the path of t of (+-E psi / 2 - log 2 cosh(tilt / 2))

    in the update of the topics of tokens; every update climbs on one objective.
    """

    decomposition: Decomposition

    axis: ClassVar = "stick"

    @property
    def n_topics(self):
        return self.decomposition.n_categories

    @property
    def n_dims(self):
        return self.n_topics - 1

    @property
    def has_order(self):
        """Whether topics are broken off one after another."""
        return bool((self.decomposition.children >= 0).any(axis=1).all())

    def shares(self, psi):
        return self.decomposition.probabilities(psi)

    def log_shares(self, psi):
        return self.decomposition.log_probabilities(psi)

    def psi(self, log_shares):
        return self.decomposition.psi_from_log(log_shares)

    def split(self, counts):
        return self.decomposition.split(counts)

    def draw(self, law, ids, counts, psi, key):
        """Omega | psi, counts, then psi | omega, counts."""
        splits = self.decomposition.split(counts)
        potential = augmentation.draw_potential(splits, psi, key.at("omega"), ids)
        return law.draw(potential, key.normals("psi", ids, 2 * psi.shape[1]))

    def rename(self, psi, order):
        return self.psi(self.log_shares(psi)[:, order])

    def places(self, log_shares, held):
        """Return an order: as they come where topics are broken off one by one, or those alike together."""
        if self.has_order:
            return np.arange(self.n_topics)
        return places(self.decomposition.children, likeness(log_shares), held)

    def rename_law(self, mean, cov, order, key):
        """Match the moments of renamed psi: good enough for the one sweep that uses them."""
        noise = key.generator("rename").standard_normal((RENAMED, len(mean)))
        psi = self.rename(mean + algebra.multiply(noise, algebra.root(cov)), order)
        middle = psi.mean(axis=0)
        return middle, algebra.gram(psi - middle) / (len(psi) - 1)

    def quick_shares(self, law, shard, cells, topics, sizes):
        """Return shares (n, T) given words, without draws."""
        return settle_sticks(self.decomposition, law, shard, cells, topics, sizes)

    # mean field

    def expected_log_shares(self, rows):
        """Return the bound of E log pi, (n, T)."""
        log_cosh = augmentation.log_two_cosh(np.sqrt(rows.mean**2 + rows.variance))
        signs = self._path_signs
        sides = algebra.multiply(0.5 * rows.mean, signs)
        return sides - algebra.multiply(log_cosh, np.abs(signs))

    @cached_property
    def _path_signs(self):
        """The side, +1 or -1, that leads to each topic at each stick above it, (k, T)."""
        starts, nodes, sides = self.decomposition.paths()
        signs = np.zeros((self.n_dims, self.n_topics))
        signs[nodes, np.repeat(np.arange(self.n_topics), np.diff(starts))] = sides
        return signs

    def settle(self, law, shard, rows, expect):
        """Move q(psi) and, by expect(shard, rows), q(topics of tokens) in turns until they settle.

        Returns rows, the expected sum of psi psi', and E log p(psi) - E log q(psi).
        """
        for _ in range(LOCAL_STEPS):
            potential = self._expected_potential(expect(shard, rows), rows)
            moments = law.normal.moments(potential)
            change = np.abs(moments.mean - rows.mean).mean()
            rows = RowFactors(moments.mean, moments.variance)
            if change < LOCAL_CHANGE:
                break
        outer = algebra.gram(rows.mean) + moments.cov_sum
        value = (
            len(rows.mean) * (law.constant + 0.5 * rows.mean.shape[1])
            + np.sum(law.normal.linear * rows.mean.sum(axis=0))
            - 0.5 * np.sum(law.normal.precision * outer)
            - 0.5 * moments.log_det.sum()
        )
        return rows, outer, value

    def _expected_potential(self, counts, rows):
        tilt = np.sqrt(rows.mean**2 + rows.variance)
        return augmentation.expected_potential(self.decomposition.split(counts), tilt)

    def draw_shares(self, law, shard, rows, points, expect):
        """Draw shares (s, n, T) from each q(psi_d), with the same points (s, k) for each document."""
        potential = self._expected_potential(expect(shard, rows), rows)
        points = np.broadcast_to(points, (len(rows.mean), *points.shape))
        psi, _ = law.normal.draws(potential, points)
        return np.moveaxis(self.shares(psi), 1, 0)
