"""Counts that could have been: replicates of rows, new rows and draws from the prior, of all faces."""

import numpy as np
import pytest

from polystick import (
    LDA,
    CorrelatedMultinomial,
    CorrelatedTopicModel,
    DynamicMultinomial,
    DynamicTopicModel,
    Gibbs,
    LogisticNormalLDS,
    LogisticNormalTopicModel,
    MeanField,
    MultinomialGP,
    MultinomialHMM,
    MultinomialLDS,
    NormalInverseWishart,
    RawLDS,
    SmoothedUnigram,
    decompose,
)
from polystick.estimators.topic_covariates import NOTHING
from polystick.models.folding import fold_in
from statistics_tools import MAX_Z, z_scores

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
TREE = decompose("given", n_categories=3)
RUN = Gibbs(n_draws=200, n_burn=60, n_chains=2)
SHORT = Gibbs(n_draws=10, n_burn=20, n_chains=2)
RNG = np.random.default_rng(0)
COUNTS = RNG.multinomial(RNG.integers(5, 30, 15), [0.5, 0.3, 0.2])
WORDS = RNG.multinomial(40, RNG.dirichlet(np.full(12, 0.5), 15))
TIMES = np.repeat([1990, 1991, 1993], 5)
SEQUENCES = [RNG.multinomial(20, [0.5, 0.3, 0.2], size=8) for _ in range(3)]
Z = np.linspace(0, 2, 15)[:, None]


@pytest.fixture(scope="module")
def rows():
    return CorrelatedMultinomial(decomposition=TREE, inference=RUN, random_state=0).fit(COUNTS)


# rows of counts


def test_replicates_have_the_totals_and_the_means_of_the_rows(rows):
    drawn = rows.predict_counts(COUNTS, n_draws=400)
    assert drawn.shape == (400, *COUNTS.shape)
    np.testing.assert_array_equal(drawn.sum(axis=2), np.tile(COUNTS.sum(axis=1), (400, 1)))
    pi = rows.predict_proba(COUNTS, n_draws=3200)
    scores = z_scores(drawn, pi * COUNTS.sum(axis=1)[:, None])
    assert np.abs(scores).max() < MAX_Z
    population = rows.predict_proba(np.zeros_like(COUNTS), n_draws=3200)
    assert np.abs(z_scores(drawn, population * COUNTS.sum(axis=1)[:, None])).max() > MAX_Z


def test_new_rows_of_a_draw_are_independent_of_each_other(rows):
    """One set of points for all rows would make the spread of their sum that of one row, times n."""
    n = 30
    drawn = rows.predict_counts(np.zeros((n, 3), dtype=int), totals=1000, n_draws=400) / 1000
    first = drawn[..., 0]
    states = [
        np.exp(rows.model_.log_population(rows.model_.population_type(**state)))[:, 0].mean()
        for state in rows.posterior_.states(("mean", "cov"), np.arange(200))
    ]
    within = (first - np.array(states)[:, None]).mean(axis=1)
    alone = (first[:, 0] - states).var()
    assert within.var() < 3 * alone / n


def test_totals_of_new_rows_are_those_asked_for(rows):
    totals = np.arange(15)
    drawn = rows.predict_counts(np.zeros_like(COUNTS), totals=totals, n_draws=4)
    np.testing.assert_array_equal(drawn.sum(axis=2), np.tile(totals, (4, 1)))
    again = rows.predict_counts(np.zeros_like(COUNTS), totals=totals, n_draws=4)
    other = rows.predict_counts(np.zeros_like(COUNTS), totals=totals, n_draws=4, random_state=9)
    np.testing.assert_array_equal(drawn, again)
    assert (drawn != other).any()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_do_not_matter(rows, n_jobs):
    many = np.tile(COUNTS, (8, 1))
    expected = rows.predict_counts(many, n_draws=8)
    rows.set_params(n_jobs=n_jobs)
    np.testing.assert_array_equal(rows.predict_counts(many, n_draws=8), expected)
    rows.set_params(n_jobs=None)


