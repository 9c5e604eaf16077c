"""Associations: none may be found where there are none, and those that are planted must be."""

from typing import NamedTuple

import numba
import numpy as np
import pytest

from polystick import CorrelatedMultinomial, Gibbs, NormalInverseWishart
from polystick.association import correlations

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="minutes without the compiler")

KINDS = ("independent", "dirichlet", "plain", "planted")
K, N_ROWS = 16, 150
SHARES = np.exp(-0.3 * np.arange(K)) / np.exp(-0.3 * np.arange(K)).sum()
PLANTED = {(0, 3): 0.8, (1, 8): -0.8, (5, 10): 0.8, (9, 11): 0.8}
PAIRS = np.triu_indices(K, 1)
COMMON, RARE = PAIRS[1] < K // 2, PAIRS[0] >= K // 2

SHORT = Gibbs(200, 200, thin=2, n_chains=1)
LONG = Gibbs(200, 200, thin=3, n_chains=2)


def truth(kind):
    """Return the correlations of log abundances."""
    matrix = np.eye(K)
    for (i, j), r in PLANTED.items() if kind == "planted" else ():
        matrix[i, j] = matrix[j, i] = r
    return matrix


def simulated(kind, seed):
    """Draw counts of rows with totals of 8 to 800."""
    rng = np.random.default_rng(seed)
    totals = np.clip(np.exp(rng.normal(np.log(120), 0.85, N_ROWS)), 8, 800).astype(int)
    return rng.multinomial(totals, probabilities(kind, rng))


def probabilities(kind, rng):
    """Draw the rows' probabilities: of one truth all, or overdispersed in one of three ways."""
    if kind == "plain":
        return np.tile(SHARES, (N_ROWS, 1))
    if kind == "dirichlet":
        return rng.dirichlet(40 * SHARES, N_ROWS)
    noise = rng.normal(size=(N_ROWS, K)) @ np.linalg.cholesky(truth(kind)).T
    abundance = SHARES * np.exp(1.2 * noise)
    return abundance / abundance.sum(axis=1, keepdims=True)


class Verdict(NamedTuple):
    """What a method says of pairs: mean, and share of 90 % intervals that exclude zero, of those without
    association; share of planted ones that are found with their sign (1 where there are none).
    """

    mean_rare: float
    mean_common: float
    excluded: float
    excluded_rare: float
    excluded_common: float
    found: float

    @property
    def is_good(self):
        return bool(
            max(abs(self.mean_rare), abs(self.mean_common)) < 0.08
            and self.excluded <= 0.08
            and self.excluded_rare <= 0.12
            and self.excluded_common <= 0.15
            and self.found >= 0.75
        )


def judge(method, kind, seeds=range(2)):
    """Return the verdict on method(counts, seed) -> mean, lower, upper (K, K), over seeds of data."""
    verdicts = [one_verdict(method(simulated(kind, seed), seed), truth(kind)) for seed in seeds]
    return Verdict(*np.mean(verdicts, axis=0))


def one_verdict(told, right):
    mean, lower, upper = (np.asarray(part)[PAIRS] for part in told)
    right = right[PAIRS]
    excluded, is_null = (lower > 0) | (upper < 0), right == 0
    rare, common = is_null & RARE, is_null & COMMON
    found = (excluded & (np.sign(mean) == np.sign(right)))[~is_null]
    return Verdict(
        mean[rare].mean(),
        mean[common].mean(),
        excluded[is_null].mean(),
        excluded[rare].mean(),
        excluded[common].mean(),
        found.mean() if len(found) else 1.0,
    )


def fitted(counts, seed, inference=SHORT, **options):
    return CorrelatedMultinomial(inference=inference, random_state=seed, **options).fit(counts)


def ours(counts, seed, **options):
    found = fitted(counts, seed, link="softmax", **options).category_association(level=0.9)
    return found.mean, found.lower, found.upper


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_found_where_nothing_is_and_planted_pairs_are(kind):
    verdict = judge(ours, kind)
    assert verdict.is_good, verdict


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_with_more_seeds_and_longer_chains(kind):
    verdict = judge(lambda *data: ours(*data, inference=LONG), kind, range(2, 10))
    assert verdict.is_good, verdict


# the wrong programs


def log_shares(counts, seed):
    """Read correlations of log shares, of sticks by frequency, as associations."""
    return fitted(counts, seed).log_share_correlation(level=0.9)


def sticks_in_the_gauge(counts, seed, tree):
    """Take the sparse gauge of the covariance of log shares that a tree of sticks tells."""
    model = fitted(counts, seed, decomposition=tree)
    populations = map(model.model_.log_population, model._parameters(100))
    drawn = np.array([correlations(np.cov(log_pi.T)) for log_pi in populations])
    return drawn.mean(axis=0), *np.quantile(drawn, [0.05, 0.95], axis=0)


def sticks_by_frequency(counts, seed):
    return sticks_in_the_gauge(counts, seed, "frequency")


def huffman_sticks(counts, seed):
    return sticks_in_the_gauge(counts, seed, "huffman")


def balanced_sticks(counts, seed):
    return sticks_in_the_gauge(counts, seed, "balanced")


def weak_wishart(counts, seed):
    """Let a covariance have a law that hardly regularises and does not learn its scale."""
    return ours(counts, seed, prior=NormalInverseWishart.weak(np.zeros(K), 1.0))


def centred_log_ratios(counts, seed):
    """Correlate centred log-ratios of counts, with Fisher's intervals."""
    log = np.log(counts + 0.5)
    found = np.corrcoef(log - log.mean(axis=1, keepdims=True), rowvar=False) - 1e-9 * np.eye(K)
    ends = np.arctanh(found) + 1.645 / np.sqrt(len(counts) - 3) * np.array([-1, 1])[:, None, None]
    return found, *np.tanh(ends)


def nothing(counts, seed):
    """Find nothing, whatever the counts are."""
    return np.zeros((3, K, K)) + np.array([0.0, -1.0, 1.0])[:, None, None]


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (log_shares, "independent"),
        (log_shares, "dirichlet"),
        (log_shares, "plain"),
        (sticks_by_frequency, "independent"),
        (sticks_by_frequency, "plain"),
        (huffman_sticks, "independent"),
        (huffman_sticks, "plain"),
        (balanced_sticks, "independent"),
        (balanced_sticks, "plain"),
        (weak_wishart, "independent"),
        (weak_wishart, "dirichlet"),
        (centred_log_ratios, "independent"),
        (centred_log_ratios, "dirichlet"),
        (centred_log_ratios, "plain"),
        (nothing, "planted"),
    ],
    ids=lambda part: getattr(part, "__name__", part),
)
def test_wrong_programs_are_rejected(wrong, kind):
    verdict = judge(wrong, kind)
    assert not verdict.is_good, verdict
