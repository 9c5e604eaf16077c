"""New documents under fixed topics: shares and probabilities against quadrature."""

import numpy as np
import pytest
import scipy.sparse

from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.estimators.topics import CorrelatedTopicModel
from polystick.inference.gibbs import Gibbs
from polystick.keys import Key
from polystick.models import documents, folding
from polystick.models.topics import TopicModel
from statistics_tools import MAX_Z, standard_error, z_scores
from topic_tools import JIT, correlated_topics, exact_document, needs_jit, small_corpus, weak_model

MEAN, COV = np.array([0.4, -0.6]), np.array([[2.0, 0.8], [0.8, 3.0]])
TOPICS = np.array([[0.7, 0.1, 0.1, 0.1], [0.05, 0.8, 0.1, 0.05], [0.1, 0.1, 0.2, 0.6]])
MODEL = correlated_topics(
    4, 0.1, NormalInverseWishart(MEAN, 1.0, COV, 6.0), Decomposition.sticks([0, 1, 2])
)
STATE = {"mean": MEAN, "cov": COV, "topics": TOPICS}
DOCUMENTS = {"mixed": [3, 1, 0, 2], "one word": [0, 5, 0, 0], "long": [9, 2, 3, 8]}
N = 3000


def copies(counts, n=N):
    """Return a block of documents that are alike but for their ids."""
    return documents.block(scipy.sparse.csr_array(np.tile(counts, (n, 1))), ids_of(n))


def ids_of(n):
    return np.arange(n, dtype=np.uint64)


def weights_of(counts, model=MODEL, **options):
    prior = MODEL.fold_prior(STATE)
    return np.exp(folding.annealed_log_weights(model, [prior], copies(counts), 5, **options)[0])


# the probability of a document


@needs_jit
@pytest.mark.parametrize("n_stages", [1, 4, 40])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_annealed_weights_average_to_the_probability_of_the_words(name, n_stages):
    exact = exact_document(MODEL, MEAN, COV, TOPICS, DOCUMENTS[name]).probability
    z = z_scores(weights_of(DOCUMENTS[name], n_stages=n_stages), exact)
    assert abs(z) < MAX_Z


@needs_jit
def test_stages_narrow_the_weights_of_many_topics():
    rng, model = np.random.default_rng(1), weak_model(20, 100)
    topics = rng.dirichlet(np.full(100, 0.05), 20)
    prior = model.fold_prior(
        {"mean": model.shares.law.mean, "cov": 2 * np.eye(19), "topics": topics}
    )
    psi = rng.normal(model.shares.law.mean, np.sqrt(2))
    shard = copies(rng.multinomial(60, model.link.shares(psi) @ topics), 200)
    once, often = (
        folding.annealed_log_weights(model, [prior], shard, 1, n_stages=n).std() for n in (1, 30)
    )
    assert often < 0.5 * once


@needs_jit
def test_a_skipped_stage_is_caught(monkeypatch):
    """Negative control: the words of the first stage that has any are never weighed."""
    stages = folding._stages
    monkeypatch.setattr(folding, "_stages", lambda *args: stages(*args)[2:])
    exact = exact_document(MODEL, MEAN, COV, TOPICS, DOCUMENTS["mixed"]).probability
    assert abs(z_scores(weights_of(DOCUMENTS["mixed"], n_stages=4), exact)) > MAX_Z


class Foresight(TopicModel):
    """Shares have seen the words before they are weighed by them."""

    def prior_rows(self, prior, shard, key):
        rows = super().prior_rows(prior, shard, key)
        return self.fold(prior, shard, rows, key)


@needs_jit
def test_shares_that_know_the_words_too_soon_are_caught():
    wrong = Foresight(MODEL.words, MODEL.shares, MODEL.link)
    exact = exact_document(MODEL, MEAN, COV, TOPICS, DOCUMENTS["one word"]).probability
    assert abs(z_scores(weights_of(DOCUMENTS["one word"], wrong, n_stages=4), exact)) > MAX_Z


def test_a_document_without_words_has_probability_one():
    shard = copies([0, 0, 0, 0], 3)
    found = folding.annealed_log_weights(MODEL, [MODEL.fold_prior(STATE)] * 2, shard, 1)
    np.testing.assert_array_equal(found, np.zeros((2, 3)))


def test_log_probabilities_are_those_of_the_mixed_topics():
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 4, (6, 4))
    counts[[0, 3, 5]] = 0
    shares = rng.dirichlet(np.ones(3), 6)
    (shard,) = MODEL.shards(counts)
    found = folding.log_probabilities(MODEL, shard, shares, MODEL.fold_prior(STATE))
    np.testing.assert_allclose(found, np.sum(counts * np.log(shares @ TOPICS), axis=1), rtol=1e-6)


