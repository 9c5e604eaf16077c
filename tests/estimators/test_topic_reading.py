"""What people read of topics: words by three measures, labels, documents and queries."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

from polystick import (
    LDA,
    CorrelatedTopicModel,
    DynamicTopicModel,
    Gibbs,
    LogisticNormalTopicModel,
    MeanField,
    StochasticVI,
)
from polystick.estimators import topic_documents
from polystick.estimators.word_measures import frex, measured, relevance
from polystick.models import warm_start

SHORT = Gibbs(6, 10, n_chains=2)
WORDS = np.array(["tax", "wage", "jobs", "war", "peace", "army", "the", "and", "never"])
TIMES = np.repeat([1990, 1991, 1992], 10)


def corpus():
    """Return documents of labour (even) and of war (odd), which share two words; the last two are copies."""
    rng = np.random.default_rng(5)
    labour = [0.3, 0.2, 0.1, 0.0, 0.0, 0.0, 0.25, 0.15, 0.0]
    war = [0.0, 0.0, 0.0, 0.3, 0.2, 0.1, 0.25, 0.15, 0.0]
    counts = np.stack([rng.multinomial(30, (labour, war)[i % 2]) for i in range(30)])
    counts[4], counts[5], counts[29] = 0, np.eye(9, dtype=int)[3], counts[28]
    return pd.DataFrame(counts, columns=WORDS, index=[f"d{i}" for i in range(30)])


FACES = {
    "sticks": CorrelatedTopicModel(2, inference=SHORT, random_state=1, n_jobs=1),
    "mean field": CorrelatedTopicModel(2, inference=MeanField(1e-3, n_draws=8), random_state=1),
    "softmax": LogisticNormalTopicModel(2, inference=SHORT, random_state=1, n_jobs=1),
    "lda": LDA(2, inference=SHORT, random_state=1, n_jobs=1),
    "dynamic": DynamicTopicModel(2, inference=SHORT, random_state=1, n_jobs=1),
    "evolving": DynamicTopicModel(2, evolving=True, inference=SHORT, random_state=1, n_jobs=1),
}
FITTED: dict = {}


def times_of(model, n=30):
    return {"times": TIMES[:n]} if isinstance(model, DynamicTopicModel) else {}


@pytest.fixture(params=FACES)
def model(request, monkeypatch):
    """Return a fitted model, with labels of its own."""
    monkeypatch.setattr(warm_start, "MOST_STARTS", 1)
    if request.param not in FITTED:
        face = clone(FACES[request.param])
        FITTED[request.param] = pickle.dumps(face.fit(corpus(), **times_of(face)))
    return pickle.loads(FITTED[request.param])


def labour_and_war(model):
    """Return the numbers of the two topics."""
    topics = model.topics_ if model.topics_.ndim == 2 else model.topics_.mean(axis=1)
    labour = int(topics[:, 0].argmax())
    assert topics[labour, 3] < 0.05  # else nothing below means anything
    return labour, 1 - labour


# measures


def slow_relevance(topics, share, weight):
    found = np.empty(topics.shape)
    for t, w in np.ndindex(topics.shape):
        everywhere = sum(share[k] * topics[k, w] for k in range(len(share))) / sum(share)
        lift = np.log(topics[t, w] / everywhere)
        found[t, w] = weight * np.log(topics[t, w]) + (1 - weight) * lift
    return found


def slow_frex(topics, weight):
    found = np.empty(topics.shape)
    exclusive = np.array([[p / sum(column) for p in column] for column in topics.T]).T
    for t, w in np.ndindex(topics.shape):
        by_frequency = np.mean([other <= topics[t, w] for other in topics[t]])
        by_exclusivity = np.mean([other <= exclusive[t, w] for other in exclusive[t]])
        found[t, w] = 1 / (weight / by_exclusivity + (1 - weight) / by_frequency)
    return found


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_measures_have_their_slow_twins(weight):
    rng = np.random.default_rng(2)
    topics, share = rng.dirichlet(np.full(12, 0.4), 4), rng.dirichlet(np.ones(4))
    topics[0, 3] = topics[0, 4]  # a tie
    np.testing.assert_allclose(
        relevance(topics, share, weight), slow_relevance(topics, share, weight)
    )
    np.testing.assert_allclose(frex(topics, share, weight), slow_frex(topics, weight))


def test_weights_have_their_defaults():
    topics, share = np.random.default_rng(2).dirichlet(np.ones(6), 3), np.array([0.5, 0.3, 0.2])
    for by, slow in (
        ("relevance", slow_relevance(topics, share, 0.6)),
        ("frex", slow_frex(topics, 0.5)),
    ):
        np.testing.assert_allclose(measured(topics, share, by), slow)
    assert measured(topics, share) is topics


def test_impossible_words_have_measures():
    topics = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0]])
    for by in ("relevance", "frex"):
        found = measured(topics, np.array([0.5, 0.5]), by)
        assert np.isfinite(found).all()
        assert found[0].argmax() == 0
        assert found[1].argmax() == 2


def test_words_that_are_anywhere_are_passed_over(model):
    labour, war = labour_and_war(model)
    likely = model.topics(3).loc[[labour, war], 1:].to_numpy()
    assert "the" in likely[0]
    assert "the" in likely[1]
    for by in ("relevance", "frex"):
        found = model.topics(3, by=by, weight=0.2 if by == "relevance" else 0.8)
        assert set(found.loc[labour, 1:]) == {"tax", "wage", "jobs"}
        assert set(found.loc[war, 1:]) == {"war", "peace", "army"}
        assert set(model.topics(9, by=by)[9]) == {"never"}
    pd.testing.assert_frame_equal(model.topics(5, by="relevance", weight=1.0), model.topics(5))


def test_bad_measures_are_refused(model):
    with pytest.raises(ValueError, match="by must be one of 'probability', 'relevance', 'frex'"):
        model.topics(by="lift")
    with pytest.raises(ValueError, match="weight must be a number from 0 to 1; got 2"):
        model.topics(by="frex", weight=2)
    with pytest.raises(ValueError, match="weighs nothing"):
        model.topics(weight=0.5)


def test_a_summary_has_both_kinds_of_words(model):
    table, names = model.summary(2), [w.upper() for w in WORDS]
    assert list(table.columns) == ["share", "likeliest", "frex"]
    assert table["share"].is_monotonic_decreasing
    for column, by in (("likeliest", "probability"), ("frex", "frex")):
        words = model.topics(2, by=by).loc[table.index, 1:]
        assert table[column].tolist() == [", ".join(row) for row in words.to_numpy()]
    assert "TAX" in model.summary(9, words=names)["frex"].iloc[0]


# labels


def test_labels_stay(model):
    labour, war = labour_and_war(model)
    assert list(model.topic_labels_) == [0, 1]
    model = pickle.loads(pickle.dumps(model.set_labels({labour: "work"})))
    assert model.topics(1).loc["work", 1] in {"tax", "the"}
    assert set(model.topics(1).index) == set(model.topic_sizes().index) == {"work", war}
    prefix = type(model).__name__.lower()
    names = ["work" if t == labour else f"{prefix}{t}" for t in range(2)]
    assert list(model.get_feature_names_out()) == names
    model.set_labels({"work": "labour", war: "war"})
    assert model.topic_labels_[[labour, war]].tolist() == ["labour", "war"]
    assert list(model.set_labels({"war": None}).topic_labels_) == list(
        model.set_labels(["labour" if t == labour else None for t in range(2)]).topic_labels_
    )


def test_labels_are_on_all_tables(model):
    model.set_labels(["one", "two"])
    tables = [model.topics(1), model.summary(), model.topic_sizes(), model.topics_for("tax")]
    if hasattr(model, "topic_correlation"):
        tables += [model.topic_correlation().mean, model.topic_correlation().mean.T]
    if isinstance(model, DynamicTopicModel):
        tables.append(model.shares_over_time().mean.T)
        tables.append(model.topics(1, time=1991))
    tables.append(model.document_topics(corpus(), **times_of(model)).T)
    for table in tables:
        assert sorted(table.index) == ["one", "two"]
        assert table.index.name == "topic"
    shares = model.set_output(transform="pandas").transform(corpus(), **times_of(model))
    assert list(shares.columns) == ["one", "two"]


def test_a_fit_forgets_labels():
    model = CorrelatedTopicModel(2, inference=SHORT, random_state=1, n_jobs=1).fit(corpus())
    assert list(model.set_labels(["one", "two"]).fit(corpus()).topic_labels_) == [0, 1]


def test_associations_have_labels(monkeypatch):
    monkeypatch.setattr(warm_start, "MOST_STARTS", 1)
    model = LogisticNormalTopicModel(5, inference=SHORT, random_state=1, n_jobs=1).fit(corpus())
    model.set_labels({3: "war"})
    found = model.topic_association(corpus(), n_draws=4, n_topic_draws=1)
    assert list(found.mean.columns) == [0, 1, 2, "war", 4]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["one"], "labels must be 2 names"),
        ("ab", "labels must be 2 names"),
        (["one", "one"], "labels must differ; got 'one'"),
        ({5: "one"}, "numbers 0 to 1; got 5"),
        ({"war": "one"}, "no topic is labelled 'war'"),
        ({0: " "}, "strings that are not empty"),
        ({0: 3}, "strings that are not empty"),
        ({0: "1"}, "must not be numbers of topics"),
    ],
)
def test_bad_labels_are_refused(labels, message):
    model = pickle.loads(FITTED["sticks"]) if "sticks" in FITTED else FACES["sticks"].fit(corpus())
    with pytest.raises((ValueError, TypeError), match=message):
        model.set_labels(labels)
    assert list(model.topic_labels_) == [0, 1]


# documents


def test_documents_are_a_table(model):
    counts, times = corpus(), times_of(model)
    table = model.document_topics(counts, **times)
    np.testing.assert_array_equal(table, model.transform(counts, **times))
    assert list(table.index) == list(counts.index)
    assert table.index.name == "document"
    assert list(table.columns) == [0, 1]
    plain = model.document_topics(counts.reset_index(drop=True), **times)
    assert list(plain.index) == list(range(30))
    assert list(model.document_topics(counts, names=range(5, 35), **times).index) == list(
        range(5, 35)
    )
    with pytest.raises(ValueError, match="names must be 30, one for each document; got 2"):
        model.document_topics(counts, names=["a", "b"], **times)


def test_documents_of_the_fit_are_known(model):
    labour, _ = labour_and_war(model)
    table = model.document_topics()
    assert list(table.index) == list(corpus().index)
    long = [i for i in range(28) if i not in (4, 5)]
    assert ((table[labour] > 0.5).to_numpy() == (np.arange(30) % 2 == 0))[long].all()


def test_a_stream_asks_for_documents():
    face = CorrelatedTopicModel(2, inference=StochasticVI(8, n_draws=4), random_state=1)
    with pytest.raises(ValueError, match=r"give the documents, as in document_topics\(X\)"):
        face.partial_fit(corpus(), corpus_size=30).document_topics()


def test_representative_documents_speak_of_their_topics(model):
    counts, (labour, war) = corpus(), labour_and_war(model)
    texts = [f"text {i}\n" + "long " * 100 for i in range(30)]
    table = model.representative_documents(counts, texts, n=40, **times_of(model))
    first = table.loc[labour]
    assert list(first.index) == list(range(1, 29))  # neither the empty one nor the copy
    assert not {"d4", "d29"} & set(first["document"])
    places = [int(d[1:]) for d in table.loc[labour, "document"]]
    assert all(i % 2 == 0 for i in places[:10])
    assert table.loc[(war, 28), "document"] == "d5"  # one word comes last, even of its own topic
    assert first["text"].iloc[0].startswith(f"text {places[0]} long long")
    assert first["text"].str.len().max() <= 162
    shares = model.transform(counts, **times_of(model))
    np.testing.assert_array_equal(first["share"], shares[places, labour])
    np.testing.assert_array_equal(first["tokens"], counts.sum(axis=1).iloc[places])
    assert first["share"].iloc[:-1].is_monotonic_decreasing
    assert list(model.representative_documents(counts, **times_of(model)).columns) == [
        "document",
        "share",
        "tokens",
    ]


def test_the_longer_of_equals_comes_first():
    counts = scipy.sparse.csr_array(np.array([[4, 0], [8, 0], [6, 0], [0, 9]]))
    shares = np.array([[0.9, 0.1], [0.9, 0.1], [0.95, 0.05], [0.2, 0.8]])
    first, second = topic_documents.speaking(shares, counts, 3)
    assert first.tolist() == [2, 1, 0]
    assert second.tolist() == [3, 1, 0]


def test_texts_are_found_or_refused():
    strings = ["one", "two"]
    for X in (strings, np.array(strings), pd.Series(strings, index=[5, 6])):
        assert topic_documents.texts_of(X, None, 2) == strings
    for X in (np.eye(2), scipy.sparse.eye(2).tocsr(), pd.DataFrame(np.eye(2)), [[1, 2], [3, 4]]):
        assert topic_documents.texts_of(X, None, 2) is None
    with pytest.raises(ValueError, match="texts must be 2 strings, one for each document; got 3"):
        topic_documents.texts_of(np.eye(2), ["a"] * 3, 2)


# queries


def test_queries_find_their_topics(model):
    labour, war = labour_and_war(model)
    table = model.topics_for("Tax, and WAGE")
    assert list(table.columns) == ["together", "tax", "and", "wage"]
    assert table.index[0] == labour
    np.testing.assert_allclose(table.sum(), 1.0)
    topics = model.topics_ if model.topics_.ndim == 2 else model.topics_.mean(axis=1)
    share = model.posterior_["share"][model.posterior_.best_chain].mean(axis=0)
    joint = share * topics[:, 0] * topics[:, 1] * topics[:, 7]
    np.testing.assert_allclose(table["together"].sort_index(), joint / joint.sum())
    one = share * topics[:, 7]
    np.testing.assert_allclose(table["and"].sort_index(), one / one.sum())
    assert model.topics_for(["war"]).index[0] == war
    assert model.topics_for(["WAR!"], words=[f"{w}!" for w in WORDS]).index[0] == war


def test_unknown_words_are_named(model):
    with pytest.warns(RuntimeWarning, match="not in the vocabulary are ignored: 'zebra'"):
        assert list(model.topics_for("zebra tax").columns) == ["together", "tax"]
    with pytest.raises(ValueError, match="must have words of the vocabulary; got 'zebra', 'yak'"):
        model.topics_for("zebra yak")
    with pytest.raises(ValueError, match="got none"):
        model.topics_for("")


# time


def test_shares_are_those_of_the_slice():
    """Labour is all there is in the first slice, and war in the last."""
    rng = np.random.default_rng(5)
    labour, war = [0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]
    part = np.repeat([0.9, 0.5, 0.1], 20)[:, None]
    counts = np.stack([rng.multinomial(40, p) for p in part * labour + (1 - part) * war])
    times = np.repeat([1990, 1991, 1992], 20)
    model = DynamicTopicModel(2, inference=Gibbs(20, 40, n_chains=1), random_state=1)
    model.fit(counts, times=times)
    first = int(model.topics_[:, 0].argmax())
    told = [model.topics(2, time=t).loc[first, "share"] for t in (1990, 1991, 1992)]
    assert told[0] > 0.7 > told[1] > 0.3 > told[2]
    np.testing.assert_array_equal(told, model.shares_over_time().mean[first])
    assert model.topics(2, time=1990).index[0] == first != model.topics(2, time=1992).index[0]
