"""Sweeps of multinomial linear dynamical systems, whole: CPU time of one thread, and how it grows.

A sweep draws omega, the states, A and Q, the first state's law, the emission and the stretch, as a run does.
On Alice and DNA (D = 10) it is compared with a part of itself: the potentials and the draw of the states
(FFBS) under sticks by frequency.

Lines on growth are of Zipf's tokens and compare a size with a smaller one, in proportion to the steps T, to
the active sticks (which K alone decides) or to D^2: 1x is a cost that grows like these, more is a cost that
grows less. Sticks are by frequency; the other tree is balanced.
"""

import itertools

import numpy as np
import sequences
from timing import in_turns, record

from polystick import augmentation
from polystick.conjugate import NormalInverseWishart
from polystick.conjugate_dynamics import MatrixNormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.keys import Key
from polystick.models.dynamics import MultinomialDynamics
from polystick.models.dynamics_steps import active_psi

N_BURN = 5
T, K, D = 4000, 1000, 10  # where the lines on growth meet
STEPS, DIMS = (1000, 4000, 16_000), (2, 5, 10, 20)
CATEGORIES = (22, 100, 1000, 10_000)
TARGETS = {"Alice": (1 / 3, 1.0), "DNA": (None, None)}  # sticks; balanced
TREES = ("sticks", "balanced")


def make_model(tokens, n_categories, tree, n_dims):
    """Return the model that the face makes by default, but for the tree."""
    counts = np.bincount(tokens, minlength=n_categories)
    trees = {"sticks": Decomposition.by_frequency, "balanced": _balanced}
    decomposition, eye = trees[tree](counts), np.eye(n_dims)
    return MultinomialDynamics(
        decomposition,
        MatrixNormalInverseWishart(0.0 * eye, eye, eye, n_dims + 2.0),
        NormalInverseWishart(np.zeros(n_dims), 1.0, eye, n_dims + 2.0),
        decomposition.psi(counts + 1.0)[:, None],
        np.ones(n_dims + 1),
    )


def _balanced(counts):
    return Decomposition.balanced(len(counts))


def start(tokens, n_categories, tree, n_dims=D):
    """Return a chain that has left its start behind."""
    chain = sequences.Chain(make_model(tokens, n_categories, tree, n_dims), [tokens])
    chain.sweep(N_BURN)
    return chain


class StatesAlone:
    """The potentials and the draw of the states: a part of the next sweep of a chain."""

    def __init__(self, chain):
        self.model, self.parameters, (self.shard,) = chain.model, chain.parameters, chain.shards
        self.key, prior = Key(chain.seed, chain.n_sweeps + 1), self.model.prepare(self.parameters)
        states = prior.stretch * chain.rows()[0].states
        psi = active_psi(self.shard, prior.emission, np.column_stack([states, self.shard.known]))
        key = self.key.at("omega")
        self.potential = augmentation.draw_potential(self.shard.splits, psi, key, self.shard.steps)

    def __call__(self):
        prior = self.model.prepare(self.parameters)
        return self.model.draw_states(prior, self.shard, self.potential, self.key)


def compare(name):
    """Return the lines of a data set."""
    tokens, n_categories = sequences.load(name)
    sticks, balanced = (start(tokens, n_categories, tree) for tree in TREES)
    states, own, long, short = in_turns(
        StatesAlone(sticks), StatesAlone(balanced), sticks.sweep, balanced.sweep, repeats=25
    )
    of_sticks, of_balanced = TARGETS[name]
    return [
        record(f"{name}: sweep vs its potentials + FFBS, sticks", long, states, of_sticks),
        record(
            f"{name}: sweep, balanced, vs potentials + FFBS, sticks", short, states, of_balanced
        ),
        record(f"{name}: sweep vs its potentials + FFBS, balanced", short, own),
    ]


# growth


def grow(where, letter, sizes, make, measure):
    """Return the lines of a sweep at rising sizes, each against the one before.

    make, measure : functions of a size; the chain, and what its cost should be proportional to
    """
    chains = [make(size) for size in sizes]
    repeats = [max(3, min(25, 100_000 // chain.shards[0].n_steps)) for chain in chains]
    seconds = in_turns(*(chain.sweep for chain in chains), repeats=repeats)
    loads = [measure(size, chain) for size, chain in zip(sizes, chains)]
    lines = []
    for small, large in itertools.pairwise(range(len(sizes))):
        times = loads[large] / loads[small]
        case = f"{letter}={sizes[large]} vs {times:.3g} x {letter}={sizes[small]}"
        lines.append(record(f"{where}: {case}", seconds[large], times * seconds[small]))
    return lines


def growth(tree):
    by_steps = grow(
        f"{tree}, K={K}, D={D}",
        "T",
        STEPS,
        lambda t: start(sequences.zipf(t, K), K, tree),
        lambda t, chain: t,
    )
    by_categories = grow(
        f"{tree}, T={T}, D={D}",
        "K",
        CATEGORIES,
        lambda k: start(sequences.zipf(T, k), k, tree),
        lambda k, chain: len(chain.shards[0].splits.nodes),
    )
    by_dims = grow(
        f"{tree}, T={T}, K={K}",
        "D",
        DIMS,
        lambda d: start(sequences.zipf(T, K), K, tree, d),
        lambda d, chain: d * d,
    )
    return by_steps + by_categories + by_dims


def run():
    """Return one record per case; raises MissingDataError without the data."""
    lines = [line for name in TARGETS for line in compare(name)]
    return lines + [line for tree in TREES for line in growth(tree)]


if __name__ == "__main__":
    for line in run():
        print(line, flush=True)
