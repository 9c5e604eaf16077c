"""Figure 2: correlations of topics, and predictive log-likelihood against time (section 3).

The setting is that of the paper's code: AP with 100 topics and 20 Newsgroups with 50, the 1000 most frequent
words. Where AP is not to be had, the bundled State of the Union stands in.
"""

import time
from typing import NamedTuple

import numpy as np

from polystick import datasets, scores
from polystick.paper import topic_curves
from polystick.paper.parts import Line, Part, judged, judged_above_zero
from polystick.paper.topic_correlation import Correlations, correlation_lines, correlation_picture
from polystick.paper.topic_curves import EM, FLAT, LEARNED, SOFTMAX, STICKS, Corpus

AP, NEWSGROUPS, ADDRESSES = "AP News", "20 Newsgroups", "State of the Union"
PAPER_AXIS = "-2.60 to -2.47 (axis of the figure)"
NEAR = 0.02  # nats per word below the end of SB-CTM: a curve has arrived


class Settings(NamedTuple):
    """How large the experiment is."""

    n_words: int
    n_topics: tuple[int, int]  # AP, 20 Newsgroups
    most_documents: int | None
    n_sweeps: tuple[int, int, int]  # SB-CTM, LN-CTM, LDA
    thin: int
    em_sweeps: tuple[int, ...]  # of runs of variational EM

    def described(self, tasks):
        sticks, softmax, dirichlet = self.n_sweeps
        corpora = "; ".join(
            f"{t.corpus.name}: {t.seen.shape[0]} documents, {self.n_words} words, {t.corpus.n_topics} "
            f"topics, {t.held_out.shape[0]} test documents, {t.held_out.sum()} of their words held out"
            for t in tasks
        )
        return {
            "corpora": corpora
            + " (the paper's code: all documents, 1000 words, 100 topics on AP and 50 on "
            "20 Newsgroups, 5 % and 10 % for the test)",
            "sweeps": f"SB-CTM {sticks}, LN-CTM {softmax}, LDA {dirichlet} (the paper's code on AP: 1500, "
            f"200, 1000); EM up to {self.em_sweeps[-1]}; one chain, one split of the words",
            "scores": "half of the words of test documents are held out, the rest is learned from with all "
            "documents; averages over the later half of the draws so far",
            "models": "SB-CTM is CorrelatedTopicModel as it comes: a balanced tree of topics instead of the "
            "paper's sticks, a covariance whose scale is learned, and a start of at most 600 sweeps of "
            "collapsed LDA; LN-CTM has weak proper priors of mean and covariance and the same start",
            "priors": "topics: Dirichlet of 0.05 (20 Newsgroups 0.1), as the paper's code",
            "time": "CPU seconds of all threads, start included, compiler not",
        }


QUICK = Settings(
    n_words=1000,
    n_topics=(50, 50),
    most_documents=3000,
    n_sweeps=(320, 320, 320),
    thin=4,
    em_sweeps=(4, 16, 64),
)
FULL = Settings(
    n_words=1000,
    n_topics=(100, 50),
    most_documents=None,
    n_sweeps=(1500, 1500, 1000),
    thin=15,
    em_sweeps=(2, 4, 8, 16, 32, 64, 128),
)


def run(full, say, settings=None):
    """Fit five topic models to two corpora."""
    start = time.perf_counter()
    settings = settings or (FULL if full else QUICK)
    corpora, absent = load(settings, say)
    tasks = [topic_curves.hold_out(corpus) for corpus in corpora]
    topic_curves.compile_all(tasks[0])
    found = [topic_curves.curves(task, settings, say) for task in tasks]
    correlations = Correlations.of(corpora[0], found[0][0].fitted)
    pictures = [
        correlation_picture(correlations, corpora[0]),
        topic_curves.picture(tasks, found),
    ]
    lines = correlation_lines(correlations, corpora[0], corpora[0].name == AP)
    for task, its_curves in zip(tasks, found):
        lines += curve_lines(task, its_curves)
    seconds = time.perf_counter() - start
    title = "Figure 2: correlated topics"
    reading = _reading(tasks, found, absent)
    described = settings.described(tasks)
    return Part("topics", title, described, pictures, lines, reading, seconds)


def load(settings, say):
    """Return the corpora that are to be had, and sentences on those that are not."""
    absent = []
    corpora = []
    for loader in (_load_ap, _load_newsgroups):
        try:
            corpora.append(loader(settings))
        except (FileNotFoundError, ImportError) as error:  # no file, nor a way to download it
            absent.append(str(error))
            say(str(error))
            if loader is _load_ap:
                corpora.append(_load_addresses(settings))
    return corpora, absent


def _load_ap(settings):
    found = datasets.load_ap(settings.n_words, kind="bag")
    return _corpus(AP, found, settings, settings.n_topics[0], 0.05, 0.05)


def _load_newsgroups(settings):
    found = datasets.load_20newsgroups(n_words=settings.n_words)
    return _corpus(NEWSGROUPS, found, settings, settings.n_topics[1], 0.1, 0.1)


def _load_addresses(settings):
    return _corpus(
        ADDRESSES, datasets.load_state_of_the_union(), settings, settings.n_topics[0], 0.05, 0.05
    )


def _corpus(name, found, settings, n_topics, concentration, test_share):
    counts = found.counts[:, : settings.n_words]
    words = found.words[: settings.n_words]
    if settings.most_documents is not None and counts.shape[0] > settings.most_documents:
        rng = np.random.default_rng(topic_curves.SEED)
        counts = counts[np.sort(rng.permutation(counts.shape[0])[: settings.most_documents])]
    return Corpus(name, counts, words, n_topics, concentration, test_share)


# lines


