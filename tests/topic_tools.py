"""Small models and corpora for tests of topic models, and the slow, obvious twins of their sums."""

import itertools
from typing import NamedTuple

import numba
import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, gammaln, log_expit, softmax

from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.models.topic_factors import assemble
from polystick.models.topic_shares import NormalShares, Sticks
from polystick.models.topic_words import DirichletWords

JIT = not numba.config.DISABLE_JIT
needs_jit = pytest.mark.skipif(not JIT, reason="so many sweeps need the compiler")


def correlated_topics(n_words, concentration, prior, decomposition, assemble=assemble):
    """Return the model of the paper."""
    words = DirichletWords(n_words, concentration)
    return assemble(words, NormalShares(prior), Sticks(decomposition))


PRIOR = NormalInverseWishart(np.array([0.3, -0.4]), 2.0, np.array([[6.0, 2.0], [2.0, 7.0]]), 10.0)
STICKS = correlated_topics(5, 1.0, PRIOR, Decomposition.sticks([0, 1, 2]))
PAIR = correlated_topics(
    4, 0.8, NormalInverseWishart([0.4], 2.0, [[6.0]], 9.0), Decomposition.sticks([1, 0])
)
TREE = correlated_topics(
    4,
    1.2,
    NormalInverseWishart(np.array([0.3, -0.5, 0.2]), 2.0, 8 * np.eye(3) + 2.0, 12.0),
    Decomposition.balanced(4),
)
MODELS = {"sticks": STICKS, "pair": PAIR, "tree": TREE}
TOTALS = np.array([0, 1, 4, 8, 8, 12])
over_models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


def weak_model(n_topics, n_words, concentration=0.1):
    """Return the model that the face would make."""
    sticks = Decomposition.sticks(range(n_topics))
    prior = NormalInverseWishart.weak(*sticks.dirichlet_moments(1.0))
    return correlated_topics(n_words, concentration, prior, sticks)


SMALL = (40, 15) if JIT else (12, 4)


def small_corpus(n=SMALL[0], n_tokens=SMALL[1], n_topics=4, n_words=30, seed=3):
    """Return a model and a corpus from it, with a document without words at each end."""
    rng, model = np.random.default_rng(seed), weak_model(n_topics, n_words)
    totals = rng.integers(0, 2 * n_tokens, n)
    totals[[0, -1]] = 0
    return model, model.simulate(totals, rng)[2]


# a corpus whose topics are known


class Known(NamedTuple):
    """Topics 0 and 1 go together, topics 2 and 3 exclude each other."""

    counts: np.ndarray  # (n, V)
    topics: np.ndarray  # (T, V)
    log_shares: np.ndarray  # (n, T)


