"""Chains say which topics they share."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from polystick import CorrelatedTopicModel, Gibbs, MeanField
from polystick.baselines import LDA
from polystick.inference.posterior import Posterior
from polystick.models.topic_agreement import _shared, compare

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)
TOPICS = np.kron(np.eye(5), np.ones(4)) / 4  # the fifth is for one chain only
SHARES = np.array([[0.5, 0.2, 0.2, 0.1], [0.2, 0.6, 0.1, 0.1], [0.3, 0.3, 0.3, 0.1]])
ORDERS = np.array([[0, 1, 2, 4], [1, 0, 2, 3], [0, 1, 2, 4]])  # true topics of each chain
VALUES = np.repeat([[1.0], [2.0], [0.0]], 6, axis=1)  # chain 1 is the likeliest


def posterior():
    draws = np.repeat(TOPICS[ORDERS][:, None], 6, axis=1)
    groups = {
        "posterior": {"topics": draws, "share": np.repeat(SHARES[:, None], 6, axis=1)},
        "sample_stats": {"total_log_likelihood": VALUES},
    }
    return Posterior.build(groups)


def fitted():
    counts = np.random.default_rng(0).poisson(1.0, (12, 20))
    short = Gibbs(4, 4, n_chains=3)
    model = CorrelatedTopicModel(4, inference=short, random_state=0, n_jobs=1).fit(counts)
    model.posterior_ = posterior()
    return model


def test_topics_are_matched_under_the_labels_of_the_likeliest_chain():
    found = compare(posterior()["topics"], VALUES)
    assert found.best == 1
    np.testing.assert_array_equal(found.order[:, :3], [[1, 0, 2], [0, 1, 2], [1, 0, 2]])
    np.testing.assert_array_equal(found.n_chains, [3, 3, 3, 1])
    assert _shared(found) == "3 of 4 topics are in all 3 chains; topic 3 is in one chain only"


def test_tables_tell_shares_of_the_chains_that_have_a_topic():
    model = fitted()
    table = model.topic_agreement()
    assert list(table.loc[[0, 1, 2, 3], "lacking"]) == [(), (), (), (0, 2)]
    np.testing.assert_allclose(
        table.loc[0, ["share", "lowest", "highest"]].astype(float), [0.7 / 3, 0.2, 0.3], rtol=0.2
    )
    sizes = model.topic_sizes(level=0.98)
    np.testing.assert_allclose(sizes.loc[0, ["lower", "upper"]], [0.2, 0.3])
    np.testing.assert_allclose(sizes.loc[1, ["lower", "upper"]], [0.3, 0.6])
    np.testing.assert_allclose(sizes.loc[3, ["share", "lower", "upper"]], 0.1)
    assert list(sizes["chains"].sort_index()) == [3, 3, 3, 1]
    assert list(model.topics(2)["chains"].sort_index()) == [3, 3, 3, 1]


@pytest.mark.parametrize("inference", [MeanField(max_sweeps=3), Gibbs(4, 4, n_chains=1)])
def test_without_chains_there_is_nothing_to_compare(inference):
    counts = np.random.default_rng(0).poisson(1.0, (12, 20))
    model = CorrelatedTopicModel(3, inference=inference, random_state=0, n_jobs=1).fit(counts)
    assert model.agreement_ is None
    assert "chains" not in model.topics(2).columns
    assert "chains" not in model.topic_sizes().columns
    with pytest.raises(ValueError, match="inference=Gibbs"):
        model.topic_agreement()


@pytest.mark.parametrize("face", [CorrelatedTopicModel, LDA])
def test_a_fit_ends_with_a_sentence_on_its_chains(face):
    counts = np.random.default_rng(0).poisson(1.0, (12, 20))
    with pytest.warns(ConvergenceWarning, match="topics are in both chains.*R-hat of the log lik"):
        model = face(3, inference=Gibbs(4, 6, n_chains=2), random_state=0).fit(counts)
    said = model.summary().attrs["chains"]
    n_shared = (model.topic_agreement()["chains"] == 2).sum()
    assert said.startswith(f"{n_shared} of 3 topics are in both chains")
    assert said in model.posterior_.verdict().line()


def test_lda_compares_its_chains_too():
    counts = np.random.default_rng(0).poisson(1.0, (12, 20))
    model = LDA(3, inference=Gibbs(4, 4, n_chains=2), random_state=0).fit(counts)
    assert set(model.topic_agreement()["chains"]) <= {1, 2}


def test_chains_are_compared_once_and_again_after_another_fit_or_a_pickle():
    model = fitted()
    first = model.agreement_
    assert model.agreement_ is first
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(fitted())).agreement_.order, first.order
    )
    counts = np.random.default_rng(1).poisson(1.0, (12, 20))
    assert model.fit(counts).agreement_ is not first


def test_sizes_tell_the_spread_between_chains_under_labels():
    model = fitted().set_labels({0: "war"})
    sizes = model.topic_sizes()
    np.testing.assert_allclose(sizes.loc["war", "between_chains"], np.std([0.2, 0.2, 0.3], ddof=1))
    assert np.isnan(sizes.loc[3, "between_chains"])
    assert sizes.loc["war", "chains"] == model.topics(2).loc["war", "chains"] == 3


def test_documents_without_words_have_no_score_and_change_none():
    counts = np.random.default_rng(0).poisson(1.0, (12, 20))
    model = LDA(3, inference=Gibbs(4, 4, n_chains=2), random_state=0).fit(counts)
    assert np.isnan(model.score(0 * counts))
    assert np.isnan(model.perplexity(0 * counts, method="held_out"))
    assert model.score(np.vstack([counts, 0 * counts])) == pytest.approx(model.score(counts))


def test_correlations_are_those_of_the_chains_that_have_both_topics(monkeypatch):
    """Each chain is sure of its own; where they differ, intervals are wide."""
    model = fitted()

    def known(n_draws, chain):
        """Return correlations (a + b) / 100 + chain / 2 of true topics a, b, under the chain's labels."""
        true = ORDERS[chain]
        one = np.add.outer(true, true) / 100 + 0.5 * chain
        return np.repeat(one[None], 6, axis=0)

    monkeypatch.setattr(model, "_correlations", known)
    mean, lower, upper = model.topic_correlation(level=0.9)
    assert mean.loc[0, 1] == pytest.approx(0.01 + 0.5)  # true topics 1 and 0, of chains 0, 1 and 2
    assert (lower.loc[0, 2], upper.loc[0, 2]) == pytest.approx((0.03, 1.03))
    for frame in (mean, lower, upper):
        assert frame.loc[3, 0] == pytest.approx(
            0.04 + 0.5
        )  # topic 3 is of the likeliest chain alone


def test_correlations_of_one_chain_are_its_own():
    counts = np.random.default_rng(0).poisson(1.0, (12, 20))
    model = CorrelatedTopicModel(4, inference=Gibbs(4, 4, n_chains=1), random_state=0, n_jobs=1)
    found = model.fit(counts).topic_correlation(n_draws=4)
    np.testing.assert_allclose(found.mean, model._correlations(4, 0).mean(axis=0))
