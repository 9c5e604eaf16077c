"""Structural topics: what a sweep costs beside a plain one, and whether effects come out of short documents.

    python benchmarks/structural_topics.py            writes RESULTS_STRUCTURAL.md beside this file

Sweeps take turns in one process, CPU time of one thread. For the effects 300 documents of 30 tokens are drawn
from the model with 6 topics, a covariate of two values and a continuous one, again and again. What is told of
them is the average change of each topic's share with the first, and its average slope in the second, against
the truth that the drawn parameters give for the same documents. Two others see the same corpora: the model
with a chain that starts at the truth, so that topics have the order on the tree in which they were drawn, and
what people do without a structural model: a plain topic model, and least squares on the shares that it says
documents have.
"""

import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.stats import t as student
from sklearn.exceptions import ConvergenceWarning
from timing import in_turns

from polystick import CorrelatedTopicModel, Gibbs
from polystick.decomposition import decompose
from polystick.inference.moving import moved
from polystick.inference.sums import total
from polystick.keys import Key
from polystick.models.regressed_shares import RegressedShares
from polystick.models.topic_factors import assemble
from polystick.models.topic_shares import NormalShares, Sticks
from polystick.models.topic_words import DirichletWords
from polystick.models.topics import TopicModel
from polystick.population import LearnedScale

HERE = Path(__file__).parent
N, N_TOKENS, N_TOPICS, N_WORDS = 300, 30, 6, 150
N_REPLICATES, LEVEL, FOUND = 20, 0.9, 0.8
SCHEDULE, ONE_CHAIN = Gibbs(300, 300, n_chains=3), Gibbs(300, 300, n_chains=1)
SIZES = ((1000, 100, 20, 6), (2000, 60, 50, 12))  # documents, tokens, topics, columns of covariates
SWEEPS, REPEATS, N_BURN = 4, 9, 20


# what a sweep costs


