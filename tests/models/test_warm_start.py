"""The warm start: its tokens, its choice of documents, and what it finds."""

import numba
import numpy as np
import pytest
import scipy.sparse
from scipy import optimize
from scipy.special import gammaln

from polystick.alignment import align
from polystick.keys import Key
from polystick.models import documents, warm_start
from polystick.models.warm_start import choose, collapsed_start, expand, learn_alpha
from statistics_tools import MAX_Z

PLAIN = bool(numba.config.DISABLE_JIT)


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


@pytest.fixture
def counts(rng):
    """Documents of very different lengths, some of them empty."""
    counts = rng.poisson(rng.gamma(0.5, 2.0, size=(60, 1)), size=(60, 9))
    counts[[0, 7, 59]] = 0
    return counts


# tokens


def words_of(counts):
    return [np.repeat(np.arange(counts.shape[1]), row) for row in counts]


@pytest.mark.parametrize("size", [1, 7, 100])
def test_tokens_are_those_of_the_counts(counts, size):
    tokens = expand(documents.cut(counts, size))
    np.testing.assert_array_equal(tokens.rows, np.arange(60))
    np.testing.assert_array_equal(np.diff(tokens.starts), counts.sum(axis=1))
    np.testing.assert_array_equal(tokens.words, np.concatenate(words_of(counts)))
    assert tokens.words.dtype == np.int32


def test_tokens_of_a_block_with_documents_left_out(counts):
    (block,) = documents.cut(counts, 100)
    order = np.array([5, 3, 40])
    part = block._replace(
        rows=block.rows[order], starts=block.starts[order], stops=block.stops[order]
    )
    tokens = expand([part])
    np.testing.assert_array_equal(tokens.words, np.concatenate(words_of(counts[order])))
    np.testing.assert_array_equal(tokens.starts, np.cumsum([0, *counts[order].sum(axis=1)]))


@pytest.mark.parametrize(
    ("counts", "culprit"),
    [([[9, 9], [0, 1]], "document"), ([[9, 0], [9, 1]], "word")],
)
def test_more_tokens_than_single_precision_counts_are_refused(counts, culprit, monkeypatch):
    shards = documents.cut(np.array(counts))
    assert len(expand(shards).words) == np.sum(counts)
    monkeypatch.setattr(warm_start.collapsed, "LARGEST_COUNT", 17)
    with pytest.raises(ValueError, match=f"a {culprit} must not have more than 17 tokens; got 18"):
        expand(shards)


# the choice of documents


def test_a_small_corpus_is_taken_whole(counts, rng):
    shards = documents.cut(counts, 7)
    assert choose(shards, counts.sum(), rng) == shards


def test_a_large_corpus_is_represented(counts, monkeypatch):
    monkeypatch.setattr(warm_start, "MIN_DOCUMENTS", 5)
    shards, limit = documents.cut(counts, 7), counts.sum() // 3
    tokens = expand(choose(shards, limit, Key(3).generator("x")))
    assert 0.5 * limit < len(tokens.words) <= limit
    assert 5 < len(tokens.rows) < 60
    again = expand(choose(documents.cut(counts, 100), limit, Key(3).generator("x")))
    other = expand(choose(shards, limit, Key(4).generator("x")))
    for left, right in zip(tokens, again):
        np.testing.assert_array_equal(left, right)
    assert not np.array_equal(tokens.rows, other.rows)


def test_long_documents_give_a_part_of_their_tokens(rng):
    counts = rng.poisson(400.0, size=(5, 8))
    counts[:, 3] = 0
    tokens = expand(choose(documents.cut(counts, 2), 1000, rng))
    np.testing.assert_array_equal(tokens.rows, np.arange(5))
    np.testing.assert_array_equal(np.diff(tokens.starts), np.full(5, 200))
    times = np.bincount(tokens.words, minlength=8)
    assert times[3] == 0
    assert (times[[0, 1, 2, 4, 5, 6, 7]] > 50).all()


