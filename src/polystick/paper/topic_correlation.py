"""Correlations of the topics' log shares (figure 2, left), found from the data."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from polystick import plots
from polystick.paper.parts import Line, Picture, judged

N_SHOWN, N_WORDS, N_LABEL = 30, 4, 3
DECENT = 0.5  # of the size that all topics would have, were they equal
INTERVAL = (0.05, 0.95)
PAPER_PAIRS = (
    (("house", "committee", "congress", "law"), ("bush", "dukakis", "president", "campaign"), 1),
    (("percent", "year", "billion", "rate"), ("court", "case", "attorney", "judge"), -1),
)
TINY = np.finfo(np.float64).tiny


class Pair(NamedTuple):
    """Two topics and their correlation."""

    i: int
    j: int
    mean: float
    lower: float
    upper: float


class Correlations(NamedTuple):
    """Correlations over documents of the topics' log shares: mean and interval over posterior draws."""

    mean: np.ndarray  # (T, T)
    lower: np.ndarray
    upper: np.ndarray
    shares: np.ndarray  # (T,) of tokens
    topics: np.ndarray  # (T, V)

    @classmethod
    def of(cls, corpus, fitted):
        """Take the later half of a chain."""
        posterior = fitted.posterior_
        later = slice(posterior["share"].shape[1] // 2, None)
        drawn = [
            np.corrcoef(np.log(np.maximum(shares, TINY)), rowvar=False)
            for shares in posterior["proportions"][0, later]
        ]
        lower, upper = np.quantile(drawn, INTERVAL, axis=0)
        topics = posterior["topics"][0, later].mean(axis=0, dtype=np.float64)
        return cls(
            np.mean(drawn, axis=0), lower, upper, posterior["share"][0, later].mean(0), topics
        )

    def pair(self, i, j):
        return Pair(int(i), int(j), self.mean[i, j], self.lower[i, j], self.upper[i, j])

    def extreme(self, sign):
        """Return the most positively (negatively) correlated pair among topics of decent size."""
        T = len(self.shares)
        decent = self.shares > DECENT / T
        allowed = decent[:, None] & decent & ~np.eye(T, dtype=bool)
        return self.pair(
            *np.unravel_index(np.argmax(np.where(allowed, sign * self.mean, -2)), (T, T))
        )

    def words_of(self, topic, words, n_words=N_WORDS):
        return ", ".join(words[np.argsort(-self.topics[topic], kind="stable")[:n_words]])

    def closest(self, wanted, words):
        """Return the topic under which these words are likeliest, or None where one is unknown."""
        places = [np.flatnonzero(words == word) for word in wanted]
        known = [place[0] for place in places if len(place)]
        if len(known) < len(wanted):
            return None
        return int(np.log(np.maximum(self.topics[:, known], TINY)).sum(axis=1).argmax())


def correlation_picture(found, corpus):
    """Draw the correlations of the largest topics, with the two extreme pairs marked."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    marked = {"a": found.extreme(1), "b": found.extreme(-1)}
    of_pairs = [t for pair in marked.values() for t in (pair.i, pair.j)]
    largest = np.argsort(-found.shares, kind="stable")[:N_SHOWN]
    shown = np.unique([*of_pairs, *largest])
    order = shown[_alike(found.mean[np.ix_(shown, shown)])]
    labels = [found.words_of(topic, corpus.words, N_LABEL) for topic in order]
    figure = Figure(figsize=(8, 7.4), layout="constrained")
    ax = figure.subplots()
    matrix = pd.DataFrame(found.mean[np.ix_(order, order)], index=labels, columns=labels)
    plots.correlation(matrix, ax=ax, cluster=False, label="correlation of log shares")
    ax.set_xticks([])
    ax.set_yticks(range(len(order)), labels, fontsize=7)
    where = {topic: place for place, topic in enumerate(order.tolist())}
    for letter, pair in marked.items():
        for y, x in ((where[pair.i], where[pair.j]), (where[pair.j], where[pair.i])):
            box = Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor="black", linewidth=2)
            ax.add_patch(box)
        x, y = max(where[pair.i], where[pair.j]), min(where[pair.i], where[pair.j])
        text = ax.annotate(letter, (x + 0.5, y - 0.5), (2, 1), textcoords="offset points")
        text.set(fontsize=12, fontweight="bold")
    ax.set_xlabel("\n".join(_told(letter, p, found, corpus) for letter, p in marked.items()))
    caption = (
        f"Correlations over documents of the log shares of {len(order)} of {len(found.shares)} topics of "
        f"SB-CTM on {corpus.name}, alike ones side by side; a and b, the most positively and the most "
        "negatively correlated pair among topics of at least half the average size. Columns are in the "
        "order of the rows. Of independent topics, too, they would not be zero."
    )
    title = f"Correlations of topics, {corpus.name}"
    return Picture("topics_correlation", title, caption, figure, _table(found, order, labels))


def _told(letter, pair, found, corpus):
    first, second = (found.words_of(t, corpus.words) for t in (pair.i, pair.j))
    return f"{letter}: ({first}) and ({second}), {pair.mean:+.2f}"


def _alike(correlation):
    """Return an order in which topics with like correlations are side by side."""
    distance = np.clip(1 - correlation, 0, None)
    np.fill_diagonal(distance, 0.0)
    condensed = squareform((distance + distance.T) / 2, checks=False)
    return leaves_list(linkage(condensed, "average", optimal_ordering=True))


def _table(found, order, labels):
    rows = [
        (i, j, labels[a], labels[b], found.mean[i, j], found.lower[i, j], found.upper[i, j])
        for a, i in enumerate(order)
        for b, j in enumerate(order)
    ]
    names = ["topic", "topic_too", "words", "words_too", "correlation", "lower", "upper"]
    return pd.DataFrame(rows, columns=names)


def correlation_lines(found, corpus, in_paper):
    """Return lines on the extreme pairs, and on the topics nearest to the paper's."""
    lines = [_extreme_line(found, corpus, sign) for sign in (1, -1)]
    return (
        lines + [_paper_line(found, corpus, *pair) for pair in PAPER_PAIRS] if in_paper else lines
    )


def _extreme_line(found, corpus, sign):
    pair = found.extreme(sign)
    first, second = (found.words_of(t, corpus.words) for t in (pair.i, pair.j))
    which = "positive" if sign > 0 else "negative"
    return Line(
        f"{corpus.name}: the most {which} correlation between topics",
        "not told",
        f"({first}) and ({second}): {pair.mean:+.2f}",
        _interval(pair),
        "not in the paper",
        "Among topics of at least half the average size.",
    )


def _paper_line(found, corpus, first, second, sign):
    what = f"{corpus.name}: correlation of ({', '.join(first)}) and ({', '.join(second)})"
    paper = "positive" if sign > 0 else "negative"
    topics = [found.closest(wanted, corpus.words) for wanted in (first, second)]
    if None in topics or topics[0] == topics[1]:
        why = "One topic has the words of both, or a word is not in the vocabulary."
        return Line(what, paper, "no such pair", "", "not comparable", why)
    pair = found.pair(*topics)
    told = " and ".join(f"({found.words_of(t, corpus.words)})" for t in topics)
    holds = pair.lower > 0 if sign > 0 else pair.upper < 0
    why = f"Our topics nearest to these words: {told}."
    return Line(what, paper, f"{pair.mean:+.2f}", _interval(pair), judged(holds), why)


def _interval(pair):
    return f"90 % interval {pair.lower:+.2f} to {pair.upper:+.2f}"
