"""Document completion on AP, all terms, 50 topics: ours against tomotopy and scikit-learn.

    python benchmarks/topic_scores.py [--jobs N] [--resume] [PART ...]

Three splits hold 112 documents out. A model sees a part of their words and is scored on the rest: the mean
over tokens of the log of the predictive probability, averaged over posterior states. Each part of the work
on each split has a process of its own, which leaves its numbers in FOLDER. With --resume the numbers that are
there are used again, with PARTs only these parts are done. Takes about half an hour on two cores; writes
its sections of RESULTS_TOPICS.md beside this file.
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
from topic_peers import CONCENTRATION, Tomotopy
from topic_sweep import Chain, correlated_topics

from polystick import CorrelatedTopicModel, Gibbs, MeanField, StochasticVI, scores
from polystick.baselines.lda import DirichletTopics
from polystick.inference.execution import Serial, one_blas_thread
from polystick.models import folding

FOLDER = Path(tempfile.gettempdir()) / "polystick_topic_scores"
N_TOPICS, SEEDS = 50, (0, 1, 2)
SHARES, HALF = (0.05, 0.1, 0.25, 0.5), 0.5
SCHEDULE = Gibbs(n_burn=600, n_draws=40, thin=15, n_chains=1)  # of all samplers in the curve
EVERY, LONGEST, SHORT_BURN = 5, 200, 40  # of the race against tomotopy's CTM
CHECK, LONGEST_CTM, SMALL_GAIN = 40, 321, 0.005  # when tomotopy's CTM has learned all it will
CTM_STATES, CTM_STEP = 10, 4
VARIATIONAL_STATES = 32
OUR_PASSES, THEIR_PASSES, BATCH = (1, 2, 4, 8, 16), 10, 128


class Task:
    """A split of the corpus, and how models are scored on it."""

    def __init__(self, seed):
        self.seed, self.split = seed, corpora.split_ap(seed)
        self.parts = {s: scores.split_words(self.split.test, s, seed) for s in SHARES}

    def complete(self, proportions, topics, share=HALF):
        """Return the log probability of the hidden words of each document, (n,)."""
        return scores.completion(proportions, topics, self.parts[share][1])

    def fold(self, model, states, share=HALF):
        """Return the shares of topics (n, T) of the test documents under each state."""
        shown, names = self.parts[share][0], model.fold_names
        priors = [model.fold_prior(dict(zip(names, state))) for state in states]
        with one_blas_thread():
            parts = [
                [mean for mean, _ in folding.fold_in(model, priors, shard, self.seed)]
                for shard in model.shards(shown, ids=folding.content_ids(shown), size=64)
            ]
        return [np.concatenate(blocks) for blocks in zip(*parts)]

    def complete_states(self, model, states, share=HALF):
        topics = [state[model.fold_names.index("topics")] for state in states]
        return self.complete(self.fold(model, states, share), topics, share)

    def face(self, inference, counts=None):
        """Fit our model as a user would, on one thread; return it and the CPU seconds to the last step.

        What comes after it, drawing from factors and describing documents, no peer here does.
        """
        ticks = [time.process_time()]
        model = CorrelatedTopicModel(
            N_TOPICS,
            inference=inference,
            random_state=self.seed,
            n_jobs=1,
            progress=lambda _: ticks.append(time.process_time()),
        )
        model.fit(self.split.train if counts is None else counts)
        return model, ticks[-1] - ticks[0]

    def tokens(self, share=HALF):
        return self.parts[share][1].sum(axis=1)

    def mean(self, logs):
        return float(np.sum(logs) / self.tokens().sum())


# parts of the work: each returns name -> array


def correlated(task):
    """SB-CTM over the shares of words that are seen."""
    face, seconds = task.face(SCHEDULE)
    return _curve(task, face.model_, face.posterior_) | {"seconds": seconds}


def lda(task):
    """Run our collapsed LDA, with alpha learned, on the same schedule."""
    model = DirichletTopics(N_TOPICS, task.split.train.shape[1], CONCENTRATION)
    start = time.process_time()
    posterior = SCHEDULE.run(model, model.shards(task.split.train), seed=task.seed)
    return _curve(task, model, posterior) | {"seconds": time.process_time() - start}


def _curve(task, model, posterior):
    states = posterior.spread(model.fold_names, SCHEDULE.n_draws)
    logs = [task.complete_states(model, states, share) for share in SHARES]
    return {"logs": np.stack(logs), "tokens": np.stack([task.tokens(s) for s in SHARES])}


def tomotopy_lda(task):
    """Run tomotopy's LDA, with alpha learned, on the same schedule."""
    peer = _tomotopy("lda", task)
    peer.train(SCHEDULE.n_burn)
    topics, proportions = [], {share: [] for share in SHARES}
    for _ in range(SCHEDULE.n_draws):
        peer.train(SCHEDULE.thin)
        topics.append(peer.topics())
        for share in SHARES:
            proportions[share].append(peer.proportions(task.parts[share][0]))
    logs = [task.complete(proportions[share], topics, share) for share in SHARES]
    tokens = [task.tokens(share) for share in SHARES]
    return {"logs": np.stack(logs), "tokens": np.stack(tokens), "seconds": peer.seconds}


