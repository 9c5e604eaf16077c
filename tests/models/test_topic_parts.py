"""Parts of topic models go together, whoever wrote them, and a mean field is there where all have one."""

import inspect
import pickle
from functools import partial

import numpy as np
import pytest

from dated_tools import N_SLICES, SLICES, WALKING
from joint import Law, first_and_second, one_sweep
from polystick.baselines.logistic_normal import ModalWords
from polystick.conjugate import InverseWishart, NormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.inference.execution import Threads
from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from polystick.inference.protocols import members
from polystick.inference.stochastic import StochasticVI
from polystick.keys import Key
from polystick.models import tree_words
from polystick.models.regressed_shares import RegressedShares
from polystick.models.seeded_words import Seed, SeededWords
from polystick.models.softmax_link import Softmax
from polystick.models.topic_factors import assemble
from polystick.models.topic_parts import (
    FactoredLink,
    FactoredShares,
    FactoredWords,
    Shares,
    Words,
)
from polystick.models.topic_shares import NormalShares, Sticks
from polystick.models.topic_words import DirichletWords
from polystick.models.tree_words import TreeWords
from polystick.models.walking_shares import WalkingShares
from polystick.models.walking_words import WalkingWords
from polystick.population import LearnedScale
from statistics_tools import MAX_Z
from topic_tools import JIT, PRIOR, needs_jit

TREE = Decomposition.from_tuples((((0, 1), (2, 3)), 4))
STICKS = Sticks(Decomposition.sticks([0, 1, 2]))
DIRICHLET, BRANCHES = DirichletWords(5, 1.0), TreeWords(TREE, 1.0)
THREE = NormalInverseWishart([0.3, -0.4, 0.1], 2.0, 4.0 * np.eye(3) + 1.0, 12.0)
STEPS = InverseWishart(np.eye(3) + 0.5, 10.0)
SCALED = LearnedScale(np.array([0.3, -0.4]), 0.7, nu=4.0)
TOTALS = np.array([0, 0, 4, 8, 1, 12, 8, 12])
COVARIATES = np.column_stack([np.linspace(-1.5, 1.5, 8), np.where(SLICES == 0, 1.0, -1.0)])
GIVEN = {"slices": SLICES, "covariates": COVARIATES}


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


@pytest.fixture(autouse=True)
def mild(monkeypatch):
    """Let nodes be near 0: under the weak prior a chain without much data goes round slowly."""
    for name, value in {"STRENGTH": 1.0, "DEGREES": 8.0, "SCALE": 1.0}.items():
        monkeypatch.setattr(tree_words, name, value)


REGRESSED = RegressedShares(SCALED, np.array([0, 1]), np.cov(COVARIATES, rowvar=False))

# each combination, and a part of it gone wrong


class NextTopics(TreeWords):
    """Tokens of a topic are those of the next."""

    def draw(self, parameters, counts, key, ordered_map):
        return super().draw(parameters, np.roll(counts, 1, axis=1), key, ordered_map)


class Unmoved(WalkingShares):
    """Documents scatter about the first level."""

    def rows(self, walk, given):
        return super().rows(walk, {"slices": 0 * given["slices"]})


class Doubled(NormalShares):
    """Documents count twice."""

    def statistics(self, psi, given):
        return super().statistics(psi, given).scaled(2)


class Reversed(RegressedShares):
    """Covariates are those of other documents."""

    def statistics(self, psi, given):
        return super().statistics(psi, {"covariates": given["covariates"][::-1]})


WRONG = Reversed(SCALED, REGRESSED.terms, REGRESSED.covariates_cov)


WALKING_TOPICS = WalkingShares(N_SLICES, THREE, STEPS)
COMBINATIONS = {
    "a tree, walking": ((BRANCHES, WALKING, STICKS), (NextTopics(TREE, 1.0), WALKING, STICKS)),
    "softmax, walking": (
        (DIRICHLET, WALKING_TOPICS, Softmax(3)),
        (DIRICHLET, Unmoved(N_SLICES, THREE, STEPS), Softmax(3)),
    ),
    "learned scale": (
        (DIRICHLET, NormalShares(SCALED), STICKS),
        (DIRICHLET, Doubled(SCALED), STICKS),
    ),
    "regression": ((DIRICHLET, REGRESSED, STICKS), (DIRICHLET, WRONG, STICKS)),
}
over_combinations = pytest.mark.parametrize("name", COMBINATIONS)


def summarise(everything):
    """Use bounded or light-tailed functions of all that any law has."""
    p, (psi, _), counts = everything
    law = [np.tanh(np.ravel(p[0]) / 2), np.log(np.diag(p.cov))]
    words = p.topics[:, :3] / p.sizes
    tokens = counts[[3, 5, 6, 7], :2] / TOTALS[[3, 5, 6, 7], None]
    rows = np.tanh(psi / 3)
    moments = [rows.mean(axis=0), np.square(rows).mean(axis=0), rows[SLICES == 2, 0]]
    return first_and_second([*law, words[:2].ravel(), tokens.mean(axis=0), *moments])


LAWS = {
    name: Law(partial(assemble(*right).simulate, TOTALS, **GIVEN), summarise)
    for name, (right, _) in COMBINATIONS.items()
}


def sweep_only(model, everything, i, rng):
    parameters, rows, counts = everything
    (shard,) = model.shards(counts, **GIVEN)
    return *one_sweep(model, parameters, rows, shard, i), counts


