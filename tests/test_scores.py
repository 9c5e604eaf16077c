"""Scores and weighted draws."""

import weakref

import numpy as np
import pytest
import scipy.sparse
import scipy.stats

from polystick import scores


def test_log_mean_exp():
    values = np.array([[0.0, -1e4, np.log(3)], [1e4, 1e4, 1e4]])
    np.testing.assert_allclose(scores.log_mean_exp(values, axis=1), [np.log(4 / 3), 1e4])


def test_effective_draws():
    weights = np.log([[1.0, 1.0, 1.0, 1.0], [1.0, 1e-300, 1e-300, 1e-300]])
    np.testing.assert_allclose(scores.effective_draws(weights, axis=1), [4.0, 1.0])
    np.testing.assert_allclose(scores.effective_draws(np.log([1.0, 2.0, 3.0]), axis=0), 36 / 14)


def test_resampling_keeps_each_draw_as_often_as_its_weight_says():
    weights = np.array([[0.5, 0.25, 0.25, 0.0], [0.0, 0.0, 0.0, 1.0]])
    draws = np.arange(8.0).reshape(2, 4, 1)
    found = scores.resampled(weights, draws, 8)[..., 0]
    assert sorted(found[:, 0]) == [0, 0, 0, 0, 1, 1, 2, 2]
    assert set(found[:, 1]) == {7.0}
    assert scores.resampled(np.array([[0.3, 0.7]]), draws[:1, :2], 1)[0, 0] == 1  # the middle


def test_per_count():
    assert scores.per_count(np.array([-2.0, -4.0]), np.array([[1, 2], [0, 0]])) == pytest.approx(
        -2.0
    )
    assert np.isnan(scores.per_count(np.zeros(1), np.zeros((1, 2))))


def test_expected_log_score():
    probabilities = np.array([[0.5, 0.25, 0.25], [0.1, 0.9, 0.0], [1.0, 0.0, 0.0]])
    counts = np.array([[2, 1, 0], [1, 0, 0], [0, 0, 0]])
    expected = (2 * np.log(0.5) + np.log(0.25) + np.log(0.1)) / 4
    for form in (np.asarray, scipy.sparse.csr_array, unsorted):
        found = scores.expected_log_score(probabilities, form(counts))
        assert found == pytest.approx(expected, rel=1e-14)
    assert (
        scores.expected_log_score(probabilities, np.array(counts) + np.eye(3)[[2] * 3]) == -np.inf
    )
    assert np.isnan(scores.expected_log_score(probabilities, 0 * counts))
    with pytest.raises(
        ValueError, match=r"same rows and categories; got shapes \(3, 3\) and \(2, 3\)"
    ):
        scores.expected_log_score(probabilities, counts[:2])


def corpus(seed=0, n=30, n_words=40):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.3, 3.0, (n, n_words)))
    counts[3], counts[4], counts[5] = 0, np.arange(n_words) == 7, 2 * (np.arange(n_words) == 7)
    return counts


@pytest.mark.parametrize("share", [0.05, 0.5, 0.99])
def test_split_is_exact(share):
    counts = corpus()
    observed, held_out = scores.split_words(counts, share, seed=3)
    assert observed.format == held_out.format == "csr"
    assert observed.dtype == held_out.dtype == np.int64
    np.testing.assert_array_equal((observed + held_out).toarray(), counts)
    assert observed.data.min() > 0
    assert held_out.data.min() > 0
    n = counts.sum(axis=1)
    expected = np.array([round(share * total) for total in n])
    expected[n >= 2] = np.clip(expected[n >= 2], 1, n[n >= 2] - 1)
    np.testing.assert_array_equal(observed.sum(axis=1), expected)
    assert observed.sum(axis=1)[5] == 1  # two tokens: one and one