def sweeps(n, n_tokens, n_topics, n_columns):
    """Return CPU seconds of a plain and of a structural sweep of a corpus."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((n, n_columns))
    tree = decompose("balanced", n_categories=n_topics)
    law = LearnedScale(tree.dirichlet_moments(1.0)[0], scale=1.0)
    structural = RegressedShares(law, np.arange(n_columns), np.eye(n_columns))
    words = DirichletWords(2000, 0.05)
    shares = rng.dirichlet(np.full(n_topics, 0.3), n)
    counts = rng.multinomial(n_tokens, shares @ rng.dirichlet(np.full(2000, 0.05), n_topics))
    chains = [
        Chain(assemble(words, part, Sticks(tree)), counts, given)
        for part, given in ((NormalShares(law), {}), (structural, {"covariates": x}))
    ]
    for chain in chains:
        chain.sweep(N_BURN)
    found = in_turns(*(partial(chain.sweep, SWEEPS) for chain in chains), repeats=REPEATS)
    return [seconds / SWEEPS for seconds in found]


class Chain:
    """Gibbs sweeps of a model as the schedule makes them on one thread, but without records."""

    def __init__(self, model, counts, given):
        key = Key(1)
        self.model, self.shards, self.n_sweeps = model, model.shards(counts, **given), 0
        self.parameters = model.initial_parameters(self.shards, key)
        prior = model.prepare(self.parameters)
        self.rows = [model.initial_rows(prior, shard, key) for shard in self.shards]

    def sweep(self, n_sweeps):
        for _ in range(n_sweeps):
            self.n_sweeps += 1
            self._sweep(Key(1, self.n_sweeps))

    def _sweep(self, key):
        model, parameters = self.model, self.parameters
        parameters, rows = moved(model, parameters, self.shards, self.rows, key)
        prior = model.prepare(parameters)
        found = [model.draw_rows(prior, *each, key) for each in zip(self.shards, rows)]
        self.rows = [drawn for drawn, _ in found]
        statistics = total((sums for _, sums in found), len(found))
        self.parameters = model.draw_parameters(parameters, statistics, key)


# whether effects come out


def corpus(seed):
    """Return counts, covariates, and the average effects (2, T) of the parameters that made them."""
    rng = np.random.default_rng([seed, 18])
    frame = pd.DataFrame({"party": rng.choice(["D", "R"], N), "age": rng.standard_normal(N)})
    tree = decompose("balanced", n_categories=N_TOPICS)
    k = N_TOPICS - 1
    law = LearnedScale(tree.dirichlet_moments(1.0)[0])
    shares = RegressedShares(law, np.array([0, 1]), np.eye(2))
    model = assemble(DirichletWords(N_WORDS, 0.05), shares, Sticks(tree))
    parameters = model.simulate(np.zeros(2, int), rng, covariates=np.zeros((2, 2)))[0]
    root = 0.3 * rng.standard_normal((k, k)) + 0.6 * np.eye(k)
    cov = root @ root.T
    parameters = parameters._replace(
        mean=0.5 * rng.standard_normal(k),
        coefficients=np.stack([0.6 * rng.standard_normal(k), 0.4 * rng.standard_normal(k)]),
        cov=cov,
        precision=np.linalg.inv(cov),
    )
    x = np.column_stack([np.where(frame.party == "R", 1.0, -1.0), frame.age])
    line = parameters.mean + x @ parameters.coefficients
    psi = line + rng.standard_normal((N, k)) @ np.linalg.cholesky(cov).T
    totals = np.full(N, N_TOKENS)
    counts = model.simulate_tokens(parameters, psi, totals, rng, covariates=x)[1]
    state = {name: getattr(parameters, name) for name in shares.told}
    at = partial(average, model, state)
    sides = [np.column_stack([np.full(N, side), frame.age]) for side in (-1.0, 1.0)]
    ages = [np.column_stack([x[:, 0], frame.age + step]) for step in (-1e-3, 1e-3)]
    truth = np.stack([at(sides[1]) - at(sides[0]), (at(ages[1]) - at(ages[0])) / 2e-3])
    topics = model.words.describe(parameters)["topics"].astype(float)
    return counts, frame, truth, topics / topics.sum(axis=1, keepdims=True), parameters


def average(model, state, covariates):
    return model.expected_shares(state, 512, covariates=covariates).mean(axis=0)


def names(found, truth):
    """Return which topic found each true topic is, by their cosine, and whether all have one like them."""
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (truth, found)]
    alike = unit[0] @ unit[1].T
    order = linear_sum_assignment(-alike)[1]
    return order, (alike[np.arange(len(order)), order] > FOUND).all()


def structural(counts, frame, *unused):
    model = fit(CorrelatedTopicModel(N_TOPICS, prevalence="party + age"), counts, frame)
    return told(model)


def told(model):
    tables = [model.effects("party"), model.effects("age", change="slope")]
    return [np.stack([table[name] for table in tables]) for name in _COLUMNS], model.topics_


_COLUMNS = ("estimate", "lower", "upper")


def structural_from_truth(counts, frame, truth, topics, parameters):
    model = fit(StartedAtTruth(N_TOPICS, prevalence="party + age"), counts, frame, parameters)
    return told(model)


def fit(model, counts, frame=None, parameters=None):
    schedule = SCHEDULE if parameters is None else ONE_CHAIN
    model.set_params(inference=schedule, random_state=1, n_jobs=1, progress=False)
    model.at_start_ = parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(counts) if frame is None else model.fit(counts, covariates=frame)


class StartedAtTruth(CorrelatedTopicModel):
    def _make_model(self, counts):
        made = super()._make_model(counts)
        found = Started(made.words, made.shares, made.link)
        object.__setattr__(found, "at_start", self.at_start_)
        return found


class Started(TopicModel):
    """A model whose chains start at the topics and the level that made the corpus."""

    def initial_parameters(self, shards, key):
        drawn = super().initial_parameters(shards, key)
        kept = ("mean", "cov", "precision", "topics", "sizes")
        return drawn._replace(**{name: getattr(self.at_start, name) for name in kept})


def two_steps(counts, frame, *unused):
    """Return least squares on shares of a plain topic model, with their usual intervals."""
    model = fit(CorrelatedTopicModel(N_TOPICS), counts)
    shares = model.document_topics().to_numpy()
    x = np.column_stack([np.ones(N), np.where(frame.party == "R", 1.0, 0.0), frame.age])
    weights = np.linalg.lstsq(x, shares, rcond=None)[0]
    rest = shares - x @ weights
    variance = np.square(rest).sum(axis=0) / (N - 3)
    error = np.sqrt(np.outer(np.diag(np.linalg.inv(x.T @ x)), variance))[1:]
    wide = student.ppf(0.5 + LEVEL / 2, N - 3) * error
    return [weights[1:], weights[1:] - wide, weights[1:] + wide], model.topics_


METHODS = {
    "structural, topics in their own order": structural,
    "structural, started at the truth": structural_from_truth,
    "plain topics, then least squares": two_steps,
}


def recovery(n_replicates=N_REPLICATES):
    """Return name -> (truth, estimate, lower, upper), each (replicates, 2, T); where topics were found."""
    found, whole = {name: [] for name in METHODS}, {name: [] for name in METHODS}
    for seed in range(n_replicates):
        made = corpus(seed)
        _, _, truth, topics, _ = made
        for name, method in METHODS.items():
            values, own = method(*made)
            order, is_whole = names(own, topics)
            whole[name].append(is_whole)
            found[name].append([truth, *(value[:, order] for value in values)])
        print(
            seed, *(line(name, *np.stack(each, axis=1)) for name, each in found.items()), flush=True
        )
    return {
        name: (np.stack(values, axis=1), np.array(whole[name])) for name, values in found.items()
    }


def line(name, truth, estimate, lower, upper):
    """Return slopes of estimates in the truth, and the coverage of intervals, of both covariates."""
    covered = ((lower <= truth) & (truth <= upper)).mean(axis=(0, 2))
    slope = (truth * estimate).sum(axis=(0, 2)) / np.square(truth).sum(axis=(0, 2))
    error = np.sqrt(np.square(estimate - truth).mean(axis=(0, 2)))
    width = (upper - lower).mean(axis=(0, 2))
    cells = [f"{a:.{d}f} / {b:.{d}f}" for (a, b), d in
             ((slope, 2), (covered, 2), (error, 3), (width, 3))]  # fmt: skip
    return f"| {name} | " + " | ".join(cells) + " |"


def report():
    lines = [
        "# Structural topics",
        "",
        "Written by `python benchmarks/structural_topics.py`.",
        "",
        "## A sweep beside a plain one, CPU time of one thread",
        "",
        "| documents x tokens, topics, columns | plain | structural | ratio (at most 1.10) |",
        "|---|---|---|---|",
    ]
    for n, n_tokens, n_topics, n_columns in SIZES:
        plain, ours = sweeps(n, n_tokens, n_topics, n_columns)
        case = f"{n} x {n_tokens}, {n_topics}, {n_columns}"
        lines.append(
            f"| {case} | {1e3 * plain:.1f} ms | {1e3 * ours:.1f} ms | {ours / plain:.3f} |"
        )
        print(lines[-1], flush=True)
    n_intervals = N_REPLICATES * N_TOPICS
    lines += [
        "",
        f"## Average effects from {N} documents of {N_TOKENS} tokens, {N_TOPICS} topics",
        "",
        f"{N_REPLICATES} corpora from the model, {n_intervals} intervals of {LEVEL:.0%} for each covariate: "
        "of two values / continuous. The slope is that of the estimates in the truth, to be 0.95 at least; "
        "coverage 0.85 at least. Three chains each, of which the likeliest tells; a corpus has all topics "
        f"where each true one has a cosine above {FOUND} with its own.",
        "",
        "| | slope | coverage | root mean square error | width |",
        "|---|---|---|---|---|",
    ]
    for name, (values, whole) in recovery().items():
        lines.append(line(name, *values))
        if whole.any() and not whole.all():
            lines.append(line(f"{name}: the {whole.sum()} with all topics", *values[:, whole]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = report()
    (HERE / "RESULTS_STRUCTURAL.md").write_text(text)
    print(text)
