"""Hidden Markov models: the sweep is right, would be caught if not, and predictions are exact."""

from dataclasses import dataclass
from functools import partial

import numba
import numpy as np
import pytest
import scipy.sparse
from scipy import stats

import naive_hidden_markov as naive
from joint import Law, first_and_second, ranks, uniform_pvalues
from polystick.baselines.hidden_markov import HiddenMarkov, Parameters, Rows
from polystick.inference.execution import Threads
from polystick.inference.gibbs import Gibbs
from polystick.keys import Key
from polystick.models import sequence_blocks
from statistics_tools import MAX_Z

PLAIN = bool(numba.config.DISABLE_JIT)
needs_jit = pytest.mark.skipif(PLAIN, reason="thousands of sweeps need the compiler")
# no two states are alike, so that labels mean something
PRIORS = ([3.0, 1.0], [[4.0, 1.0], [1.5, 2.0]], [[3.0, 1.0, 0.5], [0.7, 1.0, 2.0]])
MODEL = HiddenMarkov(2, 3, *PRIORS)
COUNTED = [np.array([1, 0, 4]), np.array([2]), np.array([0, 3])]
SINGLE = [np.array([1, 0, 1, 1]), np.array([1]), np.array([0, 1])]


@pytest.fixture
def rng():
    return np.random.default_rng(1966)


# the sweep against the law


def sweep(model, totals, everything, i, rng):
    parameters, rows, counts = everything
    shards, key = model.shards(counts, size=3), Key(11, i)
    parts = [model.draw_rows(model.prepare(parameters), s, rows, key) for s in shards]
    total = [sum(part[1][field] for part in parts) for field in range(4)]
    parameters = model.draw_parameters(parameters, type(parts[0][1])(*total), key)
    rows = Rows(np.concatenate([part[0].states for part in parts]))
    return parameters, rows, model.simulate_counts(parameters, rows, totals, rng)


def summarise(everything):
    parameters, rows, counts = everything
    laws = [parameters.initial[0], parameters.transition[:, 0], parameters.emission[:, :2]]
    table = np.concatenate(counts)
    return first_and_second([*laws, rows.states[[0, 1, 2, -1]], table[[0, 2, -1], 0]])


def law_of(totals):
    return Law(lambda rng: MODEL.simulate(totals, rng), summarise)


LAWS = {"counts": (law_of(COUNTED), COUNTED), "tokens": (law_of(SINGLE), SINGLE)}


