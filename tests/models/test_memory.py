"""Memory of tokens, and biases whose scale is learned: features, the law, sweeps, and wrong ones."""

import itertools
from dataclasses import dataclass

import numba
import numpy as np
import pytest

import naive_memory
from dynamics_tools import make_model, resample
from joint import Law, first_and_second, ranks, uniform_pvalues
from polystick import Gibbs, MultinomialLDS
from polystick.decomposition import Decomposition
from polystick.models.dynamics import MultinomialDynamics
from polystick.models.frequencies import smoothed
from polystick.models.memory import Memory
from statistics_tools import MAX_Z, standard_error

PLAIN = bool(numba.config.DISABLE_JIT)
needs_jit = pytest.mark.skipif(PLAIN, reason="thousands of sweeps need the compiler")
TREE = Decomposition.sticks(range(3))
LENGTHS = [np.array([1, 1, 0, 1, 1, 1]), np.ones(9, np.int64)]
MEMORY = {"memory": Memory(TREE, np.array([3.0, 2.0, 1.0]), (1.0, 5.0), 2)}
SCALE = {"learns_bias_scale": True}
BOTH = MEMORY | SCALE  # under which chains mix slowly: a bias may be large for long


@pytest.fixture
def rng():
    return np.random.default_rng(1951)


# features


@pytest.mark.parametrize("tree", [Decomposition.balanced(7), Decomposition.sticks(range(7))])
@pytest.mark.parametrize(("half_lives", "order"), [((3.0, 20.0), 2), ((), 1), ((4.0,), 0)])
def test_kernel_and_history_agree(tree, half_lives, order, rng):
    memory = Memory(tree, rng.random(7) + 0.1, half_lives, order)
    tokens = rng.integers(0, 3, 70) + 2 * rng.integers(0, 3, 70)
    tokens[[10, 40, 41]] = -1
    starts, weights = np.array([0, 25, 25, 70]), rng.standard_normal(memory.size)
    features, paths, at = memory.features(tokens, starts), tree.paths(), 0
    levels = np.concatenate([found for _, found in memory.levels(tokens, starts, weights)])
    for a, b in ((0, 25), (25, 70)):
        for t in range(a, b):
            wanted = naive_memory.after(memory, tokens[a:t])
            np.testing.assert_allclose(levels[t], wanted @ weights, atol=1e-12)
            if tokens[t] >= 0:
                nodes = paths.nodes[paths.starts[tokens[t]] : paths.starts[tokens[t] + 1]]
                here = features[at : at + len(nodes)]
                np.testing.assert_allclose(here, wanted[nodes], atol=1e-12)
                at += len(nodes)
    assert at == len(features)


@pytest.mark.parametrize(("half_lives", "order"), [((3.0, 20.0), 2), ((), 1), ((4.0,), 0)])
@pytest.mark.parametrize("cuts", [[0, 70], [0, 1, 1, 40, 41, 43, 70], range(71)], ids=len)
def test_what_is_kept_is_all_of_a_history(half_lives, order, cuts, rng):
    """In whatever pieces it comes; and of one past there may be several futures."""
    memory = Memory(Decomposition.balanced(7), rng.random(7) + 0.1, half_lives, order)
    tokens = rng.integers(0, 3, 70) + 2 * rng.integers(0, 3, 70)
    tokens[[10, 40, 41]] = -1
    kept, pasts = memory.nothing, []
    for a, b in itertools.pairwise(cuts):
        pasts.append(kept)
        kept = memory.then(kept, tokens[a:b])
        memory.then(kept, rng.integers(0, 7, 9))
        wanted = naive_memory.after(memory, tokens[:b])
        np.testing.assert_allclose(memory.after(kept), wanted, atol=1e-12)
    for a, past in zip(cuts, pasts):
        wanted = naive_memory.after(memory, tokens[:a])
        np.testing.assert_allclose(memory.after(past), wanted, atol=1e-12)
    assert len(kept.runs) <= 1 + np.log2(70)


