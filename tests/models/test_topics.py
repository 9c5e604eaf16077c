"""Correlated topics: the sweep draws from the law, in the same bits for anyone, and finds known topics."""

import dataclasses
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse

from joint import Law, first_and_second, one_sweep, ranks, uniform_pvalues
from polystick.alignment import align
from polystick.estimators.topics import CorrelatedTopicModel
from polystick.inference.execution import Serial, Threads
from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from polystick.inference.moving import moved
from polystick.inference.stochastic import StochasticVI
from polystick.keys import Key
from polystick.models import warm_start
from polystick.models.topic_shares import NormalShares, Sticks
from polystick.models.topic_words import DirichletWords
from polystick.models.topics import Rows, TopicModel
from statistics_tools import MAX_Z, z_scores
from topic_tools import (
    JIT,
    MODELS,
    STICKS,
    TOTALS,
    known_corpus,
    needs_jit,
    over_models,
    small_corpus,
    weak_model,
)


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


# the sweep against the law


def sweep(model, everything, i, rng):
    parameters, rows, counts = everything
    (shard,) = model.shards(counts)
    parameters, rows = one_sweep(model, parameters, rows, shard, i)
    return parameters, rows, model.simulate_counts(parameters, rows, TOTALS, rng)


def summarise(model, everything):
    """Use bounded or light-tailed functions, so that their averages have standard errors."""
    parameters, (psi, _), counts = everything
    mean, cov, topics, _ = model.describe_parameters(parameters).values()
    sd = np.sqrt(np.diag(cov))
    correlation = (cov / np.outer(sd, sd))[np.triu_indices(len(sd), 1)]
    squashed = np.tanh(psi[[0, 2, 5]] / 3)
    shares = counts[5, :2] / TOTALS[5]
    values = [mean, np.log(sd), correlation, squashed[:, 0], squashed[2]]
    return first_and_second([*values, topics[0, :2], topics[-1, 0], shares, counts[:, 0].mean()])


def law_of(model):
    return Law(lambda rng: model.simulate(TOTALS, rng), partial(summarise, model))


LAWS = {name: law_of(model) for name, model in MODELS.items()}


