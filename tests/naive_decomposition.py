"""The slow, obvious twins of `polystick.decomposition`: recursion, and the paper's formulas."""

import itertools
import math

import numpy as np
from scipy import special


def leaves(tree):
    return [tree] if not isinstance(tree, tuple) else leaves(tree[0]) + leaves(tree[1])


def nodes(tree):
    """The inner nodes in preorder."""
    return [] if not isinstance(tree, tuple) else [tree, *nodes(tree[0]), *nodes(tree[1])]


def split(tree, counts):
    """One row: what went to the first child and what reached the node, node by node."""
    successes = [sum(counts[c] for c in leaves(node[0])) for node in nodes(tree)]
    trials = [sum(counts[c] for c in leaves(node)) for node in nodes(tree)]
    return successes, trials


def path(tree, category):
    """[(node, side), ...] from the root to the category."""
    return [
        (k, 1 if category in leaves(node[0]) else -1)
        for k, node in enumerate(nodes(tree))
        if category in leaves(node)
    ]


def log_probabilities(tree, psi):
    """log pi_c = sum over the path of log sigmoid(side psi), with exactly rounded sums."""
    return [
        math.fsum(special.log_expit(side * psi[k]) for k, side in path(tree, c))
        for c in range(len(leaves(tree)))
    ]


def psi(tree, probabilities):
    masses = [
        [sum(probabilities[c] for c in leaves(side)) for side in node] for node in nodes(tree)
    ]
    return [math.log(first / second) for first, second in masses]


def depth(tree):
    return 0 if not isinstance(tree, tuple) else 1 + max(depth(tree[0]), depth(tree[1]))


def least_total_depth(weights):
    """The least sum of weight x depth over all binary trees, by trying every first split."""
    if len(weights) == 1:
        return 0
    rest = range(1, len(weights))
    best = math.inf
    for size in range(len(weights) - 1):
        for chosen in itertools.combinations(rest, size):
            inside = [0, *chosen]
            one = [weights[i] for i in inside]
            other = [weights[i] for i in range(len(weights)) if i not in inside]
            best = min(best, least_total_depth(one) + least_total_depth(other))
    return best + sum(weights)


# The paper's sticks, order 0..K-1


def stick_splits(x):
    """N_k = N - sum_{j<k} x_j, k = 1..K-1 (REFERENCE row 2)."""
    return x[:-1], x.sum() - np.concatenate([[0], np.cumsum(x)[:-2]])


def stick_probabilities(psi):
    """pi by repeated subtraction of the broken pieces, as the authors' code has it."""
    pi, left = [], 1.0
    for value in psi:
        pi.append(left * special.expit(value))
        left -= pi[-1]
    return np.array([*pi, left])


def stick_log_jacobian(pi):
    """log of prod_{k<K} pi_k (1 - sum_{j<=k} pi_j) / (1 - sum_{j<k} pi_j) (row 7)."""
    left = np.cumsum(pi[::-1])[::-1]
    return np.sum(np.log(pi[:-1]) + np.log(left[1:]) - np.log(left[:-1]))


def stick_dirichlet_log_density(psi, alpha):
    """1 / B(alpha) prod_{k<K} s(psi_k)^alpha_k s(-psi_k)^(sum_{j>k} alpha_j), s sigmoid (row 9)."""
    after = np.cumsum(alpha[::-1])[::-1][1:]
    log_beta = special.gammaln(alpha).sum() - special.gammaln(alpha.sum())
    powers = alpha[:-1] * special.log_expit(psi) + after * special.log_expit(-psi)
    return powers.sum() - log_beta


def stick_dirichlet_moments(alpha):
    """Digammas and trigammas (row 10)."""
    after = np.cumsum(alpha[::-1])[::-1][1:]
    mean = special.digamma(alpha[:-1]) - special.digamma(after)
    return mean, special.polygamma(1, alpha[:-1]) + special.polygamma(1, after)


def dirichlet_log_density(pi, alpha):
    log_beta = special.gammaln(alpha).sum() - special.gammaln(alpha.sum())
    return special.xlogy(alpha - 1, pi).sum() - log_beta


def multinomial_log_probability(counts, log_pi):
    coefficient = special.gammaln(counts.sum() + 1) - special.gammaln(counts + 1).sum()
    return coefficient + np.dot(counts, log_pi)


def binomial_log_probability(successes, trials, psi):
    failures = trials - successes
    coefficient = special.gammaln(trials + 1) - special.gammaln(successes + 1)
    coefficient = coefficient - special.gammaln(failures + 1)
    return np.sum(
        coefficient + successes * special.log_expit(psi) + failures * special.log_expit(-psi)
    )
