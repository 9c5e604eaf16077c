"""Held-out words of documents against CPU time, for five topic models (figure 2, middle and right).

A test document's words are split in two; one half is learned from with all other documents, the other half
is scored. A curve has at each time the average over the later half of the posterior draws up to then.
"""

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from polystick import (
    LDA,
    CorrelatedTopicModel,
    Gibbs,
    LogisticNormalTopicModel,
    MeanField,
    plots,
    scores,
)
from polystick.paper.parts import Picture
from polystick.paper.time_axis import show_seconds

STICKS, SOFTMAX, EM = "SB-CTM (Gibbs)", "LN-CTM (Gibbs)", "CTM (variational EM)"
FLAT, LEARNED = "LDA, α = 1", "LDA, α learned"
MODELS = (STICKS, SOFTMAX, EM, FLAT, LEARNED)
LOOKS = dict(zip(MODELS, zip(plots.COLOURS[:4] + plots.COLOURS[5:6], "os^Dv")))
BURN = 20  # first sweeps, of which no curve tells
LEARNING = 100  # sweeps in which LDA learns alpha, of which no curve tells
N_POINTS = 16  # of a curve
MOST_BYTES = 2**31
SEED = 0


class Corpus(NamedTuple):
    """Documents, and the settings of the paper's code for them."""

    name: str
    counts: Any  # CSR (n, V)
    words: np.ndarray
    n_topics: int
    concentration: float  # of topics
    test_share: float


class Task(NamedTuple):
    """What is learned from and what is scored."""

    corpus: Corpus
    seen: Any  # CSR (n, V): whole documents, then the seen halves of test documents
    held_out: Any  # CSR (n_test, V)

    def coefficient(self):
        """Return the log of the multinomial coefficients per held-out word."""
        return scores.per_count(scores.log_coefficients(self.held_out), self.held_out)


class Curve(NamedTuple):
    """Scores of a model over time, in nats per word without the multinomial coefficient."""

    model: str
    table: pd.DataFrame  # seconds (CPU), sweeps, usual, joint
    documents: np.ndarray  # (n_test,) log likelihoods at the end, by the usual score
    best_draw: np.ndarray  # (n_test,) those of the draw that has the largest in all
    fitted: Any


def hold_out(corpus, seed=SEED):
    """Split the words of test documents."""
    n = corpus.counts.shape[0]
    order = np.random.default_rng(seed).permutation(n)
    n_test = round(corpus.test_share * n)
    test, rest = np.sort(order[:n_test]), np.sort(order[n_test:])
    shown, held_out = scores.split_words(corpus.counts[test], 0.5, seed)
    seen = scipy.sparse.vstack([corpus.counts[rest], shown], format="csr")
    return Task(corpus, scipy.sparse.csr_array(seen), held_out)


class Clock:
    """CPU seconds since the start, sweep by sweep."""

    def __init__(self):
        self.start, self.ticks = time.process_time(), []

    def __call__(self, progress):
        self.ticks.append(time.process_time() - self.start)


def compile_all(task):
    """Run each model for a moment, so that no curve starts with a compiler."""
    small = Task(task.corpus._replace(n_topics=3), task.seen[:64], task.held_out[:0])
    for face in (CorrelatedTopicModel, LogisticNormalTopicModel, LDA):
        _fit(face, small, Gibbs(n_draws=1, n_burn=2, n_chains=1))
    _fit(LogisticNormalTopicModel, small, MeanField(max_sweeps=2, n_draws=1))


