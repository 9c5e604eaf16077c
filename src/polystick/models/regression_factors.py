"""Mean field of a regression on sticks: q(omega) q(B, U, e) q(covariances) q(scales).

B, U and e stay together, as in the Gibbs draw, so that intervals of coefficients know of noise and counts.
Two kinds of sweeps take turns. One looks at rows: omega given psi, then laws of spread given e, B and U. The
other solves for B and U given omega and these laws, noise integrated out. Neither lowers the bound.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from polystick import augmentation
from polystick.gaussians import regression
from polystick.models.normal_points import standard_normal_points
from polystick.models.regression_state import Parameters
from polystick.population import SpreadFactor

__all__ = [
    "RegressionFactor",
    "RowFactors",
    "draw",
    "draw_psi",
    "elbo",
    "expect",
    "initial",
    "start_rows",
    "update",
    "update_rows",
]

START = 0.01  # variance of coefficients and groups that a run starts from


class RowFactors(NamedTuple):
    """The tilt of each q(omega)."""

    tilt: np.ndarray  # (n, k)


class Statistics(NamedTuple):
    """Sums over rows: of one that looks noise, of one that solves what rows tell of their lines."""

    value: float  # the rows' part of the bound, but for what laws expect of noise
    n_rows: int
    outer: np.ndarray  # (k, k) expected, of noise
    weight: np.ndarray  # and all else that `regression.Whole` has
    linear: np.ndarray
    group_weight: np.ndarray
    group_linear: np.ndarray
    cross: np.ndarray

    @property
    def whole(self):
        return regression.Whole(*(getattr(self, name) for name in regression.Whole._fields))


@dataclass(frozen=True, eq=False)
class RegressionFactor:
    """The normal law of B and of U given B, and L laws of spread."""

    mean: np.ndarray  # (q, k) of B, with factors of groups that are not eliminated
    cov: np.ndarray  # (q k, q k)
    gain: np.ndarray  # (G, k, q k)
    group_mean: np.ndarray  # (G, k)
    group_cov: np.ndarray  # (G, k, k)
    value: float
    log_det: float
    noise: np.ndarray  # (0 or 1, k, k): the covariance that e given the line was made with
    scales: np.ndarray  # (L, k, k)
    degrees: np.ndarray  # (L,)
    rates: np.ndarray  # (L, k)
    is_solving: int  # whether B and U are due

    @property
    def line(self):
        return regression.Line(*(getattr(self, name) for name in regression.Line._fields))

    @property
    def spreads(self):
        """The factors of the laws of spread."""
        return [SpreadFactor(*each) for each in zip(self.scales, self.degrees, self.rates)]

    def with_spreads(self, spreads):
        return replace(
            self,
            scales=np.array([each.scale for each in spreads]).reshape(self.scales.shape),
            degrees=np.array([each.degrees for each in spreads]),
            rates=np.array([each.rate for each in spreads]).reshape(self.rates.shape),
        )


class Expected(NamedTuple):
    """What the rows of a sweep share."""

    line: regression.Line
    made_with: np.ndarray | None  # (k, k) noise that e given the line was made with
    noise: np.ndarray | None  # (k, k) the inverse of the expected precision
    is_solving: bool


def initial(prior):
    """Return the factor to start from: the prior mean, and next to no spread of coefficients."""
    k, m = prior.k, prior.n_eliminated
    q = len(prior.scale) + sum(prior.n_groups[f] for f in prior.others)
    mean = np.zeros((q, k))
    mean[: len(prior.scale)] = prior.mean
    spreads = [law.initial_factor() for law in prior.laws]
    log_det = -(q + m) * k * np.log(START)
    factor = RegressionFactor(
        mean, START * np.eye(q * k), np.zeros((m, k, q * k)), np.zeros((m, k)),
        np.tile(START * np.eye(k), (m, 1, 1)), 0.0, log_det, np.zeros((0, k, k)),
        np.zeros((len(spreads), k, k)), np.zeros(len(spreads)), np.zeros((len(spreads), k)), 1,
    ).with_spreads(spreads)  # fmt: skip
    return replace(factor, noise=_noise(prior, factor))


def _noise(prior, factor):
    """Return the inverse of the expected precision of noise (0 or 1, k, k)."""
    if prior.overdispersion is None:
        return np.zeros((0, prior.k, prior.k))
    return np.linalg.inv(prior.laws[-1].expected_precision(factor.spreads[-1]))[None]


def expect(prior, factor):
    """Return what the local steps share."""
    used, now = (list(each) or [None] for each in (factor.noise, _noise(prior, factor)))
    return Expected(factor.line, used[0], now[0], bool(factor.is_solving))


def start_rows(shard):
    return RowFactors(np.abs(augmentation.empirical_logit(shard.splits)) + 1.0)


def update_rows(expected, shard, rows):
    """Look at rows, or sum up what they tell of their lines."""
    if expected.is_solving:
        return rows, _tell(expected, shard, rows)
    return _look(expected, shard, rows)


def _tell(expected, shard, rows):
    """Return what rows tell of B and U, and the part of the bound in which their lines are not."""
    data, splits, tilt = shard.data, shard.splits, rows.tilt
    kappa, omega = potential = augmentation.expected_potential(splits, tilt)
    told = regression.tell_of_line(potential, expected.noise)
    n_groups = len(expected.line.group_mean)
    whole = regression.assembled([regression.row_sums(data.columns, data.groups, *told)], n_groups)
    value = 0.5 * np.vdot(omega, tilt**2) - np.vdot(splits.trials, augmentation.log_two_cosh(tilt))
    if expected.noise is not None:
        inner = np.linalg.inv(
            np.linalg.inv(expected.noise) + omega[:, :, None] * np.eye(omega.shape[1])
        )
        value += 0.5 * np.linalg.slogdet(inner)[1].sum()
        value += 0.5 * np.einsum("nj,njm,nm->", kappa, inner, kappa, optimize=True)
    return Statistics(
        shard.log_coefficient + value, len(tilt), np.zeros_like(whole.weight[0, :, 0]), *whole
    )


def _look(expected, shard, rows):
    """q(omega) given psi, and what is expected of noise."""
    mean, cov, outer, entropy = moments_of_rows(expected, shard, rows)
    second = mean**2 + np.diagonal(cov, axis1=1, axis2=2)
    tilt = np.sqrt(second)
    splits = shard.splits
    value = np.vdot(augmentation.kappa(splits), mean)
    value -= np.vdot(splits.trials, augmentation.log_two_cosh(tilt))
    nothing = np.zeros((5, 1))
    return RowFactors(tilt), Statistics(
        shard.log_coefficient + value + entropy, len(mean), outer, *nothing
    )


def moments_of_rows(expected, shard, rows):
    """Return mean (n, k) and cov (n, k, k) of psi, the expected sum of e e', and the entropy of e | lines."""
    mean, cov = regression.moments_of_lines(expected.line, shard.data.columns, shard.data.groups)
    if expected.made_with is None:
        return mean, cov, np.zeros_like(cov[0]), 0.0
    kappa, omega = augmentation.expected_potential(shard.splits, rows.tilt)
    precision, k = np.linalg.inv(expected.made_with), omega.shape[1]
    inner = np.linalg.inv(precision + omega[:, :, None] * np.eye(k))
    e = np.einsum("njm,nm->nj", inner, kappa - omega * mean)
    by_line = inner * omega[:, None]  # e falls by so much where the line rises
    spread = by_line @ cov @ by_line.transpose(0, 2, 1) + inner
    kept = inner @ precision
    psi_cov = kept @ cov @ kept.transpose(0, 2, 1) + inner
    entropy = 0.5 * (np.linalg.slogdet(inner)[1].sum() + k * len(e))
    return mean + e, psi_cov, e.T @ e + spread.sum(axis=0), entropy


