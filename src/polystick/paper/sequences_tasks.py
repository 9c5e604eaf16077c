"""The data of figure 4, the models, and how all of them are scored: by one estimator."""

import time
from typing import NamedTuple

import numpy as np
import pandas as pd

from polystick import Gibbs, MultinomialLDS, datasets
from polystick.baselines.sequence_models import (
    LogisticNormalLDS,
    MultinomialHMM,
    RawLDS,
    SmoothedUnigram,
)
from polystick.scores import bootstrap_difference, held_out_steps, log_mean_exp

N_DIMS = 10  # of the states; the HMM has as many states
N_BOOT = 1000
CLIP = 1e-8  # the least probability of the paper's baseline
PIECE, PIECE_TRAIN = 982, 682  # of the long DNA: symbols of a piece, and those to learn from

SBM, BALANCED, HMM, RAW, LNM = "SBM-LDS", "SBM-LDS, balanced tree", "HMM", "Raw LDS", "LNM-LDS"
UNIGRAM, ZERO = "Smoothed unigram", "Training frequencies"
FITTED = (SBM, BALANCED, HMM, RAW, LNM)
MODELS = (*FITTED, UNIGRAM)
SCORES = ("task", "model", "seed", "one_step", "joint", "cpu_seconds")


class Task(NamedTuple):
    """Sequences whose last tokens are held out, and the priors of the models for them."""

    name: str
    sequences: list
    n_held_out: int  # at the end of each
    n_categories: int
    emission_scale: float  # prior standard deviation, sticks
    softmax_variance: float  # prior variance of the emission, softmax
    mass: float  # of the HMM's emission prior, over all categories

    @property
    def train(self):
        return [each[: -self.n_held_out] for each in self.sequences]

    @property
    def held_out(self):
        return [each[-self.n_held_out :] for each in self.sequences]

    @property
    def n_seen(self):
        return [len(each) for each in self.train]

    @property
    def n_scored(self):
        """How many tokens are held out in all."""
        return self.n_held_out * len(self.sequences)

    @property
    def n_new(self):
        """How many held-out tokens are of a kind that is not in the training data."""
        return int((~np.isin(np.concatenate(self.held_out), np.concatenate(self.train))).sum())


class Plan(NamedTuple):
    """How long a model is drawn and how it is scored."""

    n_sweeps: int  # in each of two chains, the first half forgotten
    n_scored: int  # posterior draws that scores are averaged over
    n_seeds: int


# loaders

PRIORS = {  # emission_scale, softmax_variance, mass, as the paper's own runs had them
    "DNA": (0.1, 0.1, 1.0),
    "AP": (1.0, 1.0, 10.0),
    "Alice": (1.0, 1.0, 10.0),
}


def load_tasks():
    """Return the three of the paper."""
    dna, alice = datasets.load_dna(), datasets.load_alice(n_tokens=4000)
    articles = datasets.load_ap_sequences()
    return [
        Task("DNA", [dna.tokens], 10, len(dna.alphabet), *PRIORS["DNA"]),
        Task("AP", articles.tokens, 10, len(articles.words), *PRIORS["AP"]),
        Task("Alice", [alice.tokens], 100, len(alice.words), *PRIORS["Alice"]),
    ]


def load_pieces(n_pieces):
    """Return stretches of DNA, spread over what there is, with many more held-out symbols each."""
    dna = datasets.load_dna(None)
    starts = np.linspace(0, len(dna.tokens) - PIECE, n_pieces).astype(int)
    rest = (PIECE - PIECE_TRAIN, len(dna.alphabet), *PRIORS["DNA"])
    return [Task("DNA, longer", [dna.tokens[i : i + PIECE]], *rest) for i in starts]


# models


def make(name, task, inference, seed, n_jobs=None):
    """Return a model that is not fitted yet."""
    common = {"n_categories": task.n_categories, "random_state": seed}
    if name == UNIGRAM:
        return SmoothedUnigram(**common)
    common |= {"inference": inference, "n_jobs": n_jobs}
    if name in (SBM, BALANCED):
        how = "frequency" if name == SBM else "balanced"
        scale = task.emission_scale
        settings = {"emission_scale": scale, "bias_scale": 1.0, "memory": None}  # the paper's model
        return MultinomialLDS(N_DIMS, decomposition=how, **settings, **common)
    if name == LNM:
        return LogisticNormalLDS(N_DIMS, emission_scale=task.softmax_variance**0.5, **common)
    if name == RAW:
        return RawLDS(N_DIMS, **common)
    concentration = task.mass / task.n_categories
    return MultinomialHMM(N_DIMS, emission_concentration=concentration, **common)


