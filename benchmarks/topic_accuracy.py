"""Document completion on three corpora: our correlated topics against our LDA and those of others.

    python benchmarks/topic_accuracy.py [--jobs N] [--resume] [--corpora NAME ...] [PART ...]

Ours are the public faces with their defaults. Three splits hold documents out, of which a model sees a part
and is scored on the rest: the log of the predictive probability, averaged over states of three chains, and
over as many of each chain alone. Peers
are scored twice, with shares of topics found as ours are given their topics and prior, and with their own.
Each part of the work on each split has a process of its own, which leaves its numbers in FOLDER; with
--resume those that are there are used again. Takes hours on two cores, most of it tomotopy's CTM; writes
its sections of RESULTS_TOPICS.md.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import corpora
import numpy as np
import topic_report
from sklearn.decomposition import LatentDirichletAllocation
from topic_peers import Tomotopy

from polystick import CorrelatedTopicModel, scores
from polystick.baselines import LDA
from polystick.baselines.lda import DirichletTopics
from polystick.conjugate import NormalInverseWishart
from polystick.inference.execution import one_blas_thread
from polystick.models import folding
from polystick.models.softmax_link import Softmax
from polystick.models.topic_factors import assemble
from polystick.models.topic_shares import NormalShares
from polystick.models.topic_words import DirichletWords

FOLDER = Path(tempfile.gettempdir()) / "polystick_topic_accuracy"
SEEDS, SHARES = (0, 1, 2), topic_report.SHARES
N_STATES, N_CHAINS = 30, 3
BURN, STATES, THIN = 450, 10, 30  # of tomotopy's LDA, in each chain
CTM_BURN, CTM_THIN = 201, 4  # odd: after an even number of iterations its `infer` skips the prior
PASSES = 30  # of scikit-learn


class Task:
    """A corpus, split, and how models are scored on it."""

    def __init__(self, name, seed):
        self.seed, self.corpus = seed, corpora.CORPORA[name]
        self.train, self.test, self.words = corpora.split(name, seed)
        self.parts = [scores.split_words(self.test, share, seed) for share in SHARES]
        self.tokens = np.stack([rest.sum(axis=1) for _, rest in self.parts])

    def face(self, kind):
        """Fit one of ours as a user would, and score it."""
        start = time.process_time()
        model = kind(
            self.corpus.n_topics,
            topic_concentration=self.corpus.concentration,
            random_state=self.seed,
            n_jobs=1,
            progress=False,
        ).fit(self.train)
        seconds = time.process_time() - start
        logs = [model.score_samples(self.test, observed=s, n_draws=N_STATES) for s in SHARES]
        return {
            "logs": np.nan_to_num(logs),
            "alone": np.mean([self._of_chain(model, chain) for chain in range(N_CHAINS)], axis=0),
            "tokens": self.tokens,
            "seconds": seconds,
        }

    def _of_chain(self, fitted, chain):
        """Score as many states of one chain alone."""
        model, posterior = fitted.model_, fitted.posterior_
        states = posterior.spread(model.fold_names, N_STATES, chain)
        topics = [state[model.fold_names.index("topics")] for state in states]
        return [
            scores.completion(self._fold(model, states, shown, (0,)), topics, rest)
            for shown, rest in self.parts
        ]

    def peer(self, model, states, own):
        """Score states of a peer: folded in by our `model`, and by `own`, shown -> shares per state."""
        topics = [state[model.fold_names.index("topics")] for state in states]
        folded, theirs = [], []
        for i, (shown, rest) in enumerate(self.parts):
            shares = self._fold(model, states, shown, range(0, len(states), STATES))
            folded.append(scores.completion(shares, topics, rest))
            theirs.append(scores.completion(own[i], topics, rest))
        return {"logs": np.stack(folded), "own": np.stack(theirs), "tokens": self.tokens}

    def _fold(self, model, states, shown, firsts):
        priors = [model.fold_prior(dict(zip(model.fold_names, state))) for state in states]
        with one_blas_thread():
            parts = [
                [
                    mean
                    for mean, _ in folding.fold_in(model, priors, shard, self.seed, firsts=firsts)
                ]
                for shard in model.shards(shown, ids=folding.content_ids(shown), size=64)
            ]
        return [np.concatenate(blocks) for blocks in zip(*parts)]


# parts of the work: each returns name -> array


def correlated(task):
    return task.face(CorrelatedTopicModel)


def lda(task):
    return task.face(LDA)


def tomotopy_lda(task):
    """Run three chains of tomotopy's LDA, with alpha learned."""
    states, own = [], [[] for _ in SHARES]
    for chain in range(N_CHAINS):
        peer = _tomotopy("lda", task, chain)
        peer.train(BURN)
        for _ in range(STATES):
            peer.train(THIN)
            states.append((np.array(peer.model.alpha), peer.topics()))
            _infer(peer, task, own)
    return task.peer(_dirichlet(task), states, own)


