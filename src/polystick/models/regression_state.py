"""What regressions share behind any link: their prior, where a chain stands, blocks of rows, laws of spread.

In the room B are coefficients (p, k), U effects of groups (G, k), those of all factors under each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from polystick.gaussians import regression
from polystick.gaussians.normal import Normal
from polystick.gaussians.regression import GroupRows, Prior, group_rows
from polystick.kernels import algebra
from polystick.models.multinomial import DISPERSION
from polystick.population import Chance, HuangWand, Spread

__all__ = [
    "Data",
    "Parameters",
    "Regression",
    "RegressionPrior",
    "Rows",
    "Statistics",
    "at",
    "cut",
]

ROWS_PER_BLOCK = 512  # part of the result: float sums are formed block by block
MOST_AT_ONCE = 20  # entries of noise, beyond which rows with few counts are drawn in another way


class Parameters(NamedTuple):
    """What all rows share. L laws of spread: one for each factor of groups, then that of noise."""

    coefficients: np.ndarray  # (p, k) B
    effects: np.ndarray  # (G, k) U
    covs: np.ndarray  # (L, k, k)
    sizes: np.ndarray  # (L, k) scales that they are drawn from


class Rows(NamedTuple):
    """Where each row of a chain stands; omega is drawn afresh in every sweep."""

    psi: np.ndarray  # (n, k)


class Statistics(NamedTuple):
    """Sums over rows of noise."""

    n_rows: int
    outer: np.ndarray  # (k, k)
    value: float  # log likelihood
    n_moved: int  # entries of psi that were drawn anew since the law of noise was


class Data(NamedTuple):
    """Covariates and groups of a block of rows."""

    x: np.ndarray  # (n, p)
    places: np.ndarray  # (n, F) which of the G groups, one of each factor
    columns: np.ndarray  # (n, q) x, and groups of factors that are not eliminated
    groups: GroupRows | None  # of the factor that is, counted from its first


class LineNoise(NamedTuple):
    """What some turns of B, groups and their laws need of chance."""

    coefficients: np.ndarray  # (T, q, k) of columns, those of factors that are not eliminated too
    groups: np.ndarray  # (T, G, k) of the eliminated factor
    laws: list[Chance]  # of each factor


@dataclass(frozen=True, eq=False)
class RegressionPrior:
    """B_ak ~ N(mean_ak, scale_a^2); U_g ~ N(0, cov of its factor); e_i ~ N(0, cov), with `HuangWand` laws.

    mean : (p, k)
    scale : (p,)
    n_groups : of each factor
    overdispersion : None, "diagonal" or "full"
    spread : of the half-t laws of standard deviations
    """

    mean: np.ndarray
    scale: np.ndarray
    n_groups: tuple[int, ...] = ()
    overdispersion: str | None = None
    spread: float = 1.0

    @property
    def k(self):
        return self.mean.shape[1]

    @cached_property
    def laws(self):
        """The law of each spread: of factors, then of noise."""
        factors = [HuangWand(self.k, scale=self.spread) for _ in self.n_groups]
        if self.overdispersion is None:
            return factors
        return [*factors, HuangWand(self.k, self.overdispersion == "diagonal", self.spread)]

    @cached_property
    def edges(self):
        """Where the groups of each factor start and end (F + 1,)."""
        return np.concatenate([[0], np.cumsum(self.n_groups, dtype=int)])

    @cached_property
    def eliminated(self):
        """The factor with the most groups; None without groups."""
        return int(np.argmax(self.n_groups)) if self.n_groups else None

    @cached_property
    def others(self):
        """Factors whose groups are columns."""
        return [f for f in range(len(self.n_groups)) if f != self.eliminated]

    @property
    def n_eliminated(self):
        return 0 if self.eliminated is None else self.n_groups[self.eliminated]

    @cached_property
    def precision(self):
        """Of the coefficients of each column (p, k, k)."""
        return self.scale[:, None, None] ** -2.0 * np.eye(self.k)

    @cached_property
    def linear(self):
        """The mean of the coefficients in units of their precision (p, k)."""
        return self.mean * self.scale[:, None] ** -2.0

    def law_of_line(self, inverses):
        """Return the law of B and of all groups, given the precision of each factor's."""
        weight, linear = self.precision, self.linear
        if self.others:
            of_others = [
                np.broadcast_to(inverses[f], (self.n_groups[f], self.k, self.k))
                for f in self.others
            ]
            weight = np.concatenate([weight, *of_others])
            linear = np.zeros((len(weight), self.k))
            linear[: len(self.scale)] = self.linear
        own = np.eye(self.k) if self.eliminated is None else inverses[self.eliminated]
        return Prior(weight, linear, own, np.zeros((self.n_eliminated, self.k)))

    def columns_of(self, factor):
        """Return which columns the groups of a factor are, after the covariates; None if eliminated."""
        if factor == self.eliminated:
            return None
        start = len(self.scale) + sum(self.n_groups[f] for f in self.others if f < factor)
        return slice(start, start + self.n_groups[factor])

    def parted(self, coefficients, effects):
        """Return what columns have, coefficients and groups of other factors, and eliminated groups."""
        others = [effects[self.groups_of(f)] for f in self.others]
        mine = effects[:0] if self.eliminated is None else effects[self.groups_of(self.eliminated)]
        return np.concatenate([coefficients, *others]) if others else coefficients, mine

    def joined(self, parameters, b, groups):
        """Return parameters with what columns and eliminated groups have: the inverse of `parted`."""
        effects = np.empty_like(parameters.effects)
        for factor in self.others:
            effects[self.groups_of(factor)] = b[self.columns_of(factor)]
        if self.eliminated is not None:
            effects[self.groups_of(self.eliminated)] = groups
        return parameters._replace(coefficients=b[: len(self.scale)], effects=effects)

    def groups_of(self, factor):
        return slice(self.edges[factor], self.edges[factor + 1])

    def noise_cov(self, parameters):
        return None if self.overdispersion is None else parameters.covs[-1]

    def draw(self, rng):
        """Draw parameters from the prior."""
        return self._assembled([law.draw(rng) for law in self.laws], 1.0, rng)

    def start(self, rng):
        """Start apart, but not far out."""
        return self._assembled([law.start(rng) for law in self.laws], 0.2, rng)

    def _assembled(self, spreads, share, rng):
        noise = rng.standard_normal(self.mean.shape)
        effects = [
            rng.standard_normal((n, self.k)) @ np.linalg.cholesky(spread.cov).T
            for n, spread in zip(self.n_groups, spreads)
        ]
        none = np.zeros((0, self.k))
        return Parameters(
            self.mean + share * self.scale[:, None] * noise,
            np.concatenate([none, *effects]),
            np.array([s.cov for s in spreads]).reshape(-1, self.k, self.k),
            np.array([s.size for s in spreads]).reshape(-1, self.k),
        )

    def line(self, parameters, data):
        """Return B' x_i + U of the groups of each row (n, k)."""
        line = algebra.multiply(data.x, parameters.coefficients)
        for factor in range(len(self.n_groups)):
            line += parameters.effects[data.places[:, factor]]
        return line

    def redraw(self, parameters, number, n, outer, rng):
        """Covariance and scales of a law | the sum of outer products of its n rows."""
        return self._with(
            parameters,
            number,
            self.laws[number].redraw(self._spread(parameters, number), n, outer, rng),
        )

    def redraw_groups(self, parameters, factor, rng):
        """Covariance and scales of a factor | its groups."""
        effects = parameters.effects[self.groups_of(factor)]
        return self.redraw(parameters, factor, len(effects), algebra.gram(effects), rng)

    # B, groups and their laws | what rows tell of them, noise integrated out

    def noise_of_line(self, turns, rng):
        """Draw what some turns need of chance."""
        n_columns = len(self.scale) + sum(self.n_groups[f] for f in self.others)
        return LineNoise(
            rng.standard_normal((turns, n_columns, self.k)),
            rng.standard_normal((turns, self.n_eliminated, self.k)),
            [law.chance(n, turns, rng) for law, n in zip(self.laws, self.n_groups)],
        )

    @property
    def turns_at_once(self):
        """Whether a kernel makes all turns: there is one factor, and few coefficients."""
        return len(self.n_groups) == 1 and self.mean.size <= regression.MOST_ENTRIES

    def turned(self, parameters, whole, noise):
        """All turns of `redraw_line` and `step_groups` in one call."""
        given = self.laws[0].compiled, noise.laws[0], self._spread(parameters, 0)
        b, groups, *spread = regression.draw_in_turns(
            self._free_law, whole, noise.coefficients, noise.groups, *given
        )
        return self._with(parameters, 0, spread)._replace(coefficients=b, effects=groups)

    @cached_property
    def _free_law(self):
        """The law of B and groups, but for the precision of groups."""
        return self.law_of_line([np.eye(self.k) for _ in self.n_groups])

    def redraw_line(self, parameters, whole, noise, turn):
        """B, U | laws of groups."""
        law = self.law_of_line(list(map(regression.inverse, parameters.covs[: len(self.n_groups)])))
        drawn = regression.draw(law, whole, noise.coefficients[turn], noise.groups[turn])
        return self.joined(parameters, *drawn)

    def step_groups(self, parameters, factor, whole, noise, turn):
        """Law and scales of a factor | U; then scales | U in their units, which U follows."""
        b, groups = self.parted(parameters.coefficients, parameters.effects)
        told = regression.tell_of_scales(whole, b, groups, self.columns_of(factor))
        mine, effects = self.groups_of(factor), parameters.effects.copy()
        sums = algebra.gram(effects[mine]), *told
        parameters, by = self.step(parameters, factor, sums, at(noise.laws[factor], turn))
        effects[mine] *= by
        return parameters._replace(effects=effects)

    # noise and its law | its potentials

    @property
    def noise_at_once(self):
        """Whether a kernel makes all turns, if rows are in one block."""
        return self.k <= MOST_AT_ONCE

    def turned_noise(self, parameters, potential, keys, rows, chance):
        """Noise, its law and its scales, as often as there are keys; return parameters and noise."""
        given = self.laws[-1].compiled, chance, self._spread(parameters, -1)
        e, *spread = regression.draw_noise_in_turns(potential, keys, rows, *given)
        return self._with(parameters, -1, spread), e

    # laws of spread

    def step(self, parameters, number, sums, chance):
        """Both of `redraw` and `rescale`, given sums and what they need of chance."""
        spread, by = self.laws[number].step(self._spread(parameters, number), sums, chance)
        return self._with(parameters, number, spread), by

    def rescale(self, parameters, number, curvature, slope, rng, entries=slice(None)):
        """Scales of a law | its rows in their units; return also by what to multiply these."""
        spread, by = self.laws[number].rescale(
            self._spread(parameters, number), curvature, slope, rng, entries
        )
        return self._with(parameters, number, spread), by

    def stretched(self, parameters, number, which, by):
        """Return parameters where some scales of a law are multiplied."""
        whole = np.ones(self.k)
        whole[which] = by
        cov, size = self._spread(parameters, number)
        spread = Spread(whole[:, None] * cov * whole, size * whole)
        return self._with(parameters, number, spread)

    def _spread(self, parameters, number):
        return Spread(parameters.covs[number], parameters.sizes[number])

    def _with(self, parameters, number, spread):
        covs, sizes = parameters.covs.copy(), parameters.sizes.copy()
        covs[number], sizes[number] = spread
        return parameters._replace(covs=covs, sizes=sizes)

    def described(self, parameters):
        """Return what is recorded, name -> array."""
        n_factors = len(self.n_groups)
        said = {"coefficients": parameters.coefficients}
        if n_factors:
            said |= {"group_effects": parameters.effects, "group_cov": parameters.covs[:n_factors]}
        if self.overdispersion is not None:
            said["noise_cov"] = parameters.covs[-1]
        return said

    def data(self, x, groups):
        """Return covariates (n, p) and groups (n, F), counted from 0 in each factor, as a block's data."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        groups = np.asarray(groups, dtype=int).reshape(len(x), len(self.n_groups))
        dummies = [np.eye(self.n_groups[f])[groups[:, f]] for f in self.others]
        mine = None if self.eliminated is None else group_rows(groups[:, self.eliminated])
        columns = np.ascontiguousarray(np.column_stack([x, *dummies]))
        return Data(x, groups + self.edges[:-1], columns, mine)


class Law(NamedTuple):
    """What the local steps of a sweep share."""

    parameters: Parameters
    noise: Normal | None


@dataclass(frozen=True)
class Regression:
    """What regressions are behind any link, which gives `shard`, `told_by_counts` and what draws."""

    prior: RegressionPrior

    parameter_type: ClassVar = Parameters
    identified: ClassVar = ("coefficients", "group_cov", "noise_cov", "probabilities")
    axis: ClassVar[str]  # what entries of psi are
    probabilities: ClassVar[Callable]  # psi (..., k) -> (..., K)
    shard: ClassVar[Callable]  # ids, counts and data of some rows -> a block
    told_by_counts: ClassVar[Callable]  # a block -> psi (n, k) and its standard errors

    @property
    def dims(self):
        both = (self.axis, f"{self.axis}_too")
        return {
            "coefficients": ("column", self.axis),
            "group_effects": ("group", self.axis),
            "group_cov": ("factor", *both),
            "noise_cov": both,
            "probabilities": ("row", "category"),
        }

    def shards(self, counts, x, groups, size=ROWS_PER_BLOCK):
        """Cut counts (n, K), covariates (n, p) and groups (n, F) into blocks of rows."""
        ids = np.arange(len(counts), dtype=np.uint64)
        return [
            self.shard(ids[part], counts[part], self.prior.data(x[part], groups[part]))
            for part in cut(len(counts), size)
        ]

    def simulate(self, n_trials, x, groups, rng):
        """Draw (parameters, rows, counts) from the joint law, for the totals (n,) of the rows."""
        parameters = self.prior.draw(rng)
        psi = self.prior.line(parameters, self.prior.data(x, groups))
        cov = self.prior.noise_cov(parameters)
        if cov is not None:
            psi = psi + rng.standard_normal(psi.shape) @ np.linalg.cholesky(cov).T
        return parameters, Rows(psi), self.simulate_counts(Rows(psi), n_trials, rng)

    def simulate_counts(self, rows, n_trials, rng):
        """Draw counts given the rows' psi."""
        return rng.multinomial(n_trials, self.probabilities(rows.psi))

    def initial_parameters(self, shards, key):
        return self.prior.start(key.generator("start"))

    def initial_rows(self, law, shard, key):
        """Start from the likelihood alone, chains further apart than it leaves them; or on the line."""
        if law.noise is None:
            return Rows(self.prior.line(law.parameters, shard.data))
        centre, error = self.told_by_counts(shard)
        noise = key.normals("start", shard.rows, self.prior.k)
        return Rows(centre + DISPERSION * error * noise)

    def prepare(self, parameters):
        """Return the parameters, and the law of noise."""
        cov = self.prior.noise_cov(parameters)
        return Law(parameters, None if cov is None else Normal(np.zeros(len(cov)), cov))

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        """Covariance and scales | e, if any e has moved since they were drawn."""
        if self.prior.overdispersion is None or not statistics.n_moved:
            return parameters
        given = statistics.n_rows, statistics.outer
        return self.prior.redraw(parameters, -1, *given, key.generator("parameters"))

    def log_likelihood(self, statistics):
        return statistics.value

    def describe_rows(self, shard, rows):
        return {"probabilities": self.probabilities(rows.psi)}


def at(chance, turn):
    """Return what one turn needs of chance."""
    return Chance(*(part[turn] for part in chance))


def cut(n, size=ROWS_PER_BLOCK):
    """Return the slices of n rows, at fixed places."""
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]