def test_prior_rows_have_the_law_of_the_prior():
    prior = NormalInverseWishart.weak(*TREE.dirichlet_moments(1.0))
    few = Gibbs(2, 0, n_chains=1)
    rows = CorrelatedMultinomial(decomposition=TREE, prior=prior, inference=few, random_state=0)
    pi = rows.fit(COUNTS).sample_prior(2, 4000, random_state=1)
    psi = TREE.psi_from_log(np.log(pi))
    assert np.abs(z_scores(psi[:, 0], prior.mean)).max() < MAX_Z
    # E psi psi' = E cov (1 + 1 / strength), E psi_1 psi_2' = E cov / strength, about the mean
    gap = psi - prior.mean
    cov = prior.scale / (prior.degrees - 3)
    own = np.einsum("di,dj->dij", gap[:, 0], gap[:, 0])
    cross = np.einsum("di,dj->dij", gap[:, 0], gap[:, 1])
    assert np.abs(z_scores(own, cov * (1 + 1 / prior.strength))).max() < MAX_Z
    assert np.abs(z_scores(cross, cov / prior.strength)).max() < MAX_Z


# topics


@pytest.mark.parametrize(
    "model",
    [
        CorrelatedTopicModel(3, inference=SHORT, random_state=0),
        CorrelatedTopicModel(3, inference=MeanField(), random_state=0),
        CorrelatedTopicModel(3, word_tree="similar", inference=SHORT, random_state=0),
        DynamicTopicModel(3, inference=SHORT, random_state=0),
        DynamicTopicModel(3, evolving=True, inference=SHORT, random_state=0),
        LDA(3, inference=SHORT, random_state=0),
        LogisticNormalTopicModel(3, inference=SHORT, random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_documents(model):
    place = {"times": TIMES} if isinstance(model, DynamicTopicModel) else {}
    model.fit(WORDS, **place)
    drawn = model.predict_counts(WORDS, n_draws=8, **place)
    assert drawn.shape == (8, *WORDS.shape)
    assert (drawn.sum(axis=2) == 40).all()
    prior = model.sample_prior(15, 4, **place)
    assert prior.shape == (4, *WORDS.shape)
    np.testing.assert_allclose(prior.sum(axis=2), 1.0)
    asked = {"posterior_predictive": "new", "prior_predictive": True, "n_draws": 4}
    is_gibbs = model.posterior_.tree.attrs["inference"] == "gibbs"
    data = model.to_arviz(WORDS, log_likelihood=is_gibbs, **asked, **place)
    for name in ("posterior_predictive", "prior_predictive"):
        assert (np.asarray(data[name]["counts"]).sum(axis=-1) == 40).all()
    if is_gibbs:
        values = np.asarray(data["log_likelihood"]["counts"])
        assert values.shape == (2, 2, 15)
        expected = model.score_samples(WORDS, method="held_out", n_draws=20, **place)
        assert np.abs(values.mean(axis=(0, 1)) - expected).mean() < 3.0  # nats, of about 60


def test_replicates_have_the_means_of_the_documents():
    model = CorrelatedTopicModel(
        3, inference=Gibbs(n_draws=300, n_burn=50, n_chains=1), random_state=0
    )
    model.fit(WORDS)
    drawn = model.predict_counts(WORDS, n_draws=300)
    documents = model._documents(model._check(WORDS), NOTHING)
    states, (shard,) = documents.states(300), model.model_.shards(documents.counts)
    priors = [model.model_.fold_prior(state) for state in states]
    means = [mean for mean, _ in fold_in(model.model_, priors, shard, 1)]
    words = np.mean([m @ s["topics"] for m, s in zip(means, states)], axis=0)
    assert np.abs(z_scores(drawn, 40 * words)).max() < MAX_Z


def test_new_documents_differ_from_each_other():
    model = CorrelatedTopicModel(3, inference=SHORT, random_state=0).fit(WORDS)
    drawn = model.predict_counts(np.zeros_like(WORDS), totals=10**6, n_draws=1)[0]
    assert len(np.unique(drawn.argmax(axis=1))) > 1 or np.ptp(drawn, axis=0).max() > 10**5


def test_prior_words_have_the_law_of_the_prior():
    model = CorrelatedTopicModel(2, inference=SHORT, random_state=0).fit(WORDS)
    words = model.sample_prior(1, 3000, random_state=2)[:, 0]
    assert np.abs(z_scores(words, 1 / 12)).max() < MAX_Z


# inputs


@pytest.mark.parametrize("inference", [RUN, MeanField()], ids=["gibbs", "mean field"])
def test_counts_at_inputs(inference):
    model = MultinomialGP(decomposition=TREE, inference=inference, random_state=0).fit(Z, COUNTS)
    drawn = model.predict_counts(n_draws=300)
    totals = COUNTS.sum(axis=1)
    np.testing.assert_array_equal(drawn.sum(axis=2), np.tile(totals, (300, 1)))
    scores = z_scores(drawn, model.predict_proba(Z, n_draws=200) * totals[:, None])
    assert np.abs(scores).max() < 2 * MAX_Z  # draws of the functions are correlated
    there = model.predict_counts([[0.5], [5.0]], totals=[3, 4], n_draws=6)
    np.testing.assert_array_equal(there.sum(axis=2), np.tile([3, 4], (6, 1)))
    with pytest.raises(ValueError, match="totals must say"):
        model.predict_counts([[0.5]])
    data = model.to_arviz(posterior_predictive=True, prior_predictive=True, n_draws=20)
    assert (np.asarray(data["prior_predictive"]["counts"]).sum(axis=-1) == totals).all()
    other = model.to_arviz([[0.1], [0.2]], COUNTS[:2], posterior_predictive=True, n_draws=20)
    assert np.asarray(other["posterior_predictive"]["counts"]).shape[2:] == (2, 3)
    with pytest.raises(ValueError, match="both be given"):
        model.to_arviz(Z)
    with pytest.raises(ValueError, match="population"):
        model.to_arviz(posterior_predictive="new")


def test_inputs_have_the_names_of_their_rows():
    import pandas as pd

    order = RNG.permutation(15)
    table = pd.DataFrame(COUNTS[order], index=[f"place {i}" for i in order])
    model = MultinomialGP(inference=SHORT, random_state=0).fit(Z[order], table)
    names = [f"place {i}" for i in range(15)]
    assert list(model.posterior_.tree["running"]["input"].values) == names
    data = model.to_arviz(log_likelihood=True, n_draws=4)
    assert list(data["log_likelihood"]["input"].values) == names
    doubled = MultinomialGP(inference=SHORT, random_state=0).fit(np.round(Z[order]), table)
    assert "input" not in doubled.posterior_.tree["running"].coords


# sequences


FACES = [
    MultinomialLDS(2, inference=SHORT, random_state=0),
    MultinomialLDS(2, inference=MeanField(), random_state=0),
    DynamicMultinomial(inference=SHORT, random_state=0),
    DynamicMultinomial("return", inference=SHORT, random_state=0),
    MultinomialHMM(2, inference=SHORT, random_state=0),
]


@pytest.mark.parametrize("model", FACES, ids=lambda m: type(m).__name__)
def test_sequences(model):
    model.fit(SEQUENCES)
    drawn = model.predict_counts(n_draws=6)
    assert [each.shape for each in drawn] == [(6, 8, 3)] * 3
    assert all((each.sum(axis=2) == 20).all() for each in drawn)
    prior = model.sample_prior([4, 600], n_draws=3)
    assert [each.shape for each in prior] == [(3, 4, 3), (3, 600, 3)]
    np.testing.assert_allclose(prior[1].sum(axis=2), 1.0)
    for how in (True, "new"):
        data = model.to_arviz(posterior_predictive=how, prior_predictive=True, n_draws=4)
        for name in ("posterior_predictive", "prior_predictive"):
            counts = np.asarray(data[name]["counts"])
            assert counts.shape[2:] == (24, 3)
            assert (counts.sum(axis=-1) == 20).all()
    if isinstance(model.inference, Gibbs):
        values = np.asarray(model.to_arviz(log_likelihood=True)["log_likelihood"]["counts"])
        expected = [each.sum(axis=1) for each in model.score_steps(SEQUENCES, n_draws=20)]
        assert values.shape == (2, 10, 3)
        np.testing.assert_allclose(values.reshape(20, 3), np.transpose(expected), atol=2.0)
    with pytest.raises(ValueError, match=r"at least 2 sequences|needs draws"):
        model.fit(SEQUENCES[0]).to_arviz(log_likelihood=True)


def test_replicates_follow_the_steps():
    """A step change must show in the replicates of the same steps, and not in new sequences."""
    steps = [np.where(np.arange(30)[:, None] < 15, [40, 5, 5], [5, 5, 40])] * 2
    model = DynamicMultinomial(inference=Gibbs(n_draws=60, n_burn=60, n_chains=1), random_state=0)
    model.fit(steps)
    drawn = model.predict_counts(n_draws=60)[1]
    smoothed = model.smooth(n_draws=60)[1].probabilities
    np.testing.assert_allclose(drawn.mean(axis=0) / 50, smoothed, atol=0.05)
    assert drawn[:, 5, 0].mean() > 30 > 15 > drawn[:, 25, 0].mean()
    unseen = model.predict_counts(steps, n_draws=20)[0]
    assert unseen[:, 5, 0].mean() > 30 > 15 > unseen[:, 25, 0].mean()


def test_a_walk_from_the_prior_has_the_law_of_the_prior():
    model = DynamicMultinomial(decomposition=TREE, inference=SHORT, random_state=0).fit(SEQUENCES)
    pi = model.sample_prior(2, n_draws=3000, random_state=3)[0]
    psi, prior = TREE.psi_from_log(np.log(pi)), model.model_.initial_prior
    assert np.abs(z_scores(psi[:, 0], prior.mean)).max() < MAX_Z
    step = np.diff(psi, axis=1)[:, 0]
    expected = model.model_.dynamics_prior.scale / (model.model_.dynamics_prior.degrees - 3)
    assert np.abs(z_scores(np.einsum("di,dj->dij", step, step), expected)).max() < MAX_Z


def test_what_a_face_has_not_it_refuses():
    raw = RawLDS(2, inference=SHORT, random_state=0).fit(SEQUENCES)
    with pytest.raises(TypeError, match="no likelihood of counts"):
        raw.to_arviz(log_likelihood=True)
    with pytest.raises(TypeError, match="no prior of probabilities"):
        raw.sample_prior(5)
    with pytest.raises(TypeError, match="no posterior draws"):
        SmoothedUnigram().fit(SEQUENCES).to_arviz()
    softmax = LogisticNormalLDS(2, inference=SHORT, random_state=0).fit(SEQUENCES)
    with pytest.raises(TypeError, match="no draws of states given a sequence"):
        softmax.predict_counts()
    assert softmax.sample_prior(5, n_draws=2)[0].shape == (2, 5, 3)


def test_steps_have_the_names_of_their_rows():
    import pandas as pd

    tables = [pd.DataFrame(each, index=range(1990, 1998)) for each in SEQUENCES]
    one = MultinomialHMM(2, inference=SHORT, random_state=0).fit(tables[0])
    assert list(one.posterior_.tree["running"]["step"].values) == list(range(1990, 1998))
    all_ = DynamicMultinomial(inference=SHORT, random_state=0).fit(tables)
    assert list(all_.posterior_.tree["running"]["step"].values[7:9]) == ["0, 1997", "1, 1990"]
    mixed = DynamicMultinomial(inference=SHORT, random_state=0).fit([tables[0], SEQUENCES[1]])
    assert "step" not in mixed.posterior_.tree["running"].coords