def test_a_stream_of_tokens_is_kept_in_few_runs(rng):
    memory = Memory(Decomposition.balanced(50), np.ones(50), (9.0,), 2)
    kept = memory.nothing
    for token in rng.integers(0, 50, 1000):
        kept = memory.then(kept, np.array([token]))
    sizes = [len(run[1].tokens) for run in kept.runs]
    assert len(sizes) <= 10
    assert sizes == sorted(sizes, reverse=True)
    assert sum(run[0].counts.sum() for run in kept.runs) == 999


def test_long_caches_do_not_overflow(rng):
    memory = Memory(Decomposition.balanced(3), np.ones(3), (0.5,), 0)
    tokens = rng.integers(0, 3, 400)  # 2^800 without a new scale
    (found,) = memory.levels(tokens, np.array([0, 400]), np.ones(1))
    np.testing.assert_allclose(found[1][-1], naive_memory.after(memory, tokens[:-1])[:, 0])


def test_one_weight_alone_is_a_mixture_with_the_unigram(rng):
    tree, u = Decomposition.balanced(6), rng.dirichlet(np.ones(6))
    tokens = rng.integers(0, 6, 200)
    memory = Memory(tree, u, (30.0,), 1)
    found = naive_memory.after(memory, tokens)
    cached, bigram = (tree.probabilities(tree.psi(u) + f) for f in found.T)
    ages = np.arange(len(tokens), 0, -1)
    counts = np.bincount(tokens, 0.5 ** (ages / 30.0), minlength=6)
    np.testing.assert_allclose(cached, (counts + 90.0 * u) / (counts.sum() + 90.0))
    followers = np.bincount(tokens[1:][tokens[:-1] == tokens[-1]], minlength=6)
    kept = np.maximum(followers - 0.75, 0.0)
    rest = 0.75 * (followers > 0).sum()
    np.testing.assert_allclose(bigram, (kept + rest * u) / followers.sum())


def test_weights_have_the_law_of_their_exponent(rng):
    """Against sums over a grid of a cache's weight and a context's, for each of two caches."""
    memory = Memory(TREE, np.ones(3), (1.0, 5.0), 1)
    root = rng.standard_normal((3, 3))
    linear, precision = np.array([1.0, 0.4, -0.8]), root @ root.T
    grid = np.linspace(0.0, 8.0, 801) + 0.005
    means, masses = np.zeros((2, 2)), np.zeros(2)
    for cache in range(2):
        at = np.array([cache, 2])
        w = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
        J = precision[np.ix_(at, at)] + np.eye(2)
        mass = np.exp(w @ linear[at] - 0.5 * np.einsum("abi,ij,abj->ab", w, J, w))
        masses[cache], means[cache] = mass.sum(), np.einsum("ab,abi->i", mass, w)
    expected = np.concatenate([np.array([means[0, 0], means[1, 0], means[:, 1].sum()]), masses[:1]])
    weights, found = memory.first_weights, []
    for _ in range(8000):
        weights = memory.draw_weights(weights, linear, precision, rng)
        found.append([*weights, weights[0] > 0])
    assert np.min(found) >= 0
    found = np.array(found, dtype=float)
    z = (found.mean(axis=0) - expected / masses.sum()) / standard_error(found)
    assert np.abs(z).max() < MAX_Z, z


# the sweep


def make(kind=MultinomialDynamics, more=BOTH):
    return make_model(1, 2, kind, tree=TREE, **more)


def summarise(everything):
    parameters, rows, counts = everything
    table = np.concatenate(counts)
    weights, z = parameters.memory_weights, rows.states
    scale = np.log(parameters.bias_scale)
    biases = np.tanh(parameters.emission[:, 1])  # bounded: their tails are Cauchy
    moves = parameters.emission[:, 0] * z[3, 0]
    return first_and_second(
        [weights, weights[:2] != 0, scale, biases, moves, table[[1, 5, 9, -1], 0]]
    )