@needs_jit
def test_states_are_independent():
    """The second state draws anew, from the same law."""
    prior = MODEL.fold_prior(STATE)
    shard = copies(DOCUMENTS["mixed"])
    first, second = folding.annealed_log_weights(MODEL, [prior] * 2, shard, 5, n_stages=3)
    bound = MAX_Z / np.sqrt(len(first))
    assert abs(np.corrcoef(first, second)[0, 1]) < bound


# shares


@needs_jit
@pytest.mark.parametrize("name", DOCUMENTS)
def test_folded_shares_have_the_posterior_mean(name):
    exact = exact_document(MODEL, MEAN, COV, TOPICS, DOCUMENTS[name]).shares
    priors = [MODEL.fold_prior(STATE)] * 2
    for mean, draw in folding.fold_in(MODEL, priors, copies(DOCUMENTS[name], N // 3), 3):
        for found in (mean, draw):
            assert np.abs(z_scores(found, exact)).max() < MAX_Z
        assert mean.var() < draw.var()


@needs_jit
def test_shares_under_topics_that_were_not_normalised_are_caught():
    """Negative control."""
    prior = MODEL.fold_prior(STATE)
    exact = exact_document(MODEL, MEAN, COV, TOPICS, DOCUMENTS["mixed"]).shares
    wrong = prior._replace(sizes=prior.sizes * np.array([1.0, 3.0, 1.0]))
    mean, _ = next(folding.fold_in(MODEL, [wrong], copies(DOCUMENTS["mixed"], N // 3), 3))
    assert np.abs(z_scores(mean, exact)).max() > MAX_Z


@needs_jit
def test_prior_rows_follow_the_prior():
    shard = copies([0, 0, 0, 0])
    psi, _ = MODEL.prior_rows(MODEL.fold_prior(STATE), shard, Key(1))
    centred = psi - MEAN
    z = [z_scores(psi, MEAN), z_scores(centred[:, :, None] * centred[:, None], COV).ravel()]
    assert np.abs(np.concatenate(z)).max() < MAX_Z


@needs_jit
def test_a_long_chain_of_one_document_has_the_posterior_mean():
    n = 4000
    priors, shard = [MODEL.fold_prior(STATE)] * n, copies(DOCUMENTS["long"], 1)
    draws = np.stack([d[0] for _, d in folding.fold_in(MODEL, priors, shard, 3, n_sweeps=1)])
    exact = exact_document(MODEL, MEAN, COV, TOPICS, DOCUMENTS["long"]).shares
    assert (np.abs(draws.mean(axis=0) - exact) < MAX_Z * standard_error(draws)).all()


@needs_jit
@pytest.mark.parametrize("firsts", [(0, 1), (0,)])
def test_documents_start_again_at_a_chain_whose_topics_are_others(firsts):
    """A document of 4000 tokens of one topic cannot leave it in a few sweeps: it must start anew."""
    sharp = np.kron(np.eye(2), [0.5, 0.5]) * (1 - 4e-3) + 1e-3
    law = NormalInverseWishart(np.zeros(1), 1.0, 4 * np.eye(1), 4.0)
    model = correlated_topics(4, 0.1, law, Decomposition.sticks([0, 1]))
    states = [
        {"mean": np.zeros(1), "cov": 4 * np.eye(1), "topics": t} for t in (sharp, sharp[::-1])
    ]
    priors = [model.fold_prior(state) for state in states]
    shard = copies([2000, 2000, 0, 0], 20)
    found = [
        mean for mean, _ in folding.fold_in(model, priors, shard, 3, firsts=firsts, n_sweeps=2)
    ]
    assert found[0][:, 0].min() > 0.99
    assert (found[1][:, 1].min() > 0.99) == (1 in firsts)


# tokens in random order, and ids


def test_tokens_in_random_order_are_the_tokens_of_the_document():
    counts = np.array([[0, 0, 0, 0], [3, 0, 1, 2], [0, 0, 0, 9], [50, 40, 0, 0], [0, 0, 0, 0]])
    (shard,) = MODEL.shards(counts)
    tokens = folding.in_random_order(shard, 4)
    np.testing.assert_array_equal(tokens.totals, counts.sum(axis=1))
    for i, row in enumerate(counts):
        words = tokens.words[tokens.starts[i] : tokens.stops[i]]
        np.testing.assert_array_equal(np.bincount(words, minlength=4), row)
    long = tokens.words[tokens.starts[3] : tokens.stops[3]]
    assert (np.diff(long) < 0).any()
    alone = folding.in_random_order(
        documents.block(scipy.sparse.csr_array(counts[3:4]), ids_of(4)[3:]), 4
    )
    np.testing.assert_array_equal(alone.words, long)


def test_stages_end_with_all_words():
    shard = copies(DOCUMENTS["long"], 2)
    stages = folding._stages(shard, 7)
    np.testing.assert_array_equal(stages[[0, -1]], [[0, 0], [22, 22]])
    assert (np.diff(stages, axis=0) >= 0).all()


def test_ids_depend_on_contents_alone():
    rng = np.random.default_rng(2)
    counts = scipy.sparse.csr_array(rng.poisson(0.3, (3000, 12)))
    ids = folding.content_ids(counts)
    order = rng.permutation(3000)
    np.testing.assert_array_equal(folding.content_ids(counts[order]), ids[order])
    for i in (0, 17, 2999):
        np.testing.assert_array_equal(folding.content_ids(counts[i : i + 1]), ids[i : i + 1])
    assert ids.dtype == np.uint64
    contents = np.unique(counts.toarray(), axis=0)
    assert len(np.unique(ids)) == len(contents)


def test_documents_that_differ_a_little_have_other_ids():
    """One cell: each word and count; two cells: each pair of some of those, whose ids add up."""
    words, counts = np.divmod(np.arange(6000), 60)
    cells = scipy.sparse.csr_array((counts + 1, words, np.arange(6001)), shape=(6000, 100))
    single = folding.content_ids(cells)
    assert len(np.unique(single)) == 6000
    some = single[::10]
    sums = (some[:, None] + some)[np.triu_indices(len(some), 1)]
    assert len(np.unique(sums)) == len(sums)


# through the face: a document alone and in company


@pytest.fixture(scope="module")
def fitted():
    _, counts = small_corpus(150 if JIT else 12)
    model = CorrelatedTopicModel(4, inference=Gibbs(8, 8, n_chains=1), random_state=1, n_jobs=1)
    return model.fit(counts), counts[counts.sum(axis=1) > 0]


def results(model, counts):
    options = {"n_draws": 3}
    draws = model.transform(counts, return_draws=True, **options)
    held_out = model.score_samples(counts, method="held_out", **options)
    completion = model.score_samples(counts, per="document", **options)
    return *draws, held_out, completion


@pytest.mark.filterwarnings("ignore:.*never seen in fit")
def test_a_document_has_the_same_result_alone_and_in_company(fitted):
    model, counts = fitted
    shares, draws, held_out, completion = results(model, counts)
    for i in (0, 5, len(counts) - 1)[: 3 if JIT else 1]:
        one = results(model, counts[i : i + 1])
        np.testing.assert_array_equal(one[0][0], shares[i])
        np.testing.assert_array_equal(one[1][:, 0], draws[:, i])
        np.testing.assert_allclose(one[2][0], held_out[i], rtol=1e-9)
        np.testing.assert_array_equal(one[3][0], completion[i])


def test_rows_of_the_prior_are_the_same_alone_and_in_company():
    model, counts = small_corpus(64, 2)
    (shard,) = model.shards(counts)
    k = model.link.n_dims
    topics = np.full((k + 1, model.words.n_words), 1 / model.words.n_words)
    prior = model.fold_prior(
        {"mean": model.shares.law.mean, "cov": np.eye(k) + 0.3, "topics": topics}
    )
    together = model.prior_rows(prior, shard, Key(1)).psi
    for i in range(len(counts)):
        alone = documents.block(scipy.sparse.csr_array(counts[i : i + 1]), shard.rows[i : i + 1])
        np.testing.assert_array_equal(model.prior_rows(prior, alone, Key(1)).psi[0], together[i])


def test_a_fold_is_the_same_alone_and_in_company():
    model, counts = small_corpus(64 if JIT else 8, n_topics=12)
    (shard,) = model.shards(counts)
    k = model.link.n_dims
    topics = np.random.default_rng(1).dirichlet(np.ones(model.words.n_words), k + 1)
    prior = model.fold_prior(
        {"mean": model.shares.law.mean, "cov": np.eye(k) + 0.3, "topics": topics}
    )

    def folded(shard):
        return model.fold(prior, shard, model.initial_rows(prior, shard, Key(1)), Key(2)).psi

    together = folded(shard)
    for i in range(len(counts)):
        alone = documents.block(scipy.sparse.csr_array(counts[i : i + 1]), shard.rows[i : i + 1])
        np.testing.assert_array_equal(folded(alone)[0], together[i])


@pytest.mark.filterwarnings("ignore:.*never seen in fit")
def test_threads_and_sparse_counts_leave_the_results(fitted):
    model, counts = fitted
    expected = results(model, counts)
    for x in (counts, scipy.sparse.csr_array(counts), with_zeros(counts)):
        for found, value in zip(results(model.set_params(n_jobs=2), x), expected):
            np.testing.assert_array_equal(found, value)
    model.set_params(n_jobs=1)


def with_zeros(counts):
    """Return a CSR matrix that stores its zeros too, and every word in two parts."""
    n, width = counts.shape
    half = counts // 2
    data = np.concatenate([half, counts - half], axis=1).ravel()
    words = np.tile(np.arange(width), 2 * n)
    return scipy.sparse.csr_array((data, words, 2 * width * np.arange(n + 1)), shape=counts.shape)
