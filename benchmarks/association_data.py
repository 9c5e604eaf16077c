"""Simulated tables whose associations, correlations of log abundances, are known.

35 categories with shares falling like exp(-0.17 k), rows with totals of 8 to 800 (median 120).
"""

import numpy as np

K = 35
SHARES = np.exp(-0.17 * np.arange(K)) / np.exp(-0.17 * np.arange(K)).sum()
NULLS = ("independent", "dirichlet", "plain")
PAIRS = np.triu_indices(K, 1)
COMMON, RARE = PAIRS[1] < K // 2, PAIRS[0] >= K // 2
BLOCK_SIGNS = (np.ones(4), np.array([1, 1, 1, -1]))


def simulated(kind, n, seed):
    """Return counts (n, K) and the true correlations (K, K)."""
    rng = np.random.default_rng(seed)
    totals = draw_totals(120, n, rng)
    if kind == "plain":
        return rng.multinomial(totals, SHARES), np.eye(K)
    if kind == "dirichlet":
        return rng.multinomial(totals, rng.dirichlet(40 * SHARES, n)), np.eye(K)
    sd = rng.uniform(1.0, 1.5, K)
    truth = {"independent": lambda _: np.eye(K), "block": blocks, "factor": factors}[kind](rng)
    log_abundance = np.log(SHARES) + rng.normal(size=(n, K)) @ np.linalg.cholesky(truth).T * sd
    return counts_of(log_abundance, totals, rng), truth


def draw_totals(median, n, rng):
    return np.clip(np.exp(rng.normal(np.log(median), 0.85, n)), 8, 800).astype(int)


def counts_of(log_abundance, totals, rng):
    abundance = np.exp(log_abundance - log_abundance.max(axis=1, keepdims=True))
    return rng.multinomial(totals, abundance / abundance.sum(axis=1, keepdims=True))


def blocks(rng):
    """Return correlations of +-0.7 within five blocks of four categories, in two with one against three."""
    truth, order = np.eye(K), rng.permutation(K)
    for block in range(5):
        where, signs = order[4 * block : 4 * block + 4], BLOCK_SIGNS[block % 2]
        truth[np.ix_(where, where)] = 0.7 * np.outer(signs, signs) + 0.3 * np.eye(4)
    return truth


def factors(rng):
    """Return correlations by two factors that move ten categories each, either way."""
    loadings = np.zeros((K, 2))
    for h in range(2):
        moved = rng.choice(K, 10, replace=False)
        loadings[moved, h] = rng.choice([-1, 1], 10) * rng.uniform(0.8, 1.3, 10)
    cov = loadings @ loadings.T + np.eye(K)
    sd = np.sqrt(np.diag(cov))
    return cov / np.outer(sd, sd)
