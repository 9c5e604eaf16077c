"""Text as one sequence of tokens: MultinomialLDS against what people would use instead.

Alice (the first 4000 of its 1000 commonest words to learn from, the next 1500 scored) and the State of the
Union, all addresses in order, as one sequence of its 1000 commonest words: 40,000 and 200,000 to learn
from, the next 5000 scored. Nats per token, one step ahead. `baselines.ngrams` are tuned on the last tenth
of what was seen and count on through what is scored; so does the model's memory. An interval is 95 %, of
the difference to the model, by a bootstrap of stretches of 50 tokens.

    python benchmarks/sequence_text.py [Alice] [SOTU-40k] [SOTU-200k]
"""

import os
import sys
import time
from pathlib import Path

import numpy as np

from polystick import Gibbs, MultinomialLDS, datasets
from polystick.baselines.ngrams import KINDS, NGrams
from polystick.baselines.sequence_models import MultinomialHMM
from polystick.scores import log_mean_exp

K, STRETCH, N_BOOT = 1000, 50, 2000
CASES = {"Alice": (4000, 1500), "SOTU-40k": (40_000, 5000), "SOTU-200k": (200_000, 5000)}
SWEEPS = {
    "Alice": (150, 150),
    "SOTU-40k": (40, 60),
    "SOTU-200k": (20, 40),
}  # kept, burnt; two chains
N_SCORED = 16  # posterior draws


def load(name):
    if name == "Alice":
        return datasets.load_alice(K).tokens
    return read_addresses()


def read_addresses():
    """Return the tokens of all addresses in order, of the words that are commonest."""
    import collections
    import json
    import lzma
    import re

    words = []
    with lzma.open(Path(os.environ["POLYSTICK_DATA"]) / "sotu.jsonl.xz", "rt") as lines:
        for line in lines:
            words += re.findall(r"[a-z']+", json.loads(line)["text"].lower())
    common = collections.Counter(words).most_common(K)
    number = {word: i for i, (word, _) in enumerate(common)}
    return np.array([number[word] for word in words if word in number])


def models(name):
    """Yield names and fitted faces."""
    n_draws, n_burn = SWEEPS[name]
    run = {"inference": Gibbs(n_draws, n_burn, n_chains=2), "random_state": 0, "n_categories": K}
    yield "MultinomialLDS", MultinomialLDS(**run)
    yield "MultinomialLDS, memory=None", MultinomialLDS(memory=None, **run)
    yield "MultinomialHMM", MultinomialHMM(10, emission_concentration=0.01, **run)


def values_of(name, tokens, n_seen):
    """Return log p (tokens,) of what is scored, by name, and seconds."""
    found, seconds = {}, {}
    for title, face in models(name):
        start = time.process_time()
        steps = face.fit(tokens[:n_seen]).score_steps(tokens, n_draws=N_SCORED)[0]
        found[title] = log_mean_exp(steps[:, n_seen:], axis=0)
        seconds[title] = time.process_time() - start
        print(name, title, found[title].mean(), flush=True)
    for kind in KINDS:
        start = time.process_time()
        found[kind] = NGrams(kind, K).score_steps(tokens, n_seen)[0]
        seconds[kind] = time.process_time() - start
    return found, seconds


def interval(difference, rng):
    """Return the 95 % interval of a mean, by a bootstrap of stretches."""
    stretches = difference[: len(difference) // STRETCH * STRETCH].reshape(-1, STRETCH).mean(axis=1)
    picked = rng.integers(len(stretches), size=(N_BOOT, len(stretches)))
    return np.quantile(stretches[picked].mean(axis=1), [0.025, 0.975])


def report(name):
    n_seen, n_scored = CASES[name]
    tokens = load(name)[: n_seen + n_scored]
    found, seconds = values_of(name, tokens, n_seen)
    is_new, rng = ~np.isin(tokens[n_seen:], tokens[:n_seen]), np.random.default_rng(0)
    ours = found["MultinomialLDS"]
    print(
        f"\n### {name}: {n_seen} to learn from, {n_scored} scored, {is_new.sum()} of them new words\n"
    )
    print("| | nats per token | seen words | new words | MultinomialLDS is better by | CPU s |")
    print("|---|---|---|---|---|---|")
    for title, values in found.items():
        low, high = interval(ours - values, rng)
        gap = (ours - values).mean()
        better = "" if title == "MultinomialLDS" else f"{gap:.3f} ({low:.3f} to {high:.3f})"
        parts = [values.mean(), values[~is_new].mean(), values[is_new].mean()]
        numbers = " | ".join(f"{part:.3f}" for part in parts)
        print(f"| {title} | {numbers} | {better} | {seconds[title]:.0f} |", flush=True)


if __name__ == "__main__":
    for case in sys.argv[1:] or CASES:
        report(case)
