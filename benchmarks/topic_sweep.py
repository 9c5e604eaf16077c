"""Sweeps of topic models on AP, all terms: ours against tomotopy and scikit-learn, CPU of one thread.

Each model first goes to where a run spends its time: ours has its warm start and 30 sweeps behind it, LDA
(ours and tomotopy's) 100 iterations, for they get cheaper as topics sharpen. tomotopy's CTM updates its prior
in every second iteration, which is the dear one, so an iteration is half the time of two; it starts cold,
as its cost hardly changes. scikit-learn's passes are the mean of the first four.
"""

from functools import partial

import corpora
from sklearn.decomposition import LatentDirichletAllocation
from timing import CPU, WALL, in_turns, record
from topic_peers import CONCENTRATION, Tomotopy

from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import decompose
from polystick.inference.execution import Serial, Threads
from polystick.keys import Key
from polystick.models import warm_start
from polystick.models.topics import CorrelatedTopics

N_BURN, N_LDA, N_PASSES = 30, 100, 4
SIZES = (50, 100, 200)
CTM_TARGETS = {50: 25.0, 100: 60.0, 200: 120.0}
CTM_REPEATS = {50: 3, 100: 2, 200: 1}  # of two iterations: at T = 200 one takes half a minute
LDA_TARGETS = {50: 1 / 1.5, 100: 1 / 2, 200: 1 / 3}
COLLAPSED_TARGETS = {50: 1 / 0.8, 100: None, 200: 1 / 0.5}
LDA_SWEEPS = 10  # at once: tomotopy learns alpha in every tenth


def make_model(n_words, n_topics):
    """Return the model that the face makes by default."""
    decomposition = decompose("given", n_categories=n_topics)
    prior = NormalInverseWishart.weak(*decomposition.dirichlet_moments(1.0))
    return CorrelatedTopics(n_words, CONCENTRATION, prior, decomposition)


class Chain:
    """Gibbs sweeps of a model, as the schedule makes them but without records."""

    def __init__(self, model, shards, execution, *, n_burn=N_BURN, seed=1):
        self.model, self.execution, self.seed, self.n_burn = model, execution, seed, n_burn
        self.held, self.number = execution.hold(shards), 0
        self.parameters = model.initial_parameters(shards, Key(seed))
        prior = model.prepare(self.parameters)
        self.held.states = [[model.initial_rows(prior, shard, Key(seed)) for shard in shards]]

    def sweep(self):
        self.number += 1
        key, model = Key(self.seed, self.number), self.model
        (statistics,) = self.held.step(model.draw_rows, [model.prepare(self.parameters)], [key])
        if self.number <= self.n_burn:
            self.parameters = model.settle(
                self.parameters, statistics, key, self.n_burn, self.execution.map
            )
        else:
            self.parameters = model.draw_parameters(
                self.parameters, statistics, key, self.execution.map
            )

    def settled(self):
        """Make the sweeps of the burn-in."""
        while self.number < self.n_burn:
            self.sweep()
        return self


def collapsed(shards, n_words, n_topics):
    """Return a function that makes LDA_SWEEPS sweeps of collapsed LDA and learns alpha once."""
    tokens = warm_start.expand(shards)
    state = warm_start.unassigned(tokens, n_topics, n_words)
    alpha, number = [0.1] * n_topics, 0

    def sweeps(n=LDA_SWEEPS):
        nonlocal alpha, number
        for _ in range(n):
            number += 1
            bits = Key(1).at(f"sweep {number}")
            warm_start.advance(tokens, state, alpha, CONCENTRATION, bits)
        counts = warm_start.count_documents(tokens, state.assignments, n_topics)
        alpha = warm_start.learn_alpha(counts, alpha)

    return sweeps
