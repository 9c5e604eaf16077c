"""Sweeps of topic models on AP, all terms: ours against tomotopy and scikit-learn, CPU time of one thread.

Each model is timed where a run spends its time: our correlated topics have their warm start and 30 sweeps
behind them, LDA (ours and tomotopy's, both of which learn alpha) 100, for sweeps get cheaper as topics
sharpen. tomotopy's CTM updates its prior in every second iteration, which is the dear one, so an iteration
is half the time of two; it starts cold, as its cost hardly changes. A pass of scikit-learn is the mean of its
first four. Lines with two threads are wall times.
"""

from functools import partial

import corpora
from sklearn.decomposition import LatentDirichletAllocation
from timing import CPU, WALL, in_turns, record
from topic_peers import CONCENTRATION, Tomotopy

from polystick.baselines.lda import DirichletTopics
from polystick.decomposition import decompose
from polystick.inference.execution import Serial, Threads
from polystick.inference.moving import moves
from polystick.keys import Key
from polystick.models.topic_factors import assemble
from polystick.models.topic_shares import NormalShares, Sticks
from polystick.models.topic_words import DirichletWords
from polystick.population import LearnedScale

SIZES = (50, 100, 200)
N_BURN, N_LDA = 30, 100
SWEEPS, LDA_SWEEPS, PASSES = 5, 10, 4  # at once; tomotopy's LDA learns alpha in every tenth
CTM_TARGETS = {50: 25.0, 100: 60.0, 200: 120.0}
CTM_REPEATS = {50: 3, 100: 2, 200: 1}  # of two iterations: at T = 200 one takes half a minute
LDA_TARGETS = {50: 1 / 1.5, 100: 1 / 2, 200: 1 / 3}
COLLAPSED_TARGETS = {50: 1 / 0.8, 100: None, 200: 1 / 0.5}
THREADS_TARGET = 1.8


def correlated_topics(n_words, n_topics):
    """Return the model that the face makes by default."""
    decomposition = decompose("balanced", n_categories=n_topics)
    prior = LearnedScale(decomposition.dirichlet_moments(1.0)[0], scale=1.0)
    words = DirichletWords(n_words, CONCENTRATION)
    return assemble(words, NormalShares(prior), Sticks(decomposition))


class Chain:
    """Gibbs sweeps of a model as the schedule makes them, but without records."""

    def __init__(self, model, counts, execution, *, n_burn, seed=1):
        self.model, self.execution, self.seed, self.n_burn = model, execution, seed, n_burn
        shards, key = model.shards(counts), Key(seed)
        self.held, self.n_sweeps = execution.hold(model, shards), 0
        self.parameters = model.initial_parameters(shards, key)
        self.held.start("initial_rows", [model.prepare(self.parameters)], [key])

    def sweep(self, n_sweeps=1):
        for _ in range(n_sweeps):
            self.n_sweeps += 1
            key = Key(self.seed, self.n_sweeps)
            if moves(self.model):
                (self.parameters,) = self.held.move([self.parameters], [key])
            prior = self.model.prepare(self.parameters)
            (statistics,) = self.held.step("draw_rows", [prior], [key]).statistics
            self.parameters = self._global_step(statistics, key)

    def rows(self):
        """Return where the rows stand, block by block."""
        return list(self.held.describe(lambda model, shard, rows: rows))

    def _global_step(self, statistics, key):
        given = (self.parameters, statistics, key)
        if self.n_sweeps <= self.n_burn:
            return self.model.settle(*given, self.n_burn, self.execution.map)
        return self.model.draw_parameters(*given, self.execution.map)


def compare(counts, vocabulary, n_topics):
    """Return the lines of one number of topics."""
    model, case = correlated_topics(counts.shape[1], n_topics), f"T={n_topics}"
    lda = DirichletTopics(n_topics, counts.shape[1], CONCENTRATION)
    with Threads(2) as threads:
        ours, pair = (Chain(model, counts, e, n_burn=N_BURN) for e in (Serial(), threads))
        collapsed = Chain(lda, counts, Serial(), n_burn=10**6)  # learns alpha all the time
        peer_lda, peer_ctm = (Tomotopy(k, counts, vocabulary, n_topics) for k in ("lda", "ctm"))
        for run, n in ((ours.sweep, N_BURN), (pair.sweep, N_BURN), (collapsed.sweep, N_LDA)):
            run(n)
        peer_lda.train(N_LDA)
        sweep, plain, theirs, ctm = in_turns(
            partial(ours.sweep, SWEEPS),
            partial(collapsed.sweep, LDA_SWEEPS),
            partial(peer_lda.train, LDA_SWEEPS),
            partial(peer_ctm.train, 2),
            clock=CPU,
            repeats=(7, 7, 7, CTM_REPEATS[n_topics]),
            rehearsals=(1, 1, 1, 0),
        )
        two, one = in_turns(
            *(partial(chain.sweep, SWEEPS) for chain in (pair, ours)), clock=WALL, repeats=30
        )
    sweep, plain, theirs, ctm = sweep / SWEEPS, plain / LDA_SWEEPS, theirs / LDA_SWEEPS, ctm / 2
    return [
        record(f"SB-CTM vs tomotopy CTM, {case}", sweep, ctm, CTM_TARGETS[n_topics]),
        record(f"SB-CTM vs tomotopy LDA, {case}", sweep, theirs, LDA_TARGETS[n_topics]),
        record(f"LDA vs tomotopy LDA, {case}", plain, theirs, COLLAPSED_TARGETS[n_topics]),
        record(f"SB-CTM, 2 threads vs 1, {case}", two / SWEEPS, one / SWEEPS, THREADS_TARGET),
        *beside_sklearn(counts, n_topics, sweep),
    ]


def beside_sklearn(counts, n_topics, sweep):
    """Compare a sweep with passes of variational LDA, which make more progress each."""
    found = in_turns(
        *(partial(variational, counts, n_topics, how) for how in ("online", "batch")),
        repeats=1,
        rehearsals=0,
    )
    return [
        record(f"SB-CTM sweep vs scikit-learn {how} pass, T={n_topics}", sweep, seconds / PASSES)
        for how, seconds in zip(("online", "batch"), found)
    ]


def variational(counts, n_topics, how):
    LatentDirichletAllocation(
        n_topics,
        topic_word_prior=CONCENTRATION,
        learning_method=how,
        max_iter=PASSES,
        random_state=0,
        n_jobs=1,
    ).fit(counts)


def run(sizes=SIZES):
    """Return one record per case; raises MissingDataError without the corpus."""
    counts, vocabulary = corpora.load_ap()
    return [line for n_topics in sizes for line in compare(counts, vocabulary, n_topics)]


if __name__ == "__main__":
    import sys

    for line in run(tuple(map(int, sys.argv[1:])) or SIZES):
        print(line, flush=True)