def law(more):
    return Law(lambda rng: make(more=more).simulate(LENGTHS, rng), summarise)


LAWS = {"memory": law(MEMORY), "scale": law(SCALE), "both": law(BOTH)}


@needs_jit
@pytest.mark.parametrize(
    ("name", "more", "n_iter"),
    [
        ("memory", MEMORY, 600),
        ("scale", SCALE, 1000),
        pytest.param("both", BOTH, 30_000, marks=pytest.mark.slow),
    ],
)
def test_geweke(name, more, n_iter, rng):
    z = LAWS[name].z(resample(make(more=more), LENGTHS), n_iter, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@dataclass(frozen=True)
class MemoryAlone(MultinomialDynamics):
    """The weights are drawn as if psi were memory's alone."""

    def draw_weights(self, weights, sums, emission, rng):
        return super().draw_weights(weights, sums, 0.0 * emission, rng)


@dataclass(frozen=True)
class Forgotten(MultinomialDynamics):
    """The emission is drawn as if there were no memory."""

    def emission_sums(self, prior, shard, states, potential):
        offsets = shard.recalled @ prior.memory_weights
        whole = potential._replace(kappa=potential.kappa + potential.omega * offsets)
        return super().emission_sums(prior, shard, states, whole)


@dataclass(frozen=True)
class StuckCache(MultinomialDynamics):
    """The first cache is always the one."""

    def draw_weights(self, weights, sums, emission, rng):
        narrow = Memory(TREE, self.memory.frequencies, self.memory.half_lives[:1], 2)
        at = np.array([0, 2, 3])
        linear, precision = sums.given(emission)[at], sums.precision[np.ix_(at, at)]
        found = narrow.draw_weights(weights[at], linear, precision, rng)
        return np.insert(found, 1, 0.0)


@dataclass(frozen=True)
class BoldBiases(MultinomialDynamics):
    """The biases' scale is drawn from twice their distance."""

    def draw_bias_scale(self, emission, bias_scale, rng):
        away = self._centre + 2.0 * (emission - self._centre)
        return super().draw_bias_scale(away, bias_scale, rng)


@needs_jit
@pytest.mark.parametrize(
    ("wrong", "name", "more"),
    [
        pytest.param(MemoryAlone, "memory", MEMORY, marks=pytest.mark.slow),
        pytest.param(Forgotten, "memory", MEMORY, marks=pytest.mark.slow),
        (StuckCache, "memory", MEMORY),
        (BoldBiases, "scale", SCALE),
    ],
)
def test_geweke_rejects_a_sabotaged_sweep(wrong, name, more, rng):
    assert LAWS[name].worst_z(resample(make(wrong, more), LENGTHS), 4000, rng) > MAX_Z


def sbc(model, n_simulations, rng, n_draws=19):
    """Ranks of the weights, of the biases and their scale, and of what states do."""
    totals, law, found = [np.ones(60, np.int64), np.ones(25, np.int64)], make(), []
    for seed in range(n_simulations):
        parameters, rows, counts = law.simulate(totals, rng)
        gibbs = Gibbs(n_draws, n_burn=100, thin=40, n_chains=1, keep=("states",))
        posterior = gibbs.run(model, model.shards(counts), seed=seed)
        described = law.describe_parameters(parameters)
        weights, drawn = described["memory_weights"], posterior["memory_weights"][0]
        pairs = [
            (weights[:2].sum(), drawn[:, :2].sum(axis=1)),  # of the caches one counts
            (weights[2:], drawn[:, 2:]),
            *((described[name], posterior[name][0]) for name in ("bias_scale", "emission_bias")),
            (
                described["emission"][:, 0] * rows.states[5, 0],
                posterior["emission"][0, :, :, 0] * posterior["states"][0, :, 5],
            ),
        ]
        found.append(np.concatenate([ranks(t, d).ravel() for t, d in pairs]))
    return uniform_pvalues(np.array(found), n_draws)


@pytest.mark.slow
@needs_jit
def test_sbc(rng):
    p = sbc(make(), 120, rng)
    assert p.min() > 1e-4, p


@pytest.mark.slow
@needs_jit
def test_sbc_rejects_a_sabotaged_sweep(rng):
    p = sbc(make(Forgotten), 40, rng)
    assert p.min() < 1e-4, p


# frequencies


@needs_jit
def test_without_dynamics_the_model_is_a_smoothed_unigram(rng):
    """By default, on tokens without any order: what the biases say of seen and of unseen categories."""
    pi = rng.dirichlet(np.full(100, 0.3))
    tokens = rng.choice(100, 1000, p=pi)
    run = {"inference": Gibbs(60, 60, n_chains=1), "random_state": 0, "n_jobs": 1}
    model = MultinomialLDS(1, n_categories=100, memory=None, **run).fit(tokens)
    found = model.decomposition_.probabilities(model.posterior_.flat("emission_bias")).mean(axis=0)
    counts = np.bincount(tokens, minlength=100)
    added = np.geomspace(1e-3, 10, 60)
    best = max(
        ((counts + a) / (1000 + 100 * a) for a in added), key=lambda unigram: pi @ np.log(unigram)
    )
    assert abs(pi @ np.log(found / best)) < 0.005
    levels = smoothed(np.stack([np.bincount(part, minlength=100) for part in np.split(tokens, 10)]))
    gap, is_seen = np.log(found / levels), counts > 0
    assert abs(np.average(gap[is_seen], weights=pi[is_seen])) < 0.005
    assert abs(np.average(gap[~is_seen], weights=pi[~is_seen])) * pi[~is_seen].sum() < 0.005


def unigrams(counts):
    """Return what a number added to each count (K,) makes of them, for many numbers."""
    added = np.geomspace(1e-3, 10, 60)[:, None]
    return (counts + added) / (counts.sum() + added * len(counts))


@pytest.mark.parametrize(
    ("law", "gain"), [("dirichlet", -0.005), ("zipf", 0.01)], ids=["dirichlet", "zipf"]
)
def test_frequencies_foretell_what_comes_later(law, gain, rng):
    """As well as the best number that may be added to counts; where few are frequent, better."""
    zipf = 1.0 / np.arange(1, 1001) ** 1.1
    pi = zipf / zipf.sum() if law == "zipf" else rng.dirichlet(np.full(300, 0.3))
    stretches = rng.multinomial(400, pi, size=10)
    counts, found = stretches.sum(axis=0), smoothed(stretches)
    assert pi @ np.log(found) > (np.log(unigrams(counts)) @ pi).max() + gain
    if law == "zipf":
        is_new = counts == 0
        assert 0.85 < found[is_new].sum() / pi[is_new].sum() < 1.15


def test_what_comes_in_bursts_is_foretold_by_other_stretches(rng):
    """Each token is there four times in a row, so that none is foretold badly by all others."""
    pi = rng.dirichlet(np.full(1000, 0.3))
    tokens = np.repeat(rng.choice(1000, 500, p=pi), 4)
    stretches = np.stack([np.bincount(part, minlength=1000) for part in np.split(tokens, 10)])
    found, is_new = smoothed(stretches), ~stretches.any(axis=0)
    assert 0.8 < found[is_new].sum() / pi[is_new].sum() < 1.25


def test_frequencies_of_next_to_nothing():
    for stretches in (
        [[3, 0], [0, 0]],
        [[3, 0], [0, 1]],
        [[0, 0], [0, 0]],
        [[10**9, 0], [10**9, 5]],
    ):
        found = smoothed(np.array(stretches))
        assert found.min() > 0
        assert found.sum() == pytest.approx(1.0)
