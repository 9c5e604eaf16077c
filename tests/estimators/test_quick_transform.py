"""`transform` without draws: as good as draws, alike in any company, and sums over states in little room."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from polystick import CorrelatedTopicModel, DynamicTopicModel, Gibbs, scores
from polystick.baselines import LDA, LogisticNormalTopicModel

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*never seen in fit", "ignore::sklearn.exceptions.ConvergenceWarning"
)
SCHEDULE = Gibbs(n_draws=60, n_burn=60, n_chains=1)
N_WORDS, YEARS = 40, np.repeat([2000, 2001, 2002], 60)


def corpus(n=180, length=60, seed=1):
    """Return documents of three topics whose words hardly overlap."""
    rng = np.random.default_rng(seed)
    topics = np.random.default_rng(0).dirichlet(np.full(N_WORDS, 0.1), 3)
    return rng.multinomial(length, rng.dirichlet([0.4, 0.4, 0.4], n) @ topics)


MODELS = {
    "sticks": CorrelatedTopicModel(3),
    "tree": CorrelatedTopicModel(3, decomposition="balanced"),
    "lda": LDA(3),
    "dynamic": DynamicTopicModel(3),
    "evolving": DynamicTopicModel(3, evolving=True),
    "softmax": LogisticNormalTopicModel(3),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    model = MODELS[request.param].set_params(inference=SCHEDULE, random_state=0, n_jobs=1)
    times = {"times": YEARS} if isinstance(model, DynamicTopicModel) else {}
    return model.fit(corpus(), **times), times


def test_hidden_words_are_as_likely_as_under_draws(fitted):
    model, times = fitted
    counts = corpus(seed=2)
    shown, hidden = scores.split_words(counts, 0.5, 0)
    if model.topics_.ndim == 3:
        numbers = model.slices_.number(YEARS)
        words = model.topics_[:, numbers]
    else:
        words = np.repeat(model.topics_[:, None], len(counts), axis=1)
    logs = []
    for method in ("fast", "exact"):
        shares = model.transform(shown, method=method, **times)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        mixed = np.einsum("nt,tnv->nv", shares, words)
        logs.append((hidden.toarray() * np.log(mixed)).sum(axis=1))
    found = scores.bootstrap_difference(*logs, hidden, n_boot=200)
    assert found.estimate > -0.01
    assert (logs[0] == logs[1]).all() == isinstance(model, LogisticNormalTopicModel)


def test_the_same_in_any_company_on_any_number_of_threads(fitted):
    model, times = fitted
    counts, some = corpus(), slice(50, 53)
    expected = model.transform(counts, **times)
    alone = {"times": YEARS[some]} if times else {}
    np.testing.assert_array_equal(model.transform(counts[some], **alone), expected[some])
    try:
        np.testing.assert_array_equal(
            model.set_params(n_jobs=2).transform(counts, **times), expected
        )
    finally:
        model.set_params(n_jobs=1)


def test_documents_without_words_have_the_shares_that_the_law_expects(fitted):
    model, times = fitted
    nothing, given = np.zeros((1, N_WORDS), int), {"times": [2001]} if times else {}
    many = np.mean(model.transform(nothing, return_draws=True, n_draws=60, **given)[1], axis=0)
    assert np.abs(model.transform(nothing, **given) - many).max() < 0.15


def test_long_documents_of_one_word_end_in_its_topic(fitted):
    model, times = fitted
    topics = model.topics_ if model.topics_.ndim == 2 else model.topics_[:, 1]
    given = {"times": [2001]} if times else {}
    for t in range(3):
        word = np.argmax(topics[t] / topics.sum(axis=0))
        document = np.zeros((1, N_WORDS), int)
        document[0, word] = 7000
        shares = model.transform(document, **given)[0]
        assert np.log(shares @ topics[:, word]) > np.log(topics[:, word].max()) - 0.1


def test_draws_and_deviations_are_exact(fitted):
    model, times = fitted
    counts = corpus()
    mean, draws, std = model.transform(
        counts, return_draws=True, return_std=True, n_draws=8, **times
    )
    np.testing.assert_array_equal(mean, model.transform(counts, method="exact", n_draws=8, **times))
    assert draws.shape == (8, *mean.shape)
    np.testing.assert_allclose(std, draws.std(axis=0), atol=1e-12)


def test_unknown_methods_are_refused(fitted):
    model, times = fitted
    with pytest.raises(ValueError, match="method must be 'fast' or 'exact'; got 'em'"):
        model.transform(corpus(), method="em", **times)


def test_states_are_of_no_use_where_nothing_is_drawn(fitted):
    model, times = fitted
    if model.model_.folds_quickly:  # else shares are drawn after all
        with pytest.raises(ValueError, match='n_draws is of no use to method="fast"'):
            model.transform(corpus(), n_draws=8, **times)
    model.transform(corpus(), n_draws=8, return_std=True, **times)


@pytest.mark.parametrize("ask", ["transform", "score"])
def test_memory_does_not_grow_with_states(ask):
    n_topics = 20
    schedule = Gibbs(n_draws=48, n_burn=2, n_chains=1)
    model = CorrelatedTopicModel(n_topics, inference=schedule, random_state=0, n_jobs=1)
    model.fit(corpus())
    many = scipy.sparse.csr_array(corpus(3000, 4))
    asked = {
        "transform": lambda n: model.transform(many, method="exact", n_draws=n),
        "score": lambda n: model.score(many, n_draws=n),
    }[ask]

    def peak(n_draws):
        tracemalloc.start()
        try:
            asked(n_draws)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    asked(1)
    grown = peak(16) - peak(2)
    assert grown < 2 * many.shape[0] * n_topics * 8  # 14 more of them, were all held