@needs_jit
@pytest.mark.parametrize("n_iter", [4000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", LAWS)
def test_geweke(name, n_iter, rng):
    law, totals = LAWS[name]
    z = law.z(partial(sweep, MODEL, totals), n_iter, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@dataclass(frozen=True)
class Backwards(HiddenMarkov):
    """Transitions go from the column to the row."""

    def prepare(self, parameters):
        prior = super().prepare(parameters)
        return prior._replace(transition=np.ascontiguousarray(prior.transition.T))


@dataclass(frozen=True)
class AnyStart(HiddenMarkov):
    """The first state may be any."""

    def prepare(self, parameters):
        return super().prepare(parameters)._replace(initial=np.full(2, 0.5))


@dataclass(frozen=True)
class NoFuture(HiddenMarkov):
    """Each state is drawn from its filter, whatever follows."""

    def draw_rows(self, prior, shard, rows, key):
        parts = [
            super(NoFuture, self).draw_rows(prior, cut_after(shard, t), rows, key)[0].states[-1]
            for t in range(shard.n_steps)
        ]
        states = np.array(parts, dtype=np.int32)
        return Rows(states), self._count(shard, states, 0.0)


def cut_after(shard, t):
    """Return the block of the one sequence that holds step t, without what follows."""
    i = np.searchsorted(shard.starts, t, side="right") - 1
    first = shard.starts[i]
    return shard._replace(
        rows=np.array([1000 + t], dtype=np.uint64),
        starts=np.array([0, t + 1 - first]),
        lookups=shard.lookups[first : t + 1],
        offsets=shard.offsets[first : t + 2],
    )


@dataclass(frozen=True)
class TwiceCounted(HiddenMarkov):
    """Everything counts twice."""

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        doubled = type(statistics)(*(2 * part for part in statistics))
        return super().draw_parameters(parameters, doubled, key)


@dataclass(frozen=True)
class OtherPrior(HiddenMarkov):
    """Transitions are drawn as if all of them were alike."""

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        alike = HiddenMarkov(2, 3, PRIORS[0], 2.0, PRIORS[2])
        return alike.draw_parameters(parameters, statistics, key)


@needs_jit
@pytest.mark.parametrize("wrong", [Backwards, AnyStart, NoFuture, OtherPrior])
def test_geweke_rejects_a_sabotaged_sweep(wrong, rng):
    law, totals = LAWS["tokens" if wrong is NoFuture else "counts"]
    assert law.worst_z(partial(sweep, wrong(2, 3, *PRIORS), totals), 5000, rng) > MAX_Z


# states that few data tell apart, so that no chain stays where labels are swapped
APART = ([3.0, 1.0], [[4.0, 2.0], [5.0, 1.0]], [[8.0, 2.0, 1.0], [1.0, 2.0, 8.0]])


def sbc(model, n_simulations, rng, n_draws=49):
    totals, found = [np.full(60, 2), np.full(60, 2), np.array([3, 0, 1])], []
    for seed in range(n_simulations):
        parameters, _, counts = HiddenMarkov(2, 3, *APART).simulate(totals, rng)
        gibbs = Gibbs(n_draws, n_burn=50, thin=5, n_chains=1)
        posterior = gibbs.run(model, model.shards(counts), seed=seed)
        pairs = [(parameters.initial[:1], posterior["initial"][0, :, :1])]
        pairs.append((parameters.transition[:, 0], posterior["transition"][0, :, :, 0]))
        pairs.append((parameters.emission[:, :2], posterior["emission"][0, :, :, :2]))
        found.append(np.concatenate([ranks(t, d).ravel() for t, d in pairs]))
    return uniform_pvalues(np.array(found), n_draws)


@pytest.mark.slow
@needs_jit
def test_sbc(rng):
    p = sbc(HiddenMarkov(2, 3, *APART), 300, rng)
    assert p.min() > 1e-4, p


@pytest.mark.slow
@needs_jit
def test_sbc_rejects_a_sabotaged_sweep(rng):
    """Not one that goes backwards: two states leave each other equally often, so it hardly matters."""
    p = sbc(TwiceCounted(2, 3, *APART), 300, rng)
    assert p.min() < 1e-4, p


# data


def test_kinds_of_sequences_are_one(rng):
    """Tokens, rows of counts and CSR: the same blocks, and the same bits."""
    tokens = [np.array([0, 2, -1, 1]), np.array([1]), np.array([2, 2])]
    rows = [np.where(t[:, None] >= 0, np.eye(3, dtype=int)[t], 0) for t in tokens]
    kinds = [tokens, rows, [scipy.sparse.csr_array(r) for r in rows]]
    blocks = [MODEL.shards(kind, size=4) for kind in kinds]
    for kind in blocks:
        assert [len(block.rows) for block in kind] == [1, 2]
        for block, expected in zip(kind, blocks[0]):
            for part, other in zip(block, expected):
                np.testing.assert_array_equal(part, other)
    np.testing.assert_array_equal(blocks[0][0].lookups, [0, 2, -1, 1])
    np.testing.assert_array_equal(blocks[0][1].rows, [1, 2])


def test_cells_of_a_sparse_row_may_repeat_or_be_empty():
    parts = (np.array([1, 2, 0, 4]), np.array([2, 2, 0, 1]), np.array([0, 2, 4]))
    (block,) = sequence_blocks.cut([scipy.sparse.csr_array(parts, shape=(2, 3))])
    np.testing.assert_array_equal(block.totals, [3, 4])
    np.testing.assert_array_equal(block.categories, [2, 1])
    np.testing.assert_array_equal(block.counts, [3, 4])


def test_tokens_and_their_counts_have_one_likelihood(rng):
    """A block of tokens that also holds one step of two counts goes the other way."""
    parameters, _, counts = MODEL.simulate(SINGLE, rng)
    prior, tokens = MODEL.prepare(parameters), MODEL.shards(counts)[0]
    mixed = MODEL.shards([*counts, np.array([[1, 1, 0]])])[0]
    assert tokens.is_single
    assert not mixed.is_single
    n = tokens.n_steps
    single, other = MODEL.filter(prior, tokens), MODEL.filter(prior, mixed)
    np.testing.assert_allclose(single.values, other.values[:n], atol=1e-12)
    np.testing.assert_allclose(single.predicted, other.predicted[:n], rtol=1e-12)


# chains


def test_log_likelihood_sums_over_paths(rng):
    parameters, rows, counts = MODEL.simulate(COUNTED, rng)
    (shard,) = MODEL.shards(counts)
    _, statistics = MODEL.draw_rows(MODEL.prepare(parameters), shard, rows, Key(1))
    expected = 0.0
    for sequence in counts:
        table = np.exp(stats.multinomial.logpmf(
            sequence[:, None], sequence.sum(axis=1)[:, None], parameters.emission
        ))  # fmt: skip
        _, weights = naive.joint(np.arange(len(sequence)), table, *parameters[:2])
        expected += np.log(weights.sum())
    assert MODEL.log_likelihood(statistics) == pytest.approx(expected)


def problem(rng, n_steps=400):
    """Return a sticky chain of three states that are easy to tell apart, and its tokens."""
    transition = np.full((3, 3), 0.05) + 0.85 * np.eye(3)
    emission = np.kron(np.eye(3), np.full(4, 0.22)) + 0.01
    truth = Parameters(np.ones(3) / 3, transition, emission / emission.sum(axis=1, keepdims=True))
    model, totals = HiddenMarkov(3, 12), [np.ones(n_steps, int)] * 4
    states = [model._simulate_states(truth, n_steps, rng) for _ in totals]
    rows = Rows(np.concatenate(states))
    return model, truth, rows, model.simulate_counts(truth, rows, totals, rng)


@needs_jit
def test_known_states_are_found_by_all_chains(rng):
    model, _, rows, counts = problem(rng, 400)
    posterior = Gibbs(20, 300, n_chains=3).run(model, model.shards(counts), seed=3)
    assert np.ptp(posterior["emission"].mean(axis=1), axis=0).max() < 0.1  # common labels
    occupancy = posterior.running("occupancy")[0]
    np.testing.assert_allclose(occupancy.sum(axis=1), 1.0)
    table = np.zeros((3, 3))
    np.add.at(table, rows.states, occupancy)
    assert table.max(axis=1).sum() / len(rows.states) > 0.9


def test_bits_depend_neither_on_threads_nor_on_other_chains(rng):
    model, _, _, counts = problem(rng, 30)
    names = ("initial", "transition", "emission", "occupancy")
    runs = []
    for n_chains, threads in ((1, None), (3, None), (3, Threads(2))):
        settings = Gibbs(3, 0, n_chains=n_chains, keep=("occupancy",))
        shards = model.shards(counts, size=40)
        assert len(shards) == 3
        runs.append(settings.run(model, shards, seed=5, execution=threads))
    for name in names:
        np.testing.assert_array_equal(runs[0][name][0], runs[1][name][0])
        np.testing.assert_array_equal(runs[1][name], runs[2][name])
    assert (runs[1]["emission"][0] != runs[1]["emission"][1]).all()


def test_draws_do_not_depend_on_the_blocks(rng):
    model, _, _, counts = problem(rng, 30)
    runs = [
        Gibbs(3, 0, n_chains=1).run(model, model.shards(counts, size=size), seed=5)
        for size in (1, 1000)
    ]
    np.testing.assert_array_equal(runs[0]["emission"], runs[1]["emission"])


def test_a_run_goes_on_from_its_checkpoint(rng, tmp_path):
    model, _, _, counts = problem(rng, 30)
    shards = model.shards(counts)
    whole = Gibbs(4, 3, n_chains=2).run(model, shards, seed=5)
    Gibbs(2, 3, n_chains=2).run(model, shards, seed=5, checkpoint=tmp_path)
    resumed = Gibbs(4, 3, n_chains=2).run(model, shards, seed=5, checkpoint=tmp_path, resume=True)
    for name in ("initial", "transition", "emission"):
        np.testing.assert_array_equal(whole[name], resumed[name])


def test_tiny_concentrations_run(rng):
    """Most probabilities are 0 in double precision."""
    model = HiddenMarkov(4, 50, 0.01, 0.01, 1e-3)
    tokens = [rng.integers(-1, 50, 60), np.zeros(0, int)]
    posterior = Gibbs(5, 5, n_chains=1).run(model, model.shards(tokens), seed=0)
    assert np.isfinite(posterior.log_likelihood).all()


# predictions


def test_prediction_of_the_next_tokens_is_exact(rng):
    """Against the sum over all paths, with and without the last tokens."""
    model = HiddenMarkov(3, 4)
    parameters, _, counts = model.simulate([np.array([1, 1, 0, 1, 1, 1])], rng)
    prior = model.prepare(parameters)
    filtered = model.filter(prior, model.shards(counts)[0])
    lookups = np.where(counts[0].sum(axis=1) > 0, counts[0].argmax(axis=1), -1)
    given = (np.ascontiguousarray(parameters.emission.T), parameters.initial, parameters.transition)
    long, short = (np.log(naive.joint(x, *given)[1].sum()) for x in (lookups, lookups[:4]))
    assert filtered.values[4:].sum() == pytest.approx(long - short)
    ahead = model.probabilities(prior, filtered.predicted)
    for category in range(4):
        weights = naive.joint([*lookups[:4], category], *given)[1]
        assert ahead[4, category] == pytest.approx(weights.sum() / np.exp(short))
    far = model.forecast(prior, filtered.after, 3)
    weights = [naive.joint([*lookups, -1, -1, category], *given)[1].sum() for category in range(4)]
    np.testing.assert_allclose(far[0, 2], np.array(weights) / np.exp(long))
    assert far.shape == (1, 3, 4)
