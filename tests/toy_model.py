"""The smallest model that the schedules can run, with a posterior known in closed form::

theta ~ N(0, 1)
z_i   ~ N(theta, 1)
x_i   ~ N(z_i, 1)

"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

BLOCK = 4


class Parameters(NamedTuple):
    theta: np.ndarray  # (1,)


class Rows(NamedTuple):
    z: np.ndarray  # (n,)


class RowFactors(NamedTuple):
    mean: np.ndarray  # (n,)


class Statistics(NamedTuple):
    n_rows: int
    total: float
    value: float


class Shard(NamedTuple):
    rows: np.ndarray
    x: np.ndarray


@dataclass(frozen=True)
class Factor:
    mean: float = 0.0
    variance: float = 1.0


@dataclass(frozen=True)
class Toy:
    noise: float = 1.0
    poison: int = -1  # the row that becomes NaN, for tests of what happens then

    parameter_type: ClassVar = Parameters
    dims: ClassVar = {"theta": ("one",), "level": ("row",)}

    def shards(self, x, ids=None):
        ids = np.arange(len(x), dtype=np.uint64) if ids is None else ids
        return [Shard(ids[i : i + BLOCK], x[i : i + BLOCK]) for i in range(0, len(x), BLOCK)]

    def initial_parameters(self, shards, key):
        return Parameters(key.generator("start").standard_normal(1))

    def prepare(self, parameters):
        return parameters.theta

    def initial_rows(self, prior, shard, key):
        return Rows(shard.x.copy())

    def draw_rows(self, prior, shard, rows, key):
        e = key.normals("z", shard.rows, 1)[:, 0]
        z = (prior[0] + shard.x) / 2 + self.noise * e * np.sqrt(0.5)
        if key.sweep == 3:
            z = np.where(shard.rows == self.poison, np.nan, z)
        return Rows(z), Statistics(len(z), z.sum(), -0.5 * np.square(shard.x - z).sum())

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        n = statistics.n_rows + 1
        e = key.generator("theta").standard_normal(1)
        return Parameters(statistics.total / n + e / np.sqrt(n))

    def log_likelihood(self, statistics):
        return statistics.value

    def describe_rows(self, shard, rows):
        return {"level": rows.z, "square": rows.z**2}

    def initial_factor(self, shards, key):
        return Factor()

    def expect(self, factor):
        return factor

    def initial_row_factors(self, prior, shard):
        return RowFactors(np.zeros(len(shard.x)))

    def update_rows(self, prior, shard, rows, key):
        mean = (prior.mean + shard.x) / 2
        value = -0.5 * (np.square(shard.x - mean) + np.square(mean - prior.mean) + prior.variance)
        return RowFactors(mean), Statistics(len(mean), mean.sum(), value.sum())

    def update_factor(self, factor, statistics):
        n = statistics.n_rows + 1
        return Factor(statistics.total / n, 1 / n)

    def scale(self, statistics, by):
        return Statistics(*(by * part for part in statistics))

    def blend(self, factor, other, rate):
        precision = (1 - rate) / factor.variance + rate / other.variance
        linear = (1 - rate) * factor.mean / factor.variance + rate * other.mean / other.variance
        return Factor(linear / precision, 1 / precision)

    def elbo(self, factor, statistics):
        prior = -0.5 * (factor.mean**2 + factor.variance - np.log(factor.variance))
        return statistics.value + prior

    def draw_from_factor(self, factor, key):
        e = key.generator("factor").standard_normal(1)
        return Parameters(factor.mean + np.sqrt(factor.variance) * e)

    def draw_described_rows(self, prior, shard, rows, n_draws=64):
        e = np.linspace(-2, 2, n_draws)[:, None]
        return {"level": rows.mean + e * np.sqrt(0.5)}


@dataclass(frozen=True)
class NestedFactor:
    law: Factor
    n_rows: float


class NestedToy(Toy):
    """The same model with a factor in two parts, one of which is a law."""

    def initial_factor(self, shards, key):
        return NestedFactor(super().initial_factor(shards, key), 0.0)

    def expect(self, factor):
        return super().expect(factor.law)

    def update_factor(self, factor, statistics):
        law = super().update_factor(factor.law, statistics)
        return NestedFactor(law, statistics.n_rows)

    def blend(self, factor, other, rate):
        n_rows = (1 - rate) * factor.n_rows + rate * other.n_rows
        return NestedFactor(super().blend(factor.law, other.law, rate), n_rows)

    def elbo(self, factor, statistics):
        return super().elbo(factor.law, statistics)

    def draw_from_factor(self, factor, key):
        return super().draw_from_factor(factor.law, key)


def exact_posterior(x):
    """Return mean and variance of theta: x_i ~ N(theta, 2)."""
    precision = 1 + len(x) / 2
    return x.sum() / 2 / precision, 1 / precision