def tomotopy_ctm(task):
    """Train tomotopy's CTM until it stops gaining, then average states.

    Its `infer` skips the prior after an even number of iterations, so all checks are at odd ones. The CPU
    time that counts is that up to the last check that gained, and that between the averaged states.
    """
    peer = _tomotopy("ctm", task)
    peer.train(1)
    best, when, checks = -np.inf, 0.0, []
    while peer.n_iterations < LONGEST_CTM:
        peer.train(CHECK)
        score = task.mean(task.complete([_shares(peer, task)], [peer.topics()]))
        checks.append((peer.n_iterations, peer.seconds, score))
        if score < best + SMALL_GAIN:
            break
        best, when = score, peer.seconds
    before, states = peer.seconds, []
    for _ in range(CTM_STATES):
        peer.train(CTM_STEP)
        states.append((_shares(peer, task), peer.topics()))
    logs = task.complete(*zip(*states))
    seconds = when + peer.seconds - before
    return {"logs": logs, "tokens": task.tokens(), "seconds": seconds, "checks": checks}


def _shares(peer, task):
    return peer.proportions(task.parts[HALF][0])


def _tomotopy(kind, task):
    return Tomotopy(kind, task.split.train, task.split.vocabulary, N_TOPICS)


def race(task):
    """Record how our score, averaged over the later half of the states so far, rises with CPU time."""
    model = correlated_topics(task.split.train.shape[1], N_TOPICS)
    _race(model, task.split.train[:64], 10)  # compiles
    with one_blas_thread():
        states, seconds = _race(model, task.split.train, LONGEST)
    proportions, topics = task.fold(model, states), [state[-1] for state in states]
    curve = []
    for stop in range(1, len(states) + 1):
        later = slice(stop // 2, stop)
        curve.append(task.mean(task.complete(proportions[later], topics[later])))
    return {"seconds": seconds, "scores": curve}


def _race(model, counts, n_sweeps):
    """Return states of a chain and the CPU seconds after which they were there, start included."""
    states, seconds = [], []
    start = time.process_time()
    chain = Chain(model, counts, Serial(), n_burn=SHORT_BURN)
    while chain.n_sweeps < n_sweeps:
        chain.sweep(EVERY)
        seconds.append(time.process_time() - start)
        described = model.describe_parameters(chain.parameters)
        states.append(tuple(described[name] for name in model.fold_names))
    return states, seconds


def mean_field(task):
    """Fit by mean field from its default start."""
    task.face(MeanField(max_sweeps=2), task.split.train[:64])  # compiles
    face, seconds = task.face(MeanField(tolerance=0.1, n_draws=VARIATIONAL_STATES))
    return _variational(task, face) | {"tokens": task.tokens(), "seconds": seconds}


def _variational(task, face):
    states = face.posterior_.spread(face.model_.fold_names, VARIATIONAL_STATES)
    return {"logs": task.complete_states(face.model_, states)}


def stochastic(task):
    """Fit by stochastic variational inference with more and more passes, each a run of its own."""
    task.face(StochasticVI(n_passes=1), task.split.train[:64])  # compiles
    logs, seconds = [], []
    for n_passes in OUR_PASSES:
        face, spent = task.face(StochasticVI(n_passes=n_passes, n_draws=VARIATIONAL_STATES))
        logs.append(_variational(task, face)["logs"])
        seconds.append(spent)
    return {"logs": np.stack(logs), "tokens": task.tokens(), "seconds": seconds}


def sklearn_online(task):
    """Score scikit-learn's online LDA after each pass, by its own shares and by ours given its topics."""
    train, shown = task.split.train, task.parts[HALF][0]
    peer = LatentDirichletAllocation(
        N_TOPICS,
        topic_word_prior=CONCENTRATION,
        learning_method="online",
        batch_size=BATCH,
        total_samples=train.shape[0],
        random_state=task.seed,
        n_jobs=1,
    )
    model, alpha = DirichletTopics(N_TOPICS, train.shape[1], CONCENTRATION), np.ones(N_TOPICS)
    logs, folded, seconds, spent = [], [], [], 0.0
    for _ in range(THEIR_PASSES):
        start = time.process_time()
        peer.partial_fit(train)
        spent += time.process_time() - start
        topics = peer.components_ / peer.components_.sum(axis=1, keepdims=True)
        logs.append(task.complete([peer.transform(shown)], [topics]))
        states = [(alpha * peer.doc_topic_prior_, topics)] * VARIATIONAL_STATES
        folded.append(task.complete_states(model, states))
        seconds.append(spent)
    parts = {"logs": np.stack(logs), "folded": np.stack(folded)}
    return parts | {"tokens": task.tokens(), "seconds": seconds}


LONGEST_FIRST = (
    tomotopy_ctm,
    tomotopy_lda,
    correlated,
    lda,
    stochastic,
    mean_field,
    race,
    sklearn_online,
)
PARTS = {part.__name__: part for part in LONGEST_FIRST}


# running them


def path_of(part, seed):
    return FOLDER / f"{part}.{seed}.npz"


def do(part, seed):
    """Do one part on one split in this process."""
    found = PARTS[part](Task(seed))
    np.savez(path_of(part, seed), **found)


def do_all(parts, n_jobs, resume):
    """Do parts in processes of their own, with one BLAS thread each."""
    FOLDER.mkdir(exist_ok=True)
    todo = [(part, seed) for part in parts for seed in SEEDS]
    todo = [job for job in todo if not (resume and path_of(*job).exists())]
    for job in todo:
        path_of(*job).unlink(missing_ok=True)

    def work(job):
        start = time.perf_counter()
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-W", "ignore", __file__, "--do", job[0], str(job[1])]
        subprocess.run(command, check=True, env=environment)
        print(f"{job[0]} on split {job[1]}: {time.perf_counter() - start:.0f} s", flush=True)

    with ThreadPoolExecutor(n_jobs) as pool:
        list(pool.map(work, todo))


def load():
    """Return part -> list over the splits that it was done on of name -> array."""
    there = {part: [s for s in SEEDS if path_of(part, s).exists()] for part in PARTS}
    return {
        part: [dict(np.load(path_of(part, seed))) for seed in seeds]
        for part, seeds in there.items()
        if seeds
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    if not set(given.parts) <= set(PARTS):
        parser.error(f"a PART is one of {', '.join(PARTS)}")
    corpora.load_ap()
    do_all(given.parts or list(PARTS), given.jobs, given.resume)
    print(topic_report.write(*topic_report.score_sections(load())))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--do"]:
        do(sys.argv[2], int(sys.argv[3]))
    else:
        try:
            main()
        except corpora.MissingDataError as error:
            sys.exit(str(error))