def test_split_depends_on_the_document_and_the_seed_alone():
    counts = corpus()
    observed, held_out = (part.toarray() for part in scores.split_words(counts, seed=3))
    order = np.random.default_rng(1).permutation(30)[:17]
    wider = np.hstack([counts[order], np.zeros((17, 5), int)])
    for form in (np.asarray, scipy.sparse.csr_matrix, lambda c: c.astype(float), unsorted):
        found, rest = (part.toarray()[:, :40] for part in scores.split_words(form(wider), seed=3))
        np.testing.assert_array_equal(found, observed[order])
        np.testing.assert_array_equal(rest, held_out[order])
    other = scores.split_words(counts, seed=4)[0].toarray()
    assert np.mean((other != observed).any(axis=1)) > 0.8


def unsorted(counts):
    """Return a CSR matrix with its words back to front, in two parts each, and stored zeros."""
    rows, words = (np.tile(index[::-1], 2) for index in np.indices(counts.shape).reshape(2, -1))
    half = counts.ravel()[::-1] // 2
    data = np.concatenate([half, counts.ravel()[::-1] - half])
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows))])
    return scipy.sparse.csr_matrix((data[order], words[order], indptr), shape=counts.shape)


def test_split_is_hypergeometric():
    document = np.array([[6, 3, 1, 0, 2]])
    draws = np.array(
        [scores.split_words(document, 0.3, seed)[0].toarray()[0] for seed in range(4000)]
    )
    law = scipy.stats.multivariate_hypergeom(document[0], 4)
    errors = np.sqrt(np.diag(law.cov()) / len(draws))
    used = errors > 0
    assert np.all(np.abs(draws.mean(axis=0) - law.mean())[used] < 4.5 * errors[used])
    products = (draws[:, 0] - law.mean()[0]) * (draws[:, 1] - law.mean()[1])
    error = products.std() / np.sqrt(len(draws))
    assert abs(products.mean() - law.cov()[0, 1]) < 4.5 * error
    patterns, times = np.unique(draws, axis=0, return_counts=True)
    expected = law.pmf(patterns) * len(draws)
    assert expected.sum() == pytest.approx(len(draws), rel=0.01)
    often = expected > 20
    assert (
        scipy.stats.chi2.sf(((times - expected)[often] ** 2 / expected[often]).sum(), often.sum())
        > 1e-5
    )


@pytest.mark.parametrize(
    ("counts", "share", "message"),
    [
        ([[1.5, 2]], 0.5, "must be whole numbers"),
        ([[-1, 2]], 0.5, "must be whole numbers"),
        ([[np.nan, 2]], 0.5, "must be whole numbers"),
        ([[np.inf, 2]], 0.5, "must be whole numbers"),
        ([[1, 2]], 0.0, "between 0 and 1, both excluded; got 0.0"),
        ([[1, 2]], 1, "between 0 and 1"),
        ([[1, 2]], np.nan, "between 0 and 1"),
    ],
)
def test_bad_splits(counts, share, message):
    with pytest.raises(ValueError, match=message):
        scores.split_words(np.array(counts), share)


def states(n_states=5, n=30, n_topics=4, n_words=40):
    rng = np.random.default_rng(8)
    proportions = rng.dirichlet(np.ones(n_topics), (n_states, n))
    return proportions, rng.dirichlet(np.full(n_words, 0.3), (n_states, n_topics))


@pytest.mark.parametrize("coefficient", [False, True])
@pytest.mark.parametrize("cells", [3, 8192])
def test_completion_twin(coefficient, cells, monkeypatch):
    monkeypatch.setattr(scores, "CELLS", cells)
    counts, (proportions, topics) = corpus(), states()
    probabilities = proportions @ topics  # (S, n, V)
    by_token = (counts * np.log(probabilities.mean(axis=0))).sum(axis=1)
    by_document = scores.log_mean_exp((counts * np.log(probabilities)).sum(axis=2), axis=0)
    extra = 0.0
    if coefficient:
        laws = [scipy.stats.multinomial(x.sum(), np.full(40, 1 / 40)) for x in counts]
        extra = [law.logpmf(x) + x.sum() * np.log(40) for law, x in zip(laws, counts)]
    for per, expected in (("token", by_token), ("document", by_document)):
        found = scores.completion(
            iter(proportions),
            (beta for beta in topics),
            unsorted(counts),
            per=per,
            coefficient=coefficient,
        )
        np.testing.assert_allclose(found, expected + extra, rtol=1e-11, atol=1e-11)
    tokens = scores.token_log_probabilities(proportions, topics, counts)
    np.testing.assert_allclose(tokens, np.log(probabilities.mean(axis=0))[counts > 0])