def curve_lines(task, its_curves):
    """Return lines on where the curves end, and on how fast."""
    corpus, by_model = task.corpus, {curve.model: curve for curve in its_curves}
    known = corpus.name != ADDRESSES
    sticks = by_model[STICKS]
    end, coefficient = sticks.table.iloc[-1], task.coefficient()
    whole = sticks.best_draw + scores.log_coefficients(task.held_out)
    own = scores.bootstrap_difference(whole, np.zeros(len(whole)), task.held_out)
    lines = [
        Line(
            f"{corpus.name}: SB-CTM at its end, with the multinomial coefficient (nats per word)",
            PAPER_AXIS if corpus.name == AP else "figure only",
            f"{end.joint + coefficient:.3f}",
            f"{own.standard_error:.3f} (choice of documents, of the best draw)",
            "not comparable",
            f"The coefficient alone is {coefficient:+.3f}; on the usual axis it is {end.usual:.3f}, a "
            f"perplexity of {np.exp(-end.usual):.0f}."
            + (
                " The paper's code divides by 4632 words, whatever the split."
                if corpus.name == AP
                else ""
            ),
        )
    ]
    for model in (SOFTMAX, EM, FLAT, LEARNED):
        lines.append(_against(task, sticks, by_model[model], known))
    return [*lines, _speed(corpus, by_model, known)]


def _against(task, sticks, other, known):
    gap = scores.bootstrap_difference(sticks.documents, other.documents, task.held_out)
    at_end = other.table.iloc[-1]
    verdict = judged_above_zero(gap.estimate, gap.standard_error)
    words = {FLAT: " This is the paper's LDA: its code adds 1 to the count of each topic.",
             LEARNED: " Not in the paper: the same LDA with a prior that is learned.",
             SOFTMAX: " The paper's was still climbing when it was stopped after 200 sweeps."}  # fmt: skip
    why = f"{other.model} ends at {at_end.usual:.3f} after {at_end.sweeps:.0f} sweeps."
    best = other.table.loc[other.table.usual.idxmax()]
    if best.usual > at_end.usual + NEAR:
        why += f" On its way, after {best.sweeps:.0f}, it was at {best.usual:.3f}."
    why += " Two standard errors do not tell them apart." if verdict == "undecided" else ""
    if other.model == LEARNED or not known:
        verdict = "not in the paper"
    return Line(
        f"{task.corpus.name}: SB-CTM over {other.model}, usual axis (nats per word)",
        "above 0 (figure)" if known and other.model != LEARNED else "",
        f"{gap.estimate:+.3f}",
        f"{gap.standard_error:.3f}",
        verdict,
        why + words.get(other.model, ""),
    )


def arrival(curve, target):
    """Return the CPU seconds after which a curve stays above a score, or None."""
    below = np.flatnonzero(curve.table.usual < target)
    first = below[-1] + 1 if len(below) else 0
    return curve.table.seconds.iloc[first] if first < len(curve.table) else None


def _speed(corpus, by_model, known):
    target = by_model[STICKS].table.usual.iloc[-1] - NEAR
    times = {model: arrival(by_model[model], target) for model in (STICKS, SOFTMAX)}
    longest = by_model[SOFTMAX].table.seconds.iloc[-1]
    softmax = f"{times[SOFTMAX]:.1f} s" if times[SOFTMAX] else f"not within {longest:.0f} s"
    per_sweep = {
        model: 1e3 * curve.table.seconds.iloc[-1] / curve.table.sweeps.iloc[-1]
        for model, curve in by_model.items()
    }
    sooner = (times[SOFTMAX] or longest) > 2 * times[STICKS]
    verdict = judged(sooner) if sooner or times[SOFTMAX] else "undecided"
    return Line(
        f"{corpus.name}: CPU time to within {NEAR} nats of SB-CTM's end, SB-CTM / LN-CTM",
        "LN-CTM is far slower (figure)" if known else "",
        f"{times[STICKS]:.1f} s / {softmax}",
        "one run",
        verdict if known else "not in the paper",
        "A sweep takes "
        + ", ".join(f"{t:.0f} ms ({model})" for model, t in per_sweep.items())
        + ". The paper's LN-CTM draws psi in interpreted Python; both are compiled here.",
    )


def _reading(tasks, found, absent):
    pieces = []
    for task, its_curves in zip(tasks, found):
        usual, joint = (_order(its_curves, kind) for kind in ("usual", "joint"))
        pieces.append(
            f"On {task.corpus.name} the curves end in this order (nats per word): {usual}. On the paper's "
            f"axis, coefficient left out, it is {joint}."
        )
    gaps = [
        scores.bootstrap_difference(c[0].documents, c[-1].documents, t.held_out).estimate
        for t, c in zip(tasks, found)
    ]
    flat = [
        scores.bootstrap_difference(c[0].documents, c[-2].documents, t.held_out).estimate
        for t, c in zip(tasks, found)
    ]
    pieces.append(
        "The paper compares with an LDA whose prior has one pseudo-count for each topic in each document, "
        f"and SB-CTM's distance to that is {_listed(flat)} nats per word; to an LDA that learns its prior it "
        f"is {_listed(gaps)}. The coefficient shifts all curves of a corpus by one number, so it "
        "changes no order, but it makes scores look like perplexities near 12. What changes the order is "
        "that the paper's axis averages the probability of all words at once: a sampler is then judged by "
        "its best single draw, EM by expected shares."
    )
    return " ".join([*pieces, *(f"Not done: {sentence}" for sentence in absent)])


def _order(its_curves, kind):
    ends = sorted(((c.table[kind].iloc[-1], c.model) for c in its_curves), reverse=True)
    return ", ".join(f"{model} {value:.3f}" for value, model in ends)


def _listed(values):
    return " and ".join(f"{value:+.3f}" for value in values)