# all rows together


def update(prior, factor, statistics):
    """B and U, or the laws of spread."""
    if factor.is_solving:
        line = regression.solve(law_of_line(prior, factor), statistics.whole)
        return replace(factor, **line._asdict(), noise=_noise(prior, factor), is_solving=0)
    spreads, line = factor.spreads, factor.line
    outers = [
        regression.expected_outer(line, prior.columns_of(f)) for f in range(len(prior.n_groups))
    ]
    given = [*zip(prior.n_groups, outers), (statistics.n_rows, statistics.outer)]
    new = [law.updated(spread, *told) for law, spread, told in zip(prior.laws, spreads, given)]
    return replace(factor.with_spreads(new), is_solving=1)


def law_of_line(prior, factor):
    """Return the expected law of B and of all groups."""
    inverses = [law.expected_precision(each) for law, each in zip(prior.laws, factor.spreads)]
    return prior.law_of_line(inverses)


def elbo(prior, factor, statistics):
    """Return the bound where rows were looked at, or that which solving for B and U will give."""
    spreads, n_groups = factor.spreads, prior.n_groups
    log_dets = [law.expected_log_det_precision(s) for law, s in zip(prior.laws, spreads)]
    value = statistics.value - sum(law.divergence(s) for law, s in zip(prior.laws, spreads))
    value += 0.5 * np.dot(n_groups, log_dets[: len(n_groups)])
    value -= prior.k * np.log(prior.scale).sum()
    if prior.overdispersion is not None:
        value += 0.5 * statistics.n_rows * log_dets[-1]
    if factor.is_solving:
        away = prior.mean / prior.scale[:, None]
        return (
            value
            + regression.solve(law_of_line(prior, factor), statistics.whole).value
            - 0.5 * np.sum(away**2)
        )
    return value + _of_line(prior, factor, statistics)


def _of_line(prior, factor, statistics):
    """Return what B, U and noise cost, at their expected laws, and the entropy of B and U."""
    line, p = factor.line, len(prior.scale)
    precisions = [law.expected_precision(s) for law, s in zip(prior.laws, factor.spreads)]
    own = np.diag(line.cov).reshape(line.mean.shape)[:p]
    cost = np.sum(((line.mean[:p] - prior.mean) ** 2 + own) / prior.scale[:, None] ** 2)
    for f in range(len(prior.n_groups)):
        cost += np.vdot(precisions[f], regression.expected_outer(line, prior.columns_of(f)))
    if prior.overdispersion is not None:
        cost += np.vdot(precisions[-1], statistics.outer)
    return 0.5 * (line.mean.size + line.group_mean.size - line.log_det - cost)


def draw(prior, factor, rng):
    """Draw parameters from their factors."""
    line = factor.line
    noise = rng.standard_normal(line.mean.shape), rng.standard_normal(line.group_mean.shape)
    drawn = regression.draw_of(line, *noise)
    spreads = [law.draw_from(each, rng) for law, each in zip(prior.laws, factor.spreads)]
    none = np.zeros((sum(prior.n_groups), prior.k))
    blank = Parameters(
        prior.mean,
        none,
        np.array([s.cov for s in spreads]).reshape(-1, prior.k, prior.k),
        np.array([s.size for s in spreads]).reshape(-1, prior.k),
    )
    return prior.joined(blank, *drawn)


def draw_psi(expected, shard, rows, n_draws):
    """Draw psi (draws, n, k) from its marginal law, with the same points for each row."""
    mean, cov, *_ = moments_of_rows(expected, shard, rows)
    points = standard_normal_points(n_draws, mean.shape[1])
    return mean + np.einsum("njm,sm->snj", np.linalg.cholesky(cov), points)