def test_log_coefficients_by_hand():
    counts = np.array([[2, 1, 0], [0, 0, 0], [0, 3, 0], [1, 1, 2]])
    for form in (np.asarray, scipy.sparse.csr_array, scipy.sparse.csr_matrix, unsorted):
        found = scores.log_coefficients(form(counts))
        np.testing.assert_allclose(found, np.log([3, 1, 1, 12]), atol=1e-14)


def test_one_state_has_one_likelihood():
    counts, (proportions, topics) = corpus(), states(n_states=1)
    found = [scores.completion(proportions, topics, counts, per=p) for p in ("token", "document")]
    np.testing.assert_allclose(*found, rtol=1e-13)


def test_single_precision_and_vanishing_probabilities():
    counts, (proportions, topics) = corpus(), states()
    low = scores.completion(
        proportions.astype(np.float32), topics.astype(np.float32), counts, per="document"
    )
    np.testing.assert_allclose(
        low, scores.completion(proportions, topics, counts, per="document"), 1e-6
    )
    never = np.array([[[1.0, 0.0]]])
    for per in ("token", "document"):
        found = scores.completion(np.ones((1, 1, 1)), never, np.array([[1, 2]]), per=per)
        np.testing.assert_allclose(found, [2 * np.log(2.0**-149)])


def test_one_state_at_a_time():
    counts, (proportions, topics) = corpus(), states()
    alive = []

    def one_by_one():
        for beta in topics:
            copy = beta.copy()
            alive.append(weakref.ref(copy))
            assert sum(ref() is not None for ref in alive) <= 2  # this one and the one before
            yield copy

    scores.completion(proportions, one_by_one(), counts)
    assert len(alive) == len(topics)


def test_bad_states():
    counts, (proportions, topics) = corpus(), states()
    for theta, beta, message in (
        (proportions[:3], topics, "got only 3 of proportions"),
        (proportions, iter(topics[:4]), "got only 4 of topics"),
        ([], [], "at least one state; got none"),
        (proportions[0], topics[0], "put a single state in a list"),
        (proportions[:, :5], topics, r"\(30, T\) and topics \(T, 40\).*got \(5, 4\) and \(4, 40\)"),
        (proportions, topics[..., :9], r"got \(30, 4\) and \(4, 9\)"),
        (proportions[..., :3], topics, r"got \(30, 3\) and \(4, 40\)"),
    ):
        with pytest.raises(ValueError, match=message):
            scores.completion(theta, beta, counts)
    with pytest.raises(ValueError, match='"token" or "document"; got \'word\''):
        scores.completion(proportions, topics, counts, per="word")


def test_perplexity():
    counts = np.array([[1, 2], [0, 5]])
    uniform = -np.log(7.0) * counts.sum(axis=1)
    assert scores.perplexity(uniform, counts) == pytest.approx(7)
    assert scores.perplexity(uniform, counts.sum(axis=1)) == pytest.approx(7)


def test_bootstrap_knows_the_standard_error_of_a_ratio():
    rng = np.random.default_rng(5)
    tokens = rng.integers(1, 200, 400)
    shift = 0.05 * tokens + rng.normal(0, 3, 400)  # the same common noise in both: pairs matter
    common = rng.normal(0, 1e4, 400)
    found = scores.bootstrap_difference(common + shift, common, tokens)
    assert found.estimate == pytest.approx(shift.sum() / tokens.sum())
    residual = shift - found.estimate * tokens
    error = np.sqrt((residual**2).sum()) / tokens.sum()  # the delta method
    assert found.standard_error == pytest.approx(error, rel=0.1)
    assert found.lower == pytest.approx(found.estimate - 1.96 * error, abs=0.3 * error)
    assert found.upper == pytest.approx(found.estimate + 1.96 * error, abs=0.3 * error)
    assert found == scores.bootstrap_difference(common + shift, common, tokens)
    back = scores.bootstrap_difference(common, common + shift, tokens)
    np.testing.assert_allclose(back, [-found[0], found[1], -found[3], -found[2]], rtol=1e-6)