def halves(n_sweeps, n_chains=2):
    """Return the schedule that forgets the first half, as the paper does."""
    return Gibbs(n_draws=max(1, n_sweeps // 2), n_burn=n_sweeps // 2, n_chains=n_chains)


# scores


def log_frequencies(task):
    """Return what the paper sets to zero: log (K,) of training frequencies, clipped and not smoothed."""
    counts = np.bincount(np.concatenate(task.train), minlength=task.n_categories)
    return np.log(np.maximum(counts / counts.sum(), CLIP))


def zero_score(task):
    """Return the score of the training frequencies, in nats per held-out token."""
    return float(log_frequencies(task)[np.concatenate(task.held_out)].mean())


def score_all(task, plans, say):
    """Fit and score each model with each seed.

    Returns
    -------
    scores : DataFrame with a line for each model and seed
    units : DataFrame with the log probability, one step ahead, of what the bootstrap draws anew
    """
    lines, units = [_zero_line(task)], [_zero_units(task)]
    for name, plan in _to_do(plans):
        for seed in range(plan.n_seeds):
            say(f"{task.name}, {name}, seed {seed}")
            line, values = _fit_and_score(task, name, plan, seed)
            lines.append(line)
            if seed == 0:
                units.append(_unit_table(task, name, values))
    return pd.DataFrame(lines, columns=SCORES), pd.concat(units, ignore_index=True)


def score_pieces(tasks, plans, say):
    """Fit and score each model on pieces of DNA, with one seed each: a line for each piece and model."""
    lines = []
    for number, task in enumerate(tasks):
        say(f"{task.name}, piece {number + 1} of {len(tasks)}")
        lines.append(_zero_line(task, number))
        lines += [_fit_and_score(task, name, plan, number)[0] for name, plan in _to_do(plans)]
    return pd.DataFrame(lines, columns=SCORES)


def _to_do(plans):
    """Yield names and plans of the models that are to be fitted; the unigram needs none."""
    for name in MODELS:
        plan = plans.get(name, Plan(0, 1, 1))
        if plan.n_sweeps or name == UNIGRAM:
            yield name, plan


def _fit_and_score(task, name, plan, seed):
    """Return a model's line of scores, in nats per held-out token, and log p of each, one step ahead."""
    start = time.process_time()
    model = make(name, task, halves(plan.n_sweeps), seed).fit(task.train)
    seconds = time.process_time() - start
    steps = model.score_steps(task.sequences, n_draws=plan.n_scored)
    ahead = [log_mean_exp(v[:, seen:], axis=0) for v, seen in zip(steps, task.n_seen)]
    if name == UNIGRAM:  # not by draws, but exactly
        joint = model.score_samples(task.sequences, n_seen=task.n_seen, joint=True)
    else:
        starts = np.cumsum([0, *map(len, task.sequences)])
        joint = held_out_steps(np.concatenate(steps, axis=1), starts, task.n_seen, joint=True)
    scores = [float(np.sum(values)) / task.n_scored for values in (ahead, joint)]
    return [task.name, name, seed, *scores, seconds], ahead


def _zero_line(task, seed=0):
    return [task.name, ZERO, seed, zero_score(task), zero_score(task), 0.0]


def _zero_units(task):
    logs = log_frequencies(task)
    return _unit_table(task, ZERO, [logs[each] for each in task.held_out])


def _unit_table(task, name, values):
    """Return what the bootstrap draws anew: sequences, or tokens of the only one; values are by sequence."""
    alone = len(values) == 1
    units = values[0] if alone else [each.sum() for each in values]
    n_tokens = 1 if alone else task.n_held_out
    columns = {"task": task.name, "model": name, "value": units, "n_tokens": n_tokens}
    return pd.DataFrame(columns).rename_axis("unit").reset_index()


def difference(units, task_name, a, b):
    """Return how much better a is than b, one step ahead, with the bootstrap over held-out units."""
    here = units[units.task == task_name]
    first, second = (here[here.model == name].sort_values("unit") for name in (a, b))
    values = first.value.to_numpy(), second.value.to_numpy()
    return bootstrap_difference(*values, first.n_tokens.to_numpy(), n_boot=N_BOOT)


def summarise(scores):
    """Return means and standard errors of gains over both baselines, for each task and model.

    Gains are taken seed by seed (in pieces: piece by piece); baselines with a single seed are the same for
    all of them.
    """
    lines = []
    for (task, name), mine in scores.groupby(["task", "model"], sort=False):
        line = {"task": task, "model": name, "n_seeds": len(mine)}
        for base, short in ((ZERO, "zero"), (UNIGRAM, "unigram")):
            theirs = scores[(scores.task == task) & (scores.model == base)].set_index("seed")
            for kind in ("one_step", "joint"):
                known = theirs[kind].reindex(mine.seed).fillna(theirs[kind].iloc[0]).to_numpy()
                gains = mine[kind].to_numpy() - known
                line[f"{kind}_over_{short}"] = gains.mean()
                line[f"{kind}_over_{short}_se"] = standard_error(gains)
        lines.append(line | {"cpu_seconds": mine.cpu_seconds.mean()})
    return pd.DataFrame(lines)


def standard_error(values):
    """Return that of the mean, or NaN where there is one value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


# score against time


def score_against_time(task, sweeps, n_scored, say):
    """Return a line for each model and number of sweeps: CPU seconds of one thread, and the score.

    sweeps maps names to numbers of sweeps. Each point is a fit of its own, one chain, so that it has what
    somebody would have who stops there.
    """
    lines = []
    for name, numbers in sweeps.items():
        make(name, task, halves(2, 1), 0, n_jobs=1).fit(task.train)  # compiles
        for n in numbers:
            say(f"{task.name} against time: {name}, {n} sweeps")
            start = time.process_time()
            model = make(name, task, halves(n, 1), 0, n_jobs=1).fit(task.train)
            seconds = time.process_time() - start
            model.set_params(n_jobs=None)
            score = model.score(task.sequences, n_seen=task.n_seen, n_draws=n_scored[name])
            lines.append([task.name, name, n, seconds, score - zero_score(task)])
    columns = ["task", "model", "sweeps", "cpu_seconds", "one_step_over_zero"]
    return pd.DataFrame(lines, columns=columns)