def test_weights_become_whole_tokens_without_bias(rng):
    weights = scipy.sparse.csr_array(np.tile([0.2, 3.0, 1.7], (4000, 1)))
    tokens = expand(choose(documents.cut(weights, 512), np.inf, rng))
    times = np.bincount(tokens.words, minlength=3) / 4000
    assert times[1] == 3.0
    assert abs(times[0] - 0.2) < MAX_Z * np.sqrt(0.2 * 0.8 / 4000)
    assert abs(times[2] - 1.7) < MAX_Z * np.sqrt(0.3 * 0.7 / 4000)


# alpha


def log_density(alpha, counts):
    """Log density of counts, but for a constant, and of the prior."""
    total, lengths = alpha.sum(), counts.sum(axis=1)
    value = (gammaln(counts + alpha) - gammaln(alpha)).sum()
    value += (gammaln(total) - gammaln(total + lengths)).sum()
    shape, rate = warm_start.PRIOR_SHAPE, warm_start.PRIOR_RATE
    return value + ((shape - 1) * np.log(alpha) - rate * alpha).sum()


def topic_counts(alpha, n, n_tokens, rng):
    return np.stack([rng.multinomial(n_tokens, rng.dirichlet(alpha)) for _ in range(n)])


def test_alpha_is_learned_as_by_any_optimiser(rng):
    counts = topic_counts(np.array([0.3, 1.0, 0.1]), 40, 15, rng)
    counts[3] = 0
    found = optimize.minimize(lambda x: -log_density(np.exp(x), counts), np.zeros(3), tol=1e-12)
    np.testing.assert_allclose(learn_alpha(counts, np.ones(3), 4000), np.exp(found.x), rtol=1e-4)


def test_each_step_for_alpha_is_a_gain(rng):
    counts, alpha = topic_counts(np.array([0.3, 2.0, 0.05, 0.1]), 30, 20, rng), np.ones(4)
    values = [log_density(alpha, counts)]
    for _ in range(50):
        alpha = learn_alpha(counts, alpha, 1)
        values.append(log_density(alpha, counts))
    assert (np.diff(values) > -1e-9).all()
    assert values[-1] > values[0] + 10


def test_alpha_is_recovered(rng):
    truth = np.array([0.05, 0.1, 0.2, 0.4, 0.8])
    found = learn_alpha(topic_counts(truth, 4000, 60, rng), np.full(5, 1.0), 1000)
    np.testing.assert_allclose(found, truth, rtol=0.1)  # about three standard errors of the rarest


def test_alpha_of_an_empty_topic_stays_positive(rng):
    counts = topic_counts(np.array([0.5, 0.5]), 50, 10, rng)
    alpha = learn_alpha(np.column_stack([counts, np.zeros(50, int)]), np.ones(3), 500)
    assert 0 < alpha[2] < 1e-3
    assert np.isfinite(learn_alpha(np.zeros((4, 3), int), np.ones(3))).all()


# what it finds


def test_known_topics_are_found(rng):
    topics = np.repeat(np.eye(4), 8, axis=1) * rng.gamma(2.0, size=(4, 32)) + 0.02
    topics /= topics.sum(axis=1, keepdims=True)
    shares = rng.dirichlet(np.full(4, 0.5), 60 if PLAIN else 300)
    counts = rng.multinomial(60, shares @ topics)
    start = collapsed_start(documents.cut(counts), 4, 32, 0.1, Key(1), n_sweeps=25 if PLAIN else 60)
    order, similarity = align([topics, start.word_topics.T + 0.1])
    assert similarity[1].min() > (0.9 if PLAIN else 0.95)
    found = start.document_topics[:, order[1]] / 60
    assert np.corrcoef(found.ravel(), shares.ravel())[0, 1] > 0.95


