"""The slow, obvious twin of hidden Markov chains: every path of states, one after another."""

import itertools

import numpy as np


def joint(lookups, table, initial, transition):
    """Return all paths (S^T, T) and the weight of each together with what was seen."""
    paths = np.array(list(itertools.product(range(len(initial)), repeat=len(lookups))))
    weights = np.ones(len(paths))
    for t, lookup in enumerate(lookups):
        now = paths[:, t]
        weights *= initial[now] if t == 0 else transition[paths[:, t - 1], now]
        weights *= table[lookup, now] if lookup >= 0 else 1.0
    return paths, weights


def log_evidence(lookups, table, initial, transition):
    """Return the log of the sum over paths, of any length, in logarithms throughout."""
    log_state = np.log(initial)
    for t, lookup in enumerate(lookups):
        if t > 0:
            log_state = np.logaddexp.reduce(log_state[:, None] + np.log(transition), axis=0)
        log_state = log_state + (np.log(table[lookup]) if lookup >= 0 else 0.0)
    return np.logaddexp.reduce(log_state)