@needs_jit
@pytest.mark.parametrize("n_iter", [2000, pytest.param(40_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MODELS)
def test_geweke(name, n_iter, rng):
    z = LAWS[name].z(partial(sweep, MODELS[name]), n_iter, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@dataclass(frozen=True)
class NoPrior(DirichletWords):
    """Topics are drawn from the tokens and hardly any prior."""

    def draw(self, parameters, counts, key, ordered_map):
        return DirichletWords(self.n_words, 0.05).draw(parameters, counts, key, ordered_map)


@dataclass(frozen=True)
class LostTokens(TopicModel):
    """Topics are drawn from the first half of the tokens."""

    def draw_rows(self, prior, shard, rows, key):
        rows, statistics = super().draw_rows(prior, shard, rows, key)
        (pairs,) = statistics.words.blocks
        return rows, statistics._replace(
            words=replace(statistics.words, blocks=[pairs[: len(pairs) // 2]])
        )


@dataclass(frozen=True)
class ForgottenTilt(Sticks):
    """omega ~ PG(trials, 0)."""

    def draw(self, law, ids, counts, psi, key):
        return super().draw(law, ids, counts, np.zeros_like(psi), key)


@dataclass(frozen=True)
class OverCounted(TopicModel):
    """The statistics of the block are added three times."""

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        more = type(statistics)(*(part + part + part for part in statistics))
        return super().draw_parameters(parameters, more, key, ordered_map)


@dataclass(frozen=True)
class ForgottenSizes(TopicModel):
    """Tokens meet topics that were not divided by their sizes."""

    def prepare(self, parameters):
        prior = super().prepare(parameters)
        return prior._replace(sizes=np.ones_like(prior.sizes))


@dataclass(frozen=True)
class SharedNoise(Sticks):
    """All documents have the noise of the first."""

    def draw(self, law, ids, counts, psi, key):
        return super().draw(law, np.zeros_like(ids), counts, psi, key)


@dataclass(frozen=True)
class OneDocumentMore(NormalShares):
    """The mean and the covariance see each document, and one at 0 for each of them."""

    def statistics(self, psi, given):
        return replace(super().statistics(psi, given), n_rows=2 * len(psi))


WRONG = {  # how many sweeps each needs to be caught
    NoPrior: 700,
    LostTokens: 1200,
    ForgottenTilt: 1500,
    OverCounted: 1500,
    ForgottenSizes: 500,
    SharedNoise: 700,
    OneDocumentMore: 1500,
}


def sabotaged(wrong, model=STICKS):
    """Return the model with one part, or itself, gone wrong."""
    right = {"words": model.words, "shares": model.shares, "link": model.link}
    for name, part in right.items():
        if issubclass(wrong, type(part)):
            fields = {f.name: getattr(part, f.name) for f in dataclasses.fields(part)}
            return TopicModel(**{**right, name: wrong(**fields)})
    return wrong(**right)


@needs_jit
@pytest.mark.parametrize(("wrong", "n_iter"), WRONG.items())
def test_geweke_rejects_a_sabotaged_sweep(wrong, n_iter, rng):
    assert LAWS["sticks"].worst_z(partial(sweep, sabotaged(wrong)), n_iter, rng) > MAX_Z


# calibration


def sbc(model, n_simulations, rng, n_draws=49):
    """Return p-values of ranks being uniform.

    Labels need no care here: the law of psi tells topics apart, so each has its own posterior, and with
    so few tokens a chain goes round all labels between two draws.
    """
    found = []
    for seed in range(n_simulations):
        parameters, rows, counts = model.simulate(TOTALS, rng)
        gibbs = Gibbs(n_draws, n_burn=60, thin=8, n_chains=1, keep=("proportions",))
        posterior = gibbs.run(model, model.shards(counts), seed=seed)
        truth = model.describe_parameters(parameters)
        shares = model.link.shares(rows.psi)
        likelihood = np.sum(counts * np.log(shares @ truth["topics"]))
        pairs = [(truth[name], posterior[name][0]) for name in ("mean", "cov", "topics")]
        pairs += [(shares[[0, 5], 0], posterior["proportions"][0][:, [0, 5], 0])]
        pairs += [(likelihood, posterior.log_likelihood[0])]
        found.append(np.concatenate([np.ravel(ranks(t, d))[:6] for t, d in pairs]))
    return uniform_pvalues(np.array(found), n_draws)


@pytest.mark.slow
@needs_jit
@over_models
def test_sbc(model, rng):
    p = sbc(model, 200, rng)
    assert p.min() > 1e-4, p


@pytest.mark.slow
@needs_jit
@pytest.mark.parametrize("wrong", [OverCounted])
def test_sbc_rejects_a_sabotaged_sweep(wrong, rng):
    p = sbc(sabotaged(wrong), 100, rng)
    assert p.min() < 1e-4, p


# known topics

KNOWN = known_corpus()


def log_likelihood(model):
    return model.posterior_.log_likelihood.mean()


def elbo(model):
    return model.posterior_.tree.attrs["elbo"]


INFERENCES = {
    "gibbs": (Gibbs(60, 60, n_chains=1), log_likelihood),
    "mean_field": (MeanField(1e-3, n_draws=50), elbo),
    "stochastic": (StochasticVI(batch_size=100, n_passes=15, n_draws=50), elbo),
}


def best_of_runs(name, **options):
    """Take the best of a few runs: some warm starts join two of these topics for good."""
    inference, worth = INFERENCES[name]
    options = {"inference": inference, "n_jobs": 1, **options}
    runs = [
        CorrelatedTopicModel(6, random_state=seed, **options).fit(KNOWN.counts) for seed in range(4)
    ]
    return max(runs, key=worth)


@pytest.fixture(scope="module", params=INFERENCES, ids=INFERENCES.keys())
def fitted(request):
    return best_of_runs(request.param)


@needs_jit
def test_known_topics_are_found(fitted):
    order = align([KNOWN.topics, fitted.topics_]).order[1]
    gap = 0.5 * np.abs(fitted.topics_[order] - KNOWN.topics).sum(axis=1)
    assert gap.max() < 0.15, gap  # tokens of topics that go together are hard to tell apart
    assert gap.mean() < 0.08, gap


@needs_jit
@pytest.mark.parametrize("name", INFERENCES)
def test_known_correlations_are_found(name):
    """Intervals of pairs that go strongly together or apart lie on their side of 0.

    This is of sticks: under a balanced tree the correlation of two topics that exclude each other is a sixth
    of its size with so few topics; `topic_association` is what tells of pairs.
    """
    fitted = best_of_runs(name, decomposition="given")
    order = align([KNOWN.topics, fitted.topics_]).order[1]
    truth = np.corrcoef(KNOWN.log_shares, rowvar=False)
    assert truth[0, 1] > 0.4
    assert truth[2, 3] < -0.4
    mean, lower, upper = (
        frame.values[np.ix_(order, order)] for frame in fitted.topic_correlation()
    )
    assert lower[0, 1] > 0
    assert upper[2, 3] < 0
    strong = np.abs(truth) > 0.4
    np.testing.assert_array_equal(np.sign(mean[strong]), np.sign(truth[strong]))


@needs_jit
def test_known_shares_are_found(fitted):
    order = align([KNOWN.topics, fitted.topics_]).order[1]
    gap = fitted.posterior_.running("proportions")[0][:, order] - np.exp(KNOWN.log_shares)
    assert np.abs(gap).mean() < 0.05


# labels


@needs_jit
def test_chains_agree_on_labels_after_burn_in():
    corpus = known_corpus(n_topics=4, correlated=0.0)
    model = weak_model(4, 60)
    posterior = Gibbs(40, 60, n_chains=3).run(model, model.shards(corpus.counts), seed=1)
    halves = [chain[half] for chain in posterior["topics"] for half in (slice(20), slice(20, None))]
    order, similarity = align([half.mean(axis=0) for half in halves])
    np.testing.assert_array_equal(order, np.tile(np.arange(4), (len(halves), 1)))
    assert similarity.min() > 0.98
    shares = posterior["share"].mean(axis=1)
    np.testing.assert_allclose(shares, np.tile(shares[0], (3, 1)), atol=0.02)


def burned_in(model, shards, seed, n_burn, until):
    """Yield the parameters after each sweep of a burn-in that starts with the smallest topic first."""
    (shard,) = shards
    parameters = model.initial_parameters(shards, Key(seed))
    smallest_first = np.argsort(parameters.share)
    parameters = model.rename(parameters, smallest_first, Key(seed))
    rows = model.initial_rows(model.prepare(parameters), shard, Key(seed))
    for i in range(1, until + 1):
        key = Key(seed, i)
        parameters, (rows,) = moved(model, parameters, [shard], [rows], key)
        rows, statistics = model.draw_rows(model.prepare(parameters), shard, rows, key)
        parameters = model.settle(parameters, statistics, key, n_burn)
        yield parameters


@pytest.mark.parametrize("n_burn", [8, 12])
def test_the_largest_topic_comes_first_after_each_reorder(n_burn):
    model, counts = small_corpus()
    found = list(burned_in(model, model.shards(counts), 2, n_burn, int(0.75 * n_burn)))
    for share in (0.25, 0.5, 0.75):
        assert (np.diff(found[int(share * n_burn) - 1].share) <= 0).all()
    assert any((p.move != np.arange(model.n_topics)).any() for p in found)


@over_models
def test_renamed_topics_tell_the_same_of_documents(model, rng):
    parameters, rows, _ = model.simulate(np.full(40, 5), rng)
    order = np.roll(np.arange(model.n_topics), 1)
    renamed = model.rename(parameters, order, Key(3))
    followed = model.link.rename(rows.psi, renamed.move)
    for field in ("topics", "sizes"):
        assert (getattr(renamed, field) != getattr(parameters, field)).any()
    words = [
        model.link.shares(psi) @ model.describe_parameters(p)["topics"]
        for psi, p in ((rows.psi, parameters), (followed, renamed))
    ]
    np.testing.assert_allclose(*words, rtol=1e-6)
    again = model.rename(renamed, order, Key(3))  # before documents have followed
    followed = model.link.rename(rows.psi, again.move)
    np.testing.assert_allclose(
        model.link.shares(followed) @ model.describe_parameters(again)["topics"],
        words[0],
        rtol=1e-6,
    )


def test_the_law_of_psi_is_renamed_too(rng):
    """Up to its shape: where topics swap at one stick, psi changes its sign."""
    parameters, _, _ = STICKS.simulate(TOTALS, rng)
    renamed = STICKS.rename(parameters, np.array([0, 2, 1]), Key(3))
    turn = np.array([1.0, -1.0])
    sd = np.sqrt(np.diag(parameters.cov))
    error = sd / np.sqrt(4096)
    assert (np.abs(renamed.mean - turn * parameters.mean) < MAX_Z * error).all()
    gap = (renamed.cov - parameters.cov * np.outer(turn, turn)) / np.outer(sd, sd)
    assert np.abs(gap).max() < MAX_Z * np.sqrt(2 / 4096)


def test_agree_gives_all_chains_the_labels_of_the_first(rng):
    parameters, _, _ = STICKS.simulate(TOTALS, rng)
    mixed = [STICKS.rename(parameters, np.array(o), Key(3)) for o in ([1, 2, 0], [0, 2, 1])]
    agreed = STICKS.agree([parameters, *mixed], Key(4))
    for chain in agreed:
        np.testing.assert_array_equal(chain.topics, parameters.topics)
        np.testing.assert_array_equal(chain.sizes, parameters.sizes)
        np.testing.assert_array_equal(chain.move, [0, 1, 2])


# bits


class Backwards(Serial):
    """The last block first."""

    def map(self, function, items):
        return iter([function(item) for item in reversed(list(items))][::-1])


def same(left, right, n_fields=4):
    for name in ("mean", "cov", "topics", "share")[:n_fields]:
        np.testing.assert_array_equal(left[name], right[name])
    np.testing.assert_array_equal(left.running("proportions"), right.running("proportions"))


BITS = small_corpus(600, 12, 5, 1100) if JIT else small_corpus(20, 2, 3, 520)
RUNS = {
    "gibbs": Gibbs(3, 4, n_chains=2) if JIT else Gibbs(1, 1, n_chains=1),
    "mean_field": MeanField(1.0, n_draws=2),
    "stochastic": StochasticVI(batch_size=300, n_passes=2, n_draws=2),
}


@pytest.mark.parametrize("inference", RUNS.values(), ids=RUNS.keys())
def test_threads_and_the_order_of_blocks_leave_the_bits(inference):
    model, counts = BITS
    shards = model.shards(counts, 256 if JIT else 8)
    assert len(shards) == 4
    serial = inference.run(model, shards, seed=3)
    for execution in (Threads(2), Threads(4), Backwards())[slice(None) if JIT else slice(0, 1)]:
        same(inference.run(model, shards, seed=3, execution=execution), serial)


def test_another_seed_gives_other_bits():
    model, counts = small_corpus()
    left, right = (Gibbs(2, 2, n_chains=2).run(model, model.shards(counts), seed=s) for s in (3, 4))
    assert (left["mean"] != right["mean"]).all()
    assert (left["mean"][0] != left["mean"][1]).all()


@pytest.mark.parametrize("inference", RUNS.values(), ids=RUNS.keys())
def test_sparse_counts_give_the_bits_of_dense_ones(inference):
    model, counts = small_corpus()
    kinds = (counts, scipy.sparse.csr_array(counts), scipy.sparse.csc_matrix(counts))
    first, *others = (inference.run(model, model.shards(x), seed=3) for x in kinds)
    for other in others:
        same(other, first)


SCHEDULE = Gibbs(6, 8, n_chains=2, keep=("proportions",))  # renames after sweeps 2, 4, 6 and 8
PLUG = "pulled the plug"


def run_in(folder, **options):
    model, counts = small_corpus()
    return SCHEDULE.run(
        model, model.shards(counts), seed=9, checkpoint=folder, every=0.0, **options
    )


def cut(folder, sweep):
    def tell(progress):
        if progress.sweep == sweep:
            raise RuntimeError(PLUG)

    with pytest.raises(RuntimeError, match=PLUG):
        run_in(folder, progress=tell)


@pytest.mark.parametrize("sweep", [1, 3, 5, 7, 9, 12] if JIT else [5, 9])
def test_a_run_that_was_cut_goes_on_in_the_same_bits(tmp_path, sweep):
    cut(tmp_path / "a", sweep)
    resumed, whole = run_in(tmp_path / "a", resume=True), run_in(tmp_path / "b")
    same(resumed, whole)
    np.testing.assert_array_equal(resumed["proportions"], whole["proportions"])
    np.testing.assert_array_equal(resumed.log_likelihood, whole.log_likelihood)


@needs_jit
def test_cuts_leave_topics_to_be_renamed(tmp_path, monkeypatch):
    """Else the test above would not show that this survives."""
    monkeypatch.setattr(warm_start, "N_SWEEPS", 60)  # sizes are still to settle
    moves = []
    for sweep in (3, 5, 7, 9):
        cut(tmp_path / str(sweep), sweep)
        (path,) = (tmp_path / str(sweep)).glob("polystick-state-*.npz")
        with np.load(path) as state:
            moves += [state[f"chain{chain}.parameters.move"] for chain in (0, 1)]
    assert any((move != np.arange(len(move))).any() for move in moves[:-2])
    assert (moves[-1] != np.arange(len(moves[-1]))).any()


# documents without words, and other corpora at the edge


def test_documents_without_words_follow_the_prior(rng):
    n = 4000 if JIT else 300
    parameters, _, _ = STICKS.simulate(TOTALS, rng)
    (shard,) = STICKS.shards(np.zeros((n, 5), int), size=n)
    start = Rows(rng.normal(size=(n, 2)), np.zeros((n, 3), np.int32))
    (psi, _), statistics = STICKS.draw_rows(STICKS.prepare(parameters), shard, start, Key(1))
    assert statistics.value == 0
    z = z_scores(psi, parameters.mean)
    centred = psi - parameters.mean
    squares = centred[:, :, None] * centred[:, None]
    z = np.append(z, z_scores(squares, parameters.cov).ravel())
    assert np.abs(z).max() < MAX_Z


CORPORA = {
    "one document": [[3, 0, 1, 2, 0, 5]],
    "one word": [[0, 0, 0, 1, 0, 0], [0, 0, 0, 1, 0, 0]],
    "empty ends": [[0] * 6, [2, 1, 0, 4, 0, 0], [0] * 6, [0, 0, 3, 0, 1, 9], [0] * 6],
}


@pytest.mark.parametrize("inference", RUNS.values(), ids=RUNS.keys())
@pytest.mark.parametrize("name", CORPORA)
def test_corpora_at_the_edge(name, inference):
    counts, model = np.array(CORPORA[name]), weak_model(2, 6)
    posterior = inference.run(model, model.shards(counts), seed=1)
    shares = posterior.running("proportions")[0]
    assert shares.shape == (len(counts), 2)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(posterior.flat("topics").sum(axis=2), 1.0, rtol=1e-5)
    np.testing.assert_allclose(posterior.flat("share").sum(axis=1), 1.0)


@pytest.mark.parametrize("inference", RUNS.values(), ids=RUNS.keys())
def test_a_block_without_words(inference):
    """513 documents, of which only the last, alone in its block, has words; and the other way round."""
    for words in (slice(512, None), slice(0, 1)):
        counts, model = np.zeros((513, 6), int), weak_model(2, 6)
        counts[words] = [3, 0, 1, 2, 0, 5]
        shards = model.shards(counts)
        assert [len(shard.rows) for shard in shards] == [256, 257]
        posterior = inference.run(model, shards, seed=1)
        assert posterior.running("proportions")[0].shape == (513, 2)
        np.testing.assert_allclose(posterior.running("proportions")[0].sum(axis=1), 1.0)
