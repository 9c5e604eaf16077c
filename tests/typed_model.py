"""A stranger's model with types: `make check` holds its methods against each other by the protocols.

A mistake is marked as one; mypy complains where it does not see it.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from polystick.modelling import (
    Block,
    Decomposition,
    Gibbs,
    Key,
    MeanField,
    Normal,
    NormalInverseWishart,
    NormalParameters,
    OrderedMap,
    Posterior,
    cut_rows,
    draw_potential,
    log_likelihood,
)

Array = npt.NDArray[np.float64]


class Rows(NamedTuple):
    psi: Array


class Statistics(NamedTuple):
    n: int
    total: Array
    outer: Array
    value: float


class Other(NamedTuple):
    n: int


@dataclass(frozen=True, eq=False)
class TypedRows:
    """Correlated rows of counts."""

    prior: NormalInverseWishart
    decomposition: Decomposition

    parameter_type: ClassVar[type[NormalParameters]] = NormalParameters
    dims: ClassVar[dict[str, tuple[str, ...]]] = {"mean": ("stick",), "psi": ("row", "stick")}

    def initial_parameters(self, shards: object, key: Key) -> NormalParameters:
        return self.prior.draw(key.generator("start"))

    def prepare(self, parameters: NormalParameters) -> Normal:
        return Normal(*parameters)

    def initial_rows(self, prior: Normal, shard: Block, key: Key) -> Rows:
        return Rows(np.zeros(shard.splits.trials.shape))

    def draw_rows(
        self, prior: Normal, shard: Block, rows: Rows, key: Key
    ) -> tuple[Rows, Statistics]:
        potential = draw_potential(shard.splits, rows.psi, key.at("omega"), shard.rows)
        psi = prior.draw(potential, key.normals("psi", shard.rows, 2 * rows.psi.shape[1]))
        value = shard.log_coefficient + float(log_likelihood(shard.splits, psi).sum())
        return Rows(psi), Statistics(len(psi), psi.sum(axis=0), psi.T @ psi, value)

    def draw_parameters(
        self,
        parameters: NormalParameters,
        statistics: Statistics,
        key: Key,
        ordered_map: OrderedMap = map,
    ) -> NormalParameters:
        n, total, outer, _ = statistics
        return self.prior.posterior(n, total, outer).draw(key.generator("parameters"))

    def log_likelihood(self, statistics: Statistics) -> float:
        return statistics.value

    def describe_rows(self, shard: Block, rows: Rows) -> dict[str, Array]:
        return {"psi": rows.psi}


class WrongRows(TypedRows):
    """Its global step wants other statistics than its local step gives."""

    def draw_parameters(
        self,
        parameters: NormalParameters,
        statistics: Other,
        key: Key,
        ordered_map: OrderedMap = map,
    ) -> NormalParameters:
        return parameters


def run(counts: Array, tree: Decomposition) -> Posterior:
    """Run it by Gibbs sampling."""
    prior = NormalInverseWishart.weak(np.zeros(tree.n_categories - 1), 1.0)
    model, shards = TypedRows(prior, tree), cut_rows(tree, counts)
    return Gibbs(20, 10, n_chains=2).run(model, shards, seed=0)


def run_wrongly(counts: Array, tree: Decomposition) -> None:
    """Run what a type checker refuses."""
    model = WrongRows(NormalInverseWishart.weak(np.zeros(2), 1.0), tree)
    shards = cut_rows(tree, counts)
    Gibbs(2, 0).run(model, shards, seed=0)  # type: ignore[misc]
    MeanField().run(model, shards, seed=0)  # type: ignore[arg-type]
    Gibbs(2, 0).run(TypedRows(model.prior, tree), [Other(1)], seed=0)  # type: ignore[misc]