def tomotopy_ctm(task):
    """Run one chain of tomotopy's CTM: three would take hours."""
    peer, states, own = _tomotopy("ctm", task, 0), [], [[] for _ in SHARES]
    peer.train(CTM_BURN)
    model = _logistic_normal(task)
    for _ in range(STATES):
        peer.train(CTM_THIN)
        given = {
            "mean": np.array(peer.model.prior_mean),
            "cov": np.array(peer.model.prior_cov),
            "topics": peer.topics(),
        }
        states.append(tuple(given[name] for name in model.fold_names))
        _infer(peer, task, own)
    return task.peer(model, states, own)


def sklearn_lda(task):
    """Run scikit-learn's LDA from three starts."""
    states, own = [], [[] for _ in SHARES]
    for start in range(N_CHAINS):
        peer = LatentDirichletAllocation(
            task.corpus.n_topics,
            topic_word_prior=task.corpus.concentration,
            max_iter=PASSES,
            random_state=N_CHAINS * task.seed + start,
        ).fit(task.train)
        topics = peer.components_ / peer.components_.sum(axis=1, keepdims=True)
        alpha = np.full(task.corpus.n_topics, peer.doc_topic_prior_)
        states += [(alpha, topics)] * STATES
        for shares, (shown, _) in zip(own, task.parts):
            shares += [peer.transform(shown)] * STATES
    return task.peer(_dirichlet(task), states, own)


def _tomotopy(kind, task, chain):
    seed = N_CHAINS * task.seed + chain
    eta, n_topics = task.corpus.concentration, task.corpus.n_topics
    return Tomotopy(kind, task.train, task.words, n_topics, seed=seed, eta=eta)


def _infer(peer, task, own):
    for shares, (shown, _) in zip(own, task.parts):
        shares.append(peer.proportions(shown))


def _dirichlet(task):
    return DirichletTopics(task.corpus.n_topics, len(task.words), task.corpus.concentration)


def _logistic_normal(task):
    k = task.corpus.n_topics
    prior = NormalInverseWishart.weak(np.zeros(k), np.ones(k))
    words = DirichletWords(len(task.words), task.corpus.concentration)
    return assemble(words, NormalShares(prior), Softmax(k))


PARTS = {part.__name__: part for part in (correlated, lda, tomotopy_lda, sklearn_lda, tomotopy_ctm)}


# running them


def path_of(name, part, seed):
    return FOLDER / f"{name}.{part}.{seed}.npz"


def do(name, part, seed):
    """Do one part on one split in this process."""
    np.savez(path_of(name, part, seed), **PARTS[part](Task(name, seed)))


def do_all(names, parts, n_jobs, resume):
    """Do parts in processes of their own, with one BLAS thread each."""
    FOLDER.mkdir(exist_ok=True)
    todo = [(name, part, seed) for seed in SEEDS for name in names for part in parts]
    todo = [job for job in todo if not (resume and path_of(*job).exists())]

    def work(job):
        start = time.perf_counter()
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-W", "ignore", __file__, "--do", *map(str, job)]
        subprocess.run(command, check=True, env=environment)
        print(f"{' '.join(map(str, job))}: {time.perf_counter() - start:.0f} s", flush=True)

    with ThreadPoolExecutor(n_jobs) as pool:
        list(pool.map(work, todo))


def load(name):
    """Return part -> split -> name -> array, of what was done."""
    there = {part: [s for s in SEEDS if path_of(name, part, s).exists()] for part in PARTS}
    return {
        part: {seed: dict(np.load(path_of(name, part, seed))) for seed in seeds}
        for part, seeds in there.items()
        if seeds
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--corpora", nargs="*", default=list(corpora.CORPORA))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    if not set(given.parts) <= set(PARTS):
        parser.error(f"a PART is one of {', '.join(PARTS)}")
    do_all(given.corpora, given.parts or list(PARTS), given.jobs, given.resume)
    found = {name: load(name) for name in corpora.CORPORA}
    sections = [
        topic_report.accuracy_section(corpora.CORPORA[name], parts)
        for name, parts in found.items()
        if {"correlated", "lda"} <= set(parts)
    ]
    print(topic_report.write(*sections))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--do"]:
        do(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        try:
            main()
        except corpora.MissingDataError as error:
            sys.exit(str(error))
