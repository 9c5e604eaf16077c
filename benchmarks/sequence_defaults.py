"""Defaults of MultinomialLDS: from how many categories a balanced tree, from how many tokens a memory.

Nats per token, one step ahead, on the 1000 tokens after those of the fit: what one choice gains over the
other in one run, with the same seed. Kinds of data: words of the Associated Press (the K commonest, others
left out), tokens from a softmax of 4 dimensions that move slowly, independent words of Zipf's law, a Markov
chain whose rows are Dirichlet about that law, and amino acids of a stretch of DNA. One chain of 60 sweeps
after 60; errors are those of the mean difference, by stretches of 50 tokens.

    python benchmarks/sequence_defaults.py [trees] [memories]
"""

import sys

import numpy as np
from sequence_text import commonest, data, read_articles

from polystick import Gibbs, MultinomialLDS
from polystick.scores import log_mean_exp

N_SCORED, STRETCH, N_DIMS, PULL = 1000, 50, 4, 100.0
RUN = {"inference": Gibbs(60, 60, n_chains=1), "random_state": 0, "n_jobs": 1}


def words(K, n):
    return commonest(read_articles(), K)[:n]


def slow_states(K, n):
    rng = np.random.default_rng(1)
    loads, level = rng.normal(0, 1.2, (K, N_DIMS)), np.log(zipf(K))
    state, found = rng.normal(size=N_DIMS), []
    for _ in range(n):
        state = 0.97 * state + np.sqrt(1 - 0.97**2) * rng.normal(size=N_DIMS)
        odds = np.exp(loads @ state + level)
        found.append(rng.choice(K, p=odds / odds.sum()))
    return np.array(found)


def zipf(K):
    return 1.0 / np.arange(1, K + 1) / np.sum(1.0 / np.arange(1, K + 1))


def independent(K, n):
    return np.random.default_rng(2).choice(K, n, p=zipf(K))


def markov(K, n):
    rng = np.random.default_rng(3)
    rows = rng.gamma(np.tile(PULL * zipf(K), (K, 1)) + 1e-9)
    sums, found = np.cumsum(rows / rows.sum(axis=1, keepdims=True), axis=1), [0]
    for u in rng.random(n - 1):
        found.append(min(K - 1, int(np.searchsorted(sums[found[-1]], u))))
    return np.array(found)


def amino_acids(K, n):
    return np.load(data("dna_lds_682.npz"))["tokens_long"][:n].astype(np.int64)


def steps(tokens, n_seen, K, **options):
    """Return log p of the tokens after those that are seen."""
    face = MultinomialLDS(n_categories=K, **options, **RUN).fit(tokens[:n_seen])
    return log_mean_exp(face.score_steps(tokens, n_draws=8)[0][:, n_seen:], axis=0)


def gain(first, second):
    """Return the mean of first - second, and its error by stretches."""
    means = (first - second).reshape(-1, STRETCH).mean(axis=1)
    return f"{means.mean():+.3f} ({means.std(ddof=1) / np.sqrt(len(means)):.3f})"


def trees(n_seen=4000):
    """Print what a balanced tree gains over sticks, without and with a memory."""
    print("\n| data | " + " | ".join(f"K = {K}" for K in (10, 20, 50, 100, 200)) + " |")
    for source in (words, slow_states, independent, markov):
        for memory in (None, "both"):
            cells = []
            for K in (10, 20, 50, 100, 200):
                tokens = source(K, n_seen + N_SCORED)
                values = [
                    steps(tokens, n_seen, K, decomposition=tree, memory=memory)
                    for tree in ("balanced", "frequency")
                ]
                cells.append(gain(*values))
            title = f"{source.__name__}, memory {memory}"
            print("| " + " | ".join([title, *cells]) + " |", flush=True)


def memories():
    """Print what a memory gains over none."""
    sizes = (250, 500, 1000, 2000, 4000)
    print("\n| data | " + " | ".join(f"{n} tokens" for n in sizes) + " |")
    for source, K in ((words, 1000), (words, 50), (slow_states, 20), (independent, 1000), (independent, 20),
                      (markov, 1000), (markov, 20), (amino_acids, 22)):  # fmt: skip
        cells = []
        for n_seen in sizes:
            tokens = source(K, n_seen + N_SCORED)
            values = [steps(tokens, n_seen, K, memory=memory) for memory in ("both", None)]
            cells.append(gain(*values))
        print("| " + " | ".join([f"{source.__name__}, K = {K}", *cells]) + " |", flush=True)


if __name__ == "__main__":
    for part in sys.argv[1:] or ("trees", "memories"):
        {"trees": trees, "memories": memories}[part]()