def test_a_start_counts_each_token_once(counts):
    start = collapsed_start(documents.cut(counts), 4, 9, 0.1, Key(1), n_sweeps=7)
    np.testing.assert_array_equal(start.word_topics.sum(axis=1), counts.sum(axis=0))
    np.testing.assert_array_equal(start.document_topics.sum(axis=1), counts.sum(axis=1))
    np.testing.assert_array_equal(start.word_topics.sum(axis=0), start.document_topics.sum(axis=0))
    np.testing.assert_array_equal(start.rows, np.arange(60))
    assert (start.alpha > 0).all()


def test_a_start_depends_on_the_key_and_not_on_the_blocks(counts):
    starts = [
        collapsed_start(
            documents.cut(counts, size), 4, 9, 0.1, Key(seed), max_tokens=150, n_sweeps=7
        )
        for size, seed in ((7, 1), (100, 1), (7, 2))
    ]
    for left, right in zip(*starts[:2]):
        np.testing.assert_array_equal(left, right)
    assert not np.array_equal(starts[0].word_topics, starts[2].word_topics)


def test_whole_weights_start_like_counts(counts):
    starts = [
        collapsed_start(documents.cut(x), 4, 9, 0.1, Key(1), n_sweeps=7)
        for x in (counts, counts.astype(float))
    ]
    np.testing.assert_array_equal(starts[0].word_topics, starts[1].word_topics)


def test_a_corpus_without_words_starts_too():
    start = collapsed_start(documents.cut(np.zeros((3, 5), int)), 2, 5, 0.1, Key(0))
    assert start.word_topics.sum() == 0
    assert start.document_topics.shape == (3, 2)
    assert np.isfinite(start.alpha).all()


# topics that died, and twins


def stuck_run(rng):
    """Return a run with six topics: two of them are one, and one has no tokens."""
    counts = rng.poisson(9.0, (40, 12)) * np.kron(np.eye(4, dtype=int), np.ones((10, 3), int))
    tokens = warm_start.expand(documents.cut(counts, 40))
    run = warm_start._Run(tokens, 6, 12, 0.1, Key(1), 100)
    theme = (tokens.words // 3).astype(np.int32)
    twin = (theme == 0) & (rng.random(len(theme)) < 0.5)
    topics = np.where(twin, 4, theme).astype(np.int32)
    run.state = warm_start.assigned(tokens, topics, 6, 12)
    return run


def test_twins_are_joined_and_dead_topics_get_tokens(rng):
    run = stuck_run(rng)
    before = run.state.word_topics.sum(axis=1)
    assert warm_start.twins(run.state.word_topics[:, :6]) == [(0, 4)]
    run._revive()
    np.testing.assert_array_equal(run.state.word_topics.sum(axis=1), before)
    assert (run.state.totals > 0).all()
    assert (run.alpha > 0).all()
    split = warm_start.count_documents(run.tokens, run.state.assignments, 6)[:, [4, 5]] > 0
    assert not (split[:, 0] & split[:, 1]).any()


def test_topics_that_live_are_left_alone(rng):
    run = stuck_run(rng)
    theme = (run.tokens.words // 2).astype(np.int32)
    run.state = warm_start.assigned(run.tokens, theme, 6, 12)
    state = run.state
    run._revive()
    assert run.state is state


def test_sweeps_are_fewer_where_tokens_are_many(counts, monkeypatch):
    """The likeliest of a few runs goes on; a large corpus gets the sweeps of a trial alone."""
    made = []
    advance = warm_start.advance
    monkeypatch.setattr(warm_start, "advance", lambda *a: made.append(1) or advance(*a))
    shards = documents.cut(counts, 10)
    warm_start.collapsed_start(shards, 3, counts.shape[1], 0.1, Key(1))
    trials = warm_start.MOST_STARTS * warm_start.N_TRIAL
    assert len(made) == trials + warm_start.N_SWEEPS - warm_start.N_TRIAL
    made.clear()
    monkeypatch.setattr(warm_start, "TOKENS_SWEPT", 1)
    monkeypatch.setattr(warm_start, "TOKENS_OF_STARTS", 1)
    warm_start.collapsed_start(shards, 3, counts.shape[1], 0.1, Key(1))
    assert len(made) == warm_start.N_TRIAL
