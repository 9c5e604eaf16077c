"""Regression of counts behind a softmax, in which no category comes first::

B_ak   ~ N(mean_ak, scale_a^2)                 coefficients of p columns, on K categories
U_g    ~ N(0, cov_f)                           groups g of each factor f, nested or crossed
psi_i  = B' x_i + sum_f U_g(f, i) + e_i
e_i    ~ N(0, cov)                             overdispersion: none, diagonal or full
cov    ~ HuangWand
y_i    ~ Multinomial(N_i, softmax(psi_i))

Seen from category j, with the others held, psi_ij - c_ij is the log odds of one binary split, c the logarithm
of the sum of e^psi of the others (Holmes and Held 2006; Polson, Scott and Windle 2013). So a sweep goes from
category to category: omega, then B_j and U_j at once with e_j integrated out, then e_j. With noise all psi
are then drawn again, without omega. The level that all categories share is not seen by counts, and is drawn
from its prior.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

from polystick import augmentation
from polystick.association import double_centred
from polystick.augmentation import Potential
from polystick.decomposition import Splits
from polystick.gaussians import regression
from polystick.kernels import algebra, softmax_rows
from polystick.models import regression_slices, watched
from polystick.models.multinomial import LONG_LAG
from polystick.models.regression_slices import Entries
from polystick.models.regression_state import (
    Data,
    Parameters,
    Regression,
    Rows,
    Statistics,
)
from polystick.scores import log_coefficients

__all__ = ["SoftmaxRegression"]


class Shard(NamedTuple):
    """A block of rows."""

    rows: np.ndarray  # (n,) uint64 ids, which key the random streams
    counts: np.ndarray  # (n, K)
    totals: np.ndarray  # (n,)
    data: Data
    log_coefficient: float  # sum of log multinomial coefficients
    lopsided: np.ndarray  # (K,) whether a row has nearly no count of a category, or few others


class Column(NamedTuple):
    """One category of all rows of a block, seen from it."""

    potential: Potential  # (n, 1) on the line, about what the others say of the noise
    about: np.ndarray  # (n,) the mean of its noise given that of the others


class Given(NamedTuple):
    """The law of one entry given the others of its row: -others @ weights, variance."""

    weights: np.ndarray  # (K,) 0 for the entry itself
    variance: float


@dataclass(frozen=True)
class SoftmaxRegression(Regression):
    """The model: its prior."""

    axis: ClassVar = "category"
    rhat_limit: ClassVar = 1.05

    def probabilities(self, psi):
        return softmax(psi, axis=-1)

    def log_probabilities(self, psi):
        return log_softmax(psi, axis=-1)

    def shard(self, ids, counts, data):
        counts = np.ascontiguousarray(counts, dtype=np.int64)  # what kernels are compiled for
        told = log_coefficients(counts).sum(), _lopsided(counts)
        return Shard(ids, counts, counts.sum(axis=1), data, *told)

    # Gibbs

    def told_by_counts(self, shard):
        """Return psi that counts alone tell, and its standard errors."""
        smoothed = shard.counts + 0.5
        return np.log(smoothed), 1.0 / np.sqrt(smoothed)

    def move_together(self, parameters, shards, rows, key, ordered_map=map):
        """Go from category to category; then laws of groups and of noise, and what no count sees."""
        rng = key.generator("laws")
        psi = [part.psi.copy() for part in rows]
        for j in range(self.prior.k):
            parameters, psi = self.draw_category(parameters, shards, psi, j, key, rng, ordered_map)
        for factor in range(len(self.prior.n_groups)):
            parameters = self.prior.redraw_groups(parameters, factor, rng)
        lines = [self.prior.line(parameters, shard.data) for shard in shards]
        noise = [each - line for each, line in zip(psi, lines)]
        if self.prior.overdispersion is not None:
            outer = sum(e.T @ e for e in noise)
            parameters = self.prior.redraw(parameters, -1, sum(map(len, psi)), outer, rng)
        parameters = self.draw_levels(parameters, rng)
        lines = [self.prior.line(parameters, shard.data) for shard in shards]
        return parameters, [Rows(line + e) for line, e in zip(lines, noise)]

    def draw_category(self, parameters, shards, psi, j, key, rng, ordered_map=map):
        """Omega | psi; B_j, U_j and the scale of U_j | omega; e_j and its scale."""
        parameters, psi = self.move_lopsided(parameters, shards, psi, j, rng)
        cov = self.prior.noise_cov(parameters)
        noise = None if cov is None else _given_others(cov, j)
        numbers = range(len(shards))

        def tell(i):
            column = self._column(parameters, shards[i], psi[i], j, noise, key)
            variance = None if noise is None else np.array([[noise.variance]])
            told = regression.tell_of_line(column.potential, variance)
            data = shards[i].data
            return column, regression.row_sums(data.columns, data.groups, *told)

        columns, sums = zip(*ordered_map(tell, numbers))
        whole = regression.assembled(sums, self.prior.n_eliminated)
        parameters = self._draw_line(parameters, whole, j, key)
        for factor in range(len(self.prior.n_groups)):
            parameters = self._rescale_groups(parameters, factor, whole, j, rng)

        def follow(i):
            line = self._line(parameters, shards[i].data, j)
            if noise is None:
                return line
            kappa, omega = columns[i].potential
            told = 1.0 / noise.variance + omega[:, 0]
            normals = key.normals(f"noise {j}", shards[i].rows, 1)[:, 0]
            own = (kappa[:, 0] - omega[:, 0] * line) / told + normals / np.sqrt(told)
            return line + columns[i].about + own

        drawn = list(ordered_map(follow, numbers))
        of_noise = [each - self._line(parameters, s.data, j) for each, s in zip(drawn, shards)]
        if noise is not None:
            parameters, of_noise = self._rescale_noise(
                parameters, shards, columns, of_noise, j, rng
            )
        new = [each.copy() for each in psi]
        for each, shard, e in zip(new, shards, of_noise):
            each[:, j] = self._line(parameters, shard.data, j) + e
        return parameters, new

    def move_lopsided(self, parameters, shards, psi, j, rng):
        """B_j and scales of a category with lopsided splits from the others | e, y, without omega."""
        if not any(shard.lopsided[j] for shard in shards):
            return parameters, psi
        has_noise = self.prior.overdispersion is not None
        about = np.concatenate([_log_others(each, j) for each in psi])
        noise = [
            each[:, j] - self._line(parameters, shard.data, j) for each, shard in zip(psi, shards)
        ]
        entries = Entries(
            np.array([j]),
            Splits(
                np.concatenate([shard.counts[:, j, None] for shard in shards]),
                np.concatenate([shard.totals[:, None] for shard in shards]),
            ),
            (np.concatenate([each[:, j] for each in psi]) - about)[:, None],
            np.concatenate([shard.data.x for shard in shards]),
            np.concatenate([shard.data.places for shard in shards]),
            np.concatenate(noise)[:, None] if has_noise else None,
        )
        parameters, moved = regression_slices.move(self.prior, parameters, entries, rng)
        new, start = [], 0
        for each, shard, e in zip(psi, shards, noise):
            own = moved[start : start + len(e), 0] if has_noise else e
            start += len(e)
            each = each.copy()
            each[:, j] = self._line(parameters, shard.data, j) + own
            new.append(each)
        return parameters, new

    def _column(self, parameters, shard, psi, j, noise, key):
        """Return a category's potential: omega | psi, y, moved by what the others say."""
        c = _log_others(psi, j)
        splits = Splits(shard.counts[:, j, None], shard.totals[:, None])
        kappa, omega = augmentation.draw_potential(
            splits, (psi[:, j] - c)[:, None], key.at(f"omega {j}"), shard.rows
        )
        about = np.zeros(len(psi))
        if noise is not None:
            about = (psi - self.prior.line(parameters, shard.data)) @ noise.weights
        return Column(Potential(kappa - omega * (about - c)[:, None], omega), about)

    def _line(self, parameters, data, j):
        line = data.x @ parameters.coefficients[:, j]
        for factor in range(len(self.prior.n_groups)):
            line += parameters.effects[data.places[:, factor], j]
        return line

    def _draw_line(self, parameters, whole, j, key):
        """Draw B_j and U_j of all groups, given those of the other categories."""
        ids = np.arange(len(parameters.effects), dtype=np.uint64)
        of_groups = key.normals(f"groups {j}", ids, 1)
        of_b = key.normals(
            f"coefficients {j}", np.arange(len(self.prior.scale), dtype=np.uint64), 1
        )
        noise = self.prior.parted(of_b, of_groups)
        b, groups = regression.draw(self._line_prior(parameters, j), whole, *noise)
        own = Parameters(of_b, of_groups, parameters.covs, parameters.sizes)
        own = self.prior.joined(own, b, groups)
        coefficients, effects = parameters.coefficients.copy(), parameters.effects.copy()
        coefficients[:, j], effects[:, j] = own.coefficients[:, 0], own.effects[:, 0]
        return parameters._replace(coefficients=coefficients, effects=effects)

    def _line_prior(self, parameters, j):
        """Return the law of B_j and U_j, those of the eliminated factor apart, given the other categories."""
        prior = self.prior
        laws = [self._groups_given(parameters, f, j) for f in range(len(prior.n_groups))]
        of_others = [np.full(prior.n_groups[f], laws[f][0]) for f in prior.others]
        weight = np.concatenate([prior.scale**-2.0, *of_others])
        linear = np.concatenate([prior.linear[:, j], *(laws[f][1] for f in prior.others)])
        own, mine = (1.0, np.zeros(0)) if prior.eliminated is None else laws[prior.eliminated]
        return regression.Prior(
            weight[:, None, None], linear[:, None], np.array([[own]]), mine[:, None]
        )

    def _groups_given(self, parameters, factor, j):
        """Return precision and linear (n_groups,) of a category's effects given those of the others."""
        weights, variance = _given_others(parameters.covs[factor], j)
        mean = parameters.effects[self.prior.groups_of(factor)] @ weights
        return 1.0 / variance, mean / variance

    def _rescale_groups(self, parameters, factor, whole, j, rng):
        b, groups = self.prior.parted(
            parameters.coefficients[:, j, None], parameters.effects[:, j, None]
        )
        curvature, slope = regression.tell_of_scales(
            whole, b, groups, self.prior.columns_of(factor)
        )
        parameters, by = self.prior.rescale(
            parameters, factor, curvature, slope, rng, slice(j, j + 1)
        )
        effects = parameters.effects.copy()
        effects[self.prior.groups_of(factor)] *= by
        return parameters._replace(effects=effects)

    def _rescale_noise(self, parameters, shards, columns, of_noise, j, rng):
        curvature, slope = np.zeros((1, 1)), np.zeros(1)
        for shard, column, e in zip(shards, columns, of_noise):
            kappa, omega = (part[:, 0] for part in column.potential)
            rest = self._line(parameters, shard.data, j) - column.about
            curvature += omega @ e**2
            slope += e @ (kappa - omega * rest)
        parameters, by = self.prior.rescale(parameters, -1, curvature, slope, rng, slice(j, j + 1))
        return parameters, [e * by[j] for e in of_noise]

    def draw_levels(self, parameters, rng):
        """What all categories share of B and of U, which no count sees, from the prior."""
        prior, k = self.prior, self.prior.k
        wanted = prior.mean.mean(axis=1) + prior.scale / np.sqrt(k) * rng.standard_normal(
            len(prior.scale)
        )
        b = parameters.coefficients
        coefficients = b + (wanted - b.mean(axis=1))[:, None]
        effects = parameters.effects.copy()
        for factor, n in enumerate(prior.n_groups):
            mine = prior.groups_of(factor)
            weight = np.linalg.inv(parameters.covs[factor]).sum(axis=0)
            level = rng.standard_normal(n) / np.sqrt(weight.sum())
            effects[mine] += (level - effects[mine] @ weight / weight.sum())[:, None]
        return parameters._replace(coefficients=coefficients, effects=effects)

    def draw_rows(self, law, shard, rows, key):
        """Each psi: the level of its row, then category by category | the others of its row, y."""
        line = self.prior.line(law.parameters, shard.data)
        if law.noise is None:
            log_pi = log_softmax(line, axis=1)
            value = shard.log_coefficient + np.vdot(shard.counts, log_pi)
            return Rows(line), Statistics(len(line), np.zeros((self.prior.k,) * 2), value, 0)
        psi = rows.psi.copy()
        value = softmax_rows.redraw_rows_in_place(
            key.at("psi"), shard.rows, shard.counts, shard.totals, line, law.noise.precision, psi
        )
        e = psi - line
        return Rows(psi), Statistics(
            len(psi), algebra.gram(e), value + shard.log_coefficient, psi.size
        )

    def describe_parameters(self, parameters):
        """Tell all with the level taken out."""
        said = self.prior.described(parameters)
        for name in ("coefficients", "group_effects"):
            if name in said:
                said[name] = said[name] - said[name].mean(axis=1, keepdims=True)
        if "group_cov" in said:
            said["group_cov"] = np.stack([double_centred(cov) for cov in said["group_cov"]])
        if "noise_cov" in said:
            said["noise_cov"] = double_centred(said["noise_cov"])
        return said

    def watch(self, shards):
        """Judge a run by the probabilities of some cells, rare ones among them."""
        cells = watched.choose_cells(_cells(shard) for shard in shards)
        return watched.CategoryWatch(cells, self.prior.k)


def _lopsided(counts):
    totals = np.broadcast_to(counts.sum(axis=1, keepdims=True), counts.shape)
    return augmentation.lopsided(Splits(counts, totals), LONG_LAG).any(axis=0)


def _log_others(psi, j):
    """Return the logarithm of the sum of e^psi of all categories but one (n,)."""
    return logsumexp(np.delete(psi, j, axis=1), axis=1)


def _given_others(cov, j):
    """Return the law of entry j given the others."""
    precision = np.linalg.inv(cov)[j]
    weights = -precision / precision[j]
    weights[j] = 0.0
    return Given(weights, 1.0 / precision[j])


def _cells(shard):
    """Return each category of each row as a split from all others."""
    n, k = shard.counts.shape
    category = np.tile(np.arange(k), n)
    return watched.Cells(
        np.repeat(shard.rows, k), category, shard.counts.ravel(), np.repeat(shard.totals, k)
    )
