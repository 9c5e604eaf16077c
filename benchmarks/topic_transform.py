"""Shares of topics of new documents: CPU time, and how likely their shares make hidden words.

    python benchmarks/topic_transform.py

All learn from AP with 300 documents held out, 50 topics: ours by their defaults, tomotopy and scikit-learn
with as many passes as their scores need. Then they take turns on half of the words of the held-out documents
and on the documents of the fit, one thread each, and the least time of each counts. Completion is of the
other half of the words, by one state of the topics, as a user of `transform` would compute it.
"""

import sys
import warnings

import corpora
import numpy as np
import timing
import topic_report
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import ConvergenceWarning
from topic_peers import Tomotopy

from polystick import CorrelatedTopicModel, scores
from polystick.baselines import LDA

N_TOPICS, CONCENTRATION, SEED = 50, 0.05, 0
ITERATIONS, PASSES = {"lda": 600, "ctm": 200}, 30
TO_REACH = {"tomotopy LDA": 1.2, "tomotopy CTM": 1.2, "scikit-learn LDA": 3.0}


def ours(kind, train):
    """Return topics and the fast and the exact way to shares."""
    model = kind(
        N_TOPICS, topic_concentration=CONCENTRATION, random_state=SEED, n_jobs=1, progress=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(train)
    return model.topics_, model.transform, lambda counts: model.transform(counts, method="exact")


def tomotopy(kind, train, words):
    peer = Tomotopy(kind, train, words, N_TOPICS, eta=CONCENTRATION)
    peer.train(ITERATIONS[kind] + 1)  # odd: after an even number its CTM skips the prior
    return peer.topics(), peer.proportions


def sklearn_lda(train):
    peer = LatentDirichletAllocation(
        N_TOPICS, topic_word_prior=CONCENTRATION, max_iter=PASSES, random_state=SEED
    ).fit(train)
    return peer.components_ / peer.components_.sum(axis=1, keepdims=True), peer.transform


def ways(split):
    """Return name -> (topics, counts -> shares)."""
    topics, fast, exact = ours(CorrelatedTopicModel, split.train)
    plain, plain_fast, plain_exact = ours(LDA, split.train)
    return {
        "CorrelatedTopicModel, fast": (topics, fast),
        "CorrelatedTopicModel, exact": (topics, exact),
        "our LDA, fast": (plain, plain_fast),
        "our LDA, exact": (plain, plain_exact),
        "tomotopy LDA": tomotopy("lda", split.train, split.vocabulary),
        "tomotopy CTM": tomotopy("ctm", split.train, split.vocabulary),
        "scikit-learn LDA": sklearn_lda(split.train),
    }


def completion(topics, transform, shown, rest):
    logs = scores.completion([np.asarray(transform(shown))], [topics], rest)
    return logs.sum() / rest.sum()


def section(found, seconds, scored, sizes):
    fast = {
        n_documents: times["CorrelatedTopicModel, fast"] for n_documents, times in seconds.items()
    }
    head = [f"{n} documents | to ours" for n in sizes]
    lines = [
        "## Shares of new documents: CPU time of `transform` and completion, AP, T = 50",
        "",
        "Half of the words of 300 held-out documents, and whole documents of the fit; one thread, least of "
        "three turns. Completion: nats per token of the other half, by one state of each model's topics. "
        "`transform` of ours is fast by default.",
        "",
        f"| | completion | {' | '.join(head)} | to reach |",
        "|" + "---|" * (3 + 2 * len(sizes)),
    ]
    for name in found:
        times = [f"{seconds[n][name]:.2f} s | {fast[n] / seconds[n][name]:.2f}x" for n in sizes]
        wanted = f"{TO_REACH[name]}x" if name in TO_REACH else ""
        lines.append(f"| {name} | {scored[name]:.3f} | {' | '.join(times)} | {wanted} |")
    return "\n".join(lines)


def main():
    split = corpora.split("ap", SEED)
    shown, rest = scores.split_words(split.test, 0.5, SEED)
    found = ways(split)
    scored = {name: completion(*way, shown, rest) for name, way in found.items()}
    seconds = {}
    for counts in (shown, split.train):
        calls = [lambda way=way, counts=counts: way[1](counts) for way in found.values()]
        times = timing.in_turns(*calls, repeats=3)
        seconds[counts.shape[0]] = dict(zip(found, times))
    print(topic_report.write(section(found, seconds, scored, list(seconds))))


if __name__ == "__main__":
    try:
        main()
    except corpora.MissingDataError as error:
        sys.exit(str(error))