def known_corpus(n=300, n_tokens=60, n_topics=6, n_words=60, correlated=0.7, seed=8):
    """Return documents of a few topics each, whose words are mostly their own."""
    rng = np.random.default_rng(seed)
    own = np.repeat(np.eye(n_topics), n_words // n_topics, axis=1)
    topics = own * rng.gamma(2.0, size=own.shape) + 0.02
    topics /= topics.sum(axis=1, keepdims=True)
    correlation = np.eye(n_topics)
    correlation[0, 1] = correlation[1, 0] = correlated
    correlation[2, 3] = correlation[3, 2] = -correlated
    level = np.linspace(0.6, 0.0, n_topics)
    shares = softmax(rng.multivariate_normal(level, 9.0 * correlation, size=n), axis=1)
    return Known(rng.multinomial(n_tokens, shares @ topics), topics, np.log(shares))


# documents by enumeration and quadrature


def hermite(n_points, k):
    """Return points (n_points^k, k) and weights of the standard normal law."""
    x, w = np.polynomial.hermite_e.hermegauss(n_points)
    points = np.array(list(itertools.product(x, repeat=k)))
    weights = np.array([np.prod(p) for p in itertools.product(w / w.sum(), repeat=k)])
    return points, weights


class Exact(NamedTuple):
    """What quadrature says of one document under fixed parameters."""

    probability: float  # of its words, without the multinomial coefficient
    shares: np.ndarray  # (T,) posterior mean


def exact_document(model, mean, cov, topics, counts, n_points=80):
    """topics: (T, V) probabilities; counts: (V,)."""
    points, weights = hermite(n_points, len(mean))
    shares = model.link.shares(mean + points @ np.linalg.cholesky(cov).T)
    likelihood = np.prod((shares @ topics) ** counts, axis=1)
    probability = weights @ likelihood
    return Exact(probability, (weights * likelihood) @ shares / probability)


def log_evidence(model, counts, shares, weights):
    """Return log p(words) of one document: sum over all assignments of its tokens to topics.

    shares, weights : points (s, T) of the law of a document's shares, parameters integrated out
    """
    tokens, total = np.repeat(np.arange(model.words.n_words), counts), 0.0
    for assigned in itertools.product(range(model.n_topics), repeat=len(tokens)):
        table = np.zeros((model.words.n_words, model.n_topics))
        for word, topic in zip(tokens, assigned):
            table[word, topic] += 1
        of_topics = weights @ np.prod(shares ** table.sum(axis=0), axis=1)
        total += of_topics * np.exp(_log_dirichlet_multinomials(table, model.words.concentration))
    return np.log(total)


def _log_dirichlet_multinomials(table, eta):
    n_words, n_topics = table.shape
    gains = gammaln(eta + table).sum() - n_words * n_topics * gammaln(eta)
    return gains + n_topics * gammaln(n_words * eta) - gammaln(n_words * eta + table.sum(0)).sum()


def student_points(model, n_points=20_001):
    """Return shares and weights of the law of one document for T = 2, mean and cov integrated out."""
    prior = model.shares.law
    scale = np.sqrt(prior.scale[0, 0] * (1 + 1 / prior.strength) / prior.degrees)
    law = stats.t(prior.degrees, prior.mean[0], scale)
    psi = law.ppf((np.arange(n_points) + 0.5) / n_points)
    return model.link.shares(psi[:, None]), np.full(n_points, 1 / n_points)


# the bound, term by term


class Factors(NamedTuple):
    """q(psi_d) = N(mean[d], cov[d]); q(topic of a token of word v in document d) = topic[d, v]."""

    mean: np.ndarray  # (n, k)
    cov: np.ndarray  # (n, k, k)
    topic: np.ndarray  # (n, V, T)


def bound_of_log_share(model, mean, variance, topic):
    """REFERENCE row 18, for any tree: log sigma(c) + (+-m - c) / 2 at each stick above the topic."""
    starts, nodes, sides = model.link.decomposition.paths()
    total = 0.0
    for place in range(starts[topic], starts[topic + 1]):
        j = nodes[place]
        c = np.sqrt(mean[j] ** 2 + variance[j])
        total += log_expit(c) + (sides[place] * mean[j] - c) / 2
    return total


def expected_log_topics(factor):
    """Return (V, T)."""
    return digamma(factor.topics) - digamma(factor.topics.sum(axis=0))


def best_assignments(model, factor, mean, cov):
    """Return q(topic) (n, V, T)."""
    log_topics = expected_log_topics(factor)
    found = np.empty((len(mean), *log_topics.shape))
    for d in range(len(mean)):
        shares = [
            bound_of_log_share(model, mean[d], np.diag(cov[d]), t) for t in range(model.n_topics)
        ]
        for v in range(model.words.n_words):
            found[d, v] = softmax(log_topics[v] + shares)
    return found


def best_psi(model, factor, counts, factors):
    """Return the mean and covariance of each q(psi_d), given the tilts of the factors so far."""
    normal = factor.shares
    precision = normal.degrees * np.linalg.inv(normal.scale)
    mean, cov = np.empty_like(factors.mean), np.empty_like(factors.cov)
    for d in range(len(mean)):
        tokens = counts[d] @ factors.topic[d]
        successes, trials = model.link.decomposition.split(tokens[None])
        c = np.sqrt(factors.mean[d] ** 2 + np.diag(factors.cov[d]))
        omega = trials[0] * np.tanh(c / 2) / (2 * c)
        cov[d] = np.linalg.inv(precision + np.diag(omega))
        mean[d] = cov[d] @ (precision @ normal.mean + successes[0] - trials[0] / 2)
    return mean, cov


def bound(model, factor, counts, factors):
    """Return the evidence lower bound, each expectation in its plainest form."""
    value = -factor.shares.kl(model.shares.law) - _divergence_of_topics(model, factor)
    log_topics = expected_log_topics(factor)
    for d, (mean, cov, topic) in enumerate(zip(*factors)):
        value += _gaussian_terms(factor.shares, mean, cov)
        for t in range(model.n_topics):
            share = bound_of_log_share(model, mean, np.diag(cov), t)
            for v in np.flatnonzero(counts[d]):
                q = topic[v, t]
                value += counts[d, v] * q * (share + log_topics[v, t] - np.log(q))
    return value


def _gaussian_terms(normal, mean, cov):
    """Return E log N(psi | mean, cov) + the entropy of q(psi)."""
    k, nu = len(mean), normal.degrees
    precision = nu * np.linalg.inv(normal.scale)
    log_det = sum(digamma((nu - i) / 2) for i in range(k)) + k * np.log(2)
    log_det -= np.linalg.slogdet(normal.scale)[1]
    gap = mean - normal.mean
    quadratic = gap @ precision @ gap + np.trace(precision @ cov) + k / normal.strength
    log_density = 0.5 * (log_det - k * np.log(2 * np.pi) - quadratic)
    return log_density + 0.5 * np.linalg.slogdet(2 * np.pi * np.e * cov)[1]


def _divergence_of_topics(model, factor):
    """Return the sum over topics of KL(q || prior), as expected log densities."""
    prior = np.full(model.words.n_words, model.words.concentration)
    log_topics, total = expected_log_topics(factor), 0.0
    for t in range(model.n_topics):
        for alpha, sign in ((factor.topics[:, t], 1), (prior, -1)):
            normaliser = gammaln(alpha.sum()) - gammaln(alpha).sum()
            total += sign * (normaliser + (alpha - 1) @ log_topics[:, t])
    return total
