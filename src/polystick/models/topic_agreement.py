"""Which topics chains have in common.

Topics of two chains are taken for the same if they are matched (`alignment.align`, on posterior means) and
their Bhattacharyya coefficient is at least `ALIKE`.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from polystick.alignment import align
from polystick.models import watched

__all__ = ["ALIKE", "Agreement", "TopicChains", "compare", "sentence"]

# Of simulated corpora with known topics (15 topics, 150 and 400 documents of 80 words, 12 or 15 asked for):
# 4 % of the pairs that had found the same true topic are below, 12 % of the others are not.
ALIKE = 0.8


class Agreement(NamedTuple):
    """The topics of the likeliest chain, and where they are in the others; its own are all there.

    best       : the likeliest chain
    order      : (C, T) topic order[c, t] of chain c is the one most like topic t of the likeliest
    similarity : (C, T) how alike they are, 1 for equal topics
    """

    best: int
    order: np.ndarray
    similarity: np.ndarray

    @property
    def found(self):
        """Whether a chain has a topic, (C, T)."""
        return self.similarity >= ALIKE

    @property
    def n_chains(self):
        """In how many chains each topic is, (T,)."""
        return self.found.sum(axis=0)


def compare(topics, log_likelihood):
    """Return the Agreement of chains with draws of topics (chain, draw, T, ...) and a likelihood."""
    best = int(np.mean(log_likelihood, axis=1).argmax())
    means = [each.mean(axis=0, dtype=np.float64).reshape(each.shape[1], -1) for each in topics]
    first = [best, *(c for c in range(len(means)) if c != best)]
    back = np.argsort(first)
    match = align([means[c] for c in first])
    return Agreement(best, match.order[back], match.similarity[back])


def sentence(draws):
    """Say which topics the chains of draws by name share; nothing where there is one chain."""
    if "topics" not in draws or len(draws["topics"]) < 2:
        return ""
    return _shared(compare(draws["topics"], draws["log_likelihood"]))


def _shared(agreement):
    """Say which topics all chains share, and which they do not."""
    n_chains, n_topics = agreement.order.shape
    counts = agreement.n_chains
    everywhere = "both" if n_chains == 2 else f"all {n_chains}"
    parts = [f"{(counts == n_chains).sum()} of {n_topics} topics are in {everywhere} chains"]
    for n in range(n_chains - 1, 0, -1):
        few = np.flatnonzero(counts == n)
        if len(few):
            names = ", ".join(map(str, few))
            word = "topic" if len(few) == 1 else "topics"
            verb = "is" if len(few) == 1 else "are"
            where = "in one chain only" if n == 1 else f"in {n}"
            parts.append(f"{word} {names} {verb} {where}")
    return "; ".join(parts)


class TopicChains:
    """What a run of a topic model is judged by: chains give topics labels of their own."""

    identified: ClassVar[tuple[str, ...]] = ()
    has_labels: ClassVar = True
    rhat_limit: ClassVar = 1.05
    advice: ClassVar = watched.MODES

    def tell_chains(self, draws: Any) -> Any:
        """Say which topics all chains share."""
        return sentence(draws)

    def watch(self, shards: Any) -> Any:
        """Judge a run by what needs no labels."""
        return watched.ShareWatch.of(shards)