@needs_jit
@pytest.mark.parametrize("times", [1, pytest.param(12, marks=pytest.mark.slow)])
@over_combinations
def test_sweeps_keep_the_law(name, times, rng):
    model = assemble(*COMBINATIONS[name][0])
    z = LAWS[name].drift_z(partial(sweep_only, model), 400 * times, 4, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@needs_jit
@over_combinations
def test_wrong_sweeps_are_caught(name, rng):
    model = assemble(*COMBINATIONS[name][1])
    z = LAWS[name].drift_z(partial(sweep_only, model), 400, 4, rng)
    assert np.abs(z).max() > MAX_Z, np.abs(z).max()


# any combination runs, in the same bits on any number of threads

SHORT = Gibbs(3, 4, n_chains=2) if JIT else Gibbs(1, 1, n_chains=1)


@over_combinations
def test_threads_leave_the_bits(name, rng):
    model = assemble(*COMBINATIONS[name][0])
    counts = rng.poisson(1.0, (8, 5))
    shards = model.shards(counts, 2, **GIVEN)
    assert len(shards) == 4
    one, two = (SHORT.run(model, shards, seed=3, execution=e) for e in (None, Threads(2)))
    for told in (*model.shares.told, "topics", "share"):
        np.testing.assert_array_equal(one[told], two[told])
        assert np.isfinite(one[told]).all()


@over_combinations
def test_new_documents_are_folded_in(name, rng):
    model = assemble(*COMBINATIONS[name][0])
    parameters, _, counts = model.simulate(TOTALS, rng, **GIVEN)
    described = model.describe_parameters(parameters)
    prior = model.fold_prior({told: described[told] for told in model.fold_names})
    (shard,) = model.shards(counts, **GIVEN)
    rows = model.fold(prior, shard, model.prior_rows(prior, shard, Key(1)), Key(2))
    np.testing.assert_allclose(model.proportions_of(rows).sum(axis=1), 1.0)
    again = model.log_population({told: described[told] for told in model.shares.told})
    np.testing.assert_allclose(np.exp(again).sum(axis=1), 1.0)


# a mean field where all parts have one

METHODS = (
    "initial_factor", "expect", "initial_row_factors", "update_rows", "update_factor", "elbo",
    "scale", "blend", "draw_from_factor", "draw_described_rows",
)  # fmt: skip


SEEDED = SeededWords(DIRICHLET, 3, (Seed(0, 1, 5.0),))
FACTORED = [
    (FactoredWords, DIRICHLET),
    (FactoredWords, SEEDED),
    (FactoredShares, NormalShares(PRIOR)),
    (FactoredLink, STICKS),
    (FactoredLink, Softmax(3)),
]
PLAIN = [
    (Words, BRANCHES),
    (Words, WalkingWords(TREE, N_SLICES, 1.0)),
    (Shares, WALKING),
    (Shares, REGRESSED),
]


@pytest.mark.parametrize(("protocol", "part"), [*FACTORED, *PLAIN])
def test_parts_have_what_is_asked_of_them(protocol, part):
    """Names and arguments: a type checker sees the names only, for models are not annotated."""
    assert {"fields", "draw"} & set(members(protocol))
    for name, arguments in members(protocol).items():
        held = getattr(part, name)
        if arguments is not None:
            given = list(inspect.signature(held).parameters.values())
            assert tuple(each.name for each in given[: len(arguments)]) == tuple(arguments), name
            assert all(each.default is not each.empty for each in given[len(arguments) :])


@pytest.mark.parametrize("words", [DIRICHLET, SEEDED, ModalWords(1.0)])
def test_expected_topics_can_be_pickled(words):
    """So that blocks may be on another machine."""
    factor, few = 1.0 + np.arange(15.0).reshape(5, 3), np.array([3, 0])
    expected = words.expect(factor)
    again = pickle.loads(pickle.dumps(expected))
    np.testing.assert_array_equal(again(few), expected(few))
    assert again(few).shape == (2, 3)


@pytest.mark.parametrize("words", [DIRICHLET, BRANCHES, WalkingWords(TREE, N_SLICES, 1.0)])
@pytest.mark.parametrize("shares", [NormalShares(PRIOR), WALKING, REGRESSED])
def test_a_mean_field_is_there_where_all_parts_have_one(words, shares):
    model = assemble(words, shares, STICKS)
    has = words is DIRICHLET and isinstance(shares, NormalShares)
    assert [hasattr(model, method) for method in METHODS] == [has] * len(METHODS)


@pytest.mark.parametrize("inference", [MeanField(1e-4, 300, 40), StochasticVI(4, n_draws=40)])
def test_a_learned_scale_has_a_mean_field(inference, rng):
    model = assemble(DIRICHLET, NormalShares(SCALED), STICKS)
    counts = rng.multinomial(20, rng.dirichlet(np.ones(5), 30 if JIT else 8))
    posterior = inference.run(model, model.shards(counts), seed=1)
    bound = posterior.tree["optimisation"]["elbo"].values
    if isinstance(inference, MeanField):
        assert (np.diff(bound) > -1e-9 * np.abs(bound[1:])).all()
    np.testing.assert_allclose(posterior.flat("topics").sum(axis=2), 1.0, rtol=1e-5)
    assert posterior["cov"].shape[2:] == (2, 2)