def test_bootstrap_takes_counts_and_leaves_empty_documents_out():
    counts = corpus()
    a, b = -2.0 * counts.sum(axis=1), -3.0 * counts.sum(axis=1)
    for form in (counts, scipy.sparse.csr_array(counts), scipy.sparse.csr_matrix(counts)):
        np.testing.assert_allclose(
            scores.bootstrap_difference(a, b, form, 50), [1, 0, 1, 1], atol=1e-12
        )
    kept = counts.sum(axis=1) > 0
    a = a + np.where(kept, np.arange(30), 0)
    found = scores.bootstrap_difference(a, b, counts, 50)
    assert found == scores.bootstrap_difference(a[kept], b[kept], counts[kept], 50)
    with pytest.raises(ValueError, match=r"same documents; got \(30,\), \(29,\)"):
        scores.bootstrap_difference(a, b[:-1], counts)
    with pytest.raises(ValueError, match="must have tokens; got none"):
        scores.bootstrap_difference(a[3:4], b[3:4], counts[3:4])


# sequences


def test_held_out_steps_of_sequences():
    rng = np.random.default_rng(6)
    values, starts = np.log(rng.uniform(0.1, 0.9, (3, 9))), np.array([0, 4, 4, 9])
    ahead = np.log(np.exp(values).mean(axis=0))
    found = scores.held_out_steps(values, starts, [1, 0, 3])
    np.testing.assert_allclose(found, [ahead[1:4].sum(), 0.0, ahead[7:].sum()])
    np.testing.assert_allclose(
        scores.held_out_steps(values, starts), [ahead[:4].sum(), 0.0, ahead[4:].sum()]
    )
    joint = scores.held_out_steps(values, starts, [1, 0, 3], joint=True)
    products = [np.exp(values[:, part].sum(axis=1)).mean() for part in (slice(1, 4), slice(7, 9))]
    np.testing.assert_allclose(joint, [np.log(products[0]), 0.0, np.log(products[1])], atol=1e-12)
    assert (np.abs(joint - found)[[0, 2]] > 1e-3).all()  # states differ, so the two do


def test_held_out_steps_where_both_scores_are_the_same():
    rng = np.random.default_rng(7)
    values, starts = rng.normal(size=(5, 6)), [0, 3, 6]
    for states, n_seen in ((values, 2), (values[:1], 0)):  # one step left, or one state
        ahead = scores.held_out_steps(states, starts, n_seen)
        joint = scores.held_out_steps(states, starts, n_seen, joint=True)
        np.testing.assert_allclose(ahead, joint)
    for joint in (False, True):
        assert not scores.held_out_steps(values, starts, 3, joint=joint).any()
        far = scores.held_out_steps(values - 1e4, starts, joint=joint)  # no underflow
        np.testing.assert_allclose(far, scores.held_out_steps(values, starts, joint=joint) - 3e4)


def test_what_could_not_come_before_the_held_out_steps_does_not_matter():
    values = np.array([[-np.inf, -1.0, -2.0], [-1.0, -1.0, -2.0]])
    for joint in (False, True):
        assert scores.held_out_steps(values, [0, 3], 1, joint=joint) == pytest.approx(-3.0)
    with pytest.raises(ValueError, match=r"\(n_draws, 3\).*got shape \(2, 2\)"):
        scores.held_out_steps(values[:, :2], [0, 3])
    with pytest.raises(ValueError, match="put a single state in a list"):
        scores.held_out_steps(values[0], [0, 3])
