"""Text as one sequence of tokens: MultinomialLDS against what people would use instead.

Alice (the first 4000 of its 1000 commonest words to learn from, the next 1500 scored) and the State of the
Union, all addresses in order, as one sequence of its 1000 commonest words: 40,000 and 200,000 to learn
from, the next 5000 scored. On those the constants of the memory were chosen. On these nothing was: articles
of the Associated Press, one after another; codons of a stretch of human chromosome 22; and words from a
Markov chain whose rows are Dirichlet about Zipf's law. Nats per token, one step ahead. `baselines.ngrams`
are tuned on the last tenth of what was seen and count on through what is scored; so does the model's
memory. An interval is 95 %, of the difference to the model, by a bootstrap of stretches of 50 tokens.

    python benchmarks/sequence_text.py [Alice] [SOTU-40k] [SOTU-200k] [AP-4k] [AP-40k] [codons] [Markov]
"""

import collections
import csv
import gzip
import json
import lzma
import os
import re
import sys
import time
from pathlib import Path

import numpy as np

from polystick import Gibbs, MultinomialLDS, datasets
from polystick.baselines.ngrams import KINDS, NGrams
from polystick.baselines.sequence_models import MultinomialHMM
from polystick.scores import log_mean_exp

K, STRETCH, N_BOOT = 1000, 50, 2000
CASES = {  # tokens to learn from and to score
    "Alice": (4000, 1500),
    "SOTU-40k": (40_000, 5000),
    "SOTU-200k": (200_000, 5000),
    "AP-4k": (4000, 1500),
    "AP-40k": (40_000, 5000),
    "codons": (20_000, 5000),
    "Markov": (20_000, 5000),
}
SWEEPS = {  # by tokens to learn from: kept, burnt, chains, and how many draws are scored
    4000: (150, 150, 2, 16),
    20_000: (50, 60, 2, 16),
    40_000: (60, 40, 2, 16),
    200_000: (30, 12, 1, 4),
}
MOST = (
    40_000  # tokens to learn from, beyond which only the default is run beside the peers that count
)
PULL = 100.0  # how many tokens Zipf's law is worth in each row of the Markov chain


def load(name):
    """Return tokens and the number of categories."""
    if name == "Alice":
        return datasets.load_alice(K).tokens, K
    if name == "codons":
        return read_codons(), 64
    if name == "Markov":
        return simulate_markov(np.random.default_rng(0)), K
    return commonest(read_addresses() if name.startswith("SOTU") else read_articles()), K


def data(name):
    return Path(os.environ["POLYSTICK_DATA"]) / name


def read_addresses():
    """Yield the texts of all addresses in order."""
    with lzma.open(data("sotu.jsonl.xz"), "rt") as lines:
        yield from (json.loads(line)["text"] for line in lines)


def read_articles():
    """Yield the texts of all articles in order."""
    csv.field_size_limit(2**24)
    with gzip.open(data("ap_docs.csv.gz"), "rt", newline="") as lines:
        yield from (row["text"] for row in csv.DictReader(lines))


def commonest(texts, n=K):
    """Return the tokens of the n words that are commonest."""
    words = [word for text in texts for word in re.findall(r"[a-z']+", text.lower())]
    common = collections.Counter(words).most_common(n)
    number = {word: i for i, (word, _) in enumerate(common)}
    return np.array([number[word] for word in words if word in number])


def read_codons():
    """Return the triples of letters of a stretch of DNA, in one frame."""
    with gzip.open(data("human_chr22_hg38_16570000_16800000.fa.gz"), "rt") as lines:
        letters = "".join(line.strip().upper() for line in lines if not line.startswith(">"))
    digits = np.array(["ACGT".index(letter) for letter in letters[: len(letters) // 3 * 3]])
    return digits.reshape(-1, 3) @ [16, 4, 1]


def simulate_markov(rng, n=25_000):
    """Return words, each drawn from the row of the one before."""
    zipf = 1.0 / np.arange(1, K + 1)
    rows = rng.gamma(np.tile(PULL * zipf / zipf.sum(), (K, 1)))
    sums = np.cumsum(rows / rows.sum(axis=1, keepdims=True), axis=1)
    words = [0]
    for u in rng.random(n):
        words.append(min(K - 1, int(np.searchsorted(sums[words[-1]], u))))
    return np.array(words)


def models(n_seen, n_categories):
    """Yield names and faces."""
    n_draws, n_burn, n_chains, _ = SWEEPS[n_seen]
    run = {
        "inference": Gibbs(n_draws, n_burn, n_chains=n_chains),
        "random_state": 0,
        "n_categories": n_categories,
    }
    yield "MultinomialLDS", MultinomialLDS(**run)
    if n_seen > MOST:
        return
    yield "MultinomialLDS, memory=None", MultinomialLDS(memory=None, **run)
    yield "MultinomialHMM", MultinomialHMM(10, **run)


def values_of(name, tokens, n_seen, n_categories):
    """Return log p (tokens,) of what is scored, by name, and seconds."""
    found, seconds = {}, {}
    for title, face in models(n_seen, n_categories):
        start = time.process_time()
        steps = face.fit(tokens[:n_seen]).score_steps(tokens, n_draws=SWEEPS[n_seen][3])[0]
        found[title] = log_mean_exp(steps[:, n_seen:], axis=0)
        seconds[title] = time.process_time() - start
        print(name, title, found[title].mean(), flush=True)
    for kind in KINDS:
        start = time.process_time()
        found[kind] = NGrams(kind, n_categories).score_steps(tokens, n_seen)[0]
        seconds[kind] = time.process_time() - start
    return found, seconds


def interval(difference, rng):
    """Return the 95 % interval of a mean, by a bootstrap of stretches."""
    stretches = difference[: len(difference) // STRETCH * STRETCH].reshape(-1, STRETCH).mean(axis=1)
    picked = rng.integers(len(stretches), size=(N_BOOT, len(stretches)))
    return np.quantile(stretches[picked].mean(axis=1), [0.025, 0.975])


def report(name):
    n_seen, n_scored = CASES[name]
    tokens, n_categories = load(name)
    tokens = tokens[: n_seen + n_scored]
    found, seconds = values_of(name, tokens, n_seen, n_categories)
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
