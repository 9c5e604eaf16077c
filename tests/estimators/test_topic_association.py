"""Associations of topics pass the null that correlations of log shares fail, and find what is planted."""

import numpy as np
import pandas as pd
import pytest

from association_null import corpus, faults, judge
from polystick import CorrelatedTopicModel, DynamicTopicModel, Gibbs, MeanField
from polystick.alignment import align
from polystick.baselines.topic_models import LogisticNormalTopicModel
from polystick.estimators import association, topic_association
from polystick.estimators.topic_association import run_given
from topic_tools import known_corpus, needs_jit, weak_model

KINDS = ("independent", "dirichlet", "pairs")
slow = pytest.mark.slow


def given_the_truth(made, seed):
    """Return the association of topics that are known."""
    n_topics, n_words = made.topics.shape
    model = weak_model(n_topics, n_words)
    law = {"mean": np.zeros(n_topics - 1), "cov": np.eye(n_topics - 1)}
    state = model.fold_prior({**law, "topics": made.topics.astype(np.float32)})
    shards = model.shards(made.counts)
    posterior = run_given(model, [state] * 4, shards, n_draws=200, seed=seed)
    return association.of(posterior, pd.RangeIndex(n_topics), 0.9, 400)


def parts(found, order=slice(None)):
    return [getattr(found, name).to_numpy()[order][:, order] for name in ("mean", "lower", "upper")]


@needs_jit
@pytest.mark.parametrize(("n_seeds", "n"), [(1, 300), pytest.param(6, 800, marks=slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_given_topics_that_overlap(kind, n_seeds, n):
    """The topics of tokens are in doubt here, so it matters under which law of shares they are drawn."""
    judged = []
    for seed in range(n_seeds):
        made = corpus(kind, seed, n=n, concentration=0.3)
        judged.append(judge(parts(given_the_truth(made, seed)), made.truth, made.shares))
    assert faults(judged) == []


def fitted(made, seed, n_sweeps=100):
    short = Gibbs(n_sweeps, n_sweeps, n_chains=1)
    model = CorrelatedTopicModel(len(made.topics), inference=short, random_state=seed)
    return model.fit(made.counts)


def recovered(model, made):
    """Return the true topics that a fit has recovered, and which of its topics these are.

    A short chain blends some that go together: of these no later step could tell that they do.
    """
    orders, _ = align([made.topics, model.topics_])
    pairs = zip(made.topics, model.topics_[orders[1]])
    alike = np.array([np.corrcoef(one, other)[0, 1] for one, other in pairs])
    return np.flatnonzero(alike > 0.9), orders[1][alike > 0.9]


@needs_jit
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("kind", "n_seeds", "n"),
    [
        ("pairs", 1, 400),
        *[pytest.param(kind, 5, 800, marks=slow) for kind in KINDS],
    ],
)
def test_from_words_to_associations(kind, n_seeds, n):
    """Correlations of log shares, which the same fits give, are rejected by the same limits."""
    new, old = [], []
    for seed in range(n_seeds):
        made = corpus(kind, seed, n=n)
        model = fitted(made, seed)
        true, order = recovered(model, made)
        truth, shares = made.truth[np.ix_(true, true)], made.shares[true]
        assert len(true) >= 0.7 * len(made.topics)
        for outputs, found in (
            (new, model.topic_association(made.counts)),
            (old, model.topic_correlation()),
        ):
            outputs.append(judge(parts(found, order), truth, shares))
    assert faults(new) == []
    assert [fault for fault in faults(old) if "excluded" in fault]


# the face

QUICK = Gibbs(6, 6, n_chains=1)
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def documents():
    return known_corpus(n=30, n_tokens=20, n_words=30).counts


@quiet
@pytest.mark.parametrize(
    "model",
    [
        CorrelatedTopicModel(6, inference=QUICK, random_state=3),
        CorrelatedTopicModel(6, inference=MeanField(), random_state=3),
        CorrelatedTopicModel(6, word_tree="balanced", inference=QUICK, random_state=3),
        LogisticNormalTopicModel(6, inference=QUICK, random_state=3),
    ],
    ids=["sticks", "mean field", "word tree", "logistic normal"],
)
def test_all_faces_tell_of_it(model, documents, monkeypatch):
    monkeypatch.setattr(topic_association, "_N_BURN", 5)
    found = model.fit(documents).topic_association(documents, n_draws=20)
    np.testing.assert_allclose(np.diag(found.mean), 1.0)
    assert (found.lower <= found.upper).all(axis=None)
    assert list(found.table(3, all_pairs=True).columns[:2]) == ["topic", "with"]
    assert list(found.mean.index) == list(range(6))
    again = model.set_params(n_jobs=1).topic_association(documents, n_draws=20)
    pd.testing.assert_frame_equal(found.mean, again.mean)
    other = model.topic_association(documents, n_draws=20, random_state=4)
    assert (other.mean != found.mean).any(axis=None)


@quiet
@pytest.mark.parametrize("evolving", [False, True])
def test_documents_with_times_give_theirs(evolving, documents, monkeypatch):
    monkeypatch.setattr(topic_association, "_N_BURN", 5)
    monkeypatch.setattr(topic_association, "_MOST_DOCUMENTS", 20)
    times = np.arange(30) // 8
    model = DynamicTopicModel(5, evolving=evolving, inference=QUICK, random_state=3)
    model.fit(documents, times=times)
    found = model.topic_association(documents, n_draws=20, times=times)
    assert found.mean.shape == (5, 5)
    with pytest.raises((TypeError, ValueError), match="times"):
        model.topic_association(documents, n_draws=20)


@quiet
def test_many_documents_are_thinned_evenly(documents, monkeypatch):
    monkeypatch.setattr(topic_association, "_N_BURN", 5)
    model = CorrelatedTopicModel(6, inference=QUICK, random_state=3).fit(documents)
    picked = [0, 10, 19, 29]
    expected = model.topic_association(documents[picked], n_draws=20)
    monkeypatch.setattr(topic_association, "_MOST_DOCUMENTS", 4)
    found = model.topic_association(documents, n_draws=20)
    pd.testing.assert_frame_equal(found.mean, expected.mean)


@quiet
def test_what_has_no_meaning_is_refused(documents):
    model = CorrelatedTopicModel(4, inference=QUICK, random_state=3).fit(documents)
    with pytest.raises(ValueError, match="topic_association needs at least 5 topics, got 4"):
        model.topic_association(documents)
    model = CorrelatedTopicModel(6, inference=QUICK, random_state=3).fit(documents)
    with pytest.raises(TypeError, match="takes no times"):
        model.topic_association(documents, times=np.zeros(30))
    with pytest.raises(ValueError, match="n_draws must be at least 2"):
        model.topic_association(documents, n_draws=1)
