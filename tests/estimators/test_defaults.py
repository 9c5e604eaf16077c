"""What a user gets by default has converged, or says that it has not."""

import warnings

import numba
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from polystick import (
    CorrelatedMultinomial,
    CorrelatedTopicModel,
    DynamicMultinomial,
    Gibbs,
    MultinomialGP,
    MultinomialLDS,
)

pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT),
    reason="needs the compiler: default runs have thousands of sweeps",
)
TIMES = np.linspace(0, 1, 12)[:, None]


def rng():
    return np.random.default_rng(0)


def halves(totals, p):
    """Return counts of two categories."""
    first = rng().binomial(totals, p)
    return np.stack([first, totals - first], axis=-1)


def lopsided(n, n_common, n_rare, total=10**6):
    """Return a table with some categories so rare that most rows have none of them."""
    p = np.concatenate([np.ones(n_common), np.full(n_rare, 1e-6)])
    spread = np.exp(rng().normal(0, 1, (n, len(p))))
    p = p * spread
    return rng().multinomial(total, p / p.sum(axis=1, keepdims=True))


def documents(n_topics, n_words, n, length, overlap=0.0):
    topics = np.full((n_topics, n_words), overlap)
    for k, words in enumerate(np.array_split(np.arange(n_words), n_topics)):
        topics[k, words] += 1.0
    shares = np.exp(rng().normal(0, 1, (n, n_topics)))
    mixed = shares @ (topics / topics.sum(axis=1, keepdims=True))
    return rng().multinomial(length, mixed / mixed.sum(axis=1, keepdims=True))


WAVES = 1 / (1 + np.exp(-1.5 * np.sin(np.arange(60) / 6.0) - rng().normal(0, 0.3, (8, 60))))
GOOD = {
    "rows": (CorrelatedMultinomial(), rng().multinomial(250, [0.3, 0.3, 0.2, 0.1, 0.1], size=60)),
    "process": (MultinomialGP(), TIMES, halves(60, 1 / (1 + np.exp(-2 * np.sin(5 * TIMES[:, 0]))))),
    "dynamics": (MultinomialLDS(1), list(halves(200, WAVES))),
    "composition": (DynamicMultinomial(), list(halves(200, WAVES))),
    "topics": (CorrelatedTopicModel(3), documents(3, 30, 100, 60)),
}
BAD = {
    "rows": (CorrelatedMultinomial(), lopsided(8, 2, 20, 10**5)),
    "process": (MultinomialGP(learn=("kernel", "scale")), TIMES, lopsided(12, 2, 2)),
    "dynamics": (MultinomialLDS(4), list(rng().integers(0, 6, (2, 60)))),
    "composition": (DynamicMultinomial("return"), lopsided(20, 2, 2)),
    "topics": (CorrelatedTopicModel(12), documents(20, 200, 120, 80, overlap=0.3)),
}


def fit(model, *data):
    """Return the fitted model and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.set_params(random_state=1).fit(*data)
    return model, [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]


@pytest.mark.parametrize("family", GOOD)
def test_a_default_fit_that_converges_is_silent(family):
    model, warned = fit(*GOOD[family])
    assert not warned
    verdict = model.posterior_.verdict()
    assert verdict.ess.value >= 400
    assert verdict.rhat.value <= (1.01 if family == "rows" else 1.05)


@pytest.mark.parametrize("family", BAD)
def test_a_default_fit_that_does_not_says_so(family):
    model, warned = fit(*BAD[family])
    assert len(warned) == 1
    assert warned[0].startswith("the chains have not converged: ")
    assert not model.posterior_.verdict().converged


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_a_run_that_ends_when_it_is_done_has_the_same_bits_on_any_threads(n_jobs):
    until = Gibbs(50, 50, n_chains=4, min_ess=400, max_draws=2000)
    counts = rng().multinomial(100, rng().dirichlet(np.full(3, 5.0), 1100))  # several blocks
    one, other = (
        CorrelatedMultinomial(inference=until, random_state=2, n_jobs=n).fit(counts).posterior_
        for n in (1, n_jobs)
    )
    assert 50 < one["mean"].shape[1] < 2000
    assert other.tree.identical(one.tree)
