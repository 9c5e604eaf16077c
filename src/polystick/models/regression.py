"""Regression of counts on covariates and groups, with rows that vary beyond what these say::

B_ak   ~ N(mean_ak, scale_a^2)                 coefficients of p columns, on k = K - 1 sticks
U_g    ~ N(0, cov_f)                           groups g of each factor f, nested or crossed
psi_i  = B' x_i + sum_f U_g(f, i) + e_i
e_i    ~ N(0, cov)                             overdispersion: none, diagonal or full
cov    ~ HuangWand                             half-t standard deviations, uniform correlations
y_i    ~ Multinomial(N_i, pi(psi_i))           pi: the decomposition's map

A sweep has two halves. Given omega the first draws B and U at once with e integrated out, then e with its law
a few times over, interweaving scales (Yu and Meng 2011). The second draws lopsided splits, of which omega
says more than the counts do, without omega.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from polystick import augmentation
from polystick.augmentation import Potential
from polystick.decomposition import Decomposition, Splits
from polystick.gaussians import regression
from polystick.kernels import algebra, exact_cells
from polystick.kernels import splits as splits_kernels
from polystick.models import regression_factors, regression_slices, watched
from polystick.models.multinomial import LONG_LAG
from polystick.models.regression_slices import Entries
from polystick.models.regression_state import (
    Data,
    Regression,
    Rows,
    Statistics,
    at,
)
from polystick.scores import log_coefficients

__all__ = ["StickRegression"]

REPEATS = 4  # of noise and its law under one omega: little time, several times the draws
TURNS = 2  # of B, groups and their laws, likewise


class Shard(NamedTuple):
    """A block of rows."""

    rows: np.ndarray  # (n,) uint64 ids, which key the random streams
    splits: Splits  # (n, k) each
    data: Data
    log_coefficient: float  # sum of log multinomial coefficients
    lopsided: np.ndarray  # (n, k) splits whose psi a Pólya-gamma step would move little
    n_lopsided: int
    told: np.ndarray  # (2, k) twice what omega tells, and what the counts do: sums over rows


@dataclass(frozen=True)
class StickRegression(Regression):
    """The model: its prior and its decomposition."""

    decomposition: Decomposition

    # lag of what rows share, from which slices are worth twice the time; even splits have 2
    slices_from: ClassVar = 4.0
    axis: ClassVar = "stick"

    def probabilities(self, psi):
        return self.decomposition.probabilities(psi)

    def shard(self, ids, counts, data):
        splits = self.decomposition.split(counts)
        hard = augmentation.lopsided(splits, LONG_LAG)
        yes, no = augmentation.smoothed(splits)
        by_omega = augmentation.lag(splits, np.log(yes / no), 1.0)
        by_counts = splits.trials * (yes / (yes + no)) * (no / (yes + no))
        told = np.stack([by_omega.sum(axis=0), by_counts.sum(axis=0)])
        return Shard(ids, splits, data, log_coefficients(counts).sum(), hard, int(hard.sum()), told)

    # Gibbs

    def told_by_counts(self, shard):
        """Return psi that counts alone tell, and its standard errors."""
        yes, no = augmentation.smoothed(shard.splits)
        return np.log(yes / no), np.sqrt(1.0 / yes + 1.0 / no)

    def move_together(self, parameters, shards, rows, key, ordered_map=map):
        """Lopsided splits; omega | psi; B, U and laws of groups | omega; a few times noise and its law."""
        parameters, rows = self.move_lopsided(parameters, shards, rows, key, ordered_map)
        numbers = range(len(shards))
        potentials = list(ordered_map(lambda i: self.draw_omega(shards[i], rows[i], key), numbers))
        rng = key.generator("laws")
        parameters = self.draw_line(parameters, shards, potentials, rng, ordered_map)
        lines = [self.prior.line(parameters, shard.data) for shard in shards]
        if self.prior.overdispersion is None:
            return parameters, list(map(Rows, lines))
        about = [self.about_line(line, each) for line, each in zip(lines, potentials)]
        parameters, noise = self.draw_noise(parameters, shards, about, key, rng, ordered_map)
        return parameters, [Rows(line + e) for line, e in zip(lines, noise)]

    def move_lopsided(self, parameters, shards, rows, key, ordered_map=map):
        """Lopsided splits and the law of noise, a few times; then what their sticks share, given noise."""
        by_omega, by_counts = sum(shard.told for shard in shards)
        which = np.flatnonzero(by_omega > self.slices_from * by_counts)
        if not len(which):
            return parameters, rows
        if self.prior.overdispersion is not None:
            for turn in range(REPEATS - 1):
                again = self.prepare(parameters), f"lopsided {turn}"
                parts = ordered_map(
                    lambda i, again=again, rows=rows: self._redraw_rows(
                        again[0], shards[i], rows[i], key, again[1]
                    ),
                    range(len(shards)),
                )
                rows, told = zip(*parts)
                outer, n = sum(each.outer for each in told), sum(each.n_rows for each in told)
                rng = key.generator(f"law {turn}")
                parameters = self.prior.redraw(parameters, -1, n, outer, rng)
        lines = [self.prior.line(parameters, shard.data) for shard in shards]
        has_noise = self.prior.overdispersion is not None
        noise = [part.psi - line for part, line in zip(rows, lines)]
        entries = Entries(
            which,
            Splits(*(np.concatenate(each)[:, which] for each in zip(*(s.splits for s in shards)))),
            np.concatenate([part.psi for part in rows])[:, which],
            np.concatenate([shard.data.x for shard in shards]),
            np.concatenate([shard.data.places for shard in shards]),
            np.concatenate(noise)[:, which] if has_noise else None,
        )
        parameters, moved = regression_slices.move(
            self.prior, parameters, entries, key.generator("slices")
        )
        new, start = [], 0
        for shard, e in zip(shards, noise):
            if has_noise:
                e[:, which] = moved[start : start + len(e)]
            start += len(e)
            new.append(Rows(self.prior.line(parameters, shard.data) + e))
        return parameters, new

    def draw_omega(self, shard, rows, key):
        """Omega | psi, y."""
        return augmentation.draw_potential(shard.splits, rows.psi, key.at("omega"), shard.rows)

    def draw_line(self, parameters, shards, potentials, rng, ordered_map=map):
        """B, U | omega, covs, then laws and scales of groups, a few times: e is integrated out of all."""
        sums = self.tell(parameters, shards, potentials, ordered_map)
        whole = regression.assembled(sums, self.prior.n_eliminated)
        noise = self.prior.noise_of_line(TURNS if self.prior.n_groups else 1, rng)
        if self.prior.turns_at_once:
            return self.prior.turned(parameters, whole, noise)
        for turn in range(len(noise.coefficients)):
            parameters = self.prior.redraw_line(parameters, whole, noise, turn)
            for factor in range(len(self.prior.n_groups)):
                parameters = self.prior.step_groups(parameters, factor, whole, noise, turn)
        return parameters

    def tell(self, parameters, shards, potentials, ordered_map=map):
        """Return the sums over the rows of each block of what each tells of its line."""
        cov = self.prior.noise_cov(parameters)

        def tell(i):
            told = regression.tell_of_line(potentials[i], cov)
            return regression.row_sums(shards[i].data.columns, shards[i].data.groups, *told)

        return list(ordered_map(tell, range(len(shards))))

    def about_line(self, line, potential):
        """Return the potential of noise, of psi - line."""
        kappa, omega = potential
        return Potential(kappa - omega * line, omega)

    def draw_noise(self, parameters, shards, potentials, key, rng, ordered_map=map):
        """Noise | its potentials, then its law and scale, a few times; return noise by block too."""
        rows = [shard.rows for shard in shards]
        law = self.prior.laws[-1].chance(sum(map(len, rows)), REPEATS, rng)
        if len(shards) == 1 and self.prior.noise_at_once:
            keys = np.array([key.at(f"noise {turn}") for turn in range(REPEATS)])
            parameters, e = self.prior.turned_noise(parameters, potentials[0], keys, rows[0], law)
            return parameters, [e]
        for turn in range(REPEATS):
            parameters, noise = self._turn_noise(
                parameters,
                rows,
                potentials,
                key.normals,
                at(law, turn),
                f"noise {turn}",
                ordered_map,
            )
        return parameters, noise

    def _turn_noise(self, parameters, rows, potentials, normals, law, site, ordered_map):
        noise = self.prepare(parameters).noise

        def work(i):
            kappa, omega = potentials[i]
            e = noise.draw(potentials[i], normals(site, rows[i], 2 * self.prior.k))
            return e, regression.told_by_noise(e, kappa, omega)

        parts = list(ordered_map(work, range(len(rows))))
        sums = [sum(each) for each in zip(*(told for _, told in parts))]
        parameters, by = self.prior.step(parameters, -1, sums, law)
        return parameters, [e * by for e, _ in parts]

    def draw_rows(self, law, shard, rows, key):
        """Each lopsided split | the others of its row, y."""
        return self._redraw_rows(law, shard, rows, key, "lopsided")

    def _redraw_rows(self, law, shard, rows, key, site):
        if law.noise is None:
            return rows, self._told(shard, rows.psi, np.zeros_like(rows.psi))
        line, psi = self.prior.line(law.parameters, shard.data), rows.psi
        if shard.n_lopsided:
            psi = psi.copy()
            exact_cells.redraw_rows_in_place(
                key.at(site),
                shard.rows,
                *shard.splits,
                shard.lopsided,
                line,
                law.noise.precision,
                psi,
            )
        return Rows(psi), self._told(shard, psi, psi - line)

    def _told(self, shard, psi, e):
        value = shard.log_coefficient + splits_kernels.log_likelihood(*shard.splits, psi)
        return Statistics(len(psi), algebra.gram(e), value, shard.n_lopsided)

    def describe_parameters(self, parameters):
        return self.prior.described(parameters)

    # mean field

    def initial_factor(self, shards, key):
        return regression_factors.initial(self.prior)

    def expect(self, factor):
        """Return what is expected of the line and of noise."""
        return regression_factors.expect(self.prior, factor)

    def initial_row_factors(self, expected, shard):
        return regression_factors.start_rows(shard)

    def update_rows(self, expected, shard, rows, key):
        """q(omega), or what rows tell of their lines: the two kinds of sweeps take turns."""
        return regression_factors.update_rows(expected, shard, rows)

    def update_factor(self, factor, statistics):
        """q(B, U), or those of the laws of spread."""
        return regression_factors.update(self.prior, factor, statistics)

    def elbo(self, factor, statistics):
        return regression_factors.elbo(self.prior, factor, statistics)

    def draw_from_factor(self, factor, key):
        return regression_factors.draw(self.prior, factor, key.generator("factor"))

    def draw_described_rows(self, expected, shard, rows, n_draws=64):
        """Draw from each row's law of psi, with the same points for each row."""
        psi = regression_factors.draw_psi(expected, shard, rows, n_draws)
        return {"probabilities": self.probabilities(psi)}

    # what to record

    def watch(self, shards):
        """Judge a run by the probabilities of some cells, those of slow splits among them."""
        cells = watched.choose_cells(
            watched.dense_cells(shard.rows, shard.splits) for shard in shards
        )
        return watched.RowWatch(cells, self.decomposition, "row")
