"""Correlated multinomials: rows of counts whose probabilities share a Gaussian law (paper, section 2)::

mean, cov ~ prior                              NormalInverseWishart, LearnedScale or SparseFactors
psi_i     ~ N(mean, cov)                       i = 1..n
x_i       ~ Multinomial(N_i, pi(psi_i))        pi: the decomposition's map

"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from polystick import augmentation
from polystick.decomposition import Decomposition, Splits
from polystick.gaussians.normal import Normal
from polystick.kernels import algebra, exact_cells, stick_scale
from polystick.kernels import splits as splits_kernels
from polystick.models import joint_cells, open_cells, watched, weak_sticks
from polystick.models.normal_points import standard_normal_points
from polystick.scores import log_coefficients

ROWS_PER_BLOCK = 512  # part of the result: float sums are formed block by block
LONG_LAG = 2.5  # from which splits are drawn without omega too, which costs little in rows
DISPERSION = 2.0  # of the start, in standard errors of the empirical logits


class Parameters(NamedTuple):
    """What is told of what all rows share. k = K - 1 sticks."""

    mean: np.ndarray  # (k,)
    cov: np.ndarray  # (k, k)


class Rows(NamedTuple):
    """Where each row of a chain stands; omega is drawn afresh in every sweep."""

    psi: np.ndarray  # (n, k)


class RowFactors(NamedTuple):
    """Marginal moments of each q(psi_i)."""

    mean: np.ndarray  # (n, k)
    variance: np.ndarray  # (n, k)


class Statistics(NamedTuple):
    """Sums over rows of psi or of its expectations."""

    n_rows: int
    total: np.ndarray  # (k,)
    outer: np.ndarray  # (k, k)
    value: float  # log likelihood (Gibbs) or the rows' part of the bound (mean field)


class Shard(NamedTuple):
    """A block of rows."""

    rows: np.ndarray  # (n,) uint64 ids, which key the random streams
    splits: Splits  # (n, k) each
    log_coefficient: float  # sum of log multinomial coefficients
    joint: joint_cells.Cells  # drawn together, given omega
    lopsided: np.ndarray  # (n, k) splits whose psi a Pólya-gamma step would move little
    exact: (
        np.ndarray
    )  # (n, k) splits that are drawn one by one: those, and those that are not joint
    open_cells: np.ndarray  # (n, k) of which counts tell little
    open: np.ndarray  # (k,) share of psi's variance that counts leave to the law, summed over rows


@dataclass(frozen=True)
class CorrelatedCounts:
    """The model: its prior and its decomposition."""

    prior: Any  # of mean and cov
    decomposition: Decomposition

    population_type: ClassVar = Parameters
    dims: ClassVar = {
        "mean": ("stick",),
        "cov": ("stick", "stick_too"),
        "probabilities": ("row", "category"),
    }
    identified: ClassVar = ("mean", "cov", "probabilities")

    @property
    def parameter_type(self):
        return self.prior.parameter_type

    @property
    def n_sticks(self):
        return self.decomposition.n_categories - 1

    n_dims = n_noise = n_sticks

    def probabilities(self, psi):
        return self.decomposition.probabilities(psi)

    def shards(self, counts, size=ROWS_PER_BLOCK):
        """Cut counts (n, K), dense or CSR, into blocks of rows."""
        ids = np.arange(counts.shape[0], dtype=np.uint64)
        starts = range(0, counts.shape[0], size)
        return [self._shard(counts[i : i + size], ids[i : i + size]) for i in starts]

    def _shard(self, counts, ids):
        dense = counts.toarray() if scipy.sparse.issparse(counts) else counts
        splits = self.decomposition.split(dense)
        lopsided = augmentation.lopsided(splits, LONG_LAG)
        joint, alone = joint_cells.find(splits)
        return Shard(
            ids,
            splits,
            log_coefficients(counts).sum(),
            joint,
            lopsided,
            lopsided | alone,
            open_cells.find(splits),
            weak_sticks.left_open(splits),
        )

    # simulate

    def simulate(self, n_trials, rng):
        """Draw (parameters, rows, counts) from the joint law, for the totals (n,) of the rows."""
        parameters = self.prior.draw(rng)
        law = parameters.mean, parameters.cov
        rows = Rows(rng.multivariate_normal(*law, size=len(n_trials), method="cholesky"))
        return parameters, rows, self.simulate_counts(rows, n_trials, rng)

    def simulate_counts(self, rows, n_trials, rng):
        """Draw counts given the rows' psi."""
        return rng.multinomial(n_trials, self.decomposition.probabilities(rows.psi))

    # Gibbs

    def initial_parameters(self, shards, key):
        """Start from about the prior, so that chains start apart."""
        return self.prior.start(key.generator("start"))

    def prepare(self, parameters):
        """Return the rows' Gaussian, with what its draws share."""
        return Normal(parameters.mean, parameters.cov, getattr(parameters, "precision", None))

    def population(self, mean, cov):
        """Return the rows' Gaussian from what is told of it."""
        return Normal(mean, cov)

    def initial_rows(self, prior, shard, key):
        """Start from the likelihood alone, chains further apart than it leaves them."""
        yes, no = augmentation.smoothed(shard.splits)
        noise = key.normals("start", shard.rows, self.n_sticks)
        return Rows(np.log(yes / no) + DISPERSION * np.sqrt(1.0 / yes + 1.0 / no) * noise)

    @property
    def moves_rows(self):
        """Whether the law of mean and cov allows it."""
        return hasattr(self.prior, "given")

    def move_together(self, parameters, shards, rows, key, ordered_map=map):
        """Redraw open cells of few rows, move scales of sticks, redraw weak ones with their part of the law.

        Each where the law of mean and cov allows it.
        """
        if not hasattr(self.prior, "given"):
            return parameters, rows
        parameters, rows = self._redraw_open_cells(parameters, shards, rows, key)
        if hasattr(self.prior, "redraw_scales"):
            parameters, rows = self._move_scales(parameters, shards, rows, key)
        open_share = sum(shard.open for shard in shards) / sum(len(shard.rows) for shard in shards)
        sticks = weak_sticks.choose(open_share, key)
        if not len(sticks):
            return parameters, rows
        blocks = [
            weak_sticks.Block(s.rows, s.splits.successes, s.splits.trials, s.lopsided)
            for s in shards
        ]
        psi = [part.psi for part in rows]
        normal, psi = weak_sticks.redraw(
            self.prior.given(parameters),
            self.prepare(parameters),
            blocks,
            psi,
            sticks,
            key,
            ordered_map,
        )
        moved = {"mean": normal.mean, "cov": normal.cov, "precision": normal.precision}
        return parameters._replace(**moved), [Rows(part) for part in psi]

    def _redraw_open_cells(self, parameters, shards, rows, key):
        """Draw cells of which counts tell little with mean and cov integrated out, where rows are few."""
        n_rows = sum(len(part.psi) for part in rows)
        if n_rows > open_cells.FEW or not any(shard.open_cells.any() for shard in shards):
            return parameters, rows
        ids, chosen = (_join(shards, name) for name in ("rows", "open_cells"))
        psi, law = open_cells.redraw(
            self.prior.given(parameters),
            ids,
            (*_joined_splits(shards), chosen),
            _join(rows, "psi"),
            key,
        )
        return parameters._replace(**law._asdict()), _cut(psi, rows)

    def _move_scales(self, parameters, shards, rows, key):
        """Let each stick's rows, its part of cov and its scale shrink or grow together."""
        psi = _join(rows, "psi").copy()
        counts = _joined_splits(shards)
        mean, names = parameters.mean, ("cov", "precision", "spread")
        moved = {name: np.array(getattr(parameters, name)) for name in names}
        stick_scale.move_in_place(
            key.at("scales"), counts, mean - self.prior.centre, float(parameters.strength),
            self.prior.scale, psi, mean, *moved.values(),
        )  # fmt: skip
        return parameters._replace(**moved), _cut(psi, rows)

    def draw_rows(self, prior, shard, rows, key):
        """Omega | psi, x and psi | omega, x of joint cells; then each exact cell | the others, x."""
        splits = shard.splits
        psi = joint_cells.draw(prior, shard.joint, rows.psi, key, shard.rows)
        exact_cells.redraw_rows_in_place(
            key.at("lopsided"),
            shard.rows,
            *splits,
            shard.exact,
            prior.mean[None],
            prior.precision,
            psi,
        )
        value = shard.log_coefficient + splits_kernels.log_likelihood(*splits, psi)
        return Rows(psi), Statistics(len(psi), psi.sum(axis=0), algebra.gram(psi), value)

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        """mean, cov | psi."""
        n_rows, total, outer, _ = statistics
        return self.prior.redraw(parameters, n_rows, total, outer, key.generator("parameters"))

    def describe_parameters(self, parameters):
        return {"mean": parameters.mean, "cov": parameters.cov}

    def log_likelihood(self, statistics):
        return statistics.value

    def describe_rows(self, shard, rows):
        return {"probabilities": self.decomposition.probabilities(rows.psi)}

    def watch(self, shards):
        """Judge a run by the probabilities of some cells, those of slow splits among them."""
        cells = watched.choose_cells(
            watched.dense_cells(shard.rows, shard.splits) for shard in shards
        )
        return watched.RowWatch(cells, self.decomposition, "row")

    # mean field

    def initial_factor(self, shards, key):
        return self.prior.initial_factor()

    def expect(self, factor):
        """Return the rows' Gaussian at the expected natural parameters, and what the bound needs."""
        law = factor.normal
        constant = 0.5 * (law.expected_log_det_precision - law.expected_quadratic)
        return Normal.natural(law.expected_precision, law.expected_linear), constant

    def initial_row_factors(self, prior, shard):
        psi = augmentation.empirical_logit(shard.splits)
        return RowFactors(psi, np.ones_like(psi))

    def update_rows(self, prior, shard, rows, key):
        """q(omega), then q(psi): the two lines of `draw_rows`, in expectation."""
        (normal, constant), splits = prior, shard.splits
        tilt = np.sqrt(rows.mean**2 + rows.variance)
        moments = normal.moments(augmentation.expected_potential(splits, tilt))
        mean, variance = moments.mean, moments.variance
        outer = algebra.gram(mean) + moments.cov_sum
        log_cosh = augmentation.log_two_cosh(np.sqrt(moments.second))
        likelihood = augmentation.kappa(splits) * mean - splits.trials * log_cosh
        gaussian = (
            len(mean) * (constant + 0.5 * self.n_sticks)
            + np.sum(normal.linear * mean.sum(axis=0))
            - 0.5 * np.sum(normal.precision * outer)
            - 0.5 * moments.log_det.sum()
        )
        value = shard.log_coefficient + likelihood.sum() + gaussian
        return RowFactors(mean, variance), Statistics(len(mean), mean.sum(axis=0), outer, value)

    def update_factor(self, factor, statistics):
        """q(mean, cov), and of their scales."""
        n_rows, total, outer, _ = statistics
        return self.prior.updated(factor, n_rows, total, outer)

    def scale(self, statistics, by):
        """Return what `by` times as many rows like these would give."""
        return Statistics(*(by * part for part in statistics))

    def blend(self, factor, other, rate):
        return factor.blend(other, rate)

    def elbo(self, factor, statistics):
        return statistics.value - self.prior.divergence(factor)

    def draw_from_factor(self, factor, key):
        drawn = factor.normal.draw(key.generator("factor"))
        return Parameters(drawn.mean, drawn.cov)

    def draw_described_rows(self, prior, shard, rows, n_draws=64):
        """Draw from each q(psi_i), with the same points for each row."""
        tilt = np.sqrt(rows.mean**2 + rows.variance)
        potential = augmentation.expected_potential(shard.splits, tilt)
        points = standard_normal_points(n_draws, self.n_sticks)
        psi, _ = prior[0].draws(potential, np.broadcast_to(points, (len(tilt), *points.shape)))
        return {"probabilities": np.moveaxis(self.decomposition.probabilities(psi), 1, 0)}

    # rows given parameters: scores and predictions

    def propose_rows(self, priors, shard, n_points, noise=None):
        """Propose psi of each row under each prior; weight it so that the weights average to p(x_i).

        The proposal is Laplace's approximation, with the same points for each row, so that a row
        depends on itself alone; or, where rows must be independent, with noise (n, S n_points, k).
        The multinomial coefficient is left out.

        Returns psi (n, S n_points, k) and log weights (n, S n_points), for S priors.
        """
        splits = shard.splits
        psi = augmentation.empirical_logit(splits)
        if noise is None:
            noise = standard_normal_points(len(priors) * n_points, self.n_sticks)[None]
        proposed, log_weights = [], []
        for number, prior in enumerate(priors):
            psi = self._climb(prior, splits, psi, n_steps=20 if number == 0 else 3)
            mine = noise[:, number * n_points : (number + 1) * n_points]
            drawn, log_density = self._draw_about(prior, splits, psi, mine)
            each = Splits(*(part[:, None] for part in splits))
            log_likelihood = augmentation.log_likelihood(each, drawn).sum(axis=2)
            log_prior = prior.log_density(drawn.reshape(-1, self.n_sticks)).reshape(drawn.shape[:2])
            proposed.append(drawn)
            log_weights.append(log_likelihood + log_prior - log_density)
        return np.concatenate(proposed, axis=1), np.concatenate(log_weights, axis=1)

    def _climb(self, prior, splits, psi, n_steps):
        """Climb towards the mode of each row; each step maximises a bound that touches at psi."""
        nowhere = np.zeros((len(psi), 1, self.n_sticks))
        for _ in range(n_steps):
            potential = augmentation.expected_potential(splits, np.abs(psi))
            psi = prior.draws(potential, nowhere)[0][:, 0]
        return psi

    def _draw_about(self, prior, splits, psi, noise):
        """Draw from the Gaussian with the curvature at psi; return the draws and their log density."""
        potential = augmentation.quadratic_potential(splits, psi)
        each = np.broadcast_to(noise, (len(psi), *noise.shape[1:]))
        drawn, log_det = prior.draws(potential, each)
        distance = np.square(noise).sum(axis=2) + self.n_sticks * np.log(2 * np.pi)
        return drawn, 0.5 * (log_det[:, None] - distance)

    def log_population(self, parameters, n_points=512):
        """Return log probabilities (n_points, K) of rows that the parameters would give."""
        points = standard_normal_points(n_points, self.n_sticks)
        away = algebra.multiply(points, algebra.root(parameters.cov))
        return self.decomposition.log_probabilities(parameters.mean + away)


def _join(parts, name):
    """Return a field of all blocks."""
    fields = [getattr(part, name) for part in parts]
    return fields[0] if len(fields) == 1 else np.concatenate(fields)


def _joined_splits(shards):
    return Splits(*(_join([shard.splits for shard in shards], name) for name in Splits._fields))


def _cut(psi, like):
    """Return rows of the blocks that these are."""
    if len(like) == 1:
        return [Rows(psi)]
    return [Rows(part) for part in np.split(psi, np.cumsum([len(part.psi) for part in like])[:-1])]