def curves(task, settings, say):
    """Return the curves of all models on a corpus."""
    sticks, softmax, dirichlet = settings.n_sweeps
    found = []
    for model in MODELS:
        if model == STICKS:
            curve = _sampled(model, CorrelatedTopicModel, task, sticks, settings.thin)
        elif model == SOFTMAX:
            curve = _sampled(model, LogisticNormalTopicModel, task, softmax, settings.thin)
        elif model == EM:
            curve = _climbed(task, settings.em_sweeps)
        elif model == FLAT:
            curve = _sampled(model, LDA, task, dirichlet, settings.thin, alpha=1.0)
        else:
            burn = min(LEARNING, dirichlet // 2)
            curve = _sampled(model, LDA, task, dirichlet, settings.thin, burn)
        end = curve.table.iloc[-1]
        say(
            f"{task.corpus.name}: {model}, {end.usual:.3f} nats per word after {end.seconds:.0f} s of CPU"
        )
        found.append(curve)
    return found


def _fit(face, task, inference, clock=False, **options):
    corpus = task.corpus
    model = face(
        corpus.n_topics,
        topic_concentration=corpus.concentration,
        inference=inference,
        random_state=SEED,
        progress=clock,
        **options,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # EM is stopped on its way
        return model.fit(task.seen)


def _sampled(name, face, task, n_sweeps, thin, burn=BURN, **options):
    """Return the curve of a Gibbs sampler."""
    n_draws = (n_sweeps - burn) // thin
    keep = {"keep": ("proportions",), "max_bytes": MOST_BYTES}
    clock = Clock()
    inference = Gibbs(n_draws=n_draws, n_burn=burn, thin=thin, n_chains=1, **keep)
    model = _fit(face, task, inference, clock, **options)
    logs = cell_logs(model.posterior_["proportions"][0], model.posterior_["topics"][0], task)
    rows = []
    for stop in stops(n_draws):
        sweeps = burn + thin * stop
        rows.append((clock.ticks[sweeps - 1], sweeps, *averages(logs[stop // 2 : stop], task)))
    later = logs[n_draws // 2 :]
    return Curve(name, _table(rows), _documents(later, task), _best_draw(later, task), model)


def _climbed(task, all_sweeps):
    """Return the curve of variational EM, by runs of more and more sweeps."""
    rows = []
    for n_sweeps in all_sweeps:
        clock = Clock()
        inference = MeanField(max_sweeps=n_sweeps, n_draws=1)
        model = _fit(LogisticNormalTopicModel, task, inference, clock)
        shares, topics = model.posterior_.running("proportions")[0], model.posterior_["topics"][0]
        logs = cell_logs(shares[None], topics, task)
        rows.append((clock.ticks[-1], model.n_iter_, *averages(logs, task)))
        if model.n_iter_ < n_sweeps:  # it has settled
            break
    return Curve(EM, _table(rows), _documents(logs, task), _best_draw(logs, task), model)


def stops(n_draws):
    """Return numbers of draws, evenly on a logarithmic scale."""
    return np.unique(np.geomspace(1, n_draws, min(N_POINTS, n_draws)).round().astype(int))


def cell_logs(proportions, topics, task):
    """Return the log probability of each cell of the held-out words under each draw, (draws, cells)."""
    test = proportions[:, -task.held_out.shape[0] :]
    draws = [
        scores.token_log_probabilities([share], [topic], task.held_out)
        for share, topic in zip(test, topics)
    ]
    return np.stack(draws)


def averages(logs, task):
    """Return nats per word: each word's probability averaged over draws, and that of all words at once.

    The second is what the paper's code does, but for the coefficient: in effect it is the best draw's.
    """
    counts = task.held_out.data
    each = counts @ scores.log_mean_exp(logs, axis=0)
    return each / counts.sum(), scores.log_mean_exp(logs @ counts, axis=0) / counts.sum()


def _documents(logs, task):
    """Return the log likelihood of each test document's held-out words, (n_test,)."""
    held_out = task.held_out
    rows = np.repeat(np.arange(held_out.shape[0]), np.diff(held_out.indptr))
    weighted = scores.log_mean_exp(logs, axis=0) * held_out.data
    return np.bincount(rows, weighted, minlength=held_out.shape[0])


def _best_draw(logs, task):
    return _documents(logs[[np.argmax(logs @ task.held_out.data)]], task)


def _table(rows):
    return pd.DataFrame(rows, columns=["seconds", "sweeps", "usual", "joint"])


def picture(tasks, found):
    """Draw the curves of corpora: found is a list of lists of curves."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 7), layout="constrained")
    axes = figure.subplots(2, len(tasks), squeeze=False, sharex="col")
    tables = []
    for column, task, its_curves in zip(axes.T, tasks, found):
        for curve in its_curves:
            table = curve.table.assign(paper=curve.table.joint + task.coefficient())
            colour, mark = LOOKS[curve.model]
            looks = {"color": colour, "marker": mark, "ms": 4, "lw": 1.4, "label": curve.model}
            for ax, kind in zip(column, ("usual", "paper")):
                ax.plot(table.seconds, table[kind], **looks)
                ax.axhline(table[kind].iloc[-1], color=colour, lw=0.7, ls="--", alpha=0.6)
            table.insert(0, "model", curve.model)
            table.insert(0, "corpus", task.corpus.name)
            tables.append(table)
        column[0].set(title=task.corpus.name)
        show_seconds(column[1])
        for ax, kind in zip(column, ("usual", "paper")):
            _zoom(ax, its_curves, kind, task)
            ax.grid(alpha=0.3)
    axes[0, 0].set_ylabel("log-likelihood (nats per word)")
    axes[1, 0].set_ylabel("all words at once, with multinomial\ncoefficient (nats per word)")
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3)
    caption = (
        "Held-out words of test documents against CPU time; dashed, where each curve ends. Top: the usual "
        "score, log of the predictive probability of a word. Bottom: the paper's axis, which averages "
        "the probability of all words at once, in effect the best draw's, and adds the multinomial "
        "coefficient; EM has no draws, but expected shares. Axes start near where "
        "curves end, so early points may lie below."
    )
    title = "Predictive log-likelihood against time"
    return Picture("topics_time", title, caption, figure, pd.concat(tables, ignore_index=True))


def _zoom(ax, its_curves, kind, task):
    """Let the axis be about the ends of curves, whatever they were at first."""
    shift = task.coefficient() if kind == "paper" else 0.0
    values = [c.table["usual" if kind == "usual" else "joint"] + shift for c in its_curves]
    ends = np.array([v.iloc[-1] for v in values])
    room = max(np.ptp(ends), 0.05)
    lowest = max(min(v.min() for v in values), ends.min() - room)
    ax.set_ylim(lowest - 0.05 * room, max(v.max() for v in values) + 0.1 * room)
